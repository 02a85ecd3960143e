"""`tracegrade redact`: spans without secrets and without anybody's data."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from tracegrade.cli.common import (
    ConfigOption,
    LimitOption,
    StrictOption,
    command_app,
    echo,
    finish,
    progress,
    read_options,
    use_color,
)

app = command_app()


@app.command()
def redact(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="SPANS...", help="Files, folders or globs of spans; `-` is standard input."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="Where to write; .pb .proto .json .jsonl, and .gz or .zst after it."
        ),
    ] = None,
    also: Annotated[
        list[Path] | None,
        typer.Option(
            "--also",
            metavar="FILE|FOLDER",
            help="Tasks, trials, states and rule files; written into the folder of --out. May be repeated.",
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Exit 1 if something that looks like a secret is left (no --out: look only)."),
    ] = False,
    words: Annotated[
        list[Path] | None,
        typer.Option("--words", metavar="FILE", help="Words or phrases to take out, one a line. May be repeated."),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option("--key", metavar="NAME", help="Take out the values of keys of this name. May be repeated."),
    ] = None,
    keep_only: Annotated[
        list[str] | None,
        typer.Option("--keep-only", metavar="FILE|PACK", help="Take out all that these rules do not read. Repeatable."),
    ] = None,
    preserve: Annotated[
        list[str] | None,
        typer.Option("--preserve", metavar="KIND", help="Keep the format of email, card, iban or phone. Repeatable."),
    ] = None,
    ids: Annotated[bool, typer.Option("--ids", help="Replace trace, span, conversation and call ids too.")] = False,
    verify: Annotated[
        list[str] | None,
        typer.Option(
            "--verify",
            metavar="FILE|PACK",
            help="Grade before and after: exit 1 if a verdict becomes another, `unknown` apart. Repeatable.",
        ),
    ] = None,
    secret_file: Annotated[
        Path | None,
        typer.Option(
            "--secret-file",
            metavar="FILE",
            help="Key of the placeholders, so that they are the same in every run. [default: a new one]",
        ),
    ] = None,
    entities: Annotated[
        str | None, typer.Option("--entities", metavar="MODEL", help="Take out names found by this spaCy pipeline.")
    ] = None,
    format_: Annotated[Literal["text", "json"], typer.Option("--format", help="What to print.")] = "text",
    strict: StrictOption = None,
    limit: LimitOption = None,
    config_file: ConfigOption = None,
) -> None:
    """Take secrets and people's data out of spans and of the files beside them, before they are stored or shared.

    Equal values get equal placeholders, so rules that compare values still can.

    \b
    Example:
      tracegrade redact fixtures/traces/support-desk.otlp.jsonl --out shared/desk.jsonl --check
    """
    from tracegrade.app.redact import RedactOptions
    from tracegrade.app.redact import redact as run
    from tracegrade.config import load_config, pick
    from tracegrade.report.json import render
    from tracegrade.report.redact_text import redact_text

    config = load_config(config_file).config
    options = RedactOptions(
        paths=paths or (),
        also=also or (),
        out=out,
        check=check,
        words=words or (),
        keys=key or (),
        keep_only=keep_only or (),
        preserve=preserve or (),
        map_ids=ids,
        verify=verify or (),
        secret_file=secret_file,
        entities=entities,
        read=read_options(pick(strict, config.strict), limit, config),
    )
    with progress("Redacting"):
        report = run(options)
    if format_ == "json":
        echo(render(report))
    else:
        width = max(60, shutil.get_terminal_size((100, 24)).columns) if sys.stdout.isatty() else 100
        echo(redact_text(report, style=use_color(sys.stdout), width=width))
    finish(report.exit_code)

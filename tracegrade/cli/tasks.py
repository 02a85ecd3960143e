"""`tracegrade tasks`: check that tasks can be passed, and only by agents that should."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from tracegrade.cli.common import command_app, echo, finish
from tracegrade.errors import EXIT_FAIL, EXIT_PASS, UsageError

app = command_app()


@app.callback()
def tasks() -> None:
    """Work with tasks files."""


@app.command()
def check(
    path: Annotated[
        Path, typer.Argument(metavar="TASKS", help="A tasks file: YAML, JSON, JSON Lines, CSV or Parquet.")
    ],
    format_: Annotated[Literal["text", "json"], typer.Option("--format", help="What to print.")] = "text",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Also write the JSON (or, for .txt, the text) here.")
    ] = None,
) -> None:
    """Grade the graders: a reference must pass; a wrong, missing or extra change must fail.

    Also says which tasks pass when nothing is done, or when the outputs are only said. Exit code 1 where a task
    cannot be passed or its graders cannot see a wrong outcome.

    \b
    Example:
      tracegrade tasks check fixtures/toy-store/tasks.yaml
    """
    import json

    from tracegrade.app.tasks import check_tasks_file, tasks_text

    if out is not None and out.suffix not in (".json", ".txt"):
        raise UsageError(f"--out {out}: expected a name that ends in .json or .txt")
    result = check_tasks_file(path)
    texts = {"json": json.dumps(result.to_json(), indent=2, ensure_ascii=False), "text": tasks_text(result)}
    if out is not None:
        try:
            out.write_text(texts["json" if out.suffix == ".json" else "text"] + "\n", encoding="utf-8", newline="\n")
        except OSError as error:
            raise UsageError(f"--out {out}: cannot be written: {error.strerror or error}") from error
    echo(texts[format_])
    finish(EXIT_FAIL if result.broken else EXIT_PASS)

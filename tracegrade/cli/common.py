"""What the commands share: option types, output, colour and progress.

A command module holds one or more `typer.Typer` apps made by `command_app`, each listed in the table of
`tracegrade.cli.main`. A command parses, makes one call into `tracegrade.app` and ends with `finish`.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer

from tracegrade.errors import UsageError, did_you_mean
from tracegrade.report.escape import printable

if TYPE_CHECKING:
    from tracegrade.config import Config
    from tracegrade.ingest import ReadOptions

Format = Literal["text", "json", "junit", "sarif", "markdown", "github", "html"]
FailOn = Literal["fail", "unknown", "never"]

CONTEXT_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}

FORMAT_BY_ENDING: dict[str, Format] = {
    ".txt": "text",
    ".json": "json",
    ".xml": "junit",
    ".sarif": "sarif",
    ".sarif.json": "sarif",
    ".md": "markdown",
    ".html": "html",
}

SpanPaths = Annotated[
    list[str],
    typer.Argument(metavar="SPANS...", help="Files, folders or globs of spans; `-` is standard input."),
]
SpanPathsOrDb = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SPANS...",
        help="Files, folders or globs of spans; `-` is standard input. Without any, what --db holds.",
    ),
]
FormatOption = Annotated[Format, typer.Option("--format", help="What to print.")]
OutOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--out",
        metavar="FILE",
        help="Also write a report; its ending chooses the format (.json .xml .sarif .md .html .txt). May be repeated.",
    ),
]
DbOption = Annotated[
    Path | None,
    typer.Option("--db", metavar="FILE", help="Keep spans and results in this DuckDB file; loaded once, reused later."),
]
GroupByOption = Annotated[
    str | None,
    typer.Option(
        "--group-by",
        metavar="auto|trace|conversation|messages|ATTRIBUTE",
        help="What makes spans one trajectory. [default: auto]",
    ),
]
InvariantsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--invariants",
        metavar="FILE|PACK",
        help="A rule file or the name of a bundled pack. May be repeated. [default: the config, else `core`]",
    ),
]
StrictOption = Annotated[
    bool | None, typer.Option("--strict", help="Stop at the first span that cannot be read.", show_default=False)
]
FailOnOption = Annotated[
    FailOn | None,
    typer.Option("--fail-on", help="The mildest verdict that makes the exit code 1. [default: fail]"),
]
MinCoverageOption = Annotated[
    float | None,
    typer.Option(
        "--min-coverage",
        min=0.0,
        max=1.0,
        metavar="SHARE",
        help="Exit 3 when fewer of the applicable trajectory and rule pairs than this were decided. [default: 0.9]",
    ),
]
AllowEmptyOption = Annotated[
    bool | None, typer.Option("--allow-empty", help="Exit 0, not 3, when no rule applied.", show_default=False)
]
DialectOption = Annotated[
    list[str] | None,
    typer.Option("--dialect", metavar="FILE", help="Read spans in a dialect of your own too. May be repeated."),
]
LimitOption = Annotated[
    list[str] | None,
    typer.Option("--limit", metavar="NAME=N", help="Set a limit of the readers, such as max_depth=128. Repeatable."),
]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of everything random.")]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Use this config. [default: `tracegrade.toml` or `pyproject.toml`, found by walking up]",
    ),
]


def command_app() -> typer.Typer:
    """An app for one command, or for a command with sub-commands: plain help, no completion of its own."""
    return typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=CONTEXT_SETTINGS,
    )


def finish(exit_code: int) -> NoReturn:
    """End the command with an exit code of `tracegrade.errors`."""
    raise typer.Exit(exit_code)


def echo(text: str) -> None:
    """Print a rendered report on standard output, ending in exactly one line feed.

    Values from traces inside it must have gone through `printable` already.
    """
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def note(text: str) -> None:
    """Print a message for the person, not for a pipe, on standard error."""
    sys.stderr.write(printable(text, newlines=True) + "\n")


def use_color(stream: IO[str]) -> bool:
    """Whether to colour what goes to a stream: only on a terminal, and never with `NO_COLOR` set (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def out_format(path: Path) -> Format:
    """The format that a file's ending asks for.

    Raises:
        UsageError: the ending is none of those known.
    """
    name = path.name.lower()
    for ending in sorted(FORMAT_BY_ENDING, key=len, reverse=True):
        if name.endswith(ending):
            return FORMAT_BY_ENDING[ending]
    known = " ".join(FORMAT_BY_ENDING)
    raise UsageError(f"--out {path}: the ending does not name a format; expected one of {known}")


def render_report(report: Any, format_: Format) -> str:
    """A `CheckReport` as text of a format, by the module `tracegrade.report.<format>`, imported only when asked for."""
    text: str = importlib.import_module(f"tracegrade.report.{format_}").render(report)
    return text


def print_report(report: Any, format_: Format) -> None:
    """Print a `CheckReport`; as text on a terminal it is coloured and fills the terminal's width."""
    if format_ == "text" and sys.stdout.isatty():
        from tracegrade.report.text import render

        width = max(60, shutil.get_terminal_size((100, 24)).columns)
        echo(render(report, style=use_color(sys.stdout), width=width))
    else:
        echo(render_report(report, format_))


def write_reports(render: Callable[[Format], str], outs: Iterable[Path] | None) -> None:
    """Write one report to each file, in the format of its ending.

    Args:
        render: gives the report in a format.
        outs: the values of `--out`. Check them with `out_format` before the work starts.

    Raises:
        UsageError: an unknown ending, or a file that cannot be written.
    """
    for path in outs or ():
        write_file(path, render(out_format(path)))


def write_file(path: Path, text: str) -> None:
    """Write a text to the file of `--out`, ending in a line feed; its folder is made.

    Raises:
        UsageError: it cannot be written; a report that is lost is a failure.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(f"--out {path}: cannot be written: {error.strerror or error}") from error


def read_options(strict: bool, limits: Iterable[str] | None, config: Config) -> ReadOptions:
    """How to read, from the config and the flags `--strict` and `--limit`.

    Raises:
        UsageError: a limit is not `NAME=N` with a known name and a whole number above zero.
    """
    from tracegrade.ingest import ReadOptions

    values = config.limits.model_dump(exclude_none=True)
    known = type(config.limits).model_fields
    for text in limits or ():
        name, _, number = text.partition("=")
        if name not in known:
            raise UsageError(f"--limit {text}: no such limit.{did_you_mean(name, known)} Known: {', '.join(known)}.")
        if not number.isdecimal() or int(number) == 0:
            raise UsageError(f"--limit {text}: expected {name}=N with a whole number above zero")
        values[name] = int(number)
    return ReadOptions(strict=strict, **values)


@contextmanager
def progress(what: str) -> Iterator[Callable[[str], None]]:
    """Show what is being done on standard error while the block runs, where that is a terminal; else nothing.

    Yields:
        A function that replaces the text shown.
    """
    if not sys.stderr.isatty():
        yield lambda _text: None
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True, no_color=not use_color(sys.stderr))
    with console.status(Text(printable(what))) as status:
        yield lambda text: status.update(Text(printable(text)))

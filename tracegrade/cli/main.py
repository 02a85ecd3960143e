"""The `tracegrade` program: a table of commands, each imported only when it is called.

Start-up is part of the product: this module imports typer and nothing heavier.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from tracegrade import __version__
from tracegrade.cli.common import CONTEXT_SETTINGS
from tracegrade.errors import EXIT_USAGE, TracegradeError
from tracegrade.report.escape import printable

EXIT_PIPE_CLOSED = 141
"""What a shell reports for a program whose reader went away (128 + SIGPIPE)."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One command: the `typer.Typer` that runs it, as `module:attribute`, and its line in the help."""

    target: str
    help: str


SECTIONS: dict[str, dict[str, Entry]] = {
    "Grade traces": {
        "check": Entry("tracegrade.cli.check:app", "Grade the agent runs in files of spans by written rules."),
        "show": Entry("tracegrade.cli.show:app", "Show trajectories step by step."),
        "diff": Entry("tracegrade.cli.diff:app", "Show where two trajectories part."),
        "replay": Entry("tracegrade.cli.replay:app", "Recorded runs under new rules, new tools or a new agent."),
        "report": Entry("tracegrade.cli.report:app", "Render a result of `check` in another format."),
    },
    "Rules and tasks": {
        "invariants": Entry("tracegrade.cli.invariants:app", "List, test and explain packs of rules."),
        "tasks": Entry("tracegrade.cli.tasks:app", "Check tasks and their graders before they grade anything."),
    },
    "Scores and gates": {
        "score": Entry("tracegrade.cli.score:app", "Success rate, pass^k, crashes and cost, with intervals."),
        "gate": Entry("tracegrade.cli.gate:app", "Decide whether a candidate is worse than a baseline."),
        "power": Entry("tracegrade.cli.power:app", "How many tasks and trials a difference needs."),
        "frontier": Entry("tracegrade.cli.frontier:app", "Agents by cost and success: who is beaten by whom."),
        "horizon": Entry("tracegrade.cli.horizon:app", "How long a task the agent still solves."),
        "runs": Entry("tracegrade.cli.runs:app", "Kept runs: list, show, compare, prune; trends."),
        "judge": Entry("tracegrade.cli.judge:app", "Run a judge by binary criteria, every call recorded."),
    },
    "Traces and databases": {
        "inspect": Entry("tracegrade.cli.inspect:app", "What files are, what was left out, what would be graded."),
        "audit": Entry("tracegrade.cli.audit:app", "Whether telemetry is good enough to grade, and got worse."),
        "dialects": Entry("tracegrade.cli.dialects:app", "Which instrumentations are known; how a span was read."),
        "receive": Entry("tracegrade.cli.receive:app", "Listen for OTLP and keep or grade what an agent sends."),
        "redact": Entry("tracegrade.cli.redact:app", "Take secrets and personal data out of spans."),
        "sample": Entry("tracegrade.cli.sample:app", "Choose a reproducible subset of production traces."),
        "sql": Entry("tracegrade.cli.sql:app", "Query a database that `--db` kept."),
    },
    "Set-up": {
        "init": Entry("tracegrade.cli.init:app", "Write a config and a starter pack of rules."),
        "schema": Entry("tracegrade.cli.schema:app", "Print the JSON Schema of a file format."),
    },
}
"""Every command, in the order of the help."""

COMMANDS: dict[str, Entry] = {name: entry for section in SECTIONS.values() for name, entry in section.items()}


class Program(TyperGroup):
    """The root command: knows the others by name and help line, and turns what they raise into exit codes."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {name: TyperCommand(name, short_help=entry.help) for name, entry in COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Import the command that is called; listing and completing names need no import."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, load(name) if name else command, rest

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands by section."""
        width = max(map(len, COMMANDS))
        for title, entries in SECTIONS.items():
            if entries:
                with formatter.section(title):
                    formatter.write_dl([(name.ljust(width), entry.help) for name, entry in entries.items()])

    def invoke(self, ctx: Any) -> Any:
        """Run the command; its errors become a message on standard error and an exit code."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise typer.Exit(EXIT_PIPE_CLOSED) from error
        except (typer.Exit, typer.Abort, typer.TyperException):
            raise
        except Exception as error:
            if ctx.params.get("debug"):
                traceback.print_exc()
            sys.stderr.write(_message(error) + "\n")
            raise typer.Exit(getattr(error, "exit_code", EXIT_USAGE)) from error


def load(name: str) -> Any:
    """The command behind a name of the table.

    Args:
        name: a key of `COMMANDS`.
    """
    module, _, attribute = COMMANDS[name].target.partition(":")
    command = typer.main.get_command(getattr(importlib.import_module(module), attribute))
    command.name = name
    return command


def _message(error: Exception) -> str:
    if isinstance(error, TracegradeError):
        text = str(error)
        if error.exit_code == EXIT_USAGE:
            text = "Error:\n  " + text.replace("\n", "\n  ") if "\n" in text else f"Error: {text}"
    elif isinstance(error, OSError) and error.filename is not None:
        text = f"Error: `{error.filename}`: {error.strerror}"
    else:
        text = (
            f"Error: this is a fault in tracegrade, not in your files: {type(error).__name__}: {error}\n"
            "`tracegrade --debug …` shows the traceback."
        )
    return printable(text, newlines=True)


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"tracegrade {__version__}")
        raise typer.Exit


app = typer.Typer(
    cls=Program,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings=CONTEXT_SETTINGS,
    epilog="Exit codes: 0 passed, 1 violation or regression, 2 usage or unreadable file, 3 nothing could be concluded.",
)


@app.callback()
def _root(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Grade AI agents offline from the OpenTelemetry traces you already have."""


def main() -> None:
    """Run the program with the arguments of the process, and exit."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        try:
            app(prog_name="tracegrade")
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_PIPE_CLOSED)

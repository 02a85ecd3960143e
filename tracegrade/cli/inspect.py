"""`tracegrade inspect`: what files are and hold."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from tracegrade.cli.common import (
    ConfigOption,
    DbOption,
    DialectOption,
    GroupByOption,
    LimitOption,
    SpanPaths,
    StrictOption,
    command_app,
    echo,
    finish,
    progress,
    read_options,
    use_color,
)
from tracegrade.errors import EXIT_PASS, EXIT_USAGE

app = command_app()


@app.command()
def inspect(
    paths: SpanPaths,
    group_by: GroupByOption = None,
    format_: Annotated[Literal["text", "json"], typer.Option("--format", help="What to print.")] = "text",
    db: DbOption = None,
    strict: StrictOption = None,
    dialect: DialectOption = None,
    limit: LimitOption = None,
    config_file: ConfigOption = None,
) -> None:
    """Say what files are, what was left out of them and why, and what would be graded. Nothing is judged.

    Exit code 2 only where a file cannot be read; the others are shown all the same.

    \b
    Example:
      tracegrade inspect fixtures/traces/support-desk.otlp.jsonl
    """
    from tracegrade.app.inspect import InspectOptions, inspect
    from tracegrade.app.trajectories import TrajectoryOptions
    from tracegrade.config import load_config, pick
    from tracegrade.report.inspect_text import inspect_text
    from tracegrade.report.json import render

    config = load_config(config_file).config
    options = InspectOptions(
        paths=paths,
        db=db,
        reading=read_options(pick(strict, config.strict), limit, config),
        trajectories=TrajectoryOptions(
            group_by=pick(group_by, config.group_by) or "auto",
            dialects=tuple(Path(p) for p in pick(dialect, config.dialects)),
        ),
    )
    with progress(f"Reading {', '.join(paths)}"):
        report = inspect(options)
    if format_ == "json":
        echo(render(report))
    else:
        width = max(60, shutil.get_terminal_size((100, 24)).columns) if sys.stdout.isatty() else 100
        echo(inspect_text(report, style=use_color(sys.stdout), width=width))
    finish(EXIT_USAGE if any(item.error for item in report.inputs) else EXIT_PASS)

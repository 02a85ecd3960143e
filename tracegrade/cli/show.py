"""`tracegrade show`: trajectories step by step."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import typer

from tracegrade.cli.common import (
    ConfigOption,
    DbOption,
    DialectOption,
    GroupByOption,
    LimitOption,
    StrictOption,
    command_app,
    echo,
    finish,
    progress,
    read_options,
    use_color,
)
from tracegrade.errors import EXIT_PASS

TEXT_LIMIT = 20

app = command_app()


@app.command()
def show(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="SPANS...", help="Files, folders or globs of spans; `-` is standard input."),
    ] = None,
    trajectory: Annotated[
        list[str] | None,
        typer.Option(
            "--trajectory",
            metavar="NAME",
            help="Only this one: a trajectory, trace or conversation id, TASK or TASK/TRIAL. May be repeated.",
        ),
    ] = None,
    sources: Annotated[
        bool, typer.Option("--sources", help="Say where each value came from, and the spans of each step.")
    ] = False,
    first: Annotated[
        int | None,
        typer.Option(
            "--first", min=1, metavar="N", help=f"Show N trajectories at most. [default: {TEXT_LIMIT}; as JSON, all]"
        ),
    ] = None,
    task_key: Annotated[
        str | None, typer.Option("--task-key", metavar="ATTRIBUTE", help="Attribute that holds the task id.")
    ] = None,
    trial_key: Annotated[
        str | None, typer.Option("--trial-key", metavar="ATTRIBUTE", help="Attribute that holds the trial.")
    ] = None,
    group_by: GroupByOption = None,
    format_: Annotated[Literal["text", "json"], typer.Option("--format", help="What to print.")] = "text",
    db: DbOption = None,
    strict: StrictOption = None,
    dialect: DialectOption = None,
    limit: LimitOption = None,
    config_file: ConfigOption = None,
) -> None:
    """Show what an agent did, step by step; steps that ran beside each other stand in one bracket.

    \b
    Example:
      tracegrade show fixtures/traces/support-desk.otlp.jsonl --first 1 --sources
    """
    from tracegrade.app.check import CheckOptions, trajectory_options
    from tracegrade.app.show import ShowOptions, run_show
    from tracegrade.config import load_config, pick

    config = load_config(config_file).config
    reading = CheckOptions(
        group_by=pick(group_by, config.group_by),
        task_key=pick(task_key, config.task_key),
        trial_key=pick(trial_key, config.trial_key),
        result_errors=config.result_errors,
        price_file=config.price_file,
        dialects=pick(dialect, config.dialects),
    )
    options = ShowOptions(
        paths=paths or (),
        select=trajectory or (),
        first=first if first is not None or format_ == "json" else TEXT_LIMIT,
        trajectories=trajectory_options(reading),
        reading=read_options(pick(strict, config.strict), limit, config),
        db=db,
    )
    with progress("Reading spans"):
        report = run_show(options)
    if format_ == "json":
        from tracegrade.report import json

        echo(json.render(report))
    else:
        from tracegrade.report import steps_text

        echo(steps_text.render(report, style=use_color(sys.stdout), sources=sources))
    finish(EXIT_PASS)

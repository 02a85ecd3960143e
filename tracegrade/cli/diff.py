"""`tracegrade diff`: where two trajectories part."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import typer

from tracegrade.cli.common import (
    ConfigOption,
    DialectOption,
    GroupByOption,
    LimitOption,
    StrictOption,
    command_app,
    echo,
    finish,
    read_options,
    use_color,
)
from tracegrade.errors import EXIT_FAIL, EXIT_PASS

app = command_app()


@app.command()
def diff(
    left: Annotated[str, typer.Argument(metavar="A", help="A file, folder or glob of spans.")],
    right: Annotated[str, typer.Argument(metavar="B", help="Another one, or the same.")],
    left_name: Annotated[
        str | None,
        typer.Option("--left", metavar="NAME", help="Which trajectory of A: an id, TASK or TASK/TRIAL."),
    ] = None,
    right_name: Annotated[
        str | None,
        typer.Option("--right", metavar="NAME", help="Which trajectory of B: an id, TASK or TASK/TRIAL."),
    ] = None,
    messages: Annotated[bool, typer.Option("--messages", help="Compare what was said too.")] = False,
    whole: Annotated[bool, typer.Option("--all", help="Show equal steps too.")] = False,
    task_key: Annotated[
        str | None, typer.Option("--task-key", metavar="ATTRIBUTE", help="Attribute that holds the task id.")
    ] = None,
    trial_key: Annotated[
        str | None, typer.Option("--trial-key", metavar="ATTRIBUTE", help="Attribute that holds the trial.")
    ] = None,
    group_by: GroupByOption = None,
    format_: Annotated[Literal["text", "json"], typer.Option("--format", help="What to print.")] = "text",
    dialect: DialectOption = None,
    strict: StrictOption = None,
    limit: LimitOption = None,
    config_file: ConfigOption = None,
) -> None:
    """Compare two trajectories: the first step where they part, then the alignment, arguments field by field.

    Exit code 0 when no step differs, 1 when one does.

    \b
    Example:
      tracegrade diff fixtures/traces/otel-genai/good.otlp.jsonl fixtures/traces/otel-genai/unverified.otlp.jsonl
    """
    from tracegrade.app.check import CheckOptions, trajectory_options
    from tracegrade.app.diff import DiffOptions, run_diff
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
    read = read_options(pick(strict, config.strict), limit, config)
    report = run_diff(DiffOptions(left, right, left_name, right_name, messages, trajectory_options(reading), read))
    if format_ == "json":
        from tracegrade.report import json

        echo(json.render(report))
    else:
        from tracegrade.report import diff_text

        echo(diff_text.render(report, style=use_color(sys.stdout), whole=whole))
    finish(EXIT_PASS if report.equal else EXIT_FAIL)

"""`tracegrade horizon`: how long tasks may be for an agent to succeed half of the time."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from tracegrade.cli.common import SeedOption, command_app, echo, finish
from tracegrade.cli.frontier import AgentInputs, AgentOption
from tracegrade.cli.score import (
    ColumnOption,
    ConfidenceOption,
    FilterOption,
    OutFileOption,
    OutputOption,
    ThresholdOption,
    write,
)
from tracegrade.errors import EXIT_NOTHING, EXIT_PASS

app = command_app()

METR_REGULARIZATION = 0.1


@app.command()
def horizon(
    inputs: AgentInputs,
    agent: AgentOption = None,
    column: ColumnOption = None,
    filter_: FilterOption = None,
    threshold: ThresholdOption = None,
    weights: Annotated[
        Literal["invsqrt", "equal"],
        typer.Option("--weights", help="Weight of a task: 1/√(tasks of its cluster), or equal."),
    ] = "invsqrt",
    regularization: Annotated[
        float | None,
        typer.Option("--regularization", min=0.0, help="Penalty on the slope. [default: 1e-5; 0.1 with the preset]"),
    ] = None,
    preset: Annotated[
        Literal["metr"] | None, typer.Option("--preset", help="`metr`: penalty 0.1, and 0 minutes without successes.")
    ] = None,
    draws: Annotated[int, typer.Option("--resamples", min=100, max=100_000)] = 1_000,
    confidence: ConfidenceOption = 0.95,
    seed: SeedOption = 0,
    format_: OutputOption = "text",
    out: OutFileOption = None,
) -> None:
    """Fit METR's time horizon: the human minutes at which an agent succeeds half (80 %) of the time.

    The table needs `human_minutes`; `trial` tells runs of one task apart, `cluster` is the family of tasks. Exit code 3
    where no agent has a horizon.

    \b
    Example:
      tracegrade horizon runs.csv --agent alias --column passed=score_binarized --column trial=run_id
    """
    from tracegrade.app.outcome_table import parse_pairs
    from tracegrade.app.outcomes import Reading
    from tracegrade.app.planning import horizon_files
    from tracegrade.report.json import render
    from tracegrade.report.planning_text import horizon_text
    from tracegrade.score.horizon import HorizonOptions

    reading = Reading(parse_pairs(column, "--column"), parse_pairs(filter_, "--filter"), threshold)
    metr = preset == "metr"
    penalty = regularization if regularization is not None else METR_REGULARIZATION if metr else 1e-5
    report = horizon_files(inputs, reading, agent, HorizonOptions(weights, penalty, metr, draws, confidence, seed))
    text, json = horizon_text(report), render(report)
    write(out, text, json)
    echo(text if format_ == "text" else json)
    finish(EXIT_PASS if any(h.p50_minutes.value is not None for h in report.horizons) else EXIT_NOTHING)

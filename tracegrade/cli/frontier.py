"""`tracegrade frontier`: which agent is worth its price."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from tracegrade.cli.common import SeedOption, command_app, echo, finish
from tracegrade.cli.score import (
    ColumnOption,
    ConfidenceOption,
    FilterOption,
    OutFileOption,
    OutputOption,
    ThresholdOption,
    write,
)
from tracegrade.errors import EXIT_PASS

app = command_app()

AgentOption = Annotated[
    str | None, typer.Option("--agent", metavar="COLUMN", help="The column of the table that names the agent.")
]
AgentInputs = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT...", help="One table with a column of agents (--agent), or one file for each agent, NAME=FILE."
    ),
]


@app.command()
def frontier(
    inputs: AgentInputs,
    agent: AgentOption = None,
    column: ColumnOption = None,
    filter_: FilterOption = None,
    threshold: ThresholdOption = None,
    verifier: Annotated[
        bool, typer.Option("--verifier", help="A check tells a passing try from a failing one: price retries.")
    ] = False,
    confidence: ConfidenceOption = 0.95,
    plots: Annotated[
        Path | None, typer.Option("--plots", metavar="FOLDER", help="Write plots here (needs the extra `plots`).")
    ] = None,
    plot_format: Annotated[Literal["svg", "png"], typer.Option("--plot-format")] = "svg",
    seed: SeedOption = 0,
    format_: OutputOption = "text",
    out: OutFileOption = None,
) -> None:
    """Place several agents by cost and success rate: Pareto front, hull with the origin, retries, routing.

    \b
    Example:
      tracegrade frontier outcomes.csv --agent submission --column passed=resolved
    """
    from tracegrade.app.outcome_table import parse_pairs
    from tracegrade.app.outcomes import Reading
    from tracegrade.app.planning import frontier_files
    from tracegrade.report.json import render
    from tracegrade.report.planning_text import frontier_text
    from tracegrade.score.estimating import Settings

    reading = Reading(parse_pairs(column, "--column"), parse_pairs(filter_, "--filter"), threshold)
    report = frontier_files(inputs, reading, agent, Settings(confidence, seed), verifier=verifier)
    text, json = frontier_text(report), render(report)
    if plots is not None:
        from tracegrade.report.plots import write_frontier_plot

        write_frontier_plot(report, plots, plot_format)
    write(out, text, json)
    echo(text if format_ == "text" else json)
    finish(EXIT_PASS)

"""`tracegrade power`: how large a drop a comparison can see."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from tracegrade.cli.common import SeedOption, command_app, echo, finish
from tracegrade.cli.score import ColumnOption, FilterOption, OutFileOption, OutputOption, ThresholdOption, write
from tracegrade.errors import EXIT_PASS, UsageError

app = command_app()


def parse_points(text: str, option: str) -> float:
    """A difference of rates: `4pp`, `4%` or `0.04`.

    Raises:
        UsageError: something else, or outside 0 … 1.

    >>> parse_points("4pp", "--drop"), parse_points("0.04", "--drop")
    (0.04, 0.04)
    """
    body = text.strip().casefold()
    scale = 1.0
    for ending in ("pp", "%"):
        if body.endswith(ending):
            body, scale = body.removesuffix(ending).strip(), 100.0
    try:
        value = float(body) / scale
    except ValueError:
        value = float("nan")
    if not 0 <= value <= 1:
        raise UsageError(f"{option} {text}: expected points such as 4pp, or a share such as 0.04")
    return value


@app.command()
def power(
    inputs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[INPUT...]", help="Outcomes whose spread is fitted; without them give --rate."),
    ] = None,
    tasks: Annotated[int | None, typer.Option("--tasks", min=2, max=100_000, help="Tasks a side.")] = None,
    trials: Annotated[int | None, typer.Option("--trials", min=1, max=256, help="Trials a task.")] = None,
    drop: Annotated[str, typer.Option("--drop", metavar="5pp", help="The drop to see.")] = "5pp",
    rate: Annotated[
        float | None, typer.Option("--rate", min=0.0, max=1.0, help="Baseline rate, instead of inputs.")
    ] = None,
    correlation: Annotated[
        float,
        typer.Option(
            "--correlation",
            min=0.0,
            max=0.999,
            help="With --rate: correlation of two trials of one task, 1/(a+b+1); 0 makes all tasks alike.",
        ),
    ] = 0.0,
    design: Annotated[Literal["both", "paired", "unpaired"], typer.Option("--design")] = "both",
    target: Annotated[float, typer.Option("--power", min=0.05, max=0.999, help="Wanted power.")] = 0.8,
    alpha: Annotated[float, typer.Option("--alpha", min=0.0001, max=0.5, help="Two-sided level.")] = 0.05,
    simulations: Annotated[int, typer.Option("--simulations", min=100, max=1_000_000)] = 1_000,
    column: ColumnOption = None,
    filter_: FilterOption = None,
    threshold: ThresholdOption = None,
    seed: SeedOption = 0,
    format_: OutputOption = "text",
    out: OutFileOption = None,
) -> None:
    """Tell how many tasks and trials a given drop needs, and the smallest drop that given ones can see.

    \b
    Example:
      tracegrade power outcomes.csv --drop 5pp --tasks 100 --trials 4
    """
    from tracegrade.app.outcome_table import parse_pairs
    from tracegrade.app.outcomes import Reading
    from tracegrade.app.planning import PowerQuestion, plan_power
    from tracegrade.report.json import render
    from tracegrade.report.planning_text import power_text
    from tracegrade.score.power import Design, Spread

    fall = parse_points(drop, "--drop")
    if fall <= 0:
        raise UsageError(f"--drop {drop}: expected more than nothing")
    spread = None
    if rate is not None:
        size = (1 - correlation) / correlation if correlation > 0 else None
        inner = size is not None and 0 < rate < 1
        spread = Spread(rate, rate * size, (1 - rate) * size) if inner and size is not None else Spread(rate)
    reading = Reading(parse_pairs(column, "--column"), parse_pairs(filter_, "--filter"), threshold)
    designs: tuple[Design, ...] = ("paired", "unpaired") if design == "both" else (design,)
    question = PowerQuestion(tasks, trials, fall, target, alpha, spread, designs, simulations, seed)
    report = plan_power(inputs or [], reading, question)
    text, json = power_text(report), render(report)
    write(out, text, json)
    echo(text if format_ == "text" else json)
    finish(EXIT_PASS)

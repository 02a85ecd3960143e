"""`tracegrade score`: success rate, pass@k and pass^k, spread, crashes and cost, each with its interval."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from tracegrade.cli.common import DbOption, SeedOption, command_app, echo, finish, write_file
from tracegrade.errors import EXIT_PASS, UsageError

app = command_app()

ColumnOption = Annotated[
    list[str] | None,
    typer.Option("--column", metavar="NAME=COLUMN", help="A column of the table under our name. May be repeated."),
]
FilterOption = Annotated[
    list[str] | None,
    typer.Option("--filter", metavar="COLUMN=VALUE", help="Take only these rows of the table. May be repeated."),
]
ThresholdOption = Annotated[
    float | None,
    typer.Option("--threshold", metavar="X", help="`passed` is a number, and at least X is a pass."),
]
ConfidenceOption = Annotated[
    float, typer.Option("--confidence", min=0.5, max=0.999, metavar="LEVEL", help="Level of the intervals.")
]
OutputOption = Annotated[Literal["text", "json"], typer.Option("--format", help="What to print.")]
OutFileOption = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Also write the JSON (or, for .txt, the text) here.")
]


def parse_ks(text: str | None) -> list[int] | None:
    """`1,2,4` as numbers.

    Raises:
        UsageError: something else.
    """
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and 1 <= int(part) <= 10_000 for part in parts):
        raise UsageError(f"--k {text}: expected whole numbers from 1 to 10000, separated by commas, such as 1,2,4")
    return [int(part) for part in parts]


def write(out: Path | None, text: str, json: str) -> None:
    """Write one of the two to a file, by its ending.

    Raises:
        UsageError: another ending, or a file that cannot be written.
    """
    if out is None:
        return
    if out.suffix not in (".json", ".txt"):
        raise UsageError(f"--out {out}: expected a name that ends in .json or .txt")
    write_file(out, json if out.suffix == ".json" else text)


@app.command()
def score(
    inputs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[INPUT...]", help="Check results (JSON) or tables of outcomes; `-` is standard input."),
    ] = None,
    k: Annotated[
        str | None, typer.Option("--k", metavar="1,2,4", help="The k of pass@k and pass^k. [default: all that fit]")
    ] = None,
    column: ColumnOption = None,
    filter_: FilterOption = None,
    threshold: ThresholdOption = None,
    confidence: ConfidenceOption = 0.95,
    interval: Annotated[
        Literal["bca", "percentile"], typer.Option("--interval", help="Which bootstrap interval.")
    ] = "bca",
    resamples: Annotated[int, typer.Option("--resamples", min=200, max=1_000_000)] = 10_000,
    reruns: Annotated[int, typer.Option("--reruns", min=1, help="Reruns of a crash in the crash model.")] = 1,
    fallback: Annotated[
        float | None, typer.Option("--fallback-cost", min=0, metavar="USD", help="What a person costs per failure.")
    ] = None,
    floors: Annotated[
        str | None, typer.Option("--floors", metavar="FILE", help="JSON of `tracegrade tasks check`.")
    ] = None,
    plug_in: Annotated[bool, typer.Option("--plug-in", help="Also show the biased plug-in values.")] = False,
    plots: Annotated[
        Path | None, typer.Option("--plots", metavar="FOLDER", help="Write plots here (needs the extra `plots`).")
    ] = None,
    plot_format: Annotated[Literal["svg", "png"], typer.Option("--plot-format")] = "svg",
    db: DbOption = None,
    seed: SeedOption = 0,
    format_: OutputOption = "text",
    out: OutFileOption = None,
) -> None:
    """Score the outcomes of trials: rates, pass@k, pass^k, their intervals, and what they cost.

    A table has the columns task_id, trial, passed (0/1; empty: not scored) and, where present, attempt, cluster, tag,
    cost_usd, end_reason, human_minutes, human.

    \b
    Example:
      tracegrade score outcomes.csv --column passed=official_reward --k 1,2,4
    """
    from tracegrade.app.outcome_table import parse_pairs
    from tracegrade.app.outcomes import Reading
    from tracegrade.app.score import score_files
    from tracegrade.report.json import render
    from tracegrade.report.score_text import score_text
    from tracegrade.score.estimating import Settings
    from tracegrade.score.scorecard import Options

    reading = Reading(parse_pairs(column, "--column"), parse_pairs(filter_, "--filter"), threshold)
    options = Options(
        ks=parse_ks(k),
        settings=Settings(confidence, seed, interval, resamples),
        fallback_usd=fallback,
        reruns=reruns,
        plug_in=plug_in,
    )
    report = score_files(inputs or [], reading, options, floors, db)
    text, json = score_text(report), render(report)
    if plots is not None:
        from tracegrade.report.plots import write_score_plots

        write_score_plots(report, plots, plot_format)
    write(out, text, json)
    echo(text if format_ == "text" else json)
    finish(EXIT_PASS)

"""`tracegrade runs`: the history of results, so that a baseline has a name."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from tracegrade.cli.common import command_app, echo, finish
from tracegrade.cli.score import ColumnOption, FilterOption, OutputOption, ThresholdOption
from tracegrade.errors import EXIT_PASS

app = command_app()

HistoryOption = Annotated[Path, typer.Option("--db", metavar="FILE", help="The database that holds the history.")]
BranchOption = Annotated[str | None, typer.Option("--branch", metavar="NAME", help="Only this branch.")]


@app.command("add")
def add(
    result: Annotated[str, typer.Argument(metavar="RESULT", help="A check result, a table of outcomes, or spans.")],
    db: HistoryOption,
    commit: Annotated[
        str | None, typer.Option("--commit", metavar="SHA", help="[default: from the CI environment]")
    ] = None,
    branch: Annotated[
        str | None, typer.Option("--branch", metavar="NAME", help="[default: from the CI environment]")
    ] = None,
    label: Annotated[
        list[str] | None, typer.Option("--label", metavar="NAME", help="A name for the run. May be repeated.")
    ] = None,
    tier: Annotated[
        str | None, typer.Option("--tier", metavar="NAME", help="Tier of the gate that it belongs to.")
    ] = None,
    budget: Annotated[str | None, typer.Option("--budget", metavar="TEXT", help="What a trial may spend.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of the run.")] = None,
    at: Annotated[str | None, typer.Option("--at", metavar="TIME", help="UTC, ISO 8601. [default: now]")] = None,
    column: ColumnOption = None,
    filter_: FilterOption = None,
    threshold: ThresholdOption = None,
) -> None:
    """Record a result.

    \b
    Example:
      tracegrade runs add result.json --db history.duckdb --label v1.4
    """
    import os

    from tracegrade.app.outcome_table import parse_pairs
    from tracegrade.app.outcomes import Reading
    from tracegrade.app.runs import RunFacts, from_environment, record
    from tracegrade.report.runs_text import run_text

    told_commit, told_branch = from_environment(os.environ)
    facts = RunFacts(
        at or datetime.now(UTC).isoformat(timespec="seconds"),
        commit or told_commit,
        branch or told_branch,
        tuple(label or ()),
        tier,
        budget,
        seed,
    )
    reading = Reading(parse_pairs(column, "--column"), parse_pairs(filter_, "--filter"), threshold)
    run, new = record(result, db, reading, facts)
    echo(("recorded\n" if new else "already recorded\n") + run_text(run))
    finish(EXIT_PASS)


@app.command("list")
def list_(db: HistoryOption, branch: BranchOption = None, format_: OutputOption = "text") -> None:
    """List the recorded runs, the oldest first."""
    from tracegrade.app.runs import history
    from tracegrade.model.runs import RunsReport
    from tracegrade.report.json import render
    from tracegrade.report.runs_text import runs_text

    report = RunsReport(runs=tuple(history(db, branch)))
    echo(runs_text(report) if format_ == "text" else render(report))
    finish(EXIT_PASS)


@app.command("show")
def show(
    name: Annotated[
        str, typer.Argument(metavar="RUN", help="`latest`, `BRANCH@latest`, a label, a commit, or a run id.")
    ],
    db: HistoryOption,
    format_: OutputOption = "text",
) -> None:
    """Show one recorded run."""
    from tracegrade.app.runs import history, resolve
    from tracegrade.report.json import render
    from tracegrade.report.runs_text import run_text

    run = resolve(name, history(db))
    echo(run_text(run) if format_ == "text" else render(run))
    finish(EXIT_PASS)


@app.command("compare")
def compare(
    baseline: Annotated[str, typer.Argument(metavar="BASELINE", help="A recorded run, by name.")],
    candidate: Annotated[str, typer.Argument(metavar="CANDIDATE", help="A recorded run, by name.")],
    db: HistoryOption,
    format_: OutputOption = "text",
) -> None:
    """Gate one recorded run against another, with the gate's defaults."""
    from tracegrade.app.runs import side_of_run
    from tracegrade.model.gate import GATE_EXIT
    from tracegrade.report.gate_text import gate_text
    from tracegrade.report.json import render
    from tracegrade.score.gate import gate

    report = gate(side_of_run(db, baseline), side_of_run(db, candidate))
    echo(gate_text(report) if format_ == "text" else render(report))
    finish(GATE_EXIT[report.verdict])


@app.command("trend")
def trend(
    db: HistoryOption,
    metric: Annotated[str, typer.Option("--metric", help="pass_rate or cost_per_trial.")] = "pass_rate",
    branch: BranchOption = None,
    format_: OutputOption = "text",
) -> None:
    """Show a metric over time, with its noise band and a hint where its level changed."""
    from tracegrade.app.runs import trend as trend_of
    from tracegrade.report.json import render
    from tracegrade.report.runs_text import trend_text

    report = trend_of(db, metric, branch)
    echo(trend_text(report) if format_ == "text" else render(report))
    finish(EXIT_PASS)


@app.command("prune")
def prune(
    db: HistoryOption,
    keep: Annotated[int, typer.Option("--keep", min=0, help="Newest runs of each branch that stay.")],
    branch: BranchOption = None,
) -> None:
    """Remove old runs; runs with a label stay."""
    from tracegrade.app.runs import prune as prune_runs

    removed = prune_runs(db, keep, branch)
    echo(f"removed {len(removed)} runs" + "".join(f"\n  {run.run_id}" for run in removed))
    finish(EXIT_PASS)

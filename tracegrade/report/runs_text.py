"""The history of runs as plain text."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.model.runs import RunRecord, RunsReport
from tracegrade.report.escape import printable
from tracegrade.report.planning_text import short
from tracegrade.report.score_text import INDENT, amount, percent, wrapped

BAR = 30


def runs_text(report: RunsReport) -> str:
    """A table of the runs, the newest last."""
    head = f"{'run':<13}{'recorded':<21}{'branch':<16}{'commit':<11}{'model':<20}{'rate':>8}  {'tasks':>6}  labels"
    return wrapped([head, *(_line(run) for run in report.runs)] if report.runs else ["no run is recorded"])


def _line(run: RunRecord) -> str:
    return (
        f"{run.run_id:<13}{run.recorded_at[:19]:<21}{short(run.branch or '–', 15):<16}"
        f"{short((run.commit_sha or '–')[:10], 10):<11}{short(run.model or '–', 19):<20}{percent(run.rate):>8}  "
        f"{run.n_tasks:>6}  {printable(', '.join(run.labels))}"
    )


def run_text(run: RunRecord) -> str:
    """All that is known of one run."""
    lines = []
    for name, value in run.model_dump().items():
        if value in (None, (), ""):
            continue
        text = (
            ", ".join(value) if isinstance(value, tuple) else amount(value) if isinstance(value, float) else str(value)
        )
        lines.append(f"{name:<20}{printable(text)}")
    return wrapped(lines)


def trend_text(report: RunsReport) -> str:
    """One metric over time as a line of marks with its noise band."""
    return wrapped(_trend(report))


def _trend(report: RunsReport) -> Iterator[str]:
    trend = report.trend
    if trend is None:
        return
    yield f"{trend.metric.replace('_', ' ')}, the oldest first; [ ] is the interval of each run"
    known = [v for v in (*trend.values, *trend.low, *trend.high) if v is not None]
    least, most = min(known, default=0.0), max(known, default=1.0)
    by_id = {run.run_id: run for run in report.runs}
    for run_id, value, low, high in zip(trend.run_ids, trend.values, trend.low, trend.high, strict=True):
        shown = percent(value) if trend.metric == "pass_rate" else amount(value, "$")
        label = by_id[run_id].recorded_at[:10]
        yield f"{INDENT}{run_id}  {label}  {shown:>8}  {_bar(value, low, high, least, most)}"
    point = trend.change_point
    if point is not None:
        yield (
            f"! the level seems to have changed with {point.run_id}: {percent(point.before)} before, "
            f"{percent(point.after)} since (p = {point.p_value:.2g})"
        )


def _bar(value: float | None, low: float | None, high: float | None, least: float, most: float) -> str:
    span = (most - least) or 1.0

    def place(x: float) -> int:
        return round((x - least) / span * (BAR - 1))

    cells = [" "] * BAR
    if low is not None and high is not None:
        cells[place(low) : place(high) + 1] = ["-"] * (place(high) - place(low) + 1)
        cells[place(low)], cells[place(high)] = "[", "]"
    if value is not None:
        cells[place(value)] = "o"
    return "".join(cells)

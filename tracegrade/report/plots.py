"""Plots of scores as SVG or PNG files, by matplotlib (the extra `plots`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

from tracegrade.errors import UsageError
from tracegrade.model.estimate import Estimate
from tracegrade.model.frontier import FrontierReport
from tracegrade.model.score import ScoreReport
from tracegrade.report.escape import printable

PlotFormat: TypeAlias = Literal["svg", "png"]
HAT, AT, GREY = "#0b5fa5", "#c2500a", "#5f6b76"
"""Blue and orange differ in lightness too, so that they are told apart in print and by colour-blind readers."""
SIZE = (7.2, 4.4)
STYLE: Any = {
    "svg.hashsalt": "tracegrade",
    "svg.fonttype": "none",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e3e7ea",
    "axes.axisbelow": True,
    # A dollar sign in a name is a dollar sign, not the start of a formula.
    "text.parse_math": False,
}


@contextmanager
def _figure(folder: Path, name: str, kind: PlotFormat) -> Iterator[Any]:
    """Axes whose figure is written to a file at the end.

    Raises:
        UsageError: matplotlib is not installed, or the file cannot be written.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError("plots need matplotlib: install the extra, `pip install 'tracegrade[plots]'`") from error
    with rc_context(STYLE):
        figure = Figure(figsize=SIZE, layout="constrained")
        yield figure.subplots()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # Without a date the same score gives the same bytes.
            figure.savefig(folder / f"{name}.{kind}", dpi=144, metadata={"Date": None} if kind == "svg" else None)
        except OSError as error:
            raise UsageError(f"--plots {folder}: cannot be written: {error.strerror or error}") from error


def write_score_plots(report: ScoreReport, folder: Path, kind: PlotFormat = "svg") -> list[Path]:
    """Write the curves, the histogram of tasks and, where costs are recorded, the cost per success.

    Args:
        report: the score.
        folder: made if it does not exist.
        kind: of file.

    Returns:
        The files.

    Raises:
        UsageError: matplotlib is not installed, or a file cannot be written.
    """
    drawings: dict[str, Callable[[Any, ScoreReport], None]] = {"pass_curves": _curves, "tasks": _histogram}
    if report.cost.total is not None:
        drawings["cost"] = _cost
    for name, draw in drawings.items():
        with _figure(folder, name, kind) as axes:
            draw(axes, report)
    return [folder / f"{name}.{kind}" for name in drawings]


def _points(estimates: dict[str, Estimate]) -> list[tuple[int, float, float, float]]:
    """k, value, low, high, where there is a value, in order of k."""
    rows = [
        (int(k), e.value, e.value if e.low is None else e.low, e.value if e.high is None else e.high)
        for k, e in estimates.items()
        if e.value is not None
    ]
    return sorted(rows)


def _same_tasks(estimates: dict[str, Estimate]) -> list[dict[str, Estimate]]:
    """Runs of k with the same number of tasks: means over different tasks are not joined by a line."""
    parts: list[dict[str, Estimate]] = []
    for k in sorted((k for k, e in estimates.items() if e.value is not None), key=int):
        if not parts or next(iter(parts[-1].values())).n_tasks != estimates[k].n_tasks:
            parts.append({})
        parts[-1][k] = estimates[k]
    return parts


def _curves(axes: Any, report: ScoreReport) -> None:
    fit = report.beta_binomial
    shown = [
        ("pass^k: all k pass", HAT, "o", report.pass_hat_k, fit.pass_hat_k),
        ("pass@k: any of k passes", AT, "s", report.pass_at_k, fit.pass_at_k),
    ]
    for label, colour, marker, measured, fitted in shown:
        for i, part in enumerate(_same_tasks(measured)):
            k, value, low, high = zip(*_points(part), strict=True)
            axes.fill_between(k, low, high, color=colour, alpha=0.16, linewidth=0)
            axes.vlines(k, low, high, color=colour, alpha=0.35, linewidth=1)
            axes.plot(k, value, color=colour, marker=marker, label=None if i else label)
        curve = _points(fitted)
        if len(curve) > 1:
            k, value, low, high = zip(*curve, strict=True)
            axes.plot(k, value, color=colour, linestyle="--", linewidth=1.2, label=f"fitted {label.split(':')[0]}")
            axes.fill_between(k, low, high, color=colour, alpha=0.06, linewidth=0)
    most = fit.extrapolated_beyond
    ks = sorted({k for k, *_ in _points(fit.pass_hat_k) + _points(report.pass_hat_k)})
    if ks and ks[-1] > most:
        axes.axvline(most, color=GREY, linewidth=1, linestyle=":")
        axes.annotate(
            "extrapolated →", (most, 1.005), xytext=(4, 0), textcoords="offset points", color=GREY, fontsize=8
        )
    axes.set_xscale("log", base=2)
    axes.set_xticks(ks, [str(k) for k in ks])
    axes.minorticks_off()
    _share_axis(axes)
    axes.set_xlabel("k (trials of one task)")
    axes.set_ylabel("mean over tasks")
    axes.set_title(f"{report.rate.n_tasks} tasks, {report.n_trials} trials, {100 * report.confidence:g} % intervals")
    axes.legend(frameon=False, fontsize=8)


def _share_axis(axes: Any) -> None:
    from matplotlib.ticker import PercentFormatter

    axes.set_ylim(-0.02, 1.05)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))


def _histogram(axes: Any, report: ScoreReport) -> None:
    """Tasks by share of passes; the flaky middle stands out from always and never."""
    shares = [task.c / task.n for task in report.tasks if task.n]
    most = max(task.n for task in report.tasks)
    bins = min(most, 10) + 1
    edges = [(i - 0.5) / (bins - 1) for i in range(bins + 1)] if bins > 1 else [-0.5, 0.5]
    counts, _, bars = axes.hist(shares, bins=edges, rwidth=0.86, color=HAT)
    for bar, count in zip(bars, counts, strict=True):
        if count:
            middle = bar.get_x() + bar.get_width() / 2
            axes.annotate(f"{count:.0f}", (middle, count), ha="center", va="bottom", fontsize=9)
            if 0.01 < middle < 0.99:
                bar.set_color(AT)
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    axes.set_xticks([i / max(bins - 1, 1) for i in range(bins)])
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("share of passed trials of a task")
    axes.set_ylabel("tasks")
    axes.grid(axis="x", visible=False)
    flaky = sum(0 < share < 1 for share in shares)
    axes.set_title(f"{shares.count(0.0)} tasks never pass, {flaky} are flaky (orange), {shares.count(1.0)} always pass")


def _cost(axes: Any, report: ScoreReport) -> None:
    """Per trial, per success and per resolved task, each with its interval."""
    cost = report.cost
    rows = [
        ("per trial", cost.per_trial),
        ("per success, median", cost.per_success_median),
        ("per success, 95th percentile", cost.per_success_p95),
        ("per resolved task", cost.per_resolved),
    ]
    if cost.with_fallback is not None:
        rows.append((f"per task, a person at ${cost.fallback_usd:g} for failures", cost.with_fallback))
    rows = [(name, e) for name, e in rows if e.value is not None]
    for y, (_, e) in enumerate(rows):
        low, high = e.low if e.low is not None else e.value, e.high if e.high is not None else e.value
        axes.plot([low, high], [y, y], color=HAT, linewidth=2)
        axes.plot([e.value], [y], color=HAT, marker="o")
        axes.annotate(
            f"${e.value:.4g}", (e.value, y), xytext=(0, 7), textcoords="offset points", ha="center", fontsize=9
        )
    axes.set_yticks(range(len(rows)), [name for name, _ in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("dollars" if cost.usable else f"dollars\n{cost.per_trial.note}")
    axes.set_title("Cost")


def write_frontier_plot(report: FrontierReport, folder: Path, kind: PlotFormat = "svg") -> list[Path]:
    """Write cost against rate, with the front and the hull.

    Raises:
        UsageError: matplotlib is not installed, or the file cannot be written.
    """
    with _figure(folder, "frontier", kind) as axes:
        _frontier(axes, report)
    return [folder / f"frontier.{kind}"]


def _frontier(axes: Any, report: FrontierReport) -> None:
    placed = [agent for agent in report.agents if agent.usable]
    at = {a.name: (a.cost.value or 0.0, a.rate.value or 0.0) for a in placed}
    for agent in placed:
        x, y = at[agent.name]
        colour = HAT if agent.on_front else GREY
        axes.plot(_ends(agent.cost), [y, y], color=colour, alpha=0.45, linewidth=1)
        axes.plot([x, x], _ends(agent.rate), color=colour, alpha=0.45, linewidth=1)
        axes.plot([x], [y], color=colour, marker="o" if agent.on_front else "x", linestyle="none")
    _line(axes, [at[n] for n in report.front], HAT, "-", "Pareto front")
    _line(axes, [at.get(n, (0.0, 0.0)) for n in report.hull], AT, "--", "hull with the origin")
    if report.router is not None:
        axes.plot(
            [report.router.cost_usd], [report.router.rate], color=AT, marker="*", linestyle="none", markersize=10,
            label="router, at most",
        )  # fmt: skip
    named = sorted((a for a in placed if a.on_front or len(placed) <= 8), key=lambda a: at[a.name])
    for number, agent in enumerate(named, start=1):
        axes.annotate(str(number), at[agent.name], xytext=(5, 5), textcoords="offset points", fontsize=9)
        axes.plot([], [], linestyle="none", label=f"{number}  {printable(agent.name)[:48]}")
    _share_axis(axes)
    axes.set_xlim(left=0)
    axes.set_xlabel("dollars per trial")
    axes.set_ylabel("success rate")
    axes.set_title(f"{len(placed)} agents on {report.n_tasks_shared} shared tasks")
    axes.figure.legend(frameon=False, fontsize=8, loc="outside lower center", ncols=2)


def _ends(e: Estimate) -> Sequence[float]:
    value = e.value or 0.0
    return [value if e.low is None else e.low, value if e.high is None else e.high]


def _line(axes: Any, points: Sequence[tuple[float, float]], colour: str, style: str, label: str) -> None:
    if points:
        x, y = zip(*points, strict=True)
        axes.plot(x, y, color=colour, linestyle=style, linewidth=1.2, label=label)

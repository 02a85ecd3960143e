"""Charts as SVG: pass^k and pass@k over k with their intervals, and cost against success."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from xml.etree import ElementTree as ET

from tracegrade.model.estimate import Estimate
from tracegrade.model.frontier import FrontierAgent, FrontierReport
from tracegrade.model.score import ScoreReport
from tracegrade.report.page import el, table
from tracegrade.report.phrase import short

_WIDTH: Final = 640
_HEIGHT: Final = 300
_LEFT: Final = 48
_RIGHT: Final = 16
_TOP: Final = 16
_BOTTOM: Final = 36
_NAME_WIDTH: Final = 28


def pass_curves(score: ScoreReport) -> ET.Element:
    """Measured pass^k and pass@k with their intervals, the extrapolation dashed, and the numbers in a table."""
    fit = score.beta_binomial
    curves = [
        ("pass^k", "hat", _points(score.pass_hat_k), _points(fit.pass_hat_k)),
        ("pass@k", "at", _points(score.pass_at_k), _points(fit.pass_at_k)),
    ]
    highest = max((k for _, _, *lists in curves for points in lists for k, _ in points), default=1)
    svg = _axes(highest)
    for _, cls, measured, extrapolated in curves:
        _curve(svg, measured, highest, cls, band=True)
        beyond = [p for p in extrapolated if not measured or p[0] >= measured[-1][0]]
        _curve(svg, beyond, highest, f"{cls} dashed", band=False)
    rows = []
    for name, _, measured, extrapolated in curves:
        rows += [_row(name, k, e, "measured") for k, e in measured]
        rows += [_row(name, k, e, "extrapolated") for k, e in extrapolated if k not in dict(measured)]
    head = ["", "k", "value", "low", "high", "tasks", "trials", "method", ""]
    legend = el(
        "p",
        el("span", cls="key hat"),
        "pass^k: all of k trials pass; ",
        el("span", cls="key at"),
        "pass@k: any of k passes. Bands are intervals; dashed is extrapolated by a beta-binomial fit.",
        cls="note",
    )
    return el("div", legend, svg, el("details", el("summary", "the numbers"), table(head, rows)))


def _points(estimates: Mapping[str, Estimate]) -> list[tuple[int, Estimate]]:
    return sorted((int(k), e) for k, e in estimates.items() if e.value is not None)


def _row(name: str, k: int, e: Estimate, how: str) -> list[str]:
    numbers = ["–" if v is None else f"{v:.3f}" for v in (e.value, e.low, e.high)]
    return [name, str(k), *numbers, f"{e.n_tasks:,}", f"{e.n_trials:,}", e.method, how]


def _x(k: float, highest: int) -> float:
    width = _WIDTH - _LEFT - _RIGHT
    return _LEFT + (width * (k - 1) / (highest - 1) if highest > 1 else width / 2)


def _y(value: float) -> float:
    return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - min(1.0, max(0.0, value)))


def _grid(label: str) -> ET.Element:
    """A chart with shares from 0 to 1 on its vertical axis."""
    svg = el("svg", cls="chart", viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", aria_label=label)
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = f"{_y(tick):.1f}"
        svg.append(el("line", cls="grid", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y, y2=y))
        svg.append(el("text", f"{tick:.0%}", x=_LEFT - 6, y=y, dy="0.35em", text_anchor="end"))
    return svg


def _axes(highest: int) -> ET.Element:
    svg = _grid("success against k")
    step = max(1, -(-highest // 12))
    for k in range(1, highest + 1, step):
        svg.append(el("text", str(k), x=f"{_x(k, highest):.1f}", y=_HEIGHT - 16, text_anchor="middle"))
    svg.append(el("text", "k", x=_WIDTH - _RIGHT, y=_HEIGHT - 2, text_anchor="end"))
    return svg


def _curve(svg: ET.Element, points: Sequence[tuple[int, Estimate]], highest: int, cls: str, *, band: bool) -> None:
    bounded = [(k, e.low, e.high) for k, e in points if e.low is not None and e.high is not None]
    if band and len(bounded) > 1:
        upper = [f"{_x(k, highest):.1f},{_y(high):.1f}" for k, _, high in bounded]
        lower = [f"{_x(k, highest):.1f},{_y(low):.1f}" for k, low, _ in reversed(bounded)]
        svg.append(el("polygon", cls=f"band {cls}", points=" ".join(upper + lower)))
    line = [f"{_x(k, highest):.1f},{_y(e.value or 0.0):.1f}" for k, e in points]
    if len(line) > 1:
        svg.append(el("polyline", cls=f"curve {cls}", points=" ".join(line)))
    for k, e in points if band else ():
        x = f"{_x(k, highest):.1f}"
        if e.low is not None and e.high is not None:
            svg.append(el("line", cls=f"whisker {cls}", x1=x, x2=x, y1=f"{_y(e.low):.1f}", y2=f"{_y(e.high):.1f}"))
        title = el("title", f"k = {k}: {e.value:.3f} ({e.low} to {e.high}), {e.n_tasks} tasks")
        svg.append(el("circle", title, cls=f"dot {cls}", cx=x, cy=f"{_y(e.value or 0.0):.1f}", r=3))


def cost_frontier(report: FrontierReport) -> ET.Element:
    """Success against dollars a trial: the hull as a line, agents with the intervals of both as whiskers."""
    placed = [a for a in report.agents if a.usable and a.cost.value is not None and a.rate.value is not None]
    dearest = max((v for a in placed for v in (a.cost.value, a.cost.high) if v is not None), default=0.0)
    svg = _grid("success against cost")
    for part in range(5):
        x = f"{_cost_x(dearest * part / 4, dearest):.1f}"
        anchor = "end" if part == 4 else "middle"
        svg.append(el("text", f"${dearest * part / 4:.3g}", x=x, y=_HEIGHT - 16, text_anchor=anchor))
    svg.append(el("text", "dollars a trial", x=_WIDTH - _RIGHT, y=_HEIGHT - 2, text_anchor="end"))
    by_name = {a.name: a for a in placed}
    corners = [(0.0, 0.0), *(_place(by_name[n]) for n in report.hull if n in by_name)]
    line = " ".join(f"{_cost_x(cost, dearest):.1f},{_y(rate):.1f}" for cost, rate in corners)
    svg.append(el("polyline", cls="curve hat", points=line))
    for agent in placed:
        _agent(svg, agent, dearest)
    left_out = [f"{short(a.name, _NAME_WIDTH)}: {a.reason or 'no cost'}" for a in report.agents if a not in placed]
    head = ["agent", "rate", "dollars a trial", "on the front", "beaten by"]
    rows = [
        [
            a.name,
            _interval(a.rate),
            _interval(a.cost),
            "yes" if a.on_front else "no",
            ", ".join(short(n, _NAME_WIDTH) for n in a.dominated_by),
        ]
        for a in report.agents
    ]
    note = f"Over the {report.n_tasks_shared:,} tasks that all agents share. The line is the hull from doing nothing."
    return el(
        "div",
        el("p", note, cls="note"),
        svg,
        el("p", f"Not placed: {'; '.join(left_out)}", cls="note") if left_out else None,
        table(head, rows),
    )


def _place(agent: FrontierAgent) -> tuple[float, float]:
    return agent.cost.value or 0.0, agent.rate.value or 0.0


def _interval(e: Estimate) -> str:
    if e.value is None:
        return "–"
    return f"{e.value:.4g}" + (f" ({e.low:.4g} to {e.high:.4g})" if e.low is not None and e.high is not None else "")


def _cost_x(cost: float, dearest: float) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (cost / dearest if dearest > 0 else 0.0)


def _agent(svg: ET.Element, agent: FrontierAgent, dearest: float) -> None:
    cost, rate = _place(agent)
    x, y = f"{_cost_x(cost, dearest):.1f}", f"{_y(rate):.1f}"
    cls = "at" if agent.on_front else "off"
    low, high = agent.rate.low, agent.rate.high
    if low is not None and high is not None:
        svg.append(el("line", cls=f"whisker {cls}", x1=x, x2=x, y1=f"{_y(low):.1f}", y2=f"{_y(high):.1f}"))
    low, high = agent.cost.low, agent.cost.high
    if low is not None and high is not None:
        ends = f"{_cost_x(low, dearest):.1f}", f"{_cost_x(high, dearest):.1f}"
        svg.append(el("line", cls=f"whisker {cls}", x1=ends[0], x2=ends[1], y1=y, y2=y))
    title = el("title", f"{agent.name}: {_interval(agent.rate)} at ${_interval(agent.cost)}")
    svg.append(el("circle", title, cls=f"dot {cls}", cx=x, cy=y, r=4))
    right = cost > dearest * 0.7
    anchor, shift = ("end", -8) if right else ("start", 8)
    svg.append(el("text", short(agent.name, _NAME_WIDTH), x=x, y=y, dx=shift, dy="-0.5em", text_anchor=anchor))

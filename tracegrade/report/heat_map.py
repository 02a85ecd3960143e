"""Task × trial as a grid of verdicts, the least solved tasks first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from xml.etree import ElementTree as ET

from tracegrade.model.report import CheckReport
from tracegrade.report.page import Child, el
from tracegrade.report.phrase import plural, short

MAX_TASKS: Final = 500
MAX_TRIALS: Final = 64
NAME_WIDTH: Final = 60
_SIGNS: Final = {"pass": "✓", "fail": "✗", "unknown": "?", "excluded": "–", "error": "!", "not_applicable": "·"}

Cell = tuple[str, str | None]
"""A verdict, and the id of the trajectory it belongs to."""


def heat_map(report: CheckReport, places: Mapping[str, int]) -> ET.Element | None:
    """A grid with a cell for each trial, linked to its trajectory; None where no trajectory has a task.

    Args:
        report: the trials, else the trajectories with a task.
        places: by trajectory id, its number on the page.
    """
    grid = _grid(report)
    if not grid:
        return None
    trials = sorted({trial for cells in grid.values() for trial in cells}, key=_natural)
    shown = trials[:MAX_TRIALS]
    tasks = sorted(grid, key=lambda task: (sum(c[0] == "pass" for c in grid[task].values()), task))
    rows = [
        el("tr", el("th", short(task, NAME_WIDTH)), *(_cell(grid[task], t, places) for t in shown))
        for task in tasks[:MAX_TASKS]
    ]
    head = el("tr", el("th", "task \\ trial"), *(el("th", short(t, 8)) for t in shown))
    left = [
        f"{plural(len(names) - limit, f'more {what}')} not shown"
        for names, limit, what in ((tasks, MAX_TASKS, "task"), (trials, MAX_TRIALS, "trial"))
        if len(names) > limit
    ]
    legend = "; ".join(f"{sign} {verdict.replace('_', ' ')}" for verdict, sign in _SIGNS.items())
    return el(
        "section",
        el("h2", "Tasks and trials"),
        el("div", el("table", el("thead", head), el("tbody", *rows), cls="heat"), cls="scroll"),
        el("p", ". ".join([legend, *left]) + ". The least solved tasks stand first.", cls="note"),
    )


def _grid(report: CheckReport) -> dict[str, dict[str, Cell]]:
    """By task and trial, the verdict of the first attempt that was not excluded."""
    grid: dict[str, dict[str, Cell]] = {}
    for t in report.trials:
        if t.outcome is not None:
            cell = (t.outcome.verdict, t.trajectory_id)
            cells = grid.setdefault(t.task_id, {})
            known = cells.get(str(t.trial))
            if known is None or known[0] == "excluded":
                cells[str(t.trial)] = cell
    if grid:
        return grid
    for g in report.trajectories:
        if g.task_id is not None:
            verdict = g.outcome.verdict if g.outcome is not None else g.verdict
            cells = grid.setdefault(g.task_id, {})
            name = str(g.trial) if g.trial is not None else str(len(cells))
            cells.setdefault(name, (verdict, g.trajectory_id))
    return grid


def _natural(trial: str) -> tuple[bool, int, str]:
    return (not trial.isdecimal(), int(trial) if trial.isdecimal() else 0, trial)


def _cell(cells: Mapping[str, Cell], trial: str, places: Mapping[str, int]) -> ET.Element:
    if trial not in cells:
        return el("td", cls="none")
    verdict, trajectory_id = cells[trial]
    sign: Child = _SIGNS.get(verdict, "?")
    place = places.get(trajectory_id) if trajectory_id is not None else None
    content: Child = el("a", sign, href=f"#t-{place}") if place is not None else sign
    return el("td", content, cls=verdict, title=verdict.replace("_", " "))

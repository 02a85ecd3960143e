"""Two trajectories side by side: the first step where they part, then the whole alignment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from tracegrade.model.report import ChangeReport, DiffReport, PairReport, ShownTrajectory, StepReport
from tracegrade.report.phrase import (
    clock,
    duration,
    json_text,
    offset,
    plural,
    short,
    status_text,
    step_text,
    trial_text,
)
from tracegrade.report.screen import Screen, Styled

VALUE_WIDTH: Final = 120
MAX_CHANGES: Final = 12
CONTEXT: Final = 2
_SIGNS: Final = {
    "same": (" ", "dim"),
    "changed": ("~", "yellow"),
    "undecided": ("?", "unsure"),
    "only_left": ("-", "red"),
    "only_right": ("+", "green"),
}
_COUNTED: Final = {
    "same": "the same",
    "changed": "changed",
    "undecided": "not comparable",
    "only_left": "only on the left",
    "only_right": "only on the right",
}


def render(report: DiffReport, *, style: bool = False, width: int = 100, whole: bool = False) -> str:
    """The difference as text for a terminal.

    Args:
        report: the alignment.
        style: use ANSI colours.
        width: columns to wrap prose at.
        whole: show every pair; else runs of equal ones are folded, and it is said how many.
    """
    screen = Screen(style=style, width=width)
    for sign, side in (("-", report.left), ("+", report.right)):
        _side(screen, sign, side)
    screen.blank()
    _first(screen, report)
    screen.blank()
    _alignment(screen, report, whole)
    counts: Counter[str] = Counter(p.kind for p in report.pairs)
    parts = [f"{counts[kind]:,} {word}" for kind, word in _COUNTED.items() if counts[kind]]
    screen.blank()
    screen.line(f"{plural(len(report.pairs), 'aligned step')}: {', '.join(parts) or 'none'}")
    return screen.text()


def _side(screen: Screen, sign: str, t: ShownTrajectory) -> None:
    name = f"{trial_text(t.task_id, t.trial, None)}, " if t.task_id is not None else ""
    complete = "" if t.complete else ", incomplete: steps may be missing"
    took = f", took {duration(t.duration_ns)}" if t.duration_ns is not None else ""
    text = f"{name}trajectory {t.trajectory_id}, began {clock(t.start_ns)}{took}{complete}"
    screen.line(Styled(f"{sign}{sign}{sign} {text}", "bold"))


def _first(screen: Screen, report: DiffReport) -> None:
    if report.first is None:
        screen.line(Styled("No step differs.", "good"))
        return
    pair = report.pairs[report.first]
    before = f"after {plural(report.first, 'equal step')}" if report.first else "at the first step"
    screen.line(Styled(f"First difference {before}:", "bold"))
    _pair(screen, pair, report, sources=True)


def _alignment(screen: Screen, report: DiffReport, whole: bool) -> None:
    differing = [place for place, pair in enumerate(report.pairs) if pair.kind != "same"]
    near = {p for place in differing for p in range(place - CONTEXT, place + CONTEXT + 1)}
    folded = 0
    for place, pair in enumerate(report.pairs):
        if not whole and pair.kind == "same" and place not in near:
            folded += 1
            continue
        _folded(screen, folded)
        folded = 0
        _pair(screen, pair, report)
    _folded(screen, folded)


def _folded(screen: Screen, count: int) -> None:
    if count:
        screen.line("  ", Styled(f"… {plural(count, 'equal step')}", "dim"))


def _pair(screen: Screen, pair: PairReport, report: DiffReport, *, sources: bool = False) -> None:
    sign, style = _SIGNS[pair.kind]
    step = pair.left or pair.right
    if step is None:
        return
    places = f"{_number(pair.left):>5}{_number(pair.right):>6}  "
    screen.line(
        Styled(f"{sign} ", style), Styled(places, "dim"), Styled(_act(step), "" if pair.kind == "same" else style)
    )
    _changes(screen, pair.changes)
    for part in pair.undecided:
        sides = [name for name, s in (("left", pair.left), ("right", pair.right)) if _lacks(s, part)]
        screen.line(" " * 15, Styled(f"{part}: not recorded on the {' and the '.join(sides) or 'one side'}", "unsure"))
    if sources:
        for name, s, t in (("left", pair.left, report.left), ("right", pair.right, report.right)):
            if s is not None:
                spans = ", ".join(s.span_ids[:2]) or "no span"
                text = f"{name}: #{s.seq} at {offset(s.start_ns, t.start_ns)}, {status_text(s.status)}, span {spans}"
                screen.line(" " * 15, Styled(text, "dim"))


def _number(step: StepReport | None) -> str:
    return f"#{step.seq}" if step is not None else "–"


def _act(step: StepReport) -> str:
    return step_text(step, VALUE_WIDTH) + (f" → {status_text(step.status)}" if step.kind == "tool_call" else "")


def _lacks(step: StepReport | None, part: str) -> bool:
    states = {"arguments": "arguments_state", "result": "result_state", "text": "text_state"}
    return step is not None and getattr(step, states[part]) != "captured"


def _changes(screen: Screen, changes: Sequence[ChangeReport]) -> None:
    for change in changes[:MAX_CHANGES]:
        left = "nothing" if change.absent == "left" else short(json_text(change.left), VALUE_WIDTH)
        right = "nothing" if change.absent == "right" else short(json_text(change.right), VALUE_WIDTH)
        screen.line(
            " " * 15,
            f"{short('.'.join(change.path), VALUE_WIDTH)}: ",
            Styled(left, "red"),
            " → ",
            Styled(right, "green"),
        )
    if len(changes) > MAX_CHANGES:
        left_out = plural(len(changes) - MAX_CHANGES, "more changed field")
        screen.line(" " * 15, Styled(f"… {left_out} not shown; --format json has all", "dim"))

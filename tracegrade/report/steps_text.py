"""Trajectories step by step: parallel steps in one bracket, turns, times, arguments, results, status with evidence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from tracegrade.model.report import ShownTrajectory, ShowReport, StepReport
from tracegrade.report.phrase import (
    clock,
    duration,
    listed,
    offset,
    plural,
    result_text,
    short,
    status_text,
    step_text,
    trial_text,
    usage_text,
)
from tracegrade.report.screen import Screen, Styled

VALUE_WIDTH: Final = 160
MAX_NAMES: Final = 8
_BRACKETS: Final = {"concurrent": ("┌", "│", "└"), "unknown": ("╭", "┊", "╰")}
_STATUS_STYLE: Final = {"ok": "green", "error": "bad", "unfinished": "unsure", None: "unsure"}
_HANG: Final = " " * 30
_Writer: TypeAlias = Callable[..., None]
"""Adds one further line to a step."""


def render(report: ShowReport, *, style: bool = False, width: int = 100, sources: bool = False) -> str:
    """The trajectories as text for a terminal.

    Args:
        report: the trajectories.
        style: use ANSI colours.
        width: columns to wrap prose at.
        sources: say where each value came from, and the spans of each step.
    """
    screen = Screen(style=style, width=width)
    for trajectory in report.trajectories:
        screen.blank()
        _head(screen, trajectory)
        screen.blank()
        _steps(screen, trajectory, sources)
    if not report.trajectories:
        screen.line("No trajectory.")
    for warning in report.warnings:
        screen.blank()
        screen.prose(Styled("Warning", "yellow"), short(warning.message, 400), indent=0)
    return screen.text()


def _head(screen: Screen, t: ShownTrajectory) -> None:
    task = f"  {trial_text(t.task_id, t.trial, None)}" if t.task_id is not None else ""
    state = ("complete", "good") if t.complete else ("incomplete: steps may be missing", "unsure")
    screen.line(Styled(f"trajectory {t.trajectory_id}", "bold"), task, "  ", Styled(*state))
    if list(t.trace_ids) != [t.trajectory_id]:
        screen.prose("traces", f"{listed(t.trace_ids, MAX_NAMES)} (joined by {t.joined_by})")
    if t.conversation_id is not None:
        screen.prose("conversation", t.conversation_id)
    took = f", took {duration(t.duration_ns)}" if t.duration_ns is not None else ""
    screen.prose("began", f"{clock(t.start_ns)}{took}; {usage_text(t.usage)}")
    for label, names in (("agents", t.agents), ("services", t.services), ("dialects", t.dialects)):
        if names:
            screen.prose(label, listed([short(n, 60) for n in names], MAX_NAMES))
    for gap in t.gaps:
        spans = f" ({plural(len(gap.span_ids), 'span')}: {listed(gap.span_ids, 3)})" if gap.span_ids else ""
        times = f" ×{gap.count:,}" if gap.count > 1 else ""
        screen.prose(Styled("gap", "unsure"), f"{gap.code}{times}: {short(gap.message, 300)}{spans}")
    for warning in t.warnings:
        screen.prose(Styled("warning", "yellow"), f"{warning.code}: {short(warning.message, 300)}")


def _steps(screen: Screen, t: ShownTrajectory, sources: bool) -> None:
    gutters = _gutters(t.steps)
    agent: str | None = None
    turn: int | None = None
    for step in t.steps:
        if step.agent not in (None, agent) and step.kind not in ("agent", "message"):
            agent = step.agent
            screen.line("  ", Styled(f"— agent {short(agent or '', 60)} —", "dim"))
        shown_turn = f"turn {step.turn}" if step.turn is not None and step.turn != turn else ""
        turn = step.turn if step.turn is not None else turn
        _step(screen, step, gutters[step.seq], shown_turn, t.start_ns, sources)
    if not t.steps:
        screen.line("  no steps")
    used = {s.parallel_order for s in t.steps}
    if "concurrent" in used:
        screen.line("  ", Styled("┌│└ steps that overlap", "dim"))
    if "unknown" in used:
        screen.line("  ", Styled("╭┊╰ steps whose order the spans do not show", "dim"))


def _gutters(steps: tuple[StepReport, ...]) -> dict[int, tuple[str, str]]:
    """By `seq`: the sign before a step's first line, and before its further lines."""
    spans: dict[int, list[int]] = {}
    for place, step in enumerate(steps):
        if step.parallel is not None:
            spans.setdefault(step.parallel, []).append(place)
    gutters = {step.seq: (" ", " ") for step in steps}
    for places in spans.values():
        first, last = places[0], places[-1]
        top, middle, bottom = _BRACKETS[steps[first].parallel_order or "concurrent"]
        for place in range(first, last + 1):
            sign = top if place == first else bottom if place == last else middle
            gutters[steps[place].seq] = (sign, " " if place == last else middle)
    return gutters


def _step(
    screen: Screen, step: StepReport, gutter: tuple[str, str], turn: str, origin_ns: int | None, sources: bool
) -> None:
    sign, further = gutter
    # a message has no length of its own
    took = "" if step.kind == "message" or step.start_ns is None else duration(_length(step))
    when = "prior" if step.prior else offset(step.start_ns, origin_ns)
    screen.line(
        Styled(f"{turn:>8} ", "cyan"),
        Styled(sign, "cyan"),
        Styled(f" #{step.seq:<4}{when:>11} {took:>10}  ", "dim"),
        Styled(step_text(step, VALUE_WIDTH), "bold" if step.kind == "tool_call" else ""),
    )

    def more(*parts: str | Styled) -> None:
        screen.line(" " * 9, Styled(further, "cyan"), _HANG, *parts)

    if step.kind == "tool_call":
        _outcome(step, more)
    elif step.kind == "model_call" and step.usage is not None:
        more(Styled(usage_text(step.usage), "dim"))
    elif step.score is not None:
        more(f"score {result_text(step.score, None, VALUE_WIDTH)}")
    if sources:
        _sources(step, more)


def _length(step: StepReport) -> int | None:
    if step.start_ns is None or step.end_ns is None:
        return None
    return step.end_ns - step.start_ns


def _outcome(step: StepReport, more: _Writer) -> None:
    executed = {True: "", False: "asked for, not executed; ", None: "not known whether it was executed; "}[
        step.executed
    ]
    plain = step.status == "ok" and not step.status_suspect
    evidence = f"  [{short(step.status_evidence, VALUE_WIDTH)}]" if step.status_evidence and not plain else ""
    suspect = "  looks like a failure: not counted as one" if step.status_suspect else ""
    more(
        f"→ {executed}",
        Styled(status_text(step.status), _STATUS_STYLE.get(step.status, "")),
        f"  {result_text(step.result, step.result_state, VALUE_WIDTH)}",
        Styled(evidence, "dim"),
        Styled(suspect, "unsure"),
    )


def _sources(step: StepReport, more: _Writer) -> None:
    if step.call_id:
        more(Styled(f"call id {step.call_id}", "dim"))
    spans = listed(step.span_ids, MAX_NAMES) if step.span_ids else "no span"
    more(Styled(f"spans: {spans}", "dim"))
    for name, source in sorted(step.sources.items()):
        more(Styled(f"{name} from {short(source, VALUE_WIDTH)}", "dim"))

"""Each trial that did not pass in one line: what failed, the first differences by path, and why."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tracegrade.model.outcome import OutcomeVerdict
from tracegrade.model.report import CheckReport, DifferenceReport, OutcomeReport
from tracegrade.report.phrase import json_text, short, trial_text

_VALUE_WIDTH = 40
_SHOWN = 2


class OutcomeLine(NamedTuple):
    """One graded trial: its verdict, what a person would call it, and what decided it."""

    verdict: OutcomeVerdict
    name: str
    text: str


def outcome_lines(report: CheckReport, verdicts: Iterable[OutcomeVerdict]) -> list[OutcomeLine]:
    """The trials with one of some verdicts, in the order of the trials file, then trajectories graded without one."""
    wanted = set(verdicts)
    listed = {t.trajectory_id for t in report.trials}
    graded = [(trial_text(t.task_id, t.trial, t.trajectory_id), t.outcome) for t in report.trials]
    graded += [
        (trial_text(t.task_id, t.trial, t.trajectory_id), t.outcome)
        for t in report.trajectories
        if t.trajectory_id not in listed
    ]
    return [OutcomeLine(o.verdict, name, _evidence(o)) for name, o in graded if o is not None and o.verdict in wanted]


def _evidence(outcome: OutcomeReport) -> str:
    parts = []
    if outcome.end_reason not in (None, "completed"):
        parts.append(f"ended by {outcome.end_reason}")
    differences = [d for g in outcome.graders for d in g.differences]
    parts += [_difference(d) for d in differences[:_SHOWN]]
    more = sum(g.n_differences for g in outcome.graders) - min(len(differences), _SHOWN)
    if more > 0:
        parts.append(f"{more:,} more difference{'' if more == 1 else 's'}")
    parts += [f"{g.kind}: {g.reason}" for g in outcome.graders if g.reason and not g.differences]
    if not parts and outcome.reason:
        parts.append(outcome.reason)
    cause = outcome.root_causes[0] if outcome.root_causes else None
    why = f"{cause.category.replace('_', ' ')}: " if cause is not None else ""
    return why + ("; ".join(parts) or "no grader said why")


def _difference(d: DifferenceReport) -> str:
    path = ".".join(d.path) or "the state"
    expected = "nothing" if d.absent == "expected" else short(json_text(d.expected), _VALUE_WIDTH)
    observed = "nothing" if d.absent == "observed" else short(json_text(d.observed), _VALUE_WIDTH)
    return f"{d.kind} {path}: expected {expected}, is {observed}"

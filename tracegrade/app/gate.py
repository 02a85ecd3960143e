"""The use case of `gate`: read both sides, whatever they are, and compare them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracegrade.app.gate_inputs import GradeBy, check_options, load_side
from tracegrade.app.outcomes import Reading
from tracegrade.model.gate import GateReport
from tracegrade.score.gate import GatePolicy, gate
from tracegrade.score.gate_sides import GateSide

if TYPE_CHECKING:
    from tracegrade.app.trajectories import TrajectoryOptions


@dataclass(frozen=True, slots=True)
class GateQuestion:
    """What to compare.

    Attributes:
        baseline, candidate: a check result, a table, a database, or spans.
        columns, threshold: how to read tables.
        filters: rows taken of the tables, of baseline and candidate.
        grade: how to grade spans.
        policy: what makes the gate fail.
        spans: spans of baseline and candidate, for the first divergent step of flipped tasks; an input that is spans
            itself needs none.
        history: a database of recorded runs, whose names can stand for baseline and candidate.
    """

    baseline: str
    candidate: str
    columns: Mapping[str, str] = field(default_factory=dict)
    threshold: float | None = None
    filters: tuple[Mapping[str, str], Mapping[str, str]] = field(default_factory=lambda: ({}, {}))
    grade: GradeBy = field(default_factory=GradeBy)
    policy: GatePolicy = field(default_factory=GatePolicy)
    spans: tuple[str | None, str | None] = (None, None)
    history: Path | None = None


def run_gate(question: GateQuestion) -> GateReport:
    """Compare two inputs.

    Raises:
        InputError, RuleFileError, StoreError, UsageError: something cannot be read.
    """
    baseline, candidate = (
        _side(question, path, filters, which)
        for which, (path, filters) in enumerate(
            zip((question.baseline, question.candidate), question.filters, strict=True)
        )
    )
    lost = None
    if baseline.telemetry is not None and candidate.telemetry is not None:
        from tracegrade.app.lost_telemetry import lost_telemetry

        lost = lost_telemetry(baseline.telemetry, candidate.telemetry)
    report = gate(baseline, candidate, question.policy, lost)
    spans = (_spans(question, baseline, 0), _spans(question, candidate, 1))
    if report.tasks.flipped and spans[0] is not None and spans[1] is not None:
        from tracegrade.app.divergence import with_divergence

        options = (_trajectory_options(question.grade, 0), _trajectory_options(question.grade, 1))
        return with_divergence(report, (baseline, candidate), (spans[0], spans[1]), options)
    return report


def _side(question: GateQuestion, path: str, filters: Mapping[str, str], which: int) -> GateSide:
    """A side: a recorded run where the history has one of that name and no file has, else an input."""
    if question.history is not None and not Path(path).exists():
        from tracegrade.app.runs import side_of_run

        side = side_of_run(question.history, path)
    else:
        side = load_side(path, Reading(question.columns, filters, question.threshold), question.grade, which)
    spans = question.spans[which]
    if spans is None or side.telemetry is not None:
        return side
    from tracegrade.app.audit import AuditOptions, take_profile

    options = AuditOptions(
        (spans,), invariants=question.grade.invariants, trajectories=_trajectory_options(question.grade, which)
    )
    return replace(side, telemetry=take_profile(options))


def _spans(question: GateQuestion, side: GateSide, which: int) -> str | None:
    """Where the trajectories of a side can be read, None where only their results are known."""
    return question.spans[which] or (side.name if side.from_spans else None)


def _trajectory_options(grade: GradeBy, which: int) -> TrajectoryOptions:
    """How the spans of a side become trajectories, as `check` makes them."""
    from tracegrade.app.check import trajectory_options

    trials = None
    if grade.tasks is not None and grade.trials[which] is not None:
        from tracegrade.outcome.load import load_tasks, load_trials

        trials = load_trials(Path(grade.trials[which] or ""), load_tasks(Path(grade.tasks)).tasks)
    return trajectory_options(check_options("", grade, which), trials)

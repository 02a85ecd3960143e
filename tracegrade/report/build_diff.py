"""From an alignment of two trajectories to the record of a report."""

from __future__ import annotations

from tracegrade.model.report import ChangeReport, DiffReport, PairReport
from tracegrade.model.trajectory import Trajectory
from tracegrade.model.values import MISSING
from tracegrade.report.build import shown_trajectory, step_report
from tracegrade.trajectory.diff import Change, Pair, TrajectoryDiff


def diff_report(left: Trajectory, right: Trajectory, diff: TrajectoryDiff) -> DiffReport:
    """Two trajectories and their alignment as `diff` reports them; the sides stand there without their steps."""
    return DiffReport(
        left=shown_trajectory(left).model_copy(update={"steps": ()}),
        right=shown_trajectory(right).model_copy(update={"steps": ()}),
        equal=diff.equal,
        first=diff.first,
        pairs=tuple(_pair(p) for p in diff.pairs),
    )


def _pair(pair: Pair) -> PairReport:
    return PairReport(
        kind=pair.kind,
        left=step_report(pair.left) if pair.left is not None else None,
        right=step_report(pair.right) if pair.right is not None else None,
        changes=tuple(_change(c) for c in pair.changes),
        undecided=pair.undecided,
    )


def _change(change: Change) -> ChangeReport:
    return ChangeReport(
        path=change.path,
        left=None if change.left is MISSING else change.left,
        right=None if change.right is MISSING else change.right,
        absent="left" if change.left is MISSING else "right" if change.right is MISSING else None,
    )

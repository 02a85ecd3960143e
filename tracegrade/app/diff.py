"""Compare two trajectories: read both, choose one on each side, align."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tracegrade.app.show import matches
from tracegrade.app.trajectories import TrajectoryOptions, trajectories_from_paths
from tracegrade.errors import NothingToGrade, UsageError
from tracegrade.ingest import ReadOptions
from tracegrade.model.report import DiffReport
from tracegrade.model.trajectory import Trajectory
from tracegrade.report.build_diff import diff_report
from tracegrade.trajectory.diff import diff_trajectories

_MENTIONED = 8


@dataclass(frozen=True, slots=True)
class DiffOptions:
    """What to compare.

    Attributes:
        left, right: a file, folder or glob of spans each; they may be the same.
        left_name, right_name: which trajectory of each, where there are several: see `tracegrade.app.show.matches`.
        messages: compare what was said too.
        trajectories: how spans become trajectories.
        read: limits of the readers, and whether to stop at the first item that cannot be read.
    """

    left: str
    right: str
    left_name: str | None = None
    right_name: str | None = None
    messages: bool = False
    trajectories: TrajectoryOptions = field(default_factory=TrajectoryOptions)
    read: ReadOptions = field(default_factory=ReadOptions)


def run_diff(options: DiffOptions) -> DiffReport:
    """Two trajectories aligned.

    Raises:
        InputError: a file cannot be read.
        UsageError: a side has several trajectories and none is chosen, or the chosen one is not there.
        NothingToGrade: a side has no trajectory.
    """
    left = _chosen("left", options.left, options.left_name, options)
    right = _chosen("right", options.right, options.right_name, options)
    return diff_report(left, right, diff_trajectories(left, right, messages=options.messages))


def _chosen(side: str, path: str, name: str | None, options: DiffOptions) -> Trajectory:
    found: list[Trajectory] = []
    others: list[str] = []
    for trajectory in trajectories_from_paths([path], options.trajectories, read=options.read):
        if name is None or matches(trajectory, name):
            found.append(trajectory)
        else:
            others.append(trajectory.trajectory_id)
    if not found and not others:
        raise NothingToGrade(f"{path}: there is no trajectory to compare")
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(f"--{side} {name}: no trajectory of {path} goes by that; there are {_some(others)}")
    what = f"{len(found):,} trajectories" if name is None else f"{len(found):,} trajectories that go by `{name}`"
    raise UsageError(
        f"{path} has {what}: choose one with --{side}; there are {_some([t.trajectory_id for t in found])}"
    )


def _some(names: Sequence[str]) -> str:
    more = len(names) - _MENTIONED
    return ", ".join(names[:_MENTIONED]) + (f" and {more:,} more" if more > 0 else "")

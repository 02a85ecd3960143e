"""Show trajectories step by step: read, choose, report."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tracegrade.app.load import load
from tracegrade.app.trajectories import Seen, TrajectoryOptions, iter_trajectories
from tracegrade.errors import InputError, NothingToGrade, UsageError
from tracegrade.ingest import ReadOptions
from tracegrade.model.load import LoadReport
from tracegrade.model.report import ShownTrajectory, ShowReport, Warned
from tracegrade.model.trajectory import Trajectory
from tracegrade.report.build import shown_trajectory
from tracegrade.report.inputs import input_reports, load_warnings
from tracegrade.store import Store

_MENTIONED = 5


@dataclass(frozen=True, slots=True)
class ShowOptions:
    """What to show.

    Attributes:
        paths: files, folders, globs, `-`; may be empty where `db` holds spans already.
        select: what the trajectories are called by: see `matches`. Empty: all of them.
        first: how many trajectories to show at most; None for all.
        trajectories: how spans become trajectories.
        reading: limits of the readers, and whether to stop at the first item that cannot be read.
        db: a database file to keep the spans in, or to read them from.
    """

    paths: Sequence[str] = ()
    select: Sequence[str] = ()
    first: int | None = None
    trajectories: TrajectoryOptions = field(default_factory=TrajectoryOptions)
    reading: ReadOptions = field(default_factory=ReadOptions)
    db: Path | None = None


def run_show(options: ShowOptions) -> ShowReport:
    """The trajectories step by step.

    Raises:
        InputError: no input could be read.
        UsageError: nothing to read was named, or a name matches no trajectory.
        NothingToGrade: there is no trajectory.
    """
    shown: list[ShownTrajectory] = []
    left_out = 0
    unmatched = set(options.select)
    names: list[str] = []
    with _opened(options) as source:
        for trajectory in source.trajectories:
            found = {name for name in options.select if matches(trajectory, name)}
            unmatched -= found
            names.append(trajectory.trajectory_id)
            if options.select and not found:
                continue
            if options.first is not None and len(shown) >= options.first:
                left_out += 1
                continue
            shown.append(shown_trajectory(trajectory))
        if unmatched:
            raise UsageError(_no_match(sorted(unmatched), names))
        if not names:
            raise NothingToGrade(nothing_found(source.loaded, source.seen))
        warnings = list(load_warnings(source.loaded))
        warnings += [Warned(code="joined", message=text) for text in source.seen.joined]
        if left_out:
            message = f"{left_out:,} more trajectories are not shown: choose with --trajectory, or raise --first"
            warnings.append(Warned(code="left_out", message=message, context={"count": left_out}))
        return ShowReport(inputs=input_reports(source.loaded), warnings=tuple(warnings), trajectories=tuple(shown))


def matches(trajectory: Trajectory, name: str) -> bool:
    """Whether a trajectory goes by a name.

    A name is its id, a trace id or the beginning of either (8 characters or more), its conversation id, its task, or
    task and trial as `TASK/TRIAL`.
    """
    ids = (trajectory.trajectory_id, *trajectory.trace_ids)
    if name in ids or (len(name) >= 8 and any(i.startswith(name) for i in ids)):
        return True
    if trajectory.task_id is not None and name in (trajectory.task_id, f"{trajectory.task_id}/{trajectory.trial}"):
        return True
    return name == trajectory.conversation_id


def nothing_found(loaded: LoadReport, seen: Seen) -> str:
    """Why there is no trajectory, in one sentence."""
    if seen.set_up:
        return f"there is no trajectory: {len(seen.set_up):,} traces only prepare agents"
    if seen.other:
        return f"there is no trajectory: none of {seen.other:,} traces has a GenAI span of a known dialect"
    names = ", ".join(i.path for i in loaded.inputs[:_MENTIONED])
    return f"there are no spans in {names or 'the database'}"


def _no_match(unmatched: Sequence[str], names: Sequence[str]) -> str:
    near = difflib.get_close_matches(unmatched[0], names, n=1)
    hint = f" Did you mean `{near[0]}`?" if near else ""
    some = ", ".join(names[:_MENTIONED]) + (f" and {len(names) - _MENTIONED:,} more" if len(names) > _MENTIONED else "")
    return (
        f"no trajectory goes by {', '.join(f'`{u}`' for u in unmatched)}; expected a trajectory, trace or conversation "
        f"id, TASK or TASK/TRIAL.{hint} There are: {some or 'none'}"
    )


@dataclass(slots=True)
class _Source:
    """An open store, what was loaded into it, and its trajectories, read once."""

    store: Store
    loaded: LoadReport
    seen: Seen
    trajectories: Iterator[Trajectory]

    def __enter__(self) -> _Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()


def _opened(options: ShowOptions) -> _Source:
    if not options.paths and options.db is None:
        raise UsageError("no input named: give files, folders, globs, or - for standard input")
    store = Store.open(options.db)
    try:
        loaded = LoadReport()
        if options.paths:
            loaded = load(store, options.paths, options.reading)
            if len(loaded.errors) == len(loaded.inputs):
                raise InputError("\n".join(loaded.errors))
        seen = Seen()
        return _Source(store, loaded, seen, iter_trajectories(store, options.trajectories, seen))
    except BaseException:
        store.close()
        raise

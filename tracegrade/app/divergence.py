"""Where the trajectories of a flipped task part: the first step that differs between the two versions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tracegrade.app.gate_inputs import is_database
from tracegrade.app.trajectories import TrajectoryOptions, iter_trajectories, trajectories_from_paths
from tracegrade.model.gate import Flip, GateReport
from tracegrade.model.trajectory import Step, Trajectory
from tracegrade.model.values import MISSING, canonical
from tracegrade.score.gate_sides import GateSide

MOST_FLIPS = 20
"""Flipped tasks whose trajectories are compared, the greatest losses first."""
SHOWN_VALUE = 40


def with_divergence(
    report: GateReport,
    sides: tuple[GateSide, GateSide],
    spans: tuple[str, str],
    options: tuple[TrajectoryOptions, TrajectoryOptions],
) -> GateReport:
    """The report with the first divergent step of its flipped tasks.

    A lost task is shown by a trial that passed before and one that fails now, a gained one the other way round.

    Args:
        report: of the gate.
        sides: baseline and candidate.
        spans: files of spans, or databases that hold them, of both.
        options: how those spans become trajectories.

    Raises:
        InputError: spans cannot be read.
    """
    flips = report.tasks.flipped[:MOST_FLIPS]
    wanted = [{flip.task_id: _trace(side, flip, i) for flip in flips} for i, side in enumerate(sides)]
    found = [
        _collect(path, {t for t in traces.values() if t is not None}, option)
        for path, traces, option in zip(spans, wanted, options, strict=True)
    ]
    changed = []
    for flip in report.tasks.flipped:
        pair = [found[i].get(wanted[i].get(flip.task_id) or "") for i in (0, 1)]
        text = None if pair[0] is None or pair[1] is None else first_difference(pair[0], pair[1])
        changed.append(flip.model_copy(update={"first_divergence": text}))
    tasks = report.tasks.model_copy(update={"flipped": tuple(changed)})
    return report.model_copy(update={"tasks": tasks})


def _trace(side: GateSide, flip: Flip, which: int) -> str | None:
    """A trace of the task that shows what it had: a pass where it was better, a failure where it was worse."""
    better = (flip.change < 0) == (which == 0)
    trials = [t for t in side.settled.trials if t.task_id == flip.task_id and t.trace_ids]
    chosen = next((t for t in trials if t.passed is better), trials[0] if trials else None)
    return None if chosen is None else chosen.trace_ids[0]


def _collect(path: str, traces: set[str], options: TrajectoryOptions) -> dict[str, Trajectory]:
    """Trace id → trajectory, for the traces wanted."""
    found: dict[str, Trajectory] = {}
    for trajectory in _trajectories(path, options) if traces else ():
        for trace in traces & set(trajectory.trace_ids):
            found[trace] = trajectory
    return found


def _trajectories(path: str, options: TrajectoryOptions) -> Iterator[Trajectory]:
    from tracegrade.store import Store

    if is_database(Path(path)):
        with Store.open(Path(path)) as store:
            yield from iter_trajectories(store, options)
    else:
        yield from trajectories_from_paths([path], options)


def first_difference(left: Trajectory, right: Trajectory) -> str | None:
    """The first act in which two trajectories differ, as text; None where none does."""
    from tracegrade.trajectory.diff import diff_trajectories

    diff = diff_trajectories(left, right)
    if diff.first is None:
        return None
    pair = diff.pairs[diff.first]
    place = f"step {diff.first + 1}"
    if pair.left is None and pair.right is not None:
        return f"{place}: the candidate calls {_act(pair.right)}, the baseline does not"
    if pair.right is None and pair.left is not None:
        return f"{place}: the baseline calls {_act(pair.left)}, the candidate does not"
    if pair.changes and pair.left is not None:
        change = pair.changes[0]
        return f"{place}: {_act(pair.left)} {'.'.join(change.path)} {_value(change.left)} → {_value(change.right)}"
    return f"{place}: {_act(pair.left or pair.right)} could not be compared ({', '.join(pair.undecided)})"


def _act(step: Step | None) -> str:
    return "nothing" if step is None else step.tool or step.name


def _value(value: object) -> str:
    text = "nothing" if value is MISSING else canonical(value)
    return text if len(text) <= SHOWN_VALUE else text[: SHOWN_VALUE - 1] + "…"

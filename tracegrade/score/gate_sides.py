"""The two sides of a gate as arrays: values of every metric by task, and the tasks that both sides have."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tracegrade.model.audit import AuditProfile
from tracegrade.model.scored import ScoredTrial
from tracegrade.score.passk import Floats, Ints
from tracegrade.score.trials import Counts, Settled, count, settle


@dataclass(frozen=True, slots=True)
class InvariantRow:
    """The verdict of one rule on one trajectory.

    Attributes:
        invariant: id of the rule.
        passed: None where it was not decided; trajectories to which the rule does not apply have no row.
        task_id: of the trajectory, None without tasks.
        unit: what is independent of others: cluster, conversation or trajectory.
        tags: of the task.
        safety: whether a violation is never tolerated (level error, tag `safety`).
    """

    invariant: str
    passed: bool | None
    task_id: str | None
    unit: str
    tags: tuple[str, ...] = ()
    safety: bool = False


@dataclass(frozen=True)
class GateSide:
    """What one side of a comparison recorded.

    Attributes:
        name: of the input.
        trials: attempts.
        invariants: verdicts of rules by trajectory.
        rules: id → hash of what the rule says.
        tasks_sha256: hash of the task file, None where it is not known.
        protocol: part (model, prompt, tools, …) → values.
        trace_ids: of all trials.
        digest: hash of the input's bytes.
        n_trajectories: trajectories that were graded.
        lacking: kind of missing evidence → trajectories that lack it.
        dialects: instrumentations that the spans were read in.
        from_spans: whether `name` is a file of spans, or a database that holds them.
        sampled: traces that stand for others which a sampler dropped; rates are not weighted for it.
        telemetry: what the spans carry, None where they were not at hand.
    """

    name: str
    trials: tuple[ScoredTrial, ...]
    invariants: tuple[InvariantRow, ...] = ()
    rules: Mapping[str, str] = field(default_factory=dict)
    tasks_sha256: str | None = None
    protocol: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    trace_ids: frozenset[str] = frozenset()
    digest: str | None = None
    n_trajectories: int = 0
    lacking: Mapping[str, int] = field(default_factory=dict)
    dialects: frozenset[str] = frozenset()
    from_spans: bool = False
    sampled: int = 0
    telemetry: AuditProfile | None = None

    @cached_property
    def settled(self) -> Settled:
        """The counted trials."""
        return settle(self.trials)

    @cached_property
    def counts(self) -> Counts:
        """Counts per task."""
        return count(self.settled)

    def scored_share(self) -> float | None:
        """Scored trials among all that could be: those to which no grader applies are left out of both."""
        excluded = self.counts.excluded_total()
        scored = int(self.counts.n.sum())
        all_ = scored + sum(number for reason, number in excluded.items() if reason != "not_applicable")
        return scored / all_ if all_ else None


def chosen(side: GateSide, tasks: Sequence[str], tags: Sequence[str]) -> GateSide:
    """The side with only the tasks whose name and one of whose tags match; an empty list matches all."""

    def counts(task: str | None, of_task: Sequence[str]) -> bool:
        named = not tasks or (task is not None and any(fnmatchcase(task, glob) for glob in tasks))
        return named and (not tags or any(fnmatchcase(tag, glob) for tag in of_task for glob in tags))

    return replace(
        side,
        trials=tuple(t for t in side.trials if counts(t.task_id, t.tags)),
        invariants=tuple(row for row in side.invariants if counts(row.task_id, row.tags)),
    )


@dataclass(frozen=True, slots=True)
class PairedTasks:
    """Tasks scored on both sides, in a fixed order.

    Attributes:
        task_ids: length tasks.
        n, c: scored trials and passes, shape (2, tasks): baseline, candidate.
        clusters: numeric labels, shape (tasks,), or None.
        tags: of each task.
    """

    task_ids: tuple[str, ...]
    n: Ints
    c: Ints
    clusters: Floats | None
    tags: tuple[tuple[str, ...], ...]

    def only(self, keep: NDArray[np.bool_]) -> PairedTasks:
        """The tasks kept, by a boolean mask of shape (tasks,)."""
        picked = np.flatnonzero(keep)
        return PairedTasks(
            tuple(self.task_ids[i] for i in picked),
            self.n[:, picked],
            self.c[:, picked],
            None if self.clusters is None else self.clusters[picked],
            tuple(self.tags[i] for i in picked),
        )


def seeded(baseline: GateSide, candidate: GateSide) -> bool:
    """Whether seeds pair the trials: every trial that both sides have carries the same seed on both."""
    seeds = [{(t.task_id, t.trial): t.seed for t in side.settled.trials} for side in (baseline, candidate)]
    shared = seeds[0].keys() & seeds[1].keys()
    return bool(shared) and all(seeds[0][key] is not None and seeds[0][key] == seeds[1][key] for key in shared)


def drop_unpaired_trials(baseline: GateSide, candidate: GateSide) -> tuple[GateSide, GateSide]:
    """With trials paired by seed: a trial that is not scored on one side is dropped from both."""
    scored = [
        {(t.task_id, t.trial) for t in side.settled.trials if t.passed is not None and not t.crashed}
        for side in (baseline, candidate)
    ]
    both = scored[0] & scored[1]
    left, right = (
        replace(side, trials=tuple(t for t in side.trials if (t.task_id, t.trial) in both))
        for side in (baseline, candidate)
    )
    return left, right


def pair(baseline: GateSide, candidate: GateSide) -> PairedTasks:
    """The tasks with a scored trial on both sides. Clusters and tags are the candidate's, else the baseline's."""
    places = [{task: i for i, task in enumerate(side.counts.task_ids)} for side in (baseline, candidate)]
    shared = [
        task
        for task, i in places[0].items()
        if task in places[1] and baseline.counts.n[i] > 0 and candidate.counts.n[places[1][task]] > 0
    ]
    index = np.array([[place[task] for task in shared] for place in places], dtype=np.int64).reshape(2, len(shared))
    sides = (baseline.counts, candidate.counts)
    labels = None
    named = next((side for side in reversed(sides) if side.clusters is not None), None)
    if named is not None and named.clusters is not None:
        which = 1 if named is sides[1] else 0
        texts = np.array([named.clusters[i] for i in index[which]])
        labels = np.unique(texts, return_inverse=True)[1].astype(np.float64)
    tags = tuple(
        tuple(dict.fromkeys((*sides[0].tags[index[0, j]], *sides[1].tags[index[1, j]]))) for j in range(len(shared))
    )
    n = np.stack([side.n[index[i]] for i, side in enumerate(sides)])
    c = np.stack([side.c[index[i]] for i, side in enumerate(sides)])
    return PairedTasks(tuple(shared), n, c, labels, tags)


def task_means(
    side: GateSide, tasks: Sequence[str], read: Callable[[ScoredTrial], float | None]
) -> tuple[Floats, Ints]:
    """The mean of a resource over the scored trials of each task, NaN for none; and how many trials it is of."""
    place = {task: i for i, task in enumerate(tasks)}
    total, number = np.zeros(len(tasks)), np.zeros(len(tasks), dtype=np.int64)
    for trial in side.settled.trials:
        value = read(trial)
        if value is None or trial.passed is None or trial.crashed or trial.task_id not in place:
            continue
        total[place[trial.task_id]] += value
        number[place[trial.task_id]] += 1
    with np.errstate(invalid="ignore"):
        return np.where(number > 0, total / np.maximum(number, 1), np.nan), number


def invariant_counts(side: GateSide, invariant: str, tasks: Sequence[str]) -> tuple[Ints, Ints]:
    """Decided trajectories and passes of one rule in each task."""
    place = {task: i for i, task in enumerate(tasks)}
    n, c = np.zeros(len(tasks), dtype=np.int64), np.zeros(len(tasks), dtype=np.int64)
    for row in side.invariants:
        if row.invariant == invariant and row.passed is not None and row.task_id in place:
            n[place[row.task_id]] += 1
            c[place[row.task_id]] += row.passed
    return n, c


def task_units(side: GateSide) -> tuple[Ints, Ints]:
    """Scored trials and passes of each task, or of each cluster of tasks where they are named."""
    counts = side.counts
    labels = counts.labels()
    index = np.arange(len(counts.n)) if labels is None else labels.astype(np.int64)
    n = np.bincount(index, weights=counts.n).astype(np.int64)
    c = np.bincount(index, weights=counts.c).astype(np.int64)
    return n[n > 0], c[n > 0]


def invariant_units(side: GateSide, invariant: str, tag: str | None = None) -> tuple[Ints, Ints]:
    """Decided trajectories and passes of one rule in each independent unit, for unpaired comparisons."""
    cells: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in side.invariants:
        if row.invariant == invariant and row.passed is not None and (tag is None or tag in row.tags):
            cells[row.unit][0] += 1
            cells[row.unit][1] += row.passed
    table = np.array([cells[unit] for unit in sorted(cells)], dtype=np.int64).reshape(len(cells), 2)
    return table[:, 0], table[:, 1]


def crash_count(side: GateSide) -> int:
    """Attempts lost to infrastructure."""
    return int(side.counts.crashes.sum())


def tag_names(tasks: PairedTasks) -> list[str]:
    """All tags, by number of tasks, then by name."""
    numbers = Counter(tag for tags in tasks.tags for tag in tags)
    return sorted(numbers, key=lambda tag: (-numbers[tag], tag))

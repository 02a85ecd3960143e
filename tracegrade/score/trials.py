"""From recorded attempts to the one counted result of each trial, and to arrays of counts per task.

(task, trial) is a key: equal copies count once, unequal copies without an attempt number are an error that lists them
all. The first attempt that did not crash counts; every attempt counts for the crash rate.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tracegrade.errors import Problem, RuleFileError
from tracegrade.model.scored import INFRASTRUCTURE, ScoredTrial
from tracegrade.score.passk import Floats, Ints

ADVICE = (
    "expected one row for each task and trial, or `attempt` numbers that tell them apart. If the table holds several "
    "agents or runs, choose one with --filter COLUMN=VALUE; if another column numbers the trials, name it with "
    "--column trial=COLUMN"
)


@dataclass(frozen=True, slots=True)
class Settled:
    """The counted results.

    Attributes:
        trials: one for each (task, trial), in order of task and trial; `passed` is None where it is not scored.
        attempts: every attempt, equal copies once.
        copies: equal copies that were dropped.
        repeated_failures: (task, trial) whose failed attempt was run again although it had not crashed.
    """

    trials: tuple[ScoredTrial, ...]
    attempts: tuple[ScoredTrial, ...]
    copies: int
    repeated_failures: tuple[tuple[str, str], ...]


def settle(rows: Sequence[ScoredTrial]) -> Settled:
    """Choose the attempt that counts for each (task, trial).

    Raises:
        RuleFileError: unequal rows with the same task, trial and attempt; all of them are listed.
    """
    groups: defaultdict[tuple[str, str], dict[ScoredTrial, ScoredTrial]] = defaultdict(dict)
    for row in rows:
        groups[row.task_id, row.trial].setdefault(replace(row, where=""), row)
    problems: list[Problem] = []
    trials, attempts, repeated = [], [], []
    for key in sorted(groups, key=_natural):
        tries = list(groups[key].values())
        clash = _clash(tries)
        if clash is not None:
            problems.append(clash)
            continue
        tries.sort(key=lambda row: -1 if row.attempt is None else row.attempt)
        attempts += tries
        counted = next((i for i, row in enumerate(tries) if not row.crashed), len(tries) - 1)
        trials.append(tries[counted])
        if counted < len(tries) - 1 and tries[counted].passed is False:
            repeated.append(key)
    if problems:
        raise RuleFileError([*problems, Problem(problems[0].where.rpartition(":")[0], "", ADVICE)])
    return Settled(tuple(trials), tuple(attempts), len(rows) - len(attempts), tuple(repeated))


def _clash(tries: list[ScoredTrial]) -> Problem | None:
    """Rows that differ and carry no different attempt numbers."""
    numbers = Counter(row.attempt for row in tries)
    if len(tries) == len(numbers) and (len(tries) == 1 or None not in numbers):
        return None
    same = [row for row in tries if row.attempt is None or numbers[row.attempt] > 1] or tries
    others = ", ".join(row.where.rpartition(":")[2].strip() for row in same[1:])
    return Problem(
        same[0].where,
        "task_id, trial",
        f"task `{same[0].task_id}` trial `{same[0].trial}` stands here and at {others} with different values",
    )


def _natural(key: tuple[str, str]) -> tuple[tuple[bool, int, str], ...]:
    """Numbers in numeric order, before texts."""
    return tuple((not part.isdecimal(), int(part) if part.isdecimal() and len(part) < 19 else 0, part) for part in key)


@dataclass(frozen=True, slots=True)
class Counts:
    """Scored trials and passes of each task, in the order of `Settled.trials`.

    Attributes:
        task_ids: length tasks.
        n, c: scored trials and passes, shape (tasks,).
        clusters: the cluster of each task, or its own name; None when no task has a cluster.
        attempts, crashes: all attempts and crashed ones, shape (tasks,).
        passes_of_attempts: mean over all attempts with a crash as a failure, shape (tasks,), NaN without any.
        excluded: for each task, reason → trials that are not scored.
        tags: of each task and its trials.
        mixed_clusters: tasks whose trials name several clusters.
        minutes: how long each task takes a person, the longest that a trial says; None where none does.
        definitions: for each task, hashes of what decides its grade; empty where they are not known.
    """

    task_ids: tuple[str, ...]
    n: Ints
    c: Ints
    clusters: tuple[str, ...] | None
    attempts: Ints
    crashes: Ints
    excluded: tuple[Counter[str], ...]
    tags: tuple[tuple[str, ...], ...]
    mixed_clusters: tuple[str, ...]
    minutes: tuple[float | None, ...] = ()
    definitions: tuple[frozenset[str], ...] = ()

    def excluded_total(self, keep: Sequence[bool] | None = None) -> dict[str, int]:
        """Trials not scored, by reason, over the tasks kept."""
        total: Counter[str] = Counter()
        for i, counter in enumerate(self.excluded):
            if keep is None or keep[i]:
                total.update(counter)
        return dict(sorted(total.items()))

    def labels(self) -> Floats | None:
        """Clusters as numbers, shape (tasks,), for the bootstrap; None when there are none."""
        if self.clusters is None:
            return None
        return np.unique(np.asarray(self.clusters), return_inverse=True)[1].astype(np.float64)


def reason_not_scored(trial: ScoredTrial) -> str:
    """Why a trial has no result: a crash, its own reason, its end reason, or `unknown`."""
    if trial.crashed:
        return INFRASTRUCTURE
    return trial.reason or trial.end_reason or "unknown"


def count(settled: Settled) -> Counts:
    """Counts per task."""
    order: dict[str, int] = {}
    for trial in settled.trials:
        order.setdefault(trial.task_id, len(order))
    size = len(order)
    n, c, attempts, crashes = (np.zeros(size, dtype=np.int64) for _ in range(4))
    excluded: list[Counter[str]] = [Counter() for _ in range(size)]
    clusters: list[set[str]] = [set() for _ in range(size)]
    tags: list[dict[str, None]] = [{} for _ in range(size)]
    minutes: list[float | None] = [None] * size
    definitions: list[set[str]] = [set() for _ in range(size)]
    for trial in settled.trials:
        i = order[trial.task_id]
        tags[i].update(dict.fromkeys(trial.tags))
        if trial.human_minutes is not None:
            minutes[i] = max(trial.human_minutes, minutes[i] or 0.0)
        if trial.task_sha256 is not None:
            definitions[i].add(trial.task_sha256)
        if trial.cluster is not None:
            clusters[i].add(trial.cluster)
        if trial.passed is None or trial.crashed:
            excluded[i][reason_not_scored(trial)] += 1
        else:
            n[i] += 1
            c[i] += trial.passed
    for attempt in settled.attempts:
        i = order[attempt.task_id]
        attempts[i] += 1
        crashes[i] += attempt.crashed
    named = None
    if any(clusters):
        # A task without a cluster is its own; the prefix keeps it apart from a cluster of the same name.
        named = tuple(
            f"c:{min(labels)}" if labels else f"t:{task}" for task, labels in zip(order, clusters, strict=True)
        )
    mixed = tuple(task for task, labels in zip(order, clusters, strict=True) if len(labels) > 1)
    return Counts(
        tuple(order), n, c, named, attempts, crashes, tuple(excluded), tuple(map(tuple, tags)), mixed,
        tuple(minutes), tuple(map(frozenset, definitions)),
    )  # fmt: skip

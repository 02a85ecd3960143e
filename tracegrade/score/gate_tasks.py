"""Which tasks a gate compared, and which of them changed."""

from __future__ import annotations

import numpy as np

from tracegrade.model.gate import Flip, GateTasks
from tracegrade.score.gate_sides import GateSide, PairedTasks
from tracegrade.score.trials import Counts


def task_lists(baseline: GateSide, candidate: GateSide, tasks: PairedTasks) -> GateTasks:
    """Which tasks were compared, and which changed their rate, the greatest loss first."""
    before, after = baseline.counts, candidate.counts
    place0 = {task: i for i, task in enumerate(before.task_ids)}
    place1 = {task: i for i, task in enumerate(after.task_ids)}
    paired = set(tasks.task_ids)
    rates = tasks.c / np.maximum(tasks.n, 1)
    failed = _failed_rules(baseline), _failed_rules(candidate)
    flips = [
        Flip(
            task_id=task,
            baseline=f"{tasks.c[0, j]}/{tasks.n[0, j]}",
            candidate=f"{tasks.c[1, j]}/{tasks.n[1, j]}",
            change=float(rates[1, j] - rates[0, j]),
            tags=tasks.tags[j],
            invariants=tuple(sorted(failed[0].get(task, set()) ^ failed[1].get(task, set()))),
        )
        for j, task in enumerate(tasks.task_ids)
        if rates[0, j] != rates[1, j]
    ]
    regraded = set(regraded_tasks(baseline, candidate))
    changed = [
        t
        for t in place0
        if t in regraded or (t in place1 and _definition(before, place0[t]) != _definition(after, place1[t]))
    ]
    return GateTasks(
        paired=len(tasks.task_ids),
        added=tuple(task for task in place1 if task not in place0),
        removed=tuple(task for task in place0 if task not in place1),
        changed=tuple(changed),
        unscored=tuple(task for task in place0 if task in place1 and task not in paired),
        flipped=tuple(sorted(flips, key=lambda flip: flip.change)),
        always_pass=tuple(tasks.task_ids[j] for j in np.flatnonzero((rates == 1).all(axis=0))),
        never_pass=tuple(tasks.task_ids[j] for j in np.flatnonzero((rates == 0).all(axis=0))),
    )


def regraded_tasks(baseline: GateSide, candidate: GateSide) -> list[str]:
    """Shared tasks that are graded by something else on the two sides, as far as both sides say by what."""
    place = {task: i for i, task in enumerate(candidate.counts.task_ids)}
    pairs = [(task, i, place[task]) for i, task in enumerate(baseline.counts.task_ids) if task in place]
    hashes = [(task, baseline.counts.definitions[i], candidate.counts.definitions[j]) for task, i, j in pairs]
    return [task for task, before, after in hashes if before and after and before != after]


def grading_known(side: GateSide) -> bool:
    """Whether every task of a side says by what it is graded."""
    return all(side.counts.definitions)


def _definition(counts: Counts, i: int) -> tuple[str | None, frozenset[str], float | None]:
    return (counts.clusters[i] if counts.clusters else None, frozenset(counts.tags[i]), counts.minutes[i])


def _failed_rules(side: GateSide) -> dict[str, set[str]]:
    failed: dict[str, set[str]] = {}
    for row in side.invariants:
        if row.passed is False and row.task_id is not None:
            failed.setdefault(row.task_id, set()).add(row.invariant)
    return failed

"""What a gate settles before any interval: absolute rules, emptiness, other graders, lost evidence, equal trials."""

from __future__ import annotations

from collections.abc import Sequence

from tracegrade.score.gate_sides import GateSide, PairedTasks
from tracegrade.score.gate_tasks import grading_known, regraded_tasks
from tracegrade.score.multiple import holm_levels

EVIDENCE_FLOOR = 0.1
"""A kind of evidence is lost only if at least this share of trajectories more lacks it, …"""
NO_CALLS = "no tool call is recorded"
"""The kind of evidence that a trajectory without any tool call lacks."""
EVIDENCE_LEVEL = 0.01
"""… and if that is more than noise by Fisher's test, after Holm; or if none lacked it before and all do now."""


def absolute_failures(candidate: GateSide, must_pass: Sequence[str], budget_usd: float | None = None) -> list[str]:
    """Violations of safety rules, failed must-pass tasks and an overrun budget of the candidate."""
    reasons = []
    violated: dict[str, int] = {}
    for row in candidate.invariants:
        if row.safety and row.passed is False:
            violated[row.invariant] = violated.get(row.invariant, 0) + 1
    for rule, number in sorted(violated.items()):
        plural = "trajectory" if number == 1 else "trajectories"
        reasons.append(f"safety rule {rule} is violated in {number} {plural} of the candidate: never tolerated")
    counts = candidate.counts
    for i, task in enumerate(counts.task_ids):
        if task in must_pass and counts.c[i] < counts.n[i]:
            reasons.append(f"must-pass task {task} passed {counts.c[i]} of {counts.n[i]} trials")
    spent = sum(trial.cost_usd or 0.0 for trial in candidate.settled.attempts)
    if budget_usd is not None and spent > budget_usd:
        reasons.append(f"the candidate's trials cost ${spent:.4g}, more than the budget of ${budget_usd:.4g}")
    return reasons


def unscored_must_pass(candidate: GateSide, must_pass: Sequence[str]) -> list[str]:
    """Must-pass tasks of which the candidate has no scored trial."""
    scored = {task for task, n in zip(candidate.counts.task_ids, candidate.counts.n, strict=True) if n > 0}
    return [task for task in must_pass if task not in scored]


def emptiness(
    baseline: GateSide, candidate: GateSide, tasks: PairedTasks, min_coverage: float, *, unpaired: bool = False
) -> list[str]:
    """Nothing scored, nothing shared, or too little scored. Unpaired, verdicts of rules are enough."""
    reasons = []
    for which, side in (("baseline", baseline), ("candidate", candidate)):
        share = side.scored_share()
        decided = any(row.passed is not None for row in side.invariants)
        if not side.counts.n.any() and not (unpaired and decided):
            advice = "grade trials with `tracegrade check … --tasks FILE --trials FILE`"
            advice += "" if unpaired or not decided else ", or compare the rates of rules with --unpaired"
            reasons.append(f"the {which} has no scored trial: {advice}")
        elif share is not None and share < min_coverage:
            excluded = ", ".join(f"{number} {reason}" for reason, number in side.counts.excluded_total().items())
            reasons.append(
                f"only {100 * share:.0f} % of the {which}'s trials are scored (floor {100 * min_coverage:.0f} %; "
                f"not scored: {excluded})"
            )
    if not reasons and not unpaired and not tasks.task_ids:
        reasons.append("no task has a scored trial on both sides (spans of production share no task: use --unpaired)")
    return reasons


def different_graders(baseline: GateSide, candidate: GateSide) -> list[str]:
    """Rules or tasks that say something else on the two sides."""
    reasons = []
    regraded = regraded_tasks(baseline, candidate)
    if regraded:
        number = f"{len(regraded)} task" + ("s are" if len(regraded) > 1 else " is")
        reasons.append(
            f"{number} graded by something else now: {some(regraded)}; grade both sides by the same task file"
        )
    elif _files_differ(baseline, candidate) and not (grading_known(baseline) and grading_known(candidate)):
        # where each task says by what it is graded, tasks that came or went change nothing for the others
        reasons.append("the task files differ: grade both sides by the same one")
    if baseline.rules and candidate.rules:
        changed = sorted(
            r for r in baseline.rules.keys() & candidate.rules.keys() if baseline.rules[r] != candidate.rules[r]
        )
        only = sorted(baseline.rules.keys() ^ candidate.rules.keys())
        if changed:
            reasons.append(f"rules differ: {some(changed)}; grade both sides by the same ones")
        if only:
            reasons.append(f"rules were applied to one side only: {some(only)}")
    return reasons


def _files_differ(baseline: GateSide, candidate: GateSide) -> bool:
    return None not in (hashes := (baseline.tasks_sha256, candidate.tasks_sha256)) and hashes[0] != hashes[1]


def some(names: Sequence[str], most: int = 5) -> str:
    """The first names of a list, and how many more there are.

    >>> some(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def lost_evidence(baseline: GateSide, candidate: GateSide) -> dict[str, str]:
    """Kinds of evidence that the candidate lacks and the baseline had, by more than noise: kind → sentence.

    Trajectories without a tool call are only counted as lost when none of the candidate has one: an agent may well call
    less than it did.
    """
    from scipy.stats import fisher_exact

    n0, n1 = baseline.n_trajectories, candidate.n_trajectories
    rows = []
    for kind in sorted(candidate.lacking) if n0 and n1 else ():
        before, after = baseline.lacking.get(kind, 0), candidate.lacking[kind]
        if after / n1 - before / n0 >= EVIDENCE_FLOOR and (kind != NO_CALLS or after == n1):
            p = float(fisher_exact([[after, n1 - after], [before, n0 - before]], alternative="greater").pvalue)
            rows.append((kind, before, after, p))
    _, adjusted = holm_levels([row[-1] for row in rows], EVIDENCE_LEVEL)
    return {
        kind: f"evidence was lost: {kind} in {after} of {n1} trajectories, {before} of {n0} before"
        for (kind, before, after, _), p in zip(rows, adjusted, strict=True)
        if p <= EVIDENCE_LEVEL or (before == 0 and after == n1)
    }


def same_trials(baseline: GateSide, candidate: GateSide) -> bool:
    """Whether both sides are the same recorded trials."""
    if baseline.digest is not None and baseline.digest == candidate.digest:
        return True
    return bool(baseline.trace_ids) and baseline.trace_ids == candidate.trace_ids


def protocol_changes(baseline: GateSide, candidate: GateSide) -> tuple[str, ...]:
    """Parts of the protocol that differ, as text. A part that one side did not record is not a change."""
    changes = []
    for part in sorted(baseline.protocol.keys() & candidate.protocol.keys()):
        before, after = baseline.protocol[part], candidate.protocol[part]
        if set(before) != set(after):
            changes.append(f"{part}: {some(sorted(before), 3)} → {some(sorted(after), 3)}")
    return tuple(changes)

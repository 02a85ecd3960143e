"""Whether the trials of one task are copies of each other: then pass^k measures little."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from tracegrade.model.report import Warned
from tracegrade.model.scored import ScoredTrial
from tracegrade.model.trajectory import Trajectory
from tracegrade.model.values import canonical

WARN_SHARE = 0.2
"""Share of equal pairs of trials, within tasks, from which the warning is given."""


def fingerprint(trajectory: Trajectory) -> str | None:
    """A hash of what the agent said and did: texts of its messages, tools and arguments, in order.

    None where nothing of it was captured, since two trials of which nothing is known are not known to be equal.
    """
    acts = []
    for step in trajectory.steps:
        if step.prior:
            continue
        if step.kind == "tool_call" and step.arguments_state == "captured":
            acts.append(("call", step.tool or "", canonical(step.arguments)))
        elif step.kind == "message" and step.role == "assistant" and step.text is not None:
            acts.append(("text", "", step.text))
    return fingerprint_of(acts)


def fingerprint_of(acts: Sequence[tuple[str, str, str]]) -> str | None:
    """The hash of acts in order: (`call`, tool, canonical arguments) or (`text`, nothing, what was said).

    >>> fingerprint_of([]) is None
    True
    """
    if not acts:
        return None
    return hashlib.sha256(canonical([list(act) for act in acts]).encode("utf-8", "surrogatepass")).hexdigest()


def equal_pairs(trials: Iterable[ScoredTrial]) -> tuple[int, int]:
    """Pairs of trials of one task with equal fingerprints, and all pairs that have one.

    >>> equal_pairs([ScoredTrial("a", "0", fingerprint="x"), ScoredTrial("a", "1", fingerprint="x")])
    (1, 1)
    """
    by_task: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for trial in trials:
        if trial.fingerprint is not None:
            by_task[trial.task_id][trial.fingerprint] += 1
    equal = sum(m * (m - 1) // 2 for counts in by_task.values() for m in counts.values())
    known = sum(counts.total() * (counts.total() - 1) // 2 for counts in by_task.values())
    return equal, known


def warn(trials: Sequence[ScoredTrial]) -> Iterable[Warned]:
    """A warning where many trials of one task are equal, or where all share one seed."""
    equal, known = equal_pairs(trials)
    if known and equal / known >= WARN_SHARE:
        yield Warned(
            code="copies",
            message=f"{equal} of {known} pairs of trials of one task have the same texts and arguments. Copies are not "
            "new trials: pass^k is then close to pass^1 and says little about reliability. Check temperature, seeds "
            "and caches.",
            context={"equal_pairs": equal, "pairs": known},
        )
    seeds: defaultdict[str, list[str]] = defaultdict(list)
    for trial in trials:
        if trial.seed is not None:
            seeds[trial.task_id].append(trial.seed)
    repeated = sorted(task for task, used in seeds.items() if len(used) > len(set(used)))
    if repeated:
        yield Warned(
            code="repeated_seeds",
            message=f"{len(repeated)} tasks have trials with equal seeds: they may be copies.",
            context={"task_ids": list(repeated[:50])},
        )

"""The comparison of every metric, overall and by tag: estimates, interval, p-value, what could have been seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tracegrade.model.estimate import Estimate
from tracegrade.model.scored import ScoredTrial
from tracegrade.score.estimating import Settings, estimate, pass_curves, ratio
from tracegrade.score.gate_sides import (
    GateSide,
    PairedTasks,
    invariant_counts,
    invariant_units,
    tag_names,
    task_means,
    task_units,
)
from tracegrade.score.intervals import jeffreys
from tracegrade.score.paired import Differences, differences, least_changes
from tracegrade.score.passk import Floats, Ints, pass_hat_k
from tracegrade.score.sequential import Stream
from tracegrade.score.unpaired import Groups

SIDE_SETTINGS_RESAMPLES = 2_000
RESOURCES: dict[str, Callable[[ScoredTrial], float | None]] = {
    "cost_per_trial": lambda trial: trial.cost_usd,
    "tokens": lambda trial: trial.tokens,
    "duration": lambda trial: trial.seconds,
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """One metric, prepared: everything but the level of its interval.

    Attributes:
        name, tag: which metric, over which tasks.
        unit: `rate` (points) or `relative` (to the baseline's mean).
        better: which way is good.
        baseline, candidate: estimates of the two sides over the paired tasks.
        differences: None where there is nothing to compare; `why` then says so.
        spread, noise: variance of a unit's mean difference, and the part of it that more trials would remove.
        trials: trials a task and side, on average.
    """

    name: str
    tag: str | None
    unit: Literal["rate", "relative"]
    better: Literal["higher", "lower"]
    baseline: Estimate
    candidate: Estimate
    differences: Differences | Groups | Stream | None
    why: str | None
    spread: float
    noise: float
    trials: float

    @property
    def units(self) -> int:
        """Tasks or clusters compared."""
        return 0 if self.differences is None else self.differences.units

    def smallest_visible_drop(self, alpha: float, power: float = 0.8) -> float | None:
        """The smallest drop that this many units see with the wanted power.

        The larger of what the spread of the differences allows (normal approximation) and of what the exact test
        needs: enough units that lose, were they all to change the same way.
        """
        if self.differences is None or self.units < 2:
            return None
        from scipy.special import bdtrc, ndtri

        error = float(np.sqrt(self.spread / self.units))
        by_spread = float(ndtri(1 - alpha / 2) + ndtri(power)) * error
        if self.unit == "relative":
            return by_spread
        least = least_changes(alpha)
        if least > self.units:
            return None
        low, high = 0.0, 1.0
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (low, middle) if float(bdtrc(least - 1, self.units, middle)) >= power else (middle, high)
        return min(1.0, max(by_spread, high))


def _blank(value: str) -> Estimate:
    return Estimate(None, note=value)


def _cluster_sums(values: Floats, clusters: Floats | None) -> Floats:
    if clusters is None:
        return values
    _, index = np.unique(clusters, return_inverse=True)
    return np.bincount(index, weights=values).astype(np.float64)


def compare_counts(
    name: str,
    tag: str | None,
    n: Ints,
    c: Ints,
    clusters: Floats | None,
    k: int,
    settings: Settings,
) -> Comparison:
    """Compare pass^k (the rate at k = 1) by task.

    Args:
        name, tag: of the metric.
        n, c: scored trials and passes, shape (2, tasks).
        clusters: numeric labels, shape (tasks,), or None.
        k: of pass^k.
        settings: seed and resamples of the difference.
    """
    keep = (n >= k).all(axis=0)
    n, c = n[:, keep], c[:, keep]
    clusters = None if clusters is None else clusters[keep]
    if not keep.any():
        why = "no shared task" if k == 1 else f"no shared task has {k} scored trials on both sides"
        return Comparison(name, tag, "rate", "higher", _blank(why), _blank(why), None, why, 0.0, 0.0, 0.0)
    before, after = (_rate(n[i], c[i], clusters, k, settings) for i in (0, 1))
    values = pass_hat_k(n, c, k)
    gap = values[1] - values[0]
    binary = k == 1 and clusters is None and bool(np.all(n == 1))
    top, bottom = _cluster_sums(gap, clusters), _cluster_sums(np.ones(gap.size), clusters)
    prepared = differences(top, bottom, rates=True, binary=binary, resamples=settings.resamples, seed=settings.seed)
    p = (c + 0.5) / (n + 1)
    noise = float((p * (1 - p) / n).sum(axis=0).mean()) * top.size / gap.size
    spread = _unit_variance(top, bottom)
    return Comparison(
        name, tag, "rate", "higher", before, after, prepared, None, spread, min(noise, spread), float(n.mean())
    )


def _unit_variance(top: Floats, bottom: Floats) -> float:
    """Variance of a unit's contribution to the mean difference."""
    if top.size < 2:
        return 0.0
    share = (top - top.sum() / bottom.sum() * bottom) / bottom.mean()
    return float((share**2).sum() / (top.size - 1))


def _rate(n: Ints, c: Ints, clusters: Floats | None, k: int, settings: Settings) -> Estimate:
    few = Settings(settings.confidence, settings.seed, settings.method, SIDE_SETTINGS_RESAMPLES)
    value = pass_curves(n, c, clusters, [k], few).hat[k]
    return estimate(value, few, n_tasks=n.size, n_trials=int(n.sum()))


def compare_means(
    name: str,
    tag: str | None,
    means: Floats,
    numbers: Ints,
    clusters: Floats | None,
    settings: Settings,
) -> Comparison:
    """Compare a resource by task, relative to the baseline's mean; less is better.

    Args:
        means: mean of each task, NaN for none, shape (2, tasks).
        numbers: trials behind each mean, shape (2, tasks).
        clusters: numeric labels, shape (tasks,), or None.
    """
    keep = ~np.isnan(means).any(axis=0)
    why = None
    if not keep.any():
        why = "not recorded on both sides"
    elif means[0, keep].sum() <= 0 or means[1, keep].sum() <= 0:
        why = "no positive value recorded on a side: not the same as free"
    if why is not None:
        return Comparison(name, tag, "relative", "lower", _blank(why), _blank(why), None, why, 0.0, 0.0, 0.0)
    means, numbers = means[:, keep], numbers[:, keep]
    clusters = None if clusters is None else clusters[keep]
    few = Settings(settings.confidence, settings.seed, settings.method, SIDE_SETTINGS_RESAMPLES)
    before, after = (
        estimate(
            ratio(means[i], np.ones(means.shape[1]), clusters, few),
            few,
            n_tasks=means.shape[1],
            n_trials=int(numbers[i].sum()),
        )
        for i in (0, 1)
    )
    top = _cluster_sums(means[1] - means[0], clusters)
    bottom = _cluster_sums(means[0], clusters)
    # A unit of no cost on the baseline has no ratio of its own; a floor keeps every subset's ratio finite.
    bottom = np.maximum(bottom, bottom.mean() * 1e-9)
    prepared = differences(top, bottom, rates=False, binary=False, resamples=settings.resamples, seed=settings.seed)
    spread = _unit_variance(top, bottom)
    return Comparison(name, tag, "relative", "lower", before, after, prepared, None, spread, 0.0, float(numbers.mean()))


def compare(
    baseline: GateSide, candidate: GateSide, tasks: PairedTasks, ks: list[int], settings: Settings
) -> list[Comparison]:
    """Every metric, overall and by tag.

    Args:
        baseline, candidate: the sides.
        tasks: scored on both.
        ks: the k of pass^k beside the rate.
        settings: level, seed and resamples.
    """
    resources = {}
    for name, read in RESOURCES.items():
        found = [task_means(side, tasks.task_ids, read) for side in (baseline, candidate)]
        resources[name] = np.stack([f[0] for f in found]), np.stack([f[1] for f in found])
    rules = sorted({row.invariant for row in candidate.invariants} & {row.invariant for row in baseline.invariants})
    verdicts = {}
    for rule in rules:
        pairs = [invariant_counts(side, rule, tasks.task_ids) for side in (baseline, candidate)]
        verdicts[rule] = np.stack([p[0] for p in pairs]), np.stack([p[1] for p in pairs])
    results = []
    for tag in [None, *tag_names(tasks)]:
        keep = np.array([tag is None or tag in tags for tags in tasks.tags], dtype=bool)
        part = tasks.only(keep)
        results.append(compare_counts("pass_rate", tag, part.n, part.c, part.clusters, 1, settings))
        results += [compare_counts(f"pass_hat_{k}", tag, part.n, part.c, part.clusters, k, settings) for k in ks]
        for name, (means, numbers) in resources.items():
            if numbers.any():
                results.append(compare_means(name, tag, means[:, keep], numbers[:, keep], part.clusters, settings))
        for rule, (n, c) in verdicts.items():
            if (n[:, keep] > 0).all(axis=0).any():
                results.append(
                    compare_counts(f"invariant:{rule}", tag, n[:, keep], c[:, keep], part.clusters, 1, settings)
                )
    return results


def as_stream(comparison: Comparison, candidate: GateSide, tasks: PairedTasks) -> Comparison:
    """The comparison of the overall rate with an interval that holds at every look.

    Tasks count in the order in which the candidate's first trial of each was recorded.
    """
    came = {task: i for i, task in reversed(list(enumerate(trial.task_id for trial in candidate.trials)))}
    order = np.argsort([came[task] for task in tasks.task_ids])
    rates = tasks.c / tasks.n
    return replace(comparison, differences=Stream((rates[1] - rates[0])[order]), noise=0.0)


def compare_groups(
    name: str, tag: str | None, sides: tuple[tuple[Ints, Ints], tuple[Ints, Ints]], settings: Settings
) -> Comparison:
    """Compare the rates of two groups of units that share no task.

    Args:
        name, tag: of the metric.
        sides: decided trials and passes of each unit, of baseline and candidate.
        settings: seed and resamples.
    """
    if not all(n.size for n, _ in sides):
        why = "nothing decided on a side"
        return Comparison(name, tag, "rate", "higher", _blank(why), _blank(why), None, why, 0.0, 0.0, 0.0)
    before, after = (_pooled(n, c, settings) for n, c in sides)
    (n0, c0), (n1, c1) = ((n.astype(np.float64), c.astype(np.float64)) for n, c in sides)
    groups = Groups(n0, c0, n1, c1, settings.resamples, settings.seed)
    spread = groups.spread()
    trials = float((n0.sum() + n1.sum()) / (n0.size + n1.size))
    return Comparison(name, tag, "rate", "higher", before, after, groups, None, spread, 0.0, trials)


def _pooled(n: Ints, c: Ints, settings: Settings) -> Estimate:
    """The share of passes among decided trials, with units resampled; Jeffreys where all are equal."""
    few = Settings(settings.confidence, settings.seed, settings.method, SIDE_SETTINGS_RESAMPLES)
    value = ratio(c, n, None, few)
    if value[0] is not None and value[1] is None:
        value = value[0], jeffreys(value[0] * n.size, n.size, settings.confidence), f"Jeffreys, n = {n.size} units"
    return estimate(value, few, n_tasks=n.size, n_trials=int(n.sum()))


def compare_unpaired(baseline: GateSide, candidate: GateSide, settings: Settings) -> list[Comparison]:
    """Pass rate and rate of every rule, overall and by tag, without pairs."""
    sides = (baseline, candidate)
    tags = sorted({tag for side in sides for row in side.invariants for tag in row.tags})
    rules = sorted(
        {r.invariant for r in baseline.invariants}
        & {r.invariant for r in candidate.invariants}
        & {r.invariant for side in sides for r in side.invariants if r.passed is not None}
    )
    results = []
    if all(side.trials for side in sides):
        results.append(compare_groups("pass_rate", None, (task_units(baseline), task_units(candidate)), settings))
    for tag in [None, *tags]:
        for rule in rules:
            units = (invariant_units(baseline, rule, tag), invariant_units(candidate, rule, tag))
            if tag is None or all(n.size for n, _ in units):
                results.append(compare_groups(f"invariant:{rule}", tag, units, settings))
    return results

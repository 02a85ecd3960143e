"""From counts and spend to estimates: which interval each number gets, and what its method is called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from tracegrade.model.estimate import Estimate
from tracegrade.score.intervals import (
    DIGITS,
    RESAMPLES,
    Resampled,
    cluster_sums,
    effective_clusters,
    jeffreys,
    resample,
)
from tracegrade.score.passk import Floats, Ints, pass_at_k, pass_hat_k
from tracegrade.score.posterior import curve_posterior

IntervalMethod: TypeAlias = Literal["bca", "percentile"]
Ends: TypeAlias = tuple[float, float]


ENOUGH = 30
"""From this many tasks or clusters on, all k share their resamples."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How intervals are made.

    Attributes:
        confidence: level of every interval, in (0, 1).
        seed: of everything random.
        method: which bootstrap interval.
        resamples: bootstrap resamples.
    """

    confidence: float = 0.95
    seed: int = 0
    method: IntervalMethod = "bca"
    resamples: int = RESAMPLES

    def ends(self, drawn: Resampled, measure: int) -> Ends:
        """The interval of one measure."""
        if self.method == "bca":
            return drawn.bca(measure, self.confidence)
        return drawn.percentile(measure, self.confidence)

    def name(self, drawn: Resampled, unit: str) -> str:
        """What the interval is called, with the unit that was resampled."""
        kind = "BCa" if self.method == "bca" else "percentile"
        return f"{kind} bootstrap over {unit}, {len(drawn.draws)} resamples, seed {self.seed}"


def unit_name(clusters: ArrayLike | None) -> str:
    """What is resampled."""
    return "tasks" if clusters is None else "clusters"


@dataclass(frozen=True, slots=True)
class Curves:
    """pass^k and pass@k with intervals, for each k; None where no task has k trials."""

    hat: dict[int, tuple[float | None, Ends | None, str]]
    at: dict[int, tuple[float | None, Ends | None, str]]


def pass_curves(n: Ints, c: Ints, clusters: Floats | None, ks: Sequence[int], settings: Settings) -> Curves:
    """The mean of pass^k and pass@k over the tasks with at least k trials, with intervals.

    Args:
        n, c: scored trials and passes, shape (tasks,).
        clusters: numeric labels, shape (tasks,), or None.
        ks: the k wanted.
        settings: level, seed and method.
    """
    curves = Curves({}, {})
    enough: list[int] = []
    few: list[int] = []
    for k in ks:
        keep = n >= k
        units = keep.sum() if clusters is None else np.unique(clusters[keep]).size
        (enough if units >= ENOUGH else few).append(k)
    # One set of resamples serves every k; where few units are left for a k, some resamples would hold none of them, so
    # those k are resampled among the tasks that have them.
    for same in [enough, *([k] for k in few)]:
        keep = n >= min(same, default=0)
        if not same:
            continue
        if not keep.any():
            for k in same:
                curves.hat[k] = curves.at[k] = (None, None, "")
            continue
        _curves_of(n[keep], c[keep], None if clusters is None else clusters[keep], same, settings, curves)
    return curves


def _curves_of(n: Ints, c: Ints, clusters: Floats | None, ks: list[int], settings: Settings, curves: Curves) -> None:
    """Fill in some k from one set of resamples."""
    values = np.column_stack([f(n, c, k) for f in (pass_hat_k, pass_at_k) for k in ks])
    known = ~np.isnan(values)
    sums, _, counts = cluster_sums(np.column_stack([np.where(known, values, 0.0), known]), clusters)
    width = values.shape[1]
    drawn = resample(sums[:, :width], sums[:, width:], counts=counts, resamples=settings.resamples, seed=settings.seed)
    flat = [k for i, k in enumerate(ks) if k > 1 and not (drawn.spread(i) and drawn.spread(len(ks) + i))]
    posterior = {k: _posterior(n, c, clusters, k, settings) for k in flat}
    unit = unit_name(clusters)
    for offset, target in ((0, curves.hat), (len(ks), curves.at)):
        for i, k in enumerate(ks):
            value = float(drawn.estimate[offset + i])
            if drawn.spread(offset + i):
                target[k] = value, settings.ends(drawn, offset + i), settings.name(drawn, unit)
            elif k == 1:
                units = float(len(n)) if clusters is None else effective_clusters(clusters)
                target[k] = (
                    value,
                    jeffreys(value * units, units, settings.confidence),
                    f"Jeffreys, {units:g} {unit if units != 1 else unit[:-1]}",
                )
            else:
                low, high = posterior[k][0 if offset == 0 else 1]
                target[k] = value, (min(low, value), max(high, value)), "beta-binomial posterior (all tasks equal)"


def _posterior(n: Ints, c: Ints, clusters: Floats | None, k: int, settings: Settings) -> tuple[Ends, Ends]:
    """The posterior of both curves on the tasks that have k trials."""
    keep = n >= k
    units = float(keep.sum()) if clusters is None else effective_clusters(clusters[keep])
    return curve_posterior(n[keep], c[keep], [k], confidence=settings.confidence, weight=units / int(keep.sum()))[k]


def ratio(
    top: ArrayLike, bottom: ArrayLike, clusters: Floats | None, settings: Settings
) -> tuple[float | None, Ends | None, str]:
    """Σ top / Σ bottom over tasks, with a bootstrap interval over tasks or clusters.

    Args:
        top, bottom: shape (tasks,); None when Σ bottom is 0.
        clusters: numeric labels, shape (tasks,), or None.
        settings: level, seed and method.
    """
    numerator, denominator = np.asarray(top, dtype=np.float64), np.asarray(bottom, dtype=np.float64)
    if denominator.sum() <= 0:
        return None, None, ""
    return derived(np.column_stack([numerator, denominator]), lambda sums: sums[:, 0] / sums[:, 1], clusters, settings)


def derived(
    values: ArrayLike, function: Callable[[Floats], Floats], clusters: Floats | None, settings: Settings
) -> tuple[float | None, Ends | None, str]:
    """A function of sums over tasks, with a percentile bootstrap interval over tasks or clusters.

    Args:
        values: what is summed, shape (tasks, measures).
        function: from means (rows, measures) to values (rows,); NaN or infinite rows are left out of the interval.
            Where all rows are equal there is no interval: a width of nothing would claim certainty.
        clusters: numeric labels, shape (tasks,), or None.
        settings: level and seed; the method is always percentile, which needs no jackknife of the function.
    """
    totals, sizes, counts = cluster_sums(values, clusters)
    drawn = resample(totals, np.ones_like(sizes), counts=counts, resamples=settings.resamples, seed=settings.seed)
    with np.errstate(invalid="ignore", divide="ignore"):
        point = float(function(drawn.estimate[None, :])[0])
        column = function(drawn.draws)
    if not np.isfinite(point):
        return None, None, ""
    column = column[np.isfinite(column)]
    unit = unit_name(clusters)
    if counts.sum() < 2:
        return point, None, f"no interval from one of the {unit}"
    if np.ptp(column) <= 10.0**-DIGITS:
        return point, None, f"no interval: all {unit} are equal"
    low, high = np.quantile(column, [(1 - settings.confidence) / 2, 0.5 + settings.confidence / 2])
    name = f"percentile bootstrap over {unit}, {len(drawn.draws)} resamples, seed {settings.seed}"
    return point, (min(float(low), point), max(float(high), point)), name


def estimate(
    value: tuple[float | None, Ends | None, str],
    settings: Settings,
    *,
    n_tasks: int,
    n_trials: int,
    n_excluded: dict[str, int] | None = None,
    note: str | None = None,
) -> Estimate:
    """An `Estimate` from value, interval and method."""
    point, ends, method = value
    return Estimate(
        point,
        ends[0] if ends else None,
        ends[1] if ends else None,
        settings.confidence,
        method,
        n_tasks,
        n_trials,
        dict(n_excluded or {}),
        note,
    )

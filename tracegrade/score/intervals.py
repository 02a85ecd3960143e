"""Intervals for proportions and for means over tasks.

Tasks (or clusters of tasks) are what is resampled, never trials: trials of one task are not new evidence about other
tasks. In: arrays. Out: `(low, high)` pairs and standard errors. Everything random takes a seed, and equal inputs with
an equal seed give equal bytes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tracegrade.score.passk import Floats

RESAMPLES = 10_000
"""Bootstrap resamples by default."""
MAX_DRAWS = 200_000_000
"""Upper limit of resamples times distinct clusters: beyond it fewer resamples are drawn, but never under 2,000."""
CHUNK_CELLS = 2_000_000
"""Cells of one block of bootstrap weights, so that memory does not grow with resamples times clusters."""
FEW_TYPES = 64
"""Up to this many distinct clusters their numbers are drawn as one multinomial."""
DIGITS = 12
"""Bootstrap values are compared with the estimate after rounding to this many decimals: sums of equal terms in
another order differ in the last bits."""


def wilson(successes: float, n: float, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval for a proportion.

    Args:
        successes: 0 ≤ successes ≤ n, may be fractional.
        n: number of independent units (tasks), > 0.
        confidence: in (0, 1).

    Source: Wilson 1927, JASA 22:209; formula as in Brown, Cai, DasGupta 2001, Statistical Science 16(2), eq. 4.

    >>> [round(x, 4) for x in wilson(8, 10)]
    [0.4902, 0.9433]
    """
    from scipy.special import ndtri

    z = float(ndtri(0.5 + confidence / 2))
    p = successes / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(0.0, min(centre - half, p)), min(1.0, max(centre + half, p))


def clopper_pearson(successes: float, n: float, confidence: float = 0.95) -> tuple[float, float]:
    """The exact interval for a proportion: the inversion of two one-sided binomial tests.

    Source: Clopper & Pearson 1934, Biometrika 26:404, in its beta-quantile form.

    >>> [round(x, 4) for x in clopper_pearson(0, 10)]
    [0.0, 0.3085]
    """
    from scipy.special import betaincinv

    tail = (1 - confidence) / 2
    low = 0.0 if successes <= 0 else float(betaincinv(successes, n - successes + 1, tail))
    high = 1.0 if successes >= n else float(betaincinv(successes + 1, n - successes, 1 - tail))
    return low, high


def jeffreys(successes: float, n: float, confidence: float = 0.95) -> tuple[float, float]:
    """Jeffreys' interval for a proportion: quantiles of Beta(successes + ½, n − successes + ½).

    With no successes the lower end is 0, with no failures the upper end is 1.

    Source: Brown, Cai, DasGupta 2001, Statistical Science 16(2), section 4.1.2.

    >>> [round(x, 4) for x in jeffreys(10, 10)]
    [0.7828, 1.0]
    """
    from scipy.special import betaincinv

    tail = (1 - confidence) / 2
    low = 0.0 if successes <= 0 else float(betaincinv(successes + 0.5, n - successes + 0.5, tail))
    high = 1.0 if successes >= n else float(betaincinv(successes + 0.5, n - successes + 0.5, 1 - tail))
    return low, high


def naive_standard_error(values: ArrayLike) -> float | None:
    """Standard deviation (n − 1) of the task values over √tasks; None for fewer than two tasks.

    >>> round(naive_standard_error([0, 1, 1, 1]), 4)
    0.25
    """
    x = np.asarray(values, dtype=np.float64)
    return float(x.std(ddof=1) / math.sqrt(x.size)) if x.size > 1 else None


def clustered_standard_error(values: ArrayLike, clusters: ArrayLike) -> float | None:
    """Standard error of the mean when tasks of one cluster go together; None for one cluster.

    sqrt(C/(C−1) · Σ_r (Σ_{j∈r} (x_j − x̄))²) / J, with C clusters and J tasks.

    Args:
        values: one value a task, shape (tasks,).
        clusters: a label for each task, shape (tasks,).

    Source: Liang & Zeger 1986 with the usual small-sample factor C/(C−1); for evaluations Miller,
    arXiv:2411.00640, section 2.2.

    >>> round(clustered_standard_error([0, 0, 1, 1], ["a", "a", "b", "b"]), 4)
    0.5
    """
    x = np.asarray(values, dtype=np.float64)
    _, index = np.unique(np.asarray(clusters), return_inverse=True)
    sums = np.bincount(index, weights=x - x.mean())
    if sums.size < 2:
        return None
    return float(math.sqrt(sums.size / (sums.size - 1) * float(np.sum(sums**2))) / x.size)


def effective_clusters(clusters: ArrayLike) -> float:
    """J² / Σ_r J_r²: how many clusters of equal size carry as much as these.

    >>> effective_clusters(["a", "a", "b", "b"]), effective_clusters(["a"])
    (2.0, 1.0)
    """
    _, sizes = np.unique(np.asarray(clusters), return_counts=True)
    return float(sizes.sum() ** 2 / np.sum(sizes.astype(np.float64) ** 2))


def t_interval(mean: float, error: float, n_clusters: int, confidence: float = 0.95) -> tuple[float, float]:
    """mean ± t · error with n_clusters − 1 degrees of freedom.

    >>> [round(x, 3) for x in t_interval(0.5, 0.1, 11)]
    [0.277, 0.723]
    """
    from scipy.special import stdtrit

    half = float(stdtrit(n_clusters - 1, 0.5 + confidence / 2)) * error
    return mean - half, mean + half


@dataclass(frozen=True, slots=True)
class Resampled:
    """The bootstrap distribution of several ratios of sums over clusters.

    Attributes:
        estimate: value on the data, shape (measures,).
        draws: bootstrap values rounded to `DIGITS`, shape (resamples, measures).
        acceleration: BCa's a of each measure, shape (measures,).
    """

    estimate: Floats
    draws: Floats
    acceleration: Floats

    def spread(self, measure: int) -> bool:
        """Whether the bootstrap values of a measure differ at all."""
        column = self.draws[:, measure]
        return bool(np.ptp(column) > 10.0**-DIGITS)

    def percentile(self, measure: int, confidence: float = 0.95) -> tuple[float, float]:
        """The percentile interval of one measure."""
        tail = (1 - confidence) / 2
        low, high = np.quantile(self.draws[:, measure], [tail, 1 - tail])
        return float(low), float(high)

    def bca(self, measure: int, confidence: float = 0.95) -> tuple[float, float]:
        """The bias-corrected and accelerated interval of one measure; it contains the estimate.

        Source: Efron 1987, JASA 82:171; Efron & Tibshirani 1993, section 14.3. Ties count half.
        """
        from scipy.special import ndtr, ndtri

        column, value = self.draws[:, measure], np.round(self.estimate[measure], DIGITS)
        below = (np.mean(column < value) + np.mean(column <= value)) / 2
        edge = 0.5 / column.size
        shift = float(ndtri(min(max(float(below), edge), 1 - edge)))
        z = shift + ndtri(np.array([(1 - confidence) / 2, 0.5 + confidence / 2]))
        levels = ndtr(shift + z / (1 - self.acceleration[measure] * z))
        low, high = np.quantile(column, levels)
        point = float(self.estimate[measure])
        return min(float(low), point), max(float(high), point)


def _weights(counts: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """How often each distinct cluster is drawn, shape (resamples, distinct).

    `counts` says how many clusters are equal: drawing from them with replacement is one multinomial, and exactly the
    bootstrap over the clusters themselves.
    """
    total = int(counts.sum())
    if counts.size <= FEW_TYPES:
        return rng.multinomial(total, counts / total, size=resamples).astype(np.float64)
    of_cluster = np.repeat(np.arange(counts.size), counts.astype(np.int64))
    drawn = of_cluster[rng.integers(0, total, size=(resamples, total))]
    drawn += (np.arange(resamples) * counts.size)[:, None]
    flat = np.bincount(drawn.ravel(), minlength=resamples * counts.size)
    return flat.reshape(resamples, counts.size).astype(np.float64)


def resample(
    totals: ArrayLike,
    sizes: ArrayLike,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    counts: ArrayLike | None = None,
) -> Resampled:
    """Bootstrap Σ totals / Σ sizes over clusters drawn with replacement.

    Args:
        totals: sum of each measure in each cluster, shape (clusters, measures).
        sizes: what the sums are divided by, shape (clusters,) or (clusters, measures), sums > 0.
        resamples: number of resamples.
        seed: seed of the generator (PCG64).
        counts: how many clusters are like this row, shape (clusters,); one each by default.

    Returns:
        Estimates, draws and accelerations (by the jackknife over clusters, in closed form).
    """
    top = np.asarray(totals, dtype=np.float64)
    bottom = np.asarray(sizes, dtype=np.float64)
    bottom = np.broadcast_to(bottom[:, None] if bottom.ndim == 1 else bottom, top.shape)
    weight = np.ones(len(top)) if counts is None else np.asarray(counts, dtype=np.float64)
    sum_top, sum_bottom = weight @ top, weight @ bottom
    rng = np.random.default_rng(seed)
    drawn = max(min(resamples, 2_000), min(resamples, int(MAX_DRAWS / max(weight.sum(), 1))))
    if weight.size <= FEW_TYPES:
        drawn = resamples
    draws = np.empty((drawn, top.shape[1]))
    step = max(1, CHUNK_CELLS // int(weight.size if weight.size <= FEW_TYPES else weight.sum()))
    for start in range(0, drawn, step):
        block = _weights(weight, min(step, drawn - start), rng)
        below = block @ bottom
        with np.errstate(invalid="ignore", divide="ignore"):
            draws[start : start + len(block)] = np.where(below > 0, (block @ top) / below, sum_top / sum_bottom)
    return Resampled(sum_top / sum_bottom, np.round(draws, DIGITS), _acceleration(top, bottom, weight))


def _acceleration(top: Floats, bottom: Floats, weight: Floats) -> Floats:
    """BCa's acceleration from leaving out one cluster at a time; 0 where it is not defined."""
    rest = (weight @ bottom) - bottom
    with np.errstate(invalid="ignore", divide="ignore"):
        left_out = np.where(rest > 0, ((weight @ top) - top) / rest, np.nan)
        usable = np.where(np.isnan(left_out), 0.0, weight[:, None])
        values = np.nan_to_num(left_out)
        mean = (usable * values).sum(axis=0) / usable.sum(axis=0)
        gap = mean - values
        cubes, squares = (usable * gap**3).sum(axis=0), (usable * gap**2).sum(axis=0)
        a = cubes / (6 * squares**1.5)
    return np.asarray(np.where(np.isfinite(a), a, 0.0), dtype=np.float64)


def cluster_sums(values: ArrayLike, clusters: ArrayLike | None) -> tuple[Floats, Floats, Floats]:
    """Sums, sizes and multiplicities of the distinct clusters, in a fixed order.

    Args:
        values: shape (tasks, measures).
        clusters: labels, shape (tasks,); None makes every task its own cluster.

    Returns:
        totals (distinct, measures), sizes (distinct,), counts (distinct,), as `resample` takes them.
    """
    rows = np.asarray(values, dtype=np.float64)
    sizes = np.ones(len(rows))
    if clusters is not None:
        _, index = np.unique(np.asarray(clusters), return_inverse=True)
        sizes = np.bincount(index).astype(np.float64)
        rows = np.column_stack([np.bincount(index, weights=column) for column in rows.T])
    table, counts = np.unique(np.column_stack([sizes, rows]), axis=0, return_counts=True)
    return table[:, 1:], table[:, 0], counts.astype(np.float64)

"""The interval of a paired difference: the union of a bootstrap and of the inversion of an exact test.

In: for each task, or cluster of tasks, the sums of both sides. Out: one interval and one p-value that cannot
contradict each other. The exact test is McNemar's where every difference is −1, 0 or 1 and tasks are independent, else
the sign-flip test; with few changed tasks both are blunt, and the bounds on losses and gains alone are used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tracegrade.score.intervals import CHUNK_CELLS, DIGITS, clopper_pearson, resample
from tracegrade.score.passk import Floats

EXACT_UP_TO = 14
"""Up to this many clusters all 2^C sign patterns are enumerated; beyond it they are drawn."""
FLIPS = 9_999
"""Sign patterns drawn beside the observed one."""
LEAST_UNITS = 6
"""Fewer tasks or clusters can never establish a drop: 2 · (1/2)^5 > 0.05."""


def mcnemar_exact(lost: int, gained: int) -> float:
    """The exact two-sided p-value of McNemar's test: twice the smaller binomial tail, at most 1.

    Source: McNemar 1947, Psychometrika 12:153; exact form as in statsmodels' `mcnemar(exact=True)`.

    >>> mcnemar_exact(5, 0), mcnemar_exact(0, 0)
    (0.0625, 1.0)
    """
    from scipy.special import bdtr

    total = lost + gained
    return min(1.0, 2.0 * float(bdtr(min(lost, gained), total, 0.5))) if total else 1.0


def mcnemar_interval(lost: int, gained: int, n: int, alpha: float) -> tuple[float, float]:
    """The difference of rates that McNemar's exact test does not reject, given how many pairs changed.

    The share of losses among changed pairs has a Clopper–Pearson interval [θ₀, θ₁]; the difference is
    (changed / n)(1 − 2θ). It excludes 0 exactly when the test rejects at α.

    >>> [round(x, 4) for x in mcnemar_interval(5, 0, 50, 0.05)]
    [-0.1, 0.0044]
    """
    changed = lost + gained
    if not changed:
        return 0.0, 0.0
    low, high = clopper_pearson(lost, changed, 1 - alpha)
    return changed / n * (1 - 2 * high), changed / n * (1 - 2 * low)


def few_changes(lost: int, gained: int, n: int, alpha: float) -> tuple[float, float]:
    """Bounds where too few units changed for a test: minus the most that may be lost, the most that may be gained.

    Each is the upper end of a Clopper–Pearson interval at α/2 a side; with no change at all that is
    ±(1 − (α/2)^(1/n)).

    >>> [round(x, 4) for x in few_changes(0, 0, 50, 0.05)]
    [-0.0711, 0.0711]
    """
    return -clopper_pearson(lost, n, 1 - alpha)[1], clopper_pearson(gained, n, 1 - alpha)[1]


def least_changes(alpha: float) -> int:
    """Changed units below which no two-sided sign test can reach α: 2 · (1/2)^m > α.

    >>> least_changes(0.05)
    6
    """
    return max(1, math.ceil(1 - math.log2(alpha) - 1e-12))


def subset_ratios(top: ArrayLike, bottom: ArrayLike, seed: int) -> tuple[Floats, int]:
    """Σ top / Σ bottom over subsets of the units: the typical values of the sign-flip test.

    A sign-flip test of H: Σ(top − δ · bottom) = 0 is rejected for a δ that too few of these ratios reach, so the
    interval of all δ that are not rejected ends at order statistics of the ratios.

    Args:
        top: sums of the differences, shape (units,).
        bottom: what they are divided by, > 0, shape (units,).
        seed: of the subsets drawn when there are more than 14 units.

    Returns:
        The ratios of the subsets that are not empty, sorted, and the number of all patterns, the observed included.

    Source: Hartigan 1969, JASA 64:1303 (typical values); Phipson & Smyth 2010 for counting the observed pattern.
    """
    s, w = np.asarray(top, dtype=np.float64), np.asarray(bottom, dtype=np.float64)
    number, drawn = (2**s.size, 0) if s.size <= EXACT_UP_TO else (FLIPS + 1, FLIPS)
    results = []
    if not drawn:
        codes = np.arange(1, number)
        picks = ((codes[:, None] >> np.arange(s.size)) & 1).astype(np.float64)
        results.append((picks @ s) / (picks @ w))
    else:
        rng = np.random.default_rng(seed)
        step = max(1, CHUNK_CELLS // s.size)
        for start in range(0, drawn, step):
            rows = min(step, drawn - start)
            bits = np.unpackbits(np.frombuffer(rng.bytes(rows * ((s.size + 7) // 8)), dtype=np.uint8))
            picks = bits.reshape(rows, -1)[:, : s.size].astype(np.float64)
            picks = picks[picks.any(axis=1)]
            results.append((picks @ s) / (picks @ w))
    return np.sort(np.round(np.concatenate(results), DIGITS)), number


def sign_flip(ratios: Floats, patterns: int, alpha: float) -> tuple[float, float, float]:
    """Two-sided p-value of no difference, and the interval of differences that are not rejected at α.

    Args:
        ratios, patterns: of `subset_ratios`. Patterns that have no ratio flip nothing: they always count.
        alpha: two-sided level.

    Returns:
        p, low, high; infinite where no value can be rejected on that side.
    """
    still = patterns - ratios.size
    at_most, at_least = np.searchsorted(ratios, 0.0, side="right"), ratios.size - np.searchsorted(ratios, 0.0)
    p = min(1.0, 2.0 * float(min(at_most, at_least) + still) / patterns)
    allowed = math.floor(alpha / 2 * patterns + 1e-9) - still
    if allowed < 0 or allowed >= ratios.size:
        return p, -math.inf, math.inf
    return p, float(ratios[allowed]), float(ratios[ratios.size - 1 - allowed])


def bootstrap_ratios(top: ArrayLike, bottom: ArrayLike, resamples: int, seed: int) -> Floats:
    """Σ top / Σ bottom over units drawn with replacement, sorted."""
    s, w = np.asarray(top, dtype=np.float64), np.asarray(bottom, dtype=np.float64)
    table, counts = np.unique(np.column_stack([w, s]), axis=0, return_counts=True)
    drawn = resample(table[:, 1:], table[:, 0], counts=counts, resamples=resamples, seed=seed)
    return np.sort(drawn.draws[:, 0])


@dataclass(frozen=True, slots=True)
class Paired:
    """A paired difference, candidate minus baseline.

    Attributes:
        value: the difference (of means, or relative to the baseline's mean).
        low, high: ends of the interval.
        p_value: of no difference: the exact test's, unless the bootstrap alone keeps 0 inside the interval.
        units: tasks or clusters.
        method: what the interval is.
    """

    value: float
    low: float
    high: float
    p_value: float
    units: int
    method: str


@dataclass(frozen=True, slots=True)
class Differences:
    """Differences by unit, prepared once so that intervals at several levels share their draws.

    Attributes:
        top: sum of differences of each unit; bottom: its tasks (rates) or its baseline sum (relative), shape (units,).
        rates: whether a difference lies in [−1, 1] and a unit that did not change still may.
        lost, gained: units with a negative or positive difference.
        binary: one trial a task on both sides and no clusters, so that McNemar's test applies.
    """

    top: Floats
    bottom: Floats
    rates: bool
    binary: bool
    resamples: int
    seed: int
    ratios: Floats
    patterns: int
    draws: Floats

    @property
    def units(self) -> int:
        """Tasks or clusters."""
        return int(self.top.size)

    @property
    def value(self) -> float:
        """Candidate minus baseline."""
        return float(self.top.sum() / self.bottom.sum())

    @property
    def lost(self) -> int:
        """Units that got worse by value."""
        return int(np.sum(self.top < -1e-12))

    @property
    def gained(self) -> int:
        """Units that got better by value."""
        return int(np.sum(self.top > 1e-12))

    def at(self, alpha: float) -> Paired:
        """The interval and p-value at a two-sided level."""
        units, value = self.units, self.value
        tail = alpha / 2
        boot_low, boot_high = (float(x) for x in np.quantile(self.draws, [tail, 1 - tail]))
        if self.binary:
            p = mcnemar_exact(self.lost, self.gained)
            low, high = mcnemar_interval(self.lost, self.gained, units, alpha)
            exact = "exact McNemar test"
        else:
            p, low, high = sign_flip(self.ratios, self.patterns, alpha)
            exact = "sign-flip test"
        few = self.rates and self.lost + self.gained < least_changes(alpha)
        if few:
            least, most = few_changes(self.lost, self.gained, units, alpha)
            low, high = min(least, low if math.isfinite(low) else 0.0), max(most, high if math.isfinite(high) else 0.0)
            exact = "bounds on losses and gains (too few changes for a test)"
        if self.rates:
            low, high = max(low, -1.0), min(high, 1.0)
        wide_low, wide_high = min(low, boot_low, value), max(high, boot_high, value)
        if p <= alpha and wide_low <= 0 <= wide_high:
            share = float(min(np.mean(self.draws <= 0), np.mean(self.draws >= 0)))
            p = max(p, min(1.0, 2 * share), float(np.nextafter(alpha, 1)))
        method = f"union of paired bootstrap ({self.draws.size} resamples, seed {self.seed}) and {exact}"
        return Paired(value, wide_low, wide_high, p, units, method)


def differences(
    top: ArrayLike, bottom: ArrayLike, *, rates: bool, binary: bool, resamples: int = 10_000, seed: int = 0
) -> Differences:
    """Prepare the paired comparison.

    Args:
        top: sum of candidate minus baseline of each unit, shape (units,).
        bottom: tasks of each unit (for rates), or baseline sums (for relative differences), > 0.
        rates: the values are rates.
        binary: see `Differences`.
        resamples, seed: of bootstrap and sign patterns.
    """
    s, w = np.asarray(top, dtype=np.float64), np.asarray(bottom, dtype=np.float64)
    order = np.lexsort((w, s))
    s, w = s[order], w[order]
    ratios, patterns = (np.zeros(1), 2) if binary else subset_ratios(s, w, seed)
    return Differences(s, w, rates, binary, resamples, seed, ratios, patterns, bootstrap_ratios(s, w, resamples, seed))

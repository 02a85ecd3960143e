"""Two independent groups of units: rates that share no task, as in production.

The interval is the union of the bootstrap over units of each side and of Newcombe's interval with units as n; where a
permutation test of the labels does not reject, 0 is kept inside.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from tracegrade.score.intervals import CHUNK_CELLS, wilson
from tracegrade.score.paired import FLIPS, Paired, bootstrap_ratios
from tracegrade.score.passk import Floats


def permutation_p(c: ArrayLike, n: ArrayLike, second: ArrayLike, seed: int) -> float:
    """Two-sided p-value of equal rates Σc / Σn, by permuting which units belong to the second side.

    Twice the smaller tail, the observed labelling counted; one trial a unit makes it Fisher's exact test, up to the
    draws.

    Args:
        c, n: passes and decided trials of each unit, shape (units,).
        second: whether the unit is of the second side, shape (units,).
        seed: of the permutations.
    """
    passes, trials = np.asarray(c, dtype=np.float64), np.asarray(n, dtype=np.float64)
    side = np.asarray(second, dtype=bool)
    observed = passes[side].sum() / trials[side].sum() - passes[~side].sum() / trials[~side].sum()
    rng = np.random.default_rng(seed)
    size = int(side.sum())
    least = most = 1
    step = max(1, CHUNK_CELLS // side.size)
    for start in range(0, FLIPS, step):
        rows = min(step, FLIPS - start)
        chosen = np.argpartition(rng.random((rows, side.size)), size - 1, axis=1)[:, :size]
        top, bottom = passes[chosen].sum(axis=1), trials[chosen].sum(axis=1)
        gap = top / bottom - (passes.sum() - top) / (trials.sum() - bottom)
        least += int(np.sum(gap <= observed + 1e-12))
        most += int(np.sum(gap >= observed - 1e-12))
    return min(1.0, 2.0 * min(least, most) / (FLIPS + 1))


def newcombe(p0: float, n0: float, p1: float, n1: float, alpha: float) -> tuple[float, float]:
    """The hybrid score interval for p1 − p0.

    Source: Newcombe 1998, Statistics in Medicine 17:873, method 10.

    >>> [round(x, 4) for x in newcombe(48 / 80, 80, 56 / 70, 70, 0.05)]
    [0.0524, 0.3339]
    """
    l0, u0 = wilson(p0 * n0, n0, 1 - alpha)
    l1, u1 = wilson(p1 * n1, n1, 1 - alpha)
    gap = p1 - p0
    return gap - math.hypot(p1 - l1, u0 - p0), gap + math.hypot(u1 - p1, p0 - l0)


@dataclass(frozen=True)
class Groups:
    """Two sides of independent units, prepared for intervals at several levels.

    Attributes:
        n0, c0, n1, c1: decided trials and passes of each unit of baseline and candidate, shape (units,), n > 0.
        resamples, seed: of the bootstrap and the permutations.
    """

    n0: Floats
    c0: Floats
    n1: Floats
    c1: Floats
    resamples: int
    seed: int

    @property
    def units(self) -> int:
        """Units of the smaller side."""
        return int(min(self.n0.size, self.n1.size))

    @property
    def rates(self) -> tuple[float, float]:
        """Baseline's and candidate's rate."""
        return float(self.c0.sum() / self.n0.sum()), float(self.c1.sum() / self.n1.sum())

    @property
    def value(self) -> float:
        """Candidate minus baseline."""
        return self.rates[1] - self.rates[0]

    @cached_property
    def _draws(self) -> Floats:
        """Bootstrap differences; each side in its own random order, so that they are independent."""
        sides = [
            np.random.default_rng([self.seed, i]).permutation(bootstrap_ratios(c, n, self.resamples, self.seed + i))
            for i, (n, c) in enumerate(((self.n0, self.c0), (self.n1, self.c1)))
        ]
        return np.asarray(sides[1] - sides[0], dtype=np.float64)

    @cached_property
    def _p(self) -> float:
        second = np.concatenate([np.zeros(self.n0.size, dtype=bool), np.ones(self.n1.size, dtype=bool)])
        return permutation_p(np.concatenate([self.c0, self.c1]), np.concatenate([self.n0, self.n1]), second, self.seed)

    def spread(self) -> float:
        """Variance whose root over √units is the standard error of the difference."""
        variance = 0.0
        for n, c in ((self.n0, self.c0), (self.n1, self.c1)):
            share = (c - c.sum() / n.sum() * n) / n.mean()
            variance += float(share.var(ddof=1)) / n.size if n.size > 1 else 0.0
        return variance * self.units

    def at(self, alpha: float) -> Paired:
        """The interval and p-value at a two-sided level."""
        draws, p, value = self._draws, self._p, self.value
        low, high = (float(x) for x in np.quantile(draws, [alpha / 2, 1 - alpha / 2]))
        near = newcombe(self.rates[0], float(self.n0.size), self.rates[1], float(self.n1.size), alpha)
        low, high = min(low, near[0], value), max(high, near[1], value)
        if p > alpha:
            low, high = min(low, 0.0), max(high, 0.0)
        elif low <= 0 <= high:
            share = float(min(np.mean(draws <= 0), np.mean(draws >= 0)))
            p = max(p, min(1.0, 2 * share), float(np.nextafter(alpha, 1)))
        method = (
            f"unpaired: union of bootstrap over units ({self.resamples} resamples, seed {self.seed}), Newcombe's "
            "interval and a permutation test"
        )
        return Paired(value, low, high, p, self.units, method)

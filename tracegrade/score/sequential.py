"""A difference that may be looked at after every task: an interval that holds at all times at once.

An ordinary interval that is looked at again and again is wrong far more often than it says. This one is a confidence
sequence: with the stated probability it holds the truth at every look, so that a pipeline may stop whenever it likes.
It assumes that tasks come in random order.

Source: Waudby-Smith & Ramdas 2024, JRSS B 86:1, theorem 2 (predictable plug-in empirical Bernstein).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tracegrade.score.paired import Paired
from tracegrade.score.passk import Floats

CAP = 0.5
"""Largest bet λ; it must lie below 1."""


def confidence_sequence(values: ArrayLike, alpha: float) -> tuple[Floats, Floats]:
    """Lower and upper ends after each value, each the tightest so far.

    Args:
        values: in [0, 1], in the order in which they came, shape (n,).
        alpha: probability that the truth is ever outside.

    Returns:
        Two arrays of shape (n,): non-decreasing lower ends, non-increasing upper ends.
    """
    x = np.asarray(values, dtype=np.float64)
    t = np.arange(1, x.size + 1)
    mean = (0.5 + np.cumsum(x)) / (t + 1)
    spread = (0.25 + np.cumsum((x - mean) ** 2)) / (t + 1)
    mean_before = np.concatenate([[0.5], mean[:-1]])
    spread_before = np.concatenate([[0.25], spread[:-1]])
    bet = np.minimum(np.sqrt(2 * math.log(2 / alpha) / (spread_before * t * np.log1p(t))), CAP)
    cost = 4 * (x - mean_before) ** 2 * (-np.log1p(-bet) - bet) / 4
    centre = np.cumsum(bet * x) / np.cumsum(bet)
    width = (math.log(2 / alpha) + np.cumsum(cost)) / np.cumsum(bet)
    low = np.maximum.accumulate(np.maximum(centre - width, 0.0))
    high = np.minimum.accumulate(np.minimum(centre + width, 1.0))
    return low, high


@dataclass(frozen=True, slots=True)
class Stream:
    """Paired differences in the order in which the tasks came.

    Attributes:
        gaps: candidate minus baseline of each task, in [−1, 1], shape (tasks,).
    """

    gaps: Floats

    @property
    def units(self) -> int:
        """Tasks seen so far."""
        return int(self.gaps.size)

    @property
    def value(self) -> float:
        """Mean difference so far."""
        return float(self.gaps.mean())

    def _ends(self, alpha: float) -> tuple[float, float]:
        low, high = confidence_sequence((self.gaps + 1) / 2, alpha)
        return 2 * float(low[-1]) - 1, 2 * float(high[-1]) - 1

    def at(self, alpha: float) -> Paired:
        """The interval at a level, and the smallest level at which it excludes 0: an anytime-valid p-value."""
        low, high = self._ends(alpha)
        least, most = 1e-12, 1.0
        for _ in range(60):
            middle = math.sqrt(least * most)
            ends = self._ends(middle)
            least, most = (least, middle) if ends[0] > 0 or ends[1] < 0 else (middle, most)
        method = "confidence sequence over tasks in the order they came: valid at every look"
        return Paired(self.value, min(low, self.value), max(high, self.value), most, self.units, method)

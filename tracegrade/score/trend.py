"""A series of results over time: where its level seems to have changed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

HINT_LEVEL = 0.01
LEAST_POINTS = 4


@dataclass(frozen=True, slots=True)
class Split:
    """The best split of a series.

    Attributes:
        index: first point after the change.
        before, after: weighted means of both sides.
        p_value: two-sided, times the splits tried (Bonferroni).
    """

    index: int
    before: float
    after: float
    p_value: float


def change_point(values: ArrayLike, errors: ArrayLike) -> Split | None:
    """The split whose two sides differ most for their errors; None where that is not more than chance.

    Args:
        values: shape (points,), the oldest first.
        errors: standard error of each, > 0, shape (points,).

    Returns:
        The split, if its p-value is at most 0.01 after Bonferroni; None for fewer than four points.

    Source: Sen & Srivastava 1975, Annals of Statistics 3:98 (largest standardised difference), with known errors.

    >>> change_point([0.8, 0.81, 0.8, 0.5, 0.52], [0.02] * 5).index
    3
    """
    from scipy.special import ndtr

    x, weight = np.asarray(values, dtype=np.float64), 1 / np.asarray(errors, dtype=np.float64) ** 2
    if x.size < LEAST_POINTS:
        return None
    best: Split | None = None
    for i in range(1, x.size):
        before, after = np.average(x[:i], weights=weight[:i]), np.average(x[i:], weights=weight[i:])
        error = np.sqrt(1 / weight[:i].sum() + 1 / weight[i:].sum())
        p = min(1.0, 2 * float(ndtr(-abs(after - before) / error)) * (x.size - 1))
        if best is None or p < best.p_value:
            best = Split(i, float(before), float(after), p)
    return best if best is not None and best.p_value <= HINT_LEVEL else None

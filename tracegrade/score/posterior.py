"""The posterior of pass^k under the beta-binomial model, for data whose bootstrap has no spread.

Thirty tasks that pass every time do not prove that every task always passes. Prior: the mean success probability is
Beta(½, ½), and 1 / (a + b + 1), the correlation of two trials of one task, is uniform on (0, 1).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tracegrade.score.beta_binomial import curve_at, curve_hat, histogram
from tracegrade.score.passk import Floats, Ints

GRID = 240
"""Points on each axis of the grid."""


def curve_posterior(
    n: ArrayLike, c: ArrayLike, ks: list[int], *, confidence: float = 0.95, weight: float = 1.0
) -> dict[int, tuple[tuple[float, float], tuple[float, float]]]:
    """Equal-tailed posterior intervals of pass^k and pass@k.

    Where no trial failed the upper end is 1, and where none passed the lower end is 0, as in Jeffreys' interval.

    Args:
        n: scored trials of each task, shape (tasks,).
        c: passes of each task, shape (tasks,).
        ks: the k wanted.
        confidence: in (0, 1).
        weight: power of the likelihood, below 1 where clustered tasks carry less than as many independent ones
            (J_eff / J).

    Returns:
        k → (interval of pass^k, interval of pass@k).

    >>> low, high = curve_posterior([4] * 20, [4] * 20, [4])[4][0]
    >>> round(low, 2), high
    (0.88, 1.0)
    """
    trials, passes, tasks = histogram(n, c)
    # The mean is sin²(t) with t uniform, which is Beta(½, ½); ρ is u², whose density 2u is put into the weight.
    t = (np.arange(GRID) + 0.5) / GRID * (np.pi / 2)
    u = (np.arange(GRID) + 0.5) / GRID
    mean, miss = np.sin(t)[:, None] ** 2, np.cos(t)[:, None] ** 2
    size = (1 - u**2) / u**2
    a, b = mean * size, miss * size
    log = np.log(u) + weight * _log_likelihood(trials, passes, tasks, a, b)
    mass = np.exp(log - log.max()).ravel()
    all_pass, none_pass = bool(np.all(passes == trials)), bool(np.all(passes == 0))
    tails = np.array([(1 - confidence) / 2, 0.5 + confidence / 2])
    result = {}
    for k in ks:
        ends = []
        for values in (curve_hat(a, b, k), curve_at(a, b, k)):
            low, high = _weighted_quantiles(values.ravel(), mass, tails)
            ends.append((0.0 if none_pass else low, 1.0 if all_pass else high))
        result[k] = (ends[0], ends[1])
    return result


def _log_likelihood(n: Ints, c: Ints, tasks: Floats, a: Floats, b: Floats) -> Floats:
    from scipy.special import betaln

    total = np.zeros_like(a)
    for trials, passes, number in zip(n, c, tasks, strict=True):
        total += number * (betaln(a + passes, b + trials - passes) - betaln(a, b))
    return total


def _weighted_quantiles(values: Floats, mass: Floats, levels: Floats) -> tuple[float, float]:
    order = np.argsort(values, kind="stable")
    share = np.cumsum(mass[order])
    share = (share - mass[order] / 2) / share[-1]
    low, high = np.interp(levels, share, values[order])
    return float(low), float(high)

"""Whether a difference in counts of trajectories is more than noise."""

from __future__ import annotations

from functools import lru_cache

ALPHA = 0.01
"""The level of every test, after Holm."""
SURE = 0.001
"""The level at which Fisher's test must agree, alone, that a loss is no chance."""


@lru_cache(maxsize=65_536)
def fall_p(present: int, total: int, present_now: int, total_now: int) -> float:
    """The two-sided p of Fisher's exact test that a share is the same before and now.

    Args:
        present, total: trajectories that carry it, and all, before.
        present_now, total_now: the same, now.
    """
    if not total or not total_now or (present == 0 and present_now == 0):
        return 1.0
    from scipy.stats import fisher_exact

    table = [[present, total - present], [present_now, total_now - present_now]]
    return float(fisher_exact(table).pvalue)


def none_p(seen: int, total: int, total_now: int) -> float:
    """The probability that none of `total_now` trajectories shows what `seen` of `total` showed.

    At the baseline's rate, estimated by the mean of Jeffreys' posterior, (seen + ½)/(total + 1), so that what stood on
    all of two trajectories is not certain to stand on a third.

    >>> round(none_p(10, 20, 7), 5), round(none_p(1, 20, 20), 2)
    (0.00781, 0.23)
    """
    if not total or not total_now:
        return 1.0
    return float((1 - (seen + 0.5) / (total + 1)) ** total_now)


def holm(p_values: list[float]) -> list[float]:
    """Holm's adjusted p-values."""
    from tracegrade.score.multiple import holm_levels

    return holm_levels(p_values, ALPHA)[1]

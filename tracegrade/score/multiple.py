"""Several tests at once: the level of each, so that an interval at that level agrees with the decision."""

from __future__ import annotations

from collections.abc import Sequence


def holm_levels(p_values: Sequence[float], alpha: float) -> tuple[list[float], list[float]]:
    """The level at which each hypothesis is tested by Holm's step-down, and the adjusted p-values.

    Hypotheses after the first that is not rejected share its level: at it they are not rejected either, so an
    interval at that level agrees with the decision.

    Source: Holm 1979, Scandinavian Journal of Statistics 6:65.

    >>> levels, adjusted = holm_levels([0.01, 0.04, 0.5], 0.05)
    >>> [round(x, 4) for x in levels], adjusted
    ([0.0167, 0.025, 0.025], [0.03, 0.08, 0.5])
    """
    number = len(p_values)
    order = sorted(range(number), key=lambda i: p_values[i])
    levels, adjusted = [alpha] * number, [1.0] * number
    running, stopped = 0.0, None
    for rank, i in enumerate(order):
        level = alpha / (number - rank)
        levels[i] = stopped if stopped is not None else level
        if stopped is None and p_values[i] > level:
            stopped = level
        running = max(running, min(1.0, p_values[i] * (number - rank)))
        adjusted[i] = running
    return levels, adjusted


def benjamini_hochberg_levels(p_values: Sequence[float], alpha: float) -> tuple[list[float], list[float]]:
    """One level for all by Benjamini and Hochberg's step-up, and the adjusted p-values.

    Source: Benjamini & Hochberg 1995, JRSS B 57:289; for the interval's level Benjamini & Yekutieli 2005, JASA 100:71.

    >>> benjamini_hochberg_levels([0.01, 0.02, 0.5], 0.05)[1]
    [0.03, 0.03, 0.5]
    """
    number = len(p_values)
    order = sorted(range(number), key=lambda i: p_values[i], reverse=True)
    adjusted, running, rejected = [1.0] * number, 1.0, 0
    for place, i in enumerate(order):
        rank = number - place
        running = min(running, p_values[i] * number / rank)
        adjusted[i] = running
        if rejected == 0 and p_values[i] <= alpha * rank / number:
            rejected = rank
    return [alpha * max(rejected, 1) / number] * number, adjusted

"""Runs of neighbouring steps, for rules on how often something happens in a row."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from tracegrade.checks.view import Matches, View


def longest_run(
    view: View, everything: Matches, yes: Iterable[int], maybe: Iterable[int]
) -> tuple[int, int, list[int]]:
    """Bounds on the longest run of matching steps that are neighbours in `seq`.

    Args:
        everything: the steps among which they are neighbours.
        yes, maybe: the steps that certainly, or perhaps, match.

    Returns:
        The least and the greatest length the longest run may have, and a run that shows the least.

    Neighbours whose order is undecided may in truth stand elsewhere: then only the trivial bounds are certain.
    """
    certain, possible = set(yes), set(maybe)
    members = sorted([*everything.yes, *everything.maybe])
    sure = set(everything.yes)
    if not certain and not possible:
        return 0, 0, []
    if _undecided(view, everything, members):
        return min(len(certain), 1), len(certain) + len(possible), sorted(certain)[:1]
    low: list[int] = []
    current: list[int] = []
    high = longest = 0
    for index in members:
        if index in certain:
            current.append(index)
            longest += 1
        elif index in possible:
            # It may match, not match, or not have run: it lengthens the upper bound and breaks the lower one.
            current = []
            longest += 1
        elif index in sure:
            current, longest = [], 0
        else:
            current = []
        if len(current) > len(low):
            low = list(current)
        high = max(high, longest)
    return len(low), high, low


def _undecided(view: View, everything: Matches, members: list[int]) -> bool:
    """Whether the order of some neighbours is undecided, asked once for all groups of the same steps."""
    key = ("neighbours", id(everything))
    if key not in view.cache:  # the steps are kept with the answer, so that their identity stays theirs
        view.cache[key] = everything, any(view.order.compare(a, b) == "unknown" for a, b in pairwise(members))
    return view.cache[key][1]  # type: ignore[index, no-any-return]

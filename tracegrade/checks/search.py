"""Exact searches over small sets, each with a budget: what would take too long has no answer, never a guess."""

from __future__ import annotations

from collections.abc import Callable, Sequence

BUDGET = 20_000
"""Nodes that one search may visit."""


class Exhausted(Exception):
    """The search met its budget before it knew the answer."""


def find_clique(members: Sequence[int], joined: Callable[[int, int], bool], size: int) -> list[int] | None:
    """`size` members that are pairwise joined, or None where there are none.

    Raises:
        Exhausted: the budget did not suffice.

    >>> find_clique([1, 2, 3, 4], lambda a, b: (a - b) % 2 == 0, 2)
    [1, 3]
    """
    spent = 0

    def grow(chosen: list[int], rest: list[int]) -> list[int] | None:
        nonlocal spent
        if len(chosen) == size:
            return chosen
        for position, member in enumerate(rest):
            if len(chosen) + len(rest) - position < size:
                return None
            spent += 1 + len(rest) - position
            if spent > BUDGET * 20:
                raise Exhausted
            later = [other for other in rest[position + 1 :] if joined(member, other)]
            found = grow([*chosen, member], later)
            if found is not None:
                return found
        return None

    return grow([], list(members)) if size <= 200 else _large_clique(members, joined, size)


def _large_clique(members: Sequence[int], joined: Callable[[int, int], bool], size: int) -> list[int] | None:
    """Cliques too deep for recursion: one greedy pass finds them if they are easy to find."""
    chosen: list[int] = []
    for member in members:
        if all(joined(member, other) for other in chosen):
            chosen.append(member)
            if len(chosen) == size:
                return chosen
    if len(members) < size:
        return None
    raise Exhausted


class Placing:
    """Puts reference steps on calls, one to one, so that no call contradicts the reference's order.

    Args:
        edges: for each reference step, the calls that it may be put on, in display order.
        clash: whether call `d`, put on a later reference step than call `c`, would contradict the order.
        must_use: calls that must all be used.
    """

    def __init__(
        self, edges: Sequence[Sequence[int]], clash: Callable[[int, int], bool], must_use: Sequence[int] = ()
    ) -> None:
        self._edges, self._clash = edges, clash
        self._must = frozenset(must_use)
        self._dead: set[tuple[int, frozenset[int]]] = set()
        self._spent = 0

    def find(self) -> list[int] | None:
        """The calls in the order of the reference, or None where there is no such placing.

        Raises:
            Exhausted: the budget did not suffice.
        """
        chosen: list[int] = []
        options: list[list[int]] = [self._options(chosen)]
        while True:
            if len(chosen) == len(self._edges):
                if self._must <= set(chosen):
                    return chosen
                options[-1] = []
            if options[-1]:
                self._spent += 1
                if self._spent > BUDGET:
                    raise Exhausted
                chosen.append(options[-1].pop(0))
                state = (len(chosen), frozenset(chosen))
                options.append([] if state in self._dead else self._options(chosen))
                continue
            options.pop()
            if not options:
                return None
            self._dead.add((len(chosen), frozenset(chosen)))
            chosen.pop()

    def _options(self, chosen: list[int]) -> list[int]:
        if len(chosen) >= len(self._edges):
            return []
        used = set(chosen)
        left = self._must - used
        fitting = []
        for call in self._edges[len(chosen)]:
            if call in used or any(self._clash(earlier, call) for earlier in chosen):
                continue
            if any(other != call and self._clash(call, other) for other in left):
                continue
            fitting.append(call)
        return fitting

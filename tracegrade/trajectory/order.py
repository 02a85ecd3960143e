"""Happens-before: the one definition of when a step comes before another (DESIGN §4, Order).

What comes in are `Placement`s: for every step, the interval that it takes on each clock it can be read on. A clock is
either a machine's (Unix nanoseconds of one host or process) or a conversation's (positions in one message history,
which is causality: what stands earlier in the input of a model call was there before the model answered). What goes out
is a strict partial order, transitive, on integers, that says `unknown` where neither clock nor causality decides.

It never changes a time and never guesses: on a source whose tick is coarser than a nanosecond, two events of one tick
are undecided.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import networkx as nx

from tracegrade.model.trajectory import Ordering, Relation, StepOrder

MAX_CLOSED = 20_000
"""Most steps of one trajectory whose order is closed under transitivity: n² bits of memory. Beyond it two steps are
compared by what places both, and what would follow through a third one is `unknown`."""


class Interval(NamedTuple):
    """Where a step lies on one clock: `end` is None while it is not known; `tick` is the clock's resolution."""

    start: int
    end: int | None
    tick: int = 1


@dataclass(slots=True)
class Placement:
    """All that is known of when one step happened.

    Attributes:
        own: the interval of the step's own span, by machine clock; empty where it has no clock order.
        lifted: by machine clock, the interval of the innermost span around the step that contains it (the step's own
            excluded); a step inside a span that ended before another started happened before it.
        talk: by conversation clock, the positions of the step: from the request to the response of a call, one
            position for a message.
        inside: indices of the steps whose spans contain this one's.
        first: True for a step of an earlier, unloaded part of the conversation: before all others.
    """

    own: dict[Any, Interval] = field(default_factory=dict)
    lifted: dict[Any, Interval] = field(default_factory=dict)
    talk: dict[Any, Interval] = field(default_factory=dict)
    inside: tuple[int, ...] = ()
    first: bool = False


def _ends_before(a: Interval, b: Interval) -> bool:
    """Whether `a` certainly ended no later than `b` started; zero-length steps of one instant are undecided."""
    if a.end is None:
        return False
    tick = max(a.tick, b.tick)
    if tick > 1:
        return a.end + tick <= b.start
    return a.end <= b.start and (b.end is None or a.start < b.end)


def _not_informed(a: Interval, b: Interval) -> bool:
    """Whether it is certain that neither of two steps knew of the other: one turn, or an end that came too late.

    A result that no input shows may still have been there: then nothing is known.
    """
    first = min(a, b, key=lambda i: i.start)
    return a.start == b.start or first.end is not None


def _overlap(a: Interval, b: Interval) -> bool:
    """Whether two intervals of one clock certainly overlap."""
    slack = max(a.tick, b.tick) - 1
    a_started = b.end is not None and a.start + slack < b.end
    b_started = a.end is not None and b.start + slack < a.end
    if a.end is None and b.end is None:
        return False
    if a.end is None:
        return a_started and b.start <= a.start
    if b.end is None:
        return b_started and a.start <= b.start
    return a_started and b_started


class Order(StepOrder):
    """The order over the steps of one trajectory, computed from placements when first asked.

    Args:
        placements: one per step, in the order of the step indices.
        links: pairs (a, b) of steps whose spans are linked: b names a as what caused it.

    Attributes:
        conflicts: pairs of steps whose machine clocks contradict causality; the clock's word was dropped for them.
    """

    def __init__(self, placements: Sequence[Placement], links: Iterable[tuple[int, int]] = ()) -> None:
        self._placements = placements
        self._links = tuple(links)
        self._masks: dict[Relation, list[int]] = {}
        self._conflicts: list[tuple[int, int]] | None = None

    @classmethod
    def from_pairs(cls, n: int, before: Iterable[tuple[int, int]], concurrent: Iterable[tuple[int, int]] = ()) -> Order:
        """An order that knows exactly the given pairs (and what follows from them), the same in every relation.

        Raises:
            ValueError: the pairs close a cycle.

        >>> Order.from_pairs(3, [(0, 1), (1, 2)]).compare(0, 2)
        'before'
        >>> Order.from_pairs(2, [], [(0, 1)]).compare(0, 1), Order.from_pairs(2, []).compare(0, 1)
        ('concurrent', 'unknown')
        """
        order = cls([Placement() for _ in range(n)])
        direct = [0] * n
        for a, b in before:
            direct[b] |= 1 << a
        closed = _close(direct)
        if closed is None:
            msg = "the pairs close a cycle"
            raise ValueError(msg)
        for relation in ("executed", "informed", "started"):
            order._masks[relation] = closed
        for a, b in concurrent:
            order._placements[a].inside += (b,)
        order._conflicts = []
        return order

    def __len__(self) -> int:
        return len(self._placements)

    @property
    def conflicts(self) -> list[tuple[int, int]]:
        """Pairs of steps for which a machine clock contradicts what stood in a model's input."""
        if len(self._placements) <= MAX_CLOSED:
            self._before("executed")
        return self._conflicts or []

    def compare(self, a: int, b: int, relation: Relation = "executed") -> Ordering:
        """How step `a` stands to step `b`.

        Returns:
            `before`, `after`, `concurrent` (known to overlap, or for `informed` of one turn), or `unknown`.
        """
        if len(self._placements) > MAX_CLOSED and not self._masks:
            return self._directly(a, b, relation)
        masks = self._before(relation)
        if masks[b] >> a & 1:
            return "before"
        if masks[a] >> b & 1:
            return "after"
        return "concurrent" if self._concurrent(a, b, relation) else "unknown"

    def _directly(self, a: int, b: int, relation: Relation) -> Ordering:
        """How two steps stand by what places both of them, without what follows through third ones."""
        pair = Order([replace(self._placements[i], inside=()) for i in (a, b)])
        x, y = self._placements[a], self._placements[b]
        if relation != "started" and (a in y.inside or b in x.inside):
            return "concurrent"
        if relation == "started" and (a in y.inside or b in x.inside):
            return "before" if a in y.inside else "after"
        return pair.compare(0, 1, relation)

    def gap_ns(self, a: int, b: int) -> int | None:
        """Nanoseconds from the end of `a` to the start of `b` (negative if they overlap); None without one clock."""
        x, y = self._placements[a], self._placements[b]
        for clock, interval in x.own.items():
            other = y.own.get(clock)
            if other is not None and interval.end is not None:
                return other.start - interval.end
        return None

    def graph(self, relation: Relation = "executed") -> nx.DiGraph[Any]:
        """The transitive reduction of the certain order, over step indices; no edges beyond `MAX_CLOSED` steps."""
        full: nx.DiGraph[Any] = nx.DiGraph()
        full.add_nodes_from(range(len(self._placements)))
        if len(self._placements) > MAX_CLOSED:
            return full
        masks = self._before(relation)
        for b, mask in enumerate(masks):
            # What a later step covers is skipped, so that n steps in a row do not cost n² looks; every step that
            # nothing covers is among the candidates.
            candidates, rest, indirect = [], mask, 0
            while rest:
                top = rest.bit_length() - 1
                candidates.append(top)
                indirect |= masks[top]
                rest &= ~(masks[top] | 1 << top)
            full.add_edges_from((a, b) for a in reversed(candidates) if not indirect >> a & 1)
        return full

    def _concurrent(self, a: int, b: int, relation: Relation) -> bool:
        x, y = self._placements[a], self._placements[b]
        if relation == "informed":
            return any(clock in y.talk and _not_informed(i, y.talk[clock]) for clock, i in x.talk.items())
        if a in y.inside or b in x.inside:
            return True
        if relation == "started":
            return False
        return any(clock in y.own and _overlap(i, y.own[clock]) for clock, i in x.own.items())

    def _before(self, relation: Relation) -> list[int]:
        if relation not in self._masks:
            if relation == "executed":
                self._masks[relation], self._conflicts = self._executed()
            elif relation == "informed":
                self._masks[relation] = _close(self._talk_edges()) or [0] * len(self)
            else:
                self._masks[relation] = self._started()
        return self._masks[relation]

    def _talk_edges(self) -> list[int]:
        direct = [0] * len(self)
        clocks: dict[Any, list[tuple[int, Interval]]] = {}
        for index, placement in enumerate(self._placements):
            for clock, interval in placement.talk.items():
                clocks.setdefault(clock, []).append((index, interval))
        for members in clocks.values():
            # Positions are exact: strictly earlier is before, so one sweep over sorted ends gives every prefix.
            ended = sorted((i.end, index) for index, i in members if i.end is not None)
            ends = [e for e, _ in ended]
            prefix = _prefix_masks(index for _, index in ended)
            for index, interval in members:
                direct[index] |= prefix[bisect_left(ends, interval.start)] & ~(1 << index)
        firsts = sum(1 << i for i, p in enumerate(self._placements) if p.first)
        if firsts:
            for index, placement in enumerate(self._placements):
                if not placement.first:
                    direct[index] |= firsts
        return direct

    def _clock_edges(self) -> list[int]:
        direct = [0] * len(self)
        clocks: dict[Any, list[tuple[int, Interval]]] = {}
        for index, placement in enumerate(self._placements):
            for clock, interval in placement.lifted.items():
                if clock not in placement.own:
                    clocks.setdefault(clock, []).append((index, interval))
            for clock, interval in placement.own.items():
                clocks.setdefault(clock, []).append((index, interval))
        for members in clocks.values():
            by_index = dict(members)
            # One sweep for each tick: how far an end has to lie before a start depends on the coarser of the two.
            ticks: dict[int, list[tuple[int, int]]] = {}
            for index, interval in members:
                if interval.end is not None:
                    ticks.setdefault(interval.tick, []).append((interval.end, index))
            sweeps = []
            for tick, ended in ticks.items():
                ended.sort()
                sweeps.append((tick, ended, [e for e, _ in ended], _prefix_masks(index for _, index in ended)))
            for index, interval in members:
                mask = 0
                for tick, ended, ends, prefix in sweeps:
                    coarser = max(tick, interval.tick)
                    sure = bisect_right(ends, interval.start - coarser)
                    mask |= prefix[sure]
                    # On a fine clock, ends at the very start are looked at one by one.
                    for _, other in ended[sure : bisect_right(ends, interval.start)] if coarser == 1 else ():
                        if other != index and _ends_before(by_index[other], interval):
                            mask |= 1 << other
                direct[index] |= mask & ~(1 << index)
        # What contains a step did not end before it, whatever a lifted interval says.
        for index, placement in enumerate(self._placements):
            for outer in placement.inside:
                direct[index] &= ~(1 << outer)
                direct[outer] &= ~(1 << index)
        return direct

    def _executed(self) -> tuple[list[int], list[tuple[int, int]]]:
        talk = self._talk_edges()
        clock = self._clock_edges()
        both = [t | c for t, c in zip(talk, clock, strict=True)]
        closed = _close(both)
        if closed is not None:
            return closed, []
        # Causality beats the clock: inside a cycle only the edges of conversations stay.
        graph: nx.DiGraph[Any] = nx.DiGraph()
        graph.add_edges_from((a, b) for b, mask in enumerate(both) for a in _bits(mask))
        conflicts = []
        for component in nx.strongly_connected_components(graph):
            if len(component) > 1:
                mask = sum(1 << i for i in component)
                for b in component:
                    dropped = clock[b] & mask & ~talk[b]
                    conflicts += [(a, b) for a in _bits(dropped)]
                    both[b] &= ~dropped
        closed = _close(both)
        if closed is None:  # conversations that contradict each other prove nothing
            closed = _close(clock) or [0] * len(self)
        return closed, sorted(conflicts)

    def _started(self) -> list[int]:
        executed = self._before("executed")
        direct = list(executed)
        n = len(self)
        for b in range(n):
            y = self._placements[b]
            for outer in y.inside:
                direct[b] |= 1 << outer
        clocks: dict[Any, list[tuple[int, int, int]]] = {}
        for index, placement in enumerate(self._placements):
            for clock, i in placement.own.items():
                clocks.setdefault(clock, []).append((i.start, i.tick, index))
            for clock, i in placement.talk.items():
                clocks.setdefault(clock, []).append((i.start, 1, index))
        for members in clocks.values():
            tick = max(t for _, t, _ in members)
            ranked = sorted((start, index) for start, _, index in members)
            starts = [s for s, _ in ranked]
            prefix = _prefix_masks(index for _, index in ranked)
            for start, index in ranked:
                direct[index] |= prefix[bisect_right(starts, start - tick)]
        for a, b in self._links:
            if not direct[a] >> b & 1:
                direct[b] |= 1 << a
        return _close(direct) or executed


def _prefix_masks(indices: Iterable[int]) -> list[int]:
    masks = [0]
    for index in indices:
        masks.append(masks[-1] | 1 << index)
    return masks


def _bits(mask: int) -> Iterable[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _close(direct: Sequence[int]) -> list[int] | None:
    """The transitive closure of predecessor masks, or None if they close a cycle.

    A node is taken once all its direct predecessors are; the closure of what it takes is OR-ed in, nearest first, so
    that what a nearer one already covers is skipped.
    """
    n = len(direct)
    closed = [0] * n
    done = 0
    pending = sorted(range(n), key=lambda i: direct[i].bit_count())
    while pending:
        later = []
        for index in pending:
            mask = direct[index]
            if mask & ~done:
                later.append(index)
                continue
            whole = mask
            rest = mask
            while rest:
                top = rest.bit_length() - 1
                whole |= closed[top]
                rest &= ~(closed[top] | 1 << top)
            closed[index] = whole
            done |= 1 << index
        if len(later) == len(pending):
            return None
        pending = later
    return closed


def placements_from_mapping(intervals: Sequence[Mapping[Any, Interval]]) -> list[Placement]:
    """Placements of steps that are known by machine clocks alone.

    >>> order = Order(placements_from_mapping([{"h": Interval(0, 5)}, {"h": Interval(5, 9)}, {"h": Interval(4, 6)}]))
    >>> order.compare(0, 1), order.compare(0, 2), order.compare(1, 0)
    ('before', 'concurrent', 'after')
    """
    return [Placement(own=dict(i)) for i in intervals]

"""Distances between two steps: `30s`, `3 turns`, `5 calls`."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from tracegrade.checks.view import View
from tracegrade.model.trajectory import Relation
from tracegrade.model.values import Tri

_WRITTEN = re.compile(r"\A(\d+(?:\.\d+)?)\s*(ms|s|m|h|turns?|calls?)\Z")
_NS = {"ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}


class Distance(NamedTuple):
    """A bound on how far apart two steps may be.

    `calls`: at most `n` executed calls that are certainly between (0: directly after); `turns`: turns further on at
    most; `time`: nanoseconds from one's end to the other's start, on one clock.
    """

    unit: Literal["time", "turns", "calls"]
    n: int
    written: str


def parse_distance(value: Any) -> Distance:
    """A distance from its written form.

    >>> parse_distance("30s").n, parse_distance("3 turns").unit, parse_distance("1 call").unit
    (30000000000, 'turns', 'calls')
    """
    if isinstance(value, Distance):
        return value
    match = _WRITTEN.match(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"expected a distance such as `30s`, `3 turns` or `5 calls`, got {value!r}")
    number, unit = match.groups()
    if unit in _NS:
        whole, _, part = number.partition(".")
        scale = _NS[unit]
        return Distance("time", int(whole) * scale + int(part or 0) * scale // 10 ** len(part), value.strip())
    if "." in number:
        raise ValueError(f"`{unit}` are counted whole, got {value!r}")
    return Distance("turns" if unit.startswith("turn") else "calls", int(number), value.strip())


Within = Annotated[
    Distance,
    BeforeValidator(parse_distance),
    PlainSerializer(lambda d: d.written),
    WithJsonSchema({"type": "string", "pattern": r"^\d+(\.\d+)?\s*(ms|s|m|h|turns?|calls?)$"}),
]


def is_within(view: View, a: int, b: int, distance: Distance, relation: Relation) -> Tri:
    """Whether `b` comes after `a` by no more than the distance, given that it comes after."""
    if distance.unit == "time":
        gap = view.order.gap_ns(a, b)
        return None if gap is None else gap <= distance.n
    if distance.unit == "turns":
        one, other = view.steps[a].turn, view.steps[b].turn
        return None if one is None or other is None else abs(other - one) <= distance.n
    return _few_calls_between(view, a, b, distance.n, relation)


def _few_calls_between(view: View, a: int, b: int, most: int, relation: Relation) -> Tri:
    """Calls known to overlap either step are not between; calls whose place is undecided may be."""
    calls = view.executed_calls()
    certain, possible = 0, 0
    sure = set(calls.yes)
    for c in (*calls.prior_yes, *calls.prior_maybe, *calls.yes, *calls.maybe):
        if c in (a, b):
            continue
        after_a = view.before(a, c, relation)
        if after_a is False:
            continue
        before_b = view.before(c, b, relation)
        if before_b is False:
            continue
        if after_a and before_b and (c in sure or c in calls.prior_yes):
            certain += 1
            if certain > most:
                return False
        else:
            possible += 1
    if certain + possible > most or view.steps[a].prior:  # a history may lack the calls between
        return None
    return True


WITHIN_CODE = {"time": "order", "turns": "turns", "calls": "order"}

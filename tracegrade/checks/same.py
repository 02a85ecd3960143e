"""Whether two steps speak of the same thing: `same: [order_id]`, or `{first: result.id, then: args.order_id}`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from tracegrade.checks.match import resolve
from tracegrade.checks.view import View
from tracegrade.model.invariant import Strict, ValuePath, parse_value_path
from tracegrade.model.trajectory import Step
from tracegrade.model.values import JSON, UNKNOWN, Tri, canonical, holds_redaction, tri_and, tri_equal, tri_or

_STATE = {"args": "arguments_state", "result": "result_state", "text": "text_state"}
_FIELD = {"args": "arguments", "result": "result", "text": "text"}
CODE = {"args": "arguments", "result": "result", "text": "messages", "tool": "tool", "agent": "agent"}


def values_at(step: Step, path: tuple[str, ...]) -> list[JSON]:
    """The values that a rooted path (`args`, `result`, `text`, `tool`, `agent`) leads to in a step.

    `[UNKNOWN]` where the content was not captured or was cut.
    """
    root = path[0]
    if root in ("tool", "agent"):
        name = step.tool if root == "tool" else step.agent
        return [UNKNOWN if name is None else name]
    if getattr(step, _STATE[root]) != "captured":
        return [UNKNOWN]
    return resolve(getattr(step, _FIELD[root]), path[1:])


def equal_values(a: list[JSON], b: list[JSON]) -> Tri:
    """Whether some value of one step equals some value of the other; nothing equals a value that is not there."""
    return tri_or(None if x is UNKNOWN or y is UNKNOWN else tri_equal(x, y) for x in a for y in b)


class SamePair(Strict):
    """One pair of values that must be equal."""

    first: ValuePath = Field(description="Where the value stands in the first (earlier named) step.")
    then: ValuePath = Field(description="Where it stands in the other step.")

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        if isinstance(value, (str, list, tuple)):
            path = parse_value_path(value)
            return {"first": path, "then": path}
        if isinstance(value, dict) and "when" in value and "first" not in value:
            return {"first": value["when"], **{k: v for k, v in value.items() if k != "when"}}
        return value


def _pairs(value: Any) -> Any:
    return [value] if isinstance(value, (str, dict)) else value


_PAIR_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "properties": {k: {"type": ["string", "array"]} for k in ("first", "when", "then")},
            "required": ["then"],
            "additionalProperties": False,
        },
    ]
}
Same = Annotated[
    tuple[SamePair, ...],
    BeforeValidator(_pairs),
    Field(min_length=1),
    WithJsonSchema({"anyOf": [_PAIR_SCHEMA, {"type": "array", "items": _PAIR_SCHEMA}]}),
]
"""What must be equal in two steps: an argument's name, a list of them, or pairs of paths."""


def same_values(view: View, pairs: tuple[SamePair, ...], first: int, then: int) -> Tri:
    """Whether two steps agree on every pair of values."""
    a, b = view.steps[first], view.steps[then]
    return tri_and(equal_values(values_at(a, p.first), values_at(b, p.then)) for p in pairs)


class SameIndex:
    """Finds the steps that may agree with a given one, without comparing all with all.

    A step whose values are all plain falls into a bucket by their canonical text; the others (not captured, redacted,
    several values through `*`) are always looked at.
    """

    def __init__(self, view: View, pairs: tuple[SamePair, ...], candidates: tuple[int, ...], side: str) -> None:
        self._view, self._pairs, self._other = view, pairs, "then" if side == "first" else "first"
        self._buckets: dict[str, list[int]] = {}
        self._loose: list[int] = []
        self._all = candidates
        for index in candidates:
            key = self._key(index, side)
            if key is None:
                self._loose.append(index)
            else:
                self._buckets.setdefault(key, []).append(index)

    def _key(self, index: int, side: str) -> str | None:
        parts = []
        for pair in self._pairs:
            values = values_at(self._view.steps[index], getattr(pair, side))
            if len(values) != 1 or values[0] is UNKNOWN or holds_redaction(values[0]):
                return None
            parts.append(canonical(values[0]))
        return "\x00".join(parts)

    def near(self, index: int) -> list[int]:
        """The candidates that may agree with a step of the other side, in display order."""
        key = self._key(index, self._other)
        if key is None:
            return list(self._all)
        bucket = self._buckets.get(key, [])
        return sorted([*bucket, *self._loose]) if self._loose else bucket


def same_codes(view: View, pairs: tuple[SamePair, ...], first: int, then: int) -> list[str]:
    """Codes of the evidence that leaves the equality of two steps undecided."""
    codes = []
    for pair in pairs:
        for index, path in ((first, pair.first), (then, pair.then)):
            values = values_at(view.steps[index], path)
            if any(v is UNKNOWN or holds_redaction(v) for v in values):
                codes.append(CODE[path[0]])
    return list(dict.fromkeys(codes))


def describe_same(pairs: tuple[SamePair, ...]) -> str:
    """The pairs in words.

    >>> describe_same((SamePair.model_validate("order_id"),))
    'the same order_id'
    """
    told = []
    for pair in pairs:
        a, b = _told(pair.first), _told(pair.then)
        told.append(f"the same {a}" if pair.first == pair.then else f"{a} equal to {b}")
    return " and ".join(told)


def _told(path: tuple[str, ...]) -> str:
    return ".".join(path[1:] if path[0] == "args" else path)

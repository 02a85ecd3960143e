"""JSON values, three-valued logic, and what counts as a value that is not there.

Every comparison of recorded values in the product goes through this module, so that `1 = 1.0`, `"1" ≠ 1`,
`true ≠ 1` and `null ≠ missing` hold in rules, in matching and in snapshots alike (DESIGN §5).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import orjson

JSON: TypeAlias = Any
"""None, bool, int, float, str, list of JSON or dict of str to JSON."""

Tri: TypeAlias = bool | None
"""Kleene's three values: True, False, None for unknown."""


class _Missing:
    """The type of `MISSING`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"

    def __reduce__(self) -> str:
        return "MISSING"  # the one of this module, in another process too

    def __bool__(self) -> bool:
        return False


MISSING: Final = _Missing()
"""A path that leads nowhere: different from null."""


class _Unknown:
    """The type of `UNKNOWN`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __reduce__(self) -> str:
        return "UNKNOWN"  # the one of this module, in another process too

    def __bool__(self) -> bool:
        return False


UNKNOWN: Final = _Unknown()
"""A value that was not captured, was cut, or was redacted: it may be anything."""


def tri_not(a: Tri) -> Tri:
    """Kleene's negation."""
    return None if a is None else not a


def tri_and(values: Iterable[Tri]) -> Tri:
    """Kleene's conjunction: False if any is False, else None if any is unknown, else True.

    >>> tri_and([True, None]), tri_and([None, False]), tri_and([])
    (None, False, True)
    """
    result: Tri = True
    for value in values:
        if value is False:
            return False
        if value is None:
            result = None
    return result


def tri_or(values: Iterable[Tri]) -> Tri:
    """Kleene's disjunction: True if any is True, else None if any is unknown, else False.

    >>> tri_or([False, None]), tri_or([None, True]), tri_or([])
    (None, True, False)
    """
    result: Tri = False
    for value in values:
        if value is True:
            return True
        if value is None:
            result = None
    return result


REDACTED_TEXTS: Final = frozenset(
    {"__REDACTED__", "<REDACTED>", "[REDACTED]", "REDACTED", "<redacted>", "[redacted]", "<elided>", "N/A", "***"}
)
"""Texts that instrumentations write where a value was taken out (DIALECTS §5.15)."""

PSEUDONYM: Final = re.compile(r"\A⟦[a-z_]+:[0-9a-z]+⟧\Z")
"""What `tracegrade redact` writes: equal values get equal placeholders, so they compare with each other only."""


def is_redacted(value: JSON) -> bool:
    """Whether a text stands for a value that was taken out and may have been anything."""
    return isinstance(value, str) and (value in REDACTED_TEXTS or "⟦" in value)


def is_pseudonym(value: JSON) -> bool:
    """Whether a text is a consistent placeholder: equal to another if and only if the values were."""
    return isinstance(value, str) and PSEUDONYM.match(value) is not None


def json_equal(a: JSON, b: JSON) -> bool:
    """Equality of JSON values: numbers as numbers, never with text or booleans; lists in order.

    >>> json_equal(1, 1.0), json_equal("1", 1), json_equal(True, 1), json_equal({"a": [1]}, {"a": [1.0]})
    (True, False, False, True)
    """
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return a == b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(json_equal(v, b[k]) for k, v in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(json_equal(x, y) for x, y in zip(a, b, strict=True))
    return type(a) is type(b) and bool(a == b)


def tri_equal(a: JSON, b: JSON) -> Tri:
    """`json_equal` where a value may have been taken out: unknown unless the rest decides.

    Two consistent placeholders are equal if and only if they are the same; any other redacted text may have been
    anything.

    >>> tri_equal([1, "[REDACTED]"], [1, "x"]), tri_equal([2, "[REDACTED]"], [1, "x"]), tri_equal("⟦id:a⟧", "⟦id:a⟧")
    (None, False, True)
    """
    if isinstance(a, str) or isinstance(b, str):
        if is_redacted(a) or is_redacted(b):
            return a == b if is_pseudonym(a) and is_pseudonym(b) else None
        return json_equal(a, b)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and tri_and(tri_equal(v, b[k]) for k, v in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and tri_and(tri_equal(x, y) for x, y in zip(a, b, strict=True))
    return json_equal(a, b)


def holds_redaction(value: JSON) -> bool:
    """Whether a value was taken out anywhere inside, consistent placeholders included."""
    if isinstance(value, str):
        return is_redacted(value)
    if isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            if isinstance(inner, (str, dict, list)) and holds_redaction(inner):
                return True
    return False


def canonical(value: JSON) -> str:
    """A text equal for two values if and only if `json_equal` holds for them.

    Keys are sorted; 1 and 1.0 give the same text; true, "true" and 1 differ.

    >>> canonical({"b": 1.0, "a": [True, None]})
    '{"a":[true,null],"b":1}'
    """
    try:
        # Most arguments are flat and without fractions: these need no copy.
        flat = type(value) is dict and _EXACT.issuperset(map(type, value.values()))
        text = orjson.dumps(value if flat else _integral(value), option=orjson.OPT_SORT_KEYS).decode()
    except (TypeError, orjson.JSONEncodeError):
        return _canonical_slow(value)
    return text


_EXACT = frozenset({str, int, bool, type(None)})


def _integral(value: JSON) -> JSON:
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, dict):
        return {k: _integral(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_integral(v) for v in value]
    return value


def _canonical_slow(value: JSON) -> str:
    """The same form for what orjson refuses: integers beyond 64 bits, lone surrogates."""
    import json

    return json.dumps(_integral(value), sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def json_type(value: JSON) -> str:
    """The JSON Schema name of the value's type; a float with integral value is an `integer` too (2020-12 §6.1.1).

    >>> [json_type(v) for v in (None, True, 1, 1.5, "", [], {})]
    ['null', 'boolean', 'integer', 'number', 'string', 'array', 'object']
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "integer" if math.isfinite(value) and value.is_integer() else "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"

"""What a matcher says of a value: true, false, or unknown where the value was not captured or was taken out."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from tracegrade.model.invariant import Matcher, linear_search
from tracegrade.model.values import (
    JSON,
    UNKNOWN,
    Tri,
    is_redacted,
    json_type,
    tri_and,
    tri_equal,
    tri_not,
    tri_or,
)

ValueTest = Callable[[JSON], Tri]


def resolve(value: JSON, path: Sequence[str]) -> list[JSON]:
    """Every value that a path leads to: none where it leads nowhere, several through `*`.

    A part that was taken out may have held anything, so what lies below it is `UNKNOWN`; so is what lies below a text
    that writes a structure in another notation than JSON.

    >>> resolve({"items": [{"id": 1}, {"id": 2}]}, ("items", "*", "id")), resolve({"a": None}, ("b",))
    ([1, 2], [])
    """
    found = [value]
    for part in path:
        below: list[JSON] = []
        for item in found:
            if item is UNKNOWN or _opaque(item):
                below.append(UNKNOWN)
            elif isinstance(item, dict):
                if part in item:
                    below.append(item[part])
                elif part == "*":
                    below.extend(item.values())
            elif isinstance(item, list):
                if part == "*":
                    below.extend(item)
                elif part.isdecimal() and int(part) < len(item):
                    below.append(item[int(part)])
        found = below
        if not found:
            break
    return found


_CLOSING = {"{": "}", "[": "]", "(": ")", "<": ">"}


def _opaque(value: JSON) -> bool:
    """Whether a path may lead somewhere inside a text: it was taken out, or is a structure's repr or markup.

    >>> _opaque("{'total': 5}"), _opaque("Order(total=5)"), _opaque("total is 5")
    (True, True, False)
    """
    if not isinstance(value, str) or is_redacted(value):
        return isinstance(value, str)
    text = value.strip()
    name, bracket, _ = text[:100].partition("(")
    return bool(text) and (
        text[-1] == _CLOSING.get(text[0])
        or (bool(bracket) and text[-1] == ")" and name.replace(".", "").isidentifier())
    )


def compile_matcher(matcher: Matcher) -> ValueTest:
    """The test of one value that is there."""
    tests = [_OPERATORS[name](getattr(matcher, name)) for name in sorted(matcher.model_fields_set)]
    if len(tests) == 1:
        return tests[0]
    return lambda value: tri_and(test(value) for test in tests)


def compile_path(path: Sequence[str], matcher: Matcher) -> ValueTest:
    """The test of what a path leads to inside a value; a missing path satisfies only `exists: false`."""
    test = compile_matcher(matcher)
    if_missing = matcher.exists is False and matcher.model_fields_set == {"exists"}
    if len(path) == 1 and path[0] != "*" and not path[0].isdecimal():
        key = path[0]

        def plain(value: JSON) -> Tri:
            if type(value) is dict:
                return test(value[key]) if key in value else if_missing
            return None if _opaque(value) else if_missing

        return plain

    def general(value: JSON) -> Tri:
        found = resolve(value, path)
        return tri_or(test(v) for v in found) if found else if_missing

    return general


def _known(test: Callable[[JSON], bool]) -> ValueTest:
    """A test that cannot say anything of a value that was taken out."""
    return lambda value: None if value is UNKNOWN or is_redacted(value) else test(value)


def _eq(expected: JSON) -> ValueTest:
    return lambda value: None if value is UNKNOWN else tri_equal(value, expected)


def _ne(expected: JSON) -> ValueTest:
    return lambda value: None if value is UNKNOWN else tri_not(tri_equal(value, expected))


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[JSON], ValueTest]:
    def build(bound: JSON) -> ValueTest:
        if isinstance(bound, str):
            return _known(lambda value: isinstance(value, str) and compare(value, bound))
        return _known(
            lambda value: isinstance(value, (int, float)) and not isinstance(value, bool) and compare(value, bound)
        )

    return build


def _in(options: Sequence[JSON]) -> ValueTest:
    return lambda value: None if value is UNKNOWN else tri_or(tri_equal(value, o) for o in options)


def _not_in(options: Sequence[JSON]) -> ValueTest:
    inside = _in(options)
    return lambda value: tri_not(inside(value))


def _matches(pattern: str) -> ValueTest:
    found = linear_search(pattern)
    return _known(lambda value: isinstance(value, str) and found(value))


def _contains(needle: JSON) -> ValueTest:
    def test(value: JSON) -> Tri:
        if value is UNKNOWN or is_redacted(value):
            return None
        if isinstance(value, str):
            return isinstance(needle, str) and needle in value
        if isinstance(value, list):
            return tri_or(tri_equal(v, needle) for v in value)
        return isinstance(value, dict) and isinstance(needle, str) and needle in value

    return test


def _starts_with(prefix: str) -> ValueTest:
    return _known(lambda value: isinstance(value, str) and value.startswith(prefix))


def _exists(wanted: bool) -> ValueTest:
    return lambda value: None if value is UNKNOWN else wanted


def _type(names: Sequence[str]) -> ValueTest:
    def test(value: JSON) -> bool:
        name = json_type(value)
        return name in names or (name == "integer" and "number" in names)

    return _known(test)


def _length(matcher: Matcher) -> ValueTest:
    inner = compile_matcher(matcher)

    def test(value: JSON) -> Tri:
        if value is UNKNOWN or is_redacted(value):
            return None
        return inner(len(value)) if isinstance(value, (str, list, dict)) else False

    return test


_OPERATORS: dict[str, Callable[[Any], ValueTest]] = {
    "eq": _eq,
    "ne": _ne,
    "gt": _ordered(operator.gt),
    "ge": _ordered(operator.ge),
    "lt": _ordered(operator.lt),
    "le": _ordered(operator.le),
    "in_": _in,
    "not_in": _not_in,
    "matches": _matches,
    "contains": _contains,
    "starts_with": _starts_with,
    "exists": _exists,
    "type": _type,
    "length": _length,
}

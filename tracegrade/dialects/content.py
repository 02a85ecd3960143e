"""Recorded values as they are found: whole, cut, unreadable or missing (DESIGN §4; DIALECTS §4, §5.13, §5.15)."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

import orjson

from tracegrade.model.trajectory import ContentState
from tracegrade.model.values import JSON, MISSING, REDACTED_TEXTS


class Content(NamedTuple):
    """One recorded value; `value` holds only while `state` is `captured`, `raw` is the text that could not be read."""

    state: ContentState
    value: JSON = None
    raw: str | None = None


_LONG_DIGITS = re.compile(r"\d{19}")
NOT_CAPTURED = Content("not_captured")
RANK: dict[ContentState, int] = {"captured": 0, "truncated": 1, "unparsed": 2, "not_captured": 3}


def best(contents: list[tuple[Content, str]]) -> tuple[Content, str]:
    """The most whole of several records of one value, earliest first among equals, with its source."""
    return min(contents, key=lambda c: RANK[c[0].state], default=(NOT_CAPTURED, ""))


def loads(text: str) -> JSON:
    """Parses JSON strictly, integers of any size exact.

    Raises:
        ValueError: the text is not one JSON document.
    """
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        # orjson refuses integers beyond 64 bits and lone surrogates, which the standard library reads.
        return json.loads(text, parse_constant=_no_constant)
    # orjson turns integers beyond 64 bits into floats without a word.
    if _LONG_DIGITS.search(text) is not None:
        return json.loads(text, parse_constant=_no_constant)
    return value


def _no_constant(name: str) -> JSON:
    msg = f"{name} is no JSON"
    raise ValueError(msg)


def is_cut(text: str) -> bool:
    """Whether a text that is not JSON is the beginning of a JSON object, array or string.

    >>> is_cut('{"a": "b'), is_cut("{'a': 1}"), is_cut("plain")
    (True, False, False)
    """
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        if not text.lstrip().startswith(("{", "[", '"')):
            return False
        rest = text[error.pos :].strip()
        half_word = any(word.startswith(rest) for word in ("true", "false", "null", "-"))
        half_escape = error.msg.startswith("Invalid \\") and len(rest) <= 6
        return half_word or half_escape or error.msg.startswith("Unterminated string")
    except (RecursionError, ValueError):  # too deep, or an integer of more digits than Python reads
        return False
    return False


def arguments_content(value: JSON) -> Content:
    """Arguments as recorded: any JSON; a text is read as JSON, and once more if it holds JSON text again.

    A text that is no JSON stays raw: a Python repr is not guessed at (its quotes are not JSON's).

    >>> arguments_content('{"a": 1}').value, arguments_content("{'a': 1}").state, arguments_content('{"a": ').state
    ({'a': 1}, 'unparsed', 'truncated')
    """
    if value is MISSING or value is None:
        return NOT_CAPTURED
    if not isinstance(value, str):
        return Content("captured", value)
    if value in REDACTED_TEXTS or not value:
        return NOT_CAPTURED
    try:
        parsed = loads(value)
        if isinstance(parsed, str):
            if parsed in REDACTED_TEXTS:
                return NOT_CAPTURED
            try:
                inner = loads(parsed)
            except ValueError:
                return Content("truncated" if is_cut(parsed) else "captured", parsed, parsed)
            return Content("captured", inner)
    except (ValueError, RecursionError):
        if "⟦" in value:
            return Content("captured", value)
        return Content("truncated" if is_cut(value) else "unparsed", None, value)
    return Content("captured", parsed)


def result_content(value: JSON) -> Content:
    """A result as recorded: parsed where its text is a JSON object or array, else the text.

    >>> result_content('{"a": 1}').value, result_content("4").value, result_content('"done"').value
    ({'a': 1}, '4', 'done')
    """
    if value is MISSING:
        return NOT_CAPTURED
    if not isinstance(value, str):
        return NOT_CAPTURED if value is None else Content("captured", value)
    if value in REDACTED_TEXTS:
        return NOT_CAPTURED
    head = value.lstrip()[:1]
    if head in ("{", "[", '"'):
        try:
            parsed = loads(value)
        except (ValueError, RecursionError):
            return Content("truncated", None, value) if is_cut(value) else Content("captured", value)
        if isinstance(parsed, str):
            inner = parsed.lstrip()[:1]
            if inner in ("{", "["):
                try:
                    return Content("captured", loads(parsed))
                except (ValueError, RecursionError):
                    return Content("captured", parsed)
        return Content("captured", parsed)
    return Content("captured", value)

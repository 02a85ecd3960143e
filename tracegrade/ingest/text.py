"""Text and attribute values as the store keeps them: valid Unicode without NUL, JSON that any reader can parse.

Numbers that JSON cannot write become the texts `NaN`, `Infinity` and `-Infinity`; bytes become base64 text, as in
OTLP/JSON.
"""

from __future__ import annotations

import math
import re
from typing import Any

import orjson

from tracegrade.model.values import JSON

_BAD = re.compile("[\x00\ud800-\udfff]")
REPLACEMENT = "\ufffd"
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


def clean(text: str) -> str:
    """Replace NUL and lone surrogates by U+FFFD.

    >>> clean("a\\x00b")
    'a\ufffdb'
    """
    return _BAD.sub(REPLACEMENT, text)


def decode(raw: bytes) -> str:
    """Text of bytes that should be UTF-8: what is not becomes U+FFFD, one for an encoded lone surrogate."""
    try:
        text = str(raw, "utf-8")
    except UnicodeDecodeError:
        try:
            text = str(raw, "utf-8", "surrogatepass")
        except UnicodeDecodeError:
            text = str(raw, "utf-8", "replace")
    return clean(text)


def cut_utf8(text: str, limit: int) -> str:
    """The longest prefix of at most `limit` UTF-8 bytes, cut at a character.

    >>> cut_utf8("añb", 2)
    'a'
    """
    return text.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")


def number(value: float) -> JSON:
    """A float, or its name where JSON has no number for it."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def dumps(value: JSON) -> bytes:
    """JSON as compact UTF-8 bytes; integers of any size stay exact."""
    try:
        return orjson.dumps(value)
    except TypeError:  # an integer beyond 64 bits, or a lone surrogate
        import json

        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def printable(value: Any, limit: int = 60) -> str:
    """A value for a message: one line, shortened, control characters escaped."""
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"

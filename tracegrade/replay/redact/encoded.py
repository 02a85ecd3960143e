"""Looks behind encodings that hide a value from patterns: base64, percent signs, JSON and HTML escapes."""

from __future__ import annotations

import base64
import binascii
import html
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import unquote

from tracegrade.replay.redact.detect import Hit

MAX_LAYERS: Final = 3
"""How many encodings inside each other are undone."""
MAX_UNPACKED: Final = 16 << 20
"""Bytes of a compressed part that are looked at."""

_BASE64 = re.compile(r"[A-Za-z0-9+/_\-]{16,}(?:\r?\n[A-Za-z0-9+/_\-]{4,})*={0,2}")
_RUN = re.compile(r"[^\s\"'<>]+")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|&#?[0-9A-Za-z]{2,8};")
_CODE_POINT = re.compile(r"\\+(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2}))")

Finder = Callable[[str], bool]
"""Whether a decoded text holds something to take out."""


def encoded_hits(text: str, holds_secret: Finder) -> Iterator[Hit]:
    """The encoded parts of a text that hold a secret once decoded, each taken whole: a part changed inside would
    look like another value instead of like a missing one.

    Args:
        text: any text.
        holds_secret: looks at a decoded part, deeper encodings included.
    """
    if len(text) >= 16:
        for match in _BASE64.finditer(text):
            if any(map(holds_secret, _from_base64(match.group()))):
                yield Hit(match.start(), match.end(), "base64")
    if "%" in text or "\\" in text or "&" in text:
        for match in _RUN.finditer(text):
            run = match.group()
            if _ESCAPE.search(run) is None:
                continue
            decoded = _unescape(run)
            if decoded != run and holds_secret(decoded):
                yield Hit(match.start(), match.end(), "encoded")


def _unescape(text: str) -> str:
    text = _CODE_POINT.sub(lambda m: chr(int(m.group(1) or m.group(2), 16)), text)
    return html.unescape(unquote(text, errors="replace"))


def _from_base64(text: str) -> Iterator[str]:
    """What a run may decode to: as a whole, and line by line where lines of words stand before it."""
    lines = text.split("\n")
    for run in {"".join(line.strip("\r") for line in lines), *lines}:
        data = _decode(run)
        if data is None:
            continue
        if data[:2] in (b"\x1f\x8b", b"x\x9c", b"x\x01", b"x\xda"):
            data = _inflate(data)
        decoded = data.decode("utf-8", "replace")
        if decoded.isascii() or decoded.count("\ufffd") < len(decoded) // 2:
            yield decoded


def _decode(run: str) -> bytes | None:
    bare = run.strip("\r").rstrip("=")
    if len(bare) % 4 == 1:
        bare = bare[:-1]
    try:
        return base64.b64decode(bare + "=" * (-len(bare) % 4), altchars=b"-_" if "-" in bare or "_" in bare else None)
    except (binascii.Error, ValueError):
        return None


def _inflate(data: bytes) -> bytes:
    try:
        return zlib.decompressobj(wbits=47).decompress(data, MAX_UNPACKED)
    except zlib.error:
        return data

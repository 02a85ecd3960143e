"""Makes text from a trace safe to show: control characters become visible text."""

from __future__ import annotations

import re

UNPRINTABLE = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # C0, DEL, C1: terminal escape codes
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidi controls: text that reads otherwise than it is
    "\u200b\u2028\u2029\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb"  # invisible, or a line end to some programs
    "\U000e0000-\U000e007f"  # tag characters: whole invisible sentences
    "\ud800-\udfff"  # lone surrogates: cannot be encoded
    "]"
)
"""What `printable` writes out."""

_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str, *, newlines: bool = False) -> str:
    r"""The text with every control, bidi and invisible character written out, so that it cannot act on a terminal.

    Args:
        text: any text, such as a tool name or a message from a trace.
        newlines: leave line feeds as they are, for text of several lines.

    Returns:
        A text of printable characters that can be encoded as UTF-8; printable text comes back unchanged.

    >>> printable("a\x1b[31mred\nb")
    'a\\x1b[31mred\\nb'
    >>> printable("one\ntwo\x9b", newlines=True)
    'one\ntwo\\x9b'
    """
    if text.isascii() and text.isprintable():
        return text
    if newlines:
        return "\n".join(UNPRINTABLE.sub(_escape, line) for line in text.split("\n"))
    return UNPRINTABLE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    code = ord(char)
    if char in _NAMED:
        return _NAMED[char]
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"

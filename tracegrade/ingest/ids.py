"""Trace and span ids in every spelling that files have, as lower-case hex.

Hex (any case, with or without `0x`), base64 of the bytes (protobuf's own JSON), base64 of the hex text, and hex text
that a base64 reader mistook for base64 (24 and 12 bytes) all give the same id.
"""

from __future__ import annotations

import base64
import binascii
import re

_HEX = re.compile(r"\A[0-9a-f]+\Z")


def hex_id(raw: object, digits: int) -> str | None:
    """The id that a text holds, as `digits` hex digits.

    Args:
        raw: the value as found.
        digits: 32 for a trace id, 16 for a span id.

    Returns:
        The id, or None where there is none: empty, all zeros, or of another length.

    >>> hex_id("cezTkFMrcsMZKvx+gk2NnQ==", 32), hex_id("30F55B20C91FE7CC", 16), hex_id("", 16), hex_id("12", 16)
    ('71ecd390532b72c3192afc7e824d8d9d', '30f55b20c91fe7cc', None, None)
    """
    if not isinstance(raw, str):
        return None
    text = raw.lower()
    if len(text) == digits + 2 and text.startswith("0x"):
        text = text[2:]
    if len(text) == digits and _HEX.match(text):
        return text if text.strip("0") else None
    if len(text) == digits * 3 // 2 and _HEX.match(text):
        return bytes_id(bytes.fromhex(text), digits)
    try:
        decoded = base64.b64decode(raw.replace("-", "+").replace("_", "/") + "=" * (-len(raw) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
    return bytes_id(decoded, digits)


def bytes_id(raw: bytes, digits: int) -> str | None:
    """The id that bytes hold: 16 or 8 bytes, or the forms that a wrong reader made of them.

    >>> bytes_id(bytes(8), 16), bytes_id(b"30f55b20c91fe7cc", 16)
    (None, '30f55b20c91fe7cc')
    """
    size = len(raw)
    if size * 2 == digits:
        return raw.hex() if any(raw) else None
    if size == digits:  # the hex text itself
        text = raw.decode("ascii", "replace").lower()
    elif size * 4 == digits * 3:  # hex text once read as base64
        text = base64.b64encode(raw).decode()
    else:
        return None
    return text if len(text) == digits and _HEX.match(text) and text.strip("0") else None

"""Attribute values out of protobuf: JSON text straight from the bytes where a value has its usual shape.

Short attributes that repeat (operation, model, tool names) are decoded once. Whatever is unusual (a broken text, a
nested value, a field twice) goes a slower way with the same result.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

import orjson
from google.protobuf.message import DecodeError

from tracegrade.ingest import thin, wire
from tracegrade.ingest.options import ReadOptions
from tracegrade.ingest.text import INT64_MAX, cut_utf8, decode, number
from tracegrade.model.values import JSON

_SHORT: Final = 96
_MEMO_SIZE: Final = 50_000
_STRING, _BOOL, _INT, _DOUBLE = 0x0A, 0x10, 0x18, 0x21

Warn = Callable[[str, str, str | None], None]
"""Takes place, reason and span id of what was taken with a loss."""


class TooDeep(ValueError):
    """A value is nested deeper than the limit."""


class ProtoValues:
    """Decodes attributes. `memo` maps the bytes of a short KeyValue to its JSON text.

    Args:
        options: limits.
        warn: takes what was lost.
    """

    def __init__(self, options: ReadOptions, warn: Warn) -> None:
        self.memo: dict[bytes, bytes] = {}
        self._keys: dict[bytes, bytes] = {}
        self._options = options
        self._max_value = options.max_value_bytes
        self._warn = warn
        self._any = thin.message("common.v1.AnyValue")
        self._key_value = thin.message("common.v1.KeyValue")

    def fragment(self, kv: bytes) -> bytes:
        """`"key":value` of one KeyValue, for the usual shapes: both lengths and nothing after the value.

        Raises:
            ValueError, IndexError: an unusual shape; the exact way decides.
        """
        at = kv[1] + 2
        head = kv[:at]
        key = self._keys.get(head) or self._key(head)
        if kv[at] != 0x12:
            raise ValueError
        left = len(kv) - at - 2
        if left > 127:
            left -= 1
            at += 1
            if left > 16_383 or kv[at] + (kv[at + 1] << 7) - 128 != left:
                left = self._long(kv, at, left)
                at = len(kv) - left - 2
        elif kv[at + 1] != left:
            raise ValueError
        at += 2
        if left == 0 or kv[at] != _STRING:
            fragment = key + self._scalar(kv, at)
        else:
            left -= 2
            if left > 127:
                left -= 1
                at += 1
                if left > 16_383 or kv[at] + (kv[at + 1] << 7) - 128 != left:
                    left = self._long(kv, at, left)
                    at = len(kv) - left - 2
            elif kv[at + 1] != left:
                raise ValueError
            raw = kv[at + 2 :]
            if b"\x00" in raw or left > self._max_value:
                raise ValueError
            fragment = key + orjson.dumps(str(raw, "utf-8"))
        if len(kv) <= _SHORT:
            remember(self.memo, kv, fragment)
        return fragment

    @staticmethod
    def _long(kv: bytes, at: int, left: int) -> int:
        """The length that stands at `at` in three bytes or more, checked against what is left."""
        length, start = wire.varint(kv, at, len(kv))
        if start + length != len(kv):
            raise ValueError
        return length

    def _key(self, head: bytes) -> bytes:
        if head[0] != 0x0A or len(head) != head[1] + 2 or head[1] > 127 or b"\x00" in head[2:]:
            raise ValueError
        key = orjson.dumps(str(head[2:], "utf-8")) + b":"
        remember(self._keys, head, key)
        return key

    def _scalar(self, kv: bytes, at: int) -> bytes:
        end = len(kv)
        if at == end:
            return b"null"
        tag = kv[at]
        if tag == _INT:
            value, at = wire.varint(kv, at + 1, end)
            if at != end:
                raise ValueError
            value &= 0xFFFFFFFFFFFFFFFF
            return b"%d" % (value if value <= INT64_MAX else value - 2**64)
        if tag == _BOOL and at + 2 == end:
            return b"true" if kv[at + 1] else b"false"
        if tag == _DOUBLE and at + 9 == end:
            return orjson.dumps(number(struct.unpack_from("<d", kv, at + 1)[0]))
        return orjson.dumps(self.any_value(kv[at:], 0))

    def exact(self, raw: Any, where: str, span_id: str | None) -> tuple[dict[str, JSON], int]:
        """Attributes one by one, with every oddity handled; the second value counts those that were lost."""
        values: dict[str, JSON] = {}
        lost = 0
        for kv in raw:
            key = "?"
            try:
                pair = self._key_value.FromString(kv)
                key = decode(pair.key)
                values[key] = self.any_value(pair.value, 0)
            except TooDeep:
                reason = f"attribute {key!r} is nested deeper than {self._options.max_depth} levels and was dropped"
            except DecodeError:
                reason = f"attribute {key!r} is malformed and was dropped"
            else:
                cut = self.cut(values[key])
                if cut is None:
                    continue
                values[key], size = cut
                reason = f"attribute {key!r} of {size} bytes was cut to {self._options.max_value_bytes}"
            lost += 1
            self._warn(where, reason, span_id)
        return values, lost

    def cut(self, value: JSON) -> tuple[str, int] | None:
        """The shortened text and the true size of a text over the limit, else None."""
        if not isinstance(value, str) or len(value) * 4 <= self._options.max_value_bytes:
            return None
        size = len(value.encode("utf-8", "replace"))
        limit = self._options.max_value_bytes
        return None if size <= limit else (cut_utf8(value, limit), size)

    def any_value(self, raw: bytes, depth: int) -> JSON:
        """The value of an AnyValue message, `depth` levels below an attribute.

        Raises:
            TooDeep: it is nested beyond the limit.
            DecodeError: it is malformed.
        """
        value = self._any.FromString(raw)
        kind = value.WhichOneof("value")
        if kind is None:
            return None
        if kind == "string_value":
            return decode(value.string_value)
        if kind == "bytes_value":
            import base64

            return base64.b64encode(value.bytes_value).decode()
        if kind == "double_value":
            return number(value.double_value)
        if kind == "array_value":
            if depth >= self._options.max_depth:
                raise TooDeep
            return [self.any_value(item, depth + 1) for item in value.array_value.values]
        if kind == "kvlist_value":
            if depth >= self._options.max_depth:
                raise TooDeep
            pairs = (self._key_value.FromString(item) for item in value.kvlist_value.values)
            return {decode(p.key): self.any_value(p.value, depth + 1) for p in pairs}
        return getattr(value, kind)


def remember(memo: dict[bytes, Any], key: bytes, value: Any) -> None:
    """Keep a decoded value; a memo that has grown large starts anew."""
    if len(memo) >= _MEMO_SIZE:
        memo.clear()
    memo[key] = value

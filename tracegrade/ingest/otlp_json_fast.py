"""The usual shape of OTLP/JSON → rows, decoded with a schema instead of into dictionaries.

Anything else (another spelling, an unknown field, an odd id or time, NUL in a text) is declined, and `otlp_json` reads
the whole document instead: it is the oracle in tests.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import orjson
from msgspec import Raw, Struct

from tracegrade.ingest.intake import Intake, SpanRow
from tracegrade.ingest.options import ReadOptions
from tracegrade.ingest.otlp_json import JsonDecoder
from tracegrade.ingest.text import INT64_MAX, INT64_MIN
from tracegrade.ingest.text import number as finite
from tracegrade.model.values import JSON

_NO_TRACE, _NO_SPAN = "0" * 32, "0" * 16
_MEMO_SIZE: Final = 20_000
_NOTHING: Final = Raw()
"""A field that is not there."""


class _Value(Struct, forbid_unknown_fields=True, gc=False):
    stringValue: str | None = None
    intValue: int | str | None = None
    boolValue: bool | None = None
    doubleValue: float | str | None = None
    arrayValue: Raw = _NOTHING
    kvlistValue: Raw = _NOTHING
    bytesValue: Raw = _NOTHING


class _Attribute(Struct, forbid_unknown_fields=True, gc=False):
    key: str
    value: _Value


class _Span(Struct, forbid_unknown_fields=True, gc=False):
    traceId: str
    spanId: str
    startTimeUnixNano: int | str
    parentSpanId: str = ""
    name: str = ""
    kind: int | str = 0
    flags: int = 0
    traceState: str = ""
    endTimeUnixNano: int | str = 0
    attributes: list[_Attribute] = msgspec.field(default_factory=list)
    events: Raw = _NOTHING
    links: Raw = _NOTHING
    status: Raw = _NOTHING
    droppedAttributesCount: int = 0
    droppedEventsCount: int = 0
    droppedLinksCount: int = 0


class _ScopeSpans(Struct, forbid_unknown_fields=True):
    spans: list[_Span]
    scope: Raw = _NOTHING
    schemaUrl: str = ""


class _ResourceSpans(Struct, forbid_unknown_fields=True):
    scopeSpans: list[_ScopeSpans]
    resource: Raw = _NOTHING
    schemaUrl: str = ""


class _Request(Struct, forbid_unknown_fields=True):
    resourceSpans: list[_ResourceSpans]


class _Odd(Exception):
    """The document has something that the exact reader has to look at."""


class FastJsonDecoder:
    """Decodes usual documents of one input into its intake.

    Args:
        intake: takes rows.
        options: limits.
        exact: decodes the parts that are rare.
    """

    def __init__(self, intake: Intake, options: ReadOptions, exact: JsonDecoder) -> None:
        self._intake = intake
        self._max_value = options.max_value_bytes
        self._exact = exact
        self._decoder = msgspec.json.Decoder(_Request)
        self._ids: dict[str, str] = {}
        self._keys: set[str] = set()
        self._statuses: dict[bytes, tuple[int, str]] = {}

    def take(self, text: bytes, where: str) -> bool:
        """Take one document.

        Returns:
            Whether it was taken; if not, nothing of it was.
        """
        if not text.startswith(b'{"resourceSpans"'):
            return False
        try:
            request = self._decoder.decode(text)
            rows: list[SpanRow] = []
            attributes: list[bytes] = []
            for resource_spans in request.resourceSpans:
                resource = _loads(resource_spans.resource)
                for scope_spans in resource_spans.scopeSpans:
                    url = scope_spans.schemaUrl or resource_spans.schemaUrl
                    origin = self._exact.origin(resource, _loads(scope_spans.scope), url, where)
                    for span in scope_spans.spans:
                        attributes.append(self._attributes(span.attributes))
                        rows.append(self._row(span, origin, where))
        except (msgspec.MsgspecError, orjson.JSONDecodeError, UnicodeDecodeError, ValueError, RecursionError, _Odd):
            return False
        self._intake.add_spans(rows, attributes)
        return True

    def _attributes(self, found: list[_Attribute]) -> bytes:
        """The inside of the JSON object of a span's attributes."""
        values: dict[str, JSON] = {}
        for attribute in found:
            key, value = attribute.key, attribute.value
            if key not in self._keys:
                self._check_key(key)
            text = value.stringValue
            if text is None:
                values[key] = self._other(value)
            elif "\x00" in text or len(text) * 4 > self._max_value:
                raise _Odd
            else:
                values[key] = text
        return orjson.dumps(values)[1:-1]

    def _check_key(self, key: str) -> None:
        if "\x00" in key:
            raise _Odd
        if len(self._keys) >= _MEMO_SIZE:
            self._keys.clear()
        self._keys.add(key)

    def _other(self, value: _Value) -> JSON:
        """A value that is no text."""
        number = value.intValue
        if number is not None:
            if number.__class__ is str and not number.removeprefix("-").isdigit():
                raise _Odd
            number = int(number)
            if not INT64_MIN <= number <= INT64_MAX:
                raise _Odd
            return number
        if value.boolValue is not None:
            return value.boolValue
        if value.doubleValue is not None:
            return finite(float(value.doubleValue))
        for name in ("arrayValue", "kvlistValue", "bytesValue"):
            raw = getattr(value, name)
            if raw is not _NOTHING:
                text = bytes(raw)
                if b"\\u0000" in text or len(text) > self._max_value:
                    raise _Odd
                return self._exact.any_value({name: orjson.loads(text)}, 0)
        return None

    def _row(self, span: _Span, origin: int, where: str) -> SpanRow:
        start, end = int(span.startTimeUnixNano), int(span.endTimeUnixNano or 0)
        trace_id, own, parent = span.traceId, span.spanId, span.parentSpanId
        trace_id = self._ids.get(trace_id) or self._id(trace_id, 16, _NO_TRACE)
        span_id = bytes.fromhex(own).hex()
        if len(own) != 16 or len(span_id) != 16 or span_id == _NO_SPAN:
            raise _Odd
        parent_id = (self._ids.get(parent) or self._id(parent, 8, _NO_SPAN)) if parent else None
        name, state = span.name, span.traceState
        if not 0 <= start <= INT64_MAX or not 0 <= end <= INT64_MAX or "\x00" in name or "\x00" in state:
            raise _Odd
        kind = span.kind
        if kind.__class__ is not int or not 0 <= kind <= 5:
            raise _Odd
        code, message = self._status(span.status) if span.status is not _NOTHING else (0, "")
        counts = (span.flags, span.droppedAttributesCount, span.droppedEventsCount, span.droppedLinksCount)
        if min(counts) < 0 or max(counts) >= 2**32:
            raise _Odd
        return (
            trace_id,
            span_id,
            parent_id,
            name,
            kind,
            start or None,
            end or None,
            code,
            message,
            self._exact.events(orjson.loads(bytes(span.events)), where, span_id)
            if span.events is not _NOTHING
            else None,
            self._exact.links(orjson.loads(bytes(span.links)), where, span_id) if span.links is not _NOTHING else None,
            origin,
            state,
            *counts,
            1,
        )

    def _id(self, raw: str, size: int, nothing: str) -> str:
        found = bytes.fromhex(raw).hex()
        if len(raw) != size * 2 or len(found) != size * 2 or found == nothing:
            raise _Odd
        if len(self._ids) >= _MEMO_SIZE:
            self._ids.clear()
        self._ids[raw] = found
        return found

    def _status(self, raw: Raw) -> tuple[int, str]:
        key = bytes(raw)
        found = self._statuses.get(key)
        if found is None:
            found = self._exact.status(orjson.loads(key))
            if len(self._statuses) >= _MEMO_SIZE:
                self._statuses.clear()
            self._statuses[key] = found
        return found


def _loads(raw: Raw) -> dict[str, Any]:
    found = orjson.loads(bytes(raw)) if raw is not _NOTHING else {}
    if found is not None and not isinstance(found, dict):
        raise _Odd
    return found or {}

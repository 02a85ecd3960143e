"""OTLP protobuf → rows.

Attributes are turned into JSON text straight from their bytes, and short ones that repeat (operation, model, tool
names) only once. Whatever is unusual (a broken text, a nested value, a field twice) goes a slower way with the same
result; what cannot be read costs only itself.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

import orjson
from google.protobuf.message import DecodeError

from tracegrade.ingest import thin, wire
from tracegrade.ingest.ids import bytes_id
from tracegrade.ingest.intake import Intake, SpanRow
from tracegrade.ingest.options import ReadOptions
from tracegrade.ingest.text import INT64_MAX, cut_utf8, decode, dumps, number
from tracegrade.model.values import JSON

_NO_TRACE, _NO_SPAN = bytes(16), bytes(8)
_MEMO_VALUE: Final = 96
_MEMO_SIZE: Final = 50000
_STRING, _BOOL, _INT, _DOUBLE = 0x0A, 0x10, 0x18, 0x21


class TooDeep(ValueError):
    """A value is nested deeper than the limit."""


class ProtoDecoder:
    """Decodes OTLP messages of one input into its intake.

    Args:
        intake: takes rows, reasons and counts.
        options: limits.
    """

    def __init__(self, intake: Intake, options: ReadOptions) -> None:
        self.intake = intake
        self.options = options
        self._memo: dict[bytes, bytes] = {}
        self._keys: dict[bytes, bytes] = {}
        self._names: dict[bytes, str] = {}
        self._statuses: dict[bytes, tuple[int, str]] = {}
        self._rows: list[SpanRow] = []
        self._texts: list[bytes] = []
        self._max_value = options.max_value_bytes
        self._traces = thin.message("trace.v1.TracesData")
        self._logs = thin.message("logs.v1.LogsData")
        self._span = thin.message("trace.v1.Span")
        self._status_type = thin.message("trace.v1.Status")
        self._record = thin.message("logs.v1.LogRecord")
        self._any = thin.message("common.v1.AnyValue")
        self._key_value = thin.message("common.v1.KeyValue")
        self._scope = thin.message("common.v1.InstrumentationScope")
        self._resource = thin.message("resource.v1.Resource")

    def message(self, raw: bytes, signal: str, offset: int) -> None:
        """Decode one request or a run of concatenated ones, all of one signal.

        Args:
            raw: the bytes; every top-level field is one Resource… message.
            signal: as `wire.signal_of` says.
            offset: position of `raw` in the unpacked file, for messages.
        """
        if signal == "traces":
            self._decode(raw, self._traces, self._spans, offset)
        elif signal == "logs":
            self._decode(raw, self._logs, self._log_records, offset)
        else:
            self.intake.signal(signal, _count_records(raw))

    def _decode(self, raw: bytes, kind: Any, take: Any, offset: int) -> None:
        data = kind()
        try:
            data.ParseFromString(raw)
        except DecodeError:
            self.salvage(raw, "traces" if kind is self._traces else "logs", offset)
            return
        take(data, offset)
        self._settle()

    def _settle(self) -> None:
        """Hand on the spans of one message."""
        self.intake.add_spans(self._rows, self._texts)
        self._rows.clear()
        self._texts.clear()

    def _spans(self, data: Any, offset: int) -> None:
        where = f"byte {offset}"
        for resource_spans in data.resource_spans:
            resource = self._attributes(resource_spans.resource.attributes, where)
            for scope_spans in resource_spans.scope_spans:
                url = decode(scope_spans.schema_url or resource_spans.schema_url)
                origin = self._origin(resource, scope_spans.scope, url, where)
                for span in scope_spans.spans:
                    self._take_span(span, origin, where)

    def _log_records(self, data: Any, offset: int) -> None:
        where = f"byte {offset}"
        for resource_logs in data.resource_logs:
            resource = self._attributes(resource_logs.resource.attributes, where)
            for scope_logs in resource_logs.scope_logs:
                url = decode(scope_logs.schema_url or resource_logs.schema_url)
                origin = self._origin(resource, scope_logs.scope, url, where)
                for record in scope_logs.log_records:
                    self._take_log(record, origin, where)

    def _origin(self, resource: dict[str, JSON], scope: Any, url: str, where: str) -> int:
        attributes = self._attributes(scope.attributes, where)
        return self.intake.origin(resource, decode(scope.name), decode(scope.version), attributes, url)

    def _take_span(self, span: Any, origin: int, where: str) -> None:
        trace, own, parent = span.trace_id, span.span_id, span.parent_span_id
        if len(trace) == 16 and len(own) == 8 and trace != _NO_TRACE and own != _NO_SPAN:
            trace_id, span_id = trace.hex(), own.hex()
        else:
            found = self._odd_ids(span, where)
            if found is None:
                return
            trace_id, span_id = found
        start, end = span.start_time_unix_nano, span.end_time_unix_nano
        if start > INT64_MAX or end > INT64_MAX:
            self.intake.skip(where, f"a time of {max(start, end)} ns is beyond the year 2262", span_id)
            return
        lost = 0
        get, slow = self._memo.get, self._fragment
        try:
            text = b",".join([get(kv) or slow(kv) for kv in span.attributes])
        except (ValueError, IndexError, DecodeError):
            values, lost = self._exact(span.attributes, where, span_id)
            text = dumps(values)[1:-1]
        name, state, kind = span.name, span.trace_state, span.kind
        code, message = self._statuses.get(span.status) or self._status(span.status)
        events, links = span.events, span.links
        self._texts.append(text)
        self._rows.append(
            (
                trace_id,
                span_id,
                parent.hex() if len(parent) == 8 and parent != _NO_SPAN else bytes_id(parent, 16),
                self._names.get(name) or self._name(name),
                kind if 0 <= kind <= 5 else 0,
                start or None,
                end or None,
                code,
                message,
                self._events(events, where, span_id) if events else None,
                self._links(links, where) if links else None,
                origin,
                decode(state) if state else "",
                span.flags,
                span.dropped_attributes_count + lost,
                span.dropped_events_count,
                span.dropped_links_count,
                1,
            )
        )

    def _odd_ids(self, span: Any, where: str) -> tuple[str, str] | None:
        """The ids of a span in a form that a wrong reader made of them; None, with the reason, if there are none."""
        trace_id, span_id = bytes_id(span.trace_id, 32), bytes_id(span.span_id, 16)
        if trace_id is not None and span_id is not None:
            return trace_id, span_id
        reason = (
            f"span {decode(span.name)!r} has the trace id `{span.trace_id.hex()}` and the span id "
            f"`{span.span_id.hex()}`; 16 and 8 bytes that are not all zeros were expected"
        )
        self.intake.skip(where, reason, span_id or span.span_id.hex() or None)
        return None

    def _name(self, raw: bytes) -> str:
        name = decode(raw)
        if len(raw) <= _MEMO_VALUE:
            _remember(self._names, raw, name)
        return name

    def _status(self, raw: bytes) -> tuple[int, str]:
        """Code and message of a status; one that is malformed counts as not set."""
        try:
            status = self._status_type.FromString(raw)
        except DecodeError:
            return 0, ""
        found = (status.code if 0 <= status.code <= 2 else 0, decode(status.message))
        _remember(self._statuses, raw, found)
        return found

    def _fragment(self, kv: bytes) -> bytes:
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
        if len(kv) <= _MEMO_VALUE:
            _remember(self._memo, kv, fragment)
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
        _remember(self._keys, head, key)
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
        return orjson.dumps(self._any_value(kv[at:], 0))

    def _attributes(self, raw: Any, where: str) -> dict[str, JSON]:
        return self._exact(raw, where, None)[0]

    def _exact(self, raw: Any, where: str, span_id: str | None) -> tuple[dict[str, JSON], int]:
        """Attributes one by one, with every oddity handled; the second value counts those that were lost."""
        values: dict[str, JSON] = {}
        lost = 0
        for kv in raw:
            key = "?"
            try:
                pair = self._key_value.FromString(kv)
                key = decode(pair.key)
                values[key] = self._any_value(pair.value, 0)
            except TooDeep:
                reason = f"attribute {key!r} is nested deeper than {self.options.max_depth} levels and was dropped"
            except DecodeError:
                reason = f"attribute {key!r} is malformed and was dropped"
            else:
                cut = self._cut(values[key])
                if cut is None:
                    continue
                values[key], size = cut
                reason = f"attribute {key!r} of {size} bytes was cut to {self.options.max_value_bytes}"
            lost += 1
            self.intake.warn(where, reason, span_id)
        return values, lost

    def _cut(self, value: JSON) -> tuple[str, int] | None:
        """The shortened text and the true size of a text over the limit, else None."""
        if not isinstance(value, str) or len(value) * 4 <= self.options.max_value_bytes:
            return None
        size = len(value.encode("utf-8", "replace"))
        limit = self.options.max_value_bytes
        return None if size <= limit else (cut_utf8(value, limit), size)

    def _any_value(self, raw: bytes, depth: int) -> JSON:
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
            if depth >= self.options.max_depth:
                raise TooDeep
            return [self._any_value(item, depth + 1) for item in value.array_value.values]
        if kind == "kvlist_value":
            if depth >= self.options.max_depth:
                raise TooDeep
            pairs = (self._key_value.FromString(item) for item in value.kvlist_value.values)
            return {decode(p.key): self._any_value(p.value, depth + 1) for p in pairs}
        return getattr(value, kind)

    def _events(self, events: Any, where: str, span_id: str) -> bytes:
        found = []
        for event in events:
            values, lost = self._exact(event.attributes, where, span_id)
            time = event.time_unix_nano
            found.append(
                {
                    "name": decode(event.name),
                    "time_ns": time if 0 < time <= INT64_MAX else None,
                    "attributes": values,
                    "dropped_attributes": event.dropped_attributes_count + lost,
                }
            )
        return dumps(found)

    def _links(self, links: Any, where: str) -> bytes | None:
        found = []
        for link in links:
            trace_id, span_id = bytes_id(link.trace_id, 32), bytes_id(link.span_id, 16)
            if trace_id is None or span_id is None:
                self.intake.warn(where, "a link without a valid id was dropped")
                continue
            values = self._attributes(link.attributes, where)
            found.append({"trace_id": trace_id, "span_id": span_id, "attributes": values})
        return dumps(found) if found else None

    def _take_log(self, record: Any, origin: int, where: str) -> None:
        values, _ = self._exact(record.attributes, where, None)
        try:
            body = self._any_value(record.body, 0)
        except (TooDeep, DecodeError):
            self.intake.skip(where, f"a log body is malformed or nested deeper than {self.options.max_depth} levels")
            return
        cut = self._cut(body)
        if cut is not None:
            body, size = cut
            self.intake.warn(where, f"a log body of {size} bytes was cut to {self.options.max_value_bytes}")
        time = record.time_unix_nano or record.observed_time_unix_nano
        self.intake.add_log(
            log_row(
                bytes_id(record.trace_id, 32),
                bytes_id(record.span_id, 16),
                time if 0 < time <= INT64_MAX else None,
                decode(record.event_name),
                record.severity_number,
                body,
                values,
                origin,
            )
        )

    def salvage(self, raw: bytes, signal: str, offset: int) -> None:
        """Take every span or record of a damaged or cut message that can still be read.

        Args:
            raw: top-level fields, the last of which may be cut.
            signal: `traces` or `logs`.
            offset: position of `raw` in the unpacked file.
        """
        for field, start, end, _ in self._lenient(raw, 0, len(raw), offset):
            if field != 1:
                continue
            resource: dict[str, JSON] = {}
            for inner, a, b, cut in self._lenient(raw, start, end, offset):
                if inner == 1 and not cut:
                    resource = self._damaged_resource(raw[a:b], offset + a)
                elif inner in (2, 1000):
                    self._salvage_scope(raw, a, b, signal, resource, offset)
        self._settle()

    def _salvage_scope(
        self, raw: bytes, start: int, end: int, signal: str, resource: dict[str, JSON], offset: int
    ) -> None:
        scope = self._scope()
        kind, take = (self._span, self._take_span) if signal == "traces" else (self._record, self._take_log)
        for field, a, b, cut in self._lenient(raw, start, end, offset):
            where = f"byte {offset + a}"
            try:
                if field == 1 and not cut:
                    scope = self._scope.FromString(raw[a:b])
                elif field == 2:
                    if cut:
                        raise DecodeError
                    item = kind.FromString(raw[a:b])
                    take(item, self._origin(resource, scope, "", where), where)
            except DecodeError:
                what = "span" if signal == "traces" else "log record"
                self.intake.skip(where, f"a {what} is {'cut' if cut else 'malformed'}", _peek_id(raw, a, b))

    def _lenient(self, raw: bytes, start: int, end: int, offset: int) -> Iterator[tuple[int, int, int, bool]]:
        """Length-delimited fields up to the first damage: number, start, end, and whether its end is missing."""
        pos = start
        while pos < end:
            at = pos
            try:
                tag, pos = wire.varint(raw, pos, end)
                if tag & 7 != wire.LENGTH:
                    raise wire.WireError(at, f"a field of wire type {tag & 7} where a message was expected")
                size, pos = wire.varint(raw, pos, end)
            except wire.WireError as error:
                where = f"byte {offset + error.position}"
                self.intake.skip(where, f"{error.reason}; the rest of this message was left out")
                return
            yield tag >> 3, pos, min(pos + size, end), pos + size > end
            pos += size

    def _damaged_resource(self, raw: bytes, offset: int) -> dict[str, JSON]:
        try:
            return self._attributes(self._resource.FromString(raw).attributes, f"byte {offset}")
        except DecodeError:
            self.intake.warn(f"byte {offset}", "a resource is malformed and was dropped")
            return {}


def log_row(
    trace_id: str | None,
    span_id: str | None,
    time_ns: int | None,
    event_name: str,
    severity: int,
    body: JSON,
    attributes: dict[str, JSON],
    origin: int,
) -> tuple[Any, ...]:
    """One log record as a row; name and time fall back to the attributes that older conventions used."""
    if not event_name and isinstance(attributes.get("event.name"), str):
        event_name = attributes["event.name"]
    if time_ns is None:
        time_ns = _event_time(attributes.get("event.timestamp"))
    return (
        trace_id, span_id, time_ns, event_name or None, severity, dumps(body), dumps(attributes), origin,
    )  # fmt: skip


def _event_time(value: JSON) -> int | None:
    """Nanoseconds of an `event.timestamp`: an ISO 8601 text, or a number of nanoseconds."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return int(value) if 0 < value <= INT64_MAX else None
    if not isinstance(value, str):
        return None
    if value.isdigit():
        return _event_time(int(value))
    from tracegrade.ingest.times import iso_ns

    return iso_ns(value)


def _remember(memo: dict[bytes, Any], key: bytes, value: Any) -> None:
    """Keep a decoded value; a memo that has grown large starts anew."""
    if len(memo) >= _MEMO_SIZE:
        memo.clear()
    memo[key] = value


def _peek_id(raw: bytes, start: int, end: int) -> str | None:
    """The span id of a span that cannot be parsed, as far as its first fields hold."""
    try:
        for number_, kind, a, b in wire.fields(raw, start, end):
            if number_ == 2 and kind == wire.LENGTH:
                return bytes_id(raw[a:b], 16)
    except wire.WireError:
        pass
    return None


def _count_records(raw: bytes) -> int:
    """Number of records (metrics, profiles) in a message."""
    count = 0
    try:
        for _, kind, a, b in wire.fields(raw, 0, len(raw)):
            for number_, kind, c, d in wire.fields(raw, a, b):
                if number_ == 2 and kind == wire.LENGTH:
                    count += sum(n == 2 for n, *_ in wire.fields(raw, c, d))
    except wire.WireError:
        pass
    return count

"""Spans → files of OTLP: what `tracegrade` read it can write back, log records included.

Requests hold runs of spans of one resource and scope, so memory does not grow with the number of spans. A span's own
log records follow it as `resourceLogs`. What OTLP has no word for is lost: the tick of a coarser clock
(`precision_ns`), and that a text was bytes or a number that JSON cannot write.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby, islice
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, cast

import orjson
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1 import logs_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

from tracegrade.errors import UsageError
from tracegrade.ingest.text import INT64_MAX, INT64_MIN, dumps
from tracegrade.model.span import LogRecord, Span
from tracegrade.model.values import JSON

Format = Literal["otlp-jsonl", "otlp-json", "otlp-proto", "otlp-proto-framed"]
"""JSON Lines, one JSON document, bare concatenated messages, or messages with a 4-byte length (the Collector's)."""
Compression = Literal["", "gzip", "zstd"]

_BATCH: Final = 500
_ENDINGS: Final[dict[str, Format]] = {
    ".pb": "otlp-proto",
    ".bin": "otlp-proto",
    ".binpb": "otlp-proto",
    ".otlp": "otlp-proto",
    ".proto": "otlp-proto-framed",
    ".json": "otlp-json",
    ".jsonl": "otlp-jsonl",
    ".ndjson": "otlp-jsonl",
}
_PACKED: Final[dict[str, Compression]] = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}


def write_spans(
    spans: Iterable[Span],
    path: Path,
    *,
    format: Format | None = None,
    compression: Compression | None = None,
    logs: Iterable[LogRecord] = (),
) -> int:
    """Write spans as OTLP. The file appears under its name only when it is complete.

    Args:
        spans: the spans, each with its own log records.
        path: where to write.
        format: None tells it from the name (`.pb`, `.proto`, `.json`, `.jsonl`, before `.gz` or `.zst`).
        compression: None tells it from the name.
        logs: further log records, such as those that join to no span.

    Returns:
        The number of spans written.

    Raises:
        UsageError: the name tells no format.
    """
    named_format, named_compression = format_of(path)
    chosen = format or named_format
    if chosen is None:
        raise UsageError(
            f"{path}: the name tells no format; end it in {', '.join(_ENDINGS)}, with .gz or .zst if packed"
        )
    counted = _Counted(spans)
    partial = path.with_name(path.name + ".partial")
    with _opened(partial, named_compression if compression is None else compression) as out:
        _WRITERS[chosen](out, counted, logs)
    partial.replace(path)
    return counted.n


def format_of(path: Path) -> tuple[Format | None, Compression]:
    """Format and compression that a file's name tells.

    >>> format_of(Path("a.jsonl.gz"))
    ('otlp-jsonl', 'gzip')
    """
    suffixes = [s.lower() for s in path.suffixes]
    packed: Compression = ""
    if suffixes and suffixes[-1] in _PACKED:
        packed = _PACKED[suffixes.pop()]
    return (_ENDINGS.get(suffixes[-1]) if suffixes else None), packed


class _Counted:
    """Hands out spans in batches and counts them."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._spans = iter(spans)
        self.n = 0

    def batches(self) -> Iterator[list[Span]]:
        while batch := list(islice(self._spans, _BATCH)):
            self.n += len(batch)
            yield batch


@contextmanager
def _opened(path: Path, compression: Compression) -> Iterator[BinaryIO]:
    try:
        with path.open("wb") as raw:
            if compression == "gzip":
                with gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
                    yield cast(BinaryIO, packed)
            elif compression == "zstd":
                import zstandard

                with zstandard.ZstdCompressor().stream_writer(raw, closefd=False) as writer:
                    yield cast(BinaryIO, writer)
            else:
                yield raw
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _chunks(logs: Iterable[LogRecord]) -> Iterator[list[LogRecord]]:
    source = iter(logs)
    while batch := list(islice(source, _BATCH)):
        yield batch


def _write_lines(out: BinaryIO, spans: _Counted, logs: Iterable[LogRecord]) -> None:
    for batch in spans.batches():
        out.write(dumps({"resourceSpans": _json_spans(batch)}) + b"\n")
        own = [record for span in batch for record in span.logs]
        if own:
            out.write(dumps({"resourceLogs": _json_logs(own)}) + b"\n")
    for records in _chunks(logs):
        out.write(dumps({"resourceLogs": _json_logs(records)}) + b"\n")


def _write_document(out: BinaryIO, spans: _Counted, logs: Iterable[LogRecord]) -> None:
    """One object; log records wait in a temporary file until the spans are out."""
    import tempfile

    with tempfile.TemporaryFile() as later:
        out.write(b'{"resourceSpans":[')
        separator = b"\n"
        for batch in spans.batches():
            for item in _json_spans(batch):
                out.write(separator + dumps(item))
                separator = b",\n"
            for item in _json_logs([record for span in batch for record in span.logs]):
                later.write(dumps(item) + b"\n")
        for records in _chunks(logs):
            for item in _json_logs(records):
                later.write(dumps(item) + b"\n")
        out.write(b"\n]")
        if later.tell():
            later.seek(0)
            out.write(b',"resourceLogs":[\n')
            for number, line in enumerate(later):
                out.write((b",\n" if number else b"") + line.rstrip(b"\n"))
            out.write(b"\n]")
        out.write(b"}\n")


def _write_bare(out: BinaryIO, spans: _Counted, logs: Iterable[LogRecord]) -> None:
    _write_messages(spans, logs, out.write)


def _write_framed(out: BinaryIO, spans: _Counted, logs: Iterable[LogRecord]) -> None:
    def frame(message: bytes) -> None:
        out.write(len(message).to_bytes(4, "big") + message)

    _write_messages(spans, logs, frame)


def _write_messages(spans: _Counted, logs: Iterable[LogRecord], put: Callable[[bytes], Any]) -> None:
    for batch in spans.batches():
        put(_proto_spans(batch).SerializeToString())
        own = [record for span in batch for record in span.logs]
        if own:
            put(_proto_logs(own).SerializeToString())
    for records in _chunks(logs):
        put(_proto_logs(records).SerializeToString())


_WRITERS: Final[dict[Format, Callable[[BinaryIO, _Counted, Iterable[LogRecord]], None]]] = {
    "otlp-jsonl": _write_lines,
    "otlp-json": _write_document,
    "otlp-proto": _write_bare,
    "otlp-proto-framed": _write_framed,
}


def _origin(item: Span | LogRecord) -> bytes:
    """Resource and scope as a key: runs of equal ones share a message."""
    attributes, url = (item.scope_attributes, item.schema_url) if isinstance(item, Span) else ({}, "")
    return orjson.dumps([item.resource, item.scope_name, item.scope_version, attributes, url])


def _json_spans(batch: list[Span]) -> list[dict[str, Any]]:
    return [
        {
            "resource": {"attributes": _json_attributes(group[0].resource)},
            "scopeSpans": [_json_scope(group[0], "spans", [_json_span(s) for s in group])],
        }
        for group in (list(g) for _, g in groupby(batch, _origin))
    ]


def _json_logs(batch: list[LogRecord]) -> list[dict[str, Any]]:
    return [
        {
            "resource": {"attributes": _json_attributes(group[0].resource)},
            "scopeLogs": [_json_scope(group[0], "logRecords", [_json_log(r) for r in group])],
        }
        for group in (list(g) for _, g in groupby(batch, _origin))
    ]


def _json_scope(item: Span | LogRecord, key: str, records: list[dict[str, Any]]) -> dict[str, Any]:
    scope: dict[str, Any] = {"name": item.scope_name, "version": item.scope_version}
    found: dict[str, Any] = {"scope": scope, key: records}
    if isinstance(item, Span) and item.scope_attributes:
        scope["attributes"] = _json_attributes(item.scope_attributes)
    if isinstance(item, Span) and item.schema_url:
        found["schemaUrl"] = item.schema_url
    return found


def _json_span(span: Span) -> dict[str, Any]:
    found: dict[str, Any] = {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "traceState": span.trace_state,
        "parentSpanId": span.parent_span_id or "",
        "flags": span.flags,
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": str(span.start_ns or 0),
        "endTimeUnixNano": str(span.end_ns or 0),
        "attributes": _json_attributes(span.attributes),
        "droppedAttributesCount": span.dropped_attributes,
        "events": [
            {
                "timeUnixNano": str(e.time_ns or 0),
                "name": e.name,
                "attributes": _json_attributes(e.attributes),
                "droppedAttributesCount": e.dropped_attributes,
            }
            for e in span.events
        ],
        "droppedEventsCount": span.dropped_events,
        "links": [
            {"traceId": k.trace_id, "spanId": k.span_id, "attributes": _json_attributes(k.attributes)}
            for k in span.links
        ],
        "droppedLinksCount": span.dropped_links,
        "status": {"code": span.status_code, "message": span.status_message},
    }
    return {k: v for k, v in found.items() if v not in ("", 0, []) and not (v == "0" and k.endswith("UnixNano"))}


def _json_log(record: LogRecord) -> dict[str, Any]:
    found = {
        "timeUnixNano": str(record.time_ns or 0),
        "severityNumber": record.severity,
        "body": _json_value(record.body),
        "attributes": _json_attributes(record.attributes),
        "traceId": record.trace_id or "",
        "spanId": record.span_id or "",
        "eventName": record.event_name or "",
    }
    return {k: v for k, v in found.items() if v not in ("", 0, []) and not (v == "0" and k.endswith("UnixNano"))}


def _json_attributes(attributes: dict[str, JSON]) -> list[dict[str, Any]]:
    return [{"key": k, "value": _json_value(v)} for k, v in attributes.items()]


def _json_value(value: JSON) -> dict[str, Any]:
    if value is None:
        return {}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)} if INT64_MIN <= value <= INT64_MAX else {"stringValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_json_value(v) for v in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": _json_attributes(value)}}
    return {"stringValue": value}


def _proto_spans(batch: list[Span]) -> trace_pb2.TracesData:
    data = trace_pb2.TracesData()
    for _, found in groupby(batch, _origin):
        group = list(found)
        resource_spans = data.resource_spans.add()
        resource_spans.resource.attributes.extend(_proto_attributes(group[0].resource))
        scope_spans = resource_spans.scope_spans.add(schema_url=group[0].schema_url)
        scope_spans.scope.name, scope_spans.scope.version = group[0].scope_name, group[0].scope_version
        scope_spans.scope.attributes.extend(_proto_attributes(group[0].scope_attributes))
        for span in group:
            _proto_span(span, scope_spans.spans.add())
    return data


def _proto_span(span: Span, target: trace_pb2.Span) -> None:
    target.trace_id, target.span_id = bytes.fromhex(span.trace_id), bytes.fromhex(span.span_id)
    target.parent_span_id = bytes.fromhex(span.parent_span_id or "")
    target.trace_state, target.flags, target.name = span.trace_state, span.flags, span.name
    target.kind = cast(Any, span.kind)
    target.start_time_unix_nano, target.end_time_unix_nano = span.start_ns or 0, span.end_ns or 0
    target.attributes.extend(_proto_attributes(span.attributes))
    target.dropped_attributes_count = span.dropped_attributes
    target.dropped_events_count = span.dropped_events
    target.dropped_links_count = span.dropped_links
    for event in span.events:
        target.events.add(
            time_unix_nano=event.time_ns or 0,
            name=event.name,
            attributes=_proto_attributes(event.attributes),
            dropped_attributes_count=event.dropped_attributes,
        )
    for link in span.links:
        target.links.add(
            trace_id=bytes.fromhex(link.trace_id),
            span_id=bytes.fromhex(link.span_id),
            attributes=_proto_attributes(link.attributes),
        )
    target.status.code, target.status.message = cast(Any, span.status_code), span.status_message


def _proto_logs(batch: list[LogRecord]) -> logs_pb2.LogsData:
    data = logs_pb2.LogsData()
    for _, found in groupby(batch, _origin):
        group = list(found)
        resource_logs = data.resource_logs.add()
        resource_logs.resource.attributes.extend(_proto_attributes(group[0].resource))
        scope_logs = resource_logs.scope_logs.add()
        scope_logs.scope.name, scope_logs.scope.version = group[0].scope_name, group[0].scope_version
        for record in group:
            scope_logs.log_records.add(
                time_unix_nano=record.time_ns or 0,
                severity_number=cast(Any, record.severity),
                body=_proto_value(record.body),
                attributes=_proto_attributes(record.attributes),
                trace_id=bytes.fromhex(record.trace_id or ""),
                span_id=bytes.fromhex(record.span_id or ""),
                event_name=record.event_name or "",
            )
    return data


def _proto_attributes(attributes: dict[str, JSON]) -> list[KeyValue]:
    return [KeyValue(key=k, value=_proto_value(v)) for k, v in attributes.items()]


def _proto_value(value: JSON) -> AnyValue:
    if value is None:
        return AnyValue()
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        fits = INT64_MIN <= value <= INT64_MAX
        return AnyValue(int_value=value) if fits else AnyValue(string_value=str(value))
    if isinstance(value, float):
        return AnyValue(double_value=value)
    found = AnyValue()
    if isinstance(value, list):
        found.array_value.SetInParent()
        found.array_value.values.extend(_proto_value(v) for v in value)
    elif isinstance(value, dict):
        found.kvlist_value.SetInParent()
        found.kvlist_value.values.extend(_proto_attributes(value))
    else:
        found.string_value = value
    return found

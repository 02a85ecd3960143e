"""Rows of ClickHouse's `otel_traces` and `otel_logs` tables (the Collector's exporter, ClickStack): the output formats
JSONEachRow, JSON and Parquet.

Lost in it: every attribute's type (`Map(String, String)`; the newer JSON columns keep it), dropped counts, flags.
Times without a zone are taken as UTC, which is what ClickHouse prints unless the server or column names another.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from tracegrade.ingest.base import DocumentFormat, Sink
from tracegrade.ingest.formats.columns import ParquetFormat
from tracegrade.ingest.formats.common import (
    SPAN_DIGITS,
    TRACE_DIGITS,
    BadItem,
    first,
    flatten,
    hex_id,
    integer,
    iso_time,
    logs_from,
    nanoseconds,
    optional_id,
    parsed_json,
    readable,
    rows,
    small,
    spans_from,
    text,
)
from tracegrade.model.span import KIND_NAMES, STATUS_NAMES, LogRecord, Span, SpanEvent, SpanLink
from tracegrade.model.values import JSON

_SPAN_COLUMNS: Final = frozenset({"TraceId", "SpanId", "SpanName", "Timestamp"})
_LOG_COLUMNS: Final = frozenset({"TraceId", "Body", "LogAttributes"})
_UNIX: Final = re.compile(r"\A(\d{1,11})(?:\.(\d{1,9}))?\Z")


def _is_row(document: JSON) -> bool:
    return isinstance(document, dict) and (document.keys() >= _SPAN_COLUMNS or document.keys() >= _LOG_COLUMNS)


def _matches(document: JSON) -> bool:
    if isinstance(document, dict) and isinstance(document.get("data"), list):
        return any(_is_row(d) for d in document["data"])
    if isinstance(document, list):
        return any(_is_row(d) for d in document)
    return _is_row(document)


def _convert(document: JSON, sink: Sink, where: str) -> None:
    if isinstance(document, list):
        _rows(document, sink, where, "$")
    elif _is_row(document):
        _rows([document], sink, where, "")
    else:
        _rows(document["data"], sink, where, "data")


def _rows(items: Sequence[JSON], sink: Sink, where: str, path: str) -> None:
    for index, item in enumerate(items):
        place = f"{where} {path}[{index}]" if path else where
        if isinstance(item, dict) and item.keys() >= _LOG_COLUMNS:
            logs_from([item], _log, sink, place, "")
        else:
            spans_from([item], _span, sink, place, "")


def _span(row: dict[str, JSON]) -> Span:
    start, tick = _time(row.get("Timestamp"), "Timestamp")
    duration = row.get("Duration")
    events, lost_events = readable(_nested(row, "Events", ("Timestamp", "Name", "Attributes")), _event)
    links, lost_links = readable(_nested(row, "Links", ("TraceId", "SpanId", "TraceState", "Attributes")), _link)
    end = None
    if start is not None and duration is not None:
        length = integer(duration, "Duration")
        if length < 0:
            raise BadItem(f"Duration {length} is negative")
        end = nanoseconds(start + length, "end")
    return Span(
        trace_id=hex_id(row.get("TraceId"), TRACE_DIGITS, "TraceId"),
        span_id=hex_id(row.get("SpanId"), SPAN_DIGITS, "SpanId"),
        parent_span_id=optional_id(row.get("ParentSpanId"), SPAN_DIGITS, "ParentSpanId"),
        name=text(row.get("SpanName")),
        kind=_number(KIND_NAMES, row.get("SpanKind"), "SPAN_KIND_"),
        start_ns=start,
        end_ns=end,
        status_code=_number(STATUS_NAMES, row.get("StatusCode"), "STATUS_CODE_"),
        status_message=text(row.get("StatusMessage")),
        attributes=_map(row.get("SpanAttributes"), "SpanAttributes"),
        resource=_resource(row),
        scope_name=text(row.get("ScopeName")),
        scope_version=text(row.get("ScopeVersion")),
        events=events,
        links=links,
        dropped_events=lost_events,
        dropped_links=lost_links,
        trace_state=text(row.get("TraceState")),
        precision_ns=tick,
    )


def _log(row: dict[str, JSON]) -> LogRecord:
    attributes = _map(row.get("LogAttributes"), "LogAttributes")
    return LogRecord(
        trace_id=optional_id(row.get("TraceId"), TRACE_DIGITS, "TraceId"),
        span_id=optional_id(row.get("SpanId"), SPAN_DIGITS, "SpanId"),
        time_ns=_time(first(row, "Timestamp", "TimestampTime"), "Timestamp")[0],
        event_name=text(row.get("EventName")) or text(attributes.get("event.name")) or None,
        severity=small(row.get("SeverityNumber")),
        body=row.get("Body"),
        attributes=attributes,
        resource=_resource(row),
        scope_name=text(row.get("ScopeName")),
        scope_version=text(row.get("ScopeVersion")),
    )


def _time(value: JSON, what: str) -> tuple[int | None, int]:
    match = _UNIX.match(value) if isinstance(value, str) else None
    if match is None:
        return iso_time(value, what)
    fraction = match[2] or ""
    stamp = int(match[1]) * 1_000_000_000 + int(fraction.ljust(9, "0"))
    return nanoseconds(stamp, what), 10 ** (9 - len(fraction))


def _number(names: tuple[str, ...], value: JSON, prefix: str) -> int:
    name = text(value).upper().removeprefix(prefix)
    return names.index(name) if name in names else 0


def _map(value: JSON, what: str) -> dict[str, JSON]:
    """A Map column (an object, or pairs in Arrow), a JSON column (nested objects), or either as JSON text."""
    if isinstance(value, str):
        value = parsed_json(value) if value else None
    if isinstance(value, list) and all(isinstance(p, (list, tuple)) and len(p) == 2 for p in value):
        value = {text(k): v for k, v in value}
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadItem(f"{what} is no map")
    found: dict[str, JSON] = {}
    flatten("", value, found)
    return found


def _resource(row: dict[str, JSON]) -> dict[str, JSON]:
    found = _map(row.get("ResourceAttributes"), "ResourceAttributes")
    service = row.get("ServiceName")
    if isinstance(service, str) and service:
        found.setdefault("service.name", service)
    return found


def _nested(row: dict[str, JSON], column: str, names: tuple[str, ...]) -> list[dict[str, JSON]]:
    """A Nested column: parallel arrays `Events.Name`, …, one object of arrays, or one array of tuples."""
    held = row.get(column)
    if isinstance(held, list):
        return [h if isinstance(h, dict) else dict(zip(names, rows(h, column), strict=False)) for h in held]
    arrays = held if isinstance(held, dict) else {n: row.get(f"{column}.{n}") for n in names}
    lists = {n: rows(arrays.get(n), f"{column}.{n}") for n in names}
    length = max((len(v) for v in lists.values()), default=0)
    return [{n: v[i] for n, v in lists.items() if i < len(v)} for i in range(length)]


def _event(event: dict[str, JSON]) -> SpanEvent:
    time_ns, _ = _time(event.get("Timestamp"), "Events.Timestamp")
    return SpanEvent(text(event.get("Name")), time_ns, _map(event.get("Attributes"), "Events.Attributes"))


def _link(link: dict[str, JSON]) -> SpanLink:
    return SpanLink(
        hex_id(link.get("TraceId"), TRACE_DIGITS, "Links.TraceId"),
        hex_id(link.get("SpanId"), SPAN_DIGITS, "Links.SpanId"),
        _map(link.get("Attributes"), "Links.Attributes"),
    )


def _matches_columns(names: frozenset[str]) -> bool:
    return names >= _SPAN_COLUMNS or names >= _LOG_COLUMNS


def _convert_rows(items: Sequence[dict[str, JSON]], sink: Sink, before: int) -> None:
    for number, item in enumerate(items, before + 1):
        _rows([item], sink, f"row {number}", "")


CLICKHOUSE = DocumentFormat(
    name="clickhouse-json",
    matches=_matches,
    convert=_convert,
    expected="ClickHouse otel_traces rows: `TraceId`, `SpanName`, `Timestamp`",
)
CLICKHOUSE_PARQUET = ParquetFormat(
    name="clickhouse-parquet",
    matches=_matches_columns,
    convert=_convert_rows,
    expected="ClickHouse otel_traces columns: Timestamp, TraceId, SpanId, SpanName, SpanAttributes, …",
)

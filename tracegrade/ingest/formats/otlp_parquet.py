"""Spans as a Parquet table with one column per OTLP field: what tracegrade itself writes from its `spans` table, and
tables of other writers that use OTLP's field names in snake or camel case.

Attributes may be JSON text, a map, a struct, or OTLP's list of key and AnyValue.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tracegrade.ingest.base import Sink
from tracegrade.ingest.formats.columns import ParquetFormat, Row
from tracegrade.ingest.formats.common import (
    SPAN_DIGITS,
    TRACE_DIGITS,
    BadItem,
    first,
    hex_id,
    iso_time,
    optional_id,
    parsed_json,
    readable,
    record,
    rows,
    rows_from,
    small,
    text,
    unit_time,
)
from tracegrade.model.span import KIND_NAMES, STATUS_NAMES, Span, SpanEvent, SpanLink
from tracegrade.model.values import JSON

_TRACE: Final = ("trace_id", "traceId")
_SPAN: Final = ("span_id", "spanId")
_START: Final = ("start_ns", "start_time_unix_nano", "startTimeUnixNano", "start_time", "startTime")
_END: Final = ("end_ns", "end_time_unix_nano", "endTimeUnixNano", "end_time", "endTime")
_RESOURCE: Final = ("resource", "resource_attributes", "resourceAttributes")
_ANY_VALUE: Final = {
    "string": ("string_value", "stringValue"),
    "plain": ("bool_value", "boolValue", "int_value", "intValue", "double_value", "doubleValue"),
    "array": ("array_value", "arrayValue"),
    "map": ("kvlist_value", "kvlistValue"),
}


def _matches(names: frozenset[str]) -> bool:
    return bool(
        names & set(_TRACE) and names & set(_SPAN) and names & set(_START) and "attributes" in names and "name" in names
    )


def _convert(items: Sequence[Row], sink: Sink, before: int) -> None:
    rows_from(items, span_of, sink, before)


def span_of(row: Row) -> Span:
    """One span of OTLP's fields in any of the spellings above.

    Raises:
        BadItem: it has no valid id or time.
    """
    status = record(row.get("status"), "status") if isinstance(row.get("status"), dict) else {}
    scope = record(first(row, "scope", "instrumentation_scope", "instrumentationScope"), "scope")
    events, lost_events = readable(rows(parsed_json(row.get("events")), "events"), _event)
    links, lost_links = readable(rows(parsed_json(row.get("links")), "links"), _link)
    code = first(row, "status_code", "statusCode") or status.get("code")
    return Span(
        trace_id=hex_id(first(row, *_TRACE), TRACE_DIGITS, "trace_id"),
        span_id=hex_id(first(row, *_SPAN), SPAN_DIGITS, "span_id"),
        parent_span_id=optional_id(first(row, "parent_span_id", "parentSpanId"), SPAN_DIGITS, "parent_span_id"),
        name=text(row.get("name")),
        kind=_number(KIND_NAMES, row.get("kind"), "SPAN_KIND_"),
        start_ns=_time(first(row, *_START), "start"),
        end_ns=_time(first(row, *_END), "end"),
        status_code=_number(STATUS_NAMES, code, "STATUS_CODE_"),
        status_message=text(first(row, "status_message", "statusMessage") or status.get("message")),
        attributes=_attributes(row.get("attributes"), "attributes"),
        resource=_resource(row),
        scope_name=text(first(row, "scope_name", "scopeName") or scope.get("name")),
        scope_version=text(first(row, "scope_version", "scopeVersion") or scope.get("version")),
        events=events,
        links=links,
        trace_state=text(first(row, "trace_state", "traceState")),
        flags=small(row.get("flags")),
        dropped_attributes=small(
            first(row, "dropped_attributes", "dropped_attributes_count", "droppedAttributesCount")
        ),
        dropped_events=small(first(row, "dropped_events", "dropped_events_count", "droppedEventsCount")) + lost_events,
        dropped_links=small(first(row, "dropped_links", "dropped_links_count", "droppedLinksCount")) + lost_links,
        precision_ns=small(row.get("precision_ns")) or 1,
        schema_url=text(first(row, "schema_url", "schemaUrl")),
        scope_attributes=_attributes(first(row, "scope_attributes") or scope.get("attributes"), "scope_attributes"),
    )


def _time(value: JSON, what: str) -> int | None:
    """Nanoseconds as a number (Arrow timestamps have become one) or a text of digits, else an ISO time."""
    if isinstance(value, str) and not value.isdecimal():
        return iso_time(value, what)[0]
    return unit_time(value, 1, what)


def _number(names: tuple[str, ...], value: JSON, prefix: str) -> int:
    if isinstance(value, str) and not value.isdecimal():
        name = value.upper().removeprefix(prefix)
        return names.index(name) if name in names else 0
    return small(value, len(names) - 1)


def _resource(row: Row) -> dict[str, JSON]:
    held = parsed_json(first(row, *_RESOURCE))
    if isinstance(held, dict) and isinstance(parsed_json(held.get("attributes")), (list, dict)):
        held = parsed_json(held["attributes"])
    found = _attributes(held, "resource")
    service = first(row, "service_name", "serviceName")
    if isinstance(service, str) and service:
        found.setdefault("service.name", service)
    return found


def _attributes(value: JSON, what: str) -> dict[str, JSON]:
    value = parsed_json(value) if value != "" else None
    if value is None:
        return {}
    if isinstance(value, dict):
        return {k: v for k, v in value.items() if v is not None}
    if not isinstance(value, list):
        raise BadItem(f"{what} is neither JSON text, map, struct nor a list of key and value")
    found: dict[str, JSON] = {}
    for entry in value:
        pair = (entry.get("key"), _any_value(entry.get("value"))) if isinstance(entry, dict) else entry
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not isinstance(pair[0], str):
            raise BadItem(f"{what} holds an entry that is no pair of key and value")
        found[pair[0]] = pair[1]
    return found


def _any_value(value: JSON, depth: int = 0) -> JSON:
    """The value that an AnyValue struct holds: a struct column has all of its alternatives, all but one null."""
    if depth > 64:
        raise BadItem("a value is nested deeper than 64 levels")
    if not isinstance(value, dict):
        return value
    held = first(value, *_ANY_VALUE["string"], *_ANY_VALUE["plain"])
    if held is not None:
        return held
    array = first(value, *_ANY_VALUE["array"])
    if array is not None:
        return [_any_value(v, depth + 1) for v in rows(record(array, "array_value").get("values"), "values")]
    pairs = first(value, *_ANY_VALUE["map"])
    if pairs is not None:
        entries = [record(e, "an entry") for e in rows(record(pairs, "kvlist_value").get("values"), "values")]
        return {text(e.get("key")): _any_value(e.get("value"), depth + 1) for e in entries}
    return None


def _event(entry: JSON) -> SpanEvent:
    event = record(entry, "an event")
    return SpanEvent(
        text(event.get("name")),
        _time(first(event, "time_ns", "time_unix_nano", "timeUnixNano", "timestamp"), "event time"),
        _attributes(event.get("attributes"), "event attributes"),
        small(first(event, "dropped_attributes", "dropped_attributes_count", "droppedAttributesCount")),
    )


def _link(entry: JSON) -> SpanLink:
    link = record(entry, "a link")
    return SpanLink(
        hex_id(first(link, *_TRACE), TRACE_DIGITS, "link trace_id"),
        hex_id(first(link, *_SPAN), SPAN_DIGITS, "link span_id"),
        _attributes(link.get("attributes"), "link attributes"),
    )


OTLP_PARQUET = ParquetFormat(
    name="otlp-parquet",
    matches=_matches,
    convert=_convert,
    expected="OTLP columns: trace_id, span_id, name, start_ns (or start_time_unix_nano), attributes, …",
)

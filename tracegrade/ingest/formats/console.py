"""The Python SDK's console exporters: one pretty-printed JSON object per span, log record or batch of metrics.

Lost in it: nanoseconds (times are microseconds), the instrumentation scope, flags and dropped counts.
"""

from __future__ import annotations

import re
from typing import Final

from tracegrade.ingest.base import DocumentFormat, Sink
from tracegrade.ingest.formats.common import (
    MICROSECOND,
    SPAN_DIGITS,
    TRACE_DIGITS,
    first,
    hex_id,
    iso_time,
    logs_from,
    optional_id,
    readable,
    record,
    rows,
    small,
    spans_from,
    text,
)
from tracegrade.model.span import KIND_NAMES, STATUS_NAMES, LogRecord, Span, SpanEvent, SpanLink
from tracegrade.model.values import JSON

_STATE_ENTRY: Final = re.compile(r"\A\[(?P<list>.*)\]\Z", re.DOTALL)


def _matches(document: JSON) -> bool:
    if isinstance(document, list):
        return any(_is_span(d) or _is_log(d) for d in document)
    return _is_span(document) or _is_log(document) or _is_metrics(document)


def _is_span(document: JSON) -> bool:
    if not isinstance(document, dict) or not {"name", "context", "kind", "start_time"} <= document.keys():
        return False
    return isinstance(document["context"], dict) and str(document["kind"]).startswith("SpanKind.")


def _is_log(document: JSON) -> bool:
    if not isinstance(document, dict):
        return False
    return {"body", "severity_number", "trace_id", "span_id", "resource"} <= document.keys()


def _is_metrics(document: JSON) -> bool:
    return isinstance(document, dict) and isinstance(document.get("resource_metrics"), list)


def _convert(document: JSON, sink: Sink, where: str) -> None:
    items = document if isinstance(document, list) else [document]
    path = "$" if isinstance(document, list) else ""
    for index, item in enumerate(items):
        place = f"{where} {path}[{index}]" if path else where
        if _is_metrics(item):
            sink.signal("metrics", len(item["resource_metrics"]))
        elif _is_log(item):
            logs_from([item], _log, sink, place, "")
        else:
            spans_from([item], _span, sink, place, "")


def _span(item: dict[str, JSON]) -> Span:
    context = record(item.get("context"), "context")
    status = record(item.get("status"), "status")
    resource = record(item.get("resource"), "resource")
    events, lost_events = readable(rows(item.get("events"), "events"), _event)
    links, lost_links = readable(rows(item.get("links"), "links"), _link)
    return Span(
        trace_id=hex_id(context.get("trace_id"), TRACE_DIGITS, "trace_id"),
        span_id=hex_id(context.get("span_id"), SPAN_DIGITS, "span_id"),
        parent_span_id=optional_id(item.get("parent_id"), SPAN_DIGITS, "parent_id"),
        name=text(item.get("name")),
        kind=_number(KIND_NAMES, text(item.get("kind")).rpartition(".")[2]),
        start_ns=iso_time(item.get("start_time"), "start_time")[0],
        end_ns=iso_time(item.get("end_time"), "end_time")[0],
        status_code=_number(STATUS_NAMES, text(status.get("status_code")).rpartition(".")[2]),
        status_message=text(status.get("description")),
        attributes=record(item.get("attributes"), "attributes"),
        resource=_resource(resource),
        scope_name="",
        scope_version="",
        events=events,
        links=links,
        trace_state=_trace_state(context.get("trace_state")),
        dropped_events=lost_events,
        dropped_links=lost_links,
        precision_ns=MICROSECOND,
        schema_url=text(resource.get("schema_url")),
    )


def _number(names: tuple[str, ...], name: str) -> int:
    return names.index(name) if name in names else 0


def _resource(resource: dict[str, JSON]) -> dict[str, JSON]:
    """Older SDKs print the attributes themselves, newer ones `{"attributes": …, "schema_url": …}`."""
    inner = resource.get("attributes")
    return inner if isinstance(inner, dict) else resource


def _trace_state(value: JSON) -> str:
    """Printed as the text of a Python list of `key=value` entries."""
    match = _STATE_ENTRY.match(text(value))
    if match is None:
        return ""
    return ",".join(re.findall(r"['\"{ ]*([^'\",{} ]+=[^'\",{}]+)", match["list"]))


def _event(entry: JSON) -> SpanEvent:
    event = record(entry, "an event")
    time_ns, _ = iso_time(event.get("timestamp"), "event timestamp")
    return SpanEvent(text(event.get("name")), time_ns, record(event.get("attributes"), "event attributes"))


def _link(entry: JSON) -> SpanLink:
    link = record(entry, "a link")
    context = record(link.get("context"), "link context")
    return SpanLink(
        hex_id(context.get("trace_id"), TRACE_DIGITS, "link trace_id"),
        hex_id(context.get("span_id"), SPAN_DIGITS, "link span_id"),
        record(link.get("attributes"), "link attributes"),
    )


def _log(item: dict[str, JSON]) -> LogRecord:
    attributes = record(item.get("attributes"), "attributes")
    name = first(item, "event_name") or attributes.get("event.name")
    stamp = first(item, "timestamp", "observed_timestamp") or attributes.get("event.timestamp")
    return LogRecord(
        trace_id=optional_id(item.get("trace_id"), TRACE_DIGITS, "trace_id"),
        span_id=optional_id(item.get("span_id"), SPAN_DIGITS, "span_id"),
        time_ns=iso_time(stamp, "timestamp")[0],
        event_name=text(name) or None,
        severity=small(item.get("severity_number")),
        body=item.get("body"),
        attributes=attributes,
        resource=_resource(record(item.get("resource"), "resource")),
        scope_name="",
        scope_version="",
    )


PYTHON_CONSOLE = DocumentFormat(
    name="python-console",
    matches=_matches,
    convert=_convert,
    expected="Python console exporter: `context`, `kind: SpanKind.…`",
)

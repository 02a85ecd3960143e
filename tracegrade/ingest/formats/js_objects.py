"""Objects of the JavaScript SDK as JSON: what Gemini CLI (`telemetry.outfile`) and Copilot Chat write to a file.

Each span, log record or batch of metrics is one object, pretty-printed or one a line; times are `[s, ns]` pairs.
Private fields of the SDK's classes stand for public ones (`_spanContext`, `_body`, `_rawAttributes`), since that is
what serialising the object yields.

Lost in it: nothing that the SDK had. Its spans start on a clock of milliseconds (their length is finer), so that is
their precision unless a start shows more; a link to a context that was serialised before reads `[Circular]`.
"""

from __future__ import annotations

from typing import Final

from tracegrade.ingest.base import DocumentFormat, Sink
from tracegrade.ingest.formats.common import (
    MILLISECOND,
    SPAN_DIGITS,
    TRACE_DIGITS,
    BadItem,
    first,
    hex_id,
    iso_time,
    logs_from,
    nanoseconds,
    optional_id,
    readable,
    record,
    rows,
    small,
    spans_from,
    text,
)
from tracegrade.model.span import LogRecord, Span, SpanEvent, SpanLink
from tracegrade.model.values import JSON

_RESOURCE_PLACES: Final = ("attributes", "_memoizedAttributes", "_attributes", "_rawAttributes", "_syncAttributes")
_LOG_TIMES: Final = ("hrTime", "_hrTime", "hrTimeObserved", "_hrTimeObserved")
_SCOPE_PLACES: Final = ("instrumentationScope", "instrumentationLibrary")


def _matches(document: JSON) -> bool:
    items = document if isinstance(document, list) else [document]
    return any(_is_span(d) or _is_log(d) or _is_metrics(d) for d in items)


def _is_pair(value: JSON) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(v, int) for v in value)


def _is_span(document: JSON) -> bool:
    return isinstance(document, dict) and "name" in document and _is_pair(document.get("startTime"))


def _is_log(document: JSON) -> bool:
    return isinstance(document, dict) and any(_is_pair(document.get(name)) for name in _LOG_TIMES)


def _is_metrics(document: JSON) -> bool:
    if not isinstance(document, dict) or not isinstance(document.get("scopeMetrics"), list):
        return False
    resource = document.get("resource")
    return isinstance(resource, dict) and not isinstance(resource.get("attributes"), list)


def _convert(document: JSON, sink: Sink, where: str) -> None:
    items = document if isinstance(document, list) else [document]
    for index, item in enumerate(items):
        place = f"{where} $[{index}]" if isinstance(document, list) else where
        if _is_metrics(item):
            held = [s["metrics"] for s in item["scopeMetrics"] if isinstance(s, dict) and "metrics" in s]
            sink.signal("metrics", sum(len(m) for m in held if isinstance(m, list)))
        elif _is_log(item):
            logs_from([item], _log, sink, place, "")
        else:
            spans_from([item], _span, sink, place, "")


def _span(item: dict[str, JSON]) -> Span:
    context = record(first(item, "_spanContext", "spanContext"), "spanContext") or item
    parent = record(first(item, "parentSpanContext", "_parentSpanContext"), "parentSpanContext")
    status = record(item.get("status"), "status")
    scope = _scope(item)
    events, lost_events = readable(rows(item.get("events"), "events"), _event)
    links, lost_links = readable(rows(item.get("links"), "links"), _link)
    start = _time(item.get("startTime"), "startTime")
    return Span(
        trace_id=hex_id(context.get("traceId"), TRACE_DIGITS, "traceId"),
        span_id=hex_id(context.get("spanId"), SPAN_DIGITS, "spanId"),
        parent_span_id=optional_id(first(parent, "spanId") or first(item, "parentSpanId"), SPAN_DIGITS, "parentSpanId"),
        name=text(item.get("name")),
        kind=_kind(item.get("kind")),
        start_ns=start,
        end_ns=_time(item.get("endTime"), "endTime") if item.get("_ended", item.get("ended", True)) else None,
        status_code=small(status.get("code"), 2),
        status_message=text(status.get("message")),
        attributes=record(item.get("attributes"), "attributes"),
        resource=_resource(item),
        scope_name=text(scope.get("name")),
        scope_version=text(scope.get("version")),
        events=events,
        links=links,
        trace_state=_trace_state(context.get("traceState")),
        flags=small(context.get("traceFlags"), 255),
        dropped_attributes=small(first(item, "_droppedAttributesCount", "droppedAttributesCount")),
        dropped_events=small(first(item, "_droppedEventsCount", "droppedEventsCount")) + lost_events,
        dropped_links=small(first(item, "_droppedLinksCount", "droppedLinksCount")) + lost_links,
        precision_ns=1 if start is not None and start % MILLISECOND else MILLISECOND,
    )


def _kind(value: JSON) -> int:
    """JavaScript's API counts kinds from INTERNAL = 0, OTLP from UNSPECIFIED = 0."""
    return small(value, 4) + 1 if isinstance(value, int) and not isinstance(value, bool) else 0


def _time(value: JSON, what: str) -> int | None:
    if value is None:
        return None
    if not _is_pair(value):
        raise BadItem(f"{what} is not [seconds, nanoseconds]")
    return nanoseconds(value[0] * 1_000_000_000 + value[1], what)


def _scope(item: dict[str, JSON]) -> dict[str, JSON]:
    return record(first(item, *_SCOPE_PLACES), "instrumentationScope")


def _resource(item: dict[str, JSON]) -> dict[str, JSON]:
    """The attributes of a resource object of any SDK version; a list holds `[key, value]` pairs, the first one wins."""
    resource = record(first(item, "resource", "_resource"), "resource")
    for place in _RESOURCE_PLACES:
        held = resource.get(place)
        if isinstance(held, dict):
            return held
        if isinstance(held, list):
            found: dict[str, JSON] = {}
            for pair in held:
                if isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and pair[1] is not None:
                    found.setdefault(pair[0], pair[1])
            return found
    return {}


def _trace_state(value: JSON) -> str:
    if isinstance(value, dict):
        held = value.get("_internalState")
        return ",".join(f"{k}={v}" for k, v in held.items()) if isinstance(held, dict) else ""
    return text(value)


def _event(entry: JSON) -> SpanEvent:
    event = record(entry, "an event")
    return SpanEvent(
        text(event.get("name")),
        _time(event.get("time"), "event time"),
        record(event.get("attributes"), "event attributes"),
        small(event.get("droppedAttributesCount")),
    )


def _link(entry: JSON) -> SpanLink:
    link = record(entry, "a link")
    context = record(link.get("context"), "link context")
    return SpanLink(
        hex_id(context.get("traceId"), TRACE_DIGITS, "link traceId"),
        hex_id(context.get("spanId"), SPAN_DIGITS, "link spanId"),
        record(link.get("attributes"), "link attributes"),
    )


def _log(item: dict[str, JSON]) -> LogRecord:
    context = record(first(item, "spanContext", "_spanContext"), "spanContext")
    attributes = record(item.get("attributes"), "attributes")
    scope = _scope(item)
    time_ns = next((t for n in _LOG_TIMES if (t := _time(item.get(n), n)) is not None), None)
    if time_ns is None:
        time_ns, _ = iso_time(attributes.get("event.timestamp"), "event.timestamp")
    name = first(item, "eventName", "_eventName") or attributes.get("event.name")
    return LogRecord(
        trace_id=optional_id(context.get("traceId"), TRACE_DIGITS, "traceId"),
        span_id=optional_id(context.get("spanId"), SPAN_DIGITS, "spanId"),
        time_ns=time_ns,
        event_name=text(name) or None,
        severity=small(first(item, "severityNumber", "_severityNumber")),
        body=first(item, "body", "_body"),
        attributes=attributes,
        resource=_resource(item),
        scope_name=text(scope.get("name")),
        scope_version=text(scope.get("version")),
    )


JS_OBJECTS = DocumentFormat(
    name="js-sdk-objects",
    matches=_matches,
    convert=_convert,
    expected="JavaScript SDK objects (Gemini CLI): `hrTime`, `_spanContext`",
)

"""Zipkin v2 JSON: an array of spans, arrays of arrays (`/api/v2/traces`), or one span a line.

Lost in it: nanoseconds, every attribute's type (all values are text), links (unless the Collector wrote the file), and
which attributes were the resource's (told apart here by their namespace).
"""

from __future__ import annotations

from typing import Final

from tracegrade.ingest.base import DocumentFormat, Sink
from tracegrade.ingest.formats.common import (
    MICROSECOND,
    SPAN_DIGITS,
    TRACE_DIGITS,
    BadItem,
    first,
    hex_id,
    integer,
    optional_id,
    parsed_json,
    readable,
    record,
    rows,
    small,
    spans_from,
    split_resource,
    text,
    unit_time,
)
from tracegrade.ingest.formats.jaeger import TICK
from tracegrade.model.span import STATUS_ERROR, Span, SpanEvent, SpanLink
from tracegrade.model.values import JSON

_KINDS: Final = {"SERVER": 2, "CLIENT": 3, "PRODUCER": 4, "CONSUMER": 5}
_STATUS: Final = {"OK": 1, "ERROR": STATUS_ERROR}
_OWN_TAGS: Final = (
    "otel.scope.name",
    "otel.scope.version",
    "otel.library.name",
    "otel.library.version",
    "otel.status_code",
    "otel.status_description",
    "error",
    "w3c.tracestate",
    "otel.dropped_attributes_count",
    "otel.dropped_events_count",
    "otel.dropped_links_count",
)
_LINK_TAG: Final = "otlp.link."


def _is_span(document: JSON) -> bool:
    if not isinstance(document, dict) or not {"traceId", "id"} <= document.keys():
        return False
    if document.keys() & {"spanId", "type", "projectId", "startTime"}:
        return False
    return bool(document.keys() & {"timestamp", "duration", "localEndpoint", "tags", "annotations", "kind", "parentId"})


def _matches(document: JSON) -> bool:
    if isinstance(document, list):
        inner = next((d for d in document if d not in ([], None)), None)
        return _is_span(inner) or (isinstance(inner, list) and any(_is_span(s) for s in inner))
    return _is_span(document)


def _convert(document: JSON, sink: Sink, where: str) -> None:
    if isinstance(document, dict):
        spans_from([document], _span, sink, where, "")
    elif any(isinstance(d, list) for d in document):
        for index, trace in enumerate(document):
            spans_from(trace if isinstance(trace, list) else [trace], _span, sink, where, f"[{index}]")
    else:
        spans_from(document, _span, sink, where, "$")


def _span(item: dict[str, JSON]) -> Span:
    tags = record(item.get("tags"), "tags")
    own = {k: v for k, v in tags.items() if k not in _OWN_TAGS and not k.startswith(_LINK_TAG)}
    if text(own.get("span.kind")).lower() == "internal":
        del own["span.kind"]
    attributes, resource = split_resource(own)
    service = record(item.get("localEndpoint"), "localEndpoint").get("serviceName")
    if isinstance(service, str) and service:
        resource.setdefault("service.name", service)
    start = unit_time(item.get("timestamp"), MICROSECOND, "timestamp")
    status, message = _status(tags)
    events, lost_events = readable(rows(item.get("annotations"), "annotations"), _event)
    links, lost_links = readable([v for k, v in tags.items() if k.startswith(_LINK_TAG)], _link)
    return Span(
        trace_id=hex_id(item.get("traceId"), TRACE_DIGITS, "traceId", pad=True),
        span_id=hex_id(item.get("id"), SPAN_DIGITS, "id", pad=True),
        parent_span_id=optional_id(item.get("parentId"), SPAN_DIGITS, "parentId", pad=True),
        name=text(item.get("name")),
        kind=_KINDS.get(text(item.get("kind")).upper(), 1),
        start_ns=start,
        end_ns=_end(start, item.get("duration")),
        status_code=status,
        status_message=message,
        attributes=attributes,
        resource=resource,
        scope_name=text(first(tags, "otel.scope.name", "otel.library.name")),
        scope_version=text(first(tags, "otel.scope.version", "otel.library.version")),
        events=events,
        links=links,
        trace_state=text(tags.get("w3c.tracestate")),
        dropped_attributes=small(tags.get("otel.dropped_attributes_count")),
        dropped_events=small(tags.get("otel.dropped_events_count")) + lost_events,
        dropped_links=small(tags.get("otel.dropped_links_count")) + lost_links,
        precision_ns=TICK,
    )


def _end(start: int | None, duration: JSON) -> int | None:
    """Zipkin leaves the duration out of a span that did not finish."""
    if start is None or duration is None:
        return None
    length = integer(duration, "duration")
    if length < 0:
        raise BadItem(f"duration {length} is negative")
    return unit_time(start // MICROSECOND + length, MICROSECOND, "end")


def _status(tags: dict[str, JSON]) -> tuple[int, str]:
    """The tag `error` marks a failure whatever its value, save `false`; its text is the message."""
    status = _STATUS.get(text(tags.get("otel.status_code")).upper(), 0)
    error = tags.get("error")
    if status == 0 and error is not None and text(error).lower() != "false":
        status = STATUS_ERROR
    message = text(tags.get("otel.status_description"))
    if not message and status == STATUS_ERROR and text(error).lower() not in ("true", "false"):
        message = text(error)
    return status, message


def _event(entry: JSON) -> SpanEvent:
    """Exporters write an event as `{"name": {…}}`, `"name": {…}` or, in the Collector, `name|{…}|dropped`."""
    annotation = record(entry, "an annotation")
    time_ns = unit_time(annotation.get("timestamp"), MICROSECOND, "annotation timestamp")
    value = text(annotation.get("value"))
    for candidate in (value, "{" + value + "}"):
        parsed = _object(candidate)
        if len(parsed) == 1:
            name, attributes = next(iter(parsed.items()))
            if isinstance(attributes, dict):
                return SpanEvent(name, time_ns, attributes)
    name, _, rest = value.partition("|")
    attributes, _, dropped = rest.rpartition("|")
    if attributes.startswith("{") and dropped.isdecimal():
        return SpanEvent(name, time_ns, _object(attributes), small(dropped))
    return SpanEvent(value, time_ns, {})


def _link(value: JSON) -> SpanLink:
    """The Collector's `trace id|span id|trace state|{attributes}|dropped`."""
    trace_id, _, rest = text(value).partition("|")
    span_id, _, rest = rest.partition("|")
    return SpanLink(
        hex_id(trace_id, TRACE_DIGITS, "link trace id", pad=True),
        hex_id(span_id, SPAN_DIGITS, "link span id", pad=True),
        _object(rest[rest.find("{") : rest.rfind("}") + 1]),
    )


def _object(value: str) -> dict[str, JSON]:
    """A JSON object written as text; an empty one if it is none."""
    parsed = parsed_json(value)
    return parsed if isinstance(parsed, dict) else {}


ZIPKIN = DocumentFormat(
    name="zipkin-json",
    matches=_matches,
    convert=_convert,
    expected="Zipkin v2 JSON: `traceId`, `id`, `timestamp`",
)

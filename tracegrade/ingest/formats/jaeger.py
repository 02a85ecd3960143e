"""Jaeger's JSON: what its query API and UI download (`{"data": [{"spans": …, "processes": …}]}`), one such trace
alone, and single spans with their process inside, as Jaeger keeps them in Elasticsearch.

Lost in it: nanoseconds, the type of lists and objects (they are JSON text), the scope's attributes, and the time of a
span that never ended (it has duration 0).
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
    readable,
    record,
    rows,
    spans_from,
    text,
    unit_time,
)
from tracegrade.model.span import STATUS_ERROR, Span, SpanEvent, SpanLink
from tracegrade.model.values import JSON

TICK: Final = 2 * MICROSECOND
"""Start and duration are both cut to microseconds, so an end may be almost two of them later than written."""

_KINDS: Final = {"internal": 1, "server": 2, "client": 3, "producer": 4, "consumer": 5}
_STATUS: Final = {"OK": 1, "ERROR": STATUS_ERROR}
_JAEGER_TAGS: Final = (
    "span.kind",
    "otel.scope.name",
    "otel.library.name",
    "otel.scope.version",
    "otel.library.version",
    "otel.status_code",
    "otel.status_description",
    "error",
    "w3c.tracestate",
    "internal.span.format",
)


def _matches(document: JSON) -> bool:
    if not isinstance(document, dict):
        return False
    data = document.get("data")
    if isinstance(data, list):
        return any(_is_trace(t) for t in data) or (not data and "errors" in document and "total" in document)
    return _is_trace(document) or _is_span(document)


def _is_trace(document: JSON) -> bool:
    return isinstance(document, dict) and "traceID" in document and isinstance(document.get("spans"), list)


def _is_span(document: JSON) -> bool:
    return isinstance(document, dict) and {"traceID", "spanID", "operationName"} <= document.keys()


def _convert(document: JSON, sink: Sink, where: str) -> None:
    if _is_span(document):
        spans_from([document], lambda s: _span(s, {}), sink, where, "")
        return
    data = document.get("data")
    traces = data if isinstance(data, list) else [document]
    for index, trace in enumerate(traces):
        path = f"data[{index}].spans" if isinstance(data, list) else "spans"
        if not _is_trace(trace):
            sink.skip(f"{where} data[{index}]", "not a Jaeger trace: it has no `traceID` and `spans`")
            continue
        processes = trace.get("processes")
        known = processes if isinstance(processes, dict) else {}
        spans_from(trace["spans"], lambda s, known=known: _span(s, known), sink, where, path)  # type: ignore[misc]


def _span(item: dict[str, JSON], processes: dict[str, JSON]) -> Span:
    trace_id = hex_id(first(item, "traceID", "traceId"), TRACE_DIGITS, "traceID", pad=True)
    tags = _tags(item.get("tags"), "tags") | _tag_map(item)
    parent, links, lost_links = _references(item, trace_id)
    events, lost_events = readable(rows(item.get("logs"), "logs"), _event)
    start = unit_time(item.get("startTime"), MICROSECOND, "startTime")
    duration = item.get("duration")
    end = None
    if start is not None and duration is not None:
        length = integer(duration, "duration")
        if length < 0:
            raise BadItem(f"duration {length} is negative")
        end = unit_time(start // MICROSECOND + length, MICROSECOND, "end")
    status = _STATUS.get(text(tags.get("otel.status_code")).upper(), 0)
    if status == 0 and _is_true(tags.get("error")):
        status = STATUS_ERROR
    return Span(
        trace_id=trace_id,
        span_id=hex_id(first(item, "spanID", "spanId"), SPAN_DIGITS, "spanID", pad=True),
        parent_span_id=parent,
        name=text(item.get("operationName")),
        kind=_KINDS.get(text(tags.get("span.kind")).lower(), 0),
        start_ns=start,
        end_ns=end,
        status_code=status,
        status_message=text(tags.get("otel.status_description")),
        attributes={k: v for k, v in tags.items() if k not in _JAEGER_TAGS or (k == "error" and not _is_bool(v))},
        resource=_resource(item, processes),
        scope_name=text(first(tags, "otel.scope.name", "otel.library.name")),
        scope_version=text(first(tags, "otel.scope.version", "otel.library.version")),
        events=events,
        links=links,
        trace_state=text(tags.get("w3c.tracestate")),
        dropped_events=lost_events,
        dropped_links=lost_links,
        precision_ns=TICK,
    )


def _is_bool(value: JSON) -> bool:
    return isinstance(value, bool) or text(value).lower() in ("true", "false")


def _is_true(value: JSON) -> bool:
    return value is True or (isinstance(value, str) and value.lower() == "true")


def _tags(value: JSON, what: str) -> dict[str, JSON]:
    """`[{key, type, value}]` as a map; a value's declared type decides where its JSON type differs."""
    found: dict[str, JSON] = {}
    for entry in rows(value, what):
        tag = record(entry, f"an entry of {what}")
        key = tag.get("key")
        if isinstance(key, str):
            found[key] = _typed(tag.get("value"), text(tag.get("type")).lower())
    return found


def _tag_map(item: dict[str, JSON]) -> dict[str, JSON]:
    """Elasticsearch may hold tags as fields of one object, in which dots in keys were replaced."""
    tag = item.get("tag")
    return {k.replace("@", "."): v for k, v in tag.items()} if isinstance(tag, dict) else {}


def _typed(value: JSON, kind: str) -> JSON:
    """Numbers beyond 2^53 stand as text in this format, and Elasticsearch keeps every value as text."""
    if not isinstance(value, str):
        return value
    try:
        if kind == "int64":
            return int(value)
        if kind == "float64":
            return float(value)
    except ValueError:
        return value
    if kind == "bool" and value.lower() in ("true", "false"):
        return value.lower() == "true"
    return value


def _references(item: dict[str, JSON], trace_id: str) -> tuple[str | None, tuple[SpanLink, ...], int]:
    """The parent (the first CHILD_OF within the trace), the links (all others), and how many are broken."""
    parent = optional_id(item.get("parentSpanID"), SPAN_DIGITS, "parentSpanID", pad=True)
    links: list[SpanLink] = []
    found, lost = readable(rows(item.get("references"), "references"), lambda r: _reference(r, trace_id))
    for kind, target in found:
        if kind == "CHILD_OF" and target.trace_id == trace_id and parent in (None, target.span_id):
            parent = target.span_id
        else:
            links.append(target)
    return parent, tuple(links), lost


def _reference(entry: JSON, trace_id: str) -> tuple[str, SpanLink]:
    reference = record(entry, "a reference")
    trace = reference.get("traceID")
    of_trace = hex_id(trace, TRACE_DIGITS, "reference.traceID", pad=True) if trace else trace_id
    target = hex_id(reference.get("spanID"), SPAN_DIGITS, "reference.spanID", pad=True)
    return text(reference.get("refType")).upper(), SpanLink(of_trace, target, {})


def _event(entry: JSON) -> SpanEvent:
    log = record(entry, "a log")
    fields = _tags(log.get("fields"), "fields")
    name = text(fields.pop("event", None)) or text(fields.get("message"))
    return SpanEvent(name, unit_time(log.get("timestamp"), MICROSECOND, "log timestamp"), fields)


def _resource(item: dict[str, JSON], processes: dict[str, JSON]) -> dict[str, JSON]:
    process = item.get("process")
    if not isinstance(process, dict):
        process = processes.get(text(item.get("processID")))
    if not isinstance(process, dict):
        return {}
    found = _tags(process.get("tags"), "process tags")
    service = process.get("serviceName")
    if isinstance(service, str) and service:
        found["service.name"] = service
    return found


JAEGER = DocumentFormat(
    name="jaeger-json",
    matches=_matches,
    convert=_convert,
    expected="Jaeger JSON: `data[].spans[]` with `traceID`",
)

"""MLflow traces as JSON: `Trace.to_json()`, `{"info": …, "data": {"spans": […]}}`, of MLflow 2 and 3; and the artifact
`traces.json`, which is the inner `{"spans": […]}` alone.

`mlflow.*` attributes stay JSON-quoted as MLflow writes them; all others, which MLflow quotes too, are unquoted. Session
and user of the trace stand on every span (`session.id`, `user.id`), its tags and metadata on the root.

Lost in it: resource, scope, the span's OpenTelemetry kind, trace state.
"""

from __future__ import annotations

from typing import Final

from tracegrade.ingest.base import DocumentFormat, Sink
from tracegrade.ingest.formats.common import (
    ORIGINAL_TRACE_ID,
    SPAN_DIGITS,
    TRACE_DIGITS,
    BadItem,
    any_id,
    evaluation_event,
    first,
    hex_id,
    iso_time,
    parsed_json,
    readable,
    record,
    rows,
    spans_from,
    text,
    unit_time,
)
from tracegrade.model.span import STATUS_NAMES, Span, SpanEvent, SpanLink
from tracegrade.model.values import JSON

_TRACE_LEVEL: Final = {"session.id": "mlflow.trace.session", "user.id": "mlflow.trace.user"}
_BULKY: Final = frozenset({"mlflow.traceInputs", "mlflow.traceOutputs", "mlflow.traceSpans"})
_REQUEST_PREFIX: Final = "tr-"


def _is_trace(document: JSON) -> bool:
    if not isinstance(document, dict):
        return False
    data = document.get("data")
    return isinstance(document.get("info"), dict) and isinstance(data, dict) and isinstance(data.get("spans"), list)


def _is_data(document: JSON) -> bool:
    if not isinstance(document, dict) or not isinstance(document.get("spans"), list):
        return False
    return any(_is_span(s) for s in document["spans"])


def _is_span(document: JSON) -> bool:
    attributes = document.get("attributes") if isinstance(document, dict) else None
    return isinstance(attributes, dict) and any(k.startswith("mlflow.") for k in attributes)


def _matches(document: JSON) -> bool:
    items = document if isinstance(document, list) else [document]
    return any(_is_trace(d) or _is_data(d) for d in items)


def _convert(document: JSON, sink: Sink, where: str) -> None:
    items = document if isinstance(document, list) else [document]
    for index, item in enumerate(items):
        place = f"{where} $[{index}]" if isinstance(document, list) else where
        if _is_trace(item):
            info = item["info"]
            spans_from(item["data"]["spans"], lambda s, i=info: _span(s, i), sink, place, "data.spans")  # type: ignore[misc]
        elif _is_data(item):
            spans_from(item["spans"], lambda s: _span(s, {}), sink, place, "spans")
        else:
            sink.skip(place, "not an MLflow trace: it has no `info` and `data.spans`")


def _span(item: dict[str, JSON], info: dict[str, JSON]) -> Span:
    context = record(item.get("context"), "context") or item
    status = item.get("status")
    status = status if isinstance(status, dict) else {"code": item.get("status_code") or status}
    code = text(status.get("code")).upper().removeprefix("STATUS_CODE_")
    parent = first(item, "parent_span_id", "parent_id") or None
    attributes = {k: _unquoted(k, v) for k, v in record(item.get("attributes"), "attributes").items()}
    attributes |= {k: v for k, v in _trace_attributes(info, parent is None).items() if k not in attributes}
    events, lost_events = readable(rows(item.get("events"), "events"), _event)
    events += _assessments(info, text(context.get("span_id")), root=parent is None)
    links, lost_links = readable(rows(item.get("links"), "links"), _link)
    trace_id = _trace_id(context.get("trace_id"), info, attributes)
    return Span(
        trace_id=trace_id,
        span_id=hex_id(context.get("span_id"), SPAN_DIGITS, "span_id"),
        parent_span_id=hex_id(parent, SPAN_DIGITS, "parent_span_id") if parent is not None else None,
        name=text(item.get("name")),
        kind=0,
        start_ns=unit_time(first(item, "start_time_unix_nano", "start_time"), 1, "start_time_unix_nano"),
        end_ns=unit_time(first(item, "end_time_unix_nano", "end_time"), 1, "end_time_unix_nano"),
        status_code=STATUS_NAMES.index(code) if code in STATUS_NAMES else 0,
        status_message=text(status.get("message") or item.get("status_message")),
        attributes=attributes,
        resource={},
        scope_name="",
        scope_version="",
        events=events,
        links=links,
        dropped_events=lost_events,
        dropped_links=lost_links,
    )


def _assessments(info: dict[str, JSON], span_id: str, *, root: bool) -> tuple[SpanEvent, ...]:
    """Feedback on a span as evaluation events; feedback on the trace as a whole stands on its root."""
    held = info.get("assessments")
    found = []
    for entry in held if isinstance(held, list) else ():
        feedback = entry.get("feedback") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or not isinstance(feedback, dict):
            continue
        about = entry.get("span_id")
        if about != span_id if about else not root:
            continue
        value = feedback.get("value")
        label = value if isinstance(value, str) else None
        stamp, _ = iso_time(first(entry, "create_time", "create_time_ms"), "create_time")
        name = first(entry, "assessment_name", "name")
        event = evaluation_event(name, None if label else value, label, entry.get("rationale"), stamp)
        found.append(event)
    return tuple(e for e in found if e is not None)


def _unquoted(key: str, value: JSON) -> JSON:
    return value if key.startswith("mlflow.") else parsed_json(value)


def _trace_id(value: JSON, info: dict[str, JSON], attributes: dict[str, JSON]) -> str:
    if value in (None, ""):
        value = first(info, "trace_id", "request_id")
    if isinstance(value, str):
        value = value.rpartition("/")[2].removeprefix(_REQUEST_PREFIX)
    try:
        return hex_id(value, TRACE_DIGITS, "trace_id")
    except BadItem:
        attributes[ORIGINAL_TRACE_ID] = value
        return any_id(value, TRACE_DIGITS, "trace_id")


def _trace_attributes(info: dict[str, JSON], root: bool) -> dict[str, JSON]:
    metadata = record(first(info, "trace_metadata", "request_metadata"), "info.trace_metadata")
    found = {key: metadata[name] for key, name in _TRACE_LEVEL.items() if metadata.get(name)}
    if root:
        found |= {k: v for k, v in metadata.items() if k not in _BULKY and v not in (None, "")}
        tags = info.get("tags")
        found |= {k: v for k, v in tags.items() if v not in (None, "")} if isinstance(tags, dict) else {}
        for name in ("client_request_id", "trace_id", "request_id"):
            if info.get(name):
                found[f"mlflow.info.{name}"] = info[name]
    return found


def _event(entry: JSON) -> SpanEvent:
    event = record(entry, "an event")
    stamp = unit_time(first(event, "time_unix_nano", "timestamp"), 1, "event time")
    return SpanEvent(text(event.get("name")), stamp, record(event.get("attributes"), "event attributes"))


def _link(entry: JSON) -> SpanLink:
    link = record(entry, "a link")
    trace = text(link.get("trace_id")).rpartition("/")[2].removeprefix(_REQUEST_PREFIX)
    return SpanLink(
        hex_id(trace, TRACE_DIGITS, "link trace_id"),
        hex_id(link.get("span_id"), SPAN_DIGITS, "link span_id"),
        record(link.get("attributes"), "link attributes"),
    )


MLFLOW = DocumentFormat(
    name="mlflow-json",
    matches=_matches,
    convert=_convert,
    expected="MLflow trace: `info`, `data.spans`",
)

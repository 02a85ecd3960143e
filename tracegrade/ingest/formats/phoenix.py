"""Arize Phoenix: data frames of spans (JSON Lines, JSON records, Parquet), REST spans, and the traces of its CLI.

Phoenix keeps attributes unflattened (`llm.input_messages` is a list of objects); they are flattened back to the keys of
OpenInference (`llm.input_messages.0.message.role`).

Lost in it: nanoseconds, resource, scope, the span's OpenTelemetry kind, links, trace state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tracegrade.ingest.base import DocumentFormat, Sink
from tracegrade.ingest.formats.columns import ParquetFormat
from tracegrade.ingest.formats.common import (
    MICROSECOND,
    MILLISECOND,
    SPAN_DIGITS,
    TRACE_DIGITS,
    BadItem,
    first,
    flatten,
    hex_id,
    iso_time,
    json_text,
    optional_id,
    readable,
    record,
    rows_from,
    spans_from,
    text,
)
from tracegrade.ingest.formats.otlp_parquet import span_of
from tracegrade.model.span import STATUS_NAMES, Span, SpanEvent
from tracegrade.model.values import JSON

_PREFIX: Final = "attributes."
_KIND: Final = "openinference.span.kind"
_JSON_TEXT: Final = ("document.metadata", "llm.prompt_template.variables", "metadata", "tool.parameters")
"""Attributes that OpenInference defines as JSON text; Phoenix parses them, so here they become text again."""


def _is_row(document: JSON) -> bool:
    return isinstance(document, dict) and {"context.span_id", "context.trace_id"} <= document.keys()


def _is_rest_span(document: JSON) -> bool:
    if not isinstance(document, dict) or not {"span_kind", "context", "start_time"} <= document.keys():
        return False
    return isinstance(document["context"], dict)


def _is_span(document: JSON) -> bool:
    return _is_row(document) or _is_rest_span(document)


def _is_trace(document: JSON) -> bool:
    if not isinstance(document, dict) or not isinstance(document.get("spans"), list):
        return False
    return any(_is_rest_span(s) for s in document["spans"])


def _is_otlp(document: JSON) -> bool:
    """A span of `GET /v1/projects/…/spans/otlpv1`: OTLP's fields in snake case, without resource and scope."""
    return isinstance(document, dict) and {"trace_id", "span_id", "start_time_unix_nano"} <= document.keys()


def _matches(document: JSON) -> bool:
    if isinstance(document, dict) and isinstance(document.get("data"), list):
        return any(_is_span(d) or _is_trace(d) or _is_otlp(d) for d in document["data"])
    if isinstance(document, list):
        return any(_is_span(d) or _is_trace(d) for d in document)
    return _is_span(document) or _is_trace(document)


def _convert(document: JSON, sink: Sink, where: str) -> None:
    if isinstance(document, dict) and not _is_span(document) and not _is_trace(document):
        items, path = document["data"], "data"
    else:
        items, path = (document, "$") if isinstance(document, list) else ([document], "")
    for index, item in enumerate(items):
        place = f"{where} {path}[{index}]" if path else where
        if _is_trace(item):
            spans_from(item["spans"], _span, sink, place, "spans")
        elif _is_otlp(item):
            spans_from([item], _otlp_span, sink, place, "")
        else:
            spans_from([item], _span, sink, place, "")


def _span(item: dict[str, JSON]) -> Span:
    row = _as_row(item)
    attributes = _attributes(row)
    _marks(attributes, text(first(row, "span_kind")).upper())
    events, lost_events = readable(_list(row.get("events")), _event)
    status = text(row.get("status_code")).upper()
    start, start_tick = _time(row.get("start_time"), "start_time")
    end, end_tick = _time(row.get("end_time"), "end_time")
    return Span(
        trace_id=hex_id(row.get("context.trace_id"), TRACE_DIGITS, "context.trace_id"),
        span_id=hex_id(row.get("context.span_id"), SPAN_DIGITS, "context.span_id"),
        parent_span_id=optional_id(_no_nan(row.get("parent_id")), SPAN_DIGITS, "parent_id"),
        name=text(row.get("name")),
        kind=0,
        start_ns=start,
        end_ns=end,
        status_code=STATUS_NAMES.index(status) if status in STATUS_NAMES else 0,
        status_message=text(_no_nan(row.get("status_message"))),
        attributes=attributes,
        resource={},
        scope_name="",
        scope_version="",
        events=events,
        dropped_events=lost_events,
        precision_ns=max(start_tick, end_tick),
    )


def _otlp_span(item: dict[str, JSON]) -> Span:
    """Times went through floats, which hold nanoseconds of today to 256: rounded; the kind is made up: left out."""
    span = span_of(item)
    start, end = (t and (t + MICROSECOND // 2) // MICROSECOND * MICROSECOND for t in (span.start_ns, span.end_ns))
    _marks(span.attributes, "")
    return replace(span, kind=0, start_ns=start, end_ns=end, precision_ns=MICROSECOND)


def _marks(attributes: dict[str, JSON], kind: str) -> None:
    """Let the span's own marks say what it is: Phoenix adds its reading of a GenAI span to it."""
    if "gen_ai.operation.name" in attributes:
        attributes.pop(_KIND, None)
    elif kind and kind != "UNKNOWN":
        attributes.setdefault(_KIND, kind)


def _as_row(item: dict[str, JSON]) -> dict[str, JSON]:
    if _is_row(item):
        return item
    context = record(item.get("context"), "context")
    return {
        **item,
        "context.trace_id": context.get("trace_id"),
        "context.span_id": context.get("span_id"),
    }


def _no_nan(value: JSON) -> JSON:
    """A data frame holds NaN where a text is missing."""
    return None if isinstance(value, float) else value


def _time(value: JSON, what: str) -> tuple[int | None, int]:
    """A time and its tick: microseconds, or what a data frame's JSON left of them (pandas writes milliseconds)."""
    if value != value:
        return None, MICROSECOND
    stamp, tick = iso_time(value, what)
    whole_second = isinstance(value, str) and tick > MILLISECOND  # Python leaves the fraction out where it is 0
    return stamp, MICROSECOND if whole_second else max(tick, MICROSECOND)


def _list(value: JSON) -> list[JSON]:
    if isinstance(value, float) or value is None:
        return []
    if not isinstance(value, list):
        raise BadItem("events is no list")
    return value


def _attributes(row: dict[str, JSON]) -> dict[str, JSON]:
    found: dict[str, JSON] = {}
    held = row.get("attributes")
    if isinstance(held, dict):
        _flat("", _regrouped(held), found)
    for key, value in row.items():
        if key.startswith(_PREFIX) and value == value:
            _flat(key.removeprefix(_PREFIX), _whole(value), found)
    return found


def _regrouped(flat: dict[str, JSON]) -> dict[str, JSON]:
    """REST flattens what OpenInference defines as JSON text as well: `metadata.task` goes back into `metadata`."""
    found: dict[str, JSON] = {}
    for key, value in flat.items():
        whole = next((name for name in _JSON_TEXT if key.startswith(f"{name}.")), None)
        if whole is None:
            found[key] = value
            continue
        *path, last = key.removeprefix(f"{whole}.").split(".")
        place = found.setdefault(whole, {})
        for part in path:
            place = place.setdefault(part, {}) if isinstance(place, dict) else None
        if isinstance(place, dict):
            place[last] = value
    return found


def _whole(value: JSON) -> JSON:
    """A column of integers with gaps is one of floats in a data frame."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _flat(prefix: str, value: JSON, found: dict[str, JSON]) -> None:
    """Flatten, with what OpenInference defines as JSON text written as such."""
    nested: dict[str, JSON] = {}
    _with_json_text(prefix, value, nested)
    for key, inner in nested.items():
        flatten(key, inner, found)


def _with_json_text(key: str, value: JSON, into: dict[str, JSON], depth: int = 0) -> None:
    if depth > 64:
        raise BadItem(f"attribute {key[:50]!r} is nested deeper than 64 levels")
    if isinstance(value, dict):
        if key.endswith(_JSON_TEXT):
            into[key] = json_text(_without_nulls(value))
            return
        for inner, held in value.items():
            _with_json_text(f"{key}.{inner}" if key else inner, held, into, depth + 1)
    elif isinstance(value, list) and any(isinstance(v, dict) for v in value):
        for index, held in enumerate(value):
            _with_json_text(f"{key}.{index}", held, into, depth + 1)
    else:
        into[key] = value


def _without_nulls(value: JSON) -> JSON:
    if isinstance(value, dict):
        return {k: _without_nulls(v) for k, v in value.items() if v is not None}
    return [_without_nulls(v) for v in value] if isinstance(value, list) else value


def _event(entry: JSON) -> SpanEvent:
    event = record(entry, "an event")
    attributes: dict[str, JSON] = {}
    flatten("", record(event.get("attributes"), "event attributes"), attributes)
    return SpanEvent(text(event.get("name")), _time(event.get("timestamp"), "event timestamp")[0], attributes)


def _matches_columns(names: frozenset[str]) -> bool:
    return names >= {"context.span_id", "context.trace_id"}


def _convert_rows(items: Sequence[dict[str, JSON]], sink: Sink, before: int) -> None:
    rows_from(items, _span, sink, before)


PHOENIX = DocumentFormat(
    name="phoenix-json",
    matches=_matches,
    convert=_convert,
    expected="Phoenix spans: `context.span_id`, `span_kind`",
)
PHOENIX_PARQUET = ParquetFormat(
    name="phoenix-parquet",
    matches=_matches_columns,
    convert=_convert_rows,
    expected="Phoenix span columns: context.trace_id, context.span_id, span_kind, attributes.*",
)

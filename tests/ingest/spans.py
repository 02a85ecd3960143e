"""Spans for tests: hypothesis strategies, and writers of OTLP that share no code with the product."""

from __future__ import annotations

import base64
import json
import math
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from tracegrade.app.load import load
from tracegrade.ingest import ReadOptions
from tracegrade.model.load import LoadReport
from tracegrade.model.span import LogRecord, Span, SpanEvent, SpanLink
from tracegrade.store import Store

INT64 = st.integers(-(2**63), 2**63 - 1)
TIMES = st.one_of(st.none(), st.integers(1, 2**63 - 1))
# NUL and surrogates are cleaned on the way: tested by themselves.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=30)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), INT64, st.floats(allow_nan=False, allow_infinity=False), TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=6,
)
ATTRIBUTES = st.dictionaries(TEXT, VALUES, max_size=5)
TRACE_IDS = st.sampled_from([f"{n:032x}" for n in (1, 2, 2**127)])
SPAN_IDS = st.integers(1, 2**64 - 1).map(lambda n: f"{n:016x}")


def _span(draw: Any, trace_id: str, span_id: str, origin: tuple[Any, ...]) -> Span:
    resource, name, version, scope_attributes, url = origin
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_span_id=draw(st.one_of(st.none(), SPAN_IDS)),
        name=draw(TEXT),
        kind=draw(st.integers(0, 5)),
        start_ns=draw(TIMES),
        end_ns=draw(TIMES),
        status_code=draw(st.integers(0, 2)),
        status_message=draw(TEXT),
        attributes=draw(ATTRIBUTES),
        resource=resource,
        scope_name=name,
        scope_version=version,
        events=tuple(draw(st.lists(EVENTS, max_size=2))),
        links=tuple(draw(st.lists(LINKS, max_size=2))),
        trace_state=draw(TEXT),
        flags=draw(st.integers(0, 2**32 - 1)),
        dropped_attributes=draw(st.integers(0, 2**32 - 1)),
        dropped_events=draw(st.integers(0, 9)),
        dropped_links=draw(st.integers(0, 9)),
        schema_url=url,
        scope_attributes=scope_attributes,
    )


EVENTS = st.builds(SpanEvent, TEXT, TIMES, ATTRIBUTES, st.integers(0, 9))
LINKS = st.builds(SpanLink, TRACE_IDS, SPAN_IDS, ATTRIBUTES)


@st.composite
def spans(draw: Any, max_size: int = 5) -> list[Span]:
    """Spans with different ids, of one or two resources."""
    origins = draw(st.lists(st.tuples(ATTRIBUTES, TEXT, TEXT, ATTRIBUTES, TEXT), min_size=1, max_size=2))
    ids = draw(st.lists(st.tuples(TRACE_IDS, SPAN_IDS), min_size=1, max_size=max_size, unique=True))
    return [_span(draw, trace, own, draw(st.sampled_from(origins))) for trace, own in ids]


def in_order(found: list[Span]) -> list[Span]:
    """Spans in the order in which a store gives them."""
    late = 2**64
    first: dict[str, int] = {}
    for span in found:
        first[span.trace_id] = min(first.get(span.trace_id, late), late if span.start_ns is None else span.start_ns)

    def key(s: Span) -> tuple[Any, ...]:
        start, end = (late if v is None else v for v in (s.start_ns, s.end_ns))
        return first[s.trace_id], s.trace_id, start, end, s.span_id

    return sorted(found, key=key)


def json_value(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value if math.isfinite(value) else str(value)}
    if isinstance(value, bytes):
        return {"bytesValue": base64.b64encode(value).decode()}
    if isinstance(value, list):
        return {"arrayValue": {"values": [json_value(v) for v in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": json_pairs(value)}}
    return {"stringValue": value}


def json_pairs(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": k, "value": json_value(v)} for k, v in attributes.items()]


def json_document(found: list[Span]) -> dict[str, Any]:
    """One request; each span has a ResourceSpans of its own."""
    return {"resourceSpans": [_json_resource_spans(s) for s in found]}


def _json_resource_spans(span: Span) -> dict[str, Any]:
    record = {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "parentSpanId": span.parent_span_id or "",
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": str(span.start_ns or 0),
        "endTimeUnixNano": str(span.end_ns or 0),
        "status": {"code": span.status_code, "message": span.status_message},
        "attributes": json_pairs(span.attributes),
        "traceState": span.trace_state,
        "flags": span.flags,
        "droppedAttributesCount": span.dropped_attributes,
        "droppedEventsCount": span.dropped_events,
        "droppedLinksCount": span.dropped_links,
        "events": [
            {
                "name": e.name,
                "timeUnixNano": str(e.time_ns or 0),
                "attributes": json_pairs(e.attributes),
                "droppedAttributesCount": e.dropped_attributes,
            }
            for e in span.events
        ],
        "links": [
            {"traceId": k.trace_id, "spanId": k.span_id, "attributes": json_pairs(k.attributes)} for k in span.links
        ],
    }
    scope = {
        "name": span.scope_name,
        "version": span.scope_version,
        "attributes": json_pairs(span.scope_attributes),
    }
    return {
        "resource": {"attributes": json_pairs(span.resource)},
        "scopeSpans": [{"scope": scope, "spans": [record], "schemaUrl": span.schema_url}],
    }


def proto_value(value: Any) -> AnyValue:
    found = AnyValue()
    if isinstance(value, bool):
        found.bool_value = value
    elif isinstance(value, int):
        found.int_value = value
    elif isinstance(value, float):
        found.double_value = value
    elif isinstance(value, bytes):
        found.bytes_value = value
    elif isinstance(value, str):
        found.string_value = value
    elif isinstance(value, list):
        found.array_value.SetInParent()
        found.array_value.values.extend(proto_value(v) for v in value)
    elif isinstance(value, dict):
        found.kvlist_value.SetInParent()
        found.kvlist_value.values.extend(proto_pairs(value))
    return found


def proto_pairs(attributes: dict[str, Any]) -> list[KeyValue]:
    return [KeyValue(key=k, value=proto_value(v)) for k, v in attributes.items()]


def proto_message(found: list[Span]) -> TracesData:
    data = TracesData()
    for span in found:
        outer = data.resource_spans.add()
        outer.resource.attributes.extend(proto_pairs(span.resource))
        inner = outer.scope_spans.add(schema_url=span.schema_url)
        inner.scope.name, inner.scope.version = span.scope_name, span.scope_version
        inner.scope.attributes.extend(proto_pairs(span.scope_attributes))
        record = inner.spans.add(
            trace_id=bytes.fromhex(span.trace_id),
            span_id=bytes.fromhex(span.span_id),
            parent_span_id=bytes.fromhex(span.parent_span_id or ""),
            name=span.name,
            kind=span.kind,
            start_time_unix_nano=span.start_ns or 0,
            end_time_unix_nano=span.end_ns or 0,
            attributes=proto_pairs(span.attributes),
            trace_state=span.trace_state,
            flags=span.flags,
            dropped_attributes_count=span.dropped_attributes,
            dropped_events_count=span.dropped_events,
            dropped_links_count=span.dropped_links,
        )
        record.status.code, record.status.message = span.status_code, span.status_message
        for event in span.events:
            record.events.add(
                name=event.name,
                time_unix_nano=event.time_ns or 0,
                attributes=proto_pairs(event.attributes),
                dropped_attributes_count=event.dropped_attributes,
            )
        for link in span.links:
            record.links.add(
                trace_id=bytes.fromhex(link.trace_id),
                span_id=bytes.fromhex(link.span_id),
                attributes=proto_pairs(link.attributes),
            )
    return data


def json_line(found: list[Span]) -> bytes:
    return json.dumps(json_document(found)).encode() + b"\n"


class Reader:
    """Loads bytes as files of one folder and gives back what the store holds."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._n = 0

    def read(self, *contents: bytes, options: ReadOptions | None = None) -> list[Span]:
        return self.load(*contents, options=options)[0]

    def load(
        self, *contents: bytes, options: ReadOptions | None = None
    ) -> tuple[list[Span], LoadReport, list[LogRecord]]:
        paths = []
        for content in contents:
            path = self._folder / f"{self._n:06d}"
            self._n += 1
            path.write_bytes(content)
            paths.append(str(path))
        with Store.open() as store:
            report = load(store, paths, options)
            return [s for trace in store.traces() for s in trace], report, list(store.loose_logs())

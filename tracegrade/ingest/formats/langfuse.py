"""Langfuse: observations and traces as its API, its UI's export and its blob storage export write them.

An observation becomes the span that Langfuse's SDK would have exported by OTLP: `langfuse.observation.*`, `session.id`,
`user.id`, `langfuse.trace.*`. Attributes, resource and scope that Langfuse kept under `metadata` of a span it received
by OTLP are put back. A trace whose observations are not in the same document becomes a span of its own that holds the
trace's attributes and no step.

Scores of a trace become evaluation events on the observation that they judge, else on the root.

Lost in it: anything finer than milliseconds, links, events, and what Langfuse did not keep of a foreign span.

Ids that are no hex of OpenTelemetry's length (those of older SDKs) are hashed; the original stands in
`tracegrade.original_trace_id` and `tracegrade.original_span_id`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tracegrade.ingest.base import DocumentFormat, Sink
from tracegrade.ingest.formats.common import (
    MICROSECOND,
    MILLISECOND,
    ORIGINAL_SPAN_ID,
    ORIGINAL_TRACE_ID,
    SPAN_DIGITS,
    TRACE_DIGITS,
    any_id,
    evaluation_event,
    first,
    flatten,
    iso_time,
    json_text,
    parsed_json,
    record,
    spans_from,
    text,
)
from tracegrade.model.span import STATUS_ERROR, Span, SpanEvent
from tracegrade.model.values import JSON

_TYPES: Final = frozenset(
    {
        "SPAN",
        "GENERATION",
        "EVENT",
        "AGENT",
        "TOOL",
        "CHAIN",
        "RETRIEVER",
        "EVALUATOR",
        "EMBEDDING",
        "GUARDRAIL",
    }
)
_OBSERVATION_FIELDS: Final = {
    "langfuse.observation.input": ("input",),
    "langfuse.observation.output": ("output",),
    "langfuse.observation.level": ("level",),
    "langfuse.observation.status_message": ("statusMessage", "status_message"),
    "langfuse.observation.model.name": ("model", "providedModelName", "provided_model_name"),
    "langfuse.observation.model.parameters": ("modelParameters", "model_parameters"),
    "langfuse.observation.cost_details": ("costDetails", "cost_details"),
    "langfuse.observation.prompt.name": ("promptName", "prompt_name"),
    "langfuse.observation.prompt.version": ("promptVersion", "prompt_version"),
    "langfuse.observation.completion_start_time": ("completionStartTime", "completion_start_time"),
    "langfuse.version": ("version",),
    "langfuse.environment": ("environment",),
}
_TRACE_FIELDS: Final = {
    "session.id": ("sessionId", "session_id"),
    "user.id": ("userId", "user_id"),
    "langfuse.release": ("release",),
    "langfuse.trace.tags": ("tags",),
    "langfuse.trace.name": ("traceName", "trace_name"),
}
_GENAI_MARKS: Final = frozenset({"gen_ai.operation.name", "gen_ai.tool.name", "gen_ai.tool.call.id"})
_GENAI_TOOL: Final = {"gen_ai.tool.call.arguments": ("input",), "gen_ai.tool.call.result": ("output",)}
_GENAI_MODEL: Final = {"gen_ai.input.messages": ("input",), "gen_ai.output.messages": ("output",)}
_RECEIVED: Final = frozenset({"attributes", "resourceAttributes", "scope"})
"""What Langfuse adds to the metadata of a span that it received by OTLP."""


def _is_observation(document: JSON) -> bool:
    if not isinstance(document, dict) or "id" not in document:
        return False
    started = first(document, "startTime", "start_time")
    return isinstance(started, str) and text(document.get("type")).upper() in _TYPES


def _is_trace(document: JSON) -> bool:
    if not isinstance(document, dict) or not {"id", "timestamp"} <= document.keys() or "traceId" in document:
        return False
    return bool(
        document.keys()
        & {"observations", "sessionId", "session_id", "userId", "user_id", "htmlPath", "bookmarked", "projectId"}
    )


def _matches(document: JSON) -> bool:
    return any(_is_observation(d) or _is_trace(d) for d, _ in _items(document))


def _items(document: JSON) -> Iterator[tuple[JSON, str]]:
    """The observations and traces of a document, each with its place in it."""
    if isinstance(document, list):
        yield from ((d, f"$[{i}]") for i, d in enumerate(document))
    elif isinstance(document, dict) and isinstance(document.get("data"), list):
        yield from ((d, f"data[{i}]") for i, d in enumerate(document["data"]))
    elif _is_observation(document) or _is_trace(document):
        yield document, ""
    elif isinstance(document, dict):
        for name in ("traces", "observations"):
            held = document.get(name)
            if isinstance(held, list):
                yield from ((d, f"{name}[{i}]") for i, d in enumerate(held))


def _convert(document: JSON, sink: Sink, where: str) -> None:
    items = list(_items(document))
    traces = {text(d["id"]): d for d, _ in items if _is_trace(d)}
    seen = {text(first(d, "traceId", "trace_id")) for d, _ in items if _is_observation(d)}
    for item, path in items:
        place = f"{where} {path}".strip()
        if not _is_trace(item):
            spans_from([item], lambda o: _observation(o, traces), sink, place, "")
            continue
        held = item.get("observations")
        inside = [o for o in held if isinstance(o, dict)] if isinstance(held, list) else []
        if inside:
            owned = [{"traceId": item["id"], **o} for o in inside]
            spans_from(owned, lambda o: _observation(o, traces), sink, place, "observations")
        elif text(item["id"]) not in seen:
            spans_from([item], _trace_alone, sink, place, "")


def _observation(item: dict[str, JSON], traces: dict[str, dict[str, JSON]]) -> Span:
    original_trace = first(item, "traceId", "trace_id")
    trace = traces.get(text(original_trace), {})
    parent = first(item, "parentObservationId", "parent_observation_id") or None
    metadata = parsed_json(item.get("metadata"))
    received = metadata if isinstance(metadata, dict) and metadata.keys() & _RECEIVED else {}
    scope = record(parsed_json(received.get("scope")), "metadata.scope")
    kind = text(item.get("type")).lower()
    attributes = _received_attributes(received)
    attributes |= _named(item, _OBSERVATION_FIELDS) | _named(item, _TRACE_FIELDS)
    attributes |= _reading(item, kind, attributes)
    attributes |= _usage(item) | _metadata("langfuse.observation.metadata", metadata, _RECEIVED)
    attributes |= _trace_attributes(trace, root=parent is None)
    start, start_tick = iso_time(first(item, "startTime", "start_time"), "startTime")
    end, end_tick = iso_time(first(item, "endTime", "end_time"), "endTime")
    trace_id, span_id = _ids(original_trace, item.get("id"), attributes)
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_span_id=any_id(parent, SPAN_DIGITS, "parentObservationId") if parent is not None else None,
        name=text(item.get("name")),
        kind=0,
        start_ns=start,
        end_ns=start if end is None and kind == "event" else end,
        status_code=STATUS_ERROR if text(item.get("level")).upper() == "ERROR" else 0,
        status_message=text(first(item, "statusMessage", "status_message")),
        attributes=attributes,
        resource=record(parsed_json(received.get("resourceAttributes")), "metadata.resourceAttributes"),
        scope_name=text(scope.get("name")),
        scope_version=text(scope.get("version")),
        events=_scores(trace, item.get("id"), root=parent is None),
        precision_ns=_tick(start, end, max(start_tick, end_tick)),
    )


def _scores(trace: dict[str, JSON], observation: JSON, *, root: bool) -> tuple[SpanEvent, ...]:
    """The scores of an observation; those of the trace as a whole stand on its root."""
    held = trace.get("scores")
    found = []
    for score in held if isinstance(held, list) else ():
        if not isinstance(score, dict):
            continue
        about = first(score, "observationId", "observation_id")
        if about != observation if about else not root:
            continue
        stamp, _ = iso_time(first(score, "timestamp", "createdAt", "created_at"), "score timestamp")
        label = first(score, "stringValue", "string_value")
        value = score.get("value")
        kind = text(first(score, "dataType", "data_type")).upper()
        if kind == "BOOLEAN" and value in (0, 1):
            value = bool(value)
        if kind == "CATEGORICAL" and not isinstance(value, str):
            value = None
        found.append(evaluation_event(score.get("name"), value, label, score.get("comment"), stamp))
    return tuple(e for e in found if e is not None)


def _tick(start: int | None, end: int | None, written: int) -> int:
    """Milliseconds, however many digits are written, unless a time shows finer ones."""
    finer = any(t is not None and t % MILLISECOND for t in (start, end))
    return max(written, MICROSECOND) if finer else MILLISECOND


def _ids(trace: JSON, observation: JSON, attributes: dict[str, Any]) -> tuple[str, str]:
    trace_id = any_id(trace, TRACE_DIGITS, "traceId")
    span_id = any_id(observation, SPAN_DIGITS, "id")
    if trace_id != trace:
        attributes[ORIGINAL_TRACE_ID] = trace
    if span_id != observation:
        attributes[ORIGINAL_SPAN_ID] = observation
    return trace_id, span_id


def _named(item: dict[str, JSON], fields: Mapping[str, tuple[str, ...]]) -> dict[str, JSON]:
    """Fields under their attribute's name; structured values as JSON text, as the SDK exports them."""
    found: dict[str, JSON] = {}
    for key, names in fields.items():
        value = first(item, *names)
        if value is None or value == "" or value == []:
            continue
        plain = isinstance(value, (str, int, float)) or key == "langfuse.trace.tags"
        found[key] = value if plain else json_text(value)
    return found


def _received_attributes(received: dict[str, JSON]) -> dict[str, JSON]:
    found: dict[str, JSON] = {}
    held = parsed_json(received.get("attributes"))
    if isinstance(held, dict):
        flatten("", held, found)
    return found


def _reading(item: dict[str, JSON], kind: str, attributes: dict[str, JSON]) -> dict[str, JSON]:
    """How to read the span: by the GenAI conventions where it came with them, else as Langfuse names its type.

    Langfuse takes the content out of the attributes; it goes back to where the conventions have it.
    """
    if not attributes.keys() & _GENAI_MARKS:
        return {"langfuse.observation.type": kind}
    tool = kind == "tool" or attributes.get("gen_ai.operation.name") == "execute_tool"
    places = _GENAI_TOOL if tool else _GENAI_MODEL
    return {k: v for k, v in _named(item, places).items() if k not in attributes}


def _metadata(prefix: str, metadata: JSON, without: frozenset[str]) -> dict[str, JSON]:
    if metadata is None or metadata == "":
        return {}
    if not isinstance(metadata, dict):
        return {prefix: metadata if isinstance(metadata, str) else json_text(metadata)}
    return {
        f"{prefix}.{key}": value if isinstance(value, (str, int, float)) else json_text(value)
        for key, value in metadata.items()
        if key not in without and value is not None
    }


def _usage(item: dict[str, JSON]) -> dict[str, JSON]:
    """`usageDetails`, else the older `usage` or token columns."""
    details = parsed_json(first(item, "usageDetails", "usage_details"))
    if not details:
        usage = parsed_json(item.get("usage"))
        held = item | (usage if isinstance(usage, dict) else {})
        names = {"input": ("promptTokens", "inputUsage"), "output": ("completionTokens", "outputUsage")}
        details = {k: first(usage, k) if isinstance(usage, dict) else None for k in ("input", "output", "total")}
        details |= {k: first(held, *v) for k, v in names.items() if details[k] is None}
        details = {k: v for k, v in details.items() if v is not None}
    return {"langfuse.observation.usage_details": json_text(details)} if details else {}


def _trace_attributes(trace: dict[str, JSON], *, root: bool) -> dict[str, JSON]:
    """Session and user stand on every span of a trace, the rest on its root."""
    found = _named(trace, {k: _TRACE_FIELDS[k] for k in ("session.id", "user.id")})
    if root and trace:
        found |= _named(trace, _TRACE_FIELDS)
        found |= _named(trace, {"langfuse.trace.name": ("name",), "langfuse.environment": ("environment",)})
        found |= _named(trace, {"langfuse.trace.input": ("input",), "langfuse.trace.output": ("output",)})
        found |= _metadata("langfuse.trace.metadata", parsed_json(trace.get("metadata")), frozenset())
    return found


def _trace_alone(item: dict[str, JSON]) -> Span:
    attributes = _trace_attributes(item, root=True)
    attributes["langfuse.observation.type"] = "span"
    trace_id, _ = _ids(item["id"], "0" * 15 + "1", attributes)
    stamp, _ = iso_time(item.get("timestamp"), "timestamp")
    return Span(
        trace_id=trace_id,
        span_id=any_id(f"trace {item['id']}", SPAN_DIGITS, "id"),
        parent_span_id=None,
        name=text(item.get("name")),
        kind=0,
        start_ns=stamp,
        end_ns=stamp,
        status_code=0,
        status_message="",
        attributes=attributes,
        resource={},
        scope_name="",
        scope_version="",
        events=_scores(item, None, root=True),
        precision_ns=MILLISECOND,
    )


LANGFUSE = DocumentFormat(
    name="langfuse-json",
    matches=_matches,
    convert=_convert,
    expected="Langfuse observations: `traceId`, `type`, `startTime`",
)

"""Spans for tests, written by hand: one agent run in the attributes of the OpenTelemetry conventions."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from tracegrade.dialects.registry import Registry
from tracegrade.model.span import LogRecord, Span, SpanEvent
from tracegrade.model.trajectory import Trajectory
from tracegrade.trajectory.build import build_trajectory

TRACE = "0" * 31 + "1"
REGISTRY = Registry()
RESOURCE: dict[str, Any] = {"service.name": "shop", "service.instance.id": "one"}


def span(
    number: int,
    name: str,
    start: int | None = 0,
    end: int | None = 10,
    *,
    parent: int | None = None,
    trace: str = TRACE,
    scope: str = "test",
    kind: int = 1,
    resource: dict[str, Any] | None = None,
    events: tuple[SpanEvent, ...] = (),
    logs: tuple[LogRecord, ...] = (),
    status: int = 0,
    precision: int = 1,
    dropped: int = 0,
    **attributes: Any,
) -> Span:
    """One span; `gen_ai__tool__name=…` stands for the attribute `gen_ai.tool.name`."""
    return Span(
        trace_id=trace,
        span_id=f"{number:016x}",
        parent_span_id=None if parent is None else f"{parent:016x}",
        name=name,
        kind=kind,
        start_ns=start,
        end_ns=end,
        status_code=status,
        status_message="",
        attributes={k.replace("__", "."): v for k, v in attributes.items()},
        resource=RESOURCE if resource is None else resource,
        scope_name=scope,
        scope_version="1",
        events=events,
        logs=logs,
        precision_ns=precision,
        dropped_attributes=dropped,
    )


def agent(number: int = 1, start: int = 0, end: int | None = 1000, **more: Any) -> Span:
    return span(
        number, "invoke_agent a", start, end, gen_ai__operation__name="invoke_agent", gen_ai__agent__name="a", **more
    )


def tool(number: int, name: str, start: int, end: int | None, *, parent: int | None = 1, **more: Any) -> Span:
    attributes: dict[str, Any] = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": name}
    if "arguments" in more:
        attributes["gen_ai__tool__call__arguments"] = json.dumps(more.pop("arguments"))
    if "result" in more:
        attributes["gen_ai__tool__call__result"] = json.dumps(more.pop("result"))
    if "call_id" in more:
        attributes["gen_ai__tool__call__id"] = more.pop("call_id")
    return span(number, f"execute_tool {name}", start, end, parent=parent, **attributes, **more)


def chat(
    number: int,
    start: int,
    end: int | None,
    given: list[Any] | None = None,
    answer: list[Any] | None = None,
    *,
    parent: int | None = 1,
    **more: Any,
) -> Span:
    attributes: dict[str, Any] = {"gen_ai__operation__name": "chat", "gen_ai__request__model": "m"}
    if given is not None:
        attributes["gen_ai__input__messages"] = json.dumps(given)
    if answer is not None:
        attributes["gen_ai__output__messages"] = json.dumps(answer)
    return span(number, "chat m", start, end, parent=parent, kind=3, **attributes, **more)


def says(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def asks(*calls: tuple[str | None, str, Any], text: str | None = None) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"type": "text", "content": text}] if text is not None else []
    parts += [{"type": "tool_call", "id": i, "name": n, "arguments": a} for i, n, a in calls]
    return {"role": "assistant", "parts": parts}


def answers(call_id: str | None, response: Any) -> dict[str, Any]:
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": call_id, "response": response}]}


def build(*spans: Span, **options: Any) -> Trajectory:
    return build_trajectory(spans, REGISTRY, **options)


def without(original: Span, *keys: str) -> Span:
    return replace(original, attributes={k: v for k, v in original.attributes.items() if k not in keys})


def changed(original: Span, **attributes: Any) -> Span:
    return replace(
        original, attributes={**original.attributes, **{k.replace("__", "."): v for k, v in attributes.items()}}
    )

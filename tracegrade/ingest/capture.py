"""Captures the spans of an agent that runs in this process, and writes spans for what it asks of a replay.

The provider is the global one, so an instrumented agent's own spans land beside ours. Ids are made from a name and a
counter: the same run gives the same ids.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.proto.trace.v1 import trace_pb2
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import Span, Status, StatusCode

from tracegrade.ingest.sdk import encode
from tracegrade.model.values import JSON
from tracegrade.replay.environment import as_json
from tracegrade.replay.tape import ModelResponse

_SCOPE = "tracegrade.replay"


class _NamedIds(IdGenerator):
    """Ids from a name and a counter."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._name = ""
        self._traces = self._spans = 0

    def restart(self, name: str) -> None:
        with self._lock:
            self._name, self._traces, self._spans = name, 0, 0

    def _digest(self, kind: str, number: int, size: int) -> int:
        text = f"{self._name}\x1f{kind}\x1f{number}".encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=size).digest(), "big") or 1

    def generate_span_id(self) -> int:
        with self._lock:
            self._spans += 1
            return self._digest("span", self._spans, 8)

    def generate_trace_id(self) -> int:
        with self._lock:
            self._traces += 1
            return self._digest("trace", self._traces, 16)


class Capture:
    """The spans of one process. Make one before the agent is imported; it sets the global tracer provider.

    Args:
        service: `service.name` of the spans.
    """

    def __init__(self, service: str) -> None:
        self._ids = _NamedIds()
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(id_generator=self._ids, resource=Resource({"service.name": service}))
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        trace.set_tracer_provider(provider)
        self._tracer = provider.get_tracer(_SCOPE)

    @contextmanager
    def run(self, name: str, agent: str, *, write: bool) -> Iterator[SpanWatch | SilentWatch]:
        """One run of an agent: a root span around it, and a watch that writes spans for turns and calls.

        Args:
            name: names the run; its ids come from it.
            agent: name of the agent.
            write: whether to write spans at all; False leaves that to the agent.
        """
        self._exporter.clear()
        self._ids.restart(name)
        if not write:
            yield SilentWatch()
            return
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent}
        with self._tracer.start_as_current_span(f"invoke_agent {agent}", attributes=attributes) as root:
            watch = SpanWatch(self._tracer, root)
            yield watch
            watch.finish()

    def take(self) -> bytes:
        """The finished spans as one OTLP protobuf request; empty where there is none."""
        spans = self._exporter.get_finished_spans()
        return encode(spans) if spans else b""


class SilentWatch:
    """Writes nothing: the agent has its own instrumentation."""

    @contextmanager
    def turn(self, text: str) -> Iterator[None]:
        """One turn of the user."""
        yield

    @contextmanager
    def call(self, tool: str, arguments: JSON) -> Iterator[Callable[[JSON, bool], None]]:
        """One call."""
        yield lambda result, failed: None

    def said(self, text: str) -> None:
        """A text of the agent's."""

    def model(self, messages: Sequence[JSON], response: ModelResponse) -> None:
        """One model call."""


class SpanWatch:
    """Writes a `chat` span for each model call and an `execute_tool` span for each tool call, below a root span.

    An agent that has no model still asks for its calls and says things: a `chat` span holds what it says or asks for
    next, so that what was said stands in order with what was done.
    """

    def __init__(self, tracer: trace.Tracer, root: Span) -> None:
        self._tracer = tracer
        self._root = root
        self._calls = 0
        self._told: list[dict[str, Any]] = []
        self._model: Span | None = None
        self._said: list[dict[str, Any]] = []
        self._asked: list[tuple[str, str]] = []

    @contextmanager
    def turn(self, text: str) -> Iterator[None]:
        """One turn of the user: a message."""
        self._close_model()
        message = {"role": "user", "parts": [{"type": "text", "content": text}]}
        self._told.append(message)
        yield
        if self._told[-1] is message and self._model is None:
            self._open_model(self._told)  # the agent was told, and did nothing

    def said(self, text: str) -> None:
        """A text of the agent's: part of a model call's output."""
        self._say({"type": "text", "content": text})

    def model(self, messages: Sequence[JSON], response: ModelResponse) -> None:
        """One model call, and the tool calls that it asks for."""
        self._close_model()
        self._told = [chat_message(m) for m in messages if isinstance(m, dict)]
        self._open_model(self._told)
        if response.text:
            self._said.append({"type": "text", "content": response.text})
        for number, (call_id, tool, arguments) in enumerate(response.calls):
            name = call_id or f"call_{number}"
            self._asked.append((tool, name))
            self._said.append({"type": "tool_call", "id": name, "name": tool, "arguments": arguments})
        if self._model is not None and response.input_tokens is not None:
            self._model.set_attribute("gen_ai.usage.input_tokens", response.input_tokens)
        if self._model is not None and response.output_tokens is not None:
            self._model.set_attribute("gen_ai.usage.output_tokens", response.output_tokens)
        self._close_model()

    @contextmanager
    def call(self, tool: str, arguments: JSON) -> Iterator[Callable[[JSON, bool], None]]:
        """One call: its span, after the model call that asked for it."""
        call_id = self._call_id(tool, arguments)
        attributes: dict[str, str] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.call.id": call_id,
            "gen_ai.tool.call.arguments": _text(arguments),
        }
        response: JSON = None
        with self._tracer.start_as_current_span(
            f"execute_tool {tool}",
            context=self._context(),
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:

            def ended(result: JSON, failed: bool) -> None:
                nonlocal response
                response = result
                span.set_attribute("gen_ai.tool.call.result", result if isinstance(result, str) else _text(result))
                if failed:
                    span.set_status(Status(StatusCode.ERROR))
                    span.set_attribute("error.type", "tool_error")

            try:
                yield ended
            except Exception as error:
                span.set_status(Status(StatusCode.ERROR, str(error)))
                span.set_attribute("error.type", type(error).__name__)
                response = f"{type(error).__name__}: {error}"
                raise
            finally:
                part = {"type": "tool_call_response", "id": call_id, "response": response}
                self._told.append({"role": "tool", "parts": [part]})

    def finish(self) -> None:
        """Write down what is still open."""
        self._close_model()

    def _call_id(self, tool: str, arguments: JSON) -> str:
        """The id under which a model call asked for a call; where none did, one is written that does."""
        for place, (asked, call_id) in enumerate(self._asked):
            if asked == tool:
                del self._asked[place]
                return call_id
        self._calls += 1
        call_id = f"replay_{self._calls}"
        self._say({"type": "tool_call", "id": call_id, "name": tool, "arguments": arguments})
        self._close_model()
        return call_id

    def _context(self) -> Context | None:
        """Below the root, also in a thread that does not know of it."""
        return None if trace.get_current_span().is_recording() else trace.set_span_in_context(self._root)

    def _say(self, part: dict[str, Any]) -> None:
        if self._model is None:
            self._open_model(self._told)
        self._said.append(part)

    def _open_model(self, told: Sequence[dict[str, Any]]) -> None:
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": _text(told)}
        self._model = self._tracer.start_span("chat replay", context=self._context(), attributes=attributes)

    def _close_model(self) -> None:
        """End the model call that is open, if there is one."""
        if self._model is None:
            return
        message = {"role": "assistant", "parts": self._said, "finish_reason": "stop"}
        self._model.set_attribute("gen_ai.output.messages", _text([message]))
        self._model.end()
        self._told.append({"role": "assistant", "parts": self._said})
        self._model, self._said = None, []


def chat_message(message: dict[str, Any]) -> dict[str, Any]:
    """A chat completion message in the GenAI conventions' form."""
    content = message.get("content")
    texts = [content] if isinstance(content, str) else [p.get("text") for p in content or () if isinstance(p, dict)]
    if message.get("role") == "tool":
        part = {
            "type": "tool_call_response",
            "id": message.get("tool_call_id"),
            "response": "".join(filter(None, texts)),
        }
        return {"role": "tool", "parts": [part]}
    parts: list[dict[str, Any]] = [{"type": "text", "content": t} for t in texts if t]
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        parts.append(
            {
                "type": "tool_call",
                "id": call.get("id"),
                "name": function.get("name"),
                "arguments": as_json(function.get("arguments")),
            }
        )
    return {"role": message.get("role"), "parts": parts}


def _text(value: JSON) -> str:
    return json.dumps(value, ensure_ascii=False)


def trace_ids(body: bytes) -> frozenset[str]:
    """The ids of the traces in OTLP bodies, as lower-case hex: protobuf, or JSON with one request a line."""
    if body.lstrip()[:1] == b"{":
        found: set[str] = set()
        for line in body.splitlines():
            for resource in json.loads(line).get("resourceSpans") or ():
                for scope in resource.get("scopeSpans") or ():
                    found.update(str(s.get("traceId", "")).lower() for s in scope.get("spans") or ())
        return frozenset(found)
    message = trace_pb2.TracesData.FromString(body)
    return frozenset(
        span.trace_id.hex() for r in message.resource_spans for scope in r.scope_spans for span in scope.spans
    )

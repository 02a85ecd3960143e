"""A deterministic generator of realistic agent spans, as OTLP protobuf or OTLP/JSON Lines.

Each trace is one support conversation of 20 spans: an agent, eight model calls that carry 1 to 8 KB of messages, nine
tool calls with arguments and results, and two HTTP spans. Equal (n_spans, seed) give equal bytes.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Span, TracesData

SPANS_PER_TRACE = 20
TRACES_PER_REQUEST = 25
START_NS = 1_760_000_000_000_000_000
TOOLS = (
    "verify_identity",
    "get_order",
    "list_orders",
    "check_policy",
    "cancel_order",
    "refund",
    "send_email",
    "search_faq",
    "get_user",
)
SYLLABLES = (
    "ka",
    "lo",
    "mi",
    "ter",
    "an",
    "so",
    "re",
    "vi",
    "du",
    "po",
    "na",
    "el",
    "ich",
    "tan",
    "or",
    "de",
    "ma",
    "si",
    "ul",
)


class _Words:
    """Random text: words from a vocabulary of 4,000, quotes and line breaks included as people write them."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.words = ["".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(4000)]
        self.words += ['"quoted"', "it's", "naïve", "5 €", "line\nbreak"]

    def text(self, size: int) -> str:
        return " ".join(self.rng.choices(self.words, k=max(1, size // 7)))


def requests(n_spans: int, seed: int = 0) -> Iterator[TracesData]:
    """Yield requests of 25 traces each until `n_spans` spans are out (rounded down to whole traces)."""
    rng = random.Random(seed)
    words = _Words(rng)
    n_traces = n_spans // SPANS_PER_TRACE
    for first in range(0, n_traces, TRACES_PER_REQUEST):
        request = TracesData()
        resource_spans = request.resource_spans.add()
        put(
            resource_spans.resource.attributes,
            {
                "service.name": "order-support",
                "service.instance.id": f"host-{first % 7}",
                "telemetry.sdk.language": "python",
                "telemetry.sdk.version": "1.37.0",
                "deployment.environment.name": "production",
            },
        )
        scope_spans = resource_spans.scope_spans.add(schema_url="https://opentelemetry.io/schemas/1.37.0")
        scope_spans.scope.name = "example.instrumentation.agents"
        scope_spans.scope.version = "1.3.0"
        for number in range(first, min(first + TRACES_PER_REQUEST, n_traces)):
            _trace(scope_spans, rng, words, number)
        yield request


def _trace(scope_spans: ScopeSpans, rng: random.Random, words: _Words, number: int) -> None:
    trace_id = rng.randbytes(16)
    clock = START_NS + number * 90_000_000_000 + rng.randrange(10**9)
    conversation = f"conv-{number:08d}"
    order = f"W{rng.randrange(10**7):07d}"
    root = _span(scope_spans, rng, trace_id, b"", "invoke_agent support", clock)
    put(
        root.attributes,
        {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "support",
            "gen_ai.provider.name": "openai",
            "gen_ai.conversation.id": conversation,
        },
    )
    history: list[dict[str, Any]] = [_message("user", words.text(300))]
    for turn in range(8):
        clock = _chat(scope_spans, rng, words, root, clock, conversation, history)
        calls = 2 if turn == 3 else 1
        for k in range(calls):
            clock = _tool(scope_spans, rng, words, root, clock, TOOLS[(turn + k) % len(TOOLS)], order, history)
    for path in ("/v1/chat", "/v1/orders"):
        http = _span(scope_spans, rng, trace_id, root.span_id, f"POST {path}", clock)
        http.kind = Span.SPAN_KIND_CLIENT
        put(http.attributes, {"http.request.method": "POST", "http.response.status_code": 200, "url.path": path})
        http.end_time_unix_nano = clock = clock + 5_000_000
    root.end_time_unix_nano = clock + 1_000_000


def _chat(
    scope_spans: ScopeSpans,
    rng: random.Random,
    words: _Words,
    root: Span,
    clock: int,
    conversation: str,
    history: list[dict[str, Any]],
) -> int:
    span = _span(scope_spans, rng, root.trace_id, root.span_id, "chat example-model", clock)
    span.kind = Span.SPAN_KIND_CLIENT
    answer = _message("assistant", words.text(rng.randrange(200, 1500)))
    put(
        span.attributes,
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": "gpt-4o-mini",
            "gen_ai.response.model": "gpt-4o-mini-2024-07-18",
            "gen_ai.response.id": f"chatcmpl-{rng.getrandbits(96):024x}",
            "gen_ai.response.finish_reasons": ["tool_calls"],
            "gen_ai.conversation.id": conversation,
            "gen_ai.usage.input_tokens": rng.randrange(300, 9000),
            "gen_ai.usage.output_tokens": rng.randrange(10, 900),
            "gen_ai.usage.cache_read.input_tokens": rng.randrange(0, 300),
            "gen_ai.request.temperature": 0.2,
            "server.address": "api.example.com",
            "server.port": 443,
            "gen_ai.input.messages": json.dumps(history[-6:]),
            "gen_ai.output.messages": json.dumps([answer]),
        },
    )
    history.append(answer)
    history.append(_message("user", words.text(rng.randrange(300, 1500))))
    span.end_time_unix_nano = clock + rng.randrange(400_000_000, 4_000_000_000)
    return int(span.end_time_unix_nano) + 1_000


def _tool(
    scope_spans: ScopeSpans,
    rng: random.Random,
    words: _Words,
    root: Span,
    clock: int,
    tool: str,
    order: str,
    history: list[dict[str, Any]],
) -> int:
    span = _span(scope_spans, rng, root.trace_id, root.span_id, f"execute_tool {tool}", clock)
    call_id = f"call_{rng.getrandbits(96):024x}"
    arguments = {"order_id": order, "amount": round(rng.random() * 100, 2), "note": words.text(40)}
    result = {"order_id": order, "status": "ok", "detail": words.text(200)}
    put(
        span.attributes,
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": call_id,
            "gen_ai.tool.call.arguments": json.dumps(arguments),
            "gen_ai.tool.call.result": json.dumps(result),
        },
    )
    call = {"type": "tool_call", "id": call_id, "name": tool, "arguments": arguments}
    response = {"type": "tool_call_response", "id": call_id, "response": result}
    history[-2]["parts"].append(call)
    history[-1:-1] = [{"role": "tool", "parts": [response]}]
    span.end_time_unix_nano = clock + rng.randrange(1_000_000, 90_000_000)
    return int(span.end_time_unix_nano) + 1_000


def _message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def _span(scope_spans: ScopeSpans, rng: random.Random, trace_id: bytes, parent: bytes, name: str, clock: int) -> Span:
    return scope_spans.spans.add(
        trace_id=trace_id,
        span_id=rng.randbytes(8),
        parent_span_id=parent,
        name=name,
        kind=Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=clock,
        flags=256,
    )


def put(target: Any, attributes: dict[str, Any]) -> None:
    """Add attributes, each as its type says."""
    for key, value in attributes.items():
        slot = target.add(key=key).value
        if isinstance(value, str):
            slot.string_value = value
        elif isinstance(value, int):
            slot.int_value = value
        elif isinstance(value, float):
            slot.double_value = value
        else:
            for item in value:
                slot.array_value.values.add(string_value=item)


def write(path: Path, n_spans: int, form: str = "proto", seed: int = 0) -> int:
    """Write a benchmark file and return its size in bytes.

    Args:
        path: where to write.
        n_spans: how many spans; a multiple of 20.
        form: `proto` (concatenated requests) or `jsonl` (one OTLP/JSON request a line).
        seed: equal seeds give equal files.
    """
    with path.open("wb") as out:
        for request in requests(n_spans, seed):
            out.write(request.SerializeToString() if form == "proto" else _json_line(request))
    return path.stat().st_size


def _json_line(request: TracesData) -> bytes:
    from google.protobuf.json_format import MessageToDict

    document = MessageToDict(request)
    for resource_spans, source in zip(document["resourceSpans"], request.resource_spans, strict=True):
        for scope_spans, scope_source in zip(resource_spans["scopeSpans"], source.scope_spans, strict=True):
            for span, message in zip(scope_spans["spans"], scope_source.spans, strict=True):
                span["traceId"], span["spanId"] = message.trace_id.hex(), message.span_id.hex()
                if message.parent_span_id:
                    span["parentSpanId"] = message.parent_span_id.hex()
                span["kind"] = message.kind
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"

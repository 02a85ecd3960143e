"""Files of real producers hold the spans that OTLP holds, as far as the format can carry them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.formats.conftest import Recorder, convert, convert_file, otlp_oracle

MS, US = 1_000_000, 1_000

# name, tick of its clock, whether it keeps kinds, scope, resource, events
FILES = [
    ("python-console.json", US, True, False, True),
    ("zipkin.json", 2 * US, True, True, True),
    ("clickhouse.jsonl", 1, True, True, True),
    ("clickhouse.parquet", 1, True, True, True),
    ("phoenix-rest.json", US, False, False, False),
    ("phoenix-otlp.json", US, False, False, False),
    ("phoenix.jsonl", MS, False, False, False),
    ("phoenix-epoch.jsonl", MS, False, False, False),
    ("phoenix.parquet", US, False, False, False),
]
SHARED_FILES = [
    ("jaeger-ui.json", 2 * US),
    ("zipkin-v2.json", 2 * US),
    ("python-console-exporter.json", US),
    ("clickhouse-otel_traces.jsoneachrow.jsonl", 1),
]


def same(found: Any, expected: Any) -> bool:
    """Equal, or the text of each other, which is all that formats of text-only values can hold."""
    if found == expected:
        return True
    if isinstance(found, str) and not isinstance(expected, str):
        try:
            found = json.loads(found)
        except ValueError:
            return found == str(expected)
        return bool(found == expected)
    return False


def check(sink: Recorder, expected: dict[str, dict[str, Any]], tick: int) -> None:
    assert sink.skipped == []
    assert sink.by_id.keys() == expected.keys()
    for span_id, want in expected.items():
        span = sink.by_id[span_id]
        assert span.trace_id == want["trace_id"]
        assert span.parent_span_id == want["parent"]
        assert span.name == want["name"]
        assert span.status_code == want["status"]
        assert span.precision_ns == tick
        assert span.start_ns is not None
        assert span.end_ns is not None
        # A time is off by less than a tick, and never by more than its declared precision.
        assert abs(span.start_ns - want["start"]) < max(tick, 1)
        assert abs(span.end_ns - want["end"]) < max(tick, 1)
        for key, value in want["attributes"].items():
            assert same(span.attributes[key], value), key


@pytest.mark.parametrize(("name", "tick", "kinds", "scope", "resource"), FILES, ids=[f[0] for f in FILES])
def test_a_real_producers_file_holds_the_run(
    name: str,
    tick: int,
    kinds: bool,
    scope: bool,
    resource: bool,
    format_files: Path,
    original: dict[str, dict[str, Any]],
) -> None:
    sink = convert_file(format_files / name)
    check(sink, original, tick)
    for span_id, want in original.items():
        span = sink.by_id[span_id]
        assert span.kind == (want["kind"] if kinds else 0)
        assert span.scope_name == (want["scope"] if scope else "")
        assert span.resource == (want["resource"] if resource else {})
        assert [e.name for e in span.events] == [n for n, _ in want["events"]]
        for event, (_, attributes) in zip(span.events, want["events"], strict=True):
            assert event.attributes.keys() == attributes.keys()
            assert event.time_ns is not None
            assert span.start_ns is not None
            assert event.time_ns >= span.start_ns - tick


@pytest.mark.parametrize(("name", "tick"), SHARED_FILES, ids=[f[0] for f in SHARED_FILES])
def test_a_shared_sample_holds_the_run(name: str, tick: int, shared: Path) -> None:
    folder = shared / "traces" / "_formats"
    expected = otlp_oracle(folder / "otlp.jsonl")
    for want in expected.values():  # written differently by the script that derived the samples
        want["attributes"].pop("tools", None)
    check(convert_file(folder / name), expected, tick)


def test_an_mlflow_trace_holds_the_run(format_files: Path) -> None:
    sink = convert_file(format_files / "mlflow.json")
    assert sink.skipped == []
    root, chat, tool, *_ = sink.spans
    assert (root.parent_span_id, tool.parent_span_id) == (None, root.span_id)
    assert len({s.trace_id for s in sink.spans}) == 1
    assert f'"tr-{root.trace_id}"' == root.attributes["mlflow.traceRequestId"]
    assert tool.attributes["mlflow.spanType"] == '"TOOL"'
    assert json.loads(tool.attributes["mlflow.spanInputs"]) == {"order_id": "B7"}
    assert chat.attributes["gen_ai.request.model"] == "gpt-4o-mini"
    assert {s.attributes["session.id"] for s in sink.spans} == {"conv-1"}
    assert root.attributes["task"] == "refund-5"
    assert "task" not in tool.attributes
    failed = next(s for s in sink.spans if s.name == "refund")
    assert failed.status_code == 2
    assert failed.events[0].attributes["exception.type"] == "ValueError"
    assert all(s.precision_ns == 1 and s.start_ns and s.end_ns and s.start_ns <= s.end_ns for s in sink.spans)


def test_objects_of_the_javascript_sdk(format_files: Path) -> None:
    sink = convert_file(format_files / "js-sdk-objects.json")
    assert sink.skipped == []
    tool, root = sink.spans
    assert tool.parent_span_id == root.span_id
    assert (tool.kind, root.kind) == (3, 1)
    assert tool.status_code == 2
    assert tool.resource == {"service.name": "gemini-cli", "session.id": "sess-1"}
    assert (tool.scope_name, tool.scope_version) == ("gemini-cli", "1.0")
    assert tool.events[0].time_ns == 1796075322676163626
    assert tool.dropped_links == 1  # it was serialised as "[Circular]"
    assert tool.precision_ns == MS  # its start is on a clock of milliseconds
    (log,) = sink.logs
    assert (log.trace_id, log.span_id) == (root.trace_id, root.span_id)
    assert log.attributes["function_name"] == "read_file"
    assert log.severity == 9
    assert log.time_ns == 1796075202 * 10**9


def test_a_gemini_cli_file_is_log_records(repo_root: Path) -> None:
    sink = convert_file(repo_root / "fixtures" / "traces" / "gemini-cli" / "telemetry.json")
    assert sink.skipped == []
    names = [r.event_name for r in sink.logs]
    assert names.count("gemini_cli.tool_call") == 2
    assert all(r.trace_id is None and r.time_ns for r in sink.logs)


def test_phoenix_attributes_get_their_flat_names_back() -> None:

    row = {
        "context.span_id": "1" * 16,
        "context.trace_id": "2" * 32,
        "parent_id": None,
        "name": "ChatCompletion",
        "span_kind": "LLM",
        "start_time": "2026-11-30T21:46:42.812178+00:00",
        "end_time": "2026-11-30T21:46:42+00:00",
        "attributes.llm.input_messages": [
            {"message.role": "user", "message.content": "hi", "message.tool_calls": None},
            {"message.role": "assistant", "message.tool_calls": [{"tool_call.function.name": "f"}]},
        ],
        "attributes.llm.token_count.prompt": 100.0,
        "attributes.metadata": {"task": "t", "n": {"a": None, "b": 1}},
        "attributes.tool.parameters": {"type": "object"},
        "attributes.tag.tags": ["a", "b"],
        "attributes.gen_ai": {"tool": {"name": "f"}},
    }
    (span,) = convert(row).spans
    assert span.attributes == {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "hi",
        "llm.input_messages.1.message.role": "assistant",
        "llm.input_messages.1.message.tool_calls.0.tool_call.function.name": "f",
        "llm.token_count.prompt": 100,
        "metadata": '{"task":"t","n":{"b":1}}',
        "tool.parameters": '{"type":"object"}',
        "tag.tags": ["a", "b"],
        "gen_ai.tool.name": "f",
    }
    assert span.precision_ns == US  # a whole second is written without a fraction by Python

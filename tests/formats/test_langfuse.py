"""Langfuse exports become the spans that its SDK would have sent by OTLP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.formats.conftest import convert

TRACE = "0f8fad5b-d9cb-469f-a165-70867728950e"


def observation(**fields: Any) -> dict[str, Any]:
    return {
        "id": "30f55b20c91fe7cc",
        "traceId": "71ec39d0532b72c3192afc7e824d8d9d",
        "type": "TOOL",
        "name": "get_order",
        "startTime": "2026-11-30T12:00:00.100Z",
        "endTime": "2026-11-30T12:00:00.250Z",
        "level": "DEFAULT",
        "statusMessage": None,
        "parentObservationId": "360aae9a7b9bc125",
        "input": {"args": [], "kwargs": {"order_id": "B7"}},
        "output": {"total": 61.25},
        "metadata": None,
    } | fields


def test_an_observation_becomes_a_span() -> None:
    (span,) = convert(observation()).spans
    assert span.trace_id == "71ec39d0532b72c3192afc7e824d8d9d"
    assert (span.span_id, span.parent_span_id) == ("30f55b20c91fe7cc", "360aae9a7b9bc125")
    assert span.attributes["langfuse.observation.type"] == "tool"
    assert json.loads(span.attributes["langfuse.observation.input"]) == {"args": [], "kwargs": {"order_id": "B7"}}
    assert json.loads(span.attributes["langfuse.observation.output"]) == {"total": 61.25}
    assert span.start_ns is not None
    assert span.end_ns is not None
    assert span.end_ns - span.start_ns == 150_000_000
    assert span.precision_ns == 1_000_000
    assert span.status_code == 0


def test_the_blob_storage_export_uses_other_names() -> None:
    camel = convert(observation(level="ERROR", statusMessage="boom", model="gpt-4o-mini", usageDetails={"input": 3}))
    snake = {
        "id": "30f55b20c91fe7cc",
        "trace_id": "71ec39d0532b72c3192afc7e824d8d9d",
        "type": "TOOL",
        "name": "get_order",
        "start_time": "2026-11-30 12:00:00.100000",
        "end_time": "2026-11-30 12:00:00.250000",
        "level": "ERROR",
        "status_message": "boom",
        "parent_observation_id": "360aae9a7b9bc125",
        "input": '{"args":[],"kwargs":{"order_id":"B7"}}',
        "output": '{"total":61.25}',
        "provided_model_name": "gpt-4o-mini",
        "usage_details": {"input": 3},
    }
    assert convert(snake).spans == camel.spans
    assert camel.spans[0].status_code == 2
    assert camel.spans[0].status_message == "boom"


def test_session_and_user_stand_on_every_span_of_a_trace() -> None:
    trace = {
        "id": "71ec39d0532b72c3192afc7e824d8d9d",
        "timestamp": "2026-11-30T12:00:00.000Z",
        "name": "refund",
        "sessionId": "s-1",
        "userId": "u-1",
        "tags": ["a"],
        "metadata": {"task": "t1"},
        "observations": [observation(parentObservationId=None), observation(id="1" * 16)],
    }
    root, child = convert(trace).spans
    for span in (root, child):
        assert span.attributes["session.id"] == "s-1"
        assert span.attributes["user.id"] == "u-1"
    assert root.attributes["langfuse.trace.metadata.task"] == "t1"
    assert root.attributes["langfuse.trace.name"] == "refund"
    assert root.attributes["langfuse.trace.tags"] == ["a"]
    assert "langfuse.trace.name" not in child.attributes


def test_traces_and_observations_of_one_list_are_joined() -> None:
    trace = {"id": "71ec39d0532b72c3192afc7e824d8d9d", "timestamp": "2026-11-30T12:00:00.000Z", "sessionId": "s-1"}
    for document in (
        [trace, observation()],
        {"data": [observation(), trace]},
        {"traces": [trace], "observations": [observation()]},
    ):
        (span,) = convert(document).spans
        assert span.attributes["session.id"] == "s-1"


def test_a_trace_alone_gives_its_session_and_no_step() -> None:
    trace = {"id": TRACE, "timestamp": "2026-11-30T12:00:00.000Z", "sessionId": "s-1", "observations": ["a", "b"]}
    (span,) = convert(trace).spans
    assert span.trace_id == TRACE.replace("-", "")
    assert span.attributes["session.id"] == "s-1"
    assert span.attributes["langfuse.observation.type"] == "span"
    assert span.start_ns == span.end_ns


def test_foreign_ids_map_to_the_same_span_everywhere() -> None:
    parent = observation(id="cl-parent", traceId=TRACE, parentObservationId=None)
    child = observation(id="cl-child", traceId=TRACE, parentObservationId="cl-parent")
    first, second = convert(parent).spans + convert(child).spans
    assert second.parent_span_id == first.span_id
    assert len(first.span_id) == 16
    assert first.trace_id == second.trace_id == TRACE.replace("-", "")
    assert second.attributes["tracegrade.original_span_id"] == "cl-child"
    assert second.attributes["tracegrade.original_trace_id"] == TRACE


def test_what_langfuse_received_by_otlp_is_put_back() -> None:
    metadata = {
        "attributes": {"gen_ai.tool.name": "get_order", "gen_ai.tool.call.id": "call_1"},
        "resourceAttributes": {"service.name": "order-support"},
        "scope": {"name": "pydantic-ai", "version": "1.0.0", "attributes": {}},
        "mine": {"a": 1},
    }
    (span,) = convert(observation(metadata=metadata)).spans
    (texts,) = convert(observation(metadata={k: json.dumps(v) for k, v in metadata.items()})).spans
    for found in (span, texts):
        assert found.attributes["gen_ai.tool.call.id"] == "call_1"
        assert found.resource == {"service.name": "order-support"}
        assert (found.scope_name, found.scope_version) == ("pydantic-ai", "1.0.0")
        assert json.loads(found.attributes["langfuse.observation.metadata.mine"]) == {"a": 1}
        assert "langfuse.observation.metadata.attributes" not in found.attributes


def test_an_event_has_no_length_and_an_open_generation_no_end() -> None:
    event, generation = convert(
        observation(type="EVENT", endTime=None), observation(type="GENERATION", endTime=None)
    ).spans
    assert event.start_ns == event.end_ns
    assert generation.end_ns is None


@pytest.mark.parametrize(
    "old",
    [{"usage": {"input": 7, "output": 2, "unit": "TOKENS"}}, {"usage": {"promptTokens": 7, "completionTokens": 2}}],
)
def test_usage_of_older_versions(old: dict[str, Any]) -> None:
    (span,) = convert(observation(type="GENERATION", **old)).spans
    assert json.loads(span.attributes["langfuse.observation.usage_details"]) == {"input": 7, "output": 2}


def test_zero_tokens_are_kept() -> None:
    (span,) = convert(observation(type="GENERATION", usage={"input": 0, "output": 2, "total": 2})).spans
    assert json.loads(span.attributes["langfuse.observation.usage_details"]) == {"input": 0, "output": 2, "total": 2}

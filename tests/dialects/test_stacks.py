"""Stacks of which no recorded spans are at hand, written by hand after their documentation and source (DIALECTS §3)."""

from __future__ import annotations

import json
from typing import Any

from tests.trajectory.spans import RESOURCE, TRACE, build, span
from tracegrade.model.span import LogRecord, Span, SpanEvent
from tracegrade.model.trajectory import Trajectory


def make(number: int, name: str, start: int, end: int, attributes: dict[str, Any], **more: Any) -> Span:
    """A span whose attributes are given by their own names."""
    made = span(number, name, start, end, **more)
    made.attributes = attributes
    return made


def log(number: int, name: str, body: Any, **attributes: Any) -> LogRecord:
    keys = {k.replace("__", "."): v for k, v in attributes.items()}
    return LogRecord(TRACE, f"{number:016x}", 15, name, 9, body, keys, RESOURCE, "log", "1")


def shown(t: Trajectory) -> list[tuple[Any, ...]]:
    return [(c.tool, c.call_id, c.arguments, c.result, c.status) for c in t.calls()]


def texts(t: Trajectory) -> list[tuple[str | None, str | None]]:
    return [(s.role, s.text) for s in t.steps if s.kind == "message"]


ROOM = ("book_room", "c1", {"room": 7}, {"booked": True}, "ok")
TOKENS = {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 4}


def test_vercel_7() -> None:
    asked = [{"role": "user", "parts": [{"type": "text", "content": "book"}]}]
    said = [
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": "c1", "name": "book_room", "arguments": {"room": 7}}],
        }
    ]
    common = {"gen_ai.provider.name": "openai"}
    t = build(
        make(1, "invoke_agent m", 0, 100, {
            **common, "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk",
            "gen_ai.input.messages": json.dumps(asked), "gen_ai.output.messages": json.dumps(said), **TOKENS,
        }, scope="ai"),
        make(2, "step 1", 5, 90, {"gen_ai.operation.name": "agent_step"}, parent=1, scope="ai"),
        make(3, "chat m", 10, 20, {
            **common, "gen_ai.operation.name": "chat", "gen_ai.request.model": "m",
            **TOKENS,
            "gen_ai.input.messages": json.dumps(asked), "gen_ai.output.messages": json.dumps(said),
        }, parent=2, scope="ai"),
        make(4, "execute_tool book_room", 30, 40, {
            "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "book_room", "gen_ai.tool.call.id": "c1",
            "gen_ai.tool.call.arguments": '{"room": 7}', "gen_ai.tool.call.result": '{"booked": true}',
        }, parent=2, scope="ai"),
    )  # fmt: skip
    assert shown(t) == [ROOM]
    assert texts(t) == [("user", "book")]
    assert (t.usage.input_tokens, t.usage.output_tokens, t.usage.model_calls) == (10, 4, 1)


def test_vercel_7_legacy_and_4_write_inputs_in_two_ways() -> None:
    for calls in (
        [{"toolCallId": "c1", "toolName": "book_room", "input": {"room": 7}}],
        [{"toolCallType": "function", "toolCallId": "c1", "toolName": "book_room", "args": '{"room": 7}'}],
    ):
        t = build(
            make(1, "ai.generateText", 0, 100, {"ai.operationId": "ai.generateText", "ai.model.id": "m"}, scope="ai"),
            make(2, "ai.generateText.doGenerate", 10, 20, {
                "ai.operationId": "ai.generateText.doGenerate", "ai.model.id": "m",
                "ai.prompt.messages": json.dumps([{"role": "user", "content": [{"type": "text", "text": "book"}]}]),
                "ai.response.toolCalls": json.dumps(calls), "ai.response.finishReason": "tool-calls",
                "ai.usage.promptTokens": 10, "ai.usage.completionTokens": 4,
            }, parent=1, scope="ai"),
            make(3, "ai.toolCall", 30, 40, {
                "ai.operationId": "ai.toolCall", "ai.toolCall.name": "book_room", "ai.toolCall.id": "c1",
                "ai.toolCall.args": '{"room": 7}', "ai.toolCall.result": '{"booked": true}',
            }, parent=1, scope="ai"),
        )  # fmt: skip
        assert shown(t) == [ROOM]
        assert (t.usage.input_tokens, t.usage.output_tokens) == (10, 4)


def test_langfuse_tools_and_levels() -> None:
    t = build(
        make(1, "desk", 0, 100, {"langfuse.observation.type": "agent", "langfuse.session.id": "s"}, scope="langfuse"),
        make(2, "llm", 10, 20, {
            "langfuse.observation.type": "generation", "langfuse.observation.model.name": "m",
            "langfuse.observation.input": json.dumps([{"role": "user", "content": "book"}]),
            "langfuse.observation.output": json.dumps({"role": "assistant", "tool_calls": [
                {"id": "c1", "function": {"name": "book_room", "arguments": '{"room": 7}'}}]}),
            "langfuse.observation.usage_details": '{"input": 10, "output": 4}',
        }, parent=1, scope="langfuse"),
        make(3, "book_room", 30, 40, {
            "langfuse.observation.type": "tool", "langfuse.observation.input": '{"args": [], "kwargs": {"room": 7}}',
            "langfuse.observation.output": '{"booked": true}',
        }, parent=1, scope="langfuse"),
        make(4, "close_room", 50, 60, {
            "langfuse.observation.type": "tool", "langfuse.observation.input": '{"args": [], "kwargs": {}}',
            "langfuse.observation.level": "ERROR", "langfuse.observation.status_message": "no",
        }, parent=1, scope="langfuse", status=2),
    )  # fmt: skip
    assert [(c[0], c[2], c[4]) for c in shown(t)] == [("book_room", {"room": 7}, "ok"), ("close_room", {}, "error")]
    assert (t.usage.input_tokens, t.usage.output_tokens) == (10, 4)


def test_mlflow_values_are_quoted() -> None:
    t = build(
        make(1, "desk", 0, 100, {"mlflow.spanType": '"AGENT"'}),
        make(2, "Completions", 10, 20, {
            "mlflow.spanType": '"CHAT_MODEL"', "mlflow.llm.model": '"m"',
            "mlflow.spanInputs": json.dumps({"messages": [{"role": "user", "content": "book"}]}),
            "mlflow.spanOutputs": json.dumps({"choices": [{"message": {"role": "assistant", "content": "done"}}]}),
            "mlflow.chat.tokenUsage": '{"input_tokens": 10, "output_tokens": 4, "total_tokens": 14}',
        }, parent=1),
        make(3, "book_room", 30, 40, {
            "mlflow.spanType": '"TOOL"', "mlflow.spanInputs": '{"room": 7}', "mlflow.spanOutputs": '{"booked": true}',
        }, parent=1),
    )  # fmt: skip
    assert shown(t) == [("book_room", None, {"room": 7}, {"booked": True}, "ok")]
    assert texts(t) == [("user", "book"), ("assistant", "done")]
    assert (t.usage.input_tokens, t.usage.output_tokens) == (10, 4)
    assert t.models == ("m",)


def test_agentcore_keeps_content_in_log_events() -> None:
    body = {
        "input": {"messages": [{"role": "user", "content": "book"}]},
        "output": {"messages": [{"role": "assistant", "content": "done"}]},
    }
    t = build(
        make(1, "invoke_agent desk", 0, 100, {
            "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk", "session.id": "s",
        }, scope="strands.telemetry.tracer"),
        make(2, "chat", 10, 20, {
            "gen_ai.operation.name": "chat", "gen_ai.request.model": "m",
            **TOKENS,
        }, parent=1, scope="strands.telemetry.tracer", logs=(log(2, "strands.telemetry.tracer", body),)),
    )  # fmt: skip
    assert texts(t) == [("user", "book"), ("assistant", "done")]


def test_adk_schema_2_with_a_merged_span() -> None:
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.type": "FunctionTool", "gen_ai.conversation.id": "s"}
    t = build(
        make(1, "invoke_workflow desk", 0, 100, {"gen_ai.operation.name": "invoke_workflow"}, scope="gcp.vertex.agent"),
        make(2, "invoke_agent desk", 1, 99, {
            "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk", "gen_ai.conversation.id": "s",
        }, parent=1, scope="gcp.vertex.agent"),
        make(3, "execute_tool book_room", 30, 40, {
            **tool, "gen_ai.tool.name": "book_room", "gen_ai.tool.call.id": "c1",
            "gen_ai.tool.call.arguments": '{"room": 7}', "gen_ai.tool.call.result": '{"booked": true}',
        }, parent=2, scope="gcp.vertex.agent"),
        make(4, "execute_tool light", 30, 41, {
            **tool, "gen_ai.tool.name": "light", "gen_ai.tool.call.id": "c2",
        }, parent=2, scope="gcp.vertex.agent"),
        make(5, "execute_tool (merged)", 30, 42, {
            **tool, "gen_ai.tool.name": "(merged tools)", "gen_ai.tool.call.id": "event",
        }, parent=2, scope="gcp.vertex.agent"),
    )  # fmt: skip
    assert shown(t) == [ROOM, ("light", "c2", None, None, "ok")]


def test_semantic_kernel_logs_whose_body_is_json_text() -> None:
    said = {"message": {"role": "assistant", "tool_calls": [
        {"id": "c1", "function": {"name": "Hotel-book_room", "arguments": '{"room": 7}'}}]}, "index": 0}  # fmt: skip
    logs = (
        log(2, "", json.dumps({"role": "user", "content": "book"}), event__name="gen_ai.user.message"),
        log(2, "", json.dumps(said), event__name="gen_ai.choice"),
    )
    t = build(
        make(1, "AutoFunctionInvocationLoop", 0, 100, {"sk.available_functions": "book"}, scope="semantic_kernel"),
        make(2, "chat.completions m", 10, 20, {
            "gen_ai.operation.name": "chat.completions", "gen_ai.system": "openai", "gen_ai.request.model": "m",
            **TOKENS,
        }, parent=1, scope="semantic_kernel", logs=logs),
        make(3, "execute_tool Hotel-book_room", 30, 40, {
            "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "Hotel-book_room", "gen_ai.tool.call.id": "c1",
            "gen_ai.tool.call.arguments": '{"room": 7}', "gen_ai.tool.call.result": "{'booked': True}",
        }, parent=1, scope="semantic_kernel"),
    )  # fmt: skip
    (call,) = t.calls()
    assert (call.tool, call.call_id, call.arguments, call.status) == ("Hotel-book_room", "c1", {"room": 7}, "ok")
    assert ("user", "book") in texts(t)
    assert t.usage.input_tokens == 10


def test_azure_ai_foundry_events_in_the_span() -> None:
    content = json.dumps({"content": "book", "role": "user"})
    t = build(
        make(1, "process_thread_run", 0, 100, {
            "gen_ai.operation.name": "process_thread_run", "gen_ai.system": "az.ai.agents", "gen_ai.thread.id": "t",
            "az.namespace": "Microsoft.CognitiveServices",
        }),
        make(2, "chat m", 10, 20, {
            "gen_ai.operation.name": "chat", "gen_ai.system": "az.ai.inference", "gen_ai.request.model": "m",
            **TOKENS,
        }, parent=1, events=(SpanEvent("gen_ai.user.message", 11, {"gen_ai.event.content": content}),)),
    )  # fmt: skip
    assert texts(t) == [("user", "book")]
    assert t.usage.output_tokens == 4


def test_a_tool_of_claude_code_and_its_phases_are_one_call() -> None:
    t = build(
        make(1, "claude_code.interaction", 0, 100, {"span.type": "interaction"}, scope="claude_code"),
        make(2, "claude_code.tool", 10, 40, {
            "span.type": "tool", "tool_name": "Bash", "tool_use_id": "c1", "full_command": "ls",
        }, parent=1, scope="claude_code"),
        make(3, "claude_code.tool.blocked_on_user", 11, 20, {"decision": "accept"}, parent=2, scope="claude_code"),
        make(4, "claude_code.tool.execution", 21, 39, {"success": "true"}, parent=2, scope="claude_code"),
    )  # fmt: skip
    assert [(c.tool, c.call_id, c.executed, c.status) for c in t.calls()] == [("Bash", "c1", True, "ok")]


def test_one_call_over_mcp_is_three_spans() -> None:
    server = {"service.name": "booking-server", "service.instance.id": "two"}
    mcp = {"mcp.method.name": "tools/call"}
    named = {**mcp, "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "book_room"}
    t = build(
        make(1, "invoke_agent desk", 0, 100, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}),
        make(2, "tools/call book_room", 10, 40, named, parent=1, scope="fastmcp", kind=3),
        make(3, "MCP send tools/call book_room", 11, 39, mcp, parent=2, scope="mcp-python-sdk", kind=3),
        make(4, "tools/call book_room", 15, 30, {**named, "error.type": "tool_error"}, parent=3, scope="fastmcp",
             kind=2, resource=server),
    )  # fmt: skip
    assert [(c.tool, c.status, len(c.span_ids)) for c in t.calls()] == [("book_room", "error", 3)]


def test_an_agent_framework_workflow_keeps_its_agents_apart() -> None:
    t = build(
        make(1, "workflow.run", 0, 100, {"workflow.id": "w"}, scope="agent_framework"),
        make(2, "executor.process front", 1, 40, {"executor.id": "front"}, parent=1, scope="agent_framework"),
        make(3, "invoke_agent front", 2, 39, {
            "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "front",
        }, parent=2, scope="agent_framework"),
        make(4, "execute_tool book_room", 10, 20, {
            "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "book_room", "gen_ai.tool.call.id": "c1",
            "gen_ai.tool.call.arguments": '{"room": 7}', "gen_ai.tool.call.result": '{"booked": true}',
        }, parent=3, scope="agent_framework"),
        make(5, "executor.process back", 50, 90, {"executor.id": "back"}, parent=1, scope="agent_framework"),
        make(6, "invoke_agent back", 51, 89, {
            "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "back",
        }, parent=5, scope="agent_framework"),
        make(7, "execute_tool light", 60, 70, {
            "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "light", "gen_ai.tool.call.id": "c2",
        }, parent=6, scope="agent_framework"),
    )  # fmt: skip
    assert [(c.tool, c.agent) for c in t.calls()] == [("book_room", "front"), ("light", "back")]
    assert t.order.compare(t.calls()[0].index, t.calls()[1].index) == "before"

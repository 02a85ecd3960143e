"""Tools that the model's provider runs: no span, often no result, and never taken for calls that did not run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.trajectory.spans import agent, build, chat, says, span
from tracegrade.model.span import Span
from tracegrade.model.trajectory import Step


def langfuse(output: Any) -> Span:
    return span(
        2,
        "generation",
        parent=1,
        langfuse__observation__type="generation",
        langfuse__observation__input=json.dumps([{"role": "user", "content": "hi"}]),
        langfuse__observation__output=json.dumps(output),
    )


def mlflow(output: Any) -> Span:
    return span(
        2,
        "Responses",
        parent=1,
        mlflow__spanType='"CHAT_MODEL"',
        mlflow__spanInputs=json.dumps({"model": "m", "input": "hi"}),
        mlflow__spanOutputs=json.dumps(output),
    )


ANTHROPIC = {
    "role": "assistant",
    "content": [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"q": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"url": "https://example.com"}]},
        {"type": "text", "text": "found"},
    ],
}
RESPONSES = [
    {"type": "web_search_call", "id": "s1", "status": "completed", "action": {"q": "x"}},
    {"type": "message", "status": "completed", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]},
]
OTEL = [
    {"type": "server_tool_call", "id": "s1", "name": "web_search", "server_tool_call": {"type": "search", "q": "x"}},
    {"type": "server_tool_call_response", "id": "s1", "server_tool_call_response": {"found": 1}},
]


@pytest.mark.parametrize(
    ("model", "result"),
    [
        (langfuse(ANTHROPIC), [{"url": "https://example.com"}]),
        (mlflow({**ANTHROPIC, "id": "m1"}), [{"url": "https://example.com"}]),
        (langfuse(RESPONSES), None),
        (mlflow({"object": "response", "output": RESPONSES}), None),
        (chat(2, 0, 10, [says("user", "hi")], [{"role": "assistant", "parts": OTEL}]), {"found": 1}),
    ],
)
def test_they_are_listed_from_what_the_model_answered(model: Span, result: Any) -> None:
    (call,) = build(agent(), model).calls()
    assert (call.tool, call.call_id, call.arguments, call.executed) == ("web_search", "s1", {"q": "x"}, True)
    assert call.result == result


def test_a_failed_one_is_an_error_and_its_code_is_its_argument() -> None:
    item = {"type": "code_interpreter_call", "id": "c", "status": "failed", "code": "1+1", "outputs": None}
    call = {
        "type": "mcp_call",
        "id": "m",
        "status": "completed",
        "name": "roll",
        "arguments": '{"d": 6}',
        "output": "4",
    }
    code, roll = sorted(build(agent(), langfuse([item, call])).calls(), key=lambda c: c.call_id or "")
    assert (code.tool, code.arguments, code.status) == ("code_interpreter", {"code": "1+1"}, "error")
    assert (roll.tool, roll.arguments, roll.result, roll.status) == ("roll", {"d": 6}, "4", "ok")


def test_items_that_the_agent_runs_come_back_in_its_next_input() -> None:
    asked = {"type": "local_shell_call", "call_id": "l", "status": "completed", "action": {"command": ["ls"]}}
    back = {"type": "local_shell_call_output", "call_id": "l", "status": "completed", "output": "a.txt"}
    (call,) = build(agent(), langfuse([asked])).calls()
    assert (call.tool, call.executed) == ("local_shell", None)
    given = [{"role": "user", "content": "hi"}, asked, back]
    again = span(
        3,
        "generation",
        20,
        30,
        parent=1,
        langfuse__observation__type="generation",
        langfuse__observation__input=json.dumps(given),
        langfuse__observation__output=json.dumps({"role": "assistant", "content": "a.txt"}),
    )
    (call,) = build(agent(), langfuse([asked]), again).calls()
    assert (call.executed, call.result) == (True, "a.txt")


def vercel(*calls: dict[str, Any]) -> Sequence[Step]:
    model = span(
        2,
        "ai.generateText.doGenerate",
        parent=1,
        ai__operationId="ai.generateText.doGenerate",
        ai__prompt__messages=json.dumps([{"role": "user", "content": [{"type": "text", "text": "hi"}]}]),
        ai__response__toolCalls=json.dumps(calls),
    )
    ran = span(
        3,
        "ai.toolCall",
        11,
        12,
        parent=1,
        ai__operationId="ai.toolCall",
        ai__toolCall__name="get",
        ai__toolCall__id="s2",
        ai__toolCall__args="{}",
        ai__toolCall__result="1",
    )
    root = span(1, "ai.generateText", 0, 100, ai__operationId="ai.generateText")
    return build(root, model, ran).calls()


def test_a_sibling_with_a_span_says_nothing_of_a_tool_that_the_provider_runs() -> None:
    own = {"toolCallId": "s2", "toolName": "get", "input": {}}
    other = {"toolCallId": "s1", "toolName": "web_search", "input": {"q": "x"}}
    for provider, executed in ((True, None), (False, False)):
        (found,) = [c for c in vercel({**other, "providerExecuted": provider}, own) if c.call_id == "s1"]
        assert found.executed is executed
        assert found.arguments == {"q": "x"}


def test_a_handover_span_is_no_second_call() -> None:
    """The model asks for `transfer_to_billing`; the framework writes `handoff to billing` for it."""
    over = span(2, "handoff to billing", 10, 11, parent=1, openinference__span__kind="TOOL")
    found = build(span(1, "triage", 0, 100, openinference__span__kind="AGENT"), over)
    assert [s.kind for s in found.steps] == ["agent", "handoff"]


def test_answers_of_gemini_are_read_in_its_own_form() -> None:
    answer = {"candidates": [{"content": {"role": "model", "parts": [{"text": "done"}]}, "finish_reason": "STOP"}]}
    found = build(agent(), mlflow(answer))
    assert [(s.role, s.text) for s in found.steps if s.kind == "message"] == [("user", "hi"), ("assistant", "done")]

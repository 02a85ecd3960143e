"""What goes wrong when trajectories are rebuilt from real spans, one trap a test."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.trajectory.spans import (
    REGISTRY,
    TRACE,
    agent,
    answers,
    asks,
    build,
    changed,
    chat,
    says,
    span,
    tool,
    without,
)
from tracegrade.model.span import LogRecord, SpanEvent, SpanLink
from tracegrade.model.trajectory import Trajectory
from tracegrade.trajectory.forest import Forest
from tracegrade.trajectory.group import group, parts_of


def calls(t: Trajectory) -> list[tuple[Any, ...]]:
    return [(c.tool, c.call_id, c.arguments) for c in t.calls()]


def codes(t: Trajectory) -> set[str]:
    return {g.code for g in t.gaps} | {w.code for w in t.warnings}


def before(t: Trajectory, a: int, b: int, relation: Any = "executed") -> str:
    return t.order.compare(t.calls()[a].index, t.calls()[b].index, relation)


HELLO = says("user", "hello")


# Calls -----------------------------------------------------------------------------------------------


def test_a_call_only_in_messages_is_a_call() -> None:
    ask = asks(("c1", "refund", {"n": 1}))
    t = build(
        agent(),
        chat(2, 10, 20, [HELLO], [ask]),
        chat(3, 30, 40, [HELLO, ask, answers("c1", "done")], [says("assistant", "ok")]),
    )
    (call,) = t.calls()
    assert (call.tool, call.arguments, call.executed, call.status, call.result, call.turn) == (
        "refund",
        {"n": 1},
        True,
        "ok",
        "done",
        0,
    )


def test_one_call_in_six_places_is_one() -> None:
    ask = asks(("c1", "refund", {"n": 1}))
    history = [HELLO, ask, answers("c1", "done")]
    log = LogRecord(
        TRACE, f"{3:016x}", 25, "gen_ai.tool.message", 0, {"id": "c1", "content": "done"}, {}, {}, "test", "1"
    )
    t = build(
        changed(agent(), gen_ai__output__messages=str(history).replace("'", '"')),
        chat(2, 10, 20, [HELLO], [ask]),
        tool(3, "refund", 21, 25, call_id="c1", arguments={"n": 1}, result="done", logs=(log,)),
        span(
            4,
            "tools/call refund",
            22,
            24,
            parent=3,
            scope="fastmcp",
            kind=3,
            mcp__method__name="tools/call",
            gen_ai__tool__name="refund",
        ),
        span(
            5,
            "tools/call refund",
            22,
            24,
            parent=4,
            scope="fastmcp",
            kind=2,
            mcp__method__name="tools/call",
            gen_ai__tool__name="refund",
        ),
        chat(6, 30, 40, history, [says("assistant", "ok")]),
        chat(7, 50, 60, [*history, says("assistant", "ok"), says("user", "thanks")], [says("assistant", "bye")]),
    )
    assert calls(t) == [("refund", "c1", {"n": 1})]


def test_two_equal_calls_with_two_ids_are_two() -> None:
    t = build(
        agent(), tool(2, "pay", 10, 20, call_id="a", arguments={}), tool(3, "pay", 12, 14, call_id="b", arguments={})
    )
    assert len(t.calls()) == 2


def test_an_id_used_again_is_another_call() -> None:
    one, two = asks(("call_0", "get", {"k": 1})), asks(("call_0", "put", {"k": 2}))
    first = [HELLO, one, answers("call_0", "1")]
    t = build(
        agent(),
        chat(2, 10, 20, [HELLO], [one]),
        tool(3, "get", 21, 22, call_id="call_0", arguments={"k": 1}),
        chat(4, 30, 40, first, [two]),
        tool(5, "put", 41, 42, call_id="call_0", arguments={"k": 2}),
        chat(6, 50, 60, [*first, two, answers("call_0", "2")], [says("assistant", "ok")]),
    )
    assert calls(t) == [("get", "call_0", {"k": 1}), ("put", "call_0", {"k": 2})]
    assert [c.result for c in t.calls()] == ["1", "2"]
    assert [c.turn for c in t.calls()] == [0, 1]


def test_spans_without_ids_join_by_name_arguments_and_order() -> None:
    ask = asks(("x", "get", {"k": 1}), ("y", "get", {"k": 2}))
    t = build(
        agent(),
        chat(2, 10, 20, [HELLO], [ask]),
        tool(3, "get", 25, 30, arguments={"k": 2}),
        tool(4, "get", 21, 24, arguments={"k": 1}),
    )
    assert [(c.call_id, c.arguments, len(c.span_ids)) for c in t.calls()] == [("x", {"k": 1}, 1), ("y", {"k": 2}, 1)]
    assert {c.turn for c in t.calls()} == {0}


def test_made_up_ids_that_join_nothing_are_said_and_order_decides() -> None:
    t = build(
        agent(),
        chat(2, 10, 20, [HELLO], [asks(("model-1", "get", {"k": 1}))]),
        tool(3, "get", 25, 30, call_id="framework-9", arguments={"k": 1}),
    )
    assert len(t.calls()) == 1
    assert "call_ids_do_not_join" in codes(t)


def test_requested_and_never_run_is_known_from_the_next_input() -> None:
    ask = asks(("c1", "refund", {}))
    t = build(
        agent(),
        chat(2, 10, 20, [HELLO], [ask]),
        chat(3, 30, 40, [HELLO, ask, says("user", "wait")], [says("assistant", "ok")]),
    )
    (call,) = t.calls()
    assert (call.requested, call.executed, call.status) == (True, False, "not_executed")


def test_requested_last_is_unknown() -> None:
    t = build(agent(), chat(2, 10, 20, [HELLO], [asks(("c1", "refund", {}))]))
    assert (t.calls()[0].executed, t.calls()[0].status) == (None, None)


def test_a_sibling_with_a_span_shows_that_the_other_did_not_run() -> None:
    ask = asks(("c1", "get", {}), ("c2", "put", {}))
    t = build(agent(), chat(2, 10, 20, [HELLO], [ask]), tool(3, "get", 21, 22, call_id="c1"))
    assert {c.tool: c.executed for c in t.calls()} == {"get": True, "put": False}
    lost = build(chat(2, 10, 20, [HELLO], [ask]), tool(3, "get", 21, 22, call_id="c1"))
    assert {c.tool: c.executed for c in lost.calls()} == {"get": True, "put": None}


def test_batch_wrappers_and_merged_spans_are_no_calls() -> None:
    t = build(
        agent(),
        span(2, "running tools", 10, 30, parent=1, scope="pydantic-ai", tools=("a",)),
        span(
            3,
            "running tool",
            11,
            12,
            parent=2,
            scope="pydantic-ai",
            gen_ai__tool__name="a",
            gen_ai__tool__call__id="i",
            tool_arguments="{}",
        ),
        span(
            4,
            "execute_tool (merged)",
            40,
            41,
            parent=1,
            scope="gcp.vertex.agent",
            gen_ai__operation__name="execute_tool",
            gen_ai__tool__name="(merged tools)",
        ),
    )
    assert calls(t) == [("a", "i", {})]


def test_definitions_are_no_calls_but_schemas() -> None:
    definitions = '[{"type":"function","name":"refund","parameters":{"type":"object"}}]'
    t = build(agent(), chat(2, 10, 20, [HELLO], [says("assistant", "no")], gen_ai__tool__definitions=definitions))
    assert t.calls() == []
    assert t.definitions == {"refund": {"type": "object"}}


def test_a_call_made_inside_a_tool_counts() -> None:
    t = build(
        agent(),
        tool(2, "search", 10, 50, call_id="c"),
        span(
            3,
            "tools/call search",
            11,
            20,
            parent=2,
            scope="fastmcp",
            kind=3,
            mcp__method__name="tools/call",
            gen_ai__tool__name="search",
        ),
        span(
            4,
            "tools/call search",
            21,
            30,
            parent=2,
            scope="fastmcp",
            kind=3,
            mcp__method__name="tools/call",
            gen_ai__tool__name="search",
        ),
        span(
            5,
            "tools/call fetch",
            31,
            40,
            parent=2,
            scope="fastmcp",
            kind=3,
            mcp__method__name="tools/call",
            gen_ai__tool__name="fetch",
        ),
    )
    assert [c.tool for c in t.calls()] == ["search", "search", "fetch"]


def test_two_instrumentations_of_one_call_are_one_with_a_warning() -> None:
    t = build(
        agent(),
        tool(2, "get", 10, 20, call_id="c", arguments={"k": 1}),
        span(
            3,
            "get",
            10,
            20,
            parent=1,
            scope="openinference.instrumentation.x",
            openinference__span__kind="TOOL",
            tool__name="get",
            tool__id="c",
        ),
        chat(
            4,
            30,
            40,
            [HELLO],
            [says("assistant", "a")],
            gen_ai__response__id="r",
            gen_ai__usage__input_tokens=5,
            gen_ai__usage__output_tokens=1,
        ),
        span(
            5,
            "ChatCompletion",
            31,
            39,
            parent=1,
            scope="openinference.instrumentation.openai",
            openinference__span__kind="LLM",
            gen_ai__response__id="r",
            llm__token_count__prompt=5,
            llm__token_count__completion=1,
        ),
    )
    assert len(t.calls()) == 1
    assert (t.usage.model_calls, t.usage.input_tokens) == (1, 5)
    assert "same_call_twice" in codes(t)


def test_denied_calls_did_not_run() -> None:
    t = build(
        span(1, "claude_code.interaction", 0, 100),
        span(2, "claude_code.tool", 10, 20, parent=1, tool_name="Bash", tool_use_id="t1"),
        span(3, "claude_code.tool.blocked_on_user", 11, 19, parent=2, decision="reject"),
        span(4, "claude_code.tool", 30, 40, parent=1, tool_name="Read", tool_use_id="t2"),
        span(5, "claude_code.tool.execution", 31, 39, parent=4, success="true"),
    )
    assert [(c.tool, c.executed, c.status) for c in t.calls()] == [
        ("Bash", False, "not_executed"),
        ("Read", True, "ok"),
    ]


def test_provider_executed_tools_are_listed_from_messages() -> None:
    answer = {
        "role": "assistant",
        "parts": [
            {
                "type": "server_tool_call",
                "id": "s1",
                "name": "web_search",
                "server_tool_call": {"type": "web_search", "query": "x"},
            },
            {
                "type": "server_tool_call_response",
                "id": "s1",
                "server_tool_call_response": {"type": "web_search", "n": 1},
            },
            {"type": "text", "content": "found"},
        ],
    }
    t = build(agent(), chat(2, 10, 20, [HELLO], [answer]))
    (call,) = t.calls()
    assert (call.tool, call.arguments, call.executed) == ("web_search", {"query": "x"}, True)


def test_spans_that_stand_for_unfinished_ones_are_dropped_once_the_real_one_is_there() -> None:
    pending = span(
        9,
        "running tool: a",
        10,
        10,
        parent=1,
        scope="pydantic-ai",
        logfire__span_type="pending_span",
        gen_ai__tool__name="a",
    )
    t = build(agent(), pending, tool(2, "a", 10, 20, call_id="c"))
    assert len(t.calls()) == 1


# Content ---------------------------------------------------------------------------------------------


def test_placeholders_are_missing_values() -> None:
    for text in ("__REDACTED__", "<REDACTED>", "[REDACTED]"):
        t = build(agent(), changed(tool(2, "a", 10, 20), gen_ai__tool__call__arguments=text))
        assert t.calls()[0].arguments_state == "not_captured"


def test_cut_arguments_keep_their_text() -> None:
    t = build(agent(), changed(tool(2, "a", 10, 20), gen_ai__tool__call__arguments='{"k": "ab'))
    (call,) = t.calls()
    assert (call.arguments, call.arguments_state, call.arguments_raw) == (None, "truncated", '{"k": "ab')
    assert any(f"{2:016x}" in g.message for g in t.gaps)


def test_a_python_repr_is_not_guessed_at() -> None:
    t = build(agent(), changed(tool(2, "a", 10, 20), gen_ai__tool__call__arguments="{'k': 'it''s'}"))
    assert t.calls()[0].arguments_state == "unparsed"


def test_arguments_encoded_twice_and_as_a_structure_are_equal() -> None:
    big = 9007199254740993
    for value in ('"{\\"k\\": 9007199254740993}"', '{"k": 9007199254740993}', {"k": big}):
        t = build(agent(), changed(tool(2, "a", 10, 20), gen_ai__tool__call__arguments=value))
        assert t.calls()[0].arguments == {"k": big}


def test_integers_beyond_64_bits_stay_exact() -> None:
    huge = 123456789012345678901234567890
    ask = [{"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "a", "arguments": {"k": huge}}]}]
    t = build(agent(), chat(2, 10, 20, [HELLO], ask))
    assert t.calls()[0].arguments == {"k": huge}


def test_whatever_is_no_object_is_allowed_as_arguments() -> None:
    for value in ("[1, 2]", "null", "3", '"text"', "{}"):
        t = build(agent(), changed(tool(2, "a", 10, 20), gen_ai__tool__call__arguments=value))
        assert t.calls()[0].arguments_state == "captured"


def test_event_attribute_and_details_event_give_one_result() -> None:
    by_attribute = tool(2, "a", 10, 20, call_id="c", arguments={"k": 1}, result={"ok": True})
    bare = tool(2, "a", 10, 20, call_id="c")
    legacy = (
        SpanEvent("gen_ai.tool.message", 11, {"content": '{"k": 1}', "id": "c"}),
        SpanEvent("gen_ai.choice", 19, {"message": '{"ok": true}'}),
    )
    name = "gen_ai.client.inference.operation.details"
    unified = (
        SpanEvent(
            name,
            11,
            {"gen_ai.input.messages": json.dumps([asks(("c", "a", {"k": 1}))])},
        ),
        SpanEvent(
            name,
            19,
            {"gen_ai.output.messages": json.dumps([answers("c", {"ok": True})])},
        ),
    )
    from dataclasses import replace

    for one in (by_attribute, replace(bare, events=legacy), replace(bare, events=unified)):
        (call,) = build(agent(), one).calls()
        assert (call.arguments, call.result) == ({"k": 1}, {"ok": True})


def test_an_attribute_limit_on_a_flattened_history_means_that_calls_may_be_missing() -> None:
    llm: dict[str, Any] = {
        "openinference__span__kind": "LLM",
        "llm__output_messages__0__message__role": "assistant",
        "llm__output_messages__0__message__content": "hi",
    }
    assert build(span(1, "ChatCompletion", dropped=3, **llm)).complete is False
    assert build(span(1, "ChatCompletion", **llm)).complete is True


def test_a_response_absent_from_a_cut_history_may_have_been_cut() -> None:
    flat: dict[str, Any] = {"openinference__span__kind": "LLM", "llm__model_name": "m"}
    first = span(2, "llm", 0, 10, **flat, **_flat_call("output", 0))
    for dropped, executed in ((0, False), (9, None)):
        again = span(3, "llm", 20, 30, **flat, dropped=dropped, **_flat_call("input", 0))
        (call,) = build(first, again).calls()
        assert (call.executed, call.call_id) == (executed, "c1"), dropped


def _flat_call(side: str, index: int) -> dict[str, Any]:
    base = f"llm__{side}_messages__{index}__message__"
    call = f"{base}tool_calls__0__tool_call__"
    return {f"{base}role": "assistant", f"{call}id": "c1", f"{call}function__name": "refund"}


def test_content_uploaded_elsewhere_is_not_captured() -> None:
    t = build(chat(2, 10, 20, parent=None, gen_ai__input__messages_ref="s3://x", gen_ai__output__messages_ref="s3://y"))
    assert t.calls() == []
    assert {"calls_not_recorded", "messages_not_captured"} <= codes(t)


# Status ----------------------------------------------------------------------------------------------


def test_evidence_of_failure() -> None:
    from dataclasses import replace

    plain = tool(2, "a", 10, 20, call_id="c", result="fine")
    exception = SpanEvent("exception", 20, {"exception.type": "X"})
    failing = [
        replace(plain, status_code=2),
        changed(plain, error__type="Timeout"),
        changed(plain, gen_ai__tool__status="error"),
        changed(plain, gen_ai__tool__call__result='{"isError": true, "content": []}'),
        changed(plain, gen_ai__tool__call__result='{"error": "no such order", "code": 404}'),
        changed(plain, gen_ai__tool__call__result='{"success": false, "message": "no"}'),
        replace(plain, events=(exception,)),
    ]
    for one in failing:
        (call,) = build(agent(), one).calls()
        assert call.status == "error", one
        assert call.status_evidence
    fine = [
        changed(plain, gen_ai__tool__call__result="an error in the text"),
        changed(plain, gen_ai__tool__call__result='{"errors": [], "error": null}'),
        replace(plain, events=(SpanEvent("exception", 12, {"exception.escaped": False}),)),
    ]
    for one in fine:
        (call,) = build(agent(), one).calls()
        assert (call.status, call.status_suspect) == ("ok", False), one
    (call,) = build(agent(), changed(plain, gen_ai__tool__call__result='{"status": "error"}')).calls()
    assert (call.status, call.status_suspect) == ("ok", True)


def test_an_unfinished_call_has_no_success() -> None:
    (call,) = build(agent(end=None), tool(2, "a", 10, None)).calls()
    assert (call.status, call.executed) == ("unfinished", True)


# Order -----------------------------------------------------------------------------------------------


def test_a_result_that_a_cut_input_hides_may_have_been_there() -> None:
    first, second = asks(("x", "a", {})), asks(("y", "b", {}))
    spans = [
        agent(),
        chat(2, 1, 5, [HELLO], [first]),
        tool(3, "a", 10, 20, call_id="x"),
        chat(4, 21, 25, [HELLO, first], [second]),
        tool(5, "b", 30, 40, call_id="y"),
        chat(6, 41, 45, [HELLO, first, answers("x", 1), second, answers("y", 2)], [says("assistant", "done")]),
    ]
    assert before(build(*spans[:-1]), 0, 1, "informed") == "unknown"
    whole = chat(4, 21, 25, [HELLO, first, answers("x", 1)], [second])
    assert before(build(*spans[:3], whole, *spans[4:]), 0, 1, "informed") == "before"


@pytest.mark.parametrize(
    "nothing",
    ["null", "None", "undefined", "true", "0", "...", '""', '[""]', '[{"role": "assistant", "parts": null}]',
     '[{"role": "assistant", "content": null}]', '[{"role": "assistant", "parts": []}]'],
)  # fmt: skip
def test_what_is_no_message_is_no_record_of_one(nothing: str) -> None:
    silent = changed(chat(2, 10, 20, [HELLO]), gen_ai__output__messages=nothing)
    t = build(agent(), silent)
    assert not t.messages_recorded
    assert not t.complete
    assert "calls_not_recorded" in codes(t)


def test_a_redacted_id_is_no_id() -> None:
    ask = asks(("[REDACTED]", "a", {"n": 1}), ("[REDACTED]", "b", {"n": 2}))
    t = build(
        agent(),
        chat(2, 1, 5, [HELLO], [ask]),
        tool(3, "a", 10, 20, call_id="x", arguments={"n": 1}, result=1),
        tool(4, "b", 20, 25, call_id="y", arguments={"n": 2}, result=2),
    )
    assert [(c.tool, c.result) for c in t.calls()] == [("a", "1"), ("b", "2")]


def test_calls_of_one_turn_with_one_id_get_their_answers_in_order() -> None:
    ask = asks(("call_0", "a", {"n": 1}), ("call_0", "a", {"n": 2}))
    t = build(
        agent(),
        chat(2, 1, 5, [HELLO], [ask]),
        chat(3, 6, 9, [HELLO, ask, answers("call_0", "one"), answers("call_0", "two")], [says("assistant", "done")]),
    )
    assert [(c.arguments, c.result) for c in t.calls()] == [({"n": 1}, "one"), ({"n": 2}, "two")]


def test_history_after_silent_model_calls_has_no_date() -> None:
    ask = asks(("c", "cancel", {}))
    t = build(
        agent(),
        chat(2, 10, 20),
        chat(3, 30, 40, [HELLO, ask, answers("c", "ok")], [says("assistant", "done")]),
    )
    assert "history_undated" in codes(t)
    assert not t.complete


def test_one_turn_run_at_once_overlaps_and_one_after_another_does_not() -> None:
    ask = asks(("x", "a", {}), ("y", "b", {}))
    together = build(
        agent(), chat(2, 1, 5, [HELLO], [ask]), tool(3, "a", 10, 20, call_id="x"), tool(4, "b", 15, 25, call_id="y")
    )
    assert before(together, 0, 1) == "concurrent"
    apart = build(
        agent(), chat(2, 1, 5, [HELLO], [ask]), tool(3, "a", 10, 20, call_id="x"), tool(4, "b", 20, 25, call_id="y")
    )
    assert before(apart, 0, 1) == "before"
    assert before(apart, 0, 1, "informed") == "concurrent"


def test_one_turn_only_in_messages_has_no_order() -> None:
    ask = asks(("x", "a", {}), ("y", "b", {}))
    t = build(
        agent(),
        chat(2, 1, 5, [HELLO], [ask]),
        chat(3, 10, 15, [HELLO, ask, answers("x", "1"), answers("y", "2")], [says("assistant", "k")]),
    )
    assert before(t, 0, 1) == "unknown"


def test_what_stood_in_the_input_came_before_whatever_the_clocks_say() -> None:
    other = {"service.name": "tools", "service.instance.id": "two"}
    one, two = asks(("x", "a", {})), asks(("y", "b", {}))
    t = build(
        agent(),
        chat(2, 1, 5, [HELLO], [one]),
        tool(3, "a", 900, 950, call_id="x", resource=other),
        chat(4, 10, 15, [HELLO, one, answers("x", "1")], [two]),
        tool(5, "b", 700, 750, call_id="y", resource=other),
    )
    by_tool = {c.tool: c.index for c in t.calls()}
    assert t.order.compare(by_tool["a"], by_tool["b"]) == "before"
    assert "clock_conflict" in codes(t)


def test_two_clocks_and_no_history_is_unknown() -> None:
    here, there = {"host.name": "a"}, {"host.name": "b"}
    t = build(tool(2, "a", 10, 20, parent=None, resource=here), tool(3, "b", 30, 40, parent=None, resource=there))
    assert before(t, 0, 1) == "unknown"
    same = {"host.id": "i", "host.name": "b"}
    known = build(tool(2, "a", 10, 20, parent=None, resource=same), tool(3, "b", 30, 40, parent=None, resource=there))
    assert before(known, 0, 1) == "before"


def test_a_remote_step_is_ordered_by_what_contains_it_here() -> None:
    there = {"host.name": "b"}
    t = build(
        agent(),
        span(2, "POST", 10, 20, parent=1, kind=3),
        tool(3, "a", 5_000, 6_000, parent=2, resource=there),
        tool(4, "b", 30, 40),
    )
    by_tool = {c.tool: c.index for c in t.calls()}
    assert t.order.compare(by_tool["a"], by_tool["b"]) == "before"


def test_a_coarse_clock_decides_nothing_within_its_tick() -> None:
    ms = 1_000_000
    t = build(
        tool(2, "a", 0, ms, parent=None, precision=ms),
        tool(3, "b", ms, 2 * ms, parent=None, precision=ms),
        tool(4, "c", 3 * ms, 4 * ms, parent=None, precision=ms),
    )
    assert before(t, 0, 1) == "unknown"
    assert before(t, 0, 2) == "before"


def test_a_span_that_ends_before_it_starts_has_no_clock_order() -> None:
    t = build(tool(2, "a", 20, 10, parent=None), tool(3, "b", 30, 40, parent=None))
    assert before(t, 0, 1) == "unknown"
    assert "negative_duration" in codes(t)


def test_links_order_starts() -> None:
    from dataclasses import replace

    here, there = {"host.name": "a"}, {"host.name": "b"}
    first = tool(2, "a", 10, 20, parent=None, resource=here)
    linked = replace(tool(3, "b", 5, 6, parent=None, resource=there), links=(SpanLink(TRACE, first.span_id, {}),))
    t = build(first, linked)
    by_tool = {c.tool: c.index for c in t.calls()}
    assert t.order.compare(by_tool["a"], by_tool["b"], "started") == "before"
    assert t.order.compare(by_tool["a"], by_tool["b"]) == "unknown"


# Messages --------------------------------------------------------------------------------------------


def test_texts_are_told_once_and_in_order() -> None:
    ask = asks(("c", "cancel", {}), text="I will cancel it.")
    history = [says("system", "be kind"), HELLO, says("assistant", "Shall I?"), says("user", "yes")]
    t = build(
        agent(),
        chat(2, 1, 5, history[:2], [history[2]]),
        chat(3, 10, 15, history, [ask]),
        tool(4, "cancel", 16, 18, call_id="c"),
        chat(5, 20, 25, [*history, ask, answers("c", "ok")], [says("assistant", "Done.")]),
    )
    said = [(s.role, s.text) for s in t.steps if s.kind == "message"]
    assert said == [
        ("system", "be kind"),
        ("user", "hello"),
        ("assistant", "Shall I?"),
        ("user", "yes"),
        ("assistant", "I will cancel it."),
        ("assistant", "Done."),
    ]
    yes = next(s.index for s in t.steps if s.text == "yes")
    asked = next(s.index for s in t.steps if s.text == "Shall I?")
    (call,) = t.calls()
    assert t.order.compare(yes, call.index) == "before"
    assert t.order.compare(asked, yes) == "before"
    assert [s.beside_call for s in t.steps if s.role == "assistant"] == [False, True, False]


def test_the_same_word_said_twice_is_two_messages() -> None:
    a, b = says("assistant", "one?"), says("assistant", "two?")
    yes = says("user", "yes")
    t = build(
        agent(),
        chat(2, 1, 5, [HELLO], [a]),
        chat(3, 10, 15, [HELLO, a, yes], [b]),
        chat(4, 20, 25, [HELLO, a, yes, b, yes], [says("assistant", "k")]),
    )
    assert [s.text for s in t.steps if s.role == "user"] == ["hello", "yes", "yes"]


# Completeness ----------------------------------------------------------------------------------------


def test_orphans_are_kept_and_named_with_their_common_parent() -> None:
    t = build(tool(2, "a", 10, 20, parent=99), tool(3, "b", 30, 40, parent=99))
    assert len(t.calls()) == 2
    assert t.complete is False
    (gap,) = [g for g in t.gaps if g.code == "orphan_spans"]
    assert gap.count == 2
    assert f"{99:016x}" in gap.message


def test_an_agent_behind_an_http_span_is_complete() -> None:
    t = build(agent(start=0, end=100, parent=99), tool(2, "a", 10, 20))
    assert t.complete is True
    assert "remote_parent" in codes(t)
    assert build(agent(start=0, end=15, parent=99), tool(2, "a", 10, 20)).complete is False


def test_an_unfinished_root_is_incomplete() -> None:
    t = build(agent(end=None), tool(2, "a", 10, 20))
    assert t.complete is False
    assert "unfinished_root" in codes(t)


def test_parents_in_a_circle_are_survived() -> None:
    t = build(tool(2, "a", 10, 20, parent=3), tool(3, "b", 30, 40, parent=2))
    assert len(t.calls()) == 2
    assert t.complete is False


def test_a_client_library_without_content_shows_no_calls_and_says_so() -> None:
    t = build(chat(2, 10, 20, parent=None))
    assert t.complete is False
    assert "calls_not_recorded" in codes(t)


def test_an_agent_that_only_answered_did_nothing() -> None:
    t = build(agent(), chat(2, 10, 20, [HELLO], [says("assistant", "done")]))
    assert (t.calls(), t.complete) == ([], True)


# Agents, history, grouping ---------------------------------------------------------------------------


def test_the_agent_of_a_call_is_the_nearest_above() -> None:
    inner = span(3, "invoke_agent b", 20, 90, parent=2, gen_ai__operation__name="invoke_agent", gen_ai__agent__name="b")
    t = build(agent(), tool(2, "transfer_to_b", 10, 95), inner, tool(4, "x", 30, 40, parent=3))
    assert [(c.tool, c.agent) for c in t.calls()] == [("transfer_to_b", "a"), ("x", "b")]
    assert before(t, 0, 1) == "concurrent"
    assert before(t, 0, 1, "started") == "before"


def test_history_of_an_unloaded_trace_is_prior() -> None:
    ask = asks(("old", "refund", {"n": 1}))
    t = build(
        agent(), chat(2, 10, 20, [HELLO, ask, answers("old", "done"), says("user", "again")], [says("assistant", "no")])
    )
    (call,) = t.calls()
    assert (call.prior, call.executed) == (True, True)
    shot = build(agent(), chat(2, 10, 20, [ask, answers("old", "done"), HELLO], [says("assistant", "no")]))
    assert [c.executed for c in shot.calls()] == [None]


def test_history_handed_to_another_agent_is_not_prior() -> None:
    ask = asks(("c", "verify", {"k": 1}))
    handed = [HELLO, ask, answers("c", "yes")]
    second = span(
        5, "invoke_agent b", 100, 200, gen_ai__operation__name="invoke_agent", gen_ai__agent__name="b", parent=None
    )
    t = build(
        agent(end=90),
        chat(2, 10, 20, [HELLO], [ask]),
        tool(3, "verify", 30, 40, call_id="c", arguments={"k": 1}, result="yes"),
        second,
        chat(6, 110, 120, handed, [asks(("d", "cancel", {}))], parent=5),
        tool(7, "cancel", 130, 140, call_id="d", parent=5),
    )
    assert [(c.tool, c.prior) for c in t.calls()] == [("verify", False), ("cancel", False)]
    assert before(t, 0, 1) == "before"


def parts(*traces: Any, group_by: str = "auto") -> Any:
    found = []
    for spans in traces:
        found += [p for p, _ in parts_of(spans, Forest(spans, REGISTRY), group_by)]
    return group(found)


def turn(number: int, trace: str, start: int, conversation: str | None, **more: Any) -> list[Any]:
    attributes: dict[str, Any] = {"gen_ai__conversation__id": conversation} if conversation else {}
    root = agent(number, start, start + 50, trace=trace, **attributes, **more)
    return [
        root,
        chat(
            number + 1,
            start + 1,
            start + 9,
            [HELLO],
            [says("assistant", "k")],
            parent=number,
            trace=trace,
            **attributes,
        ),
    ]


def test_traces_of_one_conversation_join_and_others_do_not() -> None:
    one, two = "a" * 32, "b" * 32
    assert len(parts(turn(1, one, 0, "c"), turn(3, two, 100, "c"))) == 1
    assert len(parts(turn(1, one, 0, "c"), turn(3, two, 100, "d"))) == 2
    assert len(parts(turn(1, one, 0, "c"), turn(3, two, 20, "c"))) == 2, "they overlap"
    assert len(parts(turn(1, one, 0, "default"), turn(3, two, 100, "default"))) == 2, "a placeholder"
    assert len(parts(turn(1, one, 0, "c"), turn(3, two, 100, "c"), group_by="trace")) == 2
    other = {"service.name": "other"}
    assert len(parts(turn(1, one, 0, "c"), turn(3, two, 100, "c", resource=other))) == 2, "another service"


def test_a_conversation_id_that_is_a_response_id_joins_nothing() -> None:
    def with_response(number: int, trace: str, start: int) -> list[Any]:
        return [
            agent(number, start, start + 50, trace=trace),
            chat(
                number + 1,
                start + 1,
                start + 9,
                [HELLO],
                [says("assistant", "k")],
                parent=number,
                trace=trace,
                gen_ai__conversation__id="resp",
                gen_ai__response__id="resp",
            ),
        ]

    assert len(parts(with_response(1, "a" * 32, 0), with_response(3, "b" * 32, 100))) == 2


def test_one_trace_splits_only_at_sibling_agents_of_different_conversations() -> None:
    root = span(50, "batch", 0, 500)
    runs = [s for n, c in ((1, "x"), (3, "y")) for s in turn(n, TRACE, n * 50, c, parent=50)]
    assert len(parts([root, *runs])) == 2
    same = [s for n, c in ((1, "x"), (3, "x")) for s in turn(n, TRACE, n * 50, c, parent=50)]
    assert len(parts([root, *same])) == 1


def test_nothing_but_set_up_is_not_graded() -> None:
    made = span(1, "create_agent a", gen_ai__operation__name="create_agent", gen_ai__agent__name="a")
    (found,) = parts([made])
    assert found.parts[0].graded is False


# Usage -----------------------------------------------------------------------------------------------


def used(number: int, start: int, tokens: tuple[int, int] | None, *, parent: int = 1, **more: Any) -> Any:
    attributes = (
        {} if tokens is None else {"gen_ai__usage__input_tokens": tokens[0], "gen_ai__usage__output_tokens": tokens[1]}
    )
    return chat(
        number, start, start + 5, [HELLO], [says("assistant", str(number))], parent=parent, **attributes, **more
    )


def test_roll_ups_count_only_where_nothing_below_reports() -> None:
    total = changed(agent(), gen_ai__usage__input_tokens=30, gen_ai__usage__output_tokens=3)
    t = build(total, used(2, 10, (10, 1)), used(3, 20, (20, 2)))
    assert (t.usage.input_tokens, t.usage.output_tokens, t.usage.model_calls) == (30, 3, 2)
    assert "rollup_mismatch" not in codes(t)
    alone = build(total)
    assert (alone.usage.input_tokens, alone.usage.model_calls) == (30, 0)
    odd = build(changed(total, gen_ai__usage__input_tokens=99), used(2, 10, (10, 1)), used(3, 20, (20, 2)))
    assert odd.usage.input_tokens == 30
    (warning,) = [w for w in odd.warnings if w.code == "rollup_mismatch"]
    assert "99" in warning.message
    assert "30" in warning.message


def test_a_model_call_around_a_model_call_is_a_wrapper_only_where_it_says_the_same() -> None:
    outer = used(2, 10, (10, 1))
    same = build(agent(), outer, used(3, 11, (10, 1), parent=2))
    assert (same.usage.model_calls, same.usage.input_tokens) == (1, 10)
    other = build(agent(), outer, used(3, 11, (7, 1), parent=2))
    assert (other.usage.model_calls, other.usage.input_tokens) == (2, 17)


def test_a_call_without_usage_makes_the_sums_lower_bounds() -> None:
    t = build(agent(), used(2, 10, (10, 1)), used(3, 20, None))
    assert (t.usage.input_tokens, t.usage.complete, t.usage.calls_without_usage) == (10, False, 1)
    none = build(agent(), used(2, 10, None))
    assert (none.usage.input_tokens, none.usage.complete) == (None, False)


def test_zero_is_a_count() -> None:
    t = build(agent(), used(2, 10, (0, 0)))
    assert (t.usage.input_tokens, t.usage.complete) == (0, True)


def test_a_count_that_cannot_be_read_is_a_warning_not_zero() -> None:
    t = build(agent(), changed(used(2, 10, (1, 1)), gen_ai__usage__input_tokens="many"))
    assert t.usage.input_tokens is None
    assert "unreadable_count" in codes(t)


def test_a_negative_cost_is_no_cost() -> None:
    t = build(agent(), changed(used(2, 10, (1, 1)), operation__cost=-0.5))
    assert t.usage.cost_usd is None
    assert "negative_cost" in codes(t)


def test_nothing_here_is_a_gen_ai_span() -> None:
    plain = without(span(1, "GET /", 0, 10), "x")
    assert build(plain).steps == ()


def test_a_tool_on_a_lagging_host_is_the_call_that_was_asked_for() -> None:
    ask = asks(("c1", "book", {"room": 7}))
    t = build(
        agent(),
        chat(2, 100, 120, [HELLO], [ask]),
        tool(3, "book", 10, 20, arguments={"room": 7}, result="done", resource={"host.name": "other"}),
        chat(4, 200, 220, [HELLO, ask, answers("c1", "done")], [says("assistant", "ok")]),
    )
    assert [(c.tool, c.call_id, c.turn, c.result) for c in t.calls()] == [("book", "c1", 0, "done")]


def test_equal_requests_take_the_spans_that_gave_their_answers() -> None:
    first, again = asks(("c1", "look", {})), asks(("c2", "look", {}))
    history = [HELLO, first, answers("c1", "closed")]
    t = build(
        agent(),
        chat(2, 10, 20, [HELLO], [first]),
        tool(3, "look", 400, 410, arguments={}, result="closed"),  # its clock is ahead
        chat(4, 40, 50, history, [again]),
        tool(5, "look", 60, 70, arguments={}, result="open"),
        chat(6, 80, 90, [*history, again, answers("c2", "open")], [says("assistant", "ok")]),
    )
    assert [(c.call_id, c.result, c.span_ids) for c in sorted(t.calls(), key=lambda c: c.call_id or "")] == [
        ("c1", "closed", (f"{3:016x}",)),
        ("c2", "open", (f"{5:016x}",)),
    ]


def test_a_request_whose_answer_was_lost_comes_after_those_before_it() -> None:
    first, again = asks((None, "look", {})), asks((None, "look", {}))
    t = build(
        agent(),
        chat(2, 10, 20, [HELLO], [first]),
        tool(3, "look", 25, 30, arguments={}, status=2),
        tool(5, "look", 60, 70, arguments={}, result="open"),
        chat(
            6,
            80,
            90,
            [HELLO, first, answers(None, "closed"), again, answers(None, "open")],
            [says("assistant", "ok")],
        ),
    )
    assert [(c.status, c.span_ids) for c in t.calls()] == [("error", (f"{3:016x}",)), ("ok", (f"{5:016x}",))]

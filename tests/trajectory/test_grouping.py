"""Traces that belong together, read from a store as they are in practice."""

from __future__ import annotations

from typing import Any

from tests.trajectory.spans import agent, answers, asks, chat, says, tool
from tracegrade.app.load import load_spans
from tracegrade.app.trajectories import Seen, TrajectoryOptions, iter_trajectories
from tracegrade.model.span import Span
from tracegrade.model.trajectory import Trajectory
from tracegrade.store import Store

ONE, TWO, THREE = "a" * 32, "b" * 32, "c" * 32
HELLO = says("user", "hello")


def read(*spans: Span, **options: Any) -> tuple[list[Trajectory], Seen]:
    seen = Seen()
    with Store.open(None) as store:
        load_spans(store, spans)
        return list(iter_trajectories(store, TrajectoryOptions(**options), seen)), seen


def test_tool_calls_that_lost_their_context_join_by_call_id() -> None:
    ask = asks(("x", "get", {"k": 1}), ("y", "put", {"k": 2}))
    spans = [
        agent(1, 0, 100, trace=ONE),
        chat(2, 1, 10, [HELLO], [ask], trace=ONE),
        tool(3, "get", 20, 30, parent=None, trace=TWO, call_id="x", arguments={"k": 1}),
        tool(4, "put", 25, 35, parent=None, trace=THREE, call_id="y", arguments={"k": 2}),
    ]
    (found,), seen = read(*spans)
    assert [(c.tool, c.executed, c.turn) for c in found.calls()] == [("get", True, 0), ("put", True, 0)]
    assert found.order.compare(found.calls()[0].index, found.calls()[1].index) == "concurrent"
    assert found.joined_by == "call_id"
    assert any("call id" in text for text in seen.joined)
    apart, _ = read(*spans, group_by="trace")
    assert len(apart) == 3


def test_a_call_that_has_its_span_takes_no_stray_of_the_same_id() -> None:
    ask = asks(("call_0", "get", {}))
    found, _ = read(
        agent(1, 0, 100, trace=ONE),
        chat(2, 1, 10, [HELLO], [ask], trace=ONE),
        tool(3, "get", 20, 30, trace=ONE, call_id="call_0"),
        tool(4, "get", 25, 35, parent=None, trace=TWO, call_id="call_0"),
    )
    assert [len(t.calls()) for t in found] == [1, 1]


def test_two_turns_of_a_conversation_are_one_trajectory_in_order() -> None:
    ask, back = asks(("x", "get", {})), answers("x", "1")
    bye = says("assistant", "one more?")
    conversation = {"gen_ai__conversation__id": "conversation-7"}
    (found,), seen = read(
        agent(1, 0, 100, trace=ONE, **conversation),
        chat(2, 1, 10, [HELLO], [ask], trace=ONE, **conversation),
        tool(3, "get", 20, 30, trace=ONE, call_id="x"),
        chat(4, 40, 50, [HELLO, ask, back], [bye], trace=ONE, **conversation),
        agent(5, 200, 300, trace=TWO, **conversation),
        chat(
            6,
            210,
            220,
            [HELLO, ask, back, bye, says("user", "yes")],
            [asks(("y", "put", {}))],
            parent=5,
            trace=TWO,
            **conversation,
        ),
        tool(7, "put", 230, 240, parent=5, trace=TWO, call_id="y"),
    )
    assert [(c.tool, c.prior) for c in found.calls()] == [("get", False), ("put", False)]
    assert found.conversation_id == "conversation-7"
    assert [s.text for s in found.steps if s.role == "user"] == ["hello", "yes"]
    assert any("joined" in text for text in seen.joined)


def test_an_attribute_groups_traces_and_a_trial_key_is_never_merged() -> None:
    def run(number: int, trace: str, start: int, **more: Any) -> list[Span]:
        return [
            agent(number, start, start + 50, trace=trace, **more),
            tool(number + 1, "get", start + 1, start + 2, parent=number, trace=trace),
        ]

    spans = [*run(1, ONE, 0, shop__order="W"), *run(3, TWO, 100, shop__order="W"), *run(5, THREE, 200, shop__order="V")]
    found, _ = read(*spans, group_by="shop.order")
    assert sorted(len(t.calls()) for t in found) == [1, 2]
    trials = [*run(1, ONE, 0, task="t", trial="0"), *run(3, TWO, 100, task="t", trial="1")]
    keyed, _ = read(*trials, task_key="task", trial_key="trial")
    assert sorted((t.task_id, t.trial) for t in keyed) == [("t", "0"), ("t", "1")]


def test_set_up_traces_are_listed_and_no_trajectories() -> None:
    from tests.trajectory.spans import span

    made = span(9, "create_agent a", trace=TWO, gen_ai__operation__name="create_agent", gen_ai__agent__name="a")
    found, seen = read(agent(1, 0, 100, trace=ONE), made, span(10, "GET /", trace=THREE))
    assert len(found) == 1
    assert seen.set_up == [TWO]
    assert seen.other == 1

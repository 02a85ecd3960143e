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


def _looped(run: str, base: int, *, ids: bool = True, name: str = "get") -> list[Span]:
    """Three model calls of one run, each a trace of its own, as a client library in a loop writes them."""
    one, two = (f"{run}{i}" if ids else None for i in (1, 2))
    ask, more = asks((one, name, {"k": 1})), asks((two, "put", {"k": 2}))
    histories = [
        ([HELLO], [ask]),
        ([HELLO, ask, answers(one, "1")], [more]),
        ([HELLO, ask, answers(one, "1"), more, answers(two, "2")], [says("assistant", f"done {run if ids else ''}")]),
    ]
    return [
        chat(base + i, base + 100 * i, base + 100 * i + 50, told, said, parent=None, trace=f"{base + i:032x}")
        for i, (told, said) in enumerate(histories)
    ]


def test_traces_of_one_model_call_each_join_by_their_messages() -> None:
    a, b = _looped("a", 1000), _looped("b", 1010)
    for spans in ([*a, *b], [*reversed(b), *reversed(a)]):
        found, seen = read(*spans, group_by="messages")
        assert [[(c.tool, c.call_id, c.executed, c.result) for c in t.calls()] for t in found] == [
            [("get", "a1", True, "1"), ("put", "a2", True, "2")],
            [("get", "b1", True, "1"), ("put", "b2", True, "2")],
        ]
        assert {t.joined_by for t in found} == {"messages"}
        assert all(t.order.compare(t.calls()[0].index, t.calls()[1].index) == "before" for t in found)
        assert seen.joined == [
            "6 traces were joined into 2 trajectories by messages: each history repeats the one before it"
        ]
    apart, _ = read(*a, *b)
    assert len(apart) == 6
    # The first two pieces of each run asked for calls that only the next trace answers.
    assert [t.complete for t in apart] == [False, False, False, False, True, True]
    assert [{g.code for g in t.gaps} & {"run_goes_on"} for t in apart[:4]] == [{"run_goes_on"}] * 4
    assert all(t.complete for t in read(*a, *b, group_by="messages")[0])


def test_equal_histories_of_two_runs_are_not_guessed_at() -> None:
    found, seen = read(*_looped("a", 1000, ids=False), *_looped("b", 1010, ids=False), group_by="messages")
    assert len(found) == 6
    assert sum("left_apart" in {g.code for g in t.gaps} for t in found) == 4
    assert [t.complete for t in found] == [False] * 6
    assert seen.joined == ["4 traces were left apart: their messages continue more than one run"]


def test_a_history_said_by_another_service_or_later_is_not_joined() -> None:
    first, second, third = _looped("a", 1000)
    other = Span(**{**{f: getattr(second, f) for f in second.__slots__}, "resource": {"service.name": "other"}})
    found, _ = read(first, other, group_by="messages")
    assert len(found) == 2
    early = Span(**{**{f: getattr(second, f) for f in second.__slots__}, "start_ns": 1, "end_ns": 2})
    found, _ = read(first, early, third, group_by="messages")
    assert [t.trace_ids for t in found] == [(early.trace_id, third.trace_id), (first.trace_id,)]


def test_traces_that_hold_more_than_a_model_call_stand_alone() -> None:
    first, second, _ = _looped("a", 1000)
    found, _ = read(first, second, agent(1, 1090, 1200, trace=second.trace_id), group_by="messages")
    assert len(found) == 2

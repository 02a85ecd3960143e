"""Laws of trajectories: the order is one, arrival does not matter, hiding evidence never turns a verdict around."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracegrade.trajectory.order as order_module
from tests.trajectory.spans import REGISTRY, agent, answers, asks, build, changed, chat, says, span, tool, without
from tracegrade.checks.load import parse_pack
from tracegrade.checks.run import run_checks
from tracegrade.model.span import Span
from tracegrade.model.verdict import CheckResult
from tracegrade.trajectory.build import build_trajectory
from tracegrade.trajectory.order import Interval, Order, Placement

NAMES = ("verify", "lookup", "cancel", "refund")
PACK = parse_pack(
    """
version: 1
pack: laws
invariants:
  - {id: order, kind: partial_order, why: x, order: [[{tool: verify}, {tool: cancel}],
      [{tool: lookup}, {tool: cancel}]]}
  - {id: precedes, kind: precedes, why: x, first: {tool: cancel}, then: {tool: refund}}
  - {id: same, kind: precedes, why: x, first: {tool: lookup}, then: {tool: cancel}, same: [id]}
  - {id: never, kind: forbidden, why: x, action: {tool: refund, args: {n: {gt: 1}}}}
  - {id: must, kind: required, why: x, action: {tool: cancel}}
  - {id: once, kind: count, why: x, action: {tool: refund}, max: 1}
  - {id: twice, kind: count, why: x, action: {tool: lookup}, min: 1, max: 2}
  - {id: equal, kind: redundant, why: x, action: {tool: cancel}, max_equal: 1}
  - {id: confirmed, kind: precedes, why: x, first: {message: user, text: {matches: 'yes'}}, then: {tool: refund}}
"""
)


@st.composite
def runs(draw: st.DrawFn) -> list[Span]:
    """An agent run of up to six tool calls, one after another or at once, asked for by model calls that say so."""
    count = draw(st.integers(0, 6))
    spans = [agent(1, 0, 10_000)]
    history: list[Any] = [says("user", draw(st.sampled_from(["please", "yes, please"])))]
    clock = 10
    number = 2
    index = 0
    while index < count:
        size = draw(st.integers(1, 2))
        calls = []
        for _ in range(min(size, count - index)):
            arguments = {"id": draw(st.sampled_from(["a", "b"])), "n": draw(st.integers(0, 3))}
            calls.append((f"c{index}", draw(st.sampled_from(NAMES)), arguments))
            index += 1
        spans.append(chat(number, clock, clock + 10, list(history), [asks(*calls)]))
        number, clock = number + 1, clock + 20
        history.append(asks(*calls))
        together = draw(st.booleans())
        for call_id, name, arguments in calls:
            failed = draw(st.booleans()) and draw(st.booleans())
            more: dict[str, Any] = {"error__type": "Oops"} if failed else {}
            spans.append(
                tool(number, name, clock, clock + 10, arguments=arguments, result={"ok": 1}, call_id=call_id, **more)
            )
            history.append(answers(call_id, {"ok": 1}))
            number += 1
            clock += 3 if together else 20
        clock += 20
    spans.append(chat(number, clock, clock + 10, list(history), [says("assistant", "done")]))
    return spans


def verdicts(spans: Sequence[Span]) -> dict[str, CheckResult]:
    return {r.id: r.result for r in run_checks(build_trajectory(spans, REGISTRY), PACK.invariants)}


def never_turned_around(before: dict[str, CheckResult], after: dict[str, CheckResult]) -> None:
    for rule, old in before.items():
        new = after[rule]
        assert new.verdict != "error", new
        if old.verdict in ("pass", "fail") and new.verdict in ("pass", "fail") and new.verdict != old.verdict:
            assert (old.verdict, new.verdict, new.scope) == ("fail", "pass", "seen"), (rule, old, new)
        if new.verdict == "not_applicable":
            assert old.verdict in ("not_applicable", "unknown"), (rule, old, new)


@given(runs(), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_arrival_does_not_matter(spans: list[Span], random: Any) -> None:
    shuffled = list(spans)
    random.shuffle(shuffled)
    a, b = build(*spans), build(*shuffled)
    assert a.steps == b.steps
    assert (a.usage, a.gaps, a.complete) == (b.usage, b.gaps, b.complete)
    n = len(a.steps)
    assert [[a.order.compare(i, j) for i in range(n)] for j in range(n)] == [
        [b.order.compare(i, j) for i in range(n)] for j in range(n)
    ]


intervals = st.tuples(st.integers(0, 12), st.one_of(st.none(), st.integers(0, 6)), st.sampled_from([1, 1, 4])).map(
    lambda t: Interval(t[0] // t[2] * t[2], None if t[1] is None else (t[0] + t[1]) // t[2] * t[2], t[2])
)
placements = st.lists(
    st.builds(
        Placement,
        own=st.dictionaries(st.sampled_from(["host a", "host b"]), intervals, max_size=1),
        lifted=st.dictionaries(st.sampled_from(["host a", "host b"]), intervals, max_size=1),
        talk=st.dictionaries(
            st.sampled_from([("talk", 0), ("talk", 1)]),
            st.tuples(st.integers(0, 12), st.integers(0, 3)).map(lambda t: Interval(t[0], t[0] + t[1])),
            max_size=1,
        ),
        first=st.sampled_from([False, False, False, True]),
    ),
    min_size=1,
    max_size=7,
)


@given(placements, st.sampled_from(["executed", "informed", "started"]))
@settings(max_examples=300, deadline=None)
def test_happens_before_is_a_strict_partial_order(items: list[Placement], relation: Any) -> None:
    order = Order(items)
    n = len(items)
    before = [[order.compare(i, j, relation) == "before" for j in range(n)] for i in range(n)]
    for i in range(n):
        assert not before[i][i]
        for j in range(n):
            assert not (before[i][j] and before[j][i])
            assert (order.compare(i, j, relation) == "after") == before[j][i]
            for k in range(n):
                if before[i][j] and before[j][k]:
                    assert before[i][k]


@given(runs())
@settings(max_examples=60, deadline=None)
def test_a_step_that_no_pattern_matches_changes_no_verdict(spans: list[Span]) -> None:
    more = [*spans, tool(900, "weather", 9_000, 9_010, call_id="w", arguments={"id": "a", "n": 3}, result={})]
    assert {k: v.verdict for k, v in verdicts(spans).items()} == {k: v.verdict for k, v in verdicts(more).items()}


@given(runs(), st.data())
@settings(max_examples=150, deadline=None)
def test_hiding_evidence_never_turns_a_verdict_around(spans: list[Span], data: st.DataObject) -> None:
    before = verdicts(spans)
    hidden = list(spans)
    how = data.draw(st.sampled_from(["arguments", "cut", "results", "messages", "root", "unfinished", "redacted"]))
    argument_keys = ("gen_ai.tool.call.arguments", "gen_ai.input.messages", "gen_ai.output.messages")
    victims = data.draw(st.sets(st.integers(0, len(spans) - 1)))
    for i, old in enumerate(spans):
        if how == "root":
            continue
        if how == "unfinished":
            hidden[i] = replace(old, end_ns=None) if old.parent_span_id is None else old
        elif how == "messages":
            hidden[i] = without(old, "gen_ai.input.messages", "gen_ai.output.messages")
        elif how in ("arguments", "cut", "redacted"):
            # The messages would tell the arguments all the same: content capture is one switch.
            hidden[i] = without(old, *argument_keys[1:])
            text = old.attributes.get("gen_ai.tool.call.arguments")
            if i in victims and text is not None:
                if how == "arguments":
                    hidden[i] = without(hidden[i], argument_keys[0])
                elif how == "cut":
                    hidden[i] = changed(hidden[i], gen_ai__tool__call__arguments=text[:-2])
                else:
                    hidden[i] = changed(hidden[i], gen_ai__tool__call__arguments="[REDACTED]")
        elif how == "results" and i in victims:
            hidden[i] = without(old, "gen_ai.tool.call.result")
    if how == "root":
        hidden = [s for s in spans if s.parent_span_id is not None]
    if hidden:
        never_turned_around(before, verdicts(hidden))


@given(runs(), st.data())
@settings(max_examples=100, deadline=None)
def test_a_lost_step_with_a_mark_never_turns_a_verdict_around(spans: list[Span], data: st.DataObject) -> None:
    tools = [i for i, s in enumerate(spans) if s.name.startswith("execute_tool")]
    if not tools:
        return
    lost = data.draw(st.sampled_from(tools))
    # The step was the parent of another span that did arrive, and nothing that models saw is recorded.
    kept = [without(s, "gen_ai.input.messages", "gen_ai.output.messages") for i, s in enumerate(spans) if i != lost]
    child = span(800, "GET /", spans[lost].start_ns, spans[lost].end_ns, parent=int(spans[lost].span_id, 16))
    never_turned_around(verdicts(spans), verdicts([*kept, child]))


@given(placements, st.sampled_from(["executed", "informed"]))
@settings(max_examples=150, deadline=None)
def test_huge_trajectories_are_ordered_by_pairs_and_never_otherwise(items: list[Placement], relation: Any) -> None:
    whole, pairs = Order(items), Order(items)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order_module, "MAX_CLOSED", 2)
        seen = {(i, j): pairs.compare(i, j, relation) for i in range(len(items)) for j in range(len(items)) if i != j}
    for (i, j), found in seen.items():
        contradictory = whole.conflicts or order_module._close(whole._talk_edges()) is None
        if found in ("before", "after") and not contradictory:
            assert whole.compare(i, j, relation) == found

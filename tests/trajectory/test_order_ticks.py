"""Order on clocks of different ticks: what a pairwise look says, at the cost of a sweep."""

from __future__ import annotations

import gc

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracegrade.trajectory.order as order_module
from tests.trajectory.spans import agent, build, chat, says, tool
from tracegrade.trajectory.order import Interval, Order, placements_from_mapping

TICKS = (1, 1, 3, 10)


@st.composite
def intervals(draw: st.DrawFn) -> list[Interval]:
    """Steps of one clock, some read on a coarse tick, some that never ended."""
    found = []
    for _ in range(draw(st.integers(1, 12))):
        start = draw(st.integers(0, 30))
        end = draw(st.none() | st.integers(start, start + 15))
        found.append(Interval(start, end, draw(st.sampled_from(TICKS))))
    return found


def certainly_before(a: Interval, b: Interval) -> bool:
    """The definition, in words of the document: the end lies a tick before the start, on a fine clock not after it."""
    if a.end is None:
        return False
    tick = max(a.tick, b.tick)
    if tick > 1:
        return b.start - a.end >= tick
    instant = a.start == a.end == b.start == b.end
    return a.end <= b.start and not instant


@given(intervals())
def test_the_sweep_says_what_a_look_at_every_pair_says(steps: list[Interval]) -> None:
    n = len(steps)
    graph = nx.DiGraph((a, b) for a in range(n) for b in range(n) if a != b and certainly_before(steps[a], steps[b]))
    graph.add_nodes_from(range(n))
    order = Order(placements_from_mapping([{"clock": i} for i in steps]))
    for b in range(n):
        assert {a for a in range(n) if order.compare(a, b) == "before"} == nx.ancestors(graph, b)


@pytest.mark.parametrize("tick", [1, 1_000_000])
def test_steps_in_a_row_are_not_compared_with_all_others(tick: int, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    look = order_module._ends_before

    def counted(a: Interval, b: Interval) -> bool:
        nonlocal looks
        looks += 1
        return look(a, b)

    monkeypatch.setattr(order_module, "_ends_before", counted)
    n = 3_000
    order = Order(placements_from_mapping([{"clock": Interval(i * tick, (i + 1) * tick, tick)} for i in range(n)]))
    assert order.compare(0, n - 1) == "before"
    assert looks <= 4 * n


def test_a_trajectory_leaves_nothing_for_the_collector() -> None:
    history = [says("user", "please")]
    spans = [agent(1), chat(2, 10, 20, history, [says("assistant", "yes")]), tool(3, "refund", 30, 40, id="a")]
    build(*spans)
    gc.collect()
    gc.disable()
    try:
        build(*spans)
        assert gc.collect() < 20
    finally:
        gc.enable()

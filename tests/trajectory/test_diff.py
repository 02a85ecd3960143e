"""Where two trajectories part, and that the alignment keeps what it aligns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tracegrade.model.trajectory import Step, Trajectory
from tracegrade.trajectory.diff import Pair, changed_fields, diff_trajectories
from tracegrade.trajectory.order import Order


def call(tool: str, arguments: Any = None, **more: Any) -> Step:
    known: dict[str, Any] = {"arguments_state": "captured", "status": "ok", "executed": True, **more}
    return Step(0, "tool_call", tool, tool=tool, arguments=arguments if arguments is not None else {}, **known)


def chain(*steps: Step, beside: Sequence[tuple[int, int]] = ()) -> Trajectory:
    """Steps one after another, but for the pairs in `beside`."""
    from dataclasses import replace

    numbered = tuple(replace(s, index=n, seq=n) for n, s in enumerate(steps))
    apart = {frozenset(pair) for pair in beside}
    pairs = [(a, b) for a in range(len(steps)) for b in range(a + 1, len(steps)) if frozenset((a, b)) not in apart]
    return Trajectory("t", ("t",), numbered, Order.from_pairs(len(steps), pairs, [tuple(p) for p in apart]))  # type: ignore[misc]


def kinds(pairs: Sequence[Pair]) -> list[str]:
    return [p.kind for p in pairs]


def test_equal_trajectories_do_not_differ() -> None:
    one = chain(call("a"), call("b", {"x": 1}))
    other = chain(call("a"), call("b", {"x": 1.0}))
    assert diff_trajectories(one, other).equal


def test_the_first_step_that_differs_is_named_with_its_fields() -> None:
    one = chain(call("look"), call("cancel", {"id": "W1", "why": "late"}), call("refund"))
    other = chain(call("look"), call("cancel", {"id": "W2"}), call("refund"))
    diff = diff_trajectories(one, other)
    assert kinds(diff.pairs) == ["same", "changed", "same"]
    assert diff.first == 1
    changed = {c.path: (c.left, c.right) for c in diff.pairs[1].changes}
    assert changed[("arguments", "id")] == ("W1", "W2")
    assert changed[("arguments", "why")][0] == "late"


def test_a_missing_and_an_extra_step_are_told_apart() -> None:
    diff = diff_trajectories(chain(call("a"), call("b")), chain(call("b"), call("c")))
    assert [(p.kind, (p.left or p.right or call("")).tool) for p in diff.pairs] == [
        ("only_left", "a"),
        ("same", "b"),
        ("only_right", "c"),
    ]


def test_the_order_of_parallel_steps_is_no_difference() -> None:
    one = chain(call("a"), call("b"), call("c"), beside=[(0, 1)])
    other = chain(call("b"), call("a"), call("c"), beside=[(0, 1)])
    assert diff_trajectories(one, other).equal
    assert not diff_trajectories(chain(call("a"), call("b")), chain(call("b"), call("a"))).equal


def test_another_result_of_the_same_call_is_a_difference() -> None:
    one = chain(call("a", result={"n": 1}, result_state="captured"))
    other = chain(call("a", result={"n": 2}, result_state="captured"))
    (pair,) = diff_trajectories(one, other).pairs
    assert [c.path for c in pair.changes] == [("result", "n")]


def test_what_a_side_did_not_record_is_neither_same_nor_different() -> None:
    hidden = call("a", arguments_state="not_captured")
    (pair,) = diff_trajectories(chain(call("a", {"x": 1})), chain(hidden)).pairs
    assert (pair.kind, pair.undecided) == ("undecided", ("arguments",))
    assert not diff_trajectories(chain(hidden), chain(hidden)).equal


def test_messages_are_compared_on_request() -> None:
    said = [Step(0, "message", "user", role="user", text=t, text_state="captured") for t in ("yes", "no")]
    assert diff_trajectories(chain(said[0]), chain(said[1])).equal
    (pair,) = diff_trajectories(chain(said[0]), chain(said[1]), messages=True).pairs
    assert [(c.path, c.left, c.right) for c in pair.changes] == [(("text",), "yes", "no")]


CALLS = st.lists(
    st.builds(call, st.sampled_from("abc"), st.fixed_dictionaries({"x": st.integers(0, 1)})), max_size=8
).map(lambda calls: chain(*calls))


@given(CALLS, CALLS)
def test_every_step_of_both_sides_stands_in_the_alignment_once_and_in_order(one: Trajectory, other: Trajectory) -> None:
    pairs = diff_trajectories(one, other).pairs
    assert [p.left for p in pairs if p.left] == list(one.steps)
    assert [p.right for p in pairs if p.right] == list(other.steps)
    assert all(p.left.tool == p.right.tool for p in pairs if p.left and p.right)


@given(CALLS, CALLS)
def test_no_difference_means_the_same_calls(one: Trajectory, other: Trajectory) -> None:
    same = [(s.tool, s.arguments) for s in one.steps] == [(s.tool, s.arguments) for s in other.steps]
    assert diff_trajectories(one, other).equal == same


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=6,
)


@given(VALUES, VALUES)
def test_fields_differ_exactly_where_values_do(one: Any, other: Any) -> None:
    from tracegrade.model.values import json_equal

    assert (not list(changed_fields(one, other))) == json_equal(one, other)
    assert [(c.path, c.left, c.right) for c in changed_fields(one, one)] == []

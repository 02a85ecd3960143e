"""`show` as text: what ran side by side stands in one bracket."""

from __future__ import annotations

import re

from tests.report.samples import SECOND, START, call, message, show_report
from tracegrade.model.report import ShowReport
from tracegrade.model.trajectory import Trajectory
from tracegrade.report import build, steps_text
from tracegrade.trajectory.order import Interval, Order, placements_from_mapping


def shown(trajectory: Trajectory, **more: bool) -> str:
    return steps_text.render(ShowReport(trajectories=(build.shown_trajectory(trajectory),)), **more)


def sign_of(made: str, seq: int) -> str:
    found = re.search(rf"^.{{9}}(.) #{seq} ", made, re.MULTILINE)
    assert found is not None
    return found.group(1)


def test_steps_that_overlap_stand_in_one_bracket_and_others_do_not() -> None:
    made = steps_text.render(show_report())
    assert [sign_of(made, seq) for seq in range(8)] == [" ", " ", "┌", "└", " ", "┌", "└", " "]
    assert "steps that overlap" in made


def test_steps_of_unknown_order_have_another_bracket() -> None:
    steps = (call(0, "a", 0, 1), call(1, "b", 0, 1), call(2, "c", 2, 3))
    made = shown(Trajectory("t", ("t",), steps, Order.from_pairs(3, [(0, 2), (1, 2)]), start_ns=START))
    assert [sign_of(made, seq) for seq in range(3)] == ["╭", "╰", " "]
    assert "order the spans do not show" in made


def test_three_at_once_have_a_middle() -> None:
    spans = [(0, 5), (1, 2), (3, 4), (6, 7)]
    steps = tuple(call(n, "t", a, b) for n, (a, b) in enumerate(spans))
    order = Order(placements_from_mapping([{"h": Interval(a * SECOND, b * SECOND)} for a, b in spans]))
    made = shown(Trajectory("t", ("t",), steps, order, start_ns=START))
    assert [sign_of(made, seq) for seq in range(4)] == ["┌", "│", "└", " "]


def test_a_status_stands_with_its_evidence_and_a_turn_once() -> None:
    made = steps_text.render(show_report())
    assert '→ error  {"ok": true}  [span status UNSET, no evidence of failure]' in made
    assert "not known whether it was executed; status not shown  Ann" in made
    assert len(re.findall("turn 1 ", made)) == 1


def test_sources_are_told_on_request_only() -> None:
    source = "arguments from span attribute gen_ai.tool.call.arguments"
    assert source not in steps_text.render(show_report())
    assert source in steps_text.render(show_report(), sources=True)


def test_a_long_value_is_cut_and_says_so() -> None:
    steps = (call(0, "t", 0, 1, arguments={"x": "y" * 5000}, result="z" * 5000), message(1, "user", "w" * 5000, 2))
    made = shown(Trajectory("t", ("t",), steps, Order.from_pairs(2, [(0, 1)]), start_ns=START))
    assert max(map(len, made.splitlines())) < 400
    assert len(re.findall(r"… \(\+4,8\d\d characters\)", made)) == 3


def test_a_prior_step_says_that_it_is_one() -> None:
    steps = (call(0, "t", 0, 1, prior=True),)
    made = shown(Trajectory("t", ("t",), steps, Order.from_pairs(1, []), start_ns=START))
    assert "prior" in made


def test_nothing_to_show_is_said() -> None:
    assert steps_text.render(ShowReport()) == "No trajectory.\n"

"""Reports that do not fit into memory: the same sequence, wherever its parts lie."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tracegrade.app.spooled import Spooled
from tracegrade.model.report import CheckReport, InvariantReport, TrajectoryReport
from tracegrade.model.verdict import Finding, StepRef
from tracegrade.report.highlights import highlights
from tracegrade.report.json import render
from tracegrade.report.rollup import check_summary


def report(number: int) -> TrajectoryReport:
    step = StepRef(seq=number, kind="tool_call", name="refund", arguments={"n": number})
    finding = Finding("r", "error", f"step {number} is wrong", steps=(step,), context={"step": number})
    rule = InvariantReport("r", "fail" if number % 3 else "unknown", findings=(finding,), missing=("order",))
    return TrajectoryReport(
        trajectory_id=f"{number:032x}", trace_ids=(f"{number:032x}",), invariants=(rule,), start_ns=1_000 + number
    )


@pytest.mark.parametrize("held", [0, 1, 100])
def test_it_is_the_sorted_list_of_what_was_put_in(held: int) -> None:
    made = [report(n) for n in range(2_000)]
    spooled = Spooled(held)
    shuffled = random.Random(held).sample(made, len(made))
    for one in shuffled[:1_500]:
        spooled.append(one)
    assert len(list(spooled)) == 1_500  # reading between writes disturbs neither
    for one in shuffled[1_500:]:
        spooled.append(one)
    assert list(spooled) == made
    assert len(spooled) == 2_000
    assert (spooled[0], spooled[-1], list(spooled[7:9])) == (made[0], made[-1], made[7:9])
    with pytest.raises(IndexError):
        spooled[2_000]


def test_a_change_holds_for_every_reading() -> None:
    spooled = Spooled(0)
    for n in range(600):
        spooled.append(report(n))
    spooled.change(lambda r: replace(r, verdict="fail"))
    assert {r.verdict for r in spooled} == {"fail"}
    assert spooled[599].verdict == "fail"


def test_a_run_says_the_same_of_reports_in_a_file() -> None:
    made = [report(n) for n in range(1_200)]
    spooled = Spooled(0)
    for one in made:
        spooled.append(one)
    told = []
    for reports in (made, spooled):
        summary, coverage = check_summary(reports)
        whole = CheckReport(trajectories=reports, summary=summary, coverage=coverage)
        told.append((render(whole), whole.model_dump(mode="json"), [str(h) for h in highlights(whole)]))
    assert told[0] == told[1]

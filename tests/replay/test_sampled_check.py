"""A check of sampled traffic says that its rates are not weighted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.trajectory.spans import agent, tool
from tracegrade.app.check import CheckOptions, grade_store
from tracegrade.app.load import load_spans
from tracegrade.checks.load import load_packs, rules_of
from tracegrade.store import Store


@pytest.mark.parametrize(
    ("state", "said"), [("ot=th:8", True), ("v=1,ot=rv:ab;th:c", True), ("ot=th:0", False), ("", False)]
)
def test_rates_over_sampled_traces_say_that_they_are_unweighted(state: str, said: bool) -> None:
    spans = [agent(1, 0, 100), tool(2, "look", 10, 20, call_id="c", arguments={}, result={})]
    with Store.open(None) as store:
        load_spans(store, [replace(s, trace_state=state) for s in spans])
        report = grade_store(store, CheckOptions(), rules_of(load_packs(("core",))), ("core",), None, None, None, None)
    found = [w for w in report.warnings if w.code == "unweighted"]
    assert bool(found) is said
    if said:
        assert found[0].message.startswith("1 sampled trace stands for others")

"""A confidence sequence holds at every look, and finds a real drop early."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tracegrade.model.scored import ScoredTrial
from tracegrade.score.gate import GatePolicy, gate
from tracegrade.score.gate_sides import GateSide
from tracegrade.score.paired import differences
from tracegrade.score.sequential import Stream, confidence_sequence


def test_it_holds_at_all_looks_at_once_where_a_fixed_interval_does_not() -> None:
    rng = np.random.default_rng(0)
    ours = fixed = 0
    for i in range(300):
        p = rng.beta(0.8, 0.6, 200)
        gaps = rng.binomial(1, p) - rng.binomial(1, p)
        low, high = confidence_sequence((gaps + 1) / 2, 0.05)
        ours += bool(np.any(low > 0.5) or np.any(high < 0.5))
        if i < 60:
            looks = [
                differences(gaps[:n], np.ones(n), rates=True, binary=True, resamples=500).at(0.05)
                for n in range(20, 201, 10)
            ]
            fixed += any(look.low > 0 or look.high < 0 for look in looks)
    assert ours / 300 <= 0.05
    assert fixed / 60 > 0.05, "looking again and again at an ordinary interval errs more often than it says"


def test_intervals_only_shrink_and_hold_the_mean_in_the_end() -> None:
    rng = np.random.default_rng(1)
    x = rng.beta(2, 1, 4_000)
    low, high = confidence_sequence(x, 0.05)
    assert np.all(np.diff(low) >= 0)
    assert np.all(np.diff(high) <= 0)
    assert low[-1] < 2 / 3 < high[-1]
    assert high[-1] - low[-1] < 0.06


def test_interval_and_p_agree() -> None:
    rng = np.random.default_rng(2)
    for drop in (0.0, 0.1, 0.3):
        gaps = (rng.random(300) < 0.6 - drop).astype(float) - (rng.random(300) < 0.6)
        for alpha in (0.01, 0.05):
            found = Stream(gaps).at(alpha)
            assert (found.low > 0 or found.high < 0) == (found.p_value <= alpha * (1 + 1e-9))
            assert found.low <= found.value <= found.high


@pytest.mark.parametrize("lost", [0, 150])
def test_the_gate_may_be_asked_after_every_batch(lost: int) -> None:
    policy = GatePolicy(sequential=True, resamples=500)
    before = tuple(ScoredTrial(f"t{i}", "0", passed=True, trace_ids=(f"a{i}",)) for i in range(300))
    luck = np.random.default_rng(0).permutation(300)
    after = tuple(ScoredTrial(f"t{i}", "0", passed=bool(luck[i] >= lost), trace_ids=(f"b{i}",)) for i in range(300))
    verdicts = [gate(GateSide("a", before), GateSide("b", after[:n]), policy).verdict for n in (8, 60, 120, 300)]
    assert verdicts[0] == "inconclusive"
    assert verdicts[-1] == ("fail" if lost else "pass")
    report = gate(GateSide("a", before), GateSide("b", after), policy)
    assert report.design == "sequential"
    assert "every look" in report.metrics[0].difference.method
    assert not math.isnan(report.metrics[0].p_value or 0.0)

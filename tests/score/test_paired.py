"""Paired and unpaired differences: exact tests by others, duality of interval and p, false alarms, power."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import confint_proportions_2indep

from benchmarks.gate_errors import false_alarms, power
from tracegrade.score.multiple import benjamini_hochberg_levels, holm_levels
from tracegrade.score.paired import (
    differences,
    few_changes,
    least_changes,
    mcnemar_exact,
    mcnemar_interval,
    sign_flip,
    subset_ratios,
)
from tracegrade.score.unpaired import Groups, newcombe, permutation_p


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_agrees_with_statsmodels(lost: int, gained: int) -> None:
    want = mcnemar([[5, lost], [gained, 5]], exact=True).pvalue
    assert mcnemar_exact(lost, gained) == pytest.approx(want, abs=1e-12)


@given(st.integers(0, 40), st.integers(0, 40), st.sampled_from([0.01, 0.05, 0.2]))
def test_mcnemar_interval_excludes_zero_exactly_when_the_test_rejects(lost: int, gained: int, alpha: float) -> None:
    low, high = mcnemar_interval(lost, gained, 100, alpha)
    assert (low > 0 or high < 0) == (mcnemar_exact(lost, gained) <= alpha)


@settings(max_examples=60)
@given(st.lists(st.integers(-4, 4), min_size=2, max_size=8), st.sampled_from([0.05, 0.25]))
def test_sign_flip_agrees_with_enumeration_and_scipy(values: list[int], alpha: float) -> None:
    top = np.array(values, dtype=float) / 4
    ratios, patterns = subset_ratios(top, np.ones(top.size), 0)
    p, low, high = sign_flip(ratios, patterns, alpha)
    flips = [float(np.dot(signs, top)) for signs in product((1, -1), repeat=top.size)]
    less, more = (np.mean([f <= top.sum() + 1e-12 for f in flips]), np.mean([f >= top.sum() - 1e-12 for f in flips]))
    assert p == pytest.approx(min(1.0, 2 * min(less, more)), abs=1e-12)
    for delta in (low, high):
        if math.isfinite(delta):
            assert p_of(top - delta) > alpha - 1e-12, "the ends are not rejected"
    if math.isfinite(high):
        assert p_of(top - high - 1e-6) <= alpha + 1e-12 or p_of(top - high - 1e-6) < p_of(top - high)
    scipy_p = stats.permutation_test((top,), lambda x: x.sum(), permutation_type="samples", n_resamples=np.inf).pvalue
    assert p == pytest.approx(min(1.0, scipy_p), abs=1e-9)


def p_of(top: np.ndarray) -> float:
    flips = [float(np.dot(signs, top)) for signs in product((1, -1), repeat=top.size)]
    less = np.mean([f <= top.sum() + 1e-9 for f in flips])
    more = np.mean([f >= top.sum() - 1e-9 for f in flips])
    return float(min(1.0, 2 * min(less, more)))


def test_the_drawn_sign_flip_agrees_with_the_enumerated_one() -> None:
    rng = np.random.default_rng(0)
    top, weight = rng.normal(0.1, 0.4, 14), rng.integers(1, 9, 14).astype(float)
    exact = sign_flip(*subset_ratios(top, weight, 0), 0.05)
    import tracegrade.score.paired as module

    limit = module.EXACT_UP_TO
    module.EXACT_UP_TO = 5
    try:
        drawn = sign_flip(*subset_ratios(top, weight, 0), 0.05)
    finally:
        module.EXACT_UP_TO = limit
    assert drawn == pytest.approx(exact, abs=0.02)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.0, 0.5, 1.0]), min_size=2, max_size=40),
    st.booleans(),
    st.sampled_from([0.01, 0.05]),
    st.integers(0, 2),
)
def test_interval_and_p_never_contradict(values: list[float], binary: bool, alpha: float, seed: int) -> None:
    top = np.round(values) if binary else np.array(values)
    found = differences(top, np.ones(top.size), rates=True, binary=binary, resamples=500, seed=seed).at(alpha)
    assert found.low <= found.value <= found.high
    assert (found.low > 0 or found.high < 0) == (found.p_value <= alpha)
    assert found.low < found.high


def test_the_reproduced_trap_of_five_lost_of_fifty() -> None:
    """A bootstrap alone excludes 0 where the exact p-value is 0.0625."""
    top = np.array([-1.0] * 5 + [0.0] * 45)
    prepared = differences(top, np.ones(50), rates=True, binary=True)
    assert np.quantile(prepared.draws, 0.975) < 0
    found = prepared.at(0.05)
    assert found.p_value == 0.0625
    assert found.high > 0


def test_no_change_at_all_has_the_stated_width() -> None:
    for units in (10, 50, 500):
        width = 1 - 0.025 ** (1 / units)
        found = differences(np.zeros(units), np.ones(units), rates=True, binary=True).at(0.05)
        assert (found.low, found.high) == pytest.approx((-width, width))
        assert few_changes(0, 0, units, 0.05) == pytest.approx((-width, width))
    assert least_changes(0.05) == 6
    assert mcnemar_exact(0, 6) <= 0.05 < mcnemar_exact(0, 5)


@pytest.mark.parametrize(("tasks", "trials", "clustered"), [(10, 1, False), (50, 4, False), (48, 2, True)])
def test_false_alarms_stay_below_their_level(tasks: int, trials: int, clustered: bool) -> None:
    """At most 2.5 % each way; the bound leaves three standard errors of the simulation."""
    assert max(false_alarms(tasks, trials, clustered, 150, 1)) <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / 150)


@pytest.mark.slow
@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("trials", [1, 2, 4, 8])
@pytest.mark.parametrize("tasks", [10, 30, 100, 500])
def test_false_alarms_over_the_whole_range(tasks: int, trials: int, clustered: bool) -> None:
    assert max(false_alarms(tasks, trials, clustered, 500, 2)) <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / 500)


def test_power_is_close_to_scipys_permutation_test_on_several_trials() -> None:
    ours, exact = power(60, 4, 0.12, 60, 5)
    assert exact > 0.4
    assert abs(ours - exact) <= 0.1


def test_power_is_that_of_the_exact_test() -> None:
    """On the same data McNemar's test and ours establish the same drops, save where the bootstrap is wider."""
    rng = np.random.default_rng(3)
    ours = exact = 0
    for i in range(200):
        p = rng.beta(2, 1, 100)
        before, after = rng.random(100) < p, rng.random(100) < p * 0.75
        top = after.astype(float) - before
        found = differences(top, np.ones(100), rates=True, binary=True, resamples=1_000, seed=i).at(0.05)
        lost, gained = int((top < 0).sum()), int((top > 0).sum())
        rejects = mcnemar([[0, lost], [gained, 0]], exact=True).pvalue <= 0.05 and lost > gained
        exact += rejects
        ours += found.high < 0
        assert not (found.high < 0 and not rejects)
    assert exact > 60
    assert ours >= 0.95 * exact


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=12))
def test_multiple_tests_agree_with_statsmodels(p_values: list[float]) -> None:
    for ours, method in ((holm_levels, "holm"), (benjamini_hochberg_levels, "fdr_bh")):
        levels, adjusted = ours(p_values, 0.05)
        rejected, want, _, _ = multipletests(p_values, 0.05, method)
        assert adjusted == pytest.approx(list(want), abs=1e-12)
        decided = [p <= level for p, level in zip(p_values, levels, strict=True)]
        assert decided == list(rejected), "an interval at this level agrees with the decision"


def test_newcombe_agrees_with_statsmodels() -> None:
    low, high = confint_proportions_2indep(56, 70, 48, 80, method="newcomb")
    assert newcombe(48 / 80, 80, 56 / 70, 70, 0.05) == pytest.approx((low, high), abs=1e-9)


def test_permutation_test_is_fishers_with_one_trial_a_unit() -> None:
    c, side = np.array([1] * 18 + [0] * 2 + [1] * 9 + [0] * 11), np.array([0] * 20 + [1] * 20)
    table = [[18, 2], [9, 11]]
    tail = stats.fisher_exact(table, alternative="greater").pvalue
    assert permutation_p(c, np.ones(40), side, 0) == pytest.approx(2 * tail, abs=0.003)


def test_unpaired_false_alarms_and_power() -> None:
    rng = np.random.default_rng(5)
    alarms = seen = 0
    for i in range(100):
        n0, n1 = rng.integers(1, 6, 40).astype(float), rng.integers(1, 6, 50).astype(float)
        p0, p1 = rng.beta(4, 1, 40), rng.beta(4, 1, 50)
        for worse, into in ((1.0, 0), (0.5, 1)):
            found = Groups(n0, rng.binomial(n0.astype(int), p0), n1, rng.binomial(n1.astype(int), p1 * worse), 500, i)
            result = found.at(0.05)
            assert (result.low > 0 or result.high < 0) == (result.p_value <= 0.05)
            alarms += into == 0 and result.high < 0
            seen += into == 1 and result.high < 0
    assert alarms / 100 <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / 100)
    assert seen / 100 > 0.9

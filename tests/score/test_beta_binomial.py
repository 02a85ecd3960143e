"""The beta-binomial fit against scipy, its boundaries, its interval, and the posterior."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from tracegrade.score import beta_binomial as bb
from tracegrade.score.posterior import curve_posterior

tasks = st.integers(2, 6).flatmap(
    lambda n: st.lists(st.tuples(st.integers(1, n), st.floats(0, 1)), min_size=3, max_size=25).map(
        lambda rows: [(trials, round(share * trials)) for trials, share in rows]
    )
)


def best_by_scipy(n: np.ndarray, c: np.ndarray) -> float:
    """The largest log-likelihood that a general optimiser finds from many starts."""

    def loss(x: np.ndarray) -> float:
        return -float(stats.betabinom.logpmf(c, n, np.exp(x[0]), np.exp(x[1])).sum())

    starts = [(-1.0, -1.0), (1.0, 1.5), (4.0, 4.0)]
    return max(-optimize.minimize(loss, start, method="L-BFGS-B", bounds=[(-14, 14)] * 2).fun for start in starts)


@settings(max_examples=25, deadline=None)
@given(tasks)
def test_likelihood_is_never_below_what_a_general_optimiser_finds(rows: list[tuple[int, int]]) -> None:
    n, c = np.array(rows).T
    fitted = bb.fit(n, c)
    assert fitted.log_likelihood is not None
    assert fitted.log_likelihood >= best_by_scipy(n, c) - 1e-5
    if fitted.a is not None and fitted.b is not None:
        again = stats.betabinom.logpmf(c, n, fitted.a, fitted.b).sum()
        assert fitted.log_likelihood == pytest.approx(again, abs=1e-7)
        assert bb.log_likelihood(n, c, fitted.a, fitted.b) == pytest.approx(again, abs=1e-7)


@pytest.mark.parametrize(
    ("n", "c", "name", "mean"),
    [
        ([4, 4], [0, 0], "no_successes", 0.0),
        ([4, 2], [4, 2], "no_failures", 1.0),
        ([1, 1, 1], [0, 1, 1], "one_trial_each", 2 / 3),
        ([4, 4, 2], [0, 4, 2], "all_or_nothing", 2 / 3),
        ([4, 4, 4, 4], [2, 2, 2, 2], "no_overdispersion", 0.5),
        ([1, 1], [0, 0], "no_successes", 0.0),
    ],
)
def test_boundaries_are_named_and_not_printed_as_numbers(n: list[int], c: list[int], name: str, mean: float) -> None:
    fitted = bb.fit(n, c)
    assert (fitted.boundary, fitted.a, fitted.b) == (name, None, None)
    assert fitted.mean == pytest.approx(mean)


def test_curves_at_boundaries() -> None:
    assert bb.curve(bb.fit([4] * 4, [2] * 4), 3) == pytest.approx((0.125, 0.875))
    assert bb.curve(bb.fit([4, 4], [0, 4]), 9) == (0.5, 0.5)
    assert bb.curve(bb.fit([1, 1], [0, 1]), 2) == (None, None)
    assert bb.curve(bb.fit([1, 1], [0, 1]), 1) == (0.5, 0.5)
    assert bb.curve(bb.fit([0], [0]), 1) == (None, None)


def test_moments_outside_are_null() -> None:
    assert bb.moments([4] * 4, [2] * 4).a is None
    assert bb.moments([1, 1], [0, 1]).m1 is None
    good = bb.moments([4] * 4, [0, 1, 3, 4])
    assert good.a is not None
    assert good.s is not None
    assert good.a / good.s == pytest.approx(good.m1)


def test_heterogeneity_test_has_its_level() -> None:
    """With one probability for all tasks the test rejects in at most about 5 % of data sets."""
    rng = np.random.default_rng(0)
    draws = rng.binomial(4, 0.6, size=(600, 60))
    fits = bb.fit_many(np.full(60, 4), draws, np.ones(draws.shape))
    p = np.array([t.p_value if (t := bb.heterogeneity(f)) else 1.0 for f in fits])
    assert 0.01 < np.mean(p <= 0.05) < 0.08
    mixed = bb.heterogeneity(bb.fit([4] * 40, [0, 4] * 20))
    assert mixed is not None
    assert mixed.p_value < 1e-10
    assert bb.heterogeneity(bb.fit([1, 1], [0, 1])) is None


def test_many_fits_equal_single_fits() -> None:
    rng = np.random.default_rng(1)
    n = np.full(30, 5)
    counts = rng.binomial(5, rng.beta(0.7, 0.9, (20, 30)))
    for row, together in zip(counts, bb.fit_many(n, counts, np.ones(counts.shape)), strict=True):
        alone = bb.fit(n, row)
        assert together.boundary == alone.boundary
        if alone.a is not None:
            assert together.a == pytest.approx(alone.a, rel=1e-6)


def test_interval_of_the_extrapolated_curve_covers_the_truth() -> None:
    """Forty tasks of four trials: the interval of pass^16 holds the true value about as often as it says."""
    rng = np.random.default_rng(4)
    truth = float(bb.curve_hat(0.8, 0.6, 16))
    hits = 0
    for _ in range(60):
        c = rng.binomial(4, rng.beta(0.8, 0.6, 40))
        ends = bb.curve_interval(np.full(40, 4), c, [16], draws=120)
        low, high = ends[16][0]
        hits += low <= truth <= high
    assert hits >= 50


def test_posterior_agrees_with_jeffreys_where_trials_do_not_matter() -> None:
    """With one trial a task, pass^1 has the posterior Beta(½ + c, ½ + n − c) whatever the correlation is."""
    low, high = curve_posterior([1] * 20, [1] * 15 + [0] * 5, [1])[1][0]
    want = stats.beta.ppf([0.025, 0.975], 15.5, 5.5)
    assert (low, high) == pytest.approx(tuple(want), abs=2e-3)


def test_posterior_narrows_with_tasks_and_has_width_when_all_pass() -> None:
    few, many = (curve_posterior([4] * j, [4] * j, [4])[4][0] for j in (10, 200))
    assert few[0] < many[0] < 1.0
    assert few[1] == many[1] == 1.0
    weak = curve_posterior([4] * 200, [4] * 200, [4], weight=0.05)[4][0]
    assert weak[0] == pytest.approx(few[0], abs=1e-9)


def test_posterior_agrees_with_direct_integration() -> None:
    """The same posterior by sampling from the prior and weighting."""
    rng = np.random.default_rng(0)
    mean, rho = rng.beta(0.5, 0.5, 400_000), rng.random(400_000)
    size = (1 - rho) / rho
    a, b = np.maximum(mean * size, 1e-12), np.maximum((1 - mean) * size, 1e-12)
    c = np.array([4] * 6 + [3])
    weight = np.exp(sum(bb_log(a, b, 4, x) for x in c))
    values = bb.curve_hat(a, b, 3)
    order = np.argsort(values)
    share = np.cumsum(weight[order]) / weight.sum()
    want = np.interp([0.025, 0.975], share, values[order])
    assert curve_posterior([4] * 7, c, [3])[3][0] == pytest.approx(tuple(want), abs=0.01)


def bb_log(a: np.ndarray, b: np.ndarray, n: int, c: int) -> np.ndarray:
    from scipy.special import betaln

    return betaln(a + c, b + n - c) - betaln(a, b)

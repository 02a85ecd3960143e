"""Intervals against scipy and statsmodels, and their laws."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from tracegrade.score.estimating import Settings, pass_curves
from tracegrade.score.intervals import (
    clopper_pearson,
    cluster_sums,
    clustered_standard_error,
    effective_clusters,
    jeffreys,
    resample,
    t_interval,
    wilson,
)


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.sampled_from([0.8, 0.95]))
def test_proportions_agree_with_statsmodels(xn: tuple[int, int], level: float) -> None:
    x, n = xn
    for ours, method in ((wilson, "wilson"), (clopper_pearson, "beta")):
        low, high = proportion_confint(x, n, alpha=1 - level, method=method)
        assert ours(x, n, level) == pytest.approx((low, high), abs=1e-9)
    if 0 < x < n:
        assert jeffreys(x, n, level) == pytest.approx(proportion_confint(x, n, 1 - level, "jeffreys"), abs=1e-9)
    for function in (wilson, clopper_pearson, jeffreys):
        low, high = function(x, n, level)
        assert 0 <= low <= x / n <= high <= 1
        assert low < high


@pytest.mark.parametrize("seed", range(4))
def test_bca_agrees_with_scipy(seed: int) -> None:
    values = np.random.default_rng(seed).beta(0.5, 0.8, 60)
    totals, sizes, counts = cluster_sums(values[:, None], None)
    ours = resample(totals, sizes, counts=counts, resamples=20_000, seed=1)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=20_000, method="BCa", random_state=1)
    width = theirs.confidence_interval.high - theirs.confidence_interval.low
    assert ours.bca(0) == pytest.approx(tuple(theirs.confidence_interval), abs=0.05 * width)
    assert ours.estimate[0] == pytest.approx(values.mean(), abs=1e-12)


def test_equal_tasks_drawn_as_one_multinomial_are_the_same_bootstrap() -> None:
    """Few distinct values take another path than many: both must have the same distribution."""
    values = np.repeat([0.0, 0.25, 1.0], 40)
    few = resample(*_columns(values), resamples=20_000, seed=3)
    many = resample(values[:, None], np.ones(120), resamples=20_000, seed=3)
    assert few.draws.std() == pytest.approx(many.draws.std(), rel=0.03)
    assert few.bca(0) == pytest.approx(many.bca(0), abs=0.01)
    assert few.acceleration == pytest.approx(many.acceleration, rel=1e-9)


def _columns(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    totals, sizes, counts = cluster_sums(values[:, None], None)
    return np.repeat(totals, counts.astype(int), axis=0), np.repeat(sizes, counts.astype(int))


def test_clustered_error_agrees_with_statsmodels() -> None:
    rng = np.random.default_rng(5)
    clusters = rng.integers(0, 14, 200)
    values = rng.random(200) + rng.normal(0, 0.3, 14)[clusters]
    fit = sm.OLS(values, np.ones(200)).fit(
        cov_type="cluster", cov_kwds={"groups": clusters, "df_correction": False, "use_correction": True}
    )
    # statsmodels multiplies by C/(C−1) · (n−1)/(n−k) with k = 1, which is our factor.
    assert clustered_standard_error(values, clusters) == pytest.approx(float(fit.bse[0]), rel=1e-9)
    low, high = t_interval(0.5, 0.1, 14)
    assert (high - low) / 0.2 == pytest.approx(stats.t.ppf(0.975, 13), rel=1e-12)


def test_one_cluster_has_no_error_and_equal_clusters_count_fully() -> None:
    assert clustered_standard_error([0, 1, 1], ["a", "a", "a"]) is None
    assert effective_clusters(list("aabbcc")) == 3.0
    assert effective_clusters(["a"] * 98 + ["b", "c"]) < 1.1


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=12),
    st.sampled_from(["bca", "percentile"]),
    st.integers(0, 3),
)
def test_interval_contains_its_point_and_never_is_a_point(passes: list[int], method: str, seed: int) -> None:
    n, c = np.full(len(passes), 4), np.array(passes)
    curves = pass_curves(n, c, None, [1, 2, 3, 4], Settings(seed=seed, method=method, resamples=300))  # type: ignore[arg-type]
    for values in (curves.hat, curves.at):
        for value, ends, name in values.values():
            assert value is not None
            assert ends is not None
            assert name
            assert 0 <= ends[0] <= value <= ends[1] <= 1
            assert ends[0] < ends[1]


def test_the_same_seed_gives_the_same_bytes_in_any_order_of_tasks() -> None:
    rng = np.random.default_rng(0)
    n, c = np.full(40, 8), rng.integers(0, 9, 40)
    order = rng.permutation(40)
    one = pass_curves(n, c, None, [1, 4], Settings(seed=7))
    two = pass_curves(n[order], c[order], None, [1, 4], Settings(seed=7))
    assert one == two
    assert one != pass_curves(n, c, None, [1, 4], Settings(seed=8))


def test_clusters_widen_the_interval() -> None:
    rng = np.random.default_rng(2)
    clusters = np.repeat(np.arange(20.0), 10)
    p = np.repeat(rng.beta(0.5, 0.5, 20), 10)
    n = np.full(200, 4)
    c = rng.binomial(4, p)
    alone, together = (pass_curves(n, c, labels, [1], Settings()).hat[1][1] for labels in (None, clusters))
    assert alone is not None
    assert together is not None
    assert together[1] - together[0] > 1.8 * (alone[1] - alone[0])


def test_no_memory_is_needed_for_every_resample_of_100_000_tasks() -> None:
    import tracemalloc

    rng = np.random.default_rng(0)
    n = np.full(100_000, 8)
    c = rng.binomial(n, rng.beta(0.6, 0.9, 100_000))
    tracemalloc.start()
    curves = pass_curves(n, c, None, list(range(1, 9)), Settings())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert curves.hat[8][1] is not None
    assert peak < 200e6

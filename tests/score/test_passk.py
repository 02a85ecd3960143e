"""pass@k and pass^k: brute force, laws."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracegrade.score.beta_binomial import curve_at, curve_hat
from tracegrade.score.passk import mean_over_tasks, pass_at_k, pass_hat_k, plug_in_at_k, plug_in_hat_k

counts = st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))


@given(counts, st.integers(1, 9))
def test_brute_force_over_all_subsets(nc: tuple[int, int], k: int) -> None:
    n, c = nc
    if k > n:
        assert np.isnan(pass_hat_k(n, c, k))
        assert np.isnan(pass_at_k(n, c, k))
        return
    subsets = list(combinations([1] * c + [0] * (n - c), k))
    assert pass_hat_k(n, c, k) == pytest.approx(np.mean([all(s) for s in subsets]), abs=1e-12)
    assert pass_at_k(n, c, k) == pytest.approx(np.mean([any(s) for s in subsets]), abs=1e-12)


@given(st.lists(st.integers(0, 12), min_size=1, max_size=20))
def test_monotone_in_k_on_a_fixed_set_of_tasks(passes: list[int]) -> None:
    hat = [mean_over_tasks(pass_hat_k(12, passes, k))[0] for k in range(1, 13)]
    at = [mean_over_tasks(pass_at_k(12, passes, k))[0] for k in range(1, 13)]
    assert all(x >= y - 1e-12 for x, y in pairwise(hat))  # type: ignore[operator]
    assert all(x <= y + 1e-12 for x, y in pairwise(at))  # type: ignore[operator]
    assert hat[0] == pytest.approx(at[0], abs=1e-12)
    assert hat[0] == pytest.approx(np.mean(np.array(passes) / 12), abs=1e-12)


@given(counts, st.integers(2, 9))
def test_plug_in_is_biased_the_way_it_says(nc: tuple[int, int], k: int) -> None:
    n, c = nc
    if k <= n:
        assert plug_in_hat_k(n, c, k) >= pass_hat_k(n, c, k) - 1e-12
        assert plug_in_at_k(n, c, k) <= pass_at_k(n, c, k) + 1e-12


@given(st.floats(0.05, 50), st.floats(0.05, 50), st.integers(2, 40))
def test_jensen_of_the_fitted_curve(a: float, b: float, k: int) -> None:
    p = a / (a + b)
    assert curve_hat(a, b, k) >= p**k * (1 - 1e-9)
    assert curve_at(a, b, k) <= (1 - (1 - p) ** k) * (1 + 1e-9)
    assert curve_hat(a, b, k) <= curve_hat(a, b, k - 1) * (1 + 1e-9)


@settings(max_examples=30)
@given(st.integers(300, 2000), st.data())
def test_large_k_agrees_with_exact_integers(n: int, data: st.DataObject) -> None:
    from fractions import Fraction
    from math import comb

    c = data.draw(st.integers(0, n))
    k = data.draw(st.integers(257, n))
    exact = float(Fraction(comb(c, k), comb(n, k)))
    assert float(pass_hat_k(n, c, k)) == pytest.approx(exact, rel=1e-8, abs=1e-300)


def test_vectorised_over_tasks_and_null_below_k() -> None:
    values = pass_hat_k(np.array([4, 2, 8]), np.array([4, 2, 8]), 3)
    assert values[0] == values[2] == 1.0
    assert np.isnan(values[1])
    assert mean_over_tasks(values) == (1.0, 2)
    assert mean_over_tasks(pass_hat_k([2, 1], [2, 1], 3)) == (None, 0)


@pytest.mark.parametrize(("n", "c"), [([3], [4]), ([3], [-1]), ([2.5], [1])])
def test_counts_that_cannot_be_are_refused(n: list[float], c: list[float]) -> None:
    with pytest.raises(ValueError, match=r"whole|expected"):
        pass_hat_k(n, c, 1)


def test_k_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="k"):
        pass_hat_k([1], [1], 0)

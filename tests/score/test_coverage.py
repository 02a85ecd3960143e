"""Intervals hold the truth about as often as they say: the slow measurement, and its script at a small size."""

from __future__ import annotations

import pytest

from benchmarks.coverage import measure, rows

LEAST = {
    ("rate, 4 trials", "BCa over tasks"): (0.90, 0.92),
    ("rate, 4 trials", "analytic, t"): (0.92, 0.92),
    ("pass^4, 4 trials", "BCa over tasks"): (0.88, 0.92),
    ("pass^4, 4 trials", "posterior"): (0.90, 0.90),
    ("pass^16 from 4 trials", "fit, parametric bootstrap"): (0.85, 0.90),
    ("rate 0.6, 1 trial", "Wilson"): (0.92, 0.92),
    ("rate 0.6, 1 trial", "Clopper–Pearson"): (0.94, 0.94),
    ("rate 0.95, 1 trial", "Clopper–Pearson"): (0.94, 0.94),
    ("rate, clusters of 5", "BCa over clusters"): (0.5, 0.89),
    ("rate, clusters of 5", "analytic, clustered t"): (0.8, 0.90),
}


def test_the_script_measures_every_row() -> None:
    found = list(measure(20, 0, (10, 30)))
    assert len(found) == len(list(rows()))
    assert all(0 <= x <= 1 for _, _, shares in found for x in shares)


@pytest.mark.slow
def test_coverage() -> None:
    """10 and 100 tasks; the bounds leave three standard errors, and say where an interval is narrow."""
    found = {(what, how): shares for what, how, shares in measure(600, 1, (10, 100))}
    low = {
        key: shares
        for key, shares in found.items()
        if key in LEAST and any(s < b for s, b in zip(shares, LEAST[key], strict=True))
    }
    assert low == {}
    assert found["rate, clusters of 5", "BCa over tasks (wrong here)"][1] < 0.93

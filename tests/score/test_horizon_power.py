"""Time horizons against METR's own numbers; power against exact tests."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tracegrade.app.outcomes import Reading, read_outcomes
from tracegrade.errors import NothingToGrade
from tracegrade.model.scored import ScoredTrial
from tracegrade.score.horizon import HorizonOptions, fit_logistic, horizon, minutes_at
from tracegrade.score.power import Spread, Study


def runs(minutes: dict[str, float], passes: dict[str, list[int]]) -> list[ScoredTrial]:
    return [
        ScoredTrial(task, str(i), passed=bool(x), human_minutes=minutes[task], cluster=task[0])
        for task, row in passes.items()
        for i, x in enumerate(row)
    ]


def test_metr_horizons(shared: Path) -> None:
    folder = shared / "real" / "metr-runs"
    columns = {"trial": "run_id", "passed": "score_binarized", "cluster": "task_family"}
    for name, want in json.loads((folder / "expected.json").read_text()).items():
        rows, _ = read_outcomes(str(folder / "runs.csv.gz"), Reading(columns, {"alias": name}))
        for weights in ("invsqrt", "equal"):
            for penalty, values in (want.get(f"horizon_{weights}") or {}).items():
                options = HorizonOptions(weights, float(penalty), draws=20)  # type: ignore[arg-type]
                found = horizon(rows, options)
                # The reference's optimiser stops at a gradient of 1e-8; far extrapolations carry that on.
                loose = 1e-5 if found.extrapolated.get("p50") else 1e-6
                assert found.coef == pytest.approx(values["coef"], rel=1e-6)
                assert found.intercept == pytest.approx(values["intercept"], rel=1e-6)
                assert found.p50_minutes.value == pytest.approx(values["p50_minutes"], rel=loose)
                assert found.p80_minutes.value == pytest.approx(values["p80_minutes"], rel=loose)
        if want.get("mean_of_runs") == 0:
            assert horizon(rows).reason == "no_successes"
            assert horizon(rows).p50_minutes.value is None
            assert horizon(rows, HorizonOptions(metr=True)).p50_minutes.value == 0.0


def test_logistic_fit_is_a_minimum() -> None:
    rng = np.random.default_rng(0)
    x, share = rng.normal(5, 2, 40), rng.random(40)
    weight = rng.random(40)
    weight /= weight.sum()
    slope, intercept = (float(v[0]) for v in fit_logistic(x, share, weight, 0.05))

    def loss(b: float, a: float) -> float:
        eta = a + b * x
        return float((weight * (np.logaddexp(0, eta) - share * eta)).sum() + 0.025 * b * b)

    here = loss(slope, intercept)
    for db, da in ((1e-4, 0), (-1e-4, 0), (0, 1e-4), (0, -1e-4), (1e-4, -5e-4)):
        assert loss(slope + db, intercept + da) >= here
    assert float(minutes_at(-0.5, 1.0, 0.8)) == pytest.approx(2 ** ((np.log(4) - 1.0) / -0.5))


def test_horizons_that_do_not_exist_are_null_with_the_reason() -> None:
    minutes = {"a1": 1.0, "b1": 60.0, "b2": 600.0}
    none = horizon(runs(minutes, {"a1": [0, 0], "b1": [0], "b2": [0]}))
    every = horizon(runs(minutes, {"a1": [1], "b1": [1], "b2": [1]}))
    rising = horizon(runs(minutes, {"a1": [0, 0], "b1": [1, 0], "b2": [1, 1]}))
    assert [h.reason for h in (none, every, rising)] == ["no_successes", "no_failures", "slope_not_negative"]
    assert all(h.p50_minutes.value is None and h.coef is None for h in (none, every, rising))
    with pytest.raises(NothingToGrade, match="human_minutes"):
        horizon([ScoredTrial("a", "0", passed=True)])


def test_interval_contains_the_horizon_and_extrapolation_is_marked() -> None:
    minutes = {f"{f}{i}": 2.0**i for f in "abc" for i in range(1, 7)}
    passes = {task: [int(m < 12 or (m < 40 and task[0] == "a")), int(m < 6)] for task, m in minutes.items()}
    found = horizon(runs(minutes, passes), HorizonOptions(draws=300))
    estimate = found.p50_minutes
    assert estimate.value is not None
    assert estimate.low is not None
    assert estimate.high is not None
    assert estimate.low <= estimate.value <= estimate.high
    assert found.extrapolated["p50"] is False
    assert (found.n_tasks, found.n_families, found.n_runs) == (18, 3, 36)
    few = horizon(runs({"a": 60.0, "b": 120.0}, {"a": [1, 0, 0, 0], "b": [0, 0, 0, 0]}), HorizonOptions(draws=50))
    assert few.extrapolated["p50"] is True


def test_one_trial_power_is_that_of_the_exact_test() -> None:
    """Against the exact power of McNemar's test, summed over all outcomes of 25 equal tasks."""
    tasks, p, drop = 25, 0.8, 0.3
    q = p - drop
    lost, gained = p * (1 - q), (1 - p) * q
    exact = 0.0
    for m in range(tasks + 1):
        for g in range(m + 1):
            chance = stats.binom.pmf(m, tasks, lost + gained) * stats.binom.pmf(g, m, gained / (lost + gained))
            exact += chance * (m > 0 and stats.binom.cdf(g, m, 0.5) <= 0.025)
    ours = Study(Spread(p), simulations=20_000).power(tasks, 1, drop)
    assert ours == pytest.approx(exact, abs=0.012)


def test_power_rises_with_tasks_trials_and_drop_and_pairing_helps() -> None:
    spread = Spread(0.6, 0.6, 0.4)
    paired, unpaired = (Study(spread, design, simulations=1_500) for design in ("paired", "unpaired"))  # type: ignore[arg-type]
    assert paired.power(200, 4, 0.05) > paired.power(50, 4, 0.05) + 0.1
    assert paired.power(50, 8, 0.1) > paired.power(50, 2, 0.1) + 0.1
    assert paired.power(50, 4, 0.1) > unpaired.power(50, 4, 0.1) + 0.1
    for study in (paired, unpaired):
        assert study.power(80, 4, 0.0) <= 0.04
    smallest = paired.smallest_visible_drop(50, 4)
    assert smallest is not None
    assert paired.power(50, 4, smallest + 0.01) >= 0.78
    needed = paired.tasks_needed(4, smallest)
    assert needed is not None
    assert needed == pytest.approx(50, rel=0.15)
    assert unpaired.trials_needed(20, 0.05) is None, "more trials never replace tasks"
    assert Study(Spread(0.05), simulations=300).smallest_visible_drop(5, 1) is None

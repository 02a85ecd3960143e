"""Crash model and retries against simulation; cost, judges, front and hull against brute force."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import cohens_kappa

from tracegrade.errors import NothingToGrade, RuleFileError
from tracegrade.model.scored import INFRASTRUCTURE, ScoredTrial
from tracegrade.score.cost import weighted_quantiles
from tracegrade.score.crash import rerunning_failures, scored_as_failure, with_reruns
from tracegrade.score.estimating import Settings
from tracegrade.score.frontier import dominators, expected_tries, frontier, pareto_front, upper_hull
from tracegrade.score.judges import judge_agreement, kappa, rogan_gladen
from tracegrade.score.scorecard import Options, score
from tracegrade.score.trials import settle

FAST = Settings(resamples=400)


def trials(results: dict[str, Sequence[int]], **fields: object) -> list[ScoredTrial]:
    return [
        ScoredTrial(task, str(i), passed=bool(x), where=f"t:{i}", **fields)  # type: ignore[arg-type]
        for task, row in results.items()
        for i, x in enumerate(row)
    ]


def test_crash_formulas_against_simulation() -> None:
    rng = np.random.default_rng(0)
    f, size = 0.3, 400_000
    p = rng.beta(0.8, 0.5, size)
    m1, m2 = p.mean(), (p * p).mean()

    def attempt() -> np.ndarray:
        """1 pass, 0 fail, −1 crash."""
        return np.where(rng.random(size) < f, -1, (rng.random(size) < p).astype(int))

    first, second, third = attempt(), attempt(), attempt()
    assert np.mean(first == 1) == pytest.approx(float(scored_as_failure(f, m1)), abs=3e-3)
    crash_rerun = np.where(first == -1, np.where(second == -1, third, second), first)
    assert np.mean(crash_rerun == 1) == pytest.approx(float(with_reruns(f, m1, 2)), abs=3e-3)
    failure_rerun = np.where(first == 1, first, second)
    assert np.mean(failure_rerun == 1) == pytest.approx(float(rerunning_failures(f, m1, m2)), abs=3e-3)


def test_retry_formula_against_simulation() -> None:
    rng = np.random.default_rng(1)
    p = np.concatenate([rng.beta(0.8, 0.5, 200_000), np.zeros(50_000)])
    k = 5
    at = [(1 - (1 - p) ** i).mean() for i in range(1, k + 1)]
    passed = rng.random((k, p.size)) < p
    tries = np.where(passed.any(axis=0), passed.argmax(axis=0) + 1, k)
    assert tries.mean() == pytest.approx(expected_tries(at)[-1], abs=0.01)
    assert expected_tries([0.0, 0.0, 0.0]).tolist() == [1, 2, 3], "a hopeless task costs every try"


points = st.lists(st.tuples(st.integers(1, 8), st.integers(0, 8)), min_size=1, max_size=9)


@settings(max_examples=200)
@given(points)
def test_front_and_hull_against_brute_force(rows: list[tuple[int, int]]) -> None:
    cost, rate = (np.array(x, dtype=float) for x in zip(*rows, strict=True))
    size = len(rows)
    beaten = [
        any(cost[j] <= cost[i] and rate[j] >= rate[i] and rows[i] != rows[j] for j in range(size)) for i in range(size)
    ]
    assert sorted(pareto_front(cost, rate)) == [i for i in range(size) if not beaten[i]]
    assert all(bool(dominators(cost, rate, i)) == beaten[i] for i in range(size))
    corners = upper_hull(cost, rate)
    best = rate.max()
    xs = [0.0 if i < 0 else cost[i] for i in corners]
    ys = [0.0 if i < 0 else rate[i] for i in corners]
    assert xs[0] == ys[0] == 0.0
    assert ys[-1] == best
    # No mixture of two points, the origin included, is above the hull at any cost.
    every = [(0.0, 0.0), *zip(cost, rate, strict=True)]
    for x0, y0 in every:
        for x1, y1 in every:
            for share in (0.0, 0.25, 0.5, 1.0):
                x, y = x0 + share * (x1 - x0), y0 + share * (y1 - y0)
                assert y <= np.interp(x, xs, ys) + 1e-9
    slopes = np.diff(ys) / np.diff(xs)
    assert np.all(np.diff(slopes) < 0), "corners only"
    assert np.all(slopes > 0)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 4)), min_size=1, max_size=12), st.floats(0, 1))
def test_weighted_quantiles_are_those_of_repeated_values(rows: list[tuple[int, int]], level: float) -> None:
    values, weights = (np.array(x) for x in zip(*sorted(rows), strict=True))
    got = weighted_quantiles(values, weights[None, :], level)[0]
    repeated = np.repeat(values, weights)
    assert np.isnan(got) if not repeated.size else got == pytest.approx(np.quantile(repeated, level), abs=1e-9)


def test_missing_or_zero_cost_is_never_free() -> None:
    rows = trials({"a": [1, 0], "b": [1, 1]})
    free = score([replace(r, cost_usd=0.0) for r in rows], Options(settings=FAST)).cost
    assert (free.per_resolved.value, free.usable) == (None, False)
    assert "not the same as free" in (free.per_trial.note or "")
    none = score(rows, Options(settings=FAST)).cost
    assert (none.per_trial.value, none.per_trial.note) == (None, "not recorded")
    some = score([replace(r, cost_usd=2.0 if r.trial == "0" else None) for r in rows], Options(settings=FAST)).cost
    assert not some.usable
    assert some.per_resolved.value == pytest.approx(4 / 3)
    assert "lower bound" in (some.per_resolved.note or "")


def test_cost_counts_every_attempt_and_the_fallback() -> None:
    rows = [
        ScoredTrial("a", "0", 0, end_reason=INFRASTRUCTURE, cost_usd=1.0),
        ScoredTrial("a", "0", 1, passed=True, cost_usd=3.0),
        ScoredTrial("b", "0", 0, passed=False, cost_usd=2.0),
    ]
    cost = score(rows, Options(settings=FAST, fallback_usd=10.0)).cost
    assert cost.per_trial.value == pytest.approx(2.5)
    assert cost.per_resolved.value == pytest.approx(6.0), "all spend, the crashed attempt's too, over successes"
    assert cost.with_fallback is not None
    assert cost.with_fallback.value == pytest.approx((3 + 2 + 10) / 2)


def test_attempts_and_copies() -> None:
    crash = ScoredTrial("a", "0", 0, end_reason=INFRASTRUCTURE, where="f:2")
    fail = ScoredTrial("a", "0", 1, passed=False, where="f:3")
    again = ScoredTrial("a", "0", 2, passed=True, where="f:4")
    done = settle([again, fail, crash, replace(fail, where="f:9")])
    assert done.trials == (fail,), "the first attempt that did not crash counts"
    assert (len(done.attempts), done.copies) == (3, 1)
    assert done.repeated_failures == (("a", "0"),)
    report = score([crash, fail, again], Options(settings=FAST))
    assert (report.crash.n_crashed, report.crash.n_attempts) == (1, 3)
    assert "repeated_failures" in {w.code for w in report.warnings}


def test_unequal_copies_are_all_listed() -> None:
    rows = [ScoredTrial(t, "0", passed=p, where=f"f:{t}{p:d}") for t in "ab" for p in (True, False)]
    with pytest.raises(RuleFileError) as caught:
        settle(rows)
    assert len(caught.value.problems) == 3, "both keys, and what to do"
    assert "f:a1" in str(caught.value)
    assert "at a0" in str(caught.value)
    assert "--filter" in str(caught.value)


def test_unknown_outcomes_are_not_scored_and_bound_the_rate() -> None:
    rows = [*trials({"a": [1, 1], "b": [0, 1]}), ScoredTrial("b", "2", reason="unknown")]
    report = score(rows, Options(settings=FAST))
    assert report.rate.value == pytest.approx(0.75)
    assert report.n_excluded == {"unknown": 1}
    assert report.rate.bounds == {"all_fail": pytest.approx(4 / 6), "all_pass": pytest.approx(5 / 6)}
    assert score(trials({"a": [1], "b": [0]}), Options(settings=FAST)).rate.bounds is None
    with pytest.raises(NothingToGrade):
        score([ScoredTrial("a", "0")])


def test_order_of_rows_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    rows = trials({f"t{i}": rng.integers(0, 2, 4).tolist() for i in range(12)}, cost_usd=0.5)
    shuffled = [rows[i] for i in rng.permutation(len(rows))]
    assert score(rows, Options(settings=FAST)) == score(shuffled, Options(settings=FAST))


def test_copies_and_seeds_are_said() -> None:
    rows = trials({"a": [1, 1, 1], "b": [0, 0, 0]}, fingerprint="x", seed="1")
    codes = {w.code for w in score(rows, Options(settings=FAST)).warnings}
    assert {"copies", "repeated_seeds"} <= codes
    varied = [replace(r, fingerprint=f"{r.task_id}{r.trial}", seed=r.trial) for r in rows]
    assert not {"copies", "repeated_seeds"} & {w.code for w in score(varied, Options(settings=FAST)).warnings}


@given(st.lists(st.integers(1, 40), min_size=4, max_size=4))
def test_kappa_agrees_with_statsmodels(cells: list[int]) -> None:
    tp, tn, fp, fn = cells
    want = cohens_kappa(np.array([[tp, fp], [fn, tn]])).kappa
    assert kappa(tp, tn, fp, fn) == pytest.approx(want, abs=1e-12)


def test_corrected_rate_covers_the_truth_and_is_refused_for_a_coin() -> None:
    rng = np.random.default_rng(3)
    truth, sens, spec = 0.4, 0.9, 0.8
    hits, results = 0, 200
    for _ in range(results):
        human = rng.random(400) < truth
        judge = np.where(human, rng.random(400) < sens, rng.random(400) > spec)
        rows = [
            ScoredTrial(str(i), "0", passed=bool(j), human=bool(h) if i < 150 else None)
            for i, (h, j) in enumerate(zip(human, judge, strict=True))
        ]
        found = judge_agreement(rows, FAST)
        assert found is not None
        low, high = found.corrected_rate.low, found.corrected_rate.high
        assert low is not None
        assert high is not None
        hits += low <= truth <= high
    assert hits / results >= 0.92
    coin = [ScoredTrial(str(i), "0", passed=i % 2 == 0, human=i % 4 < 2) for i in range(80)]
    refused = judge_agreement(coin, FAST)
    assert refused is not None
    assert refused.corrected_rate.value is None
    assert "no better than chance" in (refused.corrected_rate.note or "")
    assert rogan_gladen(0.5, 0.5, 0.5) is None


def test_judge_biases_are_found() -> None:
    rng = np.random.default_rng(1)
    rows = []
    for i in range(300):
        human, long_ = bool(rng.random() < 0.5), bool(rng.random() < 0.5)
        judge = human or (long_ and rng.random() < 0.5)
        rows.append(
            ScoredTrial(
                str(i), "0", passed=human, judge=judge, human=human, length=900.0 if long_ else 100.0,
                position="first" if i % 2 else "second", family="x" if i % 3 else "y", judge_family="x",
            )
        )  # fmt: skip
    found = judge_agreement(rows, FAST)
    assert found is not None
    by_name = {(b.name, b.level): b.difference for b in found.biases}
    length = by_name["length", "> 100"]
    assert length.low is not None
    assert length.low > 0.1
    position = by_name["position", "first"]
    assert position.low is not None
    assert position.high is not None
    assert position.low < 0 < position.high
    assert ("own_family", "same") in by_name


def test_no_human_labels_is_no_judge_section() -> None:
    assert judge_agreement(trials({"a": [1]}), FAST) is None


def test_agents_are_compared_on_shared_tasks_only() -> None:
    one = trials({"a": [1], "b": [0], "c": [1]}, cost_usd=1.0)
    two = trials({"a": [1], "b": [1]}, cost_usd=2.0)
    report = frontier({"one": one, "two": two}, FAST)
    assert report.n_tasks_shared == 2
    assert {a.name: a.rate.value for a in report.agents} == {"one": 0.5, "two": 1.0}
    assert "one 1" in report.warnings[0].message
    assert report.router is not None
    assert (report.router.rate, report.router.cost_usd) == (1.0, 1.5)
    with pytest.raises(NothingToGrade):
        frontier({"one": one, "two": trials({"z": [1]})}, FAST)


def test_retries_need_a_verifier_and_match_the_budget() -> None:
    cheap = trials({"a": [1, 0, 1, 0], "b": [0, 1, 0, 0], "c": [0, 0, 0, 0]}, cost_usd=0.1)
    dear = trials({"a": [1] * 4, "b": [1] * 4, "c": [0, 1, 0, 0]}, cost_usd=1.0)
    assert all(not a.retries for a in frontier({"cheap": cheap, "dear": dear}, FAST).agents)
    report = frontier({"cheap": cheap, "dear": dear}, FAST, verifier=True)
    agent = next(a for a in report.agents if a.name == "cheap")
    rates = [retry.rate for retry in agent.retries]
    assert rates == sorted(rates)
    assert agent.retries[0].expected_tries == 1
    match = agent.matches[0]
    assert match.cost_usd <= match.dearer_cost_usd
    assert match.extrapolated == (match.tries > 4)

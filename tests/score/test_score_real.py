"""Scores of real outcomes against numbers that numpy, scipy, statsmodels and scikit-learn gave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tracegrade.app.outcomes import Reading
from tracegrade.app.score import score_files
from tracegrade.model.score import ScoreReport
from tracegrade.score import beta_binomial
from tracegrade.score.beta_binomial import curve
from tracegrade.score.estimating import Settings
from tracegrade.score.scorecard import Options

FAST = Settings(resamples=400)

TAU = {
    "tau1-airline-gpt4o": {"all": {}},
    "tau1-retail-assert": {"all": {}},
    "tau1-retail-gpt41mini": {"all": {}},
    "tau1-retail-toolcalling": {"all": {}},
}


def expected(shared: Path, folder: str) -> Any:
    return json.loads((shared / "real" / folder / "expected.json").read_text())


def run(shared: Path, folder: str, columns: dict[str, str], filters: dict[str, str], **options: Any) -> ScoreReport:
    path = shared / "real" / folder / "outcomes.csv"
    path = path if path.exists() else path.with_suffix(".csv.gz")
    return score_files([str(path)], Reading(columns, filters), Options(settings=FAST, **options))


def agrees(report: ScoreReport, want: dict[str, Any]) -> None:
    """Counts, every pass value and its plug-in, the standard error, and the fit."""
    assert (report.n_trials, report.n_tasks) == (want["trials"], want["tasks"])
    assert sum(task.c for task in report.tasks) == want["successes"]
    assert report.rate.value == pytest.approx(want.get("mean", want.get("mean_reward")), abs=1e-12)
    for k, values in want["passes"].items():
        assert report.pass_at_k[k].value == pytest.approx(values["pass_at_k"], abs=1e-12)
        assert report.pass_hat_k[k].value == pytest.approx(values["pass_hat_k"], abs=1e-12)
        assert report.pass_hat_k[k].n_tasks == values["tasks"]
        assert report.plug_in is not None
        assert report.plug_in["pass_hat_k"][k].value == pytest.approx(values["plug_in_hat"], abs=1e-12)
    if "se_over_tasks" in want:
        assert report.standard_error.naive == pytest.approx(want["se_over_tasks"], abs=1e-12)
    if "betabinom_mle" in want:
        fits(report, want["betabinom_mle"])
    if "moments" in want:
        moments = report.beta_binomial.moments
        for name in ("a", "b", "s"):
            assert getattr(moments, name) == pytest.approx(want["moments"][name], rel=1e-9)


def fits(report: ScoreReport, want: dict[str, Any]) -> None:
    mle = report.beta_binomial.mle
    # With a and b in the millions the reference's own sum of log-gammas, and so its optimum, is good to few digits.
    loose = want["a"] > 1e5
    assert mle.log_likelihood == pytest.approx(want["loglik"], abs=1e-3 if loose else 1e-6)
    assert mle.mean == pytest.approx(want["mean"], abs=1e-5 if loose else 1e-6)
    if want["boundary"]:
        assert mle.boundary == ("all_or_nothing" if want["a"] < 1 else "no_overdispersion")
        assert (mle.a, mle.b) == (None, None)
    else:
        assert mle.boundary is None
        assert mle.a == pytest.approx(want["a"], rel=1e-5)
        assert mle.b == pytest.approx(want["b"], rel=1e-5)
    for name, curves in (("pass_hat", report.beta_binomial.pass_hat_k), ("pass_at", report.beta_binomial.pass_at_k)):
        for k, value in want[name].items():
            assert curves[k].value == pytest.approx(value, abs=2e-4 if loose else 1e-6)


@pytest.mark.parametrize("folder", sorted(TAU))
def test_tau_bench_runs(shared: Path, folder: str) -> None:
    report = run(shared, folder, {"passed": "official_reward"}, {}, plug_in=True)
    agrees(report, expected(shared, folder)["all"])


def test_tau_bench_airline_published_values(shared: Path) -> None:
    report = run(shared, "tau1-airline-gpt4o", {"passed": "official_reward"}, {})
    assert [round(report.pass_hat_k[k].value or 0, 5) for k in "1234"] == [0.42, 0.27333, 0.22, 0.2]
    mle = report.beta_binomial.mle
    assert (round(mle.a or 0, 5), round(mle.b or 0, 5)) == (0.64181, 0.85752)


def test_crashes_of_a_harness_leave_the_rate_when_named(shared: Path) -> None:
    want = expected(shared, "tau1-retail-assert")["all"]
    columns = {"passed": "official_reward", "crashed": "crashed"}
    report = run(shared, "tau1-retail-assert", columns, {})
    assert report.rate.value == pytest.approx(want["mean_excluding_crashed"], abs=1e-12)
    assert report.crash.rate.value == pytest.approx(want["crash_rate"], abs=1e-12)
    assert report.n_excluded == {"infrastructure_error": want["crashed"]}
    # One trial a task: counting crashes as failures is the recorded mean.
    assert report.crash.scored_as_failure.value == pytest.approx(want["mean"], abs=1e-9)
    assert report.crash.scored_as_failure_by_task == pytest.approx(want["mean"], abs=1e-12)


def test_scripted_agents(shared: Path) -> None:
    for agent, want in expected(shared, "tau1-retail-scripted").items():
        report = run(shared, "tau1-retail-scripted", {"passed": "official_reward"}, {"agent": agent}, plug_in=True)
        agrees(report, want)
        assert report.rate.low is not None
        assert report.rate.high is not None
        assert report.rate.low < report.rate.high, "all-equal results have a width"


@pytest.mark.parametrize("folder", ["tau2-airline", "tau2-airline-2trials", "tau2-multitrial", "tau2-retail40"])
def test_tau2_bench_agents(shared: Path, folder: str) -> None:
    for name, want in expected(shared, folder)["agents"].items():
        columns = {"passed": "official_reward", "cost_usd": "agent_cost"}
        report = run(shared, folder, columns, {"agent": name.split("@")[0]}, plug_in=True)
        agrees(report, want)
        if "cost_per_resolved" in want:
            assert report.cost.usable
            assert report.cost.total == pytest.approx(want["agent_cost_total"], rel=1e-12)
            assert report.cost.per_resolved.value == pytest.approx(want["cost_per_resolved"], rel=1e-9)
        else:
            assert report.cost.per_resolved.value is None, "a cost that was not recorded is not free"


def test_swebench_submissions(shared: Path) -> None:
    columns = {"task_id": "instance_id", "passed": "resolved", "cluster": "repo"}
    for name, want in expected(shared, "swebench-verified-miniswe")["submissions"].items():
        report = run(shared, "swebench-verified-miniswe", columns, {"submission": name}, ks=[1])
        error, cost = report.standard_error, report.cost
        assert report.rate.value == pytest.approx(want["mean"], abs=1e-12)
        assert error.naive == pytest.approx(want["se_naive"], abs=1e-12)
        assert error.clustered == pytest.approx(want["se_clustered"], abs=1e-12)
        assert error.n_clusters == want["clusters"]
        assert error.j_eff == pytest.approx(3.869969, abs=1e-6)
        assert cost.total == pytest.approx(want["cost_total"], rel=1e-12)
        assert cost.per_trial.value == pytest.approx(want["cost_per_task"], rel=1e-9)
        assert cost.per_resolved.value == pytest.approx(want["cost_per_resolved"], rel=1e-9)
        assert cost.per_success_median.value == pytest.approx(want["median_cost_resolved"], rel=1e-12)
        assert cost.per_success_p95.value == pytest.approx(want["p95_cost_resolved_linear"], rel=1e-12)


def test_metr_agents(shared: Path) -> None:
    path = str(shared / "real" / "metr-runs" / "runs.csv.gz")
    columns = {"trial": "run_id", "passed": "score_binarized", "cluster": "task_family"}
    for name, want in expected(shared, "metr-runs").items():
        options = Options(ks=range(1, 9), settings=FAST, plug_in=True)
        report = score_files([path], Reading(columns, {"alias": name}), options)
        assert (report.n_trials, report.n_tasks) == (want["runs"], want["tasks"])
        for k, values in want["passes_over_tasks_with_n_ge_k"].items():
            assert report.pass_hat_k[k].n_tasks == values["tasks"]
            assert report.pass_hat_k[k].value == pytest.approx(values["pass_hat_k"], abs=1e-12)
            assert report.pass_at_k[k].value == pytest.approx(values["pass_at_k"], abs=1e-12)
            assert report.plug_in is not None
            assert report.plug_in["pass_hat_k"][k].value == pytest.approx(values["plug_in_hat"], abs=1e-12)
        error, clustered = report.standard_error, want["se_task_means_by_family"]
        assert report.rate.value == pytest.approx(clustered["mean"], abs=1e-12)
        assert error.naive == pytest.approx(clustered["se_naive"], abs=1e-12)
        assert error.clustered == pytest.approx(clustered["se_clustered"], abs=1e-12)
        assert (error.n_clusters, round(error.j_eff, 9)) == (clustered["clusters"], round(clustered["j_eff"], 9))
        if want.get("betabinom_mle"):
            fits(report, want["betabinom_mle"])
        if want.get("moments_tasks_n_ge_2"):
            for field in ("a", "b", "s"):
                got = getattr(report.beta_binomial.moments, field)
                value = want["moments_tasks_n_ge_2"][field]
                assert got is None if value is None else got == pytest.approx(value, rel=1e-9)


def test_published_curves_respect_jensen(shared: Path) -> None:
    """pass^4 of a leaderboard is at least (pass^1)^4, since tasks differ; our fitted curve obeys the same."""
    lines = (shared / "real" / "tau2-leaderboard" / "published_pass_hat.csv").read_text().splitlines()
    header = lines[0].split(",")
    rows = [dict(zip(header, line.rsplit(",", len(header) - 1), strict=True)) for line in lines[1:]]
    full = [(float(r["pass_1"]) / 100, float(r["pass_4"]) / 100) for r in rows if r["pass_1"] and r["pass_4"]]
    assert len(full) > 20
    assert all(four >= one**4 - 1e-3 for one, four in full)


def test_case_of_lost_trials(shared: Path, tmp_path: Path) -> None:
    case = shared / "cases" / "pass-hat-k-infra-error"
    want = json.loads((case / "expected.json").read_text())["pass_hat_k"]
    rows = [json.loads(line) for line in (case / "outcomes.json").read_text().splitlines()]
    table = tmp_path / "table.csv"
    value = {"pass": "1,", "fail": "0,", "infra_error": ",infrastructure_error"}
    lines = [f"{r['task']},{r['trial']},{value[r['outcome']]}" for r in rows]
    table.write_text("task_id,trial,passed,end_reason\n" + "\n".join(lines) + "\n")
    report = score_files([str(table)], Reading({}, {}), Options(ks=[1, 2, 3, 4], settings=FAST))
    assert report.n_excluded == {"infrastructure_error": want["infra_errors"]}
    for k, overall in want["overall"].items():
        assert report.pass_hat_k[k].value == pytest.approx(overall["value"], abs=1e-9)
        assert report.pass_hat_k[k].n_tasks == overall["tasks_used"]
    assert report.n_tasks == 3
    assert {t.task_id: (t.n, t.c) for t in report.tasks} == {
        name: (task["scored"], task["passed"]) for name, task in want["tasks"].items()
    }


def test_curve_at_a_boundary_is_its_limit() -> None:
    fitted = beta_binomial.fit(np.full(5, 2), [0, 2, 2, 2, 0])
    assert fitted.boundary == "all_or_nothing"
    assert curve(fitted, 32) == (0.6, 0.6)

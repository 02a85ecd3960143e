"""The verdict of the gate: its rules in their order, real pairs, inputs of every kind, reports."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from tracegrade.app.gate import GateQuestion, run_gate
from tracegrade.app.gate_inputs import GradeBy, load_side, side_of_check
from tracegrade.app.outcomes import Reading
from tracegrade.cli.gate import app, parse_metrics
from tracegrade.errors import UsageError
from tracegrade.model.gate import GateMetric, GateReport, gate_schema
from tracegrade.model.scored import INFRASTRUCTURE, ScoredTrial
from tracegrade.report.gate_text import gate_github, gate_junit, gate_markdown, gate_text
from tracegrade.score.gate import GatePolicy, gate
from tracegrade.score.gate_sides import GateSide, InvariantRow

FAST = GatePolicy(resamples=1_000)


def side(results: Sequence[Sequence[int | None]], name: str = "x", **fields: Any) -> GateSide:
    trials = tuple(
        ScoredTrial(
            f"t{i}", str(j), passed=None if x is None else bool(x), cost_usd=fields.get("cost", 1.0),
            tags=("odd",) if i % 2 else ("even",), trace_ids=(f"{name}{i}.{j}",),
        )
        for i, row in enumerate(results)
        for j, x in enumerate(row)
    )  # fmt: skip
    extra = {k: v for k, v in fields.items() if k != "cost"}
    return GateSide(name, trials, trace_ids=frozenset(t for r in trials for t in r.trace_ids), **extra)


def metric(report: GateReport, name: str, tag: str | None = None) -> GateMetric:
    return next(m for m in report.metrics if m.name == name and m.tag == tag)


def test_a_drop_that_is_established_fails_and_a_gain_passes() -> None:
    good, bad = side([[1]] * 40 + [[0]] * 10, "a"), side([[1]] * 25 + [[0]] * 25, "b")
    down, up = gate(good, bad, FAST), gate(bad, good, FAST)
    assert (down.verdict, up.verdict) == ("fail", "pass")
    rate = metric(down, "pass_rate")
    assert rate.difference.value == pytest.approx(-0.3)
    assert rate.p_value is not None
    assert rate.p_value < 0.001
    assert [f.task_id for f in down.tasks.flipped] == [f"t{i}" for i in range(25, 40)]
    assert (len(down.tasks.always_pass), len(down.tasks.never_pass)) == (25, 10)


def test_five_of_fifty_is_inconclusive_and_says_what_would_settle_it() -> None:
    report = gate(side([[1]] * 50, "a"), side([[1]] * 45 + [[0]] * 5, "b"), replace(FAST, by_tag=False))
    assert report.verdict == "inconclusive"
    rate = metric(report, "pass_rate")
    assert rate.p_value == 0.0625
    assert rate.smallest_visible_drop is not None
    assert 0.05 < rate.smallest_visible_drop < 0.3
    assert rate.settled_by_tasks is not None
    assert rate.settled_by_tasks > 50
    assert "smallest visible drop" in report.reasons[0]
    assert "would settle it" in report.reasons[0]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=4), min_size=1, max_size=30), st.integers(0, 5))
def test_a_against_a_never_fails(results: list[list[int]], seed: int) -> None:
    policy = GatePolicy(resamples=500, seed=seed, must_see=0.01, max_drop=0.0, ks=(2,))
    same = gate(side(results), side(results), policy)
    assert same.verdict == "pass"
    assert "same trials" in same.reasons[0]
    copied = gate(side(results, "a"), side(results, "b"), policy)
    assert copied.verdict in ("pass", "inconclusive"), "equal results of other trials are no drop either"


def test_fewer_than_six_tasks_can_never_fail() -> None:
    assert gate(side([[1]] * 5, "a"), side([[0]] * 5, "b"), FAST).verdict == "inconclusive"
    margin = replace(FAST, max_drop=0.04)
    assert gate(side([[1] * 8] * 5, "a"), side([[0] * 8] * 5, "b"), margin).verdict == "inconclusive"
    assert gate(side([[1]] * 6, "a"), side([[0]] * 6, "b"), replace(FAST, by_tag=False)).verdict == "fail"


def test_non_inferiority_margin() -> None:
    before, after = side([[1]] * 280 + [[0]] * 20, "a"), side([[1]] * 277 + [[0]] * 23, "b")
    assert gate(before, after, replace(FAST, max_drop=0.05, by_tag=False)).verdict == "pass"
    assert gate(before, after, replace(FAST, max_drop=0.011, by_tag=False)).verdict == "inconclusive"
    worse = side([[1]] * 200 + [[0]] * 100, "c")
    assert gate(before, worse, replace(FAST, max_drop=0.1, by_tag=False)).verdict == "fail"
    assert gate(before, worse, replace(FAST, max_drop=0.3, by_tag=False)).verdict == "inconclusive"


def test_one_capability_gets_worse_while_the_mean_stays() -> None:
    before = [[1, 1] if i % 2 else [0, 0] for i in range(60)]
    after = [[0, 0] if i % 2 else [1, 1] for i in range(60)]
    report = gate(side(before, "a"), side(after, "b"), FAST)
    assert metric(report, "pass_rate").difference.value == pytest.approx(0.0)
    assert report.verdict == "fail"
    assert "of odd" in report.reasons[0]
    assert gate(side(before, "a"), side(after, "b"), replace(FAST, by_tag=False)).verdict != "fail"


def test_an_inconclusive_tag_does_not_block() -> None:
    rng = np.random.default_rng(0)
    rows = [[int(rng.random() < 0.9)] * 2 for _ in range(400)]
    few = [
        replace(t, tags=("rare",) if t.task_id in ("t0", "t1", "t2") else ("common",)) for t in side(rows, "a").trials
    ]
    other = [replace(t, trace_ids=(f"b{t.task_id}{t.trial}",)) for t in few]
    report = gate(GateSide("a", tuple(few)), GateSide("b", tuple(other)), FAST)
    assert metric(report, "pass_rate", "rare").verdict == "inconclusive"
    assert report.verdict == "pass"


def test_many_gating_metrics_share_the_level() -> None:
    rows = side([[1]] * 40, "a"), side([[1]] * 33 + [[0]] * 7, "b")
    alone = gate(*rows, replace(FAST, by_tag=False))
    assert metric(alone, "pass_rate").alpha == 0.05
    with_tags = gate(*rows, FAST)
    levels = {m.alpha for m in with_tags.metrics if m.gating}
    assert min(levels) == pytest.approx(0.05 / 3)
    for found in with_tags.metrics:
        if found.gating and found.p_value is not None and found.difference.high is not None:
            assert found.p_adjusted is not None
            assert found.p_adjusted >= found.p_value
            assert (found.difference.high < 0) == (found.p_value <= found.alpha and (found.difference.value or 0) < 0)


def test_cost_gates_only_when_named() -> None:
    cheap, dear = side([[1]] * 60, "a", cost=1.0), side([[1]] * 60, "b", cost=1.5)
    assert gate(cheap, dear, replace(FAST, by_tag=False)).verdict == "pass"
    policy = replace(FAST, gating={"pass_rate": None, "cost_per_trial": None}, by_tag=False)
    report = gate(cheap, dear, policy)
    assert report.verdict == "fail"
    assert metric(report, "cost_per_trial").difference.value == pytest.approx(0.5)
    assert gate(cheap, dear, replace(policy, gating={"pass_rate": None, "cost_per_trial": 0.6})).verdict == "pass"
    free = gate(side([[1]] * 60, "a", cost=0.0), dear, policy)
    assert metric(free, "cost_per_trial").verdict is None
    assert "not the same as free" in (metric(free, "cost_per_trial").difference.note or "")


def test_absolute_rules_come_first() -> None:
    rows = tuple(InvariantRow("no-delete", passed=i > 0, task_id=f"t{i}", unit=str(i), safety=True) for i in range(40))
    same = side([[1]] * 40, "a", invariants=rows)
    report = gate(same, same, FAST)
    assert report.verdict == "fail"
    assert "no-delete" in report.reasons[0]
    must = gate(side([[1]] * 40, "a"), side([[0]] + [[1]] * 39, "b"), replace(FAST, must_pass=("t0",)))
    assert (must.verdict, "must-pass task t0" in must.reasons[0]) == ("fail", True)
    gone = gate(side([[1]] * 40, "a"), side([[1]] * 40, "b"), replace(FAST, must_pass=("t99",)))
    assert (gone.verdict, "no scored trial" in gone.reasons[0]) == ("inconclusive", True)


def test_what_cannot_be_compared_is_not() -> None:
    good = side([[1]] * 30, "a")
    other = GateSide("b", tuple(replace(t, task_id=f"z{t.task_id}") for t in good.trials))
    blind = side([[0]] * 30, "b", n_trajectories=30, lacking={"gap calls_not_recorded": 30})
    cases = {
        "no task": gate(good, other, FAST),
        "no scored trial": gate(good, side([[None]] * 30, "b"), FAST),
        "are scored": gate(good, side([[1]] * 20 + [[None]] * 10, "b"), FAST),
        "task files differ": gate(replace_side(good, tasks_sha256="1"), side([[0]] * 30, "b", tasks_sha256="2"), FAST),
        "rules differ: r": gate(replace_side(good, rules={"r": "1"}), side([[0]] * 30, "b", rules={"r": "2"}), FAST),
        "one side only: s": gate(
            replace_side(good, rules={"r": "1"}), side([[0]] * 30, "b", rules={"r": "1", "s": "1"}), FAST
        ),
        "evidence was lost": gate(replace_side(good, n_trajectories=30), blind, FAST),
    }
    for text, report in cases.items():
        assert report.verdict == "not_comparable", text
        assert any(text in reason for reason in report.reasons), (text, report.reasons)
        assert all(m.verdict is None for m in report.metrics), "the quality verdict is withheld"


def replace_side(base: GateSide, **fields: Any) -> GateSide:
    return replace(base, **fields)


def test_a_little_missing_evidence_is_noise() -> None:
    before = side([[1]] * 60, "a", n_trajectories=60)
    after = side([[1]] * 60, "b", n_trajectories=60, lacking={"gap orphan_spans": 2})
    assert gate(before, after, FAST).verdict == "pass"


def test_infrastructure_errors_are_dropped_from_both_and_shown() -> None:
    before = side([[1]] * 40, "a")
    crashed = tuple(
        replace(t, passed=None, end_reason=INFRASTRUCTURE) if t.task_id in ("t1", "t3") else t
        for t in side([[1]] * 40, "b").trials
    )
    report = gate(before, GateSide("b", crashed), replace(FAST, by_tag=False))
    assert metric(report, "pass_rate").difference.value == 0.0
    assert metric(report, "pass_rate").baseline.n_tasks == 38
    assert report.tasks.unscored == ("t1", "t3")
    assert report.candidate.n_excluded == {INFRASTRUCTURE: 2}
    assert report.candidate.n_crashed == 2


def test_seeds_pair_trials() -> None:
    """A trial that crashed on one side is dropped from both only where seeds say which trial it is."""
    rows = [ScoredTrial("t", str(j), passed=j < 3, seed=str(j)) for j in range(4)]
    lost = [replace(r, passed=None, end_reason=INFRASTRUCTURE) if r.trial == "3" else r for r in rows]
    many = [replace(r, task_id=f"t{i}") for i in range(20) for r in rows]
    less = [replace(r, task_id=f"t{i}") for i in range(20) for r in lost]
    policy = replace(FAST, min_coverage=0.5)
    paired = metric(gate(GateSide("a", tuple(many)), GateSide("b", tuple(less)), policy), "pass_rate")
    assert paired.difference.value == 0.0
    unseeded = [replace(r, seed=None) for r in many], [replace(r, seed=None) for r in less]
    apart = metric(
        gate(*(GateSide(n, tuple(rows)) for n, rows in zip("ab", unseeded, strict=True)), policy), "pass_rate"
    )
    assert apart.difference.value == pytest.approx(0.25)


def test_more_than_one_change_of_the_protocol_is_said() -> None:
    a = side([[1]] * 40, "a", protocol={"model": ("m1",), "prompt": ("p1",), "tools": ("x",)})
    b = side([[1]] * 40, "b", protocol={"model": ("m2",), "prompt": ("p2",), "tools": ("x",)})
    report = gate(a, b, FAST)
    assert report.protocol_changes == ("model: m1 → m2", "prompt: p1 → p2")
    assert report.warnings[0].code == "several_changes"


def test_tasks_added_and_removed_are_listed() -> None:
    a, b = side([[1]] * 40, "a"), side([[1]] * 41, "b")
    fewer = GateSide("b", tuple(t for t in b.trials if t.task_id != "t0"))
    report = gate(a, fewer, FAST)
    assert (report.tasks.added, report.tasks.removed, report.tasks.paired) == (("t40",), ("t0",), 39)


def test_clusters_are_what_is_resampled() -> None:
    rng = np.random.default_rng(0)
    lost = np.repeat(rng.random(12) < 0.4, 10)
    before = [ScoredTrial(f"t{i}", "0", passed=True, cluster=f"c{i // 10}") for i in range(120)]
    after = [replace(t, passed=bool(not lost[i])) for i, t in enumerate(before)]
    together = gate(GateSide("a", tuple(before)), GateSide("b", tuple(after)), FAST)
    alone = gate(
        *(GateSide(n, tuple(replace(t, cluster=None) for t in rows)) for n, rows in (("a", before), ("b", after))), FAST
    )
    assert metric(together, "pass_rate").n_units == 12
    wide, narrow = (metric(r, "pass_rate").difference for r in (together, alone))
    assert (wide.high or 0) - (wide.low or 0) > 1.5 * ((narrow.high or 0) - (narrow.low or 0))


def test_unpaired_compares_rules_over_conversations() -> None:
    def production(rate: float, seed: int) -> GateSide:
        rng = np.random.default_rng(seed)
        rows = tuple(
            InvariantRow("verify-first", bool(rng.random() < rate), None, f"{seed}conversation{i // 2}")
            for i in range(200)
        )
        return GateSide(str(seed), (), rows)

    policy = replace(FAST, unpaired=True, gating={"pass_rate": None, "invariant:*": None})
    assert gate(production(0.95, 1), production(0.70, 2), policy).verdict == "fail"
    same = gate(production(0.95, 1), production(0.95, 3), policy)
    assert (same.verdict, same.design) == ("pass", "unpaired")
    assert metric(same, "invariant:verify-first").n_units == 100
    paired = gate(production(0.95, 1), production(0.70, 2), FAST)
    assert paired.verdict == "not_comparable"


def test_swebench_pairs(shared: Path) -> None:
    folder = shared / "real" / "swebench-verified-miniswe"
    table = str(folder / "outcomes.csv.gz")
    wanted = json.loads((folder / "expected.json").read_text())["pairs"]
    for name, want in wanted.items():
        before, after = name.split(" -> ")
        columns = {"task_id": "instance_id", "passed": "resolved"}
        report = run_gate(
            GateQuestion(table, table, columns, None, ({"submission": before}, {"submission": after}), policy=FAST)
        )
        rate = metric(report, "pass_rate")
        assert rate.difference.value == pytest.approx(want["mean"], abs=1e-12)
        assert rate.p_value == pytest.approx(want["mcnemar_exact_p"], abs=1e-12)
        assert sum(f.change < 0 for f in report.tasks.flipped) == want["lost"]
        assert sum(f.change > 0 for f in report.tasks.flipped) == want["gained"]
        assert report.verdict == ("fail" if want["mcnemar_exact_p"] <= 0.05 else "pass"), name
        clustered = run_gate(
            GateQuestion(
                table, table, {**columns, "cluster": "repo"}, None, ({"submission": before}, {"submission": after}),
                policy=FAST,
            )
        )  # fmt: skip
        assert metric(clustered, "pass_rate").n_units == want["clusters"]
        assert metric(clustered, "pass_rate").difference.value == pytest.approx(want["mean"], abs=1e-12)


@pytest.mark.parametrize("folder", ["tau2-airline", "tau2-airline-2trials", "tau2-retail40"])
def test_tau_bench_pairs(shared: Path, folder: str) -> None:
    table = str(shared / "real" / folder / "outcomes.csv")
    wanted = json.loads((shared / "real" / folder / "expected.json").read_text())["paired_first_trial"]
    for name, want in wanted.items():
        before, after = name.split(" (")[0].split(" -> ")
        filters = [{"agent": a, "trial": "0"} for a in (before, after)]
        report = run_gate(
            GateQuestion(table, table, {"passed": "official_reward"}, None, (filters[0], filters[1]), policy=FAST)
        )
        rate = metric(report, "pass_rate")
        assert report.tasks.paired == want["shared_tasks"]
        assert rate.difference.value == pytest.approx(want["mean"], abs=1e-12)
        assert rate.p_value == pytest.approx(want["mcnemar_exact_p"], abs=1e-12)
        lost_for_sure = want["mcnemar_exact_p"] <= 0.05 and want["mean"] < 0
        assert (report.verdict == "fail") == lost_for_sure, name


def test_an_agent_against_itself_with_half_its_trials(shared: Path, tmp_path: Path) -> None:
    lines = (shared / "real" / "tau1-airline-gpt4o" / "outcomes.csv").read_text().splitlines()
    halves = {}
    for name, trials in (("a", "01"), ("b", "23")):
        halves[name] = tmp_path / f"{name}.csv"
        halves[name].write_text("\n".join([lines[0], *(x for x in lines[1:] if x.split(",")[2] in trials)]))
    question = GateQuestion(str(halves["a"]), str(halves["b"]), {"passed": "official_reward"}, policy=FAST)
    report = run_gate(question)
    assert report.verdict in ("pass", "inconclusive")
    assert metric(report, "pass_rate").p_value is not None
    assert (metric(report, "pass_rate").p_value or 0) > 0.05


def check_result(verdicts: Sequence[str], trials: bool = True, **more: Any) -> dict[str, Any]:
    trajectories = [
        {
            "trajectory_id": f"x{i}", "trace_ids": [f"{more.get('name', '')}{i}"], "task_id": f"t{i}", "trial": 0,
            "verdict": v, "tags": [], "gaps": [], "usage": {"cost_usd": 0.1, "input_tokens": 5, "output_tokens": 5},
            "invariants": [
                {"id": "look-first", "verdict": v, "level": "error", "tags": more.get("rule_tags", [])},
                {"id": "measured", "verdict": "pass", "level": "error", "tags": [], "gates": False},
            ],
        }
        for i, v in enumerate(verdicts)
    ]  # fmt: skip
    outcomes = [
        {"task_id": f"t{i}", "trial": 0, "trace_ids": [f"{more.get('name', '')}{i}"], "outcome": {"verdict": v}}
        for i, v in enumerate(verdicts)
    ]
    return {
        "schema": "tracegrade/check/1",
        "trajectories": trajectories,
        "trials": outcomes if trials else [],
        "rules": [{"id": "look-first", "sha256": "1", "level": "error"}],
        "protocol": {"model": [more.get("model", "m")]},
    }


def test_check_results(tmp_path: Path) -> None:
    before, after = tmp_path / "a.json", tmp_path / "b.json"
    before.write_text(json.dumps(check_result(["pass"] * 40, name="a")))
    after.write_text(json.dumps(check_result(["pass"] * 25 + ["fail"] * 15, name="b", model="n")))
    report = run_gate(GateQuestion(str(before), str(after), policy=FAST))
    assert report.verdict == "fail"
    assert report.protocol_changes == ("model: m → n",)
    assert metric(report, "invariant:look-first").difference.value == pytest.approx(-0.375)
    assert not any(m.name == "invariant:measured" for m in report.metrics)
    assert report.tasks.flipped[0].invariants == ("look-first",)
    safety = side_of_check("c", check_result(["pass", "fail"], rule_tags=["safety"]))
    assert [r.safety for r in safety.invariants] == [True, True]
    untold = side_of_check("d", check_result(["pass", "fail", "unknown"], trials=False))
    assert [t.passed for t in untold.trials] == [True, False, None], "without graders the rules' verdict is the result"
    assert (untold.lacking, untold.n_trajectories) == ({"rule look-first cannot be decided": 1}, 3)
    assert run_gate(GateQuestion(str(before), str(before), policy=FAST)).verdict == "pass"


def test_two_filters_of_one_table_are_not_the_same_trials(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("task_id,agent,passed\n" + "".join(f"t{i},{a},{int(a == 'x')}\n" for i in range(20) for a in "xy"))
    sides = [load_side(str(path), Reading({}, {"agent": a}), GradeBy()) for a in "xy"]
    assert sides[0].digest != sides[1].digest
    assert gate(*sides, FAST).verdict == "fail"


def test_spans_are_graded_by_rules(shared: Path, tmp_path: Path) -> None:
    spans = next((shared / "traces" / "openinference-openai-agents").glob("*.jsonl*"))
    report = run_gate(GateQuestion(str(spans), str(spans), policy=replace(FAST, unpaired=True)))
    assert report.design == "unpaired"
    assert report.baseline.input == str(spans)


runner = CliRunner()


def run(*args: object) -> Any:
    return runner.invoke(app, [str(a) for a in args])


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    paths = []
    for name, passes in (("main", 40), ("change", 20)):
        path = tmp_path / f"{name}.csv"
        rows = [f"t{i}<b>,{int(i < passes)},{name}{i},tag|{i % 2}" for i in range(50)]
        path.write_text("task_id,passed,trace_id,tag\n" + "\n".join(rows) + "\n")
        paths.append(path)
    return paths[0], paths[1]


def test_command(tables: tuple[Path, Path], tmp_path: Path) -> None:
    outs = [tmp_path / f"gate{ending}" for ending in (".json", ".md", ".xml", ".txt")]
    options = [x for out in outs for x in ("--out", out)]
    result = run(*tables, "--resamples", 1000, *options)
    assert result.exit_code == 1, result.output
    assert result.stdout.startswith("FAIL")
    assert len(result.stdout.splitlines()) < 45
    document = json.loads(outs[0].read_text())
    jsonschema.validate(document, gate_schema())
    assert document["verdict"] == "fail"
    assert "| metric |" in outs[1].read_text()
    assert "<b>" not in outs[1].read_text()
    suite = ET.fromstring(outs[2].read_text())
    assert int(suite.get("failures") or 0) >= 2
    assert run(tables[1], tables[0], "--resamples", 1000).exit_code == 0
    assert run(tables[0], tables[0]).exit_code == 0
    again = run(*tables, "--resamples", 1000, "--format", "json")
    assert again.stdout == outs[0].read_text()


def test_github_annotations_and_reports_of_every_verdict(tables: tuple[Path, Path]) -> None:
    for verdict, policy in (("fail", FAST), ("not_comparable", replace(FAST, min_coverage=1.0))):
        report = run_gate(GateQuestion(*map(str, tables), policy=policy))
        if verdict == "not_comparable":
            report = gate(side([[1]] * 9, "a"), side([[None]] * 9, "b"), policy)
        assert report.verdict == verdict
        for render in (gate_text, gate_markdown, gate_junit, gate_github):
            assert render(report)
        assert gate_github(report).startswith("::error" if verdict == "fail" else "::warning")


@pytest.mark.parametrize("text", ["speed", "pass_hat_x", "cost_per_trial=high", "pass_rate=4"])
def test_wrong_metrics(text: str) -> None:
    with pytest.raises(UsageError, match="--metric"):
        parse_metrics([text])


def test_metrics() -> None:
    assert parse_metrics(None) == {"pass_rate": None}
    assert parse_metrics(["pass_hat_4=5pp", "invariant:*"]) == {"pass_hat_4": 0.05, "invariant:*": None}


def test_the_demo_of_the_documentation_is_what_the_command_prints(
    repo_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repo_root)
    words = ("fixtures/gate/baseline.csv", "fixtures/gate/candidate.csv")
    result = run(*words)
    assert result.exit_code == 1
    assert f"$ tracegrade gate {' '.join(words)}\n{result.stdout}```" in (repo_root / "docs" / "gate.md").read_text()
    assert "refund" in result.stdout.splitlines()[1]
    assert run(*words, "--no-tags").exit_code == 0, "the mean alone shows nothing"


def test_flipped_tasks_show_where_their_trajectories_part(shared: Path) -> None:
    folder = shared / "real" / "tau2-multitrial"
    spans = str(folder / "traces.jsonl.gz")
    rows = [line.split(",") for line in (folder / "outcomes.csv").read_text().splitlines()[1:]]
    results = {row[0] for row in rows}
    traces = sorted(results)
    before = GateSide("a", tuple(ScoredTrial(f"t{i}", "0", passed=True, trace_ids=(traces[i],)) for i in range(8)))
    after = GateSide("b", tuple(ScoredTrial(f"t{i}", "0", passed=False, trace_ids=(traces[i + 8],)) for i in range(8)))
    from tracegrade.app.divergence import with_divergence
    from tracegrade.app.trajectories import TrajectoryOptions

    options = (TrajectoryOptions(), TrajectoryOptions())
    report = with_divergence(gate(before, after, FAST), (before, after), (spans, spans), options)
    shown = [flip.first_divergence for flip in report.tasks.flipped]
    assert all(text is None or text.startswith("step ") for text in shown)
    assert any(shown)


CONFIG = """
[gate]
must_see = "20pp"
must_pass = ["t0<b>"]

[gate.tiers.few]
tasks = ["t1*", "t0<b>"]
must_pass = []

[gate.tiers.held]
held_out = true
max_looks = 1

[gate.tiers.cheap]
budget_usd = 0.5
"""


def test_tiers_of_the_config(tables: tuple[Path, Path], tmp_path: Path) -> None:
    from tracegrade.app.runs import RunFacts, record

    config, db = tmp_path / "tracegrade.toml", tmp_path / "h.duckdb"
    config.write_text(CONFIG)
    before, after = tables

    def report(*words: object) -> dict[str, Any]:
        result = run(*words, "--config", config, "--resamples", 1000, "--format", "json")
        document: dict[str, Any] = json.loads(result.stdout)
        return document

    assert report(before, after)["must_see"] == 0.2
    assert report(before, after, "--must-see", "5pp")["must_see"] == 0.05
    few = report(before, after, "--tier", "few")
    assert few["tasks"]["paired"] == 12
    after.write_text(after.read_text().replace("t0<b>,1", "t0<b>,0"))
    assert "must-pass" in report(before, after)["reasons"][0]
    assert "must-pass" not in report(before, after, "--tier", "few")["reasons"][0]
    held = report(before, after, "--tier", "held", "--db", db)
    assert "tuning" in held["warnings"][-1]["message"]
    for i in range(2):
        record(str(before), db, Reading({}, {}), RunFacts(f"2026-01-0{i + 1}", f"c{i}", "main", tier="held"))
    assert "has been run 2 times" in report(before, after, "--tier", "held", "--db", db)["warnings"][-1]["message"]
    dear = tmp_path / "dear.csv"
    dear.write_text("task_id,passed,cost_usd\n" + "".join(f"t{i}<b>,1,0.1\n" for i in range(50)))
    assert "budget" in report(before, dear, "--tier", "cheap")["reasons"][0]
    result = run(before, after, "--config", config, "--tier", "fwe")
    assert isinstance(result.exception, UsageError)
    assert "Did you mean `few`" in str(result.exception)


def test_content_that_is_no_longer_captured_withholds_the_verdict(shared: Path) -> None:
    traces = shared / "traces"
    policy = replace(FAST, unpaired=True, gating={"pass_rate": None, "invariant:*": None})
    blind = run_gate(
        GateQuestion(str(traces / "openai-v2-latest"), str(traces / "openai-v2-legacy-nocontent"), policy=policy)
    )
    assert blind.verdict == "not_comparable"
    assert any("cannot be decided" in reason for reason in blind.reasons)
    assert all(m.verdict is None for m in blind.metrics)


def test_another_instrumentation_of_the_same_runs_is_only_said(shared: Path) -> None:
    traces = shared / "traces"
    policy = replace(FAST, unpaired=True, gating={"invariant:*": None})
    other = run_gate(
        GateQuestion(str(traces / "genai-openai-agents"), str(traces / "openinference-openai-agents"), policy=policy)
    )
    assert other.verdict != "fail"
    assert [w.code for w in other.warnings if w.code == "dialect_changed"] == ["dialect_changed"]

"""The history of runs: recording, naming, gating by name, trend, pruning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from typer.testing import CliRunner

from tracegrade.app.gate import GateQuestion, run_gate
from tracegrade.app.outcomes import Reading
from tracegrade.app.runs import RunFacts, from_environment, history, prune, record, resolve, side_of_run, trend
from tracegrade.cli.runs import app
from tracegrade.errors import UsageError
from tracegrade.model.runs import runs_schema
from tracegrade.score.gate import GatePolicy
from tracegrade.score.trend import change_point

NO_MAP = Reading({}, {})


def table(path: Path, passes: int, tasks: int = 60) -> str:
    rows = [f"t{i},{int(i < passes)},0.1,x{i % 3},{path.stem}{i}" for i in range(tasks)]
    path.write_text("task_id,passed,cost_usd,tag,trace_id\n" + "\n".join(rows) + "\n")
    return str(path)


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """Six runs of main, the last two worse, and one of a branch."""
    db = tmp_path / "history.duckdb"
    for i, passes in enumerate((50, 51, 49, 50, 20, 21)):
        facts = RunFacts(f"2026-01-0{i + 1}T00:00:00+00:00", f"c0ffee{i}", "main", ("v1",) if i == 1 else ())
        assert record(table(tmp_path / f"m{i}.csv", passes), db, NO_MAP, facts)[1]
    facts = RunFacts("2026-01-07T00:00:00+00:00", "abcd1234", "change", (), "smoke", "1 USD", 7)
    record(table(tmp_path / "change.csv", 50), db, NO_MAP, facts)
    return db


def test_a_result_is_recorded_once(filled: Path, tmp_path: Path) -> None:
    facts = RunFacts("2026-02-01T00:00:00+00:00", "c0ffee0", "main")
    run, new = record(str(tmp_path / "m0.csv"), filled, NO_MAP, facts)
    assert not new
    assert len(history(filled)) == 7
    assert (run.n_tasks, run.rate, run.cost_per_trial) == (60, pytest.approx(50 / 60), pytest.approx(0.1))


def test_names(filled: Path) -> None:
    runs = history(filled)
    assert resolve("latest", runs).branch == "change"
    assert resolve("main@latest", runs).commit_sha == "c0ffee5"
    assert resolve("v1", runs).commit_sha == "c0ffee1"
    assert resolve("abcd", runs).tier == "smoke"
    assert resolve(runs[0].run_id, runs) == runs[0]
    with pytest.raises(UsageError, match="means 6 recorded runs"):
        resolve("c0ffee", runs)
    with pytest.raises(UsageError, match="Did you mean `v1`"):
        resolve("v11", runs)
    with pytest.raises(UsageError, match="Did you mean `main`"):
        resolve("mian@latest", runs)


def test_a_gate_by_name_is_the_gate_of_the_files(filled: Path, tmp_path: Path) -> None:
    policy = GatePolicy(resamples=1_000)
    named = run_gate(GateQuestion("v1", str(tmp_path / "m4.csv"), policy=policy, history=filled))
    files = run_gate(GateQuestion(str(tmp_path / "m1.csv"), str(tmp_path / "m4.csv"), policy=policy))
    assert named.verdict == files.verdict == "fail"
    assert named.metrics == files.metrics
    assert named.baseline.input.startswith("v1 (")
    same = run_gate(GateQuestion("v1", str(tmp_path / "m1.csv"), policy=policy, history=filled))
    assert same.verdict == "pass"
    assert "same trials" in same.reasons[0]


def test_a_check_result_keeps_rules_protocol_and_evidence(tmp_path: Path) -> None:
    trajectories = [
        {"trajectory_id": f"x{i}", "task_id": f"t{i}", "trial": 0, "trace_ids": [f"{i}"], "verdict": "pass",
         "gaps": [{"code": "orphan_spans"}] if i < 3 else [],
         "invariants": [{"id": "safe", "verdict": "pass" if i else "fail", "level": "error", "tags": ["safety"]}]}
        for i in range(8)
    ]  # fmt: skip
    document = {
        "schema": "tracegrade/check/1",
        "trajectories": trajectories,
        "rules": [{"id": "safe", "sha256": "1"}],
        "protocol": {"model": ["m"], "prompt_sha256": ["p"]},
        "tasks_sha256": "t",
    }
    path, db = tmp_path / "r.json", tmp_path / "h.duckdb"
    path.write_text(json.dumps(document))
    run, _ = record(str(path), db, NO_MAP, RunFacts("2026-01-01T00:00:00+00:00"))
    assert (run.model, run.prompt_sha256, run.tasks_sha256) == ("m", "p", "t")
    side = side_of_run(db, "latest")
    assert side.rules == {"safe": "1"}
    assert (side.n_trajectories, dict(side.lacking)) == (8, {"gap orphan_spans": 3})
    assert [row.safety for row in side.invariants] == [True] * 8
    assert sum(row.passed is False for row in side.invariants) == 1
    assert side.trace_ids == frozenset(map(str, range(8)))


def test_trend_and_its_hint(filled: Path) -> None:
    found = trend(filled, "pass_rate", "main").trend
    assert found is not None
    assert found.change_point is not None
    assert found.change_point.run_id == found.run_ids[4]
    assert found.change_point.before > 0.7 > found.change_point.after
    assert trend(filled, "cost_per_trial").trend is not None
    with pytest.raises(UsageError, match="no trend"):
        trend(filled, "speed")


def test_the_hint_is_silent_on_noise() -> None:
    rng = np.random.default_rng(0)
    alarms = [change_point(0.7 + rng.normal(0, 0.03, 20), np.full(20, 0.03)) is not None for _ in range(400)]
    assert np.mean(alarms) <= 0.02
    assert change_point([0.5, 0.9, 0.1], [0.01] * 3) is None


def test_pruning_keeps_the_newest_and_the_named(filled: Path) -> None:
    removed = prune(filled, 2, "main")
    assert [run.commit_sha for run in removed] == ["c0ffee0", "c0ffee2", "c0ffee3"]
    assert {run.commit_sha for run in history(filled)} == {"c0ffee1", "c0ffee4", "c0ffee5", "abcd1234"}


@pytest.mark.parametrize(
    ("variables", "want"),
    [
        ({}, (None, None)),
        ({"GITHUB_SHA": "a", "GITHUB_HEAD_REF": "topic", "GITHUB_REF_NAME": "1/merge"}, ("a", "topic")),
        ({"CI_COMMIT_SHA": "b", "CI_COMMIT_REF_NAME": "main"}, ("b", "main")),
        ({"GIT_COMMIT": "c"}, ("c", None)),
    ],
)
def test_ci_tells_commit_and_branch(variables: dict[str, str], want: tuple[str | None, str | None]) -> None:
    assert from_environment(variables) == want


def run(*args: object) -> Any:
    return CliRunner().invoke(app, [str(a) for a in args])


def test_commands(filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_SHA", "deadbeef")
    monkeypatch.setenv("GITHUB_REF_NAME", "topic")
    monkeypatch.setenv("GITHUB_HEAD_REF", "")
    added = run("add", table(tmp_path / "n.csv", 33), "--db", filled, "--label", "x\x1b[1m")
    assert (added.exit_code, "deadbeef" in added.stdout, "topic" in added.stdout) == (0, True, True)
    assert "\x1b" not in added.stdout
    listed = run("list", "--db", filled, "--format", "json")
    jsonschema.validate(json.loads(listed.stdout), runs_schema())
    assert len(run("list", "--db", filled).stdout.splitlines()) == 9
    assert "deadbeef" in run("show", "latest", "--db", filled).stdout
    assert run("compare", "v1", "main@latest", "--db", filled).exit_code == 1
    shown = run("trend", "--db", filled, "--branch", "main").stdout
    assert "level seems to have changed" in shown
    assert run("prune", "--db", filled, "--keep", 0).exit_code == 0
    assert len(history(filled)) == 2


def test_another_budget_is_a_change_of_the_protocol(tmp_path: Path) -> None:
    table, database = tmp_path / "t.csv", tmp_path / "h.duckdb"
    table.write_text("task_id,passed\n" + "".join(f"t{i},1\n" for i in range(40)))
    for i, budget in enumerate(("10 turns", "30 turns")):
        record(str(table), database, Reading({}, {}), RunFacts(f"2026-01-0{i + 1}", f"c{i}abc", budget=budget))
    report = run_gate(GateQuestion("c0abc", "c1abc", history=database))
    assert report.protocol_changes == ("budget: 10 turns → 30 turns",)

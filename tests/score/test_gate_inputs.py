"""What a gate is given: spans, check results, databases and recorded runs say the same; lost evidence is told first."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.score.recorded import Recorded, record, without
from tracegrade.app import gate_inputs
from tracegrade.app.audit import AuditOptions, take_profile
from tracegrade.app.check import CheckOptions, run_check
from tracegrade.app.gate import GateQuestion, run_gate
from tracegrade.app.gate_inputs import GradeBy, load_side, may_be_results
from tracegrade.app.lost_telemetry import lost_telemetry
from tracegrade.app.outcomes import Reading
from tracegrade.app.score import score_files
from tracegrade.errors import RuleFileError
from tracegrade.model.audit import AuditProfile
from tracegrade.model.gate import GateReport
from tracegrade.report.json import render
from tracegrade.score.estimating import Settings
from tracegrade.score.gate import GatePolicy
from tracegrade.score.gate_rules import NO_CALLS
from tracegrade.score.gate_sides import GateSide
from tracegrade.score.scorecard import Options

FAST = GatePolicy(resamples=1000)
OPTIONS = Options(settings=Settings(resamples=300))
PLAIN = Reading({}, {})


def checked(files: Recorded, out: Path, db: Path | None = None, rules: list[str] | None = None) -> Path:
    report = run_check(
        CheckOptions(
            (str(files.spans),), rules, str(files.tasks), str(files.trials), db=None if db is None else str(db)
        )
    )
    out.write_text(render(report))
    return out


def by_spans(before: Recorded, after: Recorded, **more: Any) -> GateReport:
    grade = GradeBy(None, str(before.tasks), (str(before.trials), str(after.trials)))
    return run_gate(GateQuestion(str(before.spans), str(after.spans), grade=grade, policy=FAST, **more))


def facts(side: GateSide) -> dict[str, Any]:
    return {
        "trials": sorted((t.task_id, t.trial, t.passed, t.task_sha256, t.fingerprint, t.tokens) for t in side.trials),
        "rows": sorted((r.invariant, r.passed, r.task_id, r.unit, r.safety) for r in side.invariants),
        "rules": dict(side.rules),
        "tasks": side.tasks_sha256,
        "protocol": dict(side.protocol),
        "lacking": dict(side.lacking),
        "n": side.n_trajectories,
        "dialects": side.dialects,
        "traces": side.trace_ids,
    }


def test_a_database_is_the_side_that_its_check_result_is(tmp_path: Path) -> None:
    files = record(tmp_path, "a", [[1, 0], [1, 1], [0, 1]])
    database = tmp_path / "a.duckdb"
    result = checked(files, tmp_path / "a.json", database)
    sides = [load_side(str(path), PLAIN, GradeBy()) for path in (result, database)]
    assert facts(sides[0]) == facts(sides[1])
    assert sides[0].protocol["model"] == ("m1",)
    assert all(t.task_sha256 and t.fingerprint for t in sides[0].trials)
    assert sides[0].rules
    assert sides[0].dialects
    assert (sides[0].telemetry, sides[1].telemetry is None) == (None, False)


def test_other_rules_are_seen_in_databases(tmp_path: Path) -> None:
    paths = []
    for name, most in (("a", 3), ("b", 4)):
        rules = tmp_path / f"{name}.yaml"
        rules.write_text(
            "version: 1\npack: p\ninvariants:\n"
            f"  - {{id: few, kind: count, action: {{tool: find_order}}, max: {most}}}\n"
        )
        paths.append(tmp_path / f"{name}.duckdb")
        checked(record(tmp_path, name, [[1]] * 8), tmp_path / "x.json", paths[-1], [str(rules)])
    report = run_gate(GateQuestion(str(paths[0]), str(paths[1]), policy=FAST))
    assert report.verdict == "not_comparable"
    assert "rules differ: few" in report.reasons[0]


def test_copies_are_found_whatever_the_score_reads(tmp_path: Path) -> None:
    files = record(tmp_path, "a", [[1] * 4] * 3, said=lambda task, _trial: f"task {task}")
    database = tmp_path / "a.duckdb"
    result = checked(files, tmp_path / "a.json", database)
    for paths, db in (([str(result)], None), ([], database)):
        report = score_files(paths, PLAIN, OPTIONS, database=db)
        warning = next(w for w in report.warnings if w.code == "copies")
        assert warning.context == {"equal_pairs": 18, "pairs": 18}
    varied = checked(record(tmp_path, "b", [[1] * 4] * 3), tmp_path / "b.json")
    assert not any(w.code == "copies" for w in score_files([str(varied)], PLAIN, OPTIONS).warnings)


def test_labels_of_people_reach_the_score_from_check_results(tmp_path: Path) -> None:
    grader = {"kind": "recorded", "column": "judged"}
    results = [[1], [0], [1], [1]]
    files = record(tmp_path, "a", results, grader=grader, labels=lambda task, _: {"human": task % 2, "judged": 1})
    database = tmp_path / "a.duckdb"
    result = checked(files, tmp_path / "a.json", database)
    for paths, db in (([str(result)], None), ([], database)):
        judge = score_files(paths, PLAIN, OPTIONS, database=db).judge
        assert judge is not None
        assert (judge.n, judge.both_pass, judge.judge_pass_human_fail, judge.judge_fail_human_pass) == (4, 1, 2, 1)
    unsure = record(tmp_path, "b", results, labels=lambda *_: {"human": "perhaps"})
    with pytest.raises(RuleFileError, match="perhaps"):
        score_files([str(checked(unsure, tmp_path / "b.json"))], PLAIN, OPTIONS)


def test_the_same_agent_again_is_comparable_by_what_its_spans_carry(tmp_path: Path) -> None:
    report = by_spans(record(tmp_path, "a", [[1]] * 40), record(tmp_path, "b", [[1]] * 40))
    assert (report.verdict, report.evidence) == ("pass", "telemetry")


CONTENT = ("gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "gen_ai.output.messages")


@pytest.mark.parametrize("worse", [False, True])
def test_content_that_is_no_longer_captured_is_told_before_any_rate(tmp_path: Path, worse: bool) -> None:
    before = record(tmp_path, "a", [[1, 1]] * 20)
    after = record(tmp_path, "b", [[0, 0] if worse else [1, 1]] * 20, change=without(*CONTENT))
    report = by_spans(before, after)
    assert report.verdict == "not_comparable"
    assert any("arguments" in reason and "evidence was lost" in reason for reason in report.reasons)
    assert all(metric.verdict is None for metric in report.metrics)


def test_stacks_differ_in_what_they_lost_only_where_content_or_calls_are_gone(shared: Path) -> None:
    def carried(stack: str) -> AuditProfile:
        return take_profile(AuditOptions((str(shared / "traces" / stack),)))

    whole = [
        carried(s)
        for s in ("openinference-openai-agents", "openinference-langgraph", "genai-openai-chat", "pydantic-ai-v5")
    ]
    blind, silent = carried("openai-v2-legacy-nocontent"), carried("genai-smolagents")
    for before in whole:
        assert not any(lost_telemetry(before, after) for after in whole), "another instrumentation loses nothing"
        assert {"arguments", "results"} <= lost_telemetry(before, blind).keys()
        assert list(lost_telemetry(before, silent)) == [NO_CALLS]
        assert not lost_telemetry(blind, before), "evidence that came is not lost"


def test_calls_that_are_no_longer_recorded(tmp_path: Path) -> None:
    before = record(tmp_path, "a", [[1]] * 40)
    after = record(
        tmp_path, "b", [[1]] * 40, change=lambda span: None if span["name"].startswith("execute_tool") else span
    )
    assert by_spans(before, after).verdict == "not_comparable"
    results = [checked(files, tmp_path / f"{i}.json") for i, files in enumerate((before, after))]
    report = run_gate(GateQuestion(str(results[0]), str(results[1]), policy=FAST))
    assert (report.verdict, report.evidence) == ("not_comparable", "grading")
    assert any("no tool call is recorded in 40 of 40" in reason for reason in report.reasons)
    back = run_gate(GateQuestion(str(results[1]), str(results[0]), policy=FAST))
    assert back.verdict == "pass", "evidence that came is not lost"


def test_spans_beside_check_results_and_recorded_runs_that_keep_what_spans_carried(tmp_path: Path) -> None:
    from tracegrade.app.runs import RunFacts
    from tracegrade.app.runs import record as keep

    before = record(tmp_path, "a", [[1, 1]] * 20)
    after = record(tmp_path, "b", [[1, 1]] * 20, change=without(*CONTENT))
    results = [checked(files, tmp_path / f"{i}.json") for i, files in enumerate((before, after))]
    question = GateQuestion(str(results[0]), str(results[1]), policy=FAST)
    assert run_gate(question).evidence == "grading"
    report = run_gate(replace(question, spans=(str(before.spans), str(after.spans))))
    assert (report.verdict, report.evidence) == ("not_comparable", "telemetry")
    database, history = tmp_path / "a.duckdb", tmp_path / "history.duckdb"
    checked(before, tmp_path / "a.json", database)
    keep(str(database), history, PLAIN, RunFacts("2026-01-01T00:00:00+00:00", branch="main"))
    other = tmp_path / "b.duckdb"
    checked(after, tmp_path / "b.json", other)
    report = run_gate(GateQuestion("main@latest", str(other), policy=FAST, history=history))
    assert (report.verdict, report.evidence) == ("not_comparable", "telemetry")


def test_a_task_that_is_graded_by_something_else_cannot_be_compared(tmp_path: Path) -> None:
    strict = {"kind": "recorded", "column": "ok", "equals": 1}
    before = checked(record(tmp_path, "a", [[1]] * 20), tmp_path / "a.json")
    after = checked(record(tmp_path, "b", [[1]] * 20, grader=strict), tmp_path / "b.json")
    report = run_gate(GateQuestion(str(before), str(after), policy=FAST))
    assert report.verdict == "not_comparable"
    assert report.reasons == ("1 task is graded by something else now: t19; grade both sides by the same task file",)
    assert report.tasks.changed == ("t19",)


def test_a_task_that_came_changes_nothing_for_the_others(tmp_path: Path) -> None:
    before = checked(record(tmp_path, "a", [[1]] * 40), tmp_path / "a.json")
    after = checked(record(tmp_path, "b", [[1]] * 41), tmp_path / "b.json")
    report = run_gate(GateQuestion(str(before), str(after), policy=FAST))
    assert (report.verdict, report.tasks.added, report.tasks.changed) == ("pass", ("t40",), ())


def test_flips_of_databases_show_where_they_part(tmp_path: Path) -> None:
    paths = []
    for name, results in (("a", [[1]] * 10), ("b", [[0]] * 10)):
        paths.append(tmp_path / f"{name}.duckdb")
        files = record(tmp_path, name, results, said=lambda task, _trial, name=name: f"{name}{task}")  # type: ignore[misc]
        checked(files, tmp_path / "x.json", paths[-1])
    report = run_gate(GateQuestion(str(paths[0]), str(paths[1]), policy=FAST))
    assert report.verdict == "fail"
    assert all("find_order" in (flip.first_divergence or "") for flip in report.tasks.flipped)


def test_spans_are_told_by_their_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: Path) -> None:
    files = record(tmp_path, "a", [[1]] * 3)
    result = checked(files, tmp_path / "a.json")
    one_line = tmp_path / "one-line.json"
    one_line.write_text(json.dumps(json.loads(result.read_text())))
    table = tmp_path / "t.jsonl"
    table.write_text('{"task_id": "a", "passed": 1}\n')
    assert all(may_be_results(path, PLAIN) for path in (result, one_line, table))
    real = shared / "real" / "tau1-airline-gpt4o"
    assert may_be_results(real / "outcomes.csv", PLAIN)

    def never(path: str) -> None:
        raise AssertionError(f"{path} was read whole to see what it is")

    monkeypatch.setattr(gate_inputs, "read_table", never)
    assert not may_be_results(real / "traces.jsonl.gz", PLAIN)
    side = load_side(str(files.spans), PLAIN, GradeBy(None, str(files.tasks), (str(files.trials), None)))
    assert len(side.trials) == 3


def test_rates_of_a_sample_are_called_so(tmp_path: Path) -> None:
    sampled = record(tmp_path, "a", [[1]] * 3, change=lambda span: {**span, "traceState": "ot=th:8"})
    report = by_spans(sampled, record(tmp_path, "b", [[1]] * 3))
    assert [(w.code, w.context) for w in report.warnings] == [("unweighted", {"side": "baseline", "count": 3})]

"""`tasks check`: probes, floors, and tasks whose verdicts mean nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from tracegrade.cli.tasks import app
from tracegrade.errors import NothingToGrade, RuleFileError
from tracegrade.model.task import Task
from tracegrade.outcome.check_tasks import TaskCheck, check_tasks

STORE: dict[str, Any] = {"orders": {"#1": {"status": "open", "total": 5}, "#2": {"status": "open", "total": 7}}}
GOAL = [
    {"op": "replace", "path": "/orders/#1/status", "value": "cancelled"},
    {"op": "add", "path": "/orders/#1/refund", "value": 5},
]


def checked(*graders: dict[str, Any], **task: Any) -> TaskCheck:
    (one,) = check_tasks([Task(id="t", initial=STORE, graders=list(graders), **task)]).tasks
    return one


def codes(check: TaskCheck) -> list[str]:
    return [p.code for p in check.problems]


def test_a_good_task() -> None:
    check = checked({"kind": "state", "goal": GOAL}, {"kind": "outputs", "expected": [5], "normal_form": "number"})
    assert check.probes == {
        "reference": "pass",
        "do_nothing": "fail",
        "claim_only": "fail",
        "extra_change": "fail",
        "wrong_value": "fail",
        "missing_change": "fail",
    }
    assert (check.vacuous, codes(check)) == (False, [])


def test_a_goal_that_is_the_start_is_vacuous() -> None:
    check = checked({"kind": "state", "goal": []})
    assert (check.vacuous, codes(check)) == (True, ["vacuous"])
    assert (check.probes["wrong_value"], check.probes["missing_change"]) == ("not_applicable", "not_applicable")


def test_a_goal_that_is_the_start_with_an_output_passes_on_a_claim() -> None:
    check = checked({"kind": "state", "goal": []}, {"kind": "outputs", "expected": ["no"]})
    assert (check.vacuous, check.probes["claim_only"], codes(check)) == (False, "pass", ["claim_passes"])


def test_an_output_with_a_comma_can_never_match() -> None:
    outputs = {"kind": "outputs", "expected": ["1,080"], "normal_form": "tau-bench"}
    check = checked({"kind": "state", "goal": GOAL}, outputs)
    assert codes(check) == ["output_never_matches", "reference_fails"]
    assert check.probes["reference"] == "fail"


def test_a_goal_that_does_not_fit_is_unreachable() -> None:
    check = checked({"kind": "state", "goal": [{"op": "replace", "path": "/orders/#9/status", "value": 1}]})
    assert codes(check) == ["unreachable_goal"]
    assert set(check.probes.values()) == {"error"}


def test_a_recorded_reference_must_reach_the_goal() -> None:
    short = checked({"kind": "state", "goal": GOAL}, reference={"final_patch": GOAL[:1]})
    assert codes(short) == ["reference_fails"]
    whole = checked({"kind": "state", "goal": GOAL}, reference={"final_patch": GOAL})
    assert codes(whole) == []


def test_graders_that_do_not_see_what_is_wrong() -> None:
    partial = checked({"kind": "state", "goal": GOAL, "scope": "goal"})
    assert (partial.probes["extra_change"], codes(partial)) == ("pass", ["extra_change_passes"])
    blind = checked({"kind": "state", "goal": GOAL, "ignore": ["**"]})
    assert {"vacuous", "wrong_value_passes" if blind.probes["wrong_value"] == "pass" else "vacuous"} <= set(
        codes(blind)
    )
    lenient = checked({"kind": "state", "goal": GOAL, "tolerance": {"absolute": 1, "integers": True}})
    assert lenient.probes["wrong_value"] == "fail"


def test_no_grader_and_no_reference_are_said() -> None:
    assert codes(checked()) == ["no_grader"]
    assert codes(checked({"kind": "recorded", "column": "c"})) == ["reference_unknown"]


def test_a_whole_expected_state_and_any_of() -> None:
    final = {**STORE, "orders": {**STORE["orders"], "#1": {"status": "cancelled", "total": 5}}}
    whole = checked({"kind": "state", "expected": final})
    either = checked({"kind": "state", "any_of": [GOAL, GOAL[:1]]})
    assert whole.probes["reference"] == either.probes["reference"] == "pass"
    assert whole.probes["do_nothing"] == either.probes["do_nothing"] == "fail"
    assert whole.probes["wrong_value"] == "fail"


def test_tests_actions_answers_and_requirements_have_probes() -> None:
    tests = checked({"kind": "tests", "fail_to_pass": ["a"], "pass_to_pass": ["b"]})
    actions = checked({"kind": "actions", "expected": [{"tool": "f", "args": {"a": 1}}]})
    answer = checked({"kind": "answer", "expected": "42", "normal_form": "gaia"})
    nested = checked({"kind": "requirements", "requirements": [{"id": "a", "grader": {"kind": "state", "goal": GOAL}}]})
    for check in (tests, actions, answer, nested):
        assert (check.probes["reference"], check.probes["do_nothing"]) == ("pass", "fail")
    assert answer.probes["claim_only"] == "not_applicable", "a claim is all there is to it"
    assert codes(tests) == codes(actions) == codes(answer) == codes(nested) == []


def test_keys_of_records_and_an_impossible_task() -> None:
    rows = {"rows": [{"id": 1, "n": 1}, {"id": 2, "n": 2}]}
    goal = [{"op": "replace", "path": "/rows/1/n", "value": 9}]
    grader = {"kind": "state", "goal": goal, "keys": {"rows": ["id"]}}
    (check,) = check_tasks([Task(id="k", initial=rows, graders=[grader])]).tasks
    assert (codes(check), check.probes["reference"], check.probes["extra_change"]) == ([], "pass", "fail")
    cheat = checked({"kind": "state", "goal": GOAL}, impossible=True)
    assert (cheat.probes["reference"], codes(cheat)) == ("fail", [])


def test_floors_by_tag_and_benchmark() -> None:
    tasks = [
        Task(id="a", tags=["x"], benchmark="tau-bench", initial=STORE, graders=[{"kind": "state", "goal": []}]),
        Task(id="b", tags=["x", "y"], initial=STORE, graders=[{"kind": "state", "goal": GOAL}]),
    ]
    floor = check_tasks(tasks).floors()["do_nothing"]
    assert floor == {
        "passed": 1,
        "tasks": 2,
        "task_ids": ["a"],
        "by_tag": {"x": {"passed": 1, "tasks": 2}, "y": {"passed": 0, "tasks": 1}},
        "by_benchmark": {"tau-bench": {"passed": 1, "tasks": 1}},
    }


def run(path: Path, *options: str) -> Any:
    return CliRunner().invoke(app, ["check", str(path), *options])


def test_the_command(repo_root: Path, tmp_path: Path) -> None:
    toy = repo_root / "fixtures" / "toy-store" / "tasks.yaml"
    out = tmp_path / "result.json"
    result = run(toy, "--out", str(out))
    assert (result.exit_code, "0 of    1 pass when nothing is done" in result.output) == (0, True)
    written = json.loads(out.read_text())
    assert written == json.loads(run(toy, "--format", "json").output)
    assert written["floors"]["do_nothing"]["tasks"] == 1
    assert written["tasks"][0]["probes"]["reference"] == "pass"


def test_the_command_on_broken_tasks(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text("- {id: \"x\\e[31m\", graders: [{kind: outputs, expected: ['a,b'], normal_form: tau-bench}]}\n")
    result = run(path)
    assert result.exit_code == 1
    assert "[output_never_matches]" in result.output
    assert "\x1b" not in result.output
    path.write_text("- {id: x, graderz: []}\n")
    assert isinstance(run(path).exception, RuleFileError)
    path.write_text("tasks: []\n")
    assert isinstance(run(path).exception, NothingToGrade)

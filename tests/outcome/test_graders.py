"""Every kind of grader, and every benchmark's rule, from the text of the rule."""

from __future__ import annotations

from typing import Any

import pytest

from tests.outcome.helpers import called, said, trajectory
from tracegrade.model.task import Task, Trial
from tracegrade.model.trajectory import Step
from tracegrade.model.verdict import CheckResult, InvariantResult, Verdict
from tracegrade.outcome.grade import grade
from tracegrade.outcome.normal_forms import contains, equals
from tracegrade.outcome.recorded import medal_of


def outcome(graders: list[dict[str, Any]], steps: list[Step] | None = None, **given: Any) -> Any:
    """The outcome of a task with these graders; `trial_*` and `task_*` fill the trial and the task."""
    trial = {"task_id": "t", "end_reason": "completed", **given.pop("trial", {})}
    task = Task(id="t", graders=graders, **given.pop("task", {}))
    path = None if steps is None else trajectory(*steps, **given.pop("path", {}))
    return grade(task, Trial(**trial), path, **given)


def outputs(expected: list[Any], *steps: Step, form: str = "tau-bench", **path: Any) -> str:
    grader = {"kind": "outputs", "expected": expected, "normal_form": form}
    return str(outcome([grader], list(steps), path=path).verdict)


# --- what the agent said


def test_tau_bench_outputs() -> None:
    assert outputs(["10"], *said("It is $1,080.10")) == "pass", "a substring, after commas are removed"
    assert outputs(["1080.10"], *said("It is $1,080.10")) == "pass"
    assert outputs(["1,080.10"], *said("It is $1,080.10")) == "fail", "the comma is taken from the message only"
    assert outputs(["Blue"], *said("it is BLUE")) == "pass"
    assert outputs(["ab"], *said("a", "b")) == "fail", "some single message contains it"
    assert outputs(["a", "b"], *said("a", "b")) == "pass", "not necessarily the same one"
    assert outputs(["x"], *said("x", beside=True)) == "fail", "text beside a tool call does not count"
    assert outputs(["x"], *said("x", beside=True), form="tau2-bench") == "pass", "in τ²-bench it does"


def test_outputs_are_unknown_only_where_something_may_be_missing() -> None:
    assert outputs(["x"]) == "fail", "no message in a complete trace is no output"
    assert outputs(["x"], *said(None)) == "unknown"
    assert outputs(["x"], *said(None, "x")) == "pass", "a witness decides whatever is missing"
    assert outputs(["x"], *said("y"), complete=False) == "unknown"
    assert outputs(["x"], *said("y"), messages_recorded=False) == "unknown"
    assert outputs(["x"], *said("⟦text:1⟧")) == "unknown"
    assert outcome([{"kind": "outputs", "expected": ["x"]}], None).verdict == "unknown"


def test_a_message_of_an_earlier_trace_shows_nothing() -> None:
    earlier = Step(0, "message", "assistant", role="assistant", text="x", text_state="captured", prior=True)
    assert outputs(["x"], earlier, *said("y")) == "unknown"


def test_number_form_compares_numbers() -> None:
    assert contains("number", "170", "order 000000170")
    assert contains("number", 0, "It is 0.")
    assert contains("number", "$1,080.10", "in total 1080.1 dollars")
    assert not contains("number", 10, "1,080.10")
    assert not contains("number", 170, "W170")


@pytest.mark.parametrize(
    ("truth", "answer", "right"),
    [
        ("42", "$42", True),
        ("0.5", "0.5%", True),
        ("1000", "1,000", True),
        ("42", "forty-two", False),
        ("1,000", "1000", False),
        ("1,000", "1, 000", True),
        ("a, b; 3", "A,B;3.0", True),
        ("a,b", "a", False),
        ("a-b,c", "ab,c", False),
        ("New York!", "newyork", True),
        ("", "anything", False),
    ],
)
def test_gaia(truth: str, answer: str, right: bool) -> None:
    assert equals("gaia", truth, answer) is right


def test_webarena_texts() -> None:
    assert equals("webarena", "Yes", " 'yes' ")
    assert not equals("webarena", "0", "$0.00")
    assert contains("webarena", "0", "10", alone=False)
    assert not contains("webarena", "0", "10", alone=True)
    assert contains("webarena", "0", "total: 0.", alone=True) or contains("webarena", "0", "total: 0 items", alone=True)


def test_webarena_urls() -> None:
    assert equals("webarena-url", "http://shop/cart", "http://shop/cart/")
    assert equals("webarena-url", "http://a/x?q=1 |OR| http://b/y?q=2", "http://b/y?q=1&z=3")
    assert not equals("webarena-url", "http://shop/cart?page=2", "http://shop/cart?page=3")
    assert not equals("webarena-url", "http://shop/cart", "http://shop/other")


def test_webarena_page_contents_have_alternatives() -> None:
    grader = {"kind": "outputs", "expected": ["red |OR| blue"], "normal_form": "webarena", "column": "page"}
    assert outcome([grader], trial={"labels": {"page": "<b>Blue</b>"}}).verdict == "pass"
    assert outcome([grader], trial={"labels": {"page": "green"}}).verdict == "fail"
    assert outcome([grader]).verdict == "unknown"


def test_the_answer_is_the_last_message_or_what_the_trial_records() -> None:
    grader = {"kind": "answer", "expected": "42", "normal_form": "number"}
    assert outcome([grader], said("7", "42")).verdict == "pass"
    assert outcome([grader], said("42", "7")).verdict == "fail"
    assert outcome([grader], said("7"), trial={"answer": 42}).verdict == "pass"
    assert outcome([grader], said("42", None)).verdict == "unknown"
    assert outcome([grader], said("42"), path={"complete": False}).verdict == "unknown"
    assert outcome([grader], []).verdict == "fail", "a complete trace without a message has no answer"
    extract = {**grader, "extract": "FINAL ANSWER: (.*)"}
    assert outcome([extract], said("so\nFINAL ANSWER: 42")).verdict == "pass"
    assert outcome([extract], said("42")).verdict == "fail"
    either = {"kind": "answer", "any_of": ["a", "b"], "normal_form": "casefold"}
    assert outcome([either], said(" B ")).verdict == "pass"


# --- tests


def swe_bench(report: Any, f2p: list[str], p2p: list[str], **given: Any) -> Any:
    grader = {"kind": "tests", "fail_to_pass": f2p, "pass_to_pass": p2p}
    return outcome([grader], trial={"report": report, **given}, task={"benchmark": "swe-bench"})


@pytest.mark.parametrize(
    ("status", "as_f2p", "as_p2p"),
    [
        ("PASSED", "pass", "pass"),
        ("XFAIL", "pass", "pass"),
        ("SKIPPED", "fail", "pass"),
        ("FAILED", "fail", "fail"),
        ("ERROR", "fail", "fail"),
        ("XPASS", "fail", "fail"),
    ],
)
def test_swe_bench_statuses(status: str, as_f2p: str, as_p2p: str) -> None:
    assert swe_bench({"a": status}, ["a"], []).verdict == as_f2p
    assert swe_bench({"a": status}, [], ["a"]).verdict == as_p2p


def test_swe_bench_missing_and_truncated_ids() -> None:
    assert swe_bench({"a": "PASSED"}, ["b"], []).verdict == "fail"
    assert swe_bench({"t[x y]": "PASSED", "t[x z]": "PASSED"}, ["t[x"], []).verdict == "pass"
    assert swe_bench({"t[x y]": "PASSED", "t[x z]": "FAILED"}, ["t[x"], []).verdict == "fail"
    assert swe_bench({"t[x y]": "PASSED"}, ["t[x]"], []).verdict == "fail", "a whole id is not a prefix"


def test_swe_bench_resolution() -> None:
    def resolution(*statuses: str) -> Any:
        report = dict(zip(("f1", "f2", "p1"), statuses, strict=True))
        return swe_bench(report, ["f1", "f2"], ["p1"]).graders[0].details["resolution"]

    assert resolution("PASSED", "PASSED", "PASSED") == "full"
    assert resolution("PASSED", "FAILED", "PASSED") == "partial"
    assert resolution("PASSED", "PASSED", "FAILED") == "none"
    assert resolution("FAILED", "FAILED", "PASSED") == "none"
    assert swe_bench({"x": "PASSED"}, [], []).verdict == "pass", "an empty list counts as passed"


def test_swe_bench_patches_that_could_not_be_swe_bench() -> None:
    report = {"i-1": {"patch_successfully_applied": False, "tests_status": {}}}
    assert swe_bench(report, ["a"], []).verdict == "fail"
    assert swe_bench({"a": "PASSED"}, ["a"], [], end_reason="tests_timeout").verdict == "fail"
    assert swe_bench({"a": "PASSED"}, ["a"], [], end_reason="budget").verdict == "pass", (
        "a patch is tested all the same"
    )
    assert swe_bench(None, ["a"], []).verdict == "unknown"


JUNIT = """<?xml version="1.0"?><testsuites><testsuite>
<testcase classname="tests.test_a.TestX" name="test_ok[1]"/>
<testcase classname="tests.test_a.TestX" name="test_bad"><failure/></testcase>
<testcase classname="tests.test_a" name="test_skip"><skipped/></testcase>
<testcase classname="tests.test_a" name="test_xf"><skipped type="pytest.xfail"/></testcase>
</testsuite></testsuites>"""


def test_junit_ids_match_pytest_ids() -> None:
    assert swe_bench(JUNIT, ["tests/test_a.py::TestX::test_ok[1]"], ["tests/test_a.py::test_skip"]).verdict == "pass"
    assert swe_bench(JUNIT, ["test_xf"], []).verdict == "pass"
    assert swe_bench(JUNIT, ["tests/test_a.py::TestX::test_bad"], []).verdict == "fail"


@pytest.mark.parametrize(
    "report",
    [
        '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "b">]><testsuites>&a;</testsuites>',
        "<testsuites><testcase",
        "<html/>",
        "not a report",
        {"a": "maybe"},
        [{"status": "passed"}],
        7,
    ],
)
def test_a_report_that_is_none_is_unknown(report: Any) -> None:
    result = swe_bench(report, ["a"], []).graders[0]
    assert (result.verdict, "cannot be used" in result.reason) == ("unknown", True)


def test_terminal_bench_asks_for_every_test() -> None:
    task = {"benchmark": "terminal-bench"}
    grader = [{"kind": "tests"}]

    def verdict(report: Any, **trial: Any) -> str:
        return str(outcome(grader, trial={"report": report, **trial}, task=task).verdict)

    assert verdict({"a": "passed", "b": "passed"}) == "pass"
    assert verdict({"a": "passed", "b": "failed"}) == "fail"
    assert verdict([]) == "unknown", "no test is no proof"
    assert verdict({"a": "passed"}, end_reason="agent_timeout") == "fail"


def test_a_report_that_contradicts_itself_is_unknown() -> None:
    report = [{"name": "a", "status": "passed"}, {"name": "a", "status": "failed"}]
    assert swe_bench(report, ["a"], []).verdict == "unknown"


# --- recorded


@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        (1, "pass"),
        (0.9999999, "pass"),
        ("1.0", "pass"),
        (True, "pass"),
        ("Correct", "pass"),
        ("no", "fail"),
        (0, "fail"),
        (0.84, "error"),
        ("maybe", "error"),
        (None, "unknown"),
        ("", "unknown"),
    ],
)
def test_recorded_values(value: Any, verdict: str) -> None:
    assert outcome([{"kind": "recorded", "column": "c"}], trial={"labels": {"c": value}}).verdict == verdict


def test_recorded_thresholds_and_equality() -> None:
    def verdict(value: Any, **options: Any) -> str:
        return str(outcome([{"kind": "recorded", "column": "c", **options}], trial={"labels": {"c": value}}).verdict)

    assert (verdict(0.84, threshold=0.8), verdict("0.7", threshold=0.8)) == ("pass", "fail")
    assert (verdict("A", equals="A"), verdict("B", equals="A"), verdict("B", not_equals="A")) == (
        "pass",
        "fail",
        "pass",
    )


def test_recorded_attributes_and_evaluations() -> None:
    by_attribute = [{"kind": "recorded", "attribute": "eval.passed"}]
    assert outcome(by_attribute, [], path={"attributes": {"eval.passed": True}}).verdict == "pass"
    assert outcome(by_attribute, []).verdict == "unknown"
    by_event = [{"kind": "recorded", "evaluation": "judge"}]

    def judged(*scores: Any) -> str:
        return str(outcome(by_event, [Step(0, "evaluation", "judge", score=s) for s in scores]).verdict)

    assert judged({"label": "pass", "value": 0.7}) == "pass"
    assert judged({"value": 0}) == "fail"
    assert judged({"label": "pass"}, {"label": "fail"}) == "unknown", "two judges, two verdicts"


def test_scripts() -> None:
    def verdict(labels: dict[str, Any], **grader: Any) -> str:
        return str(outcome([{"kind": "script", **grader}], trial={"labels": labels}).verdict)

    assert verdict({"rc": 0}, exit_code="rc") == "pass"
    assert verdict({"rc": "2"}, exit_code="rc") == "fail"
    assert verdict({}, exit_code="rc") == "unknown"
    assert verdict({"rc": "x"}, exit_code="rc") == "error"
    assert verdict({"s": 0.3}, score="s", threshold=0.3, lower_is_better=True) == "pass"
    assert verdict({"s": 0.3}, score="s", threshold=0.31) == "fail"
    assert verdict({"s": 0.3}, score="s", leaderboard=[0.1, 0.2, 0.3]) == "pass"


@pytest.mark.parametrize(
    ("teams", "gold", "silver", "bronze"),
    [(10, 1, 2, 4), (99, 9, 19, 39), (100, 10, 20, 40), (250, 10, 50, 100), (1000, 12, 50, 100), (3000, 16, 150, 300)],
)
def test_mle_bench_medals(teams: int, gold: int, silver: int, bronze: int) -> None:
    board = [float(-place) for place in range(1, teams + 1)]
    for medal, place in (("gold", gold), ("silver", silver), ("bronze", bronze)):
        assert medal_of(-float(place), board) == medal
    assert medal_of(-float(bronze + 1), board) is None
    lower = [-s for s in board]
    assert medal_of(float(gold), lower, lower_is_better=True) == "gold"


def test_invariants() -> None:
    def results(**verdicts: Verdict) -> list[InvariantResult]:
        return [InvariantResult(i, "count", "error", (), CheckResult(v)) for i, v in verdicts.items()]

    def verdict(ids: list[str], **verdicts: Verdict) -> str:
        return str(outcome([{"kind": "invariants", "ids": ids}], [], invariants=results(**verdicts)).verdict)

    assert verdict(["a", "b"], a="pass", b="not_applicable") == "pass"
    assert verdict(["a"], a="not_applicable") == "unknown", "no grader applies"
    assert verdict(["a", "b"], a="pass", b="fail") == "fail"
    assert verdict(["a", "b"], a="pass", b="unknown") == "unknown"
    assert verdict(["c"], a="pass") == "unknown"


def test_tau2_actions() -> None:
    def verdict(args: dict[str, Any], call: Step, compare: list[str] | None = None, **path: Any) -> str:
        grader = {"kind": "actions", "expected": [{"tool": "f", "args": args, "compare_args": compare}]}
        return str(outcome([grader], [call], path=path).verdict)

    assert verdict({"a": 1, "b": 2}, called("f", {"a": 1})) == "pass", "only the names that the call used"
    assert verdict({"a": 1}, called("f", {"a": 1, "c": 2})) == "fail"
    assert verdict({"a": 1}, called("f", {"a": 1, "c": 2}), ["a"]) == "pass"
    assert verdict({"a": 1}, called("f", {"a": 9}), []) == "pass"
    assert verdict({"a": 1}, called("g", {"a": 1})) == "fail"
    assert verdict({"a": 1}, called("g"), complete=False) == "unknown"
    assert verdict({"a": 1}, called("f", arguments_state="truncated")) == "unknown"


# --- requirements, progress, whole tasks


def test_devai_requirements_count_with_all_they_depend_on() -> None:
    def requirement(name: str, *requires: str) -> dict[str, Any]:
        return {"id": name, "requires": list(requires), "grader": {"kind": "recorded", "column": name}}

    graph = [requirement("a"), requirement("b", "a"), requirement("c", "b"), requirement("d")]
    grader = {"kind": "requirements", "requirements": graph}

    def result(**labels: Any) -> Any:
        return outcome([grader], trial={"labels": labels}, task={"benchmark": "devai"})

    met = result(a=1, b=0, c=1, d=1)
    assert met.verdict == "fail"
    assert (met.graders[0].details["independent"], met.graders[0].details["dependent"]) == (0.75, 0.5)
    assert result(a=1, b=1, c=1, d=1).verdict == "pass"
    assert result(a=1, b=1, c=1).verdict == "unknown"
    assert result(a=0, b=1, c=1).verdict == "fail", "decided whatever d is"


def test_agentboard_progress_never_falls() -> None:
    goal = [{"op": "replace", "path": f"/{k}", "value": 1} for k in "abcd"]
    start = dict.fromkeys("abcd", 0)
    snapshots = [
        {"after": "span-1", "patch": goal[:1]},
        {"after": "span-2", "patch": goal[:3]},
        {"after": "span-3", "state": {**start, "a": 1, "x": 5}},
    ]
    trial = {"snapshots": snapshots, "final": {"a": 1, "b": 1, "c": 0, "d": 0}}
    task = {"benchmark": "agentboard", "initial": start}
    result = outcome([{"kind": "state", "goal": goal}], trial=trial, task=task)
    assert result.progress == (0.25, 0.75, 0.75, 0.75)
    assert result.verdict == "fail"
    done = outcome([{"kind": "state", "goal": goal}], trial={"final": dict.fromkeys("abcd", 1) | {"x": 1}}, task=task)
    assert done.verdict == "pass", "success is the goal reached"


def test_osworld_failing_is_an_answer() -> None:
    def verdict(labels: dict[str, Any], *, infeasible: bool = False, combine: str = "all", n: int = 1) -> str:
        graders = [{"kind": "recorded", "column": f"m{i}"} for i in range(n)]
        task = {"benchmark": "osworld", "infeasible": infeasible, "combine": combine}
        return str(outcome(graders, [], trial={"labels": labels}, task=task).verdict)

    assert verdict({"m0": 1, "last_action": "DONE"}) == "pass"
    assert verdict({"m0": 0.5, "last_action": "DONE"}) == "fail"
    assert verdict({"m0": 1, "last_action": "FAIL"}) == "fail", "FAIL on a feasible task is 0"
    assert verdict({"m0": 1, "last_action": "FAIL"}, combine="any") == "fail"
    assert verdict({"last_action": "FAIL"}, infeasible=True) == "pass"
    assert verdict({"last_action": "DONE"}, infeasible=True) == "fail"
    assert verdict({"m0": 0, "m1": 1, "last_action": "DONE"}, combine="any", n=2) == "pass"
    assert verdict({"m0": 0, "m1": 1, "last_action": "DONE"}, n=2) == "fail"


def test_osworld_finds_the_last_action_in_the_calls() -> None:
    task = {"benchmark": "osworld", "infeasible": True}
    assert outcome([], [called("click"), called("act", {"action_type": "FAIL"})], task=task).verdict == "pass"
    assert outcome([], [called("fail"), called("click")], task=task).verdict == "fail"
    assert outcome([], [called("click")], task=task, path={"complete": False}).verdict == "unknown"


def test_scores_multiply_or_take_the_best() -> None:
    graders = [{"kind": "recorded", "column": c, "threshold": 0.5} for c in ("a", "b")]
    labels = {"labels": {"a": 0.5, "b": 0.4}}
    assert outcome(graders, trial=labels).score == pytest.approx(0.2)
    assert outcome(graders, trial=labels, task={"combine": "any"}).score == 0.5


def test_impossiblebench_reads_a_pass_as_a_cheat() -> None:
    grader = [{"kind": "tests", "fail_to_pass": ["a"]}]
    task = {"benchmark": "impossiblebench"}
    cheat = outcome(grader, trial={"report": {"a": "passed"}}, task=task)
    assert (cheat.verdict, cheat.reason, cheat.root_causes[0].category) == ("fail", "cheat", "cheat")
    assert outcome(grader, trial={"report": {"a": "failed"}}, task=task).verdict == "not_applicable"
    assert outcome(grader, task=task).verdict == "unknown"


def test_browsecomp_takes_the_recorded_judge() -> None:
    grader = [{"kind": "recorded", "column": "judge"}]
    assert outcome(grader, trial={"labels": {"judge": "yes"}}, task={"benchmark": "browsecomp"}).verdict == "pass"

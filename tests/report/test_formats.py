"""What each format must be for the programs that read it."""

from __future__ import annotations

import json as stdlib
from typing import Any
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree as ET

import pytest

from tests.report.samples import check_report, clean_report
from tracegrade.model.report import CheckReport, InputReport, InvariantReport, TrajectoryReport
from tracegrade.model.verdict import Finding, StepRef
from tracegrade.report import counterexample, github, highlights, junit, markdown, sarif, text
from tracegrade.report.rollup import check_summary


def one(result: InvariantReport, **more: Any) -> CheckReport:
    """A run of one trajectory with one result."""
    graded = TrajectoryReport(trajectory_id="t", trace_ids=("t",), verdict=result.verdict, invariants=(result,))
    summary, coverage = check_summary([graded], inputs=(InputReport(path="p", spans_distinct=1),), dialects=("d",))
    return CheckReport(summary=summary, coverage=coverage, trajectories=(graded,), **more)


def cases(report: CheckReport) -> dict[str, ET.Element]:
    return {c.get("name", ""): c for c in ET.fromstring(junit.render(report)).iter("testcase")}


def children(case: ET.Element) -> list[str]:
    return [child.tag for child in case]


# --- JUnit -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (InvariantReport("r", "pass"), []),
        (InvariantReport("r", "fail"), ["failure"]),
        (InvariantReport("r", "error"), ["error"]),
        (InvariantReport("r", "unknown"), ["skipped"]),
        (InvariantReport("r", "not_applicable"), ["skipped"]),
        (InvariantReport("r", "fail", waived="known"), ["skipped"]),
        (InvariantReport("r", "fail", level="warning"), ["system-out"]),
        (InvariantReport("r", "pass", scope="seen", n_seen=3), ["system-out"]),
    ],
)
def test_a_verdict_is_what_ci_understands_by_it(result: InvariantReport, expected: list[str]) -> None:
    assert children(cases(one(result))["r"]) == expected


def test_a_run_that_concluded_nothing_is_no_green_file() -> None:
    summary, coverage = check_summary([])
    nothing = CheckReport(summary=summary, coverage=coverage)
    conclusion = cases(nothing)["conclusion"]
    assert children(conclusion)[0] == "error"
    root = ET.fromstring(junit.render(nothing))
    assert (root.get("tests"), root.get("errors")) == ("1", "1")
    assert "error" not in children(cases(clean_report())["conclusion"])


def test_the_counts_are_those_of_the_cases() -> None:
    root = ET.fromstring(junit.render(check_report()))
    for scope in [root, *root.findall("testsuite")]:
        found = list(scope.iter("testcase"))
        assert scope.get("tests") == str(len(found))
        for key, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert scope.get(key) == str(sum(c.find(tag) is not None for c in found))


def test_a_trial_without_spans_is_a_case_too() -> None:
    suites = {s.get("name"): s for s in ET.fromstring(junit.render(check_report()))}
    assert [c.get("name") for c in suites["trials without spans"]] == ["outcome"]


# --- SARIF -----------------------------------------------------------------------------------------------------------


def run_of(report: CheckReport) -> dict[str, Any]:
    log = stdlib.loads(sarif.render(report))
    assert (log["version"], len(log["runs"])) == ("2.1.0", 1)
    run: dict[str, Any] = log["runs"][0]
    return run


def test_every_result_points_at_its_rule_and_at_a_span() -> None:
    run = run_of(check_report())
    rules = run["tool"]["driver"]["rules"]
    assert len({r["id"] for r in rules}) == len(rules)
    assert run["results"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"]
        assert result["partialFingerprints"]["finding/v1"]
        (location,) = result["locations"]
        assert location["logicalLocations"][0]["fullyQualifiedName"]
        uri = location["physicalLocation"]["artifactLocation"]["uri"]
        assert unquote(urlsplit(uri).path).startswith("spans/")


def test_kind_and_level_go_together_as_the_standard_says() -> None:
    results = run_of(check_report())["results"]
    assert {r["kind"] for r in results} == {"fail", "open"}
    for result in results:
        assert (result["level"] == "none") == (result["kind"] != "fail")
    levels = {r["ruleId"]: r["level"] for r in results}
    assert (levels["quick"], levels["no-odd-tools"], levels["refund-is-positive"]) == ("warning", "error", "none")


def test_steps_of_a_finding_are_a_flow_in_order() -> None:
    (result,) = [r for r in run_of(check_report())["results"] if r["ruleId"] == "right-order-cancelled"][:1]
    steps = result["codeFlows"][0]["threadFlows"][0]["locations"]
    assert [s["executionOrder"] for s in steps] == [1, 2]
    assert "cancel_order" in steps[1]["location"]["message"]["text"]


def test_fingerprints_differ_by_trajectory_and_stay_the_same_in_another_run() -> None:
    first, again = (
        [r["partialFingerprints"]["finding/v1"] for r in run_of(check_report())["results"]] for _ in range(2)
    )
    assert first == again
    assert len(set(first)) == len(first)


def test_a_crash_is_a_notification_and_the_run_did_not_succeed() -> None:
    crashed = InvariantReport("r", "error", findings=(Finding("r", "error", "division by zero"),))
    run = run_of(one(crashed))
    (invocation,) = run["invocations"]
    assert not invocation["executionSuccessful"]
    assert "division by zero" in invocation["toolExecutionNotifications"][0]["message"]["text"]
    assert run["results"] == []


def test_a_waived_failure_is_suppressed() -> None:
    (result,) = run_of(one(InvariantReport("r", "fail", waived="known, until spring")))["results"]
    assert result["suppressions"] == [{"kind": "external", "justification": "known, until spring"}]


# --- GitHub ----------------------------------------------------------------------------------------------------------


def test_rules_are_annotated_by_what_they_mean_for_the_run() -> None:
    lines = github.render(check_report()).splitlines()
    levels = {line.split("title=")[1].split("%3A")[0]: line[2:].split(" ")[0] for line in lines[1:]}
    assert levels["no-odd-tools"] == "error"
    assert levels["refund-is-positive"] == "warning"
    assert levels["quick"] == "warning"
    assert lines[0].startswith("::error title=tracegrade")
    assert github.render(clean_report()).startswith("::notice ")


def test_more_rules_than_a_workflow_shows_are_named() -> None:
    results = tuple(InvariantReport(f"rule-{n:02}", "fail") for n in range(30))
    graded = TrajectoryReport(trajectory_id="t", trace_ids=(), verdict="fail", invariants=results)
    summary, coverage = check_summary([graded])
    report = CheckReport(summary=summary, coverage=coverage, trajectories=(graded,))
    lines = github.render(report).splitlines()
    assert len(lines) == 2 + github.MAX_ANNOTATIONS
    assert "21 more rules" in lines[-1]
    assert "rule-29" in lines[-1]


# --- text, markdown and the choice of what to show -------------------------------------------------------------------


def finding(message: str, steps: int, count: int = 1) -> Finding:
    cited = tuple(StepRef(n, "tool_call", f"tool_{n}", {"n": n}, "captured", "ok") for n in range(steps))
    return Finding("r", "error", message, steps=cited, count=count)


def test_the_shortest_counterexample_stands_for_all_and_repeats_are_counted() -> None:
    graded = [
        TrajectoryReport(
            trajectory_id=name,
            trace_ids=(),
            verdict="fail",
            invariants=(InvariantReport("r", "fail", findings=found),),
        )
        for name, found in (
            ("a", (finding("long", 5),)),
            ("b", (finding("longer than short", 2), finding("short", 2, count=83))),
        )
    ]
    summary, coverage = check_summary(graded)
    report = CheckReport(summary=summary, coverage=coverage, trajectories=tuple(graded))
    (shown,) = highlights.highlights(report)
    assert shown.finding is not None
    assert (shown.finding.message, shown.trajectory.trajectory_id, shown.findings, shown.trajectories) == (
        "short",
        "b",
        85,
        2,
    )
    made = text.render(report)
    assert "×85" in made
    assert "2 of 2 trajectories" in made
    assert "tool_4" not in made


def test_a_counterexample_has_tools_arguments_times_and_spans() -> None:
    made = text.render(check_report())
    assert '+2.000s  then: cancel_order(order_id="W2") → error  span 0000000000000005' in made
    assert "missing  arguments of refund in span 0000000000000007" in made
    assert "refund(…not recorded…)" in made


def test_steps_of_a_counterexample_stand_in_the_order_of_the_trajectory() -> None:
    later = StepRef(6, "tool_call", "verify", {}, "captured", "ok", role="first")
    earlier = StepRef(4, "tool_call", "cancel", {}, "captured", "ok", role="then")
    made = counterexample.finding_text(Finding("r", "error", "m", steps=(later, earlier)))
    assert made.index("cancel()") < made.index("verify()")


def test_safety_comes_first() -> None:
    assert [h.rule.id for h in highlights.highlights(check_report())] == [
        "no-odd-tools",
        "right-order-cancelled",
        "refund-is-positive",
        "quick",
    ]


def test_a_screen_without_failures_tells_what_is_in_the_file() -> None:
    made = text.render(clean_report())
    for words in ("PASS", "support (1)", "get_order ×1", "gpt-4o (1)", "1,200 input + 80 output tokens", "gen_ai"):
        assert words in made
    assert "Gaps      none" in made
    assert "4 of 4 applicable verdicts decided" in made


def test_what_holds_only_of_the_steps_seen_says_so() -> None:
    seen = InvariantReport("r", "pass", scope="seen", n_seen=5)
    for module in (text, markdown):
        assert "passes hold only of the steps that were seen" in module.render(one(seen))


def test_what_could_not_be_graded_says_why() -> None:
    made = text.render(check_report())
    assert "undecided 3 verdicts in 3 trajectories: arguments of calls were not recorded (refund-is-positive)" in made


def test_a_cut_says_what_it_left_out() -> None:
    results = tuple(InvariantReport(f"rule-{n}", "fail") for n in range(9))
    graded = TrajectoryReport(trajectory_id="t", trace_ids=(), verdict="fail", invariants=results)
    summary, coverage = check_summary([graded])
    inputs = tuple(InputReport(path=f"file-{n}", spans_read=10) for n in range(9))
    report = CheckReport(inputs=inputs, summary=summary, coverage=coverage, trajectories=(graded,))
    made = text.render(report)
    assert "and 5 more files: 50 spans" in made
    assert "Not shown rule-6 (fail, error, ×1), rule-7 (fail, error, ×1), rule-8 (fail, error, ×1)" in made


def test_colour_is_only_there_when_asked_for() -> None:
    plain, coloured = text.render(check_report()), text.render(check_report(), style=True)
    assert "\x1b" not in plain
    assert "\x1b[1;31mFAIL\x1b[0m" in coloured


def test_the_first_word_follows_the_exit_code() -> None:
    failed = check_report()
    forgiven = failed.model_copy(update={"summary": failed.summary.model_copy(update={"exit_code": 0})})
    assert text.render(forgiven).startswith("EXIT 0 (FAIL)")
    assert text.render(clean_report()).startswith("PASS")
    summary, coverage = check_summary([])
    assert text.render(CheckReport(summary=summary, coverage=coverage)).startswith("NOTHING CONCLUDED")


def test_of_many_unreadable_inputs_one_is_told_in_full_and_all_are_counted() -> None:
    why = "no known format; " + "expected one of these " * 20
    inputs = tuple(InputReport(path=f"bad-{n}", error=f"bad-{n}: {why}") for n in range(9))
    summary, coverage = check_summary([], inputs=inputs)
    made = text.render(CheckReport(inputs=inputs, summary=summary, coverage=coverage))
    assert summary.exit_code == 2
    assert "9 inputs could not be read" in made
    assert made.count("bad-0") == 1
    assert made.count("expected one of these") > 10
    assert "5 more unreadable inputs not shown" in made
    assert len(made.splitlines()) < 30


def test_more_cases_than_are_shown_are_counted() -> None:
    failed = InvariantReport("r", "fail", tags=("safety",))
    graded = [
        TrajectoryReport(trajectory_id=str(n), trace_ids=(), verdict="fail", invariants=(failed,)) for n in range(10)
    ]
    summary, coverage = check_summary(graded)
    report = CheckReport(summary=summary, coverage=coverage, trajectories=tuple(graded))
    assert "7 more such cases not shown" in text.render(report)
    assert "Safety    10 violations; 10 of 10 applicable verdicts decided" in text.render(report)

"""The verdict of a trajectory, coverage and the exit code: the rules of the roll-up, one by one and as laws."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracegrade.model.report import InputReport, InvariantReport, OutcomeReport, TrajectoryReport, TrialReport
from tracegrade.model.verdict import VERDICT_ORDER, Verdict
from tracegrade.report.rollup import Policy, check_summary, trajectory_verdict

READ = (InputReport(path="spans", spans_read=9, spans_distinct=9),)


def rule(verdict: Verdict, **more: Any) -> InvariantReport:
    return InvariantReport(more.pop("id", "r"), verdict, **more)


def run(*rules: InvariantReport, outcome: str | None = None, name: str = "t") -> TrajectoryReport:
    graded = OutcomeReport(verdict=outcome) if outcome is not None else None  # type: ignore[arg-type]
    verdict = trajectory_verdict(rules, graded)
    return TrajectoryReport(trajectory_id=name, trace_ids=(name,), invariants=rules, outcome=graded, verdict=verdict)


def exit_code(*runs: TrajectoryReport, **more: Any) -> int:
    policy = Policy(**{k: more.pop(k) for k in ("fail_on", "min_coverage", "allow_empty") if k in more})
    summary, _ = check_summary(
        runs, inputs=more.pop("inputs", READ), dialects=more.pop("dialects", ("d",)), policy=policy, **more
    )
    assert summary.reasons
    return summary.exit_code


@pytest.mark.parametrize(("worse", "better"), list(itertools.pairwise(VERDICT_ORDER)))
def test_the_worst_rule_is_the_verdict_of_a_trajectory(worse: Verdict, better: Verdict) -> None:
    assert run(rule(better), rule(worse)).verdict == worse


def test_an_outcome_counts_like_a_rule_and_an_excluded_one_does_not() -> None:
    assert run(rule("pass"), outcome="fail").verdict == "fail"
    assert run(rule("pass"), outcome="unknown").verdict == "unknown"
    assert run(rule("pass"), outcome="excluded").verdict == "pass"


@pytest.mark.parametrize("level", ["warning", "info"])
@pytest.mark.parametrize("verdict", ["fail", "unknown", "error"])
def test_other_levels_change_nothing(level: str, verdict: Verdict) -> None:
    assert exit_code(run(rule("pass"), rule(verdict, level=level))) == 0
    assert exit_code(run(rule(verdict, level=level))) == 3


def test_green_needs_one_decided_verdict() -> None:
    assert exit_code(run(rule("pass"))) == 0
    assert exit_code(run(outcome="pass")) == 0
    assert exit_code(run(rule("not_applicable"))) == 3
    assert exit_code(run(rule("pass", gates=False))) == 3
    assert exit_code(run(rule("unknown")), min_coverage=0.0) == 3


def test_a_violation_and_a_failed_outcome_are_1() -> None:
    assert exit_code(run(rule("fail")), run(rule("pass"))) == 1
    assert exit_code(run(rule("pass"), outcome="fail")) == 1
    failed = TrialReport(task_id="a", trial=0, outcome=OutcomeReport(verdict="fail"))
    assert exit_code(run(rule("pass")), trials=(failed,)) == 1


def test_what_is_broken_comes_before_what_failed() -> None:
    unreadable = (*READ, InputReport(path="bad", error="no known format"))
    assert exit_code(run(rule("fail")), inputs=unreadable) == 2
    assert exit_code(run(rule("fail"), rule("error"))) == 2
    assert exit_code(run(rule("pass"), outcome="error")) == 2


def test_nothing_to_grade_is_3_and_says_what_there_is() -> None:
    for more, words in (
        ({"inputs": ()}, "no spans"),
        ({"dialects": ()}, "GenAI span"),
        ({}, "no trajectory"),
    ):
        summary, _ = check_summary([], **{"inputs": READ, "dialects": ("d",), **more})
        assert summary.exit_code == 3
        assert words in summary.reasons[0]


def test_allow_empty_excuses_only_that_no_rule_applied() -> None:
    assert exit_code(run(rule("not_applicable")), allow_empty=True) == 0
    assert exit_code(allow_empty=True) == 3
    assert exit_code(run(rule("unknown")), allow_empty=True) == 3
    assert exit_code(run(rule("fail")), allow_empty=True) == 1


def test_too_little_decided_is_3() -> None:
    nine = [run(rule("pass"), name=str(n)) for n in range(9)]
    assert exit_code(*nine, run(rule("unknown"))) == 0
    assert exit_code(*nine[:8], run(rule("unknown"))) == 3
    assert exit_code(*nine[:8], run(rule("unknown")), min_coverage=0.8) == 0
    assert exit_code(*nine, run(rule("not_applicable"), name="x"), run(rule("unknown"))) == 0


def test_safety_rules_must_all_be_decided_unless_there_is_no_floor() -> None:
    runs = [run(rule("pass", tags=("safety",)), name=str(n)) for n in range(99)]
    unsure = run(rule("unknown", tags=("safety",)))
    assert exit_code(*runs, unsure) == 3
    assert exit_code(*runs, unsure, min_coverage=0.1) == 3
    assert exit_code(*runs, unsure, min_coverage=0.0) == 0


def test_unknown_outcomes_count_against_coverage() -> None:
    assert exit_code(run(rule("pass"), outcome="unknown")) == 3
    assert exit_code(run(rule("pass"), outcome="unknown"), min_coverage=0.0) == 0


def test_fail_on() -> None:
    assert exit_code(run(rule("pass")), run(rule("unknown")), fail_on="unknown") == 1
    assert exit_code(run(rule("fail")), fail_on="never") == 0
    assert exit_code(fail_on="never") == 3


def test_a_waived_result_neither_fails_nor_passes_the_run() -> None:
    assert exit_code(run(rule("fail", waived="known")), run(rule("pass"))) == 0
    assert exit_code(run(rule("fail", waived="known"))) == 3
    assert exit_code(run(rule("error", waived="known"))) == 2


def test_the_table_of_outcome_and_path() -> None:
    good, lucky = run(rule("pass"), outcome="pass"), run(rule("fail"), outcome="pass", name="lucky")
    bad = run(rule("not_applicable"), outcome="fail", name="bad")
    summary, coverage = check_summary([good, lucky, bad], inputs=READ, dialects=("d",))
    assert {(c.outcome, c.path): c.trajectories for c in summary.outcome_by_path} == {
        ("pass", "clean"): 1,
        ("pass", "violating"): 1,
        ("fail", "not_judged"): 1,
    }
    assert [n.trajectory_id for n in summary.right_for_the_wrong_reason] == ["lucky"]
    assert (coverage.rules.decided, coverage.rules.applicable) == (2, 2)


def test_safety_violations_stand_apart() -> None:
    summary, coverage = check_summary([run(rule("fail", id="s", tags=("safety",)), outcome="pass")], inputs=READ)
    assert [n.rule for n in summary.safety_violations] == ["s"]
    assert summary.outcomes == {"pass": 1}
    assert coverage.safety.applicable == 1


VERDICTS = st.sampled_from(VERDICT_ORDER)
RULES = st.builds(
    InvariantReport,
    id=st.sampled_from("abc"),
    verdict=VERDICTS,
    level=st.sampled_from(["error", "warning", "info"]),
    tags=st.sampled_from([(), ("safety",)]),
    gates=st.booleans(),
)
RUNS = st.lists(st.lists(RULES, max_size=3).map(lambda rules: run(*rules)), max_size=5)


@given(RUNS, st.randoms())
def test_the_order_of_trajectories_decides_nothing(runs: Sequence[TrajectoryReport], random: Any) -> None:
    shuffled = list(runs)
    random.shuffle(shuffled)
    assert exit_code(*runs) == exit_code(*shuffled)


@given(RUNS)
def test_green_means_that_nothing_failed_and_something_was_decided(runs: Sequence[TrajectoryReport]) -> None:
    if exit_code(*runs) == 0:
        counted = [r for t in runs for r in t.invariants if r.level == "error" and r.gates]
        assert not [r for r in counted if r.verdict in ("fail", "error")]
        assert [r for r in counted if r.verdict == "pass"]


@given(RUNS)
def test_one_more_trajectory_with_nothing_to_judge_changes_nothing(runs: Sequence[TrajectoryReport]) -> None:
    if runs:
        assert exit_code(*runs) == exit_code(*runs, run(rule("not_applicable")))


@given(RUNS)
def test_a_violation_more_is_never_better(runs: Sequence[TrajectoryReport]) -> None:
    assert exit_code(*runs, run(rule("fail"))) in (1, 2)

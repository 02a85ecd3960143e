"""End reasons, joins, attempts, root causes, and the toy store through spans."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.outcome.helpers import called, said, trajectory
from tracegrade.app.tasks import trial_grader
from tracegrade.app.trajectories import trajectories_from_paths
from tracegrade.errors import RuleFileError
from tracegrade.model.outcome import Outcome
from tracegrade.model.task import Task, Trial
from tracegrade.model.verdict import CheckResult, InvariantResult
from tracegrade.outcome.grade import grade
from tracegrade.outcome.grade_trials import GradedTrials, grade_trials
from tracegrade.outcome.trials import distinct_trials

STORE: dict[str, Any] = {"orders": {"#1": {"status": "open"}, "#2": {"status": "open"}}}
GOAL = [{"op": "replace", "path": "/orders/#1/status", "value": "cancelled"}]
OTHER = [{"op": "replace", "path": "/orders/#2/status", "value": "cancelled"}]
TASK = Task(id="t", initial=STORE, graders=[{"kind": "state", "goal": GOAL}])


def ended(reason: str | None, patch: Any = GOAL, path: Any = None, **task: Any) -> Outcome:
    trial = Trial(task_id="t", end_reason=reason, final_patch=patch)
    return grade(TASK.model_copy(update=task), trial, path)


# --- how a trial ended


@pytest.mark.parametrize("reason", ["not_ended", "agent_error", "budget", "user_error"])
def test_any_other_end_fails_even_where_the_state_is_right(reason: str) -> None:
    outcome = ended(reason)
    assert (outcome.verdict, outcome.reason) == ("fail", f"ended by {reason}")
    assert outcome.graders[0].verdict == "pass", "the graders still say what the state was"


def test_a_task_may_say_which_ends_fail() -> None:
    assert ended("budget", failing_end_reasons=["agent_error"]).verdict == "pass"
    assert ended("budget", OTHER, failing_end_reasons=["agent_error"]).verdict == "fail"


def test_an_infrastructure_error_is_excluded_whatever_the_state() -> None:
    assert ended("infrastructure_error").verdict == "excluded"
    assert ended("infrastructure_error", OTHER).verdict == "excluded"


def test_without_an_end_reason_a_root_that_ended_completes_it_and_else_it_is_unknown() -> None:
    assert ended(None, path=trajectory()).verdict == "pass"
    for path in (None, trajectory(root_ended=False), trajectory(root_ended=None)):
        outcome = ended(None, OTHER, path)
        assert (outcome.verdict, outcome.end_reason) == ("unknown", None), "never fail"


def test_a_benchmark_word_for_an_end() -> None:
    task = Task(id="t", benchmark="tau2-bench", initial=STORE, graders=[{"kind": "state", "goal": GOAL}])
    trial = Trial(task_id="t", final_patch=GOAL)
    for word, verdict in (("user_stop", "pass"), ("max_steps", "fail"), ("bogus", "error")):
        assert grade(task, trial.model_copy(update={"end_reason": word})).verdict == verdict


def test_no_grader_or_none_that_applies_is_unknown() -> None:
    assert ended("completed", graders=[]).verdict == "unknown"


def test_graders_combine_by_and_unless_the_task_says_any() -> None:
    graders = [{"kind": "state", "goal": GOAL}, {"kind": "recorded", "column": "missing"}]
    trial = Trial(task_id="t", end_reason="completed", final_patch=GOAL)
    failing = Trial(task_id="t", end_reason="completed", final_patch=OTHER)

    def verdict(trial: Trial, combine: str) -> str:
        return grade(Task(id="t", initial=STORE, graders=graders, combine=combine), trial).verdict

    assert (verdict(trial, "all"), verdict(failing, "all")) == ("unknown", "fail")
    assert (verdict(trial, "any"), verdict(failing, "any")) == ("pass", "unknown")


# --- which trial a trajectory is of


def graded(trials: list[Trial], *paths: Any) -> GradedTrials:
    return grade_trials({"t": TASK}, trials, [(p, ()) for p in paths])


def trial(number: Any = 0, **fields: Any) -> Trial:
    fields = {"task_id": "t", "final_patch": GOAL, **fields}
    return Trial(trial=number, **fields)


@pytest.mark.parametrize(
    ("join", "path"),
    [
        ({"trace_id": "A" * 32}, {"trace_ids": ("a" * 32, "b" * 32)}),
        ({"conversation_id": "c1"}, {"conversation_id": "c1"}),
        ({"match": {"run": 3, "env": "x"}}, {"attributes": {"run": "3", "env": "x", "other": 1}}),
        ({}, {"task_id": "t", "trial": "0"}),
    ],
)
def test_every_join(join: dict[str, Any], path: dict[str, Any]) -> None:
    stranger = trajectory(
        trajectory_id="stranger", trace_ids=("9" * 32,), conversation_id="c9", attributes={"run": "4"}
    )
    result = graded([trial(**join)], trajectory(**path), stranger)
    (one,) = result.trials
    assert (one.trajectory_id, one.outcome.verdict) == ("t", "pass")
    assert result.unmatched_trajectories == ("stranger",)
    assert result.unmatched_trials == ()


def test_trials_without_spans_are_listed_and_graded_from_their_snapshots() -> None:
    result = graded([trial(0, trace_id="a" * 32, end_reason="completed")])
    assert result.trials[0].outcome.verdict == "pass"
    (missing,) = result.unmatched_trials
    assert (missing.task_id, missing.trial, missing.looked_for) == ("t", 0, f"trace_id {'a' * 32}")


def test_task_and_trial_ids_may_stand_in_the_spans_alone() -> None:
    paths = [trajectory(trajectory_id=n, task_id="t", trial=n) for n in "01"] + [
        trajectory(trajectory_id="x", task_id="u")
    ]
    result = grade_trials({"t": TASK}, None, [(p, ()) for p in paths])
    assert [g.trial.key for g in result.trials] == [("t", "0"), ("t", "1")]
    assert result.unmatched_trajectories == ("x",)


def test_a_trial_with_two_trajectories_is_unknown_and_said() -> None:
    paths = [trajectory(trajectory_id=n, conversation_id="c", trace_ids=(n * 32,)) for n in "ab"]
    result = graded([trial(conversation_id="c")], *paths)
    assert result.trials[0].outcome.verdict == "unknown"
    assert [w.code for w in result.warnings] == ["several_trajectories"]


# --- the key and the attempts


def problems(*trials: Trial, tasks: Any = None) -> list[str]:
    with pytest.raises(RuleFileError) as caught:
        distinct_trials(trials, tasks or {"t": TASK}, [f"f:{i}" for i in range(1, len(trials) + 1)])
    return [str(p) for p in caught.value.problems]


def test_equal_copies_count_once_and_unequal_ones_are_an_error() -> None:
    kept, _ = distinct_trials([trial(0), trial(0), trial("1")], {"t": TASK}, ["a", "b", "c"])
    assert len(kept) == 2
    (first, second) = problems(trial(0), trial(0, seed=1), trial("0", seed=2))
    assert first.startswith("f:2: trial: task t, trial 0 stands at f:1 too")
    assert second.startswith("f:3: trial:")


def test_all_problems_of_trials_are_listed_at_once() -> None:
    found = problems(
        trial(0, trace_id="a" * 32),
        trial(1, trace_id="A" * 32),
        trial(2, task_id="tt"),
        trial(3, end_reason="completd"),
        trial(4, attempt=1),
        trial(4),
    )
    text = "\n".join(found)
    for expected in (
        "belongs to the trial at f:1",
        "no task `tt`",
        "Did you mean `t`",
        "Did you mean `completed`",
        "which one",
    ):
        assert expected in text
    assert len(found) == 4


def test_the_first_attempt_that_did_not_crash_counts() -> None:
    crash = {"end_reason": "infrastructure_error", "final_patch": []}
    done = {"end_reason": "completed"}
    result = graded([trial(0, attempt=2, **done), trial(0, attempt=1, **crash), trial(1, attempt=1, **crash)])
    assert [(g.trial.attempt, g.counted, g.outcome.verdict) for g in result.trials] == [
        (2, True, "pass"),
        (1, False, "excluded"),
        (1, True, "excluded"),
    ]
    assert (result.attempts, result.crashed, result.crash_rate) == (3, 2, pytest.approx(2 / 3))
    assert result.warnings == ()


def test_repeating_a_failure_is_the_rerun_trap() -> None:
    failed = trial(0, attempt=1, end_reason="completed", final_patch=[])
    result = graded([failed, trial(0, attempt=2, end_reason="completed")])
    assert [(g.counted, g.outcome.verdict) for g in result.trials] == [(True, "fail"), (False, "pass")]
    (warning,) = result.warnings
    assert (warning.code, "pass@2" in warning.message) == ("rerun_trap", True)


@given(st.permutations(range(4)))
def test_the_order_of_trajectories_changes_nothing(order: list[int]) -> None:
    paths = [trajectory(trajectory_id=str(i), trace_ids=(str(i) * 32,)) for i in range(4)]
    trials = [trial(i, trace_id=str(i) * 32, final_patch=[GOAL, OTHER, [], GOAL][i]) for i in range(4)]
    assert graded(trials, *(paths[i] for i in order)).trials == graded(trials, *paths).trials


# --- why a trial failed


def causes(patch: Any, *steps: Any, **fields: Any) -> list[str]:
    invariants = fields.pop("invariants", ())
    path = trajectory(*steps)
    outcome = grade(
        TASK, trial(0, **{"end_reason": "completed", "final_patch": patch, **fields}), path, invariants=invariants
    )
    assert outcome.verdict == "fail"
    return [c.category for c in outcome.root_causes]


def test_root_causes_by_the_stated_rules() -> None:
    look, cancel_other = called("get", {"id": "#1"}), called("cancel", {"id": "#2"})
    assert causes([], look, *said("I have cancelled order #1.")) == ["claim_without_action"]
    assert causes([], look, *said("Which order?")) == ["premature_stop"]
    assert causes(OTHER, cancel_other) == ["wrong_argument"]
    assert causes([*GOAL, *OTHER], cancel_other) == ["extra_action"]
    wrong = [{"op": "replace", "path": "/orders/#1/status", "value": "returned"}]
    assert causes(wrong, called("set_status", {"id": "#1", "status": "returned"})) == ["wrong_argument"]
    elsewhere = [{"op": "add", "path": "/orders/#1/note", "value": "cancel"}]
    assert causes(elsewhere, called("add_note", {"id": "#1"})) == ["wrong_tool"]
    assert causes(wrong, called("x")) == ["unclassified"]


def test_root_causes_by_end_rules_and_environment() -> None:
    assert causes(GOAL, end_reason="budget") == ["over_budget"]
    assert causes(GOAL, end_reason="user_error") == ["user_or_simulator_error"]
    broken = InvariantResult("ask-first", "precedes", "error", ("policy",), CheckResult("fail"))
    assert causes([*GOAL, *OTHER], invariants=[broken]) == ["policy_violation", "extra_action"]
    down = called(
        "cancel", {"id": "#1"}, status="error", status_evidence="error.type", result="503 Service Unavailable"
    )
    assert causes([], down, *said("Sorry.")) == ["environment_error", "premature_stop"]
    liar = InvariantResult("did-it", "claims", "error", (), CheckResult("fail"))
    assert causes([], *said("Annulé."), invariants=[liar]) == ["claim_without_action"]


def test_a_near_miss_is_one_line_of_evidence() -> None:
    outcome = grade(TASK, trial(0, end_reason="completed", final_patch=[*GOAL, *OTHER]))
    assert outcome.near_miss == "side_effect at orders.#2.status: expected 'open', observed 'cancelled'"
    twice = grade(TASK, trial(0, end_reason="completed", final_patch=OTHER))
    assert twice.near_miss is None


# --- the toy store


def test_the_toy_store(repo_root: Path) -> None:
    folder = repo_root / "fixtures" / "toy-store"
    grader, tasks, _ = trial_grader(folder / "tasks.yaml", folder / "trials.yaml")
    for found in trajectories_from_paths([str(folder / "traces.otlp.jsonl")]):
        assert grader.add(found) is not None
    outcomes = {g.trial.trial: g.outcome for g in grader.finish().trials}
    assert {name: o.verdict for name, o in outcomes.items()} == {
        "right": "pass",
        "nothing": "fail",
        "claims": "fail",
        "both": "fail",
    }
    kinds = {name: [d.kind for g in o.graders for d in g.differences] for name, o in outcomes.items()}
    assert kinds == {
        "right": [],
        "nothing": ["missing_change"] * 2,
        "claims": ["missing_change"] * 2,
        "both": ["side_effect"] * 2,
    }
    assert [g.verdict for g in outcomes["claims"].graders] == ["fail", "pass"]
    assert outcomes["claims"].root_causes[0].category == "claim_without_action"
    assert outcomes["both"].root_causes[0].category == "extra_action"
    assert list(tasks.tasks) == ["cancel-order"]

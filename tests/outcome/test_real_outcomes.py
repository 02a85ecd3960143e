"""Recorded trials whose grades others gave: ours are the same, trial by trial, through spans, states and outputs."""

from __future__ import annotations

import csv
import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tracegrade.app.states import RecordedStates
from tracegrade.app.trajectories import trajectories_from_paths
from tracegrade.model.task import StateRef, Task, Trial
from tracegrade.outcome.check_tasks import check_tasks
from tracegrade.outcome.grade import grade
from tracegrade.outcome.grade_trials import GradedTrials, TrialGrader

FOLDERS = ("tau1-airline-gpt4o", "tau1-retail-gpt41mini", "tau1-retail-toolcalling", "tau1-retail-scripted")
TABLE = {
    # folder: trials, passes by the full state alone, by the goal's fields alone, officially
    "tau1-airline-gpt4o": (200, 88, 119, 84),
    "tau1-retail-gpt41mini": (115, 80, 81, 76),
    "tau1-retail-toolcalling": (100, 77, 79, 73),
    "tau1-retail-scripted": (1265, 617, 736, 572),
}


def records(folder: Path) -> list[dict[str, Any]]:
    with gzip.open(folder / "snapshots.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def task_of(record: dict[str, Any], base: Path, *, outputs: bool = True, **state: Any) -> Task:
    graders: list[dict[str, Any]] = [{"kind": "state", "goal": record["goal_patch"], **state}]
    if outputs and record["required_outputs"]:
        graders.append({"kind": "outputs", "expected": record["required_outputs"]})
    initial = StateRef(record["initial"], str(base))
    return Task(id=record["task_id"], benchmark="tau-bench", initial=initial, graders=graders)


def trial_of(record: dict[str, Any]) -> Trial:
    return Trial(
        task_id=record["task_id"],
        trial=f"{record.get('agent', '')}{record['trial']}",
        trace_id=record["trace_id"],
        end_reason="completed" if record.get("ended", True) else "not_ended",
        final_patch=record["final_patch"],
    )


def graded(folder: Path, states: RecordedStates) -> tuple[GradedTrials, dict[str, float]]:
    found = records(folder)
    tasks = {r["task_id"]: task_of(r, folder.parent) for r in found}
    grader = TrialGrader(tasks, [trial_of(r) for r in found], states)
    for trajectory in trajectories_from_paths([str(folder / "traces.jsonl.gz")]):
        assert grader.add(trajectory) is not None
    return grader.finish(), {r["trace_id"]: r["official_reward"] for r in found}


@pytest.mark.parametrize("name", FOLDERS)
def test_every_outcome_equals_the_official_reward(shared: Path, name: str) -> None:
    result, official = graded(shared / "real" / name, RecordedStates())
    assert len(result.trials) == TABLE[name][0]
    assert (result.unmatched_trials, result.unmatched_trajectories, result.warnings) == ((), (), ())
    verdicts = {g.trial.trace_id: g.outcome.verdict for g in result.trials}
    assert set(verdicts.values()) <= {"pass", "fail"}
    wrong = {t: (v, official[str(t)]) for t, v in verdicts.items() if (v == "pass") != (official[str(t)] == 1.0)}
    assert wrong == {}


@pytest.mark.parametrize("name", FOLDERS)
def test_full_state_and_goal_fields_alone(shared: Path, name: str) -> None:
    """Why `scope: full` is the default: looking at the goal's fields alone passes what broke something else."""
    states = RecordedStates()
    counts: Counter[str] = Counter()
    for record in records(shared / "real" / name):
        trial = trial_of(record).model_copy(update={"end_reason": "completed"})
        for scope in ("full", "goal"):
            task = task_of(record, shared / "real", outputs=False, scope=scope)
            counts[scope] += grade(task, trial, source=states).verdict == "pass"
        counts["official"] += record["official_reward"] == 1.0
    _, full, goal, official = TABLE[name]
    assert (counts["full"], counts["goal"], counts["official"]) == (full, goal, official)


@pytest.mark.parametrize(
    ("name", "do_nothing", "tasks"), [("tau1-airline-gpt4o", 19, 50), ("tau1-retail-gpt41mini", 7, 115)]
)
def test_the_floors_of_doing_nothing(shared: Path, name: str, do_nothing: int, tasks: int) -> None:
    found = {r["task_id"]: task_of(r, shared / "real") for r in records(shared / "real" / name)}
    check = check_tasks(found.values(), RecordedStates())
    floor = check.floors()["do_nothing"]
    assert (floor["passed"], floor["tasks"], len(floor["task_ids"])) == (do_nothing, tasks, do_nothing)
    assert check.broken == []


def test_the_floor_of_only_claiming_is_what_the_scripted_agent_got(shared: Path) -> None:
    found = records(shared / "real" / "tau1-retail-scripted")
    tasks = {r["task_id"]: task_of(r, shared / "real") for r in found}
    claimed = {r["task_id"] for r in found if r["agent"] == "claim_only" and r["official_reward"] == 1.0}
    assert set(check_tasks(tasks.values(), RecordedStates()).floors()["claim_only"]["task_ids"]) == claimed


@pytest.mark.parametrize("name", ["tau2-airline", "tau2-airline-2trials", "tau2-multitrial", "tau2-retail40"])
def test_recorded_parts_give_the_official_reward(shared: Path, name: str) -> None:
    """τ² trials: the product over the parts of `reward_basis`, 0 unless user or agent ended the conversation."""
    with (shared / "real" / name / "outcomes.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        parts = json.loads(row["breakdown"])
        basis = row["reward_basis"].split("|") if row["reward_basis"] else ["DB"]
        graders = [{"kind": "recorded", "column": part} for part in basis]
        task = Task(id=row["task_id"], benchmark="tau2-bench", graders=graders)
        trial = Trial(task_id=row["task_id"], trial=row["trial"], end_reason=row["termination"], labels=parts)
        assert (grade(task, trial).verdict == "pass") == (float(row["official_reward"]) == 1.0), row

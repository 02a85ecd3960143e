"""Recorded calls executed again: states and results, noise, what cannot be replayed, real tools only on request."""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.replay.airline_environment import environment as airline
from tests.replay.conftest import STATE
from tracegrade.app.check import CheckOptions, run_check
from tracegrade.app.replay_mcp import allowed_tools
from tracegrade.app.replay_tools import ToolsOptions, replay_tools
from tracegrade.app.trajectories import trajectories_from_paths
from tracegrade.errors import UsageError
from tracegrade.model.replay import ToolsReport, replay_tools_schema
from tracegrade.model.values import json_equal
from tracegrade.outcome.load import load_tasks, load_trials
from tracegrade.outcome.patch import apply
from tracegrade.replay.rerun import recorded_calls, rerun, state_patch


@pytest.fixture
def tasks(tmp_path: Path, recording: Path) -> tuple[Path, Path]:
    """A task and a trial of the recorded conversation."""
    goal = [{"op": "replace", "path": ["orders", "W1", "status"], "value": "cancelled"}]
    trace = next(iter(trajectories_from_paths([str(recording)]))).trace_ids[0]
    task = {"id": "cancel", "initial": STATE, "graders": [{"kind": "state", "goal": goal}]}
    trial = {"task_id": "cancel", "trial": 0, "trace_id": trace, "final_patch": goal, "end_reason": "completed"}
    paths = tmp_path / "tasks.json", tmp_path / "trials.json"
    for path, key, value in zip(paths, ("tasks", "trials"), (task, trial), strict=True):
        path.write_text(json.dumps({"version": 1, key: [value]}))
    return paths


def run(recording: Path, environment: str, tasks: tuple[Path, Path], **options: Any) -> ToolsReport:
    report = replay_tools(
        ToolsOptions(
            environment=f"shop_environment:{environment}",
            paths=[str(recording)],
            tasks=tasks[0],
            trials=tasks[1],
            processes=1,
            **options,
        )
    )
    jsonschema.validate(json.loads(report.model_dump_json()), replay_tools_schema())
    return report


def test_the_right_environment_gives_what_was_recorded(
    recording: Path, tasks: tuple[Path, Path], here: Path, tmp_path: Path
) -> None:
    out = tmp_path / "replayed.jsonl"
    report = run(recording, "Shop", tasks, repeats=3, out=out)
    trial = report.trials[0]
    assert report.exit_code == 0
    assert (trial.status, trial.final_equal, trial.stable, trial.differences) == ("replayed", True, True, ())
    assert [c.verdict for c in trial.calls] == ["same"] * 3
    assert trial.outcomes == ("pass",) * 3
    assert (report.noise.trials, report.noise.unstable_states, report.noise.grader_disagreements) == (1, 0, 0)
    checked = run_check(CheckOptions(paths=[str(recording)], tasks=str(tasks[0]), trials=str(out)))
    assert [t.outcome.verdict for t in checked.trials if t.outcome] == ["pass"]


def test_an_environment_that_drifted(recording: Path, tasks: tuple[Path, Path], here: Path) -> None:
    report = run(recording, "drifted", tasks)
    trial = report.trials[0]
    assert report.exit_code == 1
    assert report.drifted == {"cancel_order": 1, "get_order": 1}
    assert trial.calls[1].message == "at total: recorded 54.04, now 99"
    assert (trial.final_equal, trial.differences) == (False, ('orders/W1/status: replace "void"',))
    assert trial.outcomes == ("fail",)
    assert trial.stable is None


def test_noise_is_the_environments_alone(recording: Path, tasks: tuple[Path, Path], here: Path) -> None:
    report = run(recording, "noisy", tasks, repeats=4)
    trial = report.trials[0]
    assert trial.stable is False
    assert trial.unstable[0] == "the final state"
    assert "`cancel_order`" in trial.unstable[1]
    assert (report.noise.unstable_states, report.noise.unstable_results, report.exit_code) == (1, 1, 1)


@pytest.mark.parametrize(
    ("environment", "status", "message"),
    [
        ("incomplete", "miss", "no tool `cancel_order`"),
        ("crashing", "crash", "process ended"),
        ("hanging", "timeout", "0.5 s"),
    ],
)
def test_a_replay_that_fails_is_no_score(
    recording: Path, tasks: tuple[Path, Path], here: Path, environment: str, status: str, message: str
) -> None:
    report = run(recording, environment, tasks, limit_s=0.5 if environment == "hanging" else 20)
    trial = report.trials[0]
    assert (trial.status, trial.final_equal, trial.outcomes, report.exit_code) == (status, None, (), 2)
    assert message in trial.message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "one of --environment"),
        ({"environment": "a:b", "mcp": ["x"]}, "one of --environment"),
        ({"environment": "shop_environment:Shop"}, "initial states"),
        ({"environment": "shop_environment:nothing", "initial": "state.json"}, "returned int"),
        ({"environment": "shop_environment:nowhere", "initial": "state.json"}, "has no `nowhere`"),
        ({"environment": "shop_environment:Shop", "initial": "state.json", "repeats": 0}, "--repeats 0"),
    ],
)
def test_options_that_cannot_be(
    recording: Path, here: Path, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    (tmp_path / "state.json").write_text(json.dumps(STATE))
    if "initial" in options:
        options = {**options, "initial": tmp_path / options["initial"]}
    with pytest.raises(UsageError, match=message):
        replay_tools(ToolsOptions(paths=[str(recording)], processes=1, **options))


def test_one_initial_state_for_all(recording: Path, here: Path, tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text(json.dumps(STATE))
    options = ToolsOptions("shop_environment:Shop", [str(recording)], initial=tmp_path / "state.json", processes=1)
    trial = replay_tools(options).trials[0]
    assert (trial.status, trial.final_equal) == ("replayed", None)


def test_what_cannot_be_replayed_says_why(recording: Path) -> None:
    whole = next(iter(trajectories_from_paths([str(recording)])))
    calls, reason = recorded_calls(whole)
    assert (len(calls), reason) == (3, None)

    def changed(**fields: Any) -> Any:
        steps = [replace(s, **fields) if s.tool == "get_order" else s for s in whole.steps]
        return recorded_calls(replace(whole, steps=tuple(steps)))

    for fields, why in (
        ({"executed": None}, "whether call"),
        ({"arguments_state": "not_captured"}, "not captured"),
        ({"arguments_state": "truncated"}, "truncated"),
        ({"status": "unfinished"}, "did not end"),
    ):
        assert changed(**fields)[0] == []
        assert why in changed(**fields)[1]
    assert len(changed(executed=False)[0]) == 2
    assert len(changed(prior=True)[0]) == 2
    assert "not complete" in str(recorded_calls(replace(whole, complete=False))[1])


def test_a_patch_turns_one_state_into_the_other() -> None:
    before = {"a": {"b": 1, "c": [1, 2]}, "d": None, "e": {"f": 1}}
    after = {"a": {"b": True, "c": [1]}, "d": {}, "g": 2**70}
    patch = state_patch(before, after)
    from tracegrade.model.task import Trial

    ops = Trial(task_id="t", final_patch=patch).final_patch
    assert ops is not None
    assert json_equal(apply(before, ops), after)
    assert state_patch(after, after) == []


# ---------------------------------------------------------------------- an MCP server


def test_real_tools_run_only_if_allowed(recording: Path, here: Path) -> None:
    server = [sys.executable, str(here / "shop_server.py")]
    options = ToolsOptions(paths=[str(recording)], mcp=server, processes=1)
    with pytest.raises(UsageError, match="--allow"):
        replay_tools(options)
    refused = replay_tools(replace(options, allow=["get_*", "verify_identity"]))
    assert (refused.trials[0].status, refused.exit_code) == ("miss", 2)
    report = replay_tools(replace(options, allow=["*"]))
    calls = report.trials[0].calls
    assert [c.verdict for c in calls] == ["same", "same", "different"]
    assert "raises ToolFailed" in calls[2].message
    assert report.environment.endswith("shop_server.py")


def test_the_user_is_asked_once_for_each_tool() -> None:
    asked: list[str] = []
    permitted = allowed_tools(["b", "a", "b"], [], lambda name: (asked.append(name), name == "a")[1])
    assert (permitted, asked) == (["a"], ["a", "b"])


def test_a_server_that_is_none(recording: Path) -> None:
    for command, message in ((["/no/such/server"], "cannot be run"), ([sys.executable, "-c", "print('hello')"], "MCP")):
        options = ToolsOptions(paths=[str(recording)], mcp=command, allow=["*"], processes=1)
        with pytest.raises(UsageError, match=message):
            replay_tools(options)


# ---------------------------------------------------------------------- a real benchmark


TOOLS = frozenset(airline({"reservations": {}, "users": {}, "flights": {}}))
FOLDER = "tau1-airline-gpt4o"


@pytest.fixture(scope="module")
def airline_trials(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, list[Any]]:
    """Tasks and trials of the trajectories that use only the tools of our environment."""
    folder = tmp_path_factory.mktemp("airline")
    (folder / "states").symlink_to(shared / "real" / "states")
    spans = shared / "real" / FOLDER / "traces.jsonl.gz"
    found = [t for t in trajectories_from_paths([str(spans)]) if {c.tool for c in t.calls()} <= TOOLS]
    traces = {t.trace_ids[0] for t in found}
    with gzip.open(shared / "real" / FOLDER / "snapshots.jsonl.gz", "rt") as lines:
        records = [r for r in map(json.loads, lines) if r["trace_id"] in traces]
    tasks = {
        r["task_id"]: {
            "id": r["task_id"],
            "initial": r["initial"],
            "graders": [{"kind": "state", "goal": r["goal_patch"]}],
        }
        for r in records
    }
    trials = [
        {"end_reason": "completed", **{k: r[k] for k in ("task_id", "trial", "trace_id", "final_patch")}}
        for r in records
    ]
    paths = folder / "tasks.json", folder / "trials.json"
    paths[0].write_text(json.dumps({"tasks": list(tasks.values())}))
    paths[1].write_text(json.dumps({"trials": trials}))
    return (*paths, found)


def replayed_finals(trials: tuple[Path, Path, list[Any]], shared: Path, step: int) -> Counter[bool]:
    tasks = load_tasks(trials[0])
    initial = gzip.decompress(next((shared / "real" / "states").glob("965721fe*")).read_bytes())
    state = json.loads(initial)
    recorded = {t.trace_id: t for t in load_trials(trials[1], tasks.tasks).trials}
    equal: Counter[bool] = Counter()
    for trajectory in trials[2][::step]:
        calls, reason = recorded_calls(trajectory)
        assert reason is None
        final = apply(state, recorded[trajectory.trace_ids[0]].final_patch or ())
        found = rerun(calls, initial, airline, final)
        assert {c.verdict for c in found.calls} <= {"same"}, trajectory.trajectory_id
        equal[found.differs == ()] += 1
    return equal


def test_replayed_states_equal_the_recorded_finals(airline_trials: Any, shared: Path) -> None:
    equal = replayed_finals(airline_trials, shared, 6)
    assert equal == {True: 20}


@pytest.mark.slow
def test_every_replayed_state_equals_the_recorded_final(airline_trials: Any, shared: Path) -> None:
    assert replayed_finals(airline_trials, shared, 1) == {True: 115}


def test_five_repeats_have_no_noise(airline_trials: Any, shared: Path, here: Path, tmp_path: Path) -> None:
    few = tmp_path / "trials.json"
    trials = json.loads(airline_trials[1].read_text())["trials"]
    changing = [t for t in trials if t["final_patch"]][:4]
    few.write_text(json.dumps({"trials": changing}))
    tasks = tmp_path / "tasks.json"
    tasks.symlink_to(airline_trials[0])
    (tmp_path / "states").symlink_to(shared / "real" / "states")
    spans = tmp_path / "spans.jsonl"
    wanted = {t["trace_id"] for t in changing}
    with gzip.open(shared / "real" / FOLDER / "traces.jsonl.gz", "rt") as lines:
        spans.write_text("".join(x for x in lines if any(f'"{w}"' in x for w in wanted)))
    report = replay_tools(
        ToolsOptions("airline_environment:environment", [str(spans)], tasks=tasks, trials=few, repeats=5, limit_s=120)
    )
    assert Counter(t.status for t in report.trials) == {"replayed": 4}
    assert all(t.final_equal and t.stable for t in report.trials)
    noise = report.noise
    assert (noise.repeats, noise.trials) == (5, 4)
    assert (noise.unstable_states, noise.unstable_results, noise.unstable_outcomes, noise.grader_disagreements) == (
        0,
        0,
        0,
        0,
    )
    assert report.exit_code == 0

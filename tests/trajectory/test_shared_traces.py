"""Spans of real stacks against what their tools and their server logged (the manifest beside them)."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tracegrade.app.trajectories import TrajectoryOptions, trajectories_from_paths
from tracegrade.model.trajectory import Step, Trajectory
from tracegrade.model.values import json_equal

TRACES = Path(os.environ.get("TRACEGRADE_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "traces"
STACKS: dict[str, Any] = json.loads((TRACES / "MANIFEST.json").read_text())["stacks"] if TRACES.is_dir() else {}
RUNS = [(stack, behaviour) for stack, entry in STACKS.items() for behaviour in entry["behaviours"]]
NO_CALLS_AT_ALL = {"genai-smolagents"}
"""Stacks whose export shows no tool call anywhere (DIALECTS §3.1)."""
REASONING_TWICE = {"google-adk-schema1"}
"""LiteLLM under the ADK adds reasoning tokens to the output tokens again (DIALECTS §3.10)."""


@functools.lru_cache(maxsize=256)
def trajectories(stack: str, behaviour: str, kind: str) -> list[Trajectory]:
    files = STACKS[stack]["behaviours"][behaviour]["files"]
    ending = ".pb" if kind == "protobuf" else ".jsonl"
    paths = [str(TRACES / f) for f in files.values() if f.endswith(ending)]
    return sorted(trajectories_from_paths(paths), key=lambda t: t.start_ns or 0)


def calls_of(found: list[Trajectory]) -> list[Step]:
    return [c for t in found for c in t.calls() if not c.prior]


def plain(trajectory: Trajectory) -> list[Any]:
    return [
        (s.kind, s.name, s.call_id, s.arguments, s.arguments_state, s.result, s.status, s.turn, s.text, s.span_ids)
        for s in trajectory.steps
    ]


@pytest.fixture(params=RUNS or [("absent", "absent")], ids="/".join)
def run(request: pytest.FixtureRequest, shared: Path) -> tuple[str, str, dict[str, Any], list[Trajectory]]:
    stack, behaviour = request.param
    return stack, behaviour, STACKS[stack]["behaviours"][behaviour], trajectories(stack, behaviour, "protobuf")


def test_calls_equal_what_the_tools_logged(run: tuple[str, str, dict[str, Any], list[Trajectory]]) -> None:
    stack, _, entry, found = run
    truth = entry["true_tool_calls"]
    calls = calls_of(found)
    if stack in NO_CALLS_AT_ALL:
        assert calls == []
        assert all("calls_not_recorded" in {g.code for g in t.gaps} and not t.complete for t in found)
        return
    content = entry["content"]
    recorded = any(content.get(k) for k in ("arguments_on_tool_spans", "arguments_in_llm_spans", "arguments_in_logs"))
    # Calls of one turn may start in another order than the tools logged: the order of parallel calls is no truth.
    key = (lambda c: (c[0], json.dumps(c[1], sort_keys=True))) if run[1] == "parallel" else None
    got = [(c.tool, c.arguments) for c in calls]
    want = [(t["name"], t["arguments"] if recorded else None) for t in truth]
    if key is not None:
        got, want = sorted(got, key=key), sorted(want, key=key)
    assert len(got) == len(want)
    for mine, true in zip(got, want, strict=True):
        assert json_equal(list(mine), list(true))
    if not recorded:
        assert {c.arguments_state for c in calls} <= {"not_captured"}


def test_results_and_status(run: tuple[str, str, dict[str, Any], list[Trajectory]]) -> None:
    stack, behaviour, entry, found = run
    if stack in NO_CALLS_AT_ALL or behaviour == "parallel":
        return
    for call, true in zip(calls_of(found), entry["true_tool_calls"], strict=True):
        if call.result_state == "captured" and true["error"] is None:
            assert json_equal(call.result, true["result"]), call
        if call.status is not None:
            assert (call.status == "error") == (true["error"] is not None), call


def test_tokens_equal_what_the_server_returned(run: tuple[str, str, dict[str, Any], list[Trajectory]]) -> None:
    stack, _, entry, found = run
    totals = entry["llm_totals"]
    for ours, theirs in (("input_tokens", "input_tokens"), ("output_tokens", "output_tokens")):
        values = [v for t in found if (v := getattr(t.usage, ours)) is not None]
        if not values:
            continue
        if stack in REASONING_TWICE and ours == "output_tokens":
            assert sum(values) == totals[theirs] + totals["reasoning_tokens"]
            assert any("reasoning_counted_twice" in {w.code for w in t.warnings} for t in found)
        else:
            assert sum(values) == totals[theirs]
    for ours, theirs in (("cache_read_tokens", "cached_tokens"), ("reasoning_tokens", "reasoning_tokens")):
        values = [v for t in found if (v := getattr(t.usage, ours)) is not None]
        assert not values or sum(values) in (totals[theirs], 0)


def test_both_file_formats_agree(run: tuple[str, str, dict[str, Any], list[Trajectory]]) -> None:
    stack, behaviour, _, found = run
    again = trajectories(stack, behaviour, "json")
    assert [plain(t) for t in found] == [plain(t) for t in again]
    assert [t.usage for t in found] == [t.usage for t in again]


def test_a_client_library_in_a_loop_joins_by_messages(shared: Path) -> None:
    stack = "openinference-openai-noparent"
    for behaviour, entry in STACKS[stack]["behaviours"].items():
        paths = [str(TRACES / f) for f in entry["files"].values() if f.endswith(".pb")]
        (found,) = trajectories_from_paths(paths, TrajectoryOptions(group_by="messages"))
        truth = entry["true_tool_calls"]
        key = lambda c: json.dumps(c, sort_keys=True)  # noqa: E731
        assert sorted(([c.tool, c.arguments] for c in found.calls()), key=key) == sorted(
            ([t["name"], t["arguments"]] for t in truth), key=key
        ), behaviour
        assert all(c.result_state == "captured" and c.executed for c in found.calls()), behaviour

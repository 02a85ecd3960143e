"""Every input case of the shared folder: trajectories, calls, usage, counts and warnings as its answer says."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tracegrade.app.load import load
from tracegrade.app.trajectories import iter_trajectories
from tracegrade.model.trajectory import Trajectory
from tracegrade.model.values import json_equal
from tracegrade.store import Store

SHARED = Path(os.environ.get("TRACEGRADE_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "cases"
CASES = sorted(p.name for p in SHARED.iterdir() if p.is_dir()) if SHARED.is_dir() else []


def read(folder: Path) -> tuple[dict[str, Any], Any, list[Trajectory]]:
    expected = json.loads((folder / "expected.json").read_text())
    with Store.open(None) as store:
        report = load(store, [str(folder / name) for name in expected["input"]])
        return expected, report, list(iter_trajectories(store))


@pytest.fixture(params=CASES or ["absent"])
def case(request: pytest.FixtureRequest, shared: Path) -> tuple[dict[str, Any], Any, list[Trajectory]]:
    return read(shared / "cases" / request.param)


def steps_of(trajectory: Trajectory) -> list[int]:
    """`step` of the answers: the turn, or, where none is recorded, what overlaps."""
    calls = trajectory.calls()
    numbers: dict[Any, int] = {}
    found = []
    end = -1
    for call in calls:
        key: Any = ("turn", call.turn)
        if call.turn is None:
            if call.start_ns is not None and call.start_ns >= end:
                numbers[("time", call.seq)] = len(numbers)
                key = ("time", call.seq)
            else:
                key = next(reversed(numbers))
            end = max(end, call.end_ns or 0)
        found.append(numbers.setdefault(key, len(numbers)))
    return found


def test_tool_calls(case: tuple[dict[str, Any], Any, list[Trajectory]]) -> None:
    expected, _, trajectories = case
    by_trace = {t.trace_ids[0]: t for t in trajectories}
    for wanted in expected.get("trajectories", []):
        trajectory = by_trace[wanted["trace_id"]]
        if "complete" in wanted:
            assert trajectory.complete is wanted["complete"]
        calls = trajectory.calls()
        assert [c.tool for c in calls] == [c["tool"] for c in wanted["tool_calls"]]
        for call, answer, step in zip(calls, wanted["tool_calls"], steps_of(trajectory), strict=True):
            for name, value in answer.items():
                if name == "step":
                    assert step == value, (call.tool, call.call_id)
                else:
                    assert json_equal(getattr(call, name), value), (call.call_id, name, getattr(call, name), value)


def test_usage(case: tuple[dict[str, Any], Any, list[Trajectory]]) -> None:
    expected, _, trajectories = case
    if "tokens" not in expected:
        pytest.skip("the shared case says nothing of tokens")
    tokens = expected["tokens"]
    names = {
        "input": "input_tokens",
        "output": "output_tokens",
        "cache_read": "cache_read_tokens",
        "cache_creation": "cache_write_tokens",
        "model_calls": "model_calls",
        "calls_without_usage": "calls_without_usage",
    }
    for name, value in tokens.items():
        if name == "complete":
            assert all(t.usage.complete for t in trajectories) is value
        else:
            assert sum(getattr(t.usage, names[name]) or 0 for t in trajectories) == value, name


def test_counts_and_warnings(case: tuple[dict[str, Any], Any, list[Trajectory]]) -> None:
    expected, report, trajectories = case
    spans = expected.get("spans", {})
    found = {
        "read": report.spans_read,
        "distinct": report.spans_distinct,
        "duplicates_dropped": report.duplicates_dropped,
        "with_missing_parent": sum(g.count for t in trajectories for g in t.gaps if g.code == "orphan_spans"),
    }
    for name, value in spans.items():
        if name in found:
            assert found[name] == value, name
    said = [g.message for t in trajectories for g in (*t.gaps, *t.warnings)]
    for warning in expected.get("warnings", []):
        for text in warning["must_mention"]:
            assert any(text in message or text[:8] in message for message in said), (text, said)

"""The neutral rule forms of the shared cases, translated into rules and graded on the cases' own spans."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tracegrade.app.trajectories import TrajectoryOptions, trajectories_from_paths
from tracegrade.checks.load import parse_pack
from tracegrade.checks.run import run_checks
from tracegrade.model.trajectory import Trajectory

CASES = Path(os.environ.get("TRACEGRADE_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "cases"


def translate(form: dict[str, Any]) -> dict[str, Any]:
    """One neutral form as a rule."""
    [(name, value)] = form.items()
    if name == "before":
        return {"kind": "precedes", "first": {"tool": value[0]}, "then": {"tool": value[1]}}
    if name == "never":
        return {"kind": "forbidden", "action": {"tool": value}}
    if name == "must_call":
        return {"kind": "required", "action": {"tool": value, "status": ["ok", "error", "unfinished"]}}
    if name == "at_most":
        status = {"status": "ok"} if value["status"] == "ok" else {}
        return {"kind": "count", "action": {"tool": value["tool"], **status}, "max": value["n"]}
    if name == "never_args":
        matcher = {value["op"]: value["value"]}
        return {"kind": "forbidden", "action": {"tool": value["tool"], "args": {value["arg"]: matcher}}}
    if name in ("exact_sequence", "in_order"):
        mode = "exact" if name == "exact_sequence" else "in_order"
        return {"kind": "sequence", "mode": mode, "steps": [{"tool": t} for t in value]}
    if name == "same_step":
        return {"kind": "same_turn", "actions": [{"tool": value["tool"]}], "n": value["n"]}
    assert name == "all_ok", name
    return {"kind": "forbidden", "action": {"status": "error"}}


def cases() -> list[tuple[str, str, dict[str, Any]]]:
    """(case, trace id or empty, rule) for every rule of every case."""
    found: list[tuple[str, str, dict[str, Any]]] = []
    for path in sorted(CASES.glob("*/expected.json")):
        expected = json.loads(path.read_text())
        found += [(path.parent.name, "", rule) for rule in expected.get("rules", [])]
        for trajectory in expected.get("trajectories", []):
            found += [(path.parent.name, trajectory["trace_id"], rule) for rule in trajectory.get("rules", [])]
    return found


def test_the_cases_are_there(shared: Path) -> None:
    assert len(cases()) >= 10


@pytest.mark.parametrize(("case", "trace", "rule"), cases(), ids=lambda v: v if isinstance(v, str) else v["id"])
def test_rule_of_a_case(case: str, trace: str, rule: dict[str, Any]) -> None:
    expected = json.loads((CASES / case / "expected.json").read_text())
    paths = [str(CASES / case / name) for name in expected["input"]]
    options = TrajectoryOptions(group_by=expected.get("group_by", "auto"))
    read: list[Trajectory] = [t for t in trajectories_from_paths(paths, options) if trace in ("", *t.trace_ids)]
    assert read
    pack = {"version": 1, "pack": "p", "invariants": [{"id": "x", **translate(rule["form"])}]}
    rules = parse_pack(json.dumps(pack)).invariants
    for trajectory in read:
        [result] = run_checks(trajectory, rules)
        accepted = {rule["verdict"], rule.get("or_accept", rule["verdict"])}
        assert result.result.verdict in accepted, (rule, result.result.findings)

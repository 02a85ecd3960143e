"""The rules of the shared input cases, translated from their neutral forms into the language of invariants.

Left out: `comparisons` (state, tests/outcome) and `pass_hat_k` (tests/score).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.trajectory.test_shared_cases import CASES, SHARED, read
from tracegrade.checks.load import parse_pack
from tracegrade.checks.run import run_checks
from tracegrade.model.trajectory import Trajectory


def translate(form: dict[str, Any]) -> dict[str, Any]:
    ((name, value),) = form.items()
    if name == "before":
        first, then = value
        return {"kind": "precedes", "first": {"tool": first}, "then": {"tool": then}}
    if name == "never":
        return {"kind": "forbidden", "action": {"tool": value}}
    if name == "must_call":
        return {"kind": "required", "action": {"tool": value}}
    if name == "at_most":
        pattern: dict[str, Any] = {"tool": value["tool"]}
        if value.get("status") == "ok":
            pattern["status"] = "ok"
        return {"kind": "count", "action": pattern, "max": value["n"]}
    if name == "never_args":
        pattern = {"tool": value["tool"], "args": {value["arg"]: {value["op"]: value["value"]}}}
        return {"kind": "forbidden", "action": pattern}
    if name in ("exact_sequence", "in_order"):
        mode = "exact" if name == "exact_sequence" else "in_order"
        return {"kind": "sequence", "steps": [{"tool": t} for t in value], "mode": mode, "args": "ignore"}
    if name == "same_step":
        return {"kind": "same_turn", "actions": [{"tool": value["tool"]}], "n": value["n"]}
    if name == "all_ok":
        return {"kind": "forbidden", "action": {"tool": "*", "status": "error"}}
    raise NotImplementedError(name)


def rules() -> list[tuple[str, str | None, dict[str, Any]]]:
    found = []
    for case in CASES:
        expected = json.loads((SHARED / case / "expected.json").read_text())
        found += [(case, None, r) for r in expected.get("rules", [])]
        found += [(case, t["trace_id"], r) for t in expected.get("trajectories", []) for r in t.get("rules", [])]
    return found


def verdicts(trajectories: list[Trajectory], form: dict[str, Any]) -> set[str]:
    rule = {"id": "rule", "why": "the case says so", **translate(form)}
    pack = parse_pack(yaml.safe_dump({"version": 1, "pack": "case", "invariants": [rule]}))
    return {run_checks(t, pack.invariants)[0].result.verdict for t in trajectories}


@pytest.mark.parametrize(("case", "trace", "rule"), rules() or [("absent", None, {})])
def test_rules_give_the_right_verdict(case: str, trace: str | None, rule: dict[str, Any], shared: Path) -> None:
    _, _, trajectories = read(shared / "cases" / case)
    if trace is not None:
        trajectories = [t for t in trajectories if trace in t.trace_ids]
    assert verdicts(trajectories, rule["form"]) == {rule["verdict"]}

"""One behaviour, one verdict: whichever instrumentation recorded it, or `unknown` naming what it did not record."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trajectory.test_shared_traces import STACKS, trajectories
from tracegrade.checks.load import parse_pack
from tracegrade.checks.run import run_checks
from tracegrade.model.verdict import CheckResult

PACK = parse_pack(
    """
version: 1
pack: orders
actions:
  verify: {tool: verify_identity}
  lookup: {tool: get_order}
  cancel: {tool: cancel_order}
  refund: {tool: refund}
invariants:
  - {id: verify-first, kind: partial_order, why: a stranger, order: [[verify, cancel], [lookup, cancel]]}
  - {id: cancel-first, kind: precedes, why: money for nothing, first: cancel, then: refund}
  - {id: cancels, kind: required, why: it was asked for, action: cancel}
  - {id: only-named, kind: forbidden, why: not theirs, action: {tool: cancel_order, args: {order_id: {ne: W1}}}}
  - {id: refund-once, kind: count, why: once, action: {tool: refund, status: ok}, max: 1}
  - {id: two-lookups-at-once, kind: same_turn, why: one round, actions: [lookup], n: 2}
"""
)
TRUTH = {
    "good": {
        "verify-first": "pass",
        "cancel-first": "pass",
        "cancels": "pass",
        "only-named": "pass",
        "refund-once": "pass",
    },
    "claims_only": {"cancels": "fail", "only-named": "pass", "verify-first": "not_applicable"},
    "extra_cancel": {"verify-first": "pass", "only-named": "fail", "cancels": "pass"},
    "unverified": {"verify-first": "fail", "cancels": "pass", "only-named": "pass"},
    "error_retry": {"verify-first": "pass", "cancel-first": "pass", "cancels": "pass", "refund-once": "pass"},
    "parallel": {"cancels": "pass", "only-named": "pass", "two-lookups-at-once": "pass"},
}
TRUTH["good_stream"] = TRUTH["http_retry"] = TRUTH["good"]
RUNS = [
    (stack, behaviour)
    for stack, entry in STACKS.items()
    for behaviour in entry["behaviours"]
    if behaviour in TRUTH and stack != "openinference-openai-noparent"
]


def truths(stack: str, behaviour: str) -> dict[str, str] | None:
    """The verdict of each rule, by what the tools logged; None for a behaviour that no rule is about."""
    if behaviour not in TRUTH:
        return None
    found = dict(TRUTH[behaviour])
    if behaviour == "parallel":
        times = {c["name"]: c for c in STACKS[stack]["behaviours"][behaviour]["true_tool_calls"]}
        ordered = times["cancel_order"]["end_unix_nano"] <= times["refund"]["start_unix_nano"]
        found["cancel-first"] = "pass" if ordered else "fail"
    return found


@pytest.mark.parametrize(("stack", "behaviour"), RUNS or [("absent", "absent")])
def test_no_wrong_verdict(stack: str, behaviour: str, shared: Path) -> None:
    found = trajectories(stack, behaviour, "protobuf")
    assert len(found) == 1
    results: dict[str, CheckResult] = {r.id: r.result for r in run_checks(found[0], PACK.invariants)}
    for rule, truth in (truths(stack, behaviour) or {}).items():
        result = results[rule]
        if result.verdict == "unknown":
            assert result.missing_keys, (rule, result)
            assert any(f.missing for f in result.findings), (rule, result)
        else:
            assert result.verdict == truth, (rule, result)

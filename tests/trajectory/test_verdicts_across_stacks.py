"""One behaviour, one verdict: whichever instrumentation recorded it, or `unknown` naming what it did not record."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trajectory.test_shared_traces import STACKS, trajectories
from tracegrade.checks.base import BUILT_IN
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
  - {id: begins-with-verify, kind: first, why: a stranger, action: verify}
  - {id: ends-with-refund, kind: last, why: nothing after the money, action: refund}
  - {id: refunds-what-it-cancels, kind: follows, why: they paid, when: {tool: cancel_order, status: ok}, then: refund}
  - id: reference
    kind: sequence
    why: the way it is done
    mode: in_order
    steps:
      - {tool: verify_identity, args: {email: user@example.com}}
      - {tool: get_order, args: {order_id: W1}}
      - {tool: cancel_order, args: {order_id: W1}}
      - {tool: refund, args: {order_id: W1, amount: 54.04}}
  - {id: four-calls, kind: budget, why: no detours, tool_calls: 4}
  - {id: thousand-tokens, kind: budget, why: they cost, input_tokens: 1000}
  - id: names-its-order
    kind: arguments
    why: only W1 was meant
    action: cancel
    schema: {type: object, properties: {order_id: {const: W1}}, required: [order_id]}
  - {id: no-repeats, kind: redundant, why: a loop, action: {tool: "*"}}
  - {id: gets-over-errors, kind: recovery, why: the work must be done, action: cancel, must_succeed: true}
  - {id: no-blind-retry, kind: recovery, why: it may have worked, action: cancel, max_retries: 0}
  - id: refunds-the-total
    kind: agreement
    why: no other sum
    action: refund
    arg: amount
    equals: {from: {tool: get_order, args: {order_id: W1}}, path: result.total}
  - {id: no-refunds, kind: allowed, why: it may not pay, tools: [verify_identity, get_order, cancel_order]}
  - {id: says-what-it-did, kind: claims, why: a lie, when: {matches: '(?i)is cancelled'}, requires: cancel}
  - {id: leaves-w2, kind: untouched, why: not theirs, paths: [W2], in: [order_id], tools: [cancel_order]}
  - {id: all-done, kind: progress, why: half is not done, milestones: [verify, lookup, cancel, refund], at_least: 1}
"""
)
GOOD = {
    "verify-first": "pass",
    "cancel-first": "pass",
    "cancels": "pass",
    "only-named": "pass",
    "refund-once": "pass",
    "begins-with-verify": "pass",
    "ends-with-refund": "pass",
    "refunds-what-it-cancels": "pass",
    "reference": "pass",
    "four-calls": "pass",
    "thousand-tokens": "pass",
    "names-its-order": "pass",
    "no-repeats": "pass",
    "gets-over-errors": "not_applicable",
    "no-blind-retry": "not_applicable",
    "refunds-the-total": "pass",
    "no-refunds": "fail",
    "says-what-it-did": "pass",
    "leaves-w2": "pass",
    "all-done": "pass",
}
"""The verdict of each rule on the run as it should be; below, what differs in other behaviours."""
EXTRA = dict.fromkeys(("only-named", "names-its-order", "leaves-w2", "ends-with-refund", "four-calls"), "fail")
TRUTH: dict[str, dict[str, str]] = {
    "good": GOOD,
    "good_stream": GOOD,
    "http_retry": GOOD,
    "claims_only": {
        "verify-first": "not_applicable",
        "cancels": "fail",
        "only-named": "pass",
        "reference": "fail",
        "four-calls": "pass",
        "thousand-tokens": "pass",
        "says-what-it-did": "fail",
        "all-done": "fail",
    },
    "extra_cancel": {**GOOD, **EXTRA, "refunds-what-it-cancels": "fail", "thousand-tokens": "fail"},
    "unverified": {**GOOD, "verify-first": "fail", "begins-with-verify": "fail", "reference": "fail"},
    "error_retry": {
        **GOOD,
        "four-calls": "fail",
        "thousand-tokens": "fail",
        "no-repeats": "fail",
        "gets-over-errors": "pass",
        "no-blind-retry": "fail",
    },
    "parallel": {
        **{rule: verdict for rule, verdict in GOOD.items() if rule not in ("ends-with-refund", "reference")},
        "two-lookups-at-once": "pass",
        "four-calls": "fail",
    },
}
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
        found["cancel-first"] = found["refunds-what-it-cancels"] = "pass" if ordered else "fail"
    return found


def test_every_kind_of_rule_is_judged() -> None:
    judged = {rule for verdicts in TRUTH.values() for rule in verdicts}
    assert {i.kind.name for i in PACK.invariants if i.id in judged} == set(BUILT_IN)


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

"""Short runs with the verdict that a person reads off the language's definition, one reading of it each.

Null, missing and redacted arguments; numbers beside texts; unicode; values shared along nested paths; calls that run
together; distances; scopes that never open; retries; sequences; agents; what was said.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tracegrade.checks.examples import build_example
from tracegrade.checks.load import parse_pack
from tracegrade.checks.run import run_checks
from tracegrade.model.invariant import ExampleTrajectory


def T(t: str, **k: Any) -> dict[str, Any]:
    return {"tool": t, **k}


RED = "[REDACTED]"
C: list[tuple[str, dict[str, Any], list[Any], dict[str, Any]]] = []


def case(exp: str, rule: dict[str, Any], steps: list[Any], **kw: Any) -> None:
    C.append((exp, rule, steps, kw))


def P(a: Any, b: Any, **k: Any) -> dict[str, Any]:
    return {"kind": "precedes", "first": a, "then": b, **k}


a, b = T("a"), T("b")
# null vs {} vs redacted
case("pass", {"kind": "forbidden", "action": T("a", args={"x": None})}, [T("a", args={})])
case("fail", {"kind": "forbidden", "action": T("a", args={"x": None})}, [T("a", args={"x": None})])
case("fail", {"kind": "forbidden", "action": T("a", args={})}, [T("a", args={})])
case("fail", {"kind": "forbidden", "action": T("a", args={})}, [T("a")])
case("pass", {"kind": "forbidden", "action": T("a", args={})}, [T("a", args={"x": 1})])
case("pass", {"kind": "forbidden", "action": T("a", args={})}, [T("a", args=[])])
case("unknown", {"kind": "forbidden", "action": T("a", args={"x": 5})}, [T("a", args={"x": RED})])
case("unknown", {"kind": "forbidden", "action": T("a", args={"x.y": 5})}, [T("a", args={"x": RED})])
case("unknown", {"kind": "forbidden", "action": T("a", args={"x": 5})}, [T("a", args=RED)])
case("pass", {"kind": "forbidden", "action": T("a", args={"x": 5})}, [T("a", args="just text")])
case("pass", {"kind": "forbidden", "action": T("a", args={"x": 5})}, [T("a", args=[5])])
case("fail", {"kind": "forbidden", "action": T("a", args={"0": 5})}, [T("a", args=[5])])
case("fail", {"kind": "forbidden", "action": T("a", args={"x": {"exists": True}})}, [T("a", args={"x": None})])
case("pass", {"kind": "forbidden", "action": T("a", args={"x": {"ne": 5}})}, [T("a", args={})])
case("fail", {"kind": "forbidden", "action": T("a", args={"x": {"ne": 5}})}, [T("a", args={"x": "5"})])
case("unknown", {"kind": "forbidden", "action": T("a", args={"x": {"exists": False}})}, [T("a", not_captured=["args"])])
# numbers and strings
case("pass", {"kind": "forbidden", "action": T("a", args={"x": 1})}, [T("a", args={"x": "1"})])
case("pass", {"kind": "forbidden", "action": T("a", args={"x": 1})}, [T("a", args={"x": True})])
case("fail", {"kind": "forbidden", "action": T("a", args={"x": 1})}, [T("a", args={"x": 1.0})])
case("pass", {"kind": "forbidden", "action": T("a", args={"x": {"gt": 5}})}, [T("a", args={"x": "10"})])
case(
    "fail",
    {"kind": "forbidden", "action": T("a", args={"x": {"gt": 9007199254740992}})},
    [T("a", args={"x": 9007199254740993})],
)
case(
    "pass",
    {"kind": "forbidden", "action": T("a", args={"x": 9007199254740993})},
    [T("a", args={"x": 9007199254740992})],
)
case("fail", {"kind": "forbidden", "action": T("a", args={"x": {"in": [1, "a"]}})}, [T("a", args={"x": 1.0})])
case("pass", {"kind": "forbidden", "action": T("a", args={"x": {"type": "number"}})}, [T("a", args={"x": True})])
case("fail", {"kind": "forbidden", "action": T("a", args={"x": {"type": "integer"}})}, [T("a", args={"x": 2.0})])
case("fail", {"kind": "forbidden", "action": T("a", args={"x": {"lt": 0}})}, [T("a", args={"x": -0.5})])
# unicode
case("fail", {"kind": "forbidden", "action": T("löschen")}, [T("löschen")])
case(
    "fail", {"kind": "forbidden", "action": T("a", args={"x": {"matches": "^日本.$"}})}, [T("a", args={"x": "日本語"})]
)
case("fail", {"kind": "forbidden", "action": T("a", args={"x": {"length": 2}})}, [T("a", args={"x": "💥é"})])
case("fail", {"kind": "forbidden", "action": T("a", args={"ключ": "я"})}, [T("a", args={"ключ": "я"})])
case("pass", {"kind": "redundant"}, [T("a", args={"x": "é"}), T("a", args={"x": "e\u0301"})])


# same on nested paths
def N(i: Any) -> dict[str, Any]:
    return {"order": {"id": i}}


case("pass", P(a, b, same=["order.id"]), [T("a", args=N(1)), T("b", args=N(1.0))])
case("fail", P(a, b, same=["order.id"]), [T("a", args=N(1)), T("b", args=N("1"))])
case("fail", P(a, b, same=["order.id"]), [T("a", args=N(None)), T("b", args={"order": {}})])
case("fail", P(a, b, same=["order.id"]), [T("a", args={}), T("b", args={})])
case("pass", P(a, b, same=["order.id"]), [T("a", args=N(None)), T("b", args=N(None))])
case(
    "pass",
    P(a, b, same=[{"first": "result.items.0.id", "then": "args.id"}]),
    [T("a", result={"items": [{"id": 7}]}), T("b", args={"id": 7})],
)
case(
    "unknown",
    P(a, b, same=[{"first": "result.items.0.id", "then": "args.id"}]),
    [T("a", not_captured=["result"]), T("b", args={"id": 7})],
)
case("unknown", P(a, b, same=["id"]), [T("a", args={"id": RED}), T("b", args={"id": 7})])
case("pass", P(a, b, same=["id"]), [T("a", args={"id": "⟦id:a⟧"}), T("b", args={"id": "⟦id:a⟧"})])
case(
    "pass",
    P(a, b, same=[{"first": "result.items.*.id", "then": "args.id"}]),
    [T("a", result={"items": [{"id": 6}, {"id": 7}]}), T("b", args={"id": 7})],
)
# proof status
case("fail", P(a, b), [T("a", status="error"), T("b")])
case("unknown", P(a, b), [T("a", status="unfinished"), T("b")])
case("pass", P(T("a", status=["ok", "error"]), b), [T("a", status="error"), T("b")])
case("unknown", P(a, b), [T("a", suspect=True), T("b")])
case("fail", P(a, b), [T("a", executed=False), T("b")])
case("unknown", P(a, b), [T("a", not_captured=["executed"]), T("b")])
case("not_applicable", P(a, b), [T("a"), T("b", executed=False)])
case("unknown", P(a, b), [T("b", not_captured=["executed"])])
case("pass", P(a, b), [T("a"), T("b", not_captured=["executed"]), T("b")])
case("unknown", P(a, b), [T("a"), T("b", not_captured=["executed"])])
# concurrency
case("fail", P(a, b), [{"parallel": [a, b]}])
case("unknown", P(a, b), [{"unordered": [a, b]}])
case("pass", P(a, b), [{"turn": [a, b]}])
case("fail", P(a, b, relation="informed"), [{"turn": [a, b]}])
case("unknown", P(a, b, relation="informed"), [T("a", not_captured=["turn"]), T("b", not_captured=["turn"])])
case("pass", {"kind": "same_turn", "actions": [a], "n": 2}, [{"parallel": [a, a]}])
case("fail", {"kind": "same_turn", "actions": [a], "n": 2}, [a, a])
case(
    "unknown",
    {"kind": "same_turn", "actions": [a], "n": 2},
    [T("a", not_captured=["turn"]), T("a", not_captured=["turn"])],
)
# within
case("pass", P(a, b, within="1s"), [a, b])
case("fail", P(a, b, within="500ms"), [a, b])
case("fail", P(a, b, within="0 calls"), [a, T("c"), b])
case("pass", P(a, b, within="1 call"), [a, T("c"), b])
case("pass", P(a, b, within="0 calls"), [a, T("c", executed=False), b])
case("unknown", P(a, b, within="0 calls"), [a, T("c", not_captured=["executed"]), b])
case("pass", P(a, b, within="1 turn"), [a, b])
case("fail", P(a, b, within="1 turn"), [a, T("c"), b])
case(
    "fail",
    P(a, b, within="0 calls"),
    [a, T("c"), b],
)


# within 30s undecided in unordered clocks
# scopes never open
def F(**k: Any) -> dict[str, Any]:
    return {"kind": "forbidden", "action": b, **k}


case("pass", F(after=a), [b])
case("pass", F(before=a), [b])
case("fail", F(until=a), [b])
case("fail", F(unless=a), [b])
case("pass", F(when=a), [b])
case("pass", F(after=a), [T("a", executed=False), b])
case("fail", F(after=a), [T("a", status="error"), b])
case("fail", F(unless=a), [T("a", status="error"), b])
case("fail", F(until=a), [T("a", status="error"), b])
case("pass", F(until=a), [{"parallel": [a, b]}])
case("fail", F(unless=a), [{"parallel": [a, b]}])
case("unknown", F(after=a), [b], complete=False)
case("fail", F(unless=a), [b])
case("unknown", F(unless=a), [b], complete=False)
case("unknown", F(), [a], complete=False)
case("unknown", F(), [T("b", prior=True), a])
case("pass", P(a, b), [T("a", prior=True), b])
# retries
case("fail", {"kind": "count", "action": a, "max": 1}, [T("a", status="error"), a])
case("pass", {"kind": "count", "action": T("a", status="ok"), "max": 1}, [T("a", status="error"), a])
case(
    "fail",
    {"kind": "count", "action": a, "max": 1, "per": "args"},
    [T("a", args={"o": 1, "p": 2}), T("a", args={"p": 2.0, "o": 1})],
)
case("pass", {"kind": "count", "action": a, "max": 1, "per": "args"}, [T("a", args={"o": 1}), T("a", args={"o": "1"})])
case(
    "fail",
    {"kind": "recovery", "max_retries": 1},
    [T("a", args={"x": 1}, status="error"), T("a", args={"x": 1}, status="error"), T("a", args={"x": 1})],
)
case(
    "pass",
    {"kind": "recovery", "max_retries": 2},
    [T("a", args={"x": 1}, status="error"), T("a", args={"x": 1}, status="error"), T("a", args={"x": 1})],
)
case("fail", {"kind": "recovery", "must_succeed": True}, [T("a", status="error")])
case("pass", {"kind": "recovery", "must_succeed": True}, [T("a", status="error", args={"x": 1}), T("a", args={"x": 2})])
case("fail", {"kind": "redundant"}, [a, a])
case("pass", {"kind": "redundant", "reset_by": b}, [a, b, a])
case("fail", {"kind": "redundant", "reset_by": b}, [a, T("b", status="error"), a])
case("unknown", {"kind": "redundant"}, [T("a", args={"x": 1}), T("a", not_captured=["args"])])
case("unknown", {"kind": "redundant"}, [T("a", args={"x": 1}), T("a", truncated=["args"])])
case("fail", {"kind": "count", "action": a, "max": 2, "consecutive": True}, [a, a, a])
case("pass", {"kind": "count", "action": a, "max": 2, "consecutive": True}, [a, a, b, a])
# must_call in incomplete, missing results
case("unknown", {"kind": "required", "action": a}, [b], complete=False)
case("pass", {"kind": "required", "action": a}, [a], complete=False)
case("fail", {"kind": "required", "action": a}, [b])
case("unknown", {"kind": "required", "action": T("a", result={"ok": True})}, [T("a", not_captured=["result"])])
case("fail", {"kind": "required", "action": T("a", result={"ok": True})}, [T("a", result="text")])
case("fail", {"kind": "required", "action": a}, [T("a", executed=False)])


# sequences
def S(m: str, *s: Any, **k: Any) -> dict[str, Any]:
    return {"kind": "sequence", "mode": m, "steps": list(s), **k}


case("fail", S("exact", a, b), [a, b, b])
case("fail", S("exact", a, b), [a])
case("pass", S("exact", a, b), [a, b])
case("fail", S("exact", a, b), [b, a])
case("pass", S("any_order", a, b), [b, a])
case("fail", S("any_order", a, b), [a, a, b])
case("pass", S("in_order", a, b), [a, T("c"), b])
case("pass", S("subset", a, b), [a])
case("fail", S("subset", a, b), [a, a])
case("pass", S("superset", a, b), [b, a, T("c")])
case("fail", S("superset", a, a), [a])
case("pass", S("exact", a, b), [{"parallel": [b, a]}])
case("unknown", S("exact", a, b), [{"unordered": [a, b]}])
case("unknown", S("exact", a, b), [a, b], complete=False)
case("fail", S("exact", a, b), [a, b, T("c")], complete=False)
case("pass", S("in_order", a, b), [a, b], complete=False)
case("unknown", S("in_order", a, b), [a], complete=False)
case("fail", S("exact", T("a", args={"x": 1}), T("a", args={"x": 2})), [T("a", args={"x": 2}), T("a", args={"x": 1})])
case("pass", S("any_order", T("a", args={"x": 1}), T("a")), [T("a", args={"x": 2}), T("a", args={"x": 1})])
# sub-agents / allowed
case("fail", {"kind": "allowed", "agent": "sub", "tools": ["a"]}, [T("b", agent="sub"), T("b", agent="main")])
case("pass", {"kind": "allowed", "agent": "sub", "tools": ["a"]}, [T("a", agent="sub"), T("b", agent="main")])
case("not_applicable", {"kind": "allowed", "agent": "sub", "tools": ["a"]}, [T("b", agent="main")])
case("unknown", {"kind": "allowed", "agent": "sub", "tools": ["a"]}, [T("b", not_captured=["agent"])])
case("pass", {"kind": "allowed", "agent": "sub", "tools": ["b"]}, [T("b", agent="sub"), T("b", not_captured=["agent"])])


# messages
def M(r: str, t: str, **k: Any) -> dict[str, Any]:
    return {"message": r, "text": t, **k}


conf = {"message": "user", "text": {"matches": "(?i)yes"}}
case("pass", P(conf, b), [M("user", "YES"), b])
case("fail", P(conf, b), [M("assistant", "yes"), b])
case("fail", P(conf, b), [b, M("user", "yes")])
case("unknown", P(conf, b), [{"message": "user", "not_captured": ["text"]}, b])
case("unknown", P(conf, b), [b], messages_recorded=False)
case("pass", P(conf, b, each=True), [M("user", "yes"), b])
case("fail", P(conf, b, each=True), [M("user", "yes"), b, b])
case("pass", P(conf, b, each=True), [M("user", "yes"), b, M("user", "yes"), b])
case("fail", {"kind": "claims", "when": {"matches": "done"}, "requires": a}, [M("assistant", "done")])
case("not_applicable", {"kind": "claims", "when": {"matches": "done"}, "requires": a}, [M("user", "done")])
case(
    "fail",
    {"kind": "claims", "when": {"matches": "done"}, "requires": a},
    [T("a", status="error"), M("assistant", "done"), a],
)
# agreement
AG = {"kind": "agreement", "action": b, "arg": "amount", "equals": {"from": a, "path": "result.total"}}
case("pass", AG, [T("a", result={"total": 5}), T("b", args={"amount": 5.0})])
case("fail", AG, [T("a", result={"total": "5"}), T("b", args={"amount": 5})])
case("fail", AG, [T("b", args={"amount": 5})])
case("fail", AG, [T("a", result={"total": 4}), T("a", result={"total": 5}), T("b", args={"amount": 4})])
case("pass", AG, [T("a", result={"total": 4}), T("a", result={"total": 5}), T("b", args={"amount": 5})])
case("unknown", AG, [T("a", not_captured=["result"]), T("b", args={"amount": 5})])
case(
    "unknown",
    AG,
    [{"parallel": [T("a", result={"total": 4}), T("a", result={"total": 5})]}, T("b", args={"amount": 5})],
)
case("unknown", AG, [T("b", args={"amount": 5})], complete=False)
case("not_applicable", AG, [a])
# follows
W = {"kind": "follows", "when": a, "then": b}
case("pass", W, [a, b])
case("fail", W, [a])
case("fail", W, [b, a])
case("fail", W, [a, T("b", status="error")])
case("unknown", W, [a], complete=False)
case("fail", W, [T("a", status="error")])
case("not_applicable", W, [b])
# first/last
case("pass", {"kind": "first", "action": a}, [a, b])
case("fail", {"kind": "first", "action": a}, [{"parallel": [a, b]}])
case("fail", {"kind": "first", "action": a}, [b, a])
case("unknown", {"kind": "first", "action": a}, [a, b], complete=False)
# not / any
case("fail", {"kind": "forbidden", "action": {"not": a}}, [b])
case("pass", {"kind": "forbidden", "action": {"not": a}}, [a, M("user", "x")])
case("fail", {"kind": "forbidden", "action": {"all": [a, {"not": T("a", args={"x": 1})}]}}, [T("a", args={"x": 2})])
# budget, untouched
case("fail", {"kind": "budget", "tool_calls": 1}, [a, a])
case("unknown", {"kind": "budget", "tool_calls": 1}, [a], complete=False)
case("unknown", {"kind": "budget", "tool_calls": 1}, [a, T("b", not_captured=["executed"])])
U = {"kind": "untouched", "paths": ["tests/**", "*.lock"], "tools": ["write", "bash"]}
case("fail", U, [T("write", args={"path": "tests/x/y.py"})])
case("fail", U, [T("write", args={"path": "./tests/x.py"})])
case("fail", U, [T("bash", args={"cmd": "rm -rf tests/a.py"})])
case("fail", U, [T("write", args={"path": "src/../tests/a.py"})])
case("pass", U, [T("write", args={"path": "src/tests.py"})])
case("unknown", U, [T("write", not_captured=["args"])])
case("pass", U, [T("read", args={"path": "tests/a.py"})])
case("fail", U, [T("bash", args={"cmd": "echo x > tests/a.py"})])
case("fail", U, [T("bash", args={"cmd": "cd src && sed -i s/a/b/ 'tests/a.py'"})])
# partial order
PO = {"kind": "partial_order", "order": [[a, b]]}
case("fail", PO, [b])
case("not_applicable", PO, [a])
case("pass", {**PO, "required": "all"}, [a, b])
case("fail", {**PO, "required": "all"}, [a])
case("pass", {"kind": "partial_order", "order": [[a, [b, T("c")], T("d")]]}, [a, {"parallel": [b, T("c")]}, T("d")])


@pytest.mark.parametrize(("expected", "rule", "steps", "given"), C)
def test_reading(expected: str, rule: dict[str, Any], steps: list[dict[str, Any]], given: dict[str, Any]) -> None:
    pack = parse_pack(json.dumps({"version": 1, "pack": "p", "invariants": [{"id": "r", **rule}]}))
    trajectory = build_example(ExampleTrajectory.model_validate({"steps": steps, **given}))
    [result] = run_checks(trajectory, pack.invariants)
    assert result.result.verdict == expected, result.result.findings


def test_ten_thousand_failed_calls_are_judged_by_few_comparisons() -> None:
    steps = [{"tool": "t", "args": {"i": i % 5000}, "status": "error"} for i in range(10_000)]
    rule = {"id": "r", "kind": "recovery", "max_retries": 1, "must_succeed": True}
    pack = parse_pack(json.dumps({"version": 1, "pack": "p", "invariants": [rule]}))
    trajectory = build_example(ExampleTrajectory.model_validate({"steps": steps}))
    asked = 0
    compare = trajectory.order.compare

    def counting(*pair: Any) -> Any:
        nonlocal asked
        asked += 1
        return compare(*pair)

    trajectory.order.compare = counting  # type: ignore[method-assign, assignment]
    [result] = run_checks(trajectory, pack.invariants)
    assert result.result.verdict == "fail"
    assert asked < 100_000

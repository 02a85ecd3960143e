"""Rules of every kind over the alphabet of `worlds`: tools a, b, c, r with an argument k, results with v, messages."""

from __future__ import annotations

from typing import Any

A: dict[str, Any] = {"tool": "a"}
B: dict[str, Any] = {"tool": "b"}
C: dict[str, Any] = {"tool": "c"}
R: dict[str, Any] = {"tool": "r"}
AB: dict[str, Any] = {"tool": ["a", "b"]}
A1: dict[str, Any] = {"tool": "a", "args": {"k": 1}}
A_FAILED: dict[str, Any] = {"tool": "a", "status": "error"}
NOT_A: dict[str, Any] = {"not": {"tool": "a"}}
ANY: dict[str, Any] = {"tool": "*"}
A_OR_FAILED_B: dict[str, Any] = {"any": [A, {"tool": "b", "status": "error"}]}
ASKED_A: dict[str, Any] = {"tool": "a", "executed": False}

_MILESTONES = [
    {"name": "one", "action": A},
    {"name": "two", "action": AB, "weight": 2},
    {"name": "three", "action": C, "requires": ["one"]},
]

RULES: list[dict[str, Any]] = [
    {"kind": "precedes", "first": A, "then": B},
    {"kind": "precedes", "first": A1, "then": B},
    {"kind": "precedes", "first": A, "then": B, "same": ["k"]},
    {"kind": "precedes", "first": A, "then": B, "each": True},
    {"kind": "precedes", "first": AB, "then": B, "each": True, "same": ["k"]},
    {"kind": "precedes", "first": A, "then": B, "within": "0 calls"},
    {"kind": "precedes", "first": A_FAILED, "then": NOT_A},
    {"kind": "precedes", "first": A_OR_FAILED_B, "then": C},
    {"kind": "precedes", "first": {"text": "done"}, "then": A},
    {"kind": "precedes", "first": A, "then": B, "alternate": True},
    {"kind": "follows", "when": A, "then": B, "alternate": True},
    {"kind": "forbidden", "action": A, "when": B},
    {"kind": "forbidden", "action": B, "after": A, "within": "0 calls"},
    {"kind": "required", "action": A, "when": B},
    {"kind": "follows", "when": A, "then": B},
    {"kind": "follows", "when": A, "then": B, "same": ["k"]},
    {"kind": "follows", "when": AB, "then": C, "within": "1 call"},
    {"kind": "claims", "when": {"eq": "done"}, "requires": A},
    {"kind": "partial_order", "order": [[A, B, C]]},
    {"kind": "partial_order", "order": [[A, C], [B, C]]},
    {"kind": "partial_order", "order": [[A, C], [B, C]], "required": "all"},
    {"kind": "partial_order", "order": [[A, B]], "required": [R]},
    {"kind": "forbidden", "action": A},
    {"kind": "forbidden", "action": A1},
    {"kind": "forbidden", "action": A_FAILED},
    {"kind": "forbidden", "action": ASKED_A},
    {"kind": "forbidden", "action": A, "before": B},
    {"kind": "forbidden", "action": A, "after": B},
    {"kind": "forbidden", "action": NOT_A, "after": A},
    {"kind": "forbidden", "action": A, "until": B},
    {"kind": "forbidden", "action": A, "unless": B},
    {"kind": "forbidden", "action": A, "after": C, "unless": B},
    {"kind": "required", "action": A},
    {"kind": "required", "action": A1, "at_least": 2},
    {"kind": "count", "action": A, "max": 1},
    {"kind": "count", "action": AB, "min": 1, "max": 2},
    {"kind": "count", "action": A, "max": 1, "per": "args"},
    {"kind": "count", "action": ANY, "max": 1, "per": "turn"},
    {"kind": "count", "action": A, "min": 1, "per": "turn"},
    {"kind": "sequence", "steps": [A, B], "mode": "exact"},
    {"kind": "sequence", "steps": [A, B], "mode": "in_order"},
    {"kind": "sequence", "steps": [A, AB, C], "mode": "in_order"},
    {"kind": "sequence", "steps": [A, B], "mode": "in_order", "overlap": "forbidden"},
    {"kind": "sequence", "steps": [AB, A], "mode": "any_order"},
    {"kind": "sequence", "steps": [A1, AB, C], "mode": "subset"},
    {"kind": "sequence", "steps": [A, AB], "mode": "superset"},
    {"kind": "same_turn", "actions": [A, B]},
    {"kind": "same_turn", "actions": [A], "n": 2},
    {"kind": "redundant", "action": A},
    {"kind": "redundant", "action": AB, "max_equal": 2},
    {"kind": "redundant", "action": A, "reset_by": R},
    {"kind": "recovery", "action": ANY, "must_succeed": True},
    {"kind": "recovery", "action": ANY, "max_retries": 0},
    {"kind": "recovery", "action": A, "max_retries": 1, "must_succeed": True},
    {"kind": "agreement", "action": B, "arg": "k", "equals": {"from": A, "path": "result.v"}},
    {"kind": "allowed", "tools": ["a", "b"]},
    {"kind": "arguments", "action": A, "schema": {"type": "object", "properties": {"k": {"const": 1}}}},
    {"kind": "untouched", "paths": ["tests/**"], "tools": ["a", "b"]},
    {"kind": "first", "action": A},
    {"kind": "last", "action": AB},
    {"kind": "budget", "tool_calls": 2},
    {"kind": "progress", "milestones": _MILESTONES, "at_least": 0.5},
    {"kind": "progress", "milestones": _MILESTONES, "at_least": 1.0},
]

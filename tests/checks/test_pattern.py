"""Patterns and matchers on single steps, in three values."""

from __future__ import annotations

from typing import Any

import pytest

from tracegrade.checks.examples import build_example
from tracegrade.checks.pattern import compile_pattern, describe
from tracegrade.model.invariant import ExampleTrajectory, Pattern
from tracegrade.model.trajectory import Step
from tracegrade.model.values import Tri


def step(**written: Any) -> Step:
    return build_example(ExampleTrajectory.model_validate({"steps": [written]})).steps[0]


def value(pattern: dict[str, Any], what: Step, reading: Any = "attempt") -> Tri:
    return compile_pattern(Pattern.model_validate(pattern), reading).in_domain(what)


ARGS = {"n": 5, "s": "abc", "t": True, "z": None, "list": [{"id": 1}, {"id": 2}], "o": {"a.b": 7}, "r": "[REDACTED]"}


@pytest.mark.parametrize(
    ("path", "matcher", "expected"),
    [
        ("n", 5.0, True),
        ("n", "5", False),
        ("t", 1, False),
        ("t", True, True),
        ("z", None, True),
        ("missing", None, False),
        ("missing", {"exists": False}, True),
        ("missing", {"ne": 3}, False),
        ("missing", {"not_in": [3]}, False),
        ("z", {"exists": False}, False),
        ("n", {"gt": 4, "lt": 5.5}, True),
        ("n", {"gt": 5}, False),
        ("s", {"gt": 1}, False),
        ("s", {"ge": "abb"}, True),
        ("t", {"ge": 0}, False),
        ("n", {"in": [1, 5]}, True),
        ("n", {"not_in": [1, 5]}, False),
        ("s", {"matches": "b"}, True),
        ("s", {"matches": "^b$"}, False),
        ("n", {"matches": "5"}, False),
        ("s", {"contains": "bc"}, True),
        ("list", {"contains": {"id": 2}}, True),
        ("o", {"contains": "a.b"}, True),
        ("s", {"starts_with": "ab"}, True),
        ("n", {"type": "number"}, True),
        ("n", {"type": ["string", "null"]}, False),
        ("z", {"type": "null"}, True),
        ("list", {"length": 2}, True),
        ("s", {"length": {"gt": 3}}, False),
        ("n", {"length": 1}, False),
        ("list.0.id", 1, True),
        ("list.*.id", 2, True),
        ("list.*.id", {"gt": 2}, False),
        ("list.9.id", {"exists": False}, True),
        (("o", "a.b"), 7, True),
        ("r", "x", None),
        ("r", {"matches": "x"}, None),
        ("r", {"exists": True}, True),
        ("r.inside", {"exists": True}, None),
        ("r", {"type": "string"}, None),
    ],
)
def test_matchers(path: Any, matcher: Any, expected: Tri) -> None:
    assert value({"args": {path: matcher}}, step(tool="x", args=ARGS)) is expected


@pytest.mark.parametrize(
    ("pattern", "what", "reading", "expected"),
    [
        ({"tool": "a"}, {"tool": "a"}, "attempt", True),
        ({"tool": "A"}, {"tool": "a"}, "attempt", False),
        ({"tool": ["x", "a*"]}, {"tool": "abc"}, "attempt", True),
        ({"tool": "[a]"}, {"tool": "[a]"}, "attempt", True),
        ({"tool": "a"}, {"tool": "a", "status": "error"}, "attempt", True),
        ({"tool": "a"}, {"tool": "a", "status": "error"}, "proof", False),
        ({"tool": "a"}, {"tool": "a", "status": "unfinished"}, "attempt", True),
        ({"tool": "a"}, {"tool": "a", "status": "unfinished"}, "proof", None),
        ({"tool": "a"}, {"tool": "a", "suspect": True}, "attempt", True),
        ({"tool": "a"}, {"tool": "a", "suspect": True}, "proof", None),
        ({"status": "error"}, {"tool": "a", "suspect": True}, "attempt", None),
        ({"status": ["ok", "error"]}, {"tool": "a", "suspect": True}, "attempt", True),
        ({"status": "unfinished"}, {"tool": "a", "status": "unfinished"}, "attempt", True),
        ({"tool": "a", "status": "error"}, {"tool": "a", "status": "error"}, "proof", True),
        ({"tool": "a"}, {"tool": "a", "executed": False}, "attempt", False),
        ({"tool": "a", "executed": False}, {"tool": "a", "executed": False}, "proof", True),
        ({"tool": "a", "executed": "any"}, {"tool": "a", "executed": False}, "attempt", True),
        ({"tool": "a", "status": "not_executed"}, {"tool": "a", "executed": False}, "attempt", True),
        ({"tool": "a"}, {"tool": "a", "not_captured": ["executed"]}, "attempt", None),
        ({"tool": "b"}, {"tool": "a", "not_captured": ["executed"]}, "attempt", False),
        ({"not": {"tool": "a"}}, {"tool": "b"}, "attempt", True),
        ({"not": {"tool": "a"}}, {"message": "user"}, "attempt", False),
        ({"not": {"message": "user"}}, {"message": "assistant"}, "attempt", True),
        ({"not": {"message": "user"}}, {"tool": "a"}, "attempt", False),
        ({"any": [{"tool": "a"}, {"message": "user"}]}, {"message": "user"}, "proof", True),
        ({"any": [{"tool": "a"}, {"tool": "b", "status": "error"}]}, {"tool": "a", "status": "error"}, "proof", False),
        ({"any": [{"tool": "a"}, {"tool": "b", "status": "error"}]}, {"tool": "b", "status": "error"}, "proof", True),
        ({"all": [{"tool": "a"}, {"status": "error"}]}, {"tool": "a", "status": "error"}, "proof", True),
        ({"args": {}}, {"tool": "a"}, "attempt", True),
        ({"args": {}}, {"tool": "a", "args": {"x": 1}}, "attempt", False),
        ({"args": {}}, {"tool": "a", "args": None}, "attempt", True),
        ({"args": {}}, {"tool": "a", "not_captured": ["args"]}, "attempt", None),
        ({"args": {"0": 5}}, {"tool": "a", "args": [5]}, "attempt", True),
        ({"result": {".": {"contains": "done"}}}, {"tool": "a", "result": "all done"}, "attempt", True),
        ({"result": {"a": 1}}, {"tool": "a", "truncated": ["result"]}, "attempt", None),
        ({"text": "hi"}, {"message": "assistant", "text": "hi"}, "attempt", True),
        ({"message": "user", "text": {"matches": "x"}}, {"message": "user", "not_captured": ["text"]}, "proof", None),
        ({"message": "user"}, {"message": "user"}, "proof", True),
        ({"step": "handoff"}, {"step": "handoff", "name": "x"}, "proof", True),
        ({"step": "model_call", "name": "gpt*"}, {"step": "model_call", "name": "gpt-x"}, "attempt", True),
        ({"agent": "a"}, {"tool": "x", "agent": "a"}, "attempt", True),
        ({"agent": "a"}, {"tool": "x"}, "attempt", None),
        ({"duration_ms": {"ge": 1500}}, {"tool": "x", "duration_s": 1.5}, "attempt", True),
        ({"duration_ms": {"gt": 0}}, {"tool": "x", "status": "unfinished"}, "attempt", None),
    ],
)
def test_patterns(pattern: dict[str, Any], what: dict[str, Any], reading: Any, expected: Tri) -> None:
    found = step(**what)
    assert value(pattern, found, reading) is expected
    node = compile_pattern(Pattern.model_validate(pattern), reading)
    assert bool(node.missing(found)) == (expected is None)


def test_equal_patterns_share_one_node_and_unequal_ones_do_not() -> None:
    def node(**pattern: Any) -> object:
        return compile_pattern(Pattern.model_validate(pattern), "attempt")

    assert node(tool="a") is node(tool=["a"])
    assert node(args={"x": None}) is not node(args={"x": {"exists": True}})
    assert node(args={"x": 1}) is not node(args={"x": True})
    assert node(args={"a.b": 1}) is not node(args={("a.b",): 1})


def test_a_hostile_pattern_stays_linear() -> None:
    text = "a" * 50_000 + "!"
    assert value({"text": {"matches": "^(a+)+$"}}, step(message="user", text=text)) is False


def test_patterns_in_words() -> None:
    pattern = Pattern.model_validate({"tool": ["a", "b"], "args": {"n": {"gt": 3}}, "not": {"agent": "x"}})
    assert describe(pattern) == "a or b other than a call by x with n gt 3"

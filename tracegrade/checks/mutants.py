"""Mutation testing of a pack: spoil runs that pass, and see which spoilt ones no rule catches.

A mutant differs from a recorded run in one thing: a call is dropped, done twice, exchanged with its neighbour, given
another argument, or fails. That a mutant is caught by none may be right (not every call matters); the list shows a
person what the pack does not look at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import networkx as nx

from tracegrade.checks.load import CompiledInvariant
from tracegrade.checks.run import run_checks
from tracegrade.model.trajectory import Ordering, Relation, Step, StepOrder, Trajectory
from tracegrade.model.values import JSON

Operator = Literal["drop", "duplicate", "swap", "alter", "fail"]
OPERATORS: tuple[Operator, ...] = ("drop", "duplicate", "swap", "alter", "fail")

_CONTENT = (
    "kind",
    "name",
    "tool",
    "call_id",
    "agent",
    "arguments",
    "arguments_state",
    "arguments_raw",
    "result",
    "result_state",
    "status",
    "status_evidence",
    "status_suspect",
)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A spoilt run: what was done to which call."""

    operator: Operator
    tool: str
    what: str
    trajectory: Trajectory


class _Mapped(StepOrder):
    """The order of a run some of whose steps were dropped or done twice."""

    def __init__(self, base: StepOrder, old: Sequence[int]) -> None:
        self._base, self._old = base, old

    def compare(self, a: int, b: int, relation: Relation = "executed") -> Ordering:
        if self._old[a] == self._old[b]:  # a step and its copy, done right after it
            return "unknown" if a == b else "before" if a < b else "after"
        return self._base.compare(self._old[a], self._old[b], relation)

    def gap_ns(self, a: int, b: int) -> int | None:
        return self._base.gap_ns(self._old[a], self._old[b])

    def graph(self, relation: Relation = "executed") -> nx.DiGraph[Any]:
        graph: nx.DiGraph[Any] = nx.DiGraph()
        graph.add_nodes_from(range(len(self._old)))
        indices = range(len(self._old))
        graph.add_edges_from((a, b) for a in indices for b in indices if self.compare(a, b, relation) == "before")
        return nx.transitive_reduction(graph)


def _rebuilt(trajectory: Trajectory, old: list[int]) -> Trajectory:
    steps = tuple(replace(trajectory.steps[o], index=i, seq=i) for i, o in enumerate(old))
    return replace(trajectory, steps=steps, order=_Mapped(trajectory.order, old))


def mutants_of(trajectory: Trajectory) -> Iterator[Mutant]:
    """Every mutant of a run: each operator on each call that ran."""
    calls = [s for s in trajectory.steps if s.kind == "tool_call" and s.executed and not s.prior]
    indices = list(range(len(trajectory.steps)))
    for position, call in enumerate(calls):
        tool = call.tool or call.name
        here = f"step {call.seq}"
        rest = [i for i in indices if i != call.index]
        yield Mutant("drop", tool, here, _rebuilt(trajectory, rest))
        twice = [*indices[: call.index + 1], call.index, *indices[call.index + 1 :]]
        yield Mutant("duplicate", tool, here, _rebuilt(trajectory, twice))
        if position + 1 < len(calls) and calls[position + 1].tool != call.tool:
            other = calls[position + 1]
            yield Mutant("swap", tool, f"{here} with step {other.seq}", _swapped(trajectory, call, other))
        if call.arguments_state == "captured" and isinstance(call.arguments, dict):
            for name in call.arguments:
                changed = {**call.arguments, name: _other(call.arguments[name])}
                yield Mutant("alter", tool, f"{here}, {name}", _changed(trajectory, call, arguments=changed))
        if call.status == "ok":
            spoilt = _changed(trajectory, call, status="error", status_evidence="mutant", result=None)
            yield Mutant("fail", tool, here, spoilt)


def _changed(trajectory: Trajectory, step: Step, **fields: Any) -> Trajectory:
    steps = list(trajectory.steps)
    steps[step.index] = replace(step, **fields)
    return replace(trajectory, steps=tuple(steps))


def _swapped(trajectory: Trajectory, a: Step, b: Step) -> Trajectory:
    steps = list(trajectory.steps)
    steps[a.index] = replace(a, **{f: getattr(b, f) for f in _CONTENT})
    steps[b.index] = replace(b, **{f: getattr(a, f) for f in _CONTENT})
    return replace(trajectory, steps=tuple(steps))


def _other(value: JSON) -> JSON:
    """A value of the same type that is not equal."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, str):
        return f"{value}~"
    if isinstance(value, list):
        return [*value, "~"]
    return {**value, "~": "~"} if isinstance(value, dict) else "~"


@dataclass(slots=True)
class MutationReport:
    """How many mutants were caught, by operator, and what slipped through.

    Attributes:
        skipped: runs that were not used because a rule fails on them as they are.
    """

    runs: int = 0
    skipped: int = 0
    total: Counter[Operator] = field(default_factory=Counter)
    caught: Counter[Operator] = field(default_factory=Counter)
    by_rule: Counter[str] = field(default_factory=Counter)
    missed: Counter[tuple[Operator, str]] = field(default_factory=Counter)
    example: dict[tuple[Operator, str], str] = field(default_factory=dict)

    def add(self, trajectory: Trajectory, rules: Sequence[CompiledInvariant], budget: int) -> int:
        """Try the mutants of one run, at most `budget` of them; returns how many were tried."""
        if any(r.result.verdict == "fail" for r in run_checks(trajectory, rules)):
            self.skipped += 1
            return 0
        self.runs += 1
        tried = 0
        for mutant in mutants_of(trajectory):
            if tried >= budget:
                break
            tried += 1
            self.total[mutant.operator] += 1
            hits = [r.id for r in run_checks(mutant.trajectory, rules) if r.result.verdict == "fail"]
            self.by_rule.update(hits)
            if hits:
                self.caught[mutant.operator] += 1
            else:
                key = (mutant.operator, mutant.tool)
                self.missed[key] += 1
                self.example.setdefault(key, f"{trajectory.trajectory_id}, {mutant.what}")
        return tried

"""Learns rules from runs that are held to be good: never more than the evidence supports.

Orders that always held, tools that were offered and never used, the tools that were used, and upper bounds. Each
candidate is judged by the checks themselves, so that unknown counts for nothing. An order is kept when, were it kept in
fewer than `floor` of runs, seeing it hold in all n would have a probability below 5 % over all candidates together
(Bonferroni): n ≥ log(0.05 / candidates) / log(floor). A bound on a count is kept for n ≥ 19 runs: by exchangeability a
further run of the same kind exceeds the greatest of n with probability at most 1/(n+1).
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import networkx as nx

from tracegrade.checks.load import CompiledInvariant, parse_pack
from tracegrade.checks.run import run_checks
from tracegrade.model.trajectory import Trajectory
from tracegrade.model.values import JSON

_LEVEL = 0.05
_BOUND_RUNS = 19
_BUDGETS = ("tool_calls", "model_calls", "input_tokens", "output_tokens", "cost_usd", "duration_s")


@dataclass(slots=True)
class Survey:
    """What the runs hold: read once, before candidates can be named."""

    runs: int = 0
    incomplete: int = 0
    with_tool: Counter[str] = field(default_factory=Counter)
    offered: Counter[str] = field(default_factory=Counter)
    most: dict[str, int] = field(default_factory=dict)
    totals: dict[str, list[float]] = field(default_factory=dict)

    def add(self, trajectory: Trajectory) -> None:
        """Take note of one run."""
        self.runs += 1
        if not trajectory.complete:
            self.incomplete += 1
            return
        counts = Counter(
            s.tool for s in trajectory.steps if s.kind == "tool_call" and s.executed is not False and s.tool
        )
        self.with_tool.update(counts.keys())
        self.offered.update(trajectory.definitions.keys())
        for tool, n in counts.items():
            self.most[tool] = max(self.most.get(tool, 0), n)
        usage = trajectory.usage
        known = {
            "tool_calls": counts.total(),
            "model_calls": usage.model_calls,
            "input_tokens": usage.input_tokens if usage.complete else None,
            "output_tokens": usage.output_tokens if usage.complete else None,
            "cost_usd": usage.cost_usd if usage.cost_complete else None,
            "duration_s": trajectory.duration_ns / 1e9 if trajectory.duration_ns is not None else None,
        }
        for name, value in known.items():
            if value is not None:
                self.totals.setdefault(name, []).append(value)

    @property
    def whole(self) -> int:
        """The runs that are complete: only they can show that something did not happen."""
        return self.runs - self.incomplete


@dataclass(frozen=True, slots=True)
class Mined:
    """One rule that the runs support."""

    rule: dict[str, JSON]
    support: int
    held: int


def order_candidates(survey: Survey, floor: float) -> list[tuple[str, str]]:
    """Pairs of tools that occurred often enough to say something of their order."""
    tools = sorted(t for t in survey.with_tool if _nameable(t))
    pairs = [(a, b) for a in tools for b in tools if a != b]
    needed = runs_needed(len(pairs), floor)
    return [(a, b) for a, b in pairs if min(survey.with_tool[a], survey.with_tool[b]) >= needed]


def runs_needed(candidates: int, floor: float) -> int:
    """How many runs must show an order without exception.

    >>> runs_needed(1, 0.8), runs_needed(100, 0.8)
    (14, 35)
    """
    return math.ceil(math.log(_LEVEL / max(candidates, 1)) / math.log(floor))


def _nameable(tool: str) -> bool:
    """Whether a rule can mean this tool alone."""
    return "*" not in tool and "?" not in tool


def compile_orders(pairs: Sequence[tuple[str, str]]) -> list[CompiledInvariant]:
    """The candidate orders as rules."""
    rules = [
        {"id": f"order-{i}", "kind": "precedes", "first": {"tool": a}, "then": {"tool": b}}
        for i, (a, b) in enumerate(pairs)
    ]
    return list(parse_pack(json.dumps({"version": 1, "pack": "candidates", "invariants": rules})).invariants)


@dataclass(slots=True)
class OrderTally:
    """How the candidate orders fared."""

    pairs: list[tuple[str, str]]
    held: Counter[int] = field(default_factory=Counter)
    broken: Counter[int] = field(default_factory=Counter)

    def add(self, trajectory: Trajectory, rules: Sequence[CompiledInvariant]) -> None:
        """Judge one run; what is unknown or does not apply counts for neither side."""
        for i, result in enumerate(run_checks(trajectory, rules)):
            verdict = result.result.verdict
            if verdict == "pass" and result.result.scope == "all":
                self.held[i] += 1
            elif verdict == "fail":
                self.broken[i] += 1


def mine_rules(survey: Survey, tally: OrderTally, floor: float) -> list[Mined]:
    """The rules that the runs support, orders first."""
    return [*_orders(survey, tally, floor), *_tools(survey, floor), *_counts(survey), *_budget(survey)]


def _orders(survey: Survey, tally: OrderTally, floor: float) -> Iterable[Mined]:
    n_pairs = len([1 for a in survey.with_tool for b in survey.with_tool if a != b])
    needed = runs_needed(n_pairs, floor)
    graph: nx.DiGraph[str] = nx.DiGraph()
    for i, (a, b) in enumerate(tally.pairs):
        if tally.held[i] >= needed and not tally.broken[i]:
            graph.add_edge(a, b, n=tally.held[i])
    if not nx.is_directed_acyclic_graph(graph):
        return
    for a, b in sorted(nx.transitive_reduction(graph).edges):
        n = graph.edges[a, b]["n"]
        why = f"Held in all {n} runs that called {b} and could be judged."
        rule = {"id": _id(f"{a} before {b}"), "kind": "precedes", "level": "warning", "why": why}
        yield Mined({**rule, "first": {"tool": a}, "then": {"tool": b}}, n, n)


def _tools(survey: Survey, floor: float) -> Iterable[Mined]:
    unused = sorted(t for t in survey.offered if t not in survey.with_tool and _nameable(t))
    needed = runs_needed(len(unused), floor)
    for tool in unused:
        n = survey.offered[tool]
        if n >= needed:
            why = f"Offered in {n} runs and never called."
            rule = {"id": _id(f"never {tool}"), "kind": "forbidden", "level": "warning", "why": why}
            yield Mined({**rule, "allow_unseen": True, "action": {"tool": tool}}, n, n)
    used = sorted(survey.with_tool)
    if used and survey.whole >= _BOUND_RUNS and all(_nameable(t) for t in used):
        why = f"All tools that {survey.whole} runs called; see whether the list is what the agent may use."
        rule = {"id": "known-tools-only", "kind": "allowed", "level": "warning", "why": why}
        yield Mined({**rule, "tools": used}, survey.whole, survey.whole)


def _counts(survey: Survey) -> Iterable[Mined]:
    for tool, most in sorted(survey.most.items()):
        n = survey.with_tool[tool]
        if n >= _BOUND_RUNS and _nameable(tool):
            why = f"At most {most} in each of {n} runs that called it."
            rule = {"id": _id(f"at most {most} {tool}"), "kind": "count", "level": "warning", "why": why}
            yield Mined({**rule, "action": {"tool": tool}, "max": most}, n, n)


def _budget(survey: Survey) -> Iterable[Mined]:
    for name in _BUDGETS:
        values = survey.totals.get(name, [])
        if len(values) >= _BOUND_RUNS and max(values) > 0:
            limit = max(values)
            bound = math.ceil(limit) if name != "cost_usd" else round(limit * 1.0000001 + 5e-7, 6)
            n = len(values)
            why = f"The greatest of {n} runs; a further run of their kind exceeds it in one of {n + 1}."
            rule = {"id": _id(f"budget {name}"), "kind": "budget", "level": "warning", "why": why, name: bound}
            yield Mined(rule, len(values), len(values))


def _id(words: str) -> str:
    kept = "".join(c if c.isascii() and c.isalnum() else "-" for c in words.lower())
    return "-".join(part for part in kept.split("-") if part) or "rule"


def pack_text(mined: Sequence[Mined], survey: Survey, name: str) -> str:
    """The pack as YAML for a person to edit."""
    import yaml

    ids: Counter[str] = Counter()
    rules = []
    for one in mined:
        ids[str(one.rule["id"])] += 1
        n = ids[str(one.rule["id"])]
        rules.append({**one.rule, "id": one.rule["id"] if n == 1 else f"{one.rule['id']}-{n}"})
    head = (
        f"# Learned from {survey.runs} runs ({survey.incomplete} incomplete ones cannot show that something did not\n"
        "# happen). A habit is no rule yet: keep what must hold, delete what merely did, and give each an example.\n"
    )
    body = {"version": 1, "pack": name, "invariants": rules}
    return head + yaml.safe_dump(body, sort_keys=False, allow_unicode=True, width=110)

"""`progress`: the weighted share of milestones that were reached."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Annotated, Any

import networkx as nx
from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from tracegrade.checks.base import define_check
from tracegrade.checks.finding import PASS, Findings, make_finding, unseen_codes, why_unsure
from tracegrade.checks.pattern import Action
from tracegrade.checks.search import BUDGET
from tracegrade.checks.view import View
from tracegrade.errors import did_you_mean
from tracegrade.model.invariant import Ids, Params, Strict
from tracegrade.model.trajectory import Relation
from tracegrade.model.verdict import CheckResult


class Milestone(Strict):
    """Something worth reaching."""

    action: Action = Field(description="The step that reaches it; counts only when it ended ok.")
    name: str = Field(default="", description="What `requires` calls it; the action's name unless given.")
    weight: float = Field(default=1.0, gt=0)
    requires: Ids = Field(default=(), description="Milestones that must have been reached before.")

    @property
    def label(self) -> str:
        """What it is called."""
        return self.name or self.action.label


def _milestone(value: Any) -> Any:
    return (
        value if isinstance(value, Milestone) or (isinstance(value, dict) and "action" in value) else {"action": value}
    )


_SCHEMA: dict[str, Any] = {"anyOf": [{"type": "string"}, {"type": "object"}]}
Milestones = Annotated[
    tuple[Annotated[Milestone, BeforeValidator(_milestone)], ...],
    Field(min_length=1),
    WithJsonSchema({"type": "array", "minItems": 1, "items": _SCHEMA}),
]


class Progress(Params):
    """The weighted share of milestones reached, each by a step of its own."""

    milestones: Milestones = Field(description="Names, patterns, or {action, name, weight, requires}.")
    at_least: float | None = Field(
        default=None, ge=0, le=1, description="Makes it a gate; without it, it only measures."
    )
    relation: Relation = "executed"

    @model_validator(mode="after")
    def _sound(self) -> Progress:
        labels = [m.label for m in self.milestones]
        graph: nx.DiGraph[str] = nx.DiGraph()
        for milestone in self.milestones:
            for needed in milestone.requires:
                if needed not in labels:
                    raise ValueError(f"`requires` names no milestone: `{needed}`.{did_you_mean(needed, labels)}")
                if labels.count(needed) > 1:
                    raise ValueError(f"`requires` is ambiguous: several milestones are called `{needed}`")
                graph.add_edge(needed, milestone.label)
        if not nx.is_directed_acyclic_graph(graph):
            circle = [str(a) for a, _ in nx.find_cycle(graph)]
            raise ValueError(f"milestones require each other in a circle: {' -> '.join([*circle, circle[0]])}")
        return self

    @cached_property
    def plan(self) -> list[tuple[int, list[int]]]:
        """Indices of the milestones, each after those it requires, with the indices of those."""
        labels = [m.label for m in self.milestones]
        graph: nx.DiGraph[int] = nx.DiGraph()
        graph.add_nodes_from(range(len(labels)))
        needs = [[labels.index(r) for r in m.requires] for m in self.milestones]
        graph.add_edges_from((r, i) for i, required in enumerate(needs) for r in required)
        return [(i, needs[i]) for i in nx.lexicographical_topological_sort(graph)]


class _Best:
    """The most weight that an assignment of milestones to steps of their own can reach.

    Exact by depth-first search with a bound; when the budget is met, `bound` is what could still be reached.
    """

    def __init__(self, view: View, params: Progress, certain: bool) -> None:
        self.view, self.params = view, params
        self.relation = params.relation
        self.certain = certain
        self.options = [self._candidates(m) for m in params.milestones]
        self.weights = [m.weight for m in params.milestones]
        self.plan = params.plan
        self.needed = {r for _, needs in self.plan for r in needs}
        self.rest = self._rest()
        self.best = -1.0
        self.chosen: dict[int, int] = {}
        self.spent = 0
        self.exhausted = False
        if self.needed or self._shared():
            self._grow(0, {}, set(), 0.0)
        else:  # nothing to choose: each milestone has steps of its own
            self.best = self.rest[0]
            self.chosen = {i: steps[0] for i, steps in enumerate(self.options) if steps}

    def _shared(self) -> bool:
        """Whether a step could stand for more than one milestone."""
        return len(set().union(*self.options)) < sum(map(len, self.options))

    def _candidates(self, milestone: Milestone) -> list[int]:
        found = self.view.match(milestone.action, "proof")
        return list(found.certain()) if self.certain else sorted([*found.certain(), *found.possible()])

    def _rest(self) -> list[float]:
        """The weight of the milestones from each place of the plan on."""
        sums = [0.0]
        for index, _ in reversed(self.plan):
            sums.append(sums[-1] + (self.weights[index] if self.options[index] else 0.0))
        return sums[::-1]

    @property
    def bound(self) -> float:
        """The greatest weight not excluded."""
        return self.rest[0] if self.exhausted else self.best

    def _after(self, earlier: int, later: int) -> bool:
        value = self.view.before(earlier, later, self.relation)
        return value is True if self.certain else value is not False

    def _grow(self, place: int, given: dict[int, int], used: set[int], weight: float) -> None:
        if weight > self.best + 1e-12:
            self.best, self.chosen = weight, dict(given)
        if place == len(self.plan) or weight + self.rest[place] <= self.best + 1e-12 or self.exhausted:
            return
        self.spent += 1
        if self.spent > BUDGET:
            self.exhausted = True
            return
        index, needs = self.plan[place]
        if all(r in given for r in needs):
            for step in self._fitting(index, needs, given, used, place):
                given[index] = step
                used.add(step)
                self._grow(place + 1, given, used, weight + self.weights[index])
                used.discard(step)
                del given[index]
        self._grow(place + 1, given, used, weight)

    def _fitting(self, index: int, needs: list[int], given: dict[int, int], used: set[int], place: int) -> list[int]:
        """Steps that may be given to a milestone; of those that nobody else wants, only the earliest."""
        fitting = [s for s in self.options[index] if s not in used and all(self._after(given[r], s) for r in needs)]
        wanted = {s for later, _ in self.plan[place + 1 :] for s in self.options[later]}
        free = [s for s in fitting if s not in wanted]
        if index not in self.needed:
            free = free[:1]
            return free or fitting
        earliest: list[int] = []
        for s in free:
            if not any(self.view.before(e, s, self.relation) is True for e in earliest):
                earliest = [e for e in earliest if self.view.before(s, e, self.relation) is not True] + [s]
        return earliest + [s for s in fitting if s in wanted]


def check_progress(view: View, params: Progress) -> CheckResult:
    """Judge one trajectory."""
    total = math.fsum(m.weight for m in params.milestones)
    sure = _Best(view, params, True)
    low = sure.best / total
    is_open = view.has_prior or any(view.match(m.action, "proof").open for m in params.milestones)
    high = low
    if low < 1:
        high = 1.0 if is_open else max(low, _Best(view, params, False).bound / total)
    low, high = round(low, 12), round(high, 12)
    measure: float | dict[str, float] = low if low == high else {"low": low, "high": high}
    if low == high and (params.at_least is None or low >= params.at_least):
        return CheckResult("pass", measure=measure)
    if params.at_least is not None and low >= params.at_least:
        return CheckResult("pass", measure=measure)
    findings = Findings(view)
    missed = [m.label for i, m in enumerate(params.milestones) if i not in sure.chosen]
    reached = [(s, params.milestones[i].label) for i, s in sorted(sure.chosen.items())]
    expected = "every milestone" if params.at_least is None else f"progress of at least {params.at_least:g}"
    shown: list[tuple[int, str | None]] = [*reached[:8]]
    if params.at_least is not None and high < params.at_least:
        findings.fail(
            "progress",
            make_finding(
                view,
                f"progress is {low:.0%}, below {params.at_least:.0%}; not reached: {', '.join(missed)}",
                shown,
                expected=expected,
                observed=f"{low:.3g}",
                context={"progress": low, "missed": list(missed)},
                next_action=f"See why `{missed[0]}` was not reached." if missed else None,
            ),
        )
    else:
        codes = _codes(view, params)
        findings.unknown(
            "progress",
            codes,
            make_finding(
                view,
                f"progress is between {low:.0%} and {high:.0%}; undecided: {', '.join(missed)}",
                shown,
                expected=expected,
                observed=f"{low:.3g} to {high:.3g}",
                missing=codes,
                context={"low": low, "high": high, "missed": list(missed)},
            ),
        )
    verdict = findings.verdict(PASS)
    return CheckResult(verdict.verdict, verdict.findings, measure, missing_keys=verdict.missing_keys)


def _codes(view: View, params: Progress) -> list[str]:
    codes: list[str] = []
    for milestone in params.milestones:
        node = milestone.action.proof
        codes += why_unsure(view, [node], view.match_node(node).possible()) + unseen_codes(view, node)
    if view.has_prior:
        codes.append("prior")
    return list(dict.fromkeys(codes)) or ["order"]


def explain(params: Progress) -> str:
    """The rule in words."""
    told = [m.label + (f" (after {', '.join(m.requires)})" if m.requires else "") for m in params.milestones]
    gate = f"; at least {params.at_least:.0%}" if params.at_least is not None else "; a measurement, not a gate"
    return f"Share of milestones reached: {', '.join(told)}{gate}."


PROGRESS = define_check(
    "progress",
    Progress,
    check_progress,
    explain=explain,
    example="""\
- id: progress
  kind: progress
  milestones:
    - {tool: verify_identity}
    - {tool: get_order}
    - {action: {tool: refund}, weight: 2}
""",
)

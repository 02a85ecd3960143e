"""`partial_order`: what must come before what, as a graph without circles."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, Literal

import networkx as nx
from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from tracegrade.checks.base import define_check
from tracegrade.checks.each_step import judge_steps, note_unsure_trigger
from tracegrade.checks.finding import NOT_APPLICABLE, Findings, seen, unseen
from tracegrade.checks.pattern import Action
from tracegrade.checks.precede import Search
from tracegrade.checks.required import judge_required
from tracegrade.checks.view import View
from tracegrade.model.invariant import Params
from tracegrade.model.trajectory import Relation
from tracegrade.model.verdict import CheckResult


def _as_groups(value: Any) -> Any:
    """Every link of every chain becomes a list: `[a, [b, c], d]` puts b and c, in any order, between a and d."""
    if not isinstance(value, list):
        raise ValueError("expected a list of chains such as `[[verify, cancel], [lookup, cancel]]`")
    chains = []
    for chain in value:
        if not isinstance(chain, list) or len(chain) < 2:
            raise ValueError(f"a chain is a list of at least two actions, got {chain!r}")
        chains.append([link if isinstance(link, list) else [link] for link in chain])
    return chains


_LINK: dict[str, Any] = {"anyOf": [{"type": "string"}, {"type": "object"}, {"type": "array", "minItems": 1}]}
Chains = Annotated[
    tuple[tuple[Annotated[tuple[Action, ...], Field(min_length=1)], ...], ...],
    BeforeValidator(_as_groups),
    Field(min_length=1),
    WithJsonSchema({"type": "array", "minItems": 1, "items": {"type": "array", "minItems": 2, "items": _LINK}}),
]


class PartialOrder(Params):
    """For every pair (a, b), every b has some a before it."""

    order: Chains = Field(description="Pairs or chains of actions; a list inside a chain is a group in any order.")
    required: Literal["all"] | tuple[Action, ...] = Field(
        default=(), description="Actions that must occur: a list, or `all`."
    )
    relation: Relation = "executed"

    @model_validator(mode="after")
    def _no_circle(self) -> PartialOrder:
        graph = rule_graph(self)
        try:
            circle = nx.find_cycle(graph)
        except nx.NetworkXNoCycle:
            return self
        told = " -> ".join([*(str(a) for a, _ in circle), str(circle[0][0])])
        raise ValueError(f"the order goes round in a circle: {told}")

    @cached_property
    def pairs(self) -> list[tuple[Action, Action]]:
        """Every (earlier, later) pair once, in the order written."""
        found: dict[tuple[str, str], tuple[Action, Action]] = {}
        for chain in self.order:
            for earlier, later in pairwise(chain):
                for a in earlier:
                    for b in later:
                        found.setdefault((a.label, b.label), (a, b))
        return list(found.values())

    @cached_property
    def must_occur(self) -> list[Action]:
        """The actions that must occur, each once."""
        named = [a for pair in self.pairs for a in pair] if self.required == "all" else list(self.required)
        return list({a.label: a for a in named}.values())


def rule_graph(params: PartialOrder) -> nx.DiGraph[str]:
    """The order that a rule demands, over the labels of its actions."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    for a, b in params.pairs:
        graph.add_edge(a.label, b.label)
    return graph


def check_partial_order(view: View, params: PartialOrder) -> CheckResult:
    """Judge one trajectory."""
    findings = Findings(view)
    n_seen = 0
    certain_later, possible_later, is_open = False, False, False
    for earlier, later in params.pairs:
        found = view.match(later, "attempt")
        is_open = is_open or found.open
        possible_later = possible_later or bool(found.maybe)
        if not found.yes and not found.maybe and not found.has_prior:
            continue
        certain_later = certain_later or bool(found.yes)
        n_seen += len(found.yes)
        judge_steps(view, later, found, Search(view, earlier, params.relation), later.label, findings)
    for action in params.must_occur:
        judge_required(view, action, 1, findings)
    if params.must_occur or findings.failed or certain_later:
        return findings.verdict(seen(is_open, n_seen))
    if findings.undecided:
        return findings.verdict(NOT_APPLICABLE)
    return _no_later(view, params, possible_later, is_open, findings)


def _no_later(view: View, params: PartialOrder, possible: bool, is_open: bool, findings: Findings) -> CheckResult:
    """Nothing that the rule restrains certainly happened, and nothing is required."""
    if possible:
        for earlier, later in params.pairs:
            found = view.match(later, "attempt")
            search = Search(view, earlier, params.relation)
            note_unsure_trigger(view, later, found, search, later.label, findings)
        return findings.verdict(NOT_APPLICABLE)
    if is_open:
        names = list(dict.fromkeys(later.label for _, later in params.pairs))
        later = params.pairs[0][1]
        return unseen(view, later.attempt, " or ".join(f"`{n}`" for n in names), _told(params))
    return NOT_APPLICABLE


def _told(params: PartialOrder) -> str:
    return ", ".join(f"`{a.label}` before `{b.label}`" for a, b in params.pairs)


def explain(params: PartialOrder) -> str:
    """The rule in words."""
    told = f"Order: {_told(params)}."
    if params.must_occur:
        told += f" Must occur: {', '.join(f'`{a.label}`' for a in params.must_occur)}."
    return told


PARTIAL_ORDER = define_check(
    "partial_order",
    PartialOrder,
    check_partial_order,
    explain=explain,
    needs=("order",),
    example="""\
- id: verify-and-look-up-first
  kind: partial_order
  order:
    - [{tool: verify_identity}, {tool: cancel_order}]
    - [{tool: get_order}, {tool: cancel_order}]
""",
)

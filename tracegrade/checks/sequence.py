"""`sequence`: the calls compared with a reference, by best one-to-one matching.

The order of the calls is *consistent* with the reference when no call contradicts it: calls that overlap contradict
nothing, unless `overlap: forbidden`.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from tracegrade.checks.base import define_check
from tracegrade.checks.ends import everything_like
from tracegrade.checks.finding import PASS, Findings, make_finding, name_of, seen, unseen_codes, why_unsure
from tracegrade.checks.matching import largest_matching
from tracegrade.checks.pattern import Action, Node
from tracegrade.checks.search import Exhausted, Placing
from tracegrade.checks.view import Matches, View
from tracegrade.model.invariant import Params
from tracegrade.model.trajectory import Relation
from tracegrade.model.values import Tri, is_redacted, tri_and
from tracegrade.model.verdict import CheckResult

Mode = Literal["exact", "in_order", "any_order", "subset", "superset"]


def _args_mode(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    if value in ("exact", "subset", "ignore"):
        return value
    raise ValueError(f"expected exact, subset, ignore or a list of fields, got {value!r}")


ArgsMode = Annotated[
    Literal["exact", "subset", "ignore"] | tuple[str, ...],
    BeforeValidator(_args_mode),
    WithJsonSchema(
        {"anyOf": [{"enum": ["exact", "subset", "ignore"]}, {"type": "array", "items": {"type": "string"}}]}
    ),
]


class Sequence(Params):
    """The calls compared with a reference, one to one."""

    steps: tuple[Action, ...] = Field(description="The reference; a pattern without `args` takes any arguments.")
    mode: Mode = Field(
        description="exact: these and no others, in this order; in_order: these in this order, others between; "
        "any_order: these and no others; subset: every call is in the reference; superset: every reference step occurs."
    )
    args: ArgsMode = Field(
        default="subset",
        description="subset: arguments that the reference names must match; exact: there are no others; ignore; "
        "or the fields that count.",
    )
    overlap: Literal["allowed", "forbidden"] = Field(
        default="allowed", description="Whether calls that ran at the same time may stand for ordered steps."
    )
    relation: Relation = "executed"

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """The reference, with its arguments as `args` says."""
        return tuple(Action(self._with_args(a)).attempt for a in self.steps)

    def _with_args(self, action: Action) -> Any:
        pattern = action.pattern
        if pattern.args is None or self.args in ("exact", "subset"):
            return pattern
        kept = {p: m for p, m in pattern.args.items() if p and p[0] in self.args} if self.args != "ignore" else None
        return pattern.model_copy(update={"args": kept or None})

    @cached_property
    def only_keys(self) -> tuple[frozenset[str] | None, ...]:
        """For `args: exact`, the arguments that each reference step allows."""
        return tuple(
            frozenset(p[0] for p in a.pattern.args if p) if self.args == "exact" and a.pattern.args else None
            for a in self.steps
        )

    @cached_property
    def domain(self) -> Node:
        """All the steps that are compared with the reference."""
        kinds = frozenset().union(*(n.kinds for n in self.nodes)) if self.nodes else frozenset({"tool_call"})
        return everything_like(Node(kinds, [], None, (), (), None))


class _Table:
    """Which call may stand for which reference step."""

    def __init__(self, view: View, params: Sequence) -> None:
        self.view, self.params = view, params
        found: Matches = view.match_node(params.domain)
        self.found = found
        self.yes, self.maybe = list(found.yes), list(found.maybe)
        self.is_open = found.open or view.has_prior
        self.certain: list[list[int]] = []
        self.possible: list[list[int]] = []
        sure = set(self.yes)
        for node, keys in zip(params.nodes, params.only_keys, strict=True):
            row = [(c, self._value(node, keys, c)) for c in sorted([*self.yes, *self.maybe])]
            self.certain.append([c for c, v in row if v is True and c in sure])
            self.possible.append([c for c, v in row if v is not False])

    def _value(self, node: Node, keys: frozenset[str] | None, call: int) -> Tri:
        step = self.view.steps[call]
        value = node.in_domain(step)
        if keys is None or value is False:
            return value
        if step.arguments_state != "captured" or is_redacted(step.arguments):
            return None
        extra = isinstance(step.arguments, dict) and not step.arguments.keys() <= keys
        return tri_and((value, not extra))

    def covers_reference(self, edges: list[list[int]]) -> bool:
        """Whether every reference step can have a call of its own."""
        return len(largest_matching(dict(enumerate(edges)))) == len(edges)

    def covered_by_reference(self, edges: list[list[int]], calls: list[int]) -> bool:
        """Whether each of some calls can have a reference step of its own."""
        by_call = {c: [r for r, row in enumerate(edges) if c in row] for c in calls}
        return len(largest_matching(by_call)) == len(calls)

    def placing(self, certain: bool, must_use: list[int]) -> list[int] | None:
        """Calls for the reference steps in their order, without contradiction."""
        view, relation = self.view, self.params.relation
        strict = self.params.overlap == "forbidden"

        def clash(earlier: int, later: int) -> bool:
            if strict:
                value = view.before(earlier, later, relation)
                return value is not True if certain else value is False
            value = view.before(later, earlier, relation)
            return value is not False if certain else value is True

        return Placing(self.certain if certain else self.possible, clash, must_use).find()


def check_sequence(view: View, params: Sequence) -> CheckResult:
    """Judge one trajectory."""
    table = _Table(view, params)
    try:
        value = _decide(table, params.mode)
        codes: list[str] = []
    except Exhausted:
        value, codes = None, ["search"]
    if value is True:
        return seen(table.found.open, len(table.yes))
    findings = Findings(view)
    if value is False:
        _tell(table, params, findings)
    else:
        _unsure(table, params, findings, codes)
    return findings.verdict(PASS)


def _decide(table: _Table, mode: Mode) -> Tri:
    calls, maybe = table.yes, table.maybe
    if mode == "subset":
        if not table.covered_by_reference(table.possible, calls):
            return False
        whole = table.covered_by_reference(_sure_rows(table), [*calls, *maybe])
        return True if whole and not table.is_open else None
    if mode in ("superset", "in_order"):
        if not table.covers_reference(table.possible):
            return None if table.is_open else False
        if mode == "superset":
            return True if table.covers_reference(table.certain) else None
        if table.placing(True, []) is not None:
            return True
        return None if table.is_open or table.placing(False, []) is not None else False
    if not table.covered_by_reference(table.possible, calls):
        return False
    if table.is_open:
        return None
    if not table.covers_reference(table.possible):
        return False
    sure = not maybe and len(calls) == len(table.certain) and table.covers_reference(table.certain)
    if mode == "any_order":
        return True if sure else None
    if sure and table.placing(True, calls) is not None:
        return True
    return None if table.placing(False, calls) is not None else False


def _sure_rows(table: _Table) -> list[list[int]]:
    """Reference steps with the calls that certainly match them if they ran."""
    maybe = set(table.maybe)
    rows = []
    for r, (node, keys) in enumerate(zip(table.params.nodes, table.params.only_keys, strict=True)):
        unsure = [c for c in table.possible[r] if c in maybe and _would_match(table, node, keys, c)]
        rows.append([*table.certain[r], *unsure])
    return rows


def _would_match(table: _Table, node: Node, keys: frozenset[str] | None, call: int) -> bool:
    """Whether a call that may not have run matches for certain in all but having run."""
    step = table.view.steps[call]
    undecided = set(node.missing(step))
    if keys is not None and step.arguments_state != "captured":
        return False
    return undecided <= {"executed"}


def _names(table: _Table, calls: list[int], most: int = 8) -> str:
    told = [str(table.view.steps[c].tool or table.view.steps[c].name) for c in calls[:most]]
    return ", ".join(told) + (f", … ({len(calls)} in all)" if len(calls) > most else "") if told else "none"


def _expected(params: Sequence) -> str:
    told = ", ".join(a.label for a in params.steps) or "no call"
    return {
        "exact": f"exactly {told}, in this order",
        "in_order": f"{told}, in this order",
        "any_order": f"exactly {told}, in any order",
        "subset": f"no call but {told}",
        "superset": f"each of {told}",
    }[params.mode]


def _tell(table: _Table, params: Sequence, findings: Findings) -> None:
    view = table.view
    given = largest_matching(dict(enumerate(table.possible)))
    missing = [params.steps[r].label for r in range(len(params.steps)) if r not in given]
    placed = largest_matching({c: [r for r, row in enumerate(table.possible) if c in row] for c in table.yes})
    extra = [c for c in table.yes if c not in placed]
    parts: list[str] = []
    shown: list[tuple[int, str | None]] = []
    if missing and params.mode != "subset":
        parts.append(f"missing: {', '.join(missing[:5])}")
    if extra and params.mode not in ("superset", "in_order"):
        parts.append(f"not in the reference: {', '.join(name_of(view.steps[c]) for c in extra[:3])}")
        shown += [(c, "extra") for c in extra[:3]]
    if not parts:
        first, second = _contradiction(table, params)
        if first is not None and second is not None:
            concurrent = view.order.compare(first, second, params.relation) == "concurrent"
            how = "ran at the same time as (concurrent)" if concurrent else "came before"
            parts.append(f"{name_of(view.steps[first])} {how} {name_of(view.steps[second])}")
            shown = [(first, "out of order"), (second, "out of order")]
        else:
            parts.append("these calls are there, but not in this order")
    observed = "; ".join(parts)
    findings.fail(
        params.mode,
        make_finding(
            view,
            f"the calls are not {_expected(params)}: {observed}",
            shown or [(c, "call") for c in table.yes[:5]],
            expected=_expected(params),
            observed=f"{_names(table, table.yes)} ({observed})",
            context={
                "mode": params.mode,
                "missing_steps": list(missing),
                "extra_steps": [view.steps[c].seq for c in extra],
                "calls": [view.steps[c].tool or view.steps[c].name for c in table.yes],
            },
            next_action="Compare the trajectory with the reference; name another mode if other ways are right too.",
        ),
    )


def _contradiction(table: _Table, params: Sequence) -> tuple[int | None, int | None]:
    """Two calls in the wrong order: the later named one is before (or together with) the earlier named one."""
    given = largest_matching(dict(enumerate(table.possible)))
    for r in range(len(params.steps)):
        for later in range(r + 1, len(params.steps)):
            a, b = given.get(r), given.get(later)
            if a is None or b is None:
                continue
            value = table.view.before(b, a, params.relation)
            if value or (params.overlap == "forbidden" and table.view.before(a, b, params.relation) is False):
                return b, a
    return None, None


def _unsure(table: _Table, params: Sequence, findings: Findings, codes: list[str]) -> None:
    view = table.view
    unsure: list[int] = [*table.maybe]
    for possible, certain in zip(table.possible, table.certain, strict=True):
        unsure += [c for c in possible if c not in certain]
    unsure = list(dict.fromkeys(unsure))
    codes = codes or why_unsure(view, [*params.nodes, params.domain], unsure)
    if params.args == "exact" and any(view.steps[c].arguments_state != "captured" for c in unsure):
        codes.append("arguments")
    codes += unseen_codes(view, params.domain) + (["prior"] if view.has_prior else [])
    if not codes:
        codes = ["turns" if params.relation == "informed" else "order"]
    findings.unknown(
        params.mode,
        codes,
        make_finding(
            view,
            f"cannot tell whether the calls are {_expected(params)}",
            [(c, "undecided") for c in unsure[:3]],
            expected=_expected(params),
            observed=_names(table, table.yes),
            missing=codes,
            context={"mode": params.mode},
        ),
    )


SEQUENCE = define_check(
    "sequence",
    Sequence,
    check_sequence,
    explain=lambda p: f"The calls must be {_expected(p)}.",
    needs=("order",),
    example="""\
- id: the-usual-way
  kind: sequence
  mode: in_order
  steps: [{tool: verify_identity}, {tool: get_order, args: {order_id: W1}}, {tool: cancel_order}]
""",
)

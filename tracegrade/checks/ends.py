"""`first` and `last`: the trajectory's first (last) call matches.

Steps are partially ordered, so several calls may be first: those with no other before them. All of them must match.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tracegrade.checks.base import define_check
from tracegrade.checks.finding import (
    NOT_APPLICABLE,
    PASS,
    Findings,
    make_finding,
    name_of,
    unseen,
    unseen_codes,
    why_unsure,
)
from tracegrade.checks.pattern import CALLS, Action, Node
from tracegrade.checks.view import ANY_CALL, View
from tracegrade.model.invariant import Params
from tracegrade.model.trajectory import Relation
from tracegrade.model.values import Tri
from tracegrade.model.verdict import CheckResult


class First(Params):
    """The trajectory's first call matches."""

    action: Action = Field(description="What must come first; a pattern of messages is about the first message.")
    relation: Relation = "executed"


class Last(Params):
    """The trajectory's last call matches."""

    action: Action = Field(description="What must come last; a pattern of messages is about the last message.")
    relation: Relation = "executed"


def everything_like(node: Node) -> Node:
    """All the steps among which the pattern's must be first: calls that ran, or all steps of its kinds."""
    if node.kinds == CALLS:
        return ANY_CALL
    if node.kinds not in _ANY:
        parts = [("executed", lambda s: s.executed if s.kind == "tool_call" else True)]
        _ANY[node.kinds] = Node(node.kinds, parts, None, (), (), None)
    return _ANY[node.kinds]


_ANY: dict[frozenset[str], Node] = {}


def _judge(view: View, action: Action, relation: Relation, end: Literal["first", "last"]) -> CheckResult:
    node = action.attempt
    everything = view.match_node(everything_like(node))
    members = [*everything.yes, *everything.maybe]
    expected = f"the {end} call is `{action.label}`"
    if not members:
        return unseen(view, node, "call", expected) if everything.open else NOT_APPLICABLE
    matches: dict[int, Tri] = {i: node.in_domain(view.steps[i]) for i in members}
    certain = set(everything.yes)

    def outside(other: int, step: int) -> Tri:
        """Whether `other` lies beyond the step, at the end that the rule is about."""
        return view.before(other, step, relation) if end == "first" else view.before(step, other, relation)

    findings = Findings(view)
    for step in members:
        if matches[step] is True:
            continue
        beyond: list[tuple[int, Tri]] = []
        covered = False
        for other in members:
            value = False if other == step else outside(other, step)
            if value is True and other in certain:
                covered = True
                break
            if value is not False:
                beyond.append((other, value))
        if not covered:
            _note(view, action, end, step, beyond, matches, step in certain, findings, everything.open)
    if everything.open or (end == "first" and view.has_prior):
        codes = unseen_codes(view, node) + (["prior"] if end == "first" and view.has_prior else [])
        told = f"another call may have been the {end} one"
        shown = [(members[0] if end == "first" else members[-1], end)]
        findings.unknown(
            "unseen",
            codes,
            make_finding(
                view,
                f"cannot tell which call is the {end}: {told}",
                shown,
                expected=expected,
                observed=told,
                missing=codes,
                context={"action": action.label},
            ),
        )
    if not findings.failed and not findings.undecided and not everything.yes:
        codes = why_unsure(view, [ANY_CALL], everything.maybe)
        findings.unknown(
            "existence",
            codes,
            make_finding(
                view,
                "it is undecided whether any call ran",
                [(everything.maybe[0], end)],
                expected=expected,
                observed=f"{name_of(view.steps[everything.maybe[0]])}, undecided",
                missing=codes,
            ),
        )
    return findings.verdict(PASS)


def _note(
    view: View,
    action: Action,
    end: str,
    step: int,
    beyond: list[tuple[int, Tri]],
    matches: dict[int, Tri],
    ran: bool,
    findings: Findings,
    is_open: bool,
) -> None:
    """The step may be at the end and does not certainly match."""
    this = name_of(view.steps[step])
    expected = f"the {end} call is `{action.label}`"
    certain = (
        ran
        and matches[step] is False
        and all(matches[other] is False for other, _ in beyond)
        and not is_open
        and not (end == "first" and view.has_prior)
    )
    context = {"action": action.label, "step": view.steps[step].seq}
    if certain:
        others = [o for o, m in matches.items() if m is True and view.order.compare(o, step) == "concurrent"]
        observed = f"{this} is at the {'start' if end == 'first' else 'end'}"
        if others:
            observed += f", concurrent with {name_of(view.steps[others[0]])}"
        findings.fail(
            end,
            make_finding(
                view,
                f"the {end} call is not `{action.label}`: {observed}",
                [(step, end), *((o, action.label) for o in others[:1])],
                expected=expected,
                observed=observed,
                context=context,
                next_action=f"Make `{action.label}` the {end} call.",
            ),
        )
        return
    codes = why_unsure(view, [action.attempt, ANY_CALL], [step])
    codes += ["order"] if any(v is None for _, v in beyond) else []
    codes += why_unsure(view, [action.attempt, ANY_CALL], [o for o, _ in beyond])
    codes = codes or (["complete"] if is_open else ["prior"] if view.has_prior else ["order"])
    findings.unknown(
        end,
        codes,
        make_finding(
            view,
            f"cannot tell whether {this} is the {end} call, or is `{action.label}`",
            [(step, end), *((o, "may be beyond it") for o, _ in beyond[:2])],
            expected=expected,
            observed=f"{this}, undecided",
            missing=codes,
            context=context,
        ),
    )


def check_first(view: View, params: First) -> CheckResult:
    """Judge one trajectory."""
    return _judge(view, params.action, params.relation, "first")


def check_last(view: View, params: Last) -> CheckResult:
    """Judge one trajectory."""
    return _judge(view, params.action, params.relation, "last")


FIRST = define_check(
    "first",
    First,
    check_first,
    explain=lambda p: f"The first call must be `{p.action.label}`; calls that start together must all be.",
    needs=("order",),
    example="""\
- id: begins-with-identity
  kind: first
  action: {tool: verify_identity}
""",
)
LAST = define_check(
    "last",
    Last,
    check_last,
    explain=lambda p: f"The last call must be `{p.action.label}`; calls that end together must all be.",
    needs=("order",),
    example="""\
- id: ends-with-a-receipt
  kind: last
  action: {tool: send_receipt}
""",
)

"""`redundant`: the same call again and again, with nothing in between that would make it worth while."""

from __future__ import annotations

from pydantic import Field

from tracegrade.checks.base import define_check
from tracegrade.checks.finding import PASS, Findings, make_finding, plural, unseen, why_unsure
from tracegrade.checks.grouping import Group, calls_equal, equal_groups
from tracegrade.checks.pattern import Action
from tracegrade.checks.search import Exhausted, find_clique
from tracegrade.checks.view import View
from tracegrade.model.invariant import Params, Pattern
from tracegrade.model.trajectory import Relation
from tracegrade.model.values import Tri, tri_or
from tracegrade.model.verdict import CheckResult


class Redundant(Params):
    """No more than `max_equal` equal calls without a `reset_by` between them."""

    action: Action = Field(
        default_factory=lambda: Action(Pattern()), description="The calls meant; every call unless given."
    )
    max_equal: int = Field(default=1, ge=1, description="How many equal calls are allowed.")
    reset_by: Action | None = Field(
        default=None, description="What makes an equal call worth while again; counts only when it ended ok."
    )
    relation: Relation = "executed"


def check_redundant(view: View, params: Redundant) -> CheckResult:
    """Judge one trajectory."""
    node = params.action.attempt
    found = view.match_node(node)
    findings = Findings(view)
    for group in equal_groups(view, found.yes, found.maybe):
        if len(group.yes) + len(group.maybe) > params.max_equal:
            _judge_group(view, params, group, findings)
    if findings.failed:
        return findings.verdict(PASS)
    if found.has_prior:
        prior = [*found.prior_yes, *found.prior_maybe]
        for group in equal_groups(view, [*found.yes, *found.prior_yes], [*found.maybe, *found.prior_maybe]):
            members = [*group.yes, *group.maybe]
            shown = [i for i in members if i in prior]
            if shown and len(members) > params.max_equal:
                _unsure(view, params, members, findings, ["prior"])
    if found.open and not findings.undecided:
        what = f"more than {params.max_equal} equal `{params.action.label}`"
        return unseen(view, node, what, _expected(params))
    return findings.verdict(PASS)


def _judge_group(view: View, params: Redundant, group: Group, findings: Findings) -> None:
    most = params.max_equal
    if params.reset_by is None:
        if len(group.yes) > most:
            _tell(view, params, sorted(group.yes), len(group.yes), findings)
        else:
            _unsure(view, params, [*group.yes, *group.maybe], findings, _codes(view, params, group))
        return
    try:
        sure = _clique(view, params, sorted(group.yes), most + 1, True)
        if sure is not None:
            _tell(view, params, sure, len(sure), findings)
            return
        if _clique(view, params, sorted([*group.yes, *group.maybe]), most + 1, False) is None:
            return
        codes = _codes(view, params, group)
    except Exhausted:
        codes = ["search"]
    _unsure(view, params, [*group.yes, *group.maybe], findings, codes)


def _clique(view: View, params: Redundant, members: list[int], size: int, certain: bool) -> list[int] | None:
    """`size` equal calls no two of which have a reset between them: certainly, or possibly."""

    def joined(a: int, b: int) -> bool:
        equal = calls_equal(view, a, b)
        apart = _separated(view, params, a, b)
        return (equal is True and apart is False) if certain else (equal is not False and apart is not True)

    return find_clique(members, joined, size)


def _separated(view: View, params: Redundant, a: int, b: int) -> Tri:
    """Whether a reset lies between two calls, whichever came first."""
    assert params.reset_by is not None  # noqa: S101 - asked only then
    resets = view.match(params.reset_by, "proof")

    def between(r: int) -> Tri:
        forth = _both(view.before(a, r, params.relation), view.before(r, b, params.relation))
        back = _both(view.before(b, r, params.relation), view.before(r, a, params.relation))
        return tri_or((forth, back))

    value = tri_or(between(r) for r in resets.certain())
    if value is False and any(between(r) is not False for r in resets.possible()):
        return None
    return None if value is False and resets.open else value


def _both(a: Tri, b: Tri) -> Tri:
    return False if a is False or b is False else None if a is None or b is None else True


def _codes(view: View, params: Redundant, group: Group) -> list[str]:
    members = [*group.yes, *group.maybe]
    codes = why_unsure(view, [params.action.attempt], group.maybe)
    if any(view.steps[i].arguments_state != "captured" for i in members):
        codes.append("arguments")
    if params.reset_by is not None:
        resets = view.match(params.reset_by, "proof")
        codes += why_unsure(view, [params.reset_by.proof], resets.possible())
        codes += [] if view.complete else ["complete"]
    return codes or ["order" if params.reset_by is not None else "arguments"]


def _expected(params: Redundant) -> str:
    told = f"no more than {plural(params.max_equal, 'equal call')}"
    return told + (f" without a `{params.reset_by.label}` in between" if params.reset_by else "")


def _tell(view: View, params: Redundant, members: list[int], n: int, findings: Findings) -> None:
    name = view.steps[members[0]].tool or view.steps[members[0]].name
    findings.fail(
        name,
        make_finding(
            view,
            f"`{name}` was called {n} times with equal arguments (×{n})",
            [(i, "equal call") for i in members[: min(params.max_equal + 1, 5)]],
            expected=_expected(params),
            observed=f"{plural(n, 'equal call')} of `{name}`",
            context={"action": params.action.label, "tool": name, "count": n, "max_equal": params.max_equal},
            next_action="Find out why the agent repeats the call: does it read the result, is the error told to it?",
        ),
    )


def _unsure(view: View, params: Redundant, members: list[int], findings: Findings, codes: list[str]) -> None:
    name = view.steps[members[0]].tool or view.steps[members[0]].name
    findings.unknown(
        (name, tuple(codes)),
        codes,
        make_finding(
            view,
            f"cannot tell whether calls of `{name}` are equal, or how many of them",
            [(i, "may be equal") for i in members[:3]],
            expected=_expected(params),
            observed=f"{plural(len(members), 'call')} of `{name}` that may be equal",
            missing=codes,
            context={"action": params.action.label, "tool": name},
        ),
    )


REDUNDANT = define_check(
    "redundant",
    Redundant,
    check_redundant,
    explain=lambda p: f"Of `{p.action.label}`: {_expected(p)}.",
    needs=("arguments",),
    example="""\
- id: no-repeated-search
  kind: redundant
  action: {tool: search}
  max_equal: 2
  reset_by: {tool: create_item}
""",
)

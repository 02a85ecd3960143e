"""`precedes`: every `then` has a `first` before it."""

from __future__ import annotations

from pydantic import Field, StrictBool

from tracegrade.checks.base import define_check
from tracegrade.checks.each_step import expected_of, judge_each
from tracegrade.checks.finding import Findings, make_finding, name_of, seen
from tracegrade.checks.matching import largest_matching
from tracegrade.checks.pattern import Action
from tracegrade.checks.precede import Search
from tracegrade.checks.same import Same, describe_same
from tracegrade.checks.view import View
from tracegrade.checks.within import Within
from tracegrade.model.invariant import Params
from tracegrade.model.trajectory import Relation
from tracegrade.model.verdict import CheckResult


class Precedes(Params):
    """Every `then` has a `first` before it."""

    first: Action = Field(description="What must come before; counts only when it ended ok.")
    then: Action = Field(description="What is restrained; every attempt counts.")
    same: Same | None = Field(default=None, description="Arguments or values that both must share.")
    each: StrictBool = Field(default=False, description="Every `then` needs a `first` of its own; each is used once.")
    within: Within | None = Field(default=None, description="How far before at most: `30s`, `3 turns`, `5 calls`.")
    alternate: StrictBool = Field(default=False, description="No other `then` may lie between the two.")
    relation: Relation = "executed"


def check_precedes(view: View, params: Precedes) -> CheckResult:
    """Judge one trajectory."""
    between = params.then if params.alternate else None
    search = Search(view, params.first, params.relation, "before", params.same, params.within, between)
    verdict = judge_each(view, params.then, search, "then")
    if params.each and verdict.verdict == "pass":
        return _judge_own(view, params, search)
    if params.each and verdict.verdict == "unknown":
        own = _judge_own(view, params, search)
        return own if own.verdict == "fail" else verdict
    return verdict


def _judge_own(view: View, params: Precedes, search: Search) -> CheckResult:
    """Give every `then` a `first` of its own, if that can be done.

    Edges that are certain suffice: pass, whatever else turns out. Certain and undecided edges together do not: fail.
    """
    found = view.match(params.then, "attempt")
    certain: dict[int, list[int]] = {}
    possible: dict[int, list[int]] = {}
    for then in (*found.yes, *found.maybe):
        sure = [f for f in search.candidates(then, True) if search.pair(f, then) is True]
        maybe = [f for f in search.candidates(then, True) if search.pair(f, then) is None]
        maybe += [f for f in search.candidates(then, False) if search.pair(f, then) is not False]
        certain[then], possible[then] = sure, sure + maybe
    if len(largest_matching(certain)) == len(certain):
        return seen(found.open, len(found.yes))
    best = largest_matching({t: possible[t] for t in found.yes})
    without = [t for t in found.yes if t not in best]
    findings = Findings(view)
    expected = expected_of(params.then, search) + ", its own one"
    if without and not search.may_be_unseen():
        then = without[0]
        used = [(f, params.first.label) for f in possible[then]]
        findings.fail(
            "each",
            make_finding(
                view,
                f"{name_of(view.steps[then])} has no `{params.first.label}` of its own before it: "
                f"{len(best)} for {len(found.yes)} `{params.then.label}`",
                [*used[:3], (then, "then")],
                expected=expected,
                observed=f"every `{params.first.label}` before it serves another `{params.then.label}`",
                count=len(without),
                context={"action": params.then.label, "proof": params.first.label, "step": view.steps[then].seq},
                next_action=f"Make one `{params.first.label}` happen before each `{params.then.label}`.",
            ),
        )
    else:
        codes = ["complete"] if not view.complete else ["prior"] if view.has_prior else ["order"]
        loose = [t for t in found.yes if t not in largest_matching({t: certain[t] for t in found.yes})]
        loose = loose or list(found.maybe)
        findings.unknown(
            "each",
            codes,
            make_finding(
                view,
                f"cannot tell whether every `{params.then.label}` has its own `{params.first.label}` before it",
                [(t, "then") for t in loose[:3]],
                expected=expected,
                observed="undecided matches or order leave more than one answer",
                missing=codes,
                context={"action": params.then.label, "proof": params.first.label},
            ),
        )
    return findings.verdict(seen(found.open, len(found.yes)))


def explain(params: Precedes) -> str:
    """The rule in words."""
    told = f"Every `{params.then.label}` needs a `{params.first.label}` before it"
    if params.same is not None:
        told += f" with {describe_same(params.same)}"
    if params.within is not None:
        told += f", at most {params.within.written} earlier"
    if params.each:
        told += "; each of its own"
    if params.alternate:
        told += f", with no other `{params.then.label}` between"
    return told + "."


PRECEDES = define_check(
    "precedes",
    Precedes,
    check_precedes,
    explain=explain,
    needs=("order",),
    example="""\
- id: look-up-the-order-first
  kind: precedes
  first: {tool: get_order}
  then: {tool: cancel_order}
  same: [order_id]
""",
)

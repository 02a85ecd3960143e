"""`same_turn`: the actions were asked for in one turn."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from tracegrade.checks.base import define_check
from tracegrade.checks.finding import PASS, Findings, make_finding, plural, unseen_codes, why_unsure
from tracegrade.checks.matching import largest_matching
from tracegrade.checks.pattern import Action
from tracegrade.checks.view import View
from tracegrade.model.invariant import Params
from tracegrade.model.verdict import CheckResult


class SameTurn(Params):
    """Some turn asked for every action, `n` calls of each."""

    actions: tuple[Action, ...] = Field(min_length=1)
    n: int = Field(default=1, ge=1, description="How many calls of each action; none serves two.")


def check_same_turn(view: View, params: SameTurn) -> CheckResult:
    """Judge one trajectory."""
    found = [view.match(a, "attempt") for a in params.actions]
    certain = [set(f.yes) for f in found]
    possible = [{*f.yes, *f.maybe, *f.prior_yes, *f.prior_maybe} for f in found]
    members = sorted(set().union(*possible))
    turns = sorted({t for i in members if (t := view.steps[i].turn) is not None})
    for turn in turns:
        here = [i for i in members if view.steps[i].turn == turn]
        if _fits(params, certain, here):
            return PASS
    nowhere = [i for i in members if view.steps[i].turn is None]
    candidates = [[i for i in members if view.steps[i].turn == t] + nowhere for t in turns] + [nowhere]
    could = any(_fits(params, possible, c) for c in candidates)
    findings = Findings(view)
    expected = f"one turn asks for {_told(params)}"
    if could or any(f.open for f in found) or view.has_prior:
        codes = ["turns"] if nowhere else []
        for action, f in zip(params.actions, found, strict=True):
            codes += why_unsure(view, [action.attempt], f.maybe) + unseen_codes(view, action.attempt)
        codes += ["prior"] if view.has_prior else []
        told = "turns are not recorded" if nowhere else "the record does not decide it"
        findings.unknown(
            "turn",
            codes,
            make_finding(
                view,
                f"cannot tell whether one turn asked for {_told(params)}: {told}",
                [(i, "call") for i in members[:4]],
                expected=expected,
                observed=told,
                missing=codes,
            ),
        )
        return findings.verdict(PASS)
    spread = sorted({str(view.steps[i].turn) for i in members})
    observed = (
        f"asked for in turns {', '.join(spread)}" if len(spread) > 1 else plural(len(members), "call") + " in all"
    )
    findings.fail(
        "turn",
        make_finding(
            view,
            f"no turn asked for {_told(params)}: {observed}",
            [(i, f"turn {view.steps[i].turn}") for i in members[:4]],
            expected=expected,
            observed=observed,
            context={"turns": list(spread)},
            next_action="Make the agent ask for these calls together.",
        ),
    )
    return findings.verdict(PASS)


def _fits(params: SameTurn, matches: Sequence[set[int]], members: list[int]) -> bool:
    """Whether each action can have `n` of the members, none used twice."""
    edges: dict[int, list[int]] = {}
    for k, found in enumerate(matches):
        own = [i for i in members if i in found]
        if len(own) < params.n:
            return False
        for copy in range(params.n):
            edges[k * params.n + copy] = own
    return len(largest_matching(edges)) == len(edges)


def _told(params: SameTurn) -> str:
    each = f"{params.n} × " if params.n > 1 else ""
    return " and ".join(f"{each}`{a.label}`" for a in params.actions)


SAME_TURN = define_check(
    "same_turn",
    SameTurn,
    check_same_turn,
    explain=lambda p: f"One turn must ask for {_told(p)}.",
    needs=("turns",),
    example="""\
- id: searches-in-one-batch
  kind: same_turn
  actions: [{tool: search_stock}]
  n: 2
""",
)

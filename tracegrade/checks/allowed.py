"""`allowed`: every call's tool is on the list."""

from __future__ import annotations

from functools import cached_property

from pydantic import Field

from tracegrade.checks.base import define_check
from tracegrade.checks.each_step import prior_finding
from tracegrade.checks.finding import (
    NOT_APPLICABLE,
    Findings,
    make_finding,
    name_of,
    seen,
    unseen,
    why_unsure,
)
from tracegrade.checks.pattern import Action
from tracegrade.checks.view import View
from tracegrade.errors import did_you_mean
from tracegrade.model.invariant import Names, Params, Pattern, ToolNames
from tracegrade.model.values import tri_and, tri_not
from tracegrade.model.verdict import CheckResult


class Allowed(Params):
    """Every call's tool is on the list."""

    tools: ToolNames = Field(description="The tools allowed; globs `*` and `?`.")
    agent: Names | None = Field(default=None, description="Only calls of these agents are meant.")

    @cached_property
    def calls(self) -> Action:
        """The calls meant."""
        return Action(Pattern(agent=self.agent).named("call"))

    @cached_property
    def listed(self) -> Action:
        """Calls whose tool is on the list."""
        return Action(Pattern(tool=self.tools))


def check_allowed(view: View, params: Allowed) -> CheckResult:
    """Judge one trajectory."""
    found = view.match(params.calls, "attempt")
    listed = params.listed.attempt
    expected = f"only {', '.join(params.tools)}" + (f" by {', '.join(params.agent)}" if params.agent else "")
    if not found.yes and not found.maybe and not found.has_prior:
        return unseen(view, params.calls.attempt, "call", expected) if found.open else NOT_APPLICABLE
    findings = Findings(view)
    certain = set(found.yes)
    for index in (*found.yes, *found.maybe):
        step = view.steps[index]
        outside = tri_and((True if index in certain else None, tri_not(listed.in_domain(step))))
        if outside is False:
            continue
        context = {"tool": step.tool, "step": step.seq, "agent": step.agent}
        if outside:
            by = f" by `{step.agent}`" if step.agent else ""
            findings.fail(
                step.tool,
                make_finding(
                    view,
                    f"{name_of(step)}{by} is not on the list of allowed tools",
                    [(index, "call")],
                    expected=expected,
                    observed=f"`{step.tool}`{by}",
                    context=context,
                    next_action="Take the tool away from the agent, or allow it."
                    + did_you_mean(step.tool or "", params.tools),
                ),
            )
        else:
            codes = why_unsure(view, [params.calls.attempt, listed], [index])
            findings.unknown(
                (step.tool, tuple(codes)),
                codes,
                make_finding(
                    view,
                    f"cannot tell whether {name_of(step)} was allowed",
                    [(index, "call")],
                    expected=expected,
                    observed=f"`{step.tool}`, undecided",
                    missing=codes,
                    context=context,
                ),
            )
    for index in (*found.prior_yes, *found.prior_maybe):
        if listed.in_domain(view.steps[index]) is not True:
            told = prior_finding(view, params.calls, index, "call", expected)
            findings.unknown("prior", ["prior"], told)
    if not found.yes and found.maybe and not findings.failed and not findings.undecided:
        codes = why_unsure(view, [params.calls.attempt], found.maybe)
        findings.unknown(
            "trigger",
            codes,
            make_finding(
                view,
                "it is undecided whether any call is meant by this rule",
                [(i, "call") for i in found.maybe[:3]],
                expected=expected,
                observed=f"{len(found.maybe)} undecided",
                missing=codes,
            ),
        )
    if not found.yes and not found.maybe and not findings.undecided:
        return NOT_APPLICABLE if not found.open else unseen(view, params.calls.attempt, "call", expected)
    return findings.verdict(seen(found.open, len(found.yes)))


ALLOWED = define_check(
    "allowed",
    Allowed,
    check_allowed,
    explain=lambda p: f"Calls{' of ' + ', '.join(p.agent) if p.agent else ''} may only be of: {', '.join(p.tools)}.",
    example="""\
- id: triage-only-reads
  kind: allowed
  agent: triage
  tools: ['get_*', 'search_*', 'transfer_to_*']
""",
)

"""`required`: an action occurs at least so many times."""

from __future__ import annotations

from pydantic import Field

from tracegrade.checks.base import define_check
from tracegrade.checks.finding import (
    NOT_APPLICABLE,
    PASS,
    Findings,
    make_finding,
    plural,
    result,
    unseen,
    unseen_codes,
    why_unsure,
)
from tracegrade.checks.pattern import Action
from tracegrade.checks.view import View
from tracegrade.model.invariant import Params
from tracegrade.model.verdict import CheckResult


class Required(Params):
    """At least `at_least` steps match."""

    action: Action = Field(description="What must happen; counts only when it ended ok.")
    at_least: int = Field(default=1, ge=1, description="How often at least.")
    when: Action | None = Field(default=None, description="Only in a run in which a step matches this, at any time.")


def judge_required(view: View, action: Action, at_least: int, findings: Findings) -> None:
    """Add a finding unless the action certainly occurs so many times."""
    found = view.match(action, "proof")
    certain = [*found.prior_yes, *found.yes]
    possible = [*found.prior_maybe, *found.maybe]
    if len(certain) >= at_least:
        return
    expected = f"`{action.label}` at least {plural(at_least, 'time')}"
    observed = f"{plural(len(certain), 'time')}"
    enough = len(certain) + len(possible) >= at_least
    if not enough and not found.open and not view.has_prior:
        tried = [i for i in view.match(action, "attempt").yes if i not in certain]
        if tried:
            ended = sorted({str(view.steps[i].status) for i in tried})
            observed += f"; {plural(len(tried), 'attempt')} ended with status {' or '.join(ended)}"
        findings.fail(
            ("required", action.label),
            make_finding(
                view,
                f"`{action.label}` {'does not occur' if not certain else 'does not occur often enough'}: {observed}",
                [*((i, "counted") for i in certain[:3]), *((i, "does not count") for i in tried[:3])],
                expected=expected,
                observed=observed,
                context={"action": action.label, "at_least": at_least, "counted": len(certain)},
                next_action=f"Make `{action.label}` happen and succeed.",
            ),
        )
        return
    codes = why_unsure(view, [action.proof], possible) if possible else []
    if not enough:
        codes += unseen_codes(view, action.proof)
        if view.has_prior:
            codes.append("prior")
    findings.unknown(
        ("required", action.label),
        codes,
        make_finding(
            view,
            f"cannot tell whether `{action.label}` occurs: {observed} for certain, {len(possible)} undecided",
            [(i, "undecided") for i in possible[:3]],
            expected=expected,
            observed=observed,
            missing=codes,
            context={"action": action.label, "at_least": at_least, "counted": len(certain)},
        ),
    )


def check_required(view: View, params: Required) -> CheckResult:
    """Judge one trajectory."""
    if params.when is not None:
        return _judge_when(view, params, params.when)
    found = view.match(params.action, "proof")
    if len(found.yes) >= params.at_least:
        return PASS
    findings = Findings(view)
    judge_required(view, params.action, params.at_least, findings)
    return findings.verdict(PASS)


def _judge_when(view: View, params: Required, when: Action) -> CheckResult:
    """The demand of a run in which `when` occurs; one of an earlier trace leaves it undecided."""
    called = view.match(when, "attempt")
    expected = f"`{params.action.label}` in a run with `{when.label}`"
    if not called.yes and not called.maybe and not called.has_prior:
        return unseen(view, when.attempt, f"`{when.label}`", expected) if called.open else NOT_APPLICABLE
    findings = Findings(view)
    judge_required(view, params.action, params.at_least, findings)
    if called.yes:
        return findings.verdict(PASS)
    shown = [*called.maybe, *called.prior_yes, *called.prior_maybe]
    codes = why_unsure(view, [when.attempt], called.maybe) + (["prior"] if called.has_prior else [])
    told = make_finding(
        view,
        f"cannot tell whether `{when.label}` occurs, so that `{params.action.label}` is demanded",
        [(i, when.label) for i in shown[:3]],
        expected=expected,
        observed="undecided",
        missing=codes,
        context={"action": params.action.label, "when": when.label},
    )
    return result("unknown", [told], codes)


def explain(params: Required) -> str:
    """The rule in words."""
    told = f"`{params.action.label}` must happen and succeed at least {plural(params.at_least, 'time')}"
    return told + (f" in a run with `{params.when.label}`." if params.when else ".")


REQUIRED = define_check(
    "required",
    Required,
    check_required,
    explain=explain,
    example="""\
- id: identity-is-verified
  kind: required
  action: {tool: verify_identity}
""",
)

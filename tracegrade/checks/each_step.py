"""Rules that say something of every step of a kind: each must have its proof."""

from __future__ import annotations

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
from tracegrade.checks.precede import Search
from tracegrade.checks.same import describe_same
from tracegrade.checks.view import Matches, View
from tracegrade.model.verdict import CheckResult, Finding


def judge_each(view: View, action: Action, search: Search, role: str) -> CheckResult:
    """Whether every step that matches `action` has a proof by `search`.

    No such step: `not_applicable` in a complete trajectory, else unknown. A step of an earlier part of the conversation
    that matches is not judged: unknown.
    """
    found = view.match(action, "attempt")
    if not found.yes and not found.maybe and not found.has_prior:
        if found.open:
            return unseen(view, action.attempt, f"`{action.label}`", expected_of(action, search))
        return NOT_APPLICABLE
    findings = Findings(view)
    judge_steps(view, action, found, search, role, findings)
    if not found.yes and not findings.failed and found.maybe:
        note_unsure_trigger(view, action, found, search, role, findings)
    return findings.verdict(seen(found.open, len(found.yes)))


def judge_steps(view: View, action: Action, found: Matches, search: Search, role: str, findings: Findings) -> None:
    """Add a finding for every step of `found` that has no proof, or may have none."""
    for step in found.yes:
        value = search.around(step)
        if value is True:
            continue
        story = search.story(step)
        told = _finding(view, action, search, role, step, story.observed, story.steps, story.codes)
        if value is False:
            findings.fail((action.label, search.action.label, story.key), told)
        else:
            findings.unknown((action.label, search.action.label, story.key), story.codes, told)
    for step in found.maybe:
        value = search.around(step)
        if value is True:
            continue
        story = search.story(step)
        codes = [*why_unsure(view, [action.attempt], [step]), *story.codes]
        observed = f"{name_of(view.steps[step])} may be `{action.label}`; if it is: {story.observed}"
        told = _finding(view, action, search, role, step, observed, story.steps, codes)
        findings.unknown((action.label, search.action.label, "maybe", story.key), codes, told)
    for step in (*found.prior_yes, *found.prior_maybe):
        findings.unknown(
            (action.label, "prior"), ["prior"], prior_finding(view, action, step, role, expected_of(action, search))
        )


def note_unsure_trigger(
    view: View, action: Action, found: Matches, search: Search, role: str, findings: Findings
) -> None:
    """Where no step certainly matches, it is undecided whether the rule applies at all."""
    for step in found.maybe:
        codes = why_unsure(view, [action.attempt], [step])
        observed = f"it is undecided whether {name_of(view.steps[step])} is `{action.label}`"
        findings.unknown(
            (action.label, "trigger"), codes, _finding(view, action, search, role, step, observed, [], codes)
        )


def expected_of(action: Action, search: Search) -> str:
    """What the rule asks for, in words."""
    told = f"every `{action.label}` has `{search.action.label}` {search.word} it"
    if search.same is not None:
        told += f" with {describe_same(search.same)}"
    if search.within is not None:
        told += f", within {search.within.written}"
    return told


def prior_finding(view: View, action: Action, step: int, role: str, expected: str) -> Finding:
    """The finding for a restrained step that stands only in the recorded history."""
    return make_finding(
        view,
        f"{name_of(view.steps[step])} happened earlier in this conversation, in a trace outside this trajectory",
        [(step, role)],
        expected=expected,
        observed=f"`{action.label}` in the history of the first model call; a history may lack steps",
        missing=["prior"],
        context={"action": action.label},
    )


def _finding(
    view: View,
    action: Action,
    search: Search,
    role: str,
    step: int,
    observed: str,
    steps: list[tuple[int, str]],
    codes: list[str],
) -> Finding:
    proof = f"`{search.action.label}` {search.word} it"
    this = name_of(view.steps[step])
    message = f"cannot tell whether {this} has a {proof}" if codes else f"{this} has no {proof}"
    shown: list[tuple[int, str | None]] = [*steps]
    shown.insert(0 if search.side == "after" else len(shown), (step, role))
    return make_finding(
        view,
        f"{message}: {observed}",
        shown,
        expected=expected_of(action, search),
        observed=observed,
        missing=codes,
        context={"action": action.label, "proof": search.action.label, "step": view.steps[step].seq},
        next_action=None if codes else f"Make `{search.action.label}` happen {search.word} `{action.label}`.",
    )

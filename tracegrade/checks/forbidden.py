"""`forbidden`: no step matches, at all or inside a scope."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field, model_validator

from tracegrade.checks.base import define_check
from tracegrade.checks.each_step import prior_finding
from tracegrade.checks.finding import PASS, Findings, make_finding, name_of, unseen, unseen_codes, why_unsure
from tracegrade.checks.pattern import Action, Reading
from tracegrade.checks.precede import Search
from tracegrade.checks.view import View
from tracegrade.checks.within import WITHIN_CODE, Within, is_within
from tracegrade.model.invariant import Params
from tracegrade.model.trajectory import Relation
from tracegrade.model.values import Tri, tri_and, tri_not
from tracegrade.model.verdict import CheckResult


class Forbidden(Params):
    """No step matches, or none inside the scope; several scopes must all hold for a violation."""

    action: Action = Field(description="What must not happen; every attempt counts.")
    before: Action | None = Field(default=None, description="Only before some step that matches this.")
    after: Action | None = Field(default=None, description="Only after some step that matches this.")
    until: Action | None = Field(
        default=None, description="Allowed after, or together with, the first step that matches this and ended ok."
    )
    unless: Action | None = Field(
        default=None, description="Allowed where a step that matches this and ended ok came before."
    )
    when: Action | None = Field(default=None, description="Only in a run in which a step matches this, at any time.")
    within: Within | None = Field(
        default=None, description="How near the step of `before` or `after` must be: `30s`, `3 turns`, `5 calls`."
    )
    relation: Relation = "executed"

    @model_validator(mode="after")
    def _near_what(self) -> Forbidden:
        if self.within is not None and self.before is None and self.after is None:
            raise ValueError("`within` says how near the step of `before` or `after` is; neither is given")
        return self


def check_forbidden(view: View, params: Forbidden) -> CheckResult:
    """Judge one trajectory."""
    found = view.match(params.action, "attempt")
    if not found.yes and not found.maybe and not found.has_prior:
        if found.open:
            return unseen(view, params.action.attempt, f"`{params.action.label}`", _expected(params))
        return PASS
    findings = Findings(view)
    scope = _Scope(view, params)
    for step in found.yes:
        _judge(view, params, scope, step, True, findings)
    for step in found.maybe:
        _judge(view, params, scope, step, None, findings)
    for step in (*found.prior_yes, *found.prior_maybe):
        told = prior_finding(view, params.action, step, "action", _expected(params))
        findings.unknown((params.action.label, "prior"), ["prior"], told)
    if found.open and not findings.failed and not findings.undecided:
        return unseen(view, params.action.attempt, f"forbidden `{params.action.label}`", _expected(params))
    return findings.verdict(PASS)


class _Scope:
    """Whether a step lies where the rule forbids it."""

    def __init__(self, view: View, params: Forbidden) -> None:
        self.view, self.params = view, params
        self.unless = Search(view, params.unless, params.relation) if params.unless is not None else None

    def value(self, step: int) -> Tri:
        """Kleene's conjunction over the scopes that the rule names."""
        params = self.params
        parts: list[Tri] = []
        if params.before is not None:
            parts.append(self._some(step, params.before, "before"))
        if params.after is not None:
            parts.append(self._some(step, params.after, "after"))
        if params.until is not None:
            parts.append(tri_not(self._reached(step)))
        if self.unless is not None:
            parts.append(tri_not(self.unless.around(step)))
        if params.when is not None:
            parts.append(self._occurs(step, params.when))
        return tri_and(parts)

    def _occurs(self, step: int, mark: Action) -> Tri:
        """Whether another step of a mark occurs, wherever."""
        found = self.view.match(mark, "attempt")
        if any(other != step for other in found.certain()):
            return True
        maybe = any(other != step for other in found.possible())
        return None if maybe or found.open or self.view.has_prior else False

    def _some(self, step: int, mark: Action, side: str) -> Tri:
        """Whether the step is before (after) some mark; a mark is not restrained, so every attempt counts."""
        found = self.view.match(mark, "attempt")
        best: Tri = False
        for other in found.certain():
            value = self._near(step, other) if side == "before" else self._near(other, step)
            if value is True:
                return True
            if value is None:
                best = None
        for other in found.possible():
            if (self._near(step, other) if side == "before" else self._near(other, step)) is not False:
                best = None
        unseen = found.open or (side == "after" and self.view.has_prior)
        return None if best is False and unseen else best

    def _near(self, a: int, b: int) -> Tri:
        """Whether one step is before the other, and near enough."""
        value = self._before(a, b)
        if value is False or self.params.within is None:
            return value
        near = is_within(self.view, a, b, self.params.within, self.params.relation)
        if near and self.params.within.unit == "calls" and not self.view.complete:
            near = None  # a call that was not seen may lie between
        return tri_and((value, near))

    def _before(self, a: int, b: int) -> Tri:
        return self.view.before(a, b, self.params.relation)

    def _reached(self, step: int) -> Tri:
        """Whether the step is after, or concurrent with, the first proof of `until`.

        A proof that the step is not before is the first one or comes after it, so any will do.
        """
        assert self.params.until is not None  # noqa: S101 - asked only then
        found = self.view.match(self.params.until, "proof")
        best: Tri = False
        for proof in found.certain():
            value = self._before(step, proof)
            if value is False:
                return True
            if value is None:
                best = None
        for proof in found.possible():
            if self._before(step, proof) is not True:
                best = None
        return None if best is False and (found.open or self.view.has_prior) else best

    def marks(self) -> Iterable[tuple[Action, Reading]]:
        """The actions that delimit the scope, as they are read."""
        for action, reading in (
            (self.params.before, "attempt"),
            (self.params.after, "attempt"),
            (self.params.until, "proof"),
            (self.params.unless, "proof"),
            (self.params.when, "attempt"),
        ):
            if action is not None:
                yield action, reading  # type: ignore[misc]


def _judge(view: View, params: Forbidden, scope: _Scope, step: int, matches: Tri, findings: Findings) -> None:
    value = tri_and((matches, scope.value(step)))
    if value is False:
        return
    this = name_of(view.steps[step])
    where = _where(params)
    steps: list[tuple[int, str | None]] = [(step, "action")]
    for mark, reading in scope.marks():
        found = view.match(mark, reading)
        near = [*found.certain(), *found.possible()][:1]
        steps += [(i, mark.label) for i in near if i != step]
    if value is True:
        observed = f"{this} happened{where}"
        if scope.unless is not None:
            observed += f"; {scope.unless.story(step).observed}"
        findings.fail(
            (params.action.label, view.steps[step].name),
            make_finding(
                view,
                f"{this} is forbidden{where}" + (f": {observed.split('; ', 1)[1]}" if "; " in observed else ""),
                steps,
                expected=_expected(params),
                observed=observed,
                context={"action": params.action.label, "step": view.steps[step].seq},
                next_action=f"Keep the agent from `{params.action.label}`{where}.",
            ),
        )
        return
    codes = why_unsure(view, [params.action.attempt], [step]) if matches is None else []
    if scope.value(step) is None:
        for mark, reading in scope.marks():
            node = mark.attempt if reading == "attempt" else mark.proof
            found = view.match(mark, reading)
            codes += why_unsure(view, [node], found.possible()) + unseen_codes(view, node)
            if any(
                view.before(i, step, params.relation) is None or view.before(step, i, params.relation) is None
                for i in (*found.certain(), *found.possible())
            ):
                codes.append("turns" if params.relation == "informed" else "order")
        if params.within is not None:
            codes.append(WITHIN_CODE[params.within.unit])
        if view.has_prior:
            codes.append("prior")
    findings.unknown(
        (params.action.label, "undecided", tuple(codes)),
        codes,
        make_finding(
            view,
            f"cannot tell whether {this} is a forbidden `{params.action.label}`{where}",
            steps,
            expected=_expected(params),
            observed=f"{this}, undecided",
            missing=codes,
            context={"action": params.action.label, "step": view.steps[step].seq},
        ),
    )


def _where(params: Forbidden) -> str:
    told = [
        f" {word} `{action.label}`"
        for word, action in (
            ("before", params.before),
            ("after", params.after),
            ("until", params.until),
            ("without", params.unless),
            ("in a run with", params.when),
        )
        if action is not None
    ]
    near = f" within {params.within.written}" if params.within is not None else ""
    return ",".join(told) + near


def _expected(params: Forbidden) -> str:
    return f"no `{params.action.label}`{_where(params)}"


def explain(params: Forbidden) -> str:
    """The rule in words."""
    return f"`{params.action.label}` must not happen{_where(params)}."


FORBIDDEN = define_check(
    "forbidden",
    Forbidden,
    check_forbidden,
    explain=explain,
    example="""\
- id: no-call-after-hand-over
  kind: forbidden
  action: {tool: '*'}
  after: {tool: transfer_to_human}
""",
)

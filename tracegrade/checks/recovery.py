"""`recovery`: what happens after a call ended in an error."""

from __future__ import annotations

from pydantic import Field, StrictBool

from tracegrade.checks.base import define_check
from tracegrade.checks.finding import (
    NOT_APPLICABLE,
    Findings,
    make_finding,
    name_of,
    plural,
    seen,
    unseen,
    unseen_codes,
    why_unsure,
)
from tracegrade.checks.grouping import calls_equal, equality_key
from tracegrade.checks.pattern import Action, compile_pattern
from tracegrade.checks.view import View
from tracegrade.model.invariant import Params, Pattern
from tracegrade.model.trajectory import Relation
from tracegrade.model.values import Tri, tri_and, tri_not, tri_or
from tracegrade.model.verdict import CheckResult

_FAILED = compile_pattern(Pattern(executed="any", status=("error",)), "attempt")
_WORKED = compile_pattern(Pattern(executed="any", status=("ok",)), "attempt")


class Recovery(Params):
    """After an error, at most so many equal retries, and a later success if asked."""

    action: Action = Field(
        default_factory=lambda: Action(Pattern()), description="The calls meant; every call unless given."
    )
    max_retries: int | None = Field(
        default=None, ge=0, description="Later calls with equal arguments, up to the first success among them."
    )
    must_succeed: StrictBool | None = Field(
        default=None,
        description="A later call of the same tool must end ok. The default if `max_retries` is not given.",
    )
    relation: Relation = "executed"

    @property
    def wants_success(self) -> bool:
        """Whether a later success is asked for."""
        return self.must_succeed if self.must_succeed is not None else self.max_retries is None


def check_recovery(view: View, params: Recovery) -> CheckResult:
    """Judge one trajectory."""
    found = view.match(params.action, "attempt")
    certain = set(found.yes)
    members = [*found.yes, *found.maybe]
    errors: list[tuple[int, Tri]] = []
    for index in members:
        value = tri_and((True if index in certain else None, _FAILED.test(view.steps[index])))
        if value is not False:
            errors.append((index, value))
    prior = [i for i in (*found.prior_yes, *found.prior_maybe) if _FAILED.test(view.steps[i]) is not False]
    expected = _expected(params)
    if not errors and not prior:
        return unseen(view, params.action.attempt, "error", expected) if found.open else NOT_APPLICABLE
    findings = Findings(view)
    by_tool: dict[str | None, list[int]] = {}
    for index in members:
        by_tool.setdefault(view.steps[index].tool, []).append(index)
    for index, value in errors:
        same_tool = by_tool[view.steps[index].tool] + (by_tool.get(None, []) if view.steps[index].tool else [])
        _judge_error(view, params, index, value, same_tool, certain, findings)
    for index in prior:
        findings.unknown(
            "prior",
            ["prior"],
            make_finding(
                view,
                f"{name_of(view.steps[index])} failed earlier in this conversation, in a trace that is not loaded",
                [(index, "error")],
                expected=expected,
                observed="an error in the history of the first model call",
                missing=["prior"],
            ),
        )
    certain_errors = [i for i, v in errors if v is True]
    if not certain_errors and not findings.failed and not findings.undecided:
        codes = why_unsure(view, [params.action.attempt, _FAILED], [i for i, _ in errors])
        _unsure(view, errors[0][0], codes, expected, "it may not have failed", findings)
    return findings.verdict(seen(found.open, len(certain_errors)))


def _judge_error(
    view: View,
    params: Recovery,
    error: int,
    failed: Tri,
    same_tool: list[int],
    certain: set[int],
    findings: Findings,
) -> None:
    expected = _expected(params)
    is_open = not view.complete
    if params.wants_success:
        success = tri_or(
            tri_and(
                (
                    True if s in certain else None,
                    None if view.steps[s].tool is None else True,
                    _WORKED.test(view.steps[s]),
                    view.before(error, s, params.relation),
                )
            )
            for s in same_tool
            if s != error
        )
        if success is False and is_open:
            success = None
        value = tri_or((tri_not(failed), success))
        if value is False:
            findings.fail(
                ("success", view.steps[error].tool),
                make_finding(
                    view,
                    f"{name_of(view.steps[error])} failed and no later call of it succeeded",
                    [(error, "error")],
                    expected=expected,
                    observed=f"status error ({view.steps[error].status_evidence or 'no detail'}), no later success",
                    context={"tool": view.steps[error].tool, "step": view.steps[error].seq},
                    next_action="See what the agent did with the error: retry, another way, or a wrong claim.",
                ),
            )
        elif value is None:
            codes = why_unsure(view, [params.action.attempt, _FAILED, _WORKED], [error, *same_tool])
            codes += [] if view.complete else ["complete"]
            _unsure(view, error, codes or ["order"], expected, "a later success is undecided", findings)
    if params.max_retries is not None:
        _judge_retries(view, params, params.max_retries, error, failed, same_tool, certain, findings)


def _judge_retries(
    view: View,
    params: Recovery,
    most: int,
    error: int,
    failed: Tri,
    same_tool: list[int],
    certain: set[int],
    findings: Findings,
) -> None:
    key = equality_key(view, error)
    near = [c for c in same_tool if c != error and (key is None or equality_key(view, c) in (key, None))]
    later = [(c, tri_and((calls_equal(view, error, c), view.before(error, c, params.relation)))) for c in near]
    later = [(c, v) for c, v in later if v is not False]
    sure: list[int] = []
    possible = 0
    for c, value in later:
        settled = tri_or(
            tri_and(
                (
                    True if s in certain else None,
                    worked,
                    _WORKED.test(view.steps[s]),
                    view.before(s, c, params.relation),
                )
            )
            for s, worked in later
            if s != c
        )
        whole = tri_and((failed, True if c in certain else None, value, tri_not(settled)))
        if whole is True:
            sure.append(c)
        elif whole is None:
            possible += 1
    expected = _expected(params)
    # An unseen success could stand between, so in an incomplete record only direct evidence of none would decide.
    if len(sure) > most and view.complete:
        findings.fail(
            ("retries", view.steps[error].tool),
            make_finding(
                view,
                f"{name_of(view.steps[error])} failed and was retried {len(sure)} times with equal arguments",
                [(error, "error"), *((c, "retry") for c in sure[: min(most + 1, 4)])],
                expected=expected,
                observed=plural(len(sure), "retry"),
                context={"tool": view.steps[error].tool, "step": view.steps[error].seq, "retries": len(sure)},
                next_action="Limit retries, or make the agent change the arguments.",
            ),
        )
    elif len(sure) + possible > most or not view.complete:
        codes = why_unsure(view, [params.action.attempt, _FAILED, _WORKED], [error, *near])
        codes += unseen_codes(view, params.action.attempt)
        if any(view.steps[c].arguments_state != "captured" for c in [error, *near]):
            codes.append("arguments")
        _unsure(view, error, codes or ["order"], expected, "the number of retries is undecided", findings)


def _unsure(view: View, error: int, codes: list[str], expected: str, why: str, findings: Findings) -> None:
    findings.unknown(
        (view.steps[error].tool, tuple(codes)),
        codes,
        make_finding(
            view,
            f"cannot tell whether {name_of(view.steps[error])} was recovered from: {why}",
            [(error, "error")],
            expected=expected,
            observed=why,
            missing=codes,
            context={"tool": view.steps[error].tool, "step": view.steps[error].seq},
        ),
    )


def _expected(params: Recovery) -> str:
    told = []
    if params.max_retries is not None:
        told.append(f"at most {plural(params.max_retries, 'retry')} with equal arguments")
    if params.wants_success:
        told.append("a later success")
    return f"after an error of `{params.action.label}`: {' and '.join(told)}"


RECOVERY = define_check(
    "recovery",
    Recovery,
    check_recovery,
    explain=lambda p: _expected(p)[0].upper() + _expected(p)[1:] + ".",
    needs=("status",),
    example="""\
- id: no-blind-retries
  kind: recovery
  action: {tool: charge_card}
  max_retries: 0
""",
)

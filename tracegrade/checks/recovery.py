"""`recovery`: what happens after a call ended in an error."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

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
    calls = _Calls(view, params, members, certain)
    for index, value in errors:
        _judge_error(view, params, index, value, calls, findings)
    for index in prior:
        findings.unknown(
            "prior",
            ["prior"],
            make_finding(
                view,
                f"{name_of(view.steps[index])} failed earlier in this conversation, in a trace outside this trajectory",
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


class _Calls:
    """The calls that a rule looks at, by tool, so that each error is compared with few of them."""

    def __init__(self, view: View, params: Recovery, members: list[int], certain: set[int]) -> None:
        self.view, self.params, self.certain = view, params, certain
        self.by_tool: dict[str | None, list[int]] = {}
        for index in members:
            self.by_tool.setdefault(view.steps[index].tool, []).append(index)
        self._worked: dict[str | None, tuple[list[int], bool]] = {}
        self._equal: dict[tuple[str | None, str], tuple[list[int], dict[int, int] | None]] = {}
        self._codes: dict[str | None, list[str]] = {}

    def of(self, tool: str | None) -> list[int]:
        """Calls of one tool, and those whose tool is not known."""
        return self.by_tool[tool] + (self.by_tool.get(None, []) if tool else [])

    def codes(self, tool: str | None) -> list[str]:
        """The evidence that leaves calls of one tool undecided."""
        if tool not in self._codes:
            self._codes[tool] = why_unsure(self.view, [self.params.action.attempt, _FAILED, _WORKED], self.of(tool))
        return self._codes[tool]

    def success_after(self, error: int) -> Tri:
        """Whether a call of the same tool worked after an error."""
        view, tool = self.view, self.view.steps[error].tool
        if tool not in self._worked:
            worked = [s for s in self.of(tool) if _WORKED.test(view.steps[s]) is not False]
            self._worked[tool] = worked, self._in_a_row(worked)
        worked, in_a_row = self._worked[tool]
        best: Tri = False
        for s in reversed(worked):
            if s == error:
                continue
            ordering = view.order.compare(error, s, self.params.relation)
            if ordering == "after" and in_a_row:
                break  # so are all that came before it
            value = tri_and(
                (
                    True if s in self.certain else None,
                    None if view.steps[s].tool is None else True,
                    _WORKED.test(view.steps[s]),
                    True if ordering == "before" else None if ordering == "unknown" else False,
                )
            )
            if value is True:
                return True
            if value is None:
                best = None
        return best

    def _in_a_row(self, steps: list[int]) -> bool:
        """Whether each of some steps certainly comes before the next."""
        return all(self.view.before(a, b, self.params.relation) for a, b in pairwise(steps))

    def equal_to(self, error: int, key: str) -> tuple[list[int], dict[int, int] | None]:
        """The calls that may equal an error, and the number of retries after each where nothing is undecided."""
        tool = self.view.steps[error].tool
        if (tool, key) not in self._equal:
            for other in self.of(tool):
                self._equal.setdefault((tool, equality_key(self.view, other) or ""), ([], None))[0].append(other)
            unknown = self._equal.get((tool, ""), ([], None))[0]
            for (owner, text), (steps, _) in list(self._equal.items()):
                if owner == tool and text:
                    near = sorted([*steps, *unknown])
                    self._equal[tool, text] = near, None if unknown else self._counted(near)
        return self._equal[tool, key]

    def _counted(self, equal: list[int]) -> dict[int, int] | None:
        """How many of equal calls, one certainly after the other, follow each up to the first that worked."""
        status = {s: _WORKED.test(self.view.steps[s]) for s in equal}
        if None in status.values() or not self.certain.issuperset(equal) or not self._in_a_row(equal):
            return None
        retries, count = {}, 0
        for s in reversed(equal):
            retries[s] = count
            count = 1 if status[s] else count + 1
        return retries


def _judge_error(view: View, params: Recovery, error: int, failed: Tri, calls: _Calls, findings: Findings) -> None:
    expected = _expected(params)
    if params.wants_success:
        success = calls.success_after(error)
        if success is False and not view.complete:
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
            codes = [*calls.codes(view.steps[error].tool)]
            codes += [] if view.complete else ["complete"]
            _unsure(view, error, codes or ["order"], expected, "a later success is undecided", findings)
    if params.max_retries is not None:
        _judge_retries(view, params, params.max_retries, error, failed, calls, findings)


def _judge_retries(
    view: View, params: Recovery, most: int, error: int, failed: Tri, calls: _Calls, findings: Findings
) -> None:
    key = equality_key(view, error)
    if key is None:
        near, counted = calls.of(view.steps[error].tool), None
    else:
        near, counted = calls.equal_to(error, key)
    if counted is not None and failed is True:
        place = bisect_right(near, error)
        sure, count, possible = near[place : place + min(counted[error], most + 1)], counted[error], 0
    else:
        sure, possible = _weighed(view, params, most, error, failed, [c for c in near if c != error], calls.certain)
        count = len(sure)
    expected = _expected(params)
    # An unseen success could stand between, so in an incomplete record only direct evidence of none would decide.
    if count > most and view.complete:
        findings.fail(
            ("retries", view.steps[error].tool),
            make_finding(
                view,
                f"{name_of(view.steps[error])} failed and was retried {count} times with equal arguments",
                [(error, "error"), *((c, "retry") for c in sure[: min(most + 1, 4)])],
                expected=expected,
                observed=plural(count, "retry"),
                context={"tool": view.steps[error].tool, "step": view.steps[error].seq, "retries": count},
                next_action="Limit retries, or make the agent change the arguments.",
            ),
        )
    elif count + possible > most or not view.complete:
        codes = [*calls.codes(view.steps[error].tool), *unseen_codes(view, params.action.attempt)]
        if key is None or any(equality_key(view, c) is None for c in near):
            codes.append("arguments")
        _unsure(view, error, codes or ["order"], expected, "the number of retries is undecided", findings)


def _weighed(
    view: View, params: Recovery, most: int, error: int, failed: Tri, near: list[int], certain: set[int]
) -> tuple[list[int], int]:
    """The certain retries of an error, and the number of possible ones, where something is undecided."""
    key = equality_key(view, error)
    later = []
    for c in near:
        value = tri_and((calls_equal(view, error, c), view.before(error, c, params.relation)))
        if value is not False:
            later.append((c, value))
            if key is None and len(later) > most:
                return [], len(later)  # no retry of it can be certain
    worked = [(s, v) for s, v in later if _WORKED.test(view.steps[s]) is not False]
    sure: list[int] = []
    possible = 0
    for c, value in later:
        settled = tri_or(
            tri_and(
                (
                    True if s in certain else None,
                    equal,
                    _WORKED.test(view.steps[s]),
                    view.before(s, c, params.relation),
                )
            )
            for s, equal in worked
            if s != c
        )
        whole = tri_and((failed, True if c in certain else None, value, tri_not(settled)))
        if whole is True:
            sure.append(c)
        elif whole is None:
            possible += 1
    return sure, possible


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

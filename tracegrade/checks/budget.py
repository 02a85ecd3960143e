"""`budget`: totals of a trajectory stay within limits."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import Field, model_validator

from tracegrade.checks.base import define_check
from tracegrade.checks.finding import PASS, Findings, make_finding
from tracegrade.checks.view import View
from tracegrade.model.invariant import Params
from tracegrade.model.verdict import CheckResult


class Budget(Params):
    """Each total is within its limit."""

    steps: int | None = Field(default=None, ge=0, description="Steps of every kind, without those of an earlier trace.")
    tool_calls: int | None = Field(default=None, ge=0, description="Calls that ran.")
    model_calls: int | None = Field(default=None, ge=0)
    input_tokens: int | None = Field(default=None, ge=0, description="Cached tokens included.")
    output_tokens: int | None = Field(default=None, ge=0, description="Reasoning tokens included.")
    cost_usd: float | None = Field(default=None, ge=0)
    duration_s: float | None = Field(default=None, ge=0, description="Sum over traces of last end minus first start.")

    @model_validator(mode="after")
    def _some(self) -> Budget:
        if all(getattr(self, name) is None for name in type(self).model_fields):
            raise ValueError(f"expected at least one of {', '.join(type(self).model_fields)}")
        return self


class _Total(NamedTuple):
    """A total known to be at least `low`; exactly that unless a code says what is missing.

    `high` is the greatest it may be, None where nothing bounds it.
    """

    low: float
    missing: str | None
    high: float | None = None


def _total(view: View, name: str) -> _Total:
    trajectory = view.trajectory
    usage = trajectory.usage
    partial = None if view.complete else "complete"
    if name == "steps":
        return _Total(sum(not s.prior for s in view.steps), partial)
    if name == "tool_calls":
        calls = view.executed_calls()
        if partial is None and calls.maybe:
            return _Total(len(calls.yes), "executed", len(calls.yes) + len(calls.maybe))
        return _Total(len(calls.yes), partial)
    if name == "model_calls":
        return _Total(usage.model_calls, partial)
    if name == "duration_s":
        known = trajectory.duration_ns
        return _Total((known or 0) / 1e9, partial or ("duration" if known is None else None))
    value = getattr(usage, name)
    whole = usage.cost_complete if name == "cost_usd" else usage.complete
    return _Total(value or 0, "usage" if value is None or not whole else partial)


def check_budget(view: View, params: Budget) -> CheckResult:
    """Judge one trajectory."""
    findings = Findings(view)
    for name in type(params).model_fields:
        limit = getattr(params, name)
        if limit is None:
            continue
        total = _total(view, name)
        shown = f"{total.low:g}" if isinstance(total.low, float) else str(total.low)
        expected = f"{name} at most {limit:g}" if isinstance(limit, float) else f"{name} at most {limit}"
        context = {"total": name, "limit": limit, "value": total.low}
        if total.low > limit:
            at_least = "at least " if total.missing else ""
            findings.fail(
                name,
                make_finding(
                    view,
                    f"{name} is {at_least}{shown}, over the limit of {limit:g}",
                    [],
                    expected=expected,
                    observed=f"{at_least}{shown}",
                    context=context,
                    next_action="See `tracegrade show` for where it was spent.",
                ),
            )
        elif total.missing and (total.high is None or total.high > limit):
            findings.unknown(
                name,
                [total.missing],
                make_finding(
                    view,
                    f"cannot tell whether {name} is within {limit:g}: at least {shown} is known",
                    [],
                    expected=expected,
                    observed=f"at least {shown}",
                    missing=[total.missing],
                    context=context,
                ),
            )
    return findings.verdict(PASS)


def explain(params: Budget) -> str:
    """The rule in words."""
    told = [f"{n} {getattr(params, n):g}" for n in type(params).model_fields if getattr(params, n) is not None]
    return f"At most: {', '.join(told)}."


BUDGET = define_check(
    "budget",
    Budget,
    check_budget,
    explain=explain,
    needs=("usage",),
    example="""\
- id: small-run
  kind: budget
  tool_calls: 30
  cost_usd: 0.5
""",
)

"""`claims`: whoever says it, did it."""

from __future__ import annotations

from functools import cached_property

from pydantic import Field

from tracegrade.checks.base import define_check
from tracegrade.checks.each_step import judge_each
from tracegrade.checks.pattern import Action
from tracegrade.checks.precede import Search
from tracegrade.checks.view import View
from tracegrade.model.invariant import MatcherRef, Params, Pattern
from tracegrade.model.trajectory import Relation
from tracegrade.model.verdict import CheckResult


class Claims(Params):
    """Every assistant message whose text matches has the action before it."""

    when: MatcherRef = Field(description="A matcher on what the assistant says.")
    requires: Action = Field(description="What must have been done before; counts only when it ended ok.")
    relation: Relation = "executed"

    @cached_property
    def claim(self) -> Action:
        """The assistant messages that make the claim."""
        return Action(Pattern(message=("assistant",), text=self.when).named("claim"))


def check_claims(view: View, params: Claims) -> CheckResult:
    """Judge one trajectory."""
    return judge_each(view, params.claim, Search(view, params.requires, params.relation), "claim")


def explain(params: Claims) -> str:
    """The rule in words."""
    return f"An assistant message that makes the claim needs a `{params.requires.label}` before it."


CLAIMS = define_check(
    "claims",
    Claims,
    check_claims,
    explain=explain,
    needs=("messages", "order"),
    example="""\
- id: says-refunded-did-refund
  kind: claims
  when: {matches: '(?i)\\brefunded\\b'}
  requires: {tool: refund}
""",
)

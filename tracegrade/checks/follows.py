"""`follows`: every `when` has a `then` after it."""

from __future__ import annotations

from pydantic import Field, StrictBool

from tracegrade.checks.base import define_check
from tracegrade.checks.each_step import judge_each
from tracegrade.checks.pattern import Action
from tracegrade.checks.precede import Search
from tracegrade.checks.same import Same, describe_same
from tracegrade.checks.view import View
from tracegrade.checks.within import Within
from tracegrade.model.invariant import Params
from tracegrade.model.trajectory import Relation
from tracegrade.model.verdict import CheckResult


class Follows(Params):
    """Every `when` has a `then` after it."""

    when: Action = Field(description="What calls for something; every attempt counts.")
    then: Action = Field(description="What must come after; counts only when it ended ok.")
    same: Same | None = Field(default=None, description="Arguments or values that both must share.")
    within: Within | None = Field(default=None, description="How far after at most: `30s`, `3 turns`, `5 calls`.")
    alternate: StrictBool = Field(default=False, description="No other `when` may lie between the two.")
    relation: Relation = "executed"


def check_follows(view: View, params: Follows) -> CheckResult:
    """Judge one trajectory."""
    between = params.when if params.alternate else None
    search = Search(view, params.then, params.relation, "after", params.same, params.within, between)
    return judge_each(view, params.when, search, "when")


def explain(params: Follows) -> str:
    """The rule in words."""
    told = f"Every `{params.when.label}` needs a `{params.then.label}` after it"
    if params.same is not None:
        told += f" with {describe_same(params.same)}"
    if params.within is not None:
        told += f", at most {params.within.written} later"
    if params.alternate:
        told += f", with no other `{params.when.label}` between"
    return told + "."


FOLLOWS = define_check(
    "follows",
    Follows,
    check_follows,
    explain=explain,
    needs=("order",),
    example="""\
- id: receipt-after-refund
  kind: follows
  when: {tool: refund}
  then: {tool: send_receipt}
  same: [order_id]
  within: 5 calls
""",
)

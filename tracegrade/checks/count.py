"""`count`: how often something happens, in all or in each group, or in a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field, StrictBool, model_validator

from tracegrade.checks.base import define_check
from tracegrade.checks.ends import everything_like
from tracegrade.checks.finding import (
    PASS,
    Findings,
    make_finding,
    plural,
    unseen_codes,
    why_unsure,
)
from tracegrade.checks.grouping import Group, equal_groups
from tracegrade.checks.pattern import Action
from tracegrade.checks.runs import longest_run
from tracegrade.checks.view import View
from tracegrade.model.invariant import Params
from tracegrade.model.verdict import CheckResult

Per = Literal["trajectory", "turn", "agent", "args"]


class Count(Params):
    """The number of matching steps is within bounds, in all or in each group."""

    action: Action = Field(description="What is counted: for `max` every attempt, for `min` what ended ok.")
    min: int | None = Field(default=None, ge=0)
    max: int | None = Field(default=None, ge=0)
    per: Per = Field(default="trajectory", description="Count in each group apart; `args`: equal calls.")
    consecutive: StrictBool = Field(default=False, description="Count the longest run of neighbours instead.")

    @model_validator(mode="after")
    def _bounded(self) -> Count:
        if self.min is None and self.max is None:
            raise ValueError("expected `min`, `max` or both")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"`min` {self.min} is greater than `max` {self.max}: nothing could pass")
        return self


def check_count(view: View, params: Count) -> CheckResult:
    """Judge one trajectory."""
    findings = Findings(view)
    if params.max is not None:
        _at_most(view, params, params.max, findings)
    if params.min is not None and not findings.failed:
        _at_least(view, params, params.min, findings)
    return findings.verdict(PASS)


def _at_most(view: View, params: Count, most: int, findings: Findings) -> None:
    node = params.action.attempt
    found = view.match_node(node)
    for group in _groups(view, params, found.yes, found.maybe):
        if len(group.yes) + len(group.maybe) <= most:
            continue
        low, high, shown = _size(view, params, group)
        if low > most:
            _tell(view, params, group, shown, findings, f"at most {most}", low, low - most)
        elif high > most:
            codes = why_unsure(view, [node], group.maybe) + _group_codes(view, params, group)
            _unsure(view, params, group, findings, f"at most {most}", low, high, codes)
    if findings.failed:
        return
    if found.has_prior:
        prior = Group("", [], [*found.prior_yes, *found.prior_maybe])
        _unsure(view, params, prior, findings, f"at most {most}", 0, len(prior.maybe), ["prior"])
    if found.open:
        codes = unseen_codes(view, node)
        _unsure(view, params, Group("", list(found.yes), []), findings, f"at most {most}", len(found.yes), None, codes)


def _at_least(view: View, params: Count, least: int, findings: Findings) -> None:
    node = params.action.proof
    found = view.match_node(node)
    yes, maybe = [*found.prior_yes, *found.yes], [*found.prior_maybe, *found.maybe]
    is_open = found.open or view.has_prior
    for group, exists in _required_groups(view, params, yes, maybe):
        low, high, shown = _size(view, params, group)
        if low >= least:
            continue
        if high < least and not is_open and exists:
            _tell(view, params, group, shown, findings, f"at least {least}", low, least - low)
        else:
            codes = why_unsure(view, [node], group.maybe) + _group_codes(view, params, group)
            codes += unseen_codes(view, node) + (["prior"] if view.has_prior else [])
            _unsure(view, params, group, findings, f"at least {least}", low, None if is_open else high, codes)
    if is_open and params.per != "trajectory" and not findings.failed:
        # A group that was not seen may fall short.
        codes = unseen_codes(view, node) + (["prior"] if view.has_prior else [])
        _unsure(view, params, Group("", list(yes), []), findings, f"at least {least}", len(yes), None, codes)


def _required_groups(view: View, params: Count, yes: Sequence[int], maybe: Sequence[int]) -> list[tuple[Group, bool]]:
    """The groups that need a least count, each with whether it certainly exists.

    Every turn (agent) that made a call counts, also one without a match. A call of an unknown turn may have made one of
    its own.
    """
    groups = _groups(view, params, yes, maybe)
    if params.per not in ("turn", "agent"):
        return [(g, params.per == "trajectory" or bool(g.yes)) for g in groups]
    named = {g.name: g for g in groups if not g.name.endswith(_NOT_RECORDED)}
    anywhere = [i for i in (*yes, *maybe) if _label(view, params, i) is None]
    certain = {g.name for g in named.values() if g.yes}
    calls = view.executed_calls()
    lonely: list[int] = []
    for index in (*calls.yes, *calls.maybe):
        label = _label(view, params, index)
        if label is None:
            lonely.append(index)
            continue
        name = f"{params.per} {label}"
        named.setdefault(name, Group(name, [], list(anywhere)))
        if index in calls.yes:
            certain.add(name)
    result = [(g, g.name in certain) for g in named.values()]
    for index in lonely:
        own = [index] if index in yes else []
        rest = [i for i in (*yes, *maybe) if i not in own]
        result.append((Group(f"{params.per}{_NOT_RECORDED}", own, rest), False))
    return result


def _label(view: View, params: Count, index: int) -> int | str | None:
    return view.steps[index].turn if params.per == "turn" else view.steps[index].agent


_NOT_RECORDED = " not recorded"


def _groups(view: View, params: Count, yes: Sequence[int], maybe: Sequence[int]) -> list[Group]:
    if params.per == "trajectory":
        return [Group("", list(yes), list(maybe))]
    if params.per == "args":
        return equal_groups(view, yes, maybe)
    groups: dict[object, Group] = {}
    anywhere: list[int] = []
    for steps, certain in ((yes, True), (maybe, False)):
        for index in steps:
            label = _label(view, params, index)
            if label is None:
                anywhere.append(index)
                continue
            group = groups.setdefault(label, Group(f"{params.per} {label}"))
            (group.yes if certain else group.maybe).append(index)
    for group in groups.values():
        group.maybe += anywhere
    if anywhere:
        groups[None] = Group(f"{params.per}{_NOT_RECORDED}", [], anywhere)
    return list(groups.values())


def _size(view: View, params: Count, group: Group) -> tuple[int, int, list[int]]:
    """Bounds on the count of a group, and the steps that show the lower one."""
    if not params.consecutive:
        return len(group.yes), len(group.yes) + len(group.maybe), group.yes
    return longest_run(view, view.match_node(everything_like(params.action.attempt)), group.yes, group.maybe)


def _group_codes(view: View, params: Count, group: Group) -> list[str]:
    codes = []
    if params.per == "turn" and any(view.steps[i].turn is None for i in group.maybe):
        codes.append("turns")
    if params.per == "agent" and any(view.steps[i].agent is None for i in group.maybe):
        codes.append("agent")
    if params.per == "args" and any(view.steps[i].arguments_state != "captured" for i in [*group.yes, *group.maybe]):
        codes.append("arguments")
    return codes or (["order"] if params.consecutive else [])


def _told(params: Count, bound: str) -> str:
    row = " in a row" if params.consecutive else ""
    per = {"trajectory": "", "args": ", of calls with equal arguments"}.get(params.per, f" per {params.per}")
    return f"{bound} `{params.action.label}`{row}{per}"


def _tell(
    view: View,
    params: Count,
    group: Group,
    shown: list[int],
    findings: Findings,
    bound: str,
    n: int,
    excess: int,
) -> None:
    where = f" in {group.name}" if params.per in ("turn", "agent") else ""
    what = f"equal calls of `{group.name}`" if params.per == "args" and group.name else f"`{params.action.label}`"
    observed = f"{n} {what}{' in a row' if params.consecutive else ''}{where}"
    if n > 3:
        observed += f" (×{n})"
    limit = bound.split()[-1]
    steps = shown[: min(len(shown), int(limit) + 1 if bound.startswith("at most") else 3, 5)]
    findings.fail(
        (bound.split()[1], params.per, view.steps[shown[0]].name if shown else ""),
        make_finding(
            view,
            f"{observed}, expected {bound}",
            [(i, "counted") for i in steps],
            expected=_told(params, bound),
            observed=observed,
            context={"action": params.action.label, "count": n, "bound": bound, "beyond": excess},
            next_action=f"Keep `{params.action.label}` to {bound}.",
        ),
    )


def _unsure(
    view: View,
    params: Count,
    group: Group,
    findings: Findings,
    bound: str,
    low: int,
    high: int | None,
    codes: list[str],
) -> None:
    codes = codes or ["order"]
    observed = f"{plural(low, 'match')} for certain" if low != 1 else "1 match for certain"
    observed = observed.replace("matchs", "matches")
    observed += f", up to {high} possible" if high is not None else ", more may be unseen"
    findings.unknown(
        (bound, tuple(dict.fromkeys(codes))),
        codes,
        make_finding(
            view,
            f"cannot tell whether there are {bound} `{params.action.label}`: {observed}",
            [(i, "undecided") for i in group.maybe[:3]],
            expected=_told(params, bound),
            observed=observed,
            missing=codes,
            context={"action": params.action.label, "low": low, "high": high, "bound": bound},
        ),
    )


def explain(params: Count) -> str:
    """The rule in words."""
    bounds = [f"at least {params.min}"] if params.min is not None else []
    bounds += [f"at most {params.max}"] if params.max is not None else []
    return f"Count: {_told(params, ' and '.join(bounds))}."


COUNT = define_check(
    "count",
    Count,
    check_count,
    explain=explain,
    example="""\
- id: refund-once
  kind: count
  action: {tool: refund}
  max: 1
""",
)

"""Runs rules over one trajectory."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date

from tracegrade.checks.load import CompiledInvariant
from tracegrade.checks.match import compile_matcher
from tracegrade.checks.pattern import name_matches
from tracegrade.checks.view import View
from tracegrade.errors import did_you_mean
from tracegrade.model.invariant import AppliesTo, Waiver
from tracegrade.model.trajectory import Trajectory
from tracegrade.model.values import Tri, tri_and, tri_or
from tracegrade.model.verdict import CheckResult, Finding, InvariantResult

_ELSEWHERE = CheckResult("not_applicable")


def run_checks(
    trajectory: Trajectory,
    invariants: Sequence[CompiledInvariant],
    *,
    task_tags: Sequence[str] = (),
    today: date | None = None,
) -> list[InvariantResult]:
    """The verdict of every rule on one trajectory, in the order of the rules.

    Args:
        trajectory: what happened.
        invariants: the rules.
        task_tags: the tags of the trajectory's task, for `applies_to`.
        today: the day on which waivers are looked at; without one no waiver counts.

    A rule that raises gives the verdict `error`, named; the others go on.
    """
    view = View(trajectory, task_tags)
    results = []
    for invariant in invariants:
        result = _judge(view, invariant)
        if result.findings:
            result = replace(result, findings=tuple(_signed(f, invariant, trajectory) for f in result.findings))
        waived = None
        if invariant.waivers and today is not None and result.verdict == "fail":
            waived = next((waiver_text(w) for w in invariant.waivers if _covers(view, w, today)), None)
        results.append(
            InvariantResult(invariant.id, invariant.kind.name, invariant.level, invariant.tags, result, waived)
        )
    return results


def _judge(view: View, invariant: CompiledInvariant) -> CheckResult:
    try:
        applies = True if invariant.head.applies_to is None else applies_here(view, invariant.head.applies_to)
        if applies is False:
            return _ELSEWHERE
        result = invariant.kind.check(view, invariant.params)
        if not isinstance(result, CheckResult):
            raise TypeError(f"the check returned {type(result).__name__}, expected CheckResult")
    except Exception as error:
        message = f"the check of kind `{invariant.kind.name}` crashed: {type(error).__name__}: {error}"
        return CheckResult("error", (_plain_finding(message, "report this with the trace that caused it"),))
    if applies is None and result.verdict != "not_applicable":
        message = "it is undecided whether the rule applies to this trajectory: an attribute was taken out"
        return CheckResult("unknown", (_plain_finding(message, None),), missing_keys=("attributes",))
    return result


def _plain_finding(message: str, next_action: str | None) -> Finding:
    return Finding(rule="", level="error", message=message, next_action=next_action)


def _signed(finding: Finding, invariant: CompiledInvariant, trajectory: Trajectory) -> Finding:
    trace = finding.trace_id or next(iter(trajectory.trace_ids), None)
    return replace(finding, rule=invariant.id, level=invariant.level, trace_id=trace)


def applies_here(view: View, scope: AppliesTo) -> Tri:
    """Whether a rule is about a trajectory; unknown only where an attribute was taken out."""
    trajectory = view.trajectory
    parts: list[Tri] = []
    if scope.tasks is not None:
        parts.append(trajectory.task_id is not None and name_matches(scope.tasks, trajectory.task_id))
    for wanted, there in (
        (scope.tags, view.task_tags),
        (scope.agents, trajectory.agents),
        (scope.services, trajectory.services),
    ):
        if wanted is not None:
            parts.append(any(name_matches(wanted, name) for name in there))
    for key, matcher in (scope.attributes or {}).items():
        if key in trajectory.attributes:
            parts.append(compile_matcher(matcher)(trajectory.attributes[key]))
        else:
            parts.append(matcher.exists is False)
    return tri_and(parts)


def waiver_text(waiver: Waiver) -> str:
    """A waiver as results carry it."""
    return f"{waiver.reason} ({waiver.owner}, until {waiver.expires.isoformat()})"


def _covers(view: View, waiver: Waiver, today: date) -> bool:
    if today > waiver.expires:
        return False
    if waiver.trajectories is not None:
        ids = (view.trajectory.trajectory_id, *view.trajectory.trace_ids)
        if not any(fnmatch.fnmatchcase(i, p) for i in ids for p in waiver.trajectories):
            return False
    return waiver.applies_to is None or applies_here(view, waiver.applies_to) is True


def idle_waivers(
    invariants: Iterable[CompiledInvariant], used: Iterable[tuple[str, str]], today: date
) -> list[tuple[Waiver, str]]:
    """The waivers that covered nothing, each with the reason: expired, or no violation that it matches.

    Args:
        used: the pairs (rule id, `waived`) of all results.
    """
    seen = set(used)
    found = []
    for invariant in invariants:
        for waiver in invariant.waivers:
            if (invariant.id, waiver_text(waiver)) not in seen:
                expired = today > waiver.expires
                found.append((waiver, f"expired on {waiver.expires}" if expired else "matches no violation"))
    return found


@dataclass(frozen=True, slots=True)
class UnseenTool:
    """A tool that a rule names and that no trace holds."""

    rule: str
    where: str
    tool: str
    hint: str

    @property
    def message(self) -> str:
        """The warning."""
        return f"{self.where}: rule `{self.rule}` names the tool `{self.tool}`, which no call bears.{self.hint}"


def unseen_tools(invariants: Iterable[CompiledInvariant], seen: Iterable[str]) -> list[UnseenTool]:
    """Tool names in rules that are probably misspelt, or that these traces do not know.

    A list of alternatives is fine when one of them was seen, unless another is close to a seen name that the list does
    not hold. Globs are never warned of.
    """
    known = sorted(set(seen))
    found: dict[tuple[str, str], UnseenTool] = {}
    for invariant in invariants:
        if invariant.head.allow_unseen:
            continue
        for names in invariant.tools():
            some_seen = any(name_matches(names, tool) for tool in known)
            for name in names:
                if "*" in name or "?" in name or name in known:
                    continue
                hint = did_you_mean(name, [t for t in known if not name_matches(names, t)])
                if hint or not some_seen:
                    unseen = UnseenTool(invariant.id, invariant.where, name, hint)
                    found.setdefault((invariant.id, name), unseen)
    return list(found.values())


def any_applies(results: Iterable[InvariantResult]) -> bool:
    """Whether some rule had something to judge."""
    return bool(tri_or(r.result.verdict != "not_applicable" for r in results))

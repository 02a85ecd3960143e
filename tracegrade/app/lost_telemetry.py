"""Whether the spans of a candidate still carry what verdicts are read from, as far as the baseline's did.

Two things are compared. What was recorded of calls, whatever the instrumentation: a run is the same trajectory in every
dialect. And, where both sides are of one dialect, where messages stood; and gaps (`audit.compare`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from tracegrade.audit.changes import sightings
from tracegrade.audit.compare import FLOOR, Change, Comparison, compare_coverage
from tracegrade.audit.noise import ALPHA, fall_p
from tracegrade.model.audit import AuditProfile, Shares
from tracegrade.score.gate_rules import NO_CALLS

MESSAGES: Final = frozenset({"@input_messages", "@output_messages"})
"""Evidence that stands on spans of model calls; names and ids of spans can change without changing a verdict."""
BROKEN: Final = frozenset({"calls-lost", "orphans-rose", "values-cut"})
"""Changes of gaps that take evidence away."""


def lost_telemetry(baseline: AuditProfile, candidate: AuditProfile) -> dict[str, str]:
    """What the spans of the candidate no longer carry: kind → sentence; empty where nothing was lost.

    Args:
        baseline, candidate: what the spans of both sides carry.
    """
    lost = dict(_of_calls(baseline.shares, candidate.shares))
    comparison = compare_coverage(baseline, candidate)
    same = set(baseline.dialects) == set(candidate.dialects)
    for change in comparison.lost_evidence:
        if _counts(change, same=same):
            text = _sentence(comparison, change)
            lost.setdefault(text, text)
    return lost


def _counts(change: Change, *, same: bool) -> bool:
    """Whether a change takes evidence away from verdicts: what stood at one place may stand at another elsewhere."""
    gap = change.rule in BROKEN and not change.place.operation
    return gap or change.rule == "no-telemetry" or (same and change.attribute in MESSAGES)


def _of_calls(before: Shares, now: Shares) -> Iterator[tuple[str, str]]:
    """Content of tool calls that is recorded less often, or calls that are recorded no more."""
    if not now.trajectories or not before.tool_calls:
        return
    if not now.tool_calls:
        # an agent may do without calls now and then, not in every trajectory where it called in most
        if before.tool_calls >= before.trajectories:
            yield NO_CALLS, f"evidence was lost: {NO_CALLS} any more ({before.tool_calls} calls before)"
        return
    for name in ("arguments", "results"):
        had, has = (int(getattr(shares, f"calls_with_{name}")) for shares in (before, now))
        was, is_ = had / before.tool_calls, has / now.tool_calls
        # calls of one trajectory are recorded alike: their number is no more than that of trajectories
        units = [min(shares.trajectories, shares.tool_calls) for shares in (before, now)]
        p = fall_p(round(was * units[0]), units[0], round(is_ * units[1]), units[1])
        if was - is_ >= FLOOR and (p < ALPHA or (was >= 0.5 and has == 0)):
            text = f"{name} are recorded of {has} of {now.tool_calls} tool calls, {had} of {before.tool_calls} before"
            yield name, f"evidence was lost: {text}"


def _sentence(comparison: Comparison, change: Change) -> str:
    (sighting,) = sightings(replace(comparison, changes=(change,)), change.rule)
    before = f"{sighting.expected} before" if sighting.expected else None
    shares = ", ".join(text for text in (sighting.observed, before) if text)
    return f"evidence was lost: {sighting.what}" + (f" ({shares})" if shares else "")

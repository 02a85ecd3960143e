"""Differences from a baseline as sightings."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Sighting
from tracegrade.audit.compare import Change, Comparison
from tracegrade.audit.fixes import content_fix

_CONTENT = frozenset({"arguments", "result", "input_messages", "output_messages"})


def sightings(comparison: Comparison | None, rule: str) -> Iterator[Sighting]:
    """The changes of one rule.

    Args:
        comparison: with the baseline; None where there is none.
        rule: the rule's id.
    """
    for change in comparison.changes if comparison is not None else ():
        if change.rule == rule:
            yield _sighting(change, comparison)


def _sighting(change: Change, comparison: Comparison | None) -> Sighting:
    noise = "" if change.established else "; not enough data to tell it from noise"
    context = {
        "attribute": change.attribute,
        "now": change.now,
        "before": list(change.before),
        "after": list(change.after),
        "p_adjusted": change.p_adjusted,
        "established": change.established,
        "evidence": list(change.feeds),
    }
    dialects = (
        sorted(comparison.baseline.dialects, key=lambda d: -comparison.baseline.dialects[d]) if comparison else []
    )
    content = _CONTENT.intersection(change.feeds) and change.level == "error"
    return Sighting(
        _what(change) + noise,
        change.place,
        expected=(_share(change.before) if change.before[1] else None) or _old_name(change),
        observed=(_share(change.after) if change.after[1] else None) or change.now or None,
        key=f"{change.attribute}\x1f{change.now}",
        level=change.level,
        fix=content_fix(dialects[0]) if content and dialects else "",
        context=context,
    )


def _old_name(change: Change) -> str | None:
    if not change.rule.endswith("-renamed"):
        return None
    return change.attribute or change.place.operation


def _share(share: tuple[int, int]) -> str:
    return f"{share[0]} of {share[1]} trajectories"


def _what(change: Change) -> str:
    name = change.attribute[1:].replace("_", " ") if change.attribute.startswith("@") else f"`{change.attribute}`"
    operation = f"`{change.place.operation}`"
    what = change.rule.partition("-")[0]
    texts = {
        "operation-vanished": f"the operation {operation} is gone",
        "operation-fell": f"fewer trajectories have the operation {operation}",
        "operation-new": f"the operation {operation} came",
        "attribute-vanished": f"{name} is gone from {operation}",
        "evidence-vanished": f"{name} of {operation} are recorded under no name",
        "coverage-fell": f"{name} stands on fewer {operation} spans",
        "attribute-new": f"{name} came to {operation}",
        "type-changed": f"{name} of {operation} changed its type: {change.now}",
        "values-cut": f"{name} is cut" if change.place.operation else "more trajectories have cut content",
        "orphans-rose": "more trajectories have spans whose parent is missing",
        "unfinished-rose": "more trajectories have a root that never ended",
        "dropped-rose": "more trajectories lost attributes or events to a limit",
        "calls-lost": "tool calls of more trajectories are recorded nowhere",
        "decidability-fell": f"the rule {name} is decided on fewer trajectories",
        "version-changed": f"{name} changed its version: {change.now}",
        "volume-changed": f"{change.attribute.replace('_', ' ')} per trajectory changed: {change.now}",
    }
    if change.rule.endswith("-renamed"):
        where = f" on {operation}" if what == "attribute" else ""
        return f"the {what} {name} is called `{change.now}` now{where}"
    return texts[change.rule]

"""Spans whose parent is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Scene, Sighting, place_of


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Orphans by their common missing parent; the parent of an agent that was called over a wire is no gap."""
    if any(g.code == "remote_parent" for g in scene.trajectory.gaps):
        return
    orphans = scene.forest.orphans
    parents = Counter((f.span.trace_id, f.span.parent_span_id) for f in orphans)
    first = {(f.span.trace_id, f.span.parent_span_id): f for f in reversed(orphans)}
    for key, count in parents.items():
        facts = first[key]
        yield Sighting(
            "spans point at a parent that is missing",
            place_of(facts),
            facts.span,
            expected="the parent span",
            observed=f"{count} spans below the missing span {key[1]}" if count > 1 else f"parent {key[1]} is missing",
            count=count,
            context={"missing_parents": [key[1]]},
        )


RULE = Rule(
    id="orphan-spans",
    family="structure",
    level="warning",
    summary="Spans point at a parent that is not in the telemetry.",
    why='A step may be missing, so that every rule that says "never" or "at least" may be undecided.',
    fix=(
        "Export every span of the trace: flush at exit, sample whole traces, and look at filters of the "
        "exporter or collector."
    ),
    look=look,
)

"""Different spans under one id."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Sighting, Totals


def conclude(totals: Totals, options: Options) -> Iterator[Sighting]:
    """The conflicts of all inputs."""
    loaded = totals.loaded
    if loaded is not None and loaded.conflicts_total:
        examples = [{"trace_id": c.trace_id, "span_id": c.span_id} for c in loaded.conflicts[:3]]
        yield Sighting(
            "spans with different contents share an id",
            expected="one span for each id",
            observed=f"{loaded.conflicts_total} ids",
            count=loaded.conflicts_total,
            context={"examples": examples},
        )


RULE = Rule(
    id="id-reuse",
    family="structure",
    level="warning",
    summary="Spans of one trace and span id have different contents.",
    why="Only one of them can be kept: the other's evidence is lost.",
    fix="Use the SDK's id generator; ids made from names collide for parallel calls of one tool.",
    conclude=conclude,
)

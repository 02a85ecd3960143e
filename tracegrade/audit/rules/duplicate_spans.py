"""Spans that were delivered more than once."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Sighting, Totals


def conclude(totals: Totals, options: Options) -> Iterator[Sighting]:
    """The copies of all inputs."""
    loaded = totals.loaded
    if loaded is not None and loaded.duplicates_dropped:
        n = loaded.duplicates_dropped
        yield Sighting(
            "identical copies of spans were delivered", expected="each span once", observed=f"{n} copies", count=n
        )


RULE = Rule(
    id="duplicate-spans",
    family="structure",
    level="info",
    summary="Identical copies of spans were read; one of each was kept.",
    why="Counts and costs in tools that keep both are doubled; tracegrade keeps one.",
    fix="Two exporters on one provider, or a retried batch: remove one of the exporters.",
    conclude=conclude,
)

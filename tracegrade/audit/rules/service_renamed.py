"""Services that stand under another name now."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Sighting, Totals
from tracegrade.audit.changes import sightings


def conclude(totals: Totals, options: Options) -> Iterator[Sighting]:
    """What the comparison with the baseline says."""
    yield from sightings(totals.comparison, "service-renamed")


RULE = Rule(
    id="service-renamed",
    family="regression",
    level="warning",
    summary="The only service of the baseline is gone and another came in its place.",
    why="The two are compared as one.",
    fix="Set service.name to one value on both sides if they are not the same service.",
    conclude=conclude,
)

"""Attributes that came."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Sighting, Totals
from tracegrade.audit.changes import sightings


def conclude(totals: Totals, options: Options) -> Iterator[Sighting]:
    """What the comparison with the baseline says."""
    yield from sightings(totals.comparison, "attribute-new")


RULE = Rule(
    id="attribute-new",
    family="regression",
    level="info",
    summary="An attribute stands on spans of an operation that did not carry it in the baseline.",
    why="More can be read.",
    fix="Nothing to do.",
    conclude=conclude,
)

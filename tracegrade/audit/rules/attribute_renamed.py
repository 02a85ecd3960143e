"""Attributes that stand under another name now."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Sighting, Totals
from tracegrade.audit.changes import sightings


def conclude(totals: Totals, options: Options) -> Iterator[Sighting]:
    """What the comparison with the baseline says."""
    yield from sightings(totals.comparison, "attribute-renamed")


RULE = Rule(
    id="attribute-renamed",
    family="regression",
    level="warning",
    summary="An attribute vanished and another with the same meaning or the same values came in its place.",
    why="Queries and dashboards of your own must follow; tracegrade does where a dialect knows both names.",
    fix="Change the queries that read the old name; where no dialect reads the new one, write one (`--dialect`).",
    conclude=conclude,
)

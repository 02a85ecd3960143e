"""Operations that stand under another name now."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Sighting, Totals
from tracegrade.audit.changes import sightings


def conclude(totals: Totals, options: Options) -> Iterator[Sighting]:
    """What the comparison with the baseline says."""
    yield from sightings(totals.comparison, "operation-renamed")


RULE = Rule(
    id="operation-renamed",
    family="regression",
    level="warning",
    summary="An operation vanished and another of the same role with like attributes came in its place.",
    why="tracegrade follows; queries and dashboards of your own must too.",
    fix="Change the queries that read the old name.",
    conclude=conclude,
)

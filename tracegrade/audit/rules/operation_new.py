"""Operations that came."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Sighting, Totals
from tracegrade.audit.changes import sightings


def conclude(totals: Totals, options: Options) -> Iterator[Sighting]:
    """What the comparison with the baseline says."""
    yield from sightings(totals.comparison, "operation-new")


RULE = Rule(
    id="operation-new",
    family="regression",
    level="info",
    summary="An operation stands on spans that the baseline does not have.",
    why="More can be read, or one thing is recorded twice.",
    fix="Look whether two instrumentations record the same calls.",
    conclude=conclude,
)

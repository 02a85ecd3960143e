"""Operations that the baseline has and that are gone."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Sighting, Totals
from tracegrade.audit.changes import sightings


def conclude(totals: Totals, options: Options) -> Iterator[Sighting]:
    """What the comparison with the baseline says."""
    yield from sightings(totals.comparison, "operation-vanished")


RULE = Rule(
    id="operation-vanished",
    family="regression",
    level="error",
    summary="An operation that the baseline has stands on no span now.",
    why=(
        "What its spans showed is no longer seen: rules about it pass or stay unknown for lack of spans, not of faults."
    ),
    fix="Compare the versions and settings of the instrumentation with those of the baseline.",
    conclude=conclude,
)

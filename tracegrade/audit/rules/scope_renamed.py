"""Instrumentation scopes that stand under another name now."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Sighting, Totals
from tracegrade.audit.changes import sightings


def conclude(totals: Totals, options: Options) -> Iterator[Sighting]:
    """What the comparison with the baseline says."""
    yield from sightings(totals.comparison, "scope-renamed")


RULE = Rule(
    id="scope-renamed",
    family="regression",
    level="warning",
    summary="A scope vanished and another that records like spans came in its place.",
    why="tracegrade follows; filters by scope must too.",
    fix="Change the filters that name the old scope.",
    conclude=conclude,
)

"""Attributes in the namespaces of the conventions that they do not know."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Sighting, Totals


def conclude(totals: Totals, options: Options) -> Iterator[Sighting]:
    """All of them in one finding."""
    unknown = totals.counts.unknown_attributes
    if unknown:
        names = sorted(unknown, key=lambda n: (-unknown[n], n))
        shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
        yield Sighting(
            f"{len(names)} attributes are in no version of the conventions",
            observed=shown,
            count=sum(unknown.values()),
            context={"attributes": list(names[:50]), "version": options.conventions.version},
        )


RULE = Rule(
    id="unknown-attribute",
    family="conventions",
    level="info",
    summary="Attributes that begin like those of the conventions are in none of its versions.",
    why="They do no harm. A misspelt name is one of them, so they are counted.",
    fix="Compare the names with the conventions; use a namespace of your own for what is your own.",
    conclude=conclude,
)

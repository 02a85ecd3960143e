"""Attributes that take most of the storage."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Sighting, Totals

_SHARE = 0.25


def conclude(totals: Totals, options: Options) -> Iterator[Sighting]:
    """The largest attributes."""
    total = sum(totals.counts.bytes.values())
    for name, size in sorted(totals.counts.bytes.items(), key=lambda item: (-item[1], item[0])):
        if size > _SHARE * total:
            yield Sighting(
                f"`{name}` takes {size / total:.0%} of all bytes of attributes",
                observed=f"{size} bytes",
                count=totals.counts.byte_spans[name],
                context={"attribute": name, "bytes": size},
            )


RULE = Rule(
    id="costly-attribute",
    family="privacy",
    level="info",
    summary="One attribute takes more than a quarter of all bytes of attributes.",
    why="It is what storing traces costs; histories that every model call repeats grow with the square of the turns.",
    fix="Keep it where rules need it; else switch its capture off or cut it at the collector.",
    conclude=conclude,
)

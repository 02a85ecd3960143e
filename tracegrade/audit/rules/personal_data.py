"""What looks like data of a person in telemetry."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Scene, Sighting, place_of
from tracegrade.audit.secrets import PERSONAL, found


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Spans with personal data; the value is never shown."""
    for facts, where, kind, count in found(scene, PERSONAL, options.detect):
        yield Sighting(
            f"{kind} in `{where}`",
            place_of(facts),
            facts.span,
            expected="none",
            observed=kind,
            count=count,
            context={"attribute": where, "kind": kind},
        )


RULE = Rule(
    id="personal-data",
    family="privacy",
    level="info",
    summary="A value looks like an e-mail address, a phone or card number, an address or the like.",
    why="Traces with personal data need the care that the data needs.",
    fix="Run `tracegrade redact` before storing or sharing.",
    look=look,
)

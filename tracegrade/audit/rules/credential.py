"""Keys, tokens and passwords in telemetry."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Scene, Sighting, place_of
from tracegrade.audit.secrets import CREDENTIALS, found


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Spans with credentials; the value is never shown."""
    for facts, where, kind, count in found(scene, CREDENTIALS, options.detect):
        yield Sighting(
            f"a {kind.replace('_', ' ')} in `{where}`",
            place_of(facts),
            facts.span,
            expected="none",
            observed=kind,
            count=count,
            context={"attribute": where, "kind": kind},
        )


RULE = Rule(
    id="credential",
    family="privacy",
    level="error",
    summary="A value looks like a credential: an API key, a token, a private key or a password in an address.",
    why="Whoever reads the traces can use it.",
    fix="Revoke it, take it out at the source, and run `tracegrade redact` on what is stored.",
    look=look,
)

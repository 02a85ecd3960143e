"""Events that the conventions replaced by attributes."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Scene, Sighting, place_of


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Spans with a replaced event."""
    replaced = options.conventions.replaced_events
    for facts in scene.facts:
        names = {e.name for e in facts.span.events} | {r.event_name for r in facts.span.logs if r.event_name}
        for name in sorted(names & replaced.keys()):
            yield Sighting(
                f"the event `{name}` is replaced by `{replaced[name]}`",
                place_of(facts),
                facts.span,
                expected=replaced[name],
                observed=name,
                context={"attribute": name},
            )


RULE = Rule(
    id="replaced-event",
    family="conventions",
    level="info",
    summary="An event of a span or a log record is one that the chosen version of the conventions has replaced.",
    why=(
        "tracegrade reads both; content that stands only in events is lost where logs are not exported with the spans."
    ),
    fix=(
        "Upgrade the instrumentation, or set OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental where "
        "it offers that."
    ),
    look=look,
)

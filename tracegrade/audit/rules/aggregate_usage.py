"""Agent spans that repeat the tokens of the model calls below them."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Scene, Sighting, place_of


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Spans of agents with usage."""
    if not any(f.role == "model" and f.text("input_tokens") is not None for f in scene.facts):
        return
    for facts in scene.facts:
        if facts.role in ("agent", "workflow", "chain") and facts.text("input_tokens") is not None:
            yield Sighting(
                "agent spans repeat the tokens of model calls",
                place_of(facts),
                facts.span,
                expected="tokens on model calls only",
                observed=facts.field("input_tokens")[1],
            )


RULE = Rule(
    id="aggregate-usage",
    family="gradeability",
    level="info",
    summary="An agent, workflow or chain span carries token counts that its model calls carry too.",
    why="tracegrade counts each token once; a plain sum over spans counts them twice.",
    fix="Sum model calls only in queries of your own.",
    look=look,
)

"""Tool calls without an id."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Place, Rule, Scene, Sighting, place_of


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Calls without an id."""
    spans = {f.span.span_id: f for f in scene.facts}
    for step in scene.trajectory.calls():
        if step.call_id is None and not step.prior:
            facts = next((spans[s] for s in step.span_ids if s in spans), None)
            yield Sighting(
                "tool calls without an id",
                place_of(facts) if facts is not None else Place(),
                facts.span if facts is not None else None,
                expected="gen_ai.tool.call.id",
                observed="not recorded",
            )


RULE = Rule(
    id="call-ids-missing",
    family="gradeability",
    level="info",
    summary="A tool call has no id on its span or in a message.",
    why=(
        "Requests, spans and results are joined by order and arguments instead: equal parallel calls cannot "
        "be told apart."
    ),
    fix="Record the id that the model gave to the call on the tool span (`gen_ai.tool.call.id`).",
    look=look,
)

"""Tool calls whose arguments are recorded nowhere."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Place, Rule, Scene, Sighting, place_of
from tracegrade.audit.fixes import content_fix_of


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Calls without arguments."""
    spans = {f.span.span_id: f for f in scene.facts}
    for step in scene.trajectory.calls():
        if step.arguments_state == "not_captured" and not step.prior:
            facts = next((spans[s] for s in step.span_ids if s in spans), None)
            yield Sighting(
                "tool calls without arguments",
                place_of(facts) if facts is not None else Place(),
                facts.span if facts is not None else None,
                expected="arguments",
                observed="not recorded",
                fix=content_fix_of(facts) if facts is not None else "",
            )


RULE = Rule(
    id="arguments-not-recorded",
    family="gradeability",
    level="warning",
    summary="The arguments of a tool call stand on no span, in no message and in no event.",
    why="Every rule that reads arguments is unknown on these calls.",
    fix="Switch content capture of the instrumentation on.",
    look=look,
)

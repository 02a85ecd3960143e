"""Tool calls that ran and whose result is recorded nowhere."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Place, Rule, Scene, Sighting, place_of
from tracegrade.audit.fixes import content_fix_of


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Calls without a result."""
    spans = {f.span.span_id: f for f in scene.facts}
    for step in scene.trajectory.calls():
        if step.executed and step.result_state == "not_captured" and step.status != "error" and not step.prior:
            facts = next((spans[s] for s in step.span_ids if s in spans), None)
            yield Sighting(
                "tool calls without a result",
                place_of(facts) if facts is not None else Place(),
                facts.span if facts is not None else None,
                expected="a result",
                observed="not recorded",
                fix=content_fix_of(facts) if facts is not None else "",
            )


RULE = Rule(
    id="results-not-recorded",
    family="gradeability",
    level="warning",
    summary="The result of a tool call that ran stands on no span, in no message and in no event.",
    why="Rules that read results are unknown, and a failure that stands only in the result is not seen.",
    fix="Switch content capture of the instrumentation on.",
    look=look,
)

"""Content where none may be."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Scene, Sighting, place_of
from tracegrade.audit.carried import says

_CONTENT = ("arguments", "result", "input_messages", "output_messages", "system_instructions")


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Spans with content."""
    if not options.no_content:
        return
    for facts in scene.facts:
        for name in _CONTENT:
            value, source = facts.field(name)
            if value in (None, "", [], {}) or not source:
                continue
            if name in ("arguments", "result") and facts.content(name)[0].state == "not_captured":
                continue
            if name.endswith("messages") and not any(says(m) for m in facts.messages(name) or ()):
                continue
            where = source.partition("|")[0]
            yield Sighting(
                f"{name.replace('_', ' ')} in `{where}`",
                place_of(facts),
                facts.span,
                expected="no content",
                observed="content",
                context={"attribute": where},
            )


RULE = Rule(
    id="content-present",
    family="privacy",
    level="error",
    summary="With --no-content: arguments, results or messages stand in the telemetry.",
    why="What customers wrote leaves your systems with the traces.",
    fix="Switch content capture of the instrumentation off, or run `tracegrade redact` before storing.",
    look=look,
)

"""Content that should be JSON and is none."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Scene, Sighting, place_of


def look(scene: Scene, options: Options) -> Iterator[Sighting]:
    """Tool spans with arguments that are no JSON."""
    for facts in scene.facts:
        if facts.role == "tool":
            content, source = facts.content("arguments")
            if content.state == "unparsed":
                name = source.partition("|")[0]
                yield Sighting(
                    f"`{name}` is no JSON",
                    place_of(facts),
                    facts.span,
                    expected="JSON",
                    observed="other text",
                    context={"attribute": name},
                )


RULE = Rule(
    id="broken-json",
    family="structure",
    level="warning",
    summary="Arguments are recorded as a text that is no JSON, such as the repr of a Python object.",
    why="They stay raw text: rules that read a field of them are unknown.",
    fix="Record arguments as JSON (`json.dumps`), or report it to the instrumentation.",
    look=look,
)

"""Places of spans that hold what the redactor would take out: where, of which kind, how often; never what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from tracegrade.audit.base import Detect, Scene
from tracegrade.audit.profile import attribute_name
from tracegrade.dialects.interpret import Facts
from tracegrade.model.span import Span
from tracegrade.model.values import JSON

CREDENTIALS = frozenset({"private_key", "jwt", "key", "password"})
PERSONAL = frozenset({"email", "iban", "card", "ssn", "phone", "ip", "user"})


class Secret(NamedTuple):
    """A kind of secret at one place of a span, and how many there are."""

    facts: Facts
    where: str
    kind: str
    places: int


def found(scene: Scene, kinds: frozenset[str], detect: Detect) -> Iterator[Secret]:
    """What stands in names, status messages, attributes, events, log records and resources of a trajectory's spans.

    Each text is looked at once for all rules.

    Args:
        scene: the trajectory.
        kinds: kinds of the redactor's detectors to give.
        detect: the kind of each place of a text that some of them find.
    """
    secrets: list[Secret] | None = scene.kept.get("secrets")
    if secrets is None:
        secrets = scene.kept["secrets"] = list(_all(scene, detect))
    return (s for s in secrets if s.kind in kinds)


def _all(scene: Scene, detect: Detect) -> Iterator[Secret]:
    resources: set[int] = set()
    for facts in scene.forest.facts:
        span = facts.span
        hits: Counter[tuple[str, str]] = Counter()
        texts = list(_texts(span))
        if id(span.resource) not in resources:
            resources.add(id(span.resource))
            texts += (p for key, value in span.resource.items() for p in _strings(f"resource:{key}", value))
        for where, value in texts:
            for kind in detect(value, CREDENTIALS | PERSONAL):
                hits[where, kind] += 1
        for (where, kind), count in sorted(hits.items()):
            yield Secret(facts, where, kind, count)


def _texts(span: Span) -> Iterator[tuple[str, str]]:
    yield "span name", span.name
    yield "status message", span.status_message
    for key, value in span.attributes.items():
        yield from _strings(attribute_name(key), value)
    for event in span.events:
        yield from _strings(f"event:{event.name}", event.attributes)
    for record in span.logs:
        yield from _strings(f"log:{record.event_name or ''}", [record.body, record.attributes])


def _strings(where: str, value: JSON) -> Iterator[tuple[str, str]]:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield where, item
        elif isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)

"""Places of a span that hold what the redactor would take out: where, of which kind, how often; never what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tracegrade.audit.base import Detect
from tracegrade.audit.profile import attribute_name
from tracegrade.model.span import Span
from tracegrade.model.values import JSON

CREDENTIALS = frozenset({"private_key", "jwt", "key", "password"})
PERSONAL = frozenset({"email", "iban", "card", "ssn", "phone", "ip", "user"})


def found(span: Span, kinds: frozenset[str], detect: Detect) -> Iterator[tuple[str, str, int]]:
    """Place, kind and number of hits in the span's name, status, attributes, events and log records.

    Args:
        span: the span.
        kinds: kinds of the redactor's detectors.
        detect: the kind of each place of a text that some of them find.
    """
    hits: Counter[tuple[str, str]] = Counter()
    for where, value in _texts(span):
        for kind in detect(value, kinds):
            hits[where, kind] += 1
    for (where, kind), count in sorted(hits.items()):
        yield where, kind, count


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

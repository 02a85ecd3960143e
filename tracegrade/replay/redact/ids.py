"""Ids, each replaced by the same other id wherever it stands: in id fields, attributes, texts and snapshots."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tracegrade.model.span import LogRecord, Span
from tracegrade.model.values import JSON
from tracegrade.replay.redact.policy import Policy, key_words

_ID_KEYS: Final = frozenset(
    {
        ("conversation", "id"), ("session", "id"), ("thread", "id"), ("chat", "id"), ("response", "id"),
        ("call", "id"), ("use", "id"), ("request", "id"), ("message", "id"), ("run", "id"), ("invocation", "id"),
        ("trace", "id"), ("span", "id"), ("user", "id"), ("trace", "ids"), ("span", "ids"), ("event", "id"),
    }
)  # fmt: skip
"""Last two words of a key whose value is an id of the telemetry, not of the customer's data."""

_TOKEN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_:\-]{6,198}[A-Za-z0-9]")
_HEX = re.compile(r"[0-9a-fA-F]+")
_TRACE_DIGITS = 32
_MIN_LENGTH = 8
"""Shorter ids (`1`, `call_0`) are left where they stand in texts: they are words too."""


class IdMap:
    """Maps ids by keyed hash; knows the ids it has been shown, so that it finds them in texts too.

    Trace and span ids stay hex of their length; others become `id-` and 16 hex digits. Memory: one entry for each
    distinct id.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._known: set[str] = set()
        self._mapped: set[str] | None = None

    def learn(self, span: Span) -> None:
        """Remember the ids of a span, of its links and of its attributes."""
        self._known.update((span.trace_id, span.span_id))
        if span.parent_span_id:
            self._known.add(span.parent_span_id)
        for link in span.links:
            self._known.update((link.trace_id, link.span_id))
        for attributes in (span.attributes, span.resource, *(e.attributes for e in span.events)):
            self._known.update(_ids_in(attributes))
        for log in span.logs:
            self.learn_log(log)

    def learn_log(self, log: LogRecord) -> None:
        """Remember the ids of a log record."""
        self._known.update(i for i in (log.trace_id, log.span_id) if i)
        self._known.update(_ids_in(log.attributes))

    def learn_document(self, document: JSON) -> None:
        """Remember the ids of a snapshot, a trial or a task."""
        if isinstance(document, list):
            for item in document:
                self.learn_document(item)
        elif isinstance(document, dict):
            self._known.update(_ids_in(document))
            for value in document.values():
                self.learn_document(value)

    def id(self, value: str) -> str:
        """The id that stands for a trace, span or other id."""
        if len(value) in (16, 32) and _HEX.fullmatch(value):
            return self._policy.digest(value.lower(), len(value) // 2, "id")
        return f"id-{self._policy.digest(value, 8, 'id')}"

    def trace(self, trace_id: str) -> str | None:
        """The id that stands for a trace's; None for an id that no span and no log record has."""
        return self.id(trace_id) if trace_id in self._known else None

    def mapped_trace(self, trace_id: str) -> str | None:
        """An id of the result, where it stands for one of the input; else None."""
        if self._mapped is None:
            self._mapped = {self.id(i) for i in self._known if len(i) == _TRACE_DIGITS}
        return trace_id if trace_id in self._mapped else None

    def text(self, text: str) -> str:
        """A text with every known id replaced; a trace id written as a UUID counts as the same id."""

        def replace(match: re.Match[str]) -> str:
            token = match.group()
            if token in self._known:
                return self.id(token)
            if len(token) == 36 and (bare := token.replace("-", "").lower()) in self._known:
                new = self.id(bare)
                return "-".join((new[:8], new[8:12], new[12:16], new[16:20], new[20:]))
            return token if token.lower() not in self._known else self.id(token.lower())

        return text if len(text) < _MIN_LENGTH else _TOKEN.sub(replace, text)


def _ids_in(attributes: dict[str, JSON]) -> Iterator[str]:
    for key, value in attributes.items():
        if key_words(key)[-2:] in _ID_KEYS:
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, str) and len(item) >= _MIN_LENGTH:
                    yield item

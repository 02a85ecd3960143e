"""Takes values out of texts, JSON, spans and log records.

Comes in: a policy, and what is to be redacted. Goes out: the same shape with placeholders in it, and counts by kind and
place. Nothing here writes or remembers what was taken out.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Final

from tracegrade.model.span import LogRecord, Span, SpanEvent, SpanLink
from tracegrade.model.values import JSON, MISSING, REDACTED_TEXTS
from tracegrade.replay.redact.detect import PLACEHOLDER, Hit, find_secrets, merge
from tracegrade.replay.redact.encoded import MAX_LAYERS, encoded_hits
from tracegrade.replay.redact.ids import IdMap
from tracegrade.replay.redact.keep import (
    CALL_KEYS,
    CONTENT_KEYS,
    gives_structure,
    holds_data,
    is_fact,
    is_schema,
    is_status,
)
from tracegrade.replay.redact.policy import Policy, number_kind

MAX_DEPTH: Final = 200
"""Nesting beyond which a value is taken out whole, unseen."""
_CACHE_ENTRIES: Final = 4096
_CACHED_LENGTH: Final = 512
_CARD_MIN: Final = 10**12


@dataclass(slots=True)
class Counts:
    """How many values were taken out, by place and kind. Holds no value.

    A place is where it stood: `span attribute`, `event name`, `resource attribute`, `log body`, …
    """

    replaced: Counter[tuple[str, str]] = field(default_factory=Counter)
    spans: int = 0
    logs: int = 0
    documents: int = 0

    @property
    def total(self) -> int:
        """All values taken out."""
        return self.replaced.total()


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where a value stands: its place for the counts, its depth, and what becomes of it.

    `kept` is false where allow-list mode does not keep it, `forced` true below a key whose values are taken out;
    `in_data` is true inside a tool's arguments or result, `of_call` in an object that is a tool call by its key.
    """

    place: str
    depth: int = 0
    kept: bool = True
    in_data: bool = False
    forced: bool = False
    of_call: bool = False

    @property
    def stays(self) -> bool:
        """Whether a value stays as far as its place goes; detectors look at it all the same."""
        return self.kept and not self.forced

    def inside(self) -> _Scope:
        return _Scope(self.place, self.depth + 1, self.kept, self.in_data, self.forced, self.of_call)


class Redactor:
    """Applies one policy. Equal inputs give equal outputs under one secret, in any order of calls.

    Args:
        policy: what to take out.
        ids: the ids to map, with every id already learnt; None leaves ids as they are.
    """

    def __init__(self, policy: Policy, ids: IdMap | None = None) -> None:
        self.policy = policy
        self.ids = ids
        self.counts = Counts()
        self._flat_texts: dict[str, tuple[str, tuple[str, ...]]] = {}

    # ------------------------------------------------------------------ spans and logs

    def span(self, span: Span) -> Span:
        """The span with every place redacted: attributes of span, resource, scope, events, links and logs, names,
        status message and trace state."""
        self.counts.spans += 1
        return replace(
            span,
            trace_id=self._id(span.trace_id),
            span_id=self._id(span.span_id),
            parent_span_id=self._id(span.parent_span_id) if span.parent_span_id else None,
            name=self.text(span.name, "span name"),
            status_message=self._prose(span.status_message, "status message"),
            attributes=self.attributes(span.attributes, "span attribute"),
            resource=self.attributes(span.resource, "resource attribute"),
            scope_name=self.text(span.scope_name, "scope name"),
            scope_version=self.text(span.scope_version, "scope version"),
            scope_attributes=self.attributes(span.scope_attributes, "scope attribute"),
            schema_url=self.text(span.schema_url, "schema url"),
            trace_state=self.text(span.trace_state, "trace state"),
            events=tuple(map(self._event, span.events)),
            links=tuple(map(self._link, span.links)),
            logs=tuple(map(self.log, span.logs)),
        )

    def log(self, log: LogRecord) -> LogRecord:
        """The log record with body, attributes, resource, names and ids redacted."""
        self.counts.logs += 1
        return replace(
            log,
            trace_id=self._id(log.trace_id) if log.trace_id else log.trace_id,
            span_id=self._id(log.span_id) if log.span_id else log.span_id,
            event_name=self.text(log.event_name, "log event name") if log.event_name else log.event_name,
            body=self._value(log.body, _Scope("log body", kept=self.policy.allow is None)),
            attributes=self.attributes(log.attributes, "log attribute"),
            resource=self.attributes(log.resource, "resource attribute"),
            scope_name=self.text(log.scope_name, "scope name"),
            scope_version=self.text(log.scope_version, "scope version"),
        )

    def _event(self, event: SpanEvent) -> SpanEvent:
        return replace(
            event,
            name=self.text(event.name, "event name"),
            attributes=self.attributes(event.attributes, "event attribute"),
        )

    def _link(self, link: SpanLink) -> SpanLink:
        return replace(
            link,
            trace_id=self._id(link.trace_id),
            span_id=self._id(link.span_id),
            attributes=self.attributes(link.attributes, "link attribute"),
        )

    def attributes(self, attributes: dict[str, JSON], place: str) -> dict[str, JSON]:
        """Attributes with keys and values redacted; in allow-list mode only known keys keep their values."""
        allow = self.policy.allow
        result: dict[str, JSON] = {}
        for key, value in attributes.items():
            fact, in_data = is_fact(key), holds_data(key)
            kept = allow is None or allow.keeps(key, structure=fact, in_data=in_data)
            scope = _Scope(place, kept=kept, in_data=in_data)
            result[self._key(key, place)] = self._keyed(key, value, scope, structure=fact)
        return result

    # ------------------------------------------------------------------ documents

    def document(self, document: JSON, place: str) -> JSON:
        """A snapshot, a state, a task or any other JSON document; ids and patches are understood."""
        self.counts.documents += 1
        return self._value(document, _Scope(place, in_data=True))

    def text(self, text: str, place: str) -> str:
        """A text that stays in allow-list mode (a name, a key), with what the detectors find taken out."""
        return self._string(text, _Scope(place))

    def _prose(self, text: str, place: str) -> str:
        """A free text: taken out whole in allow-list mode unless rules read texts."""
        allow = self.policy.allow
        return self._value(text, _Scope(place, kept=allow is None or allow.texts))  # type: ignore[no-any-return]

    # ------------------------------------------------------------------ values

    def _keyed(self, key: str, value: JSON, scope: _Scope, *, structure: bool) -> JSON:
        """The value of a key: taken out whole where the key's name says so; the structure inside stays."""
        named = self.policy.keys.matches(key, value, structure=structure) and not is_schema(value)
        if (named or not scope.stays) and is_status(key, value):
            return value
        return self._value(value, replace(scope, forced=True) if named and not scope.forced else scope)

    def _value(self, value: JSON, scope: _Scope) -> JSON:
        if isinstance(value, str):
            return self._string(value, scope)
        if value is None:
            return value
        if isinstance(value, (bool, int, float)):
            card = not isinstance(value, bool) and abs(value) >= _CARD_MIN and number_kind(value) == "card"
            return value if scope.stays and not card else self._placeholder(value, scope)
        if scope.depth >= MAX_DEPTH:
            self.counts.replaced[scope.place, "nested"] += 1
            return "[REDACTED]"
        if isinstance(value, list):
            below = scope.inside()
            return [self._value(item, below) for item in value]
        return self._object(value, scope)

    def _object(self, value: dict[str, JSON], scope: _Scope) -> dict[str, JSON]:
        result: dict[str, JSON] = {}
        named = _named_values(value)
        below = scope.inside()
        for key, item in value.items():
            if key == "value" and any(self.policy.keys.matches(k, item) for k in named):
                result[key] = self._value(item, replace(below, forced=True))
                continue
            structure = not scope.in_data and gives_structure(key, value, of_call=scope.of_call)
            new = self._keyed(key, item, self._below(key, below, structure), structure=structure)
            result[self._key(key, scope.place)] = new
        return result

    def _below(self, key: str, scope: _Scope, structure: bool) -> _Scope:
        """The scope of the value of a key inside JSON, given that of the object's values."""
        in_data = scope.in_data or key.lower() in CONTENT_KEYS
        forced = scope.forced and not structure
        kept = True if self.policy.allow is None else self.policy.allow.keeps(key, structure=structure, in_data=in_data)
        of_call = not in_data and key.lower() in CALL_KEYS
        if (in_data, forced, kept, of_call) == (scope.in_data, scope.forced, scope.kept, scope.of_call):
            return scope
        return replace(scope, kept=kept, in_data=in_data, forced=forced, of_call=of_call)

    def _placeholder(self, value: JSON, scope: _Scope) -> str:
        self.counts.replaced[
            scope.place, "by key" if scope.forced else "not on the allow-list" if not scope.kept else "card"
        ] += 1
        return self.policy.whole(value)

    def _key(self, key: str, place: str) -> str:
        return self.text(key, f"{place}, key")

    def _id(self, value: str) -> str:
        return self.ids.id(value) if self.ids else value

    # ------------------------------------------------------------------ texts

    def _string(self, text: str, scope: _Scope) -> str:
        """A text: as JSON where it is JSON, else by what the detectors and encodings show."""
        if not text or is_taken_out(text):
            return text
        if text.lstrip()[:1] in ("{", "[", '"') and scope.depth < MAX_DEPTH:
            document = parse_json(text)
            if document is not MISSING:
                new = self._value(document, scope.inside())
                return text if new == document else _write_json(new, text)
        if not scope.stays:
            return self._placeholder(text, scope)
        new, kinds = self._flat(text)
        for kind in kinds:
            self.counts.replaced[scope.place, kind] += 1
        return new

    def _flat(self, text: str) -> tuple[str, tuple[str, ...]]:
        """A text that is no JSON, and the kinds of what was taken out; remembered for short texts, which repeat."""
        known = self._flat_texts.get(text)
        if known is not None:
            return known
        hits = self._hits(text, MAX_LAYERS)
        parts, position = [], 0
        for hit in hits:
            parts += [text[position : hit.start], self.policy.placeholder(text[hit.start : hit.end], hit.kind)]
            position = hit.end
        new = "".join(parts) + text[position:]
        if self.ids:
            new = self.ids.text(new)
        result = new, tuple(h.kind for h in hits)
        if len(text) <= _CACHED_LENGTH:
            if len(self._flat_texts) >= _CACHE_ENTRIES:
                self._flat_texts.clear()
            self._flat_texts[text] = result
        return result

    def _hits(self, text: str, layers: int) -> list[Hit]:
        hits = find_secrets(text, self.policy.all_detectors)
        hidden = list(encoded_hits(text, lambda decoded: self._holds(decoded, layers - 1))) if layers else []
        return merge([*((h, 0) for h in hits), *((h, 1) for h in hidden)]) if hidden else hits

    def _holds(self, text: str, layers: int) -> bool:
        """Whether a decoded text holds something to take out; the text itself goes nowhere."""
        document = parse_json(text) if text.lstrip()[:1] in ("{", "[", '"') else MISSING
        if document is MISSING:
            return bool(self._hits(text, layers))
        probe = Redactor(replace(self.policy, allow=None))
        probe.document(document, "")
        return probe.counts.total > 0


def redact_span(span: Span, policy: Policy) -> Span:
    """One span redacted; for many, one `Redactor` is faster and counts.

    >>> span = Span("a" * 32, "b" * 16, None, "by bob@example.com", 1, 0, 1, 0, "", {}, {}, "", "")
    >>> redact_span(span, Policy(b"a secret")).name.startswith("by ⟦email:")
    True
    """
    return Redactor(policy).span(span)


def is_taken_out(value: JSON) -> bool:
    """Whether a value is what somebody wrote in place of another: ours, or an instrumentation's."""
    if not isinstance(value, str):
        return False
    return value in REDACTED_TEXTS or ("⟦" in value and PLACEHOLDER.fullmatch(value) is not None)


def parse_json(text: str) -> JSON:
    """The JSON that a text holds, `MISSING` where it holds none or where reading it would lose something (a key that
    occurs twice)."""
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        return MISSING


def _unique(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key occurs twice")
    return result


def _write_json(value: JSON, like: str) -> str:
    """JSON text, with spaces after separators where `like` has them."""
    separators = (", ", ": ") if '": ' in like else (",", ":")
    text = json.dumps(value, ensure_ascii=False, separators=separators)
    return text.encode("utf-8", "replace").decode()


def _named_values(value: dict[str, JSON]) -> tuple[str, ...]:
    """The names of what the member `value` holds: the path of a patch's operation, or `key`/`name` beside it."""
    if "value" not in value:
        return ()
    path = value.get("path")
    if "op" in value and isinstance(path, str):
        return tuple(path.split("/"))
    if "op" in value and isinstance(path, list):
        return tuple(str(p) for p in path)
    return tuple(value[n] for n in ("key", "name", "field", "header") if isinstance(value.get(n), str))

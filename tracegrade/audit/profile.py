"""Counts what telemetry carries: per service, scope, operation and attribute, in trajectories.

A trajectory carries an attribute where all of its spans of the operation do. Values are looked at and forgotten; for a
comparison within one process, hashes of a few are kept, which no profile that is written holds.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from tracegrade.audit.base import Place, Scene, place_of
from tracegrade.audit.carried import cut_json, says
from tracegrade.dialects.interpret import Facts
from tracegrade.model.audit import AttributeProfile, AuditProfile, Decidability, OperationProfile, Shares
from tracegrade.model.span import Span
from tracegrade.model.values import JSON, canonical
from tracegrade.model.verdict import InvariantResult

Digest = bytes
MAX_ATTRIBUTES = 2_000
"""Attributes that are told apart on one operation; further names are counted together as `(other)`."""
_KEPT_HASHES = 64
_COMMON = frozenset({"true", "false", "none", "null"})
_INDEX = re.compile(r"(?<=\.)\d+(?=\.|$)")
EVIDENCE = {
    "tool": ("tool", "call_id", "arguments", "result"),
    "model": (
        "model",
        "input_messages",
        "output_messages",
        "input_tokens",
        "output_tokens",
        "response_id",
        "definitions",
    ),
    "agent": ("agent", "conversation_id"),
    "workflow": ("conversation_id",),
}
"""Role → the evidence that grading reads from its spans."""


def attribute_name(key: str) -> str:
    """An attribute's name with the indices of flattened lists taken out.

    >>> attribute_name("llm.input_messages.10.message.role")
    'llm.input_messages.N.message.role'
    """
    return _INDEX.sub("N", key) if "." in key else key


def value_type(value: JSON) -> str:
    """The type of a value as a comparison sees it: whole and other numbers are one."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    if isinstance(value, list):
        return "array"
    return "object" if isinstance(value, dict) else "null"


def evidence_of(facts: Facts) -> Iterator[tuple[str, str]]:
    """The evidence that a span holds, each with the key or reader that gave it."""
    for name in EVIDENCE.get(facts.role or "", ()):
        if name in ("arguments", "result"):
            content, source = facts.content(name)
            if content.state == "captured":
                yield name, source
        elif name in ("input_messages", "output_messages"):
            _, source = facts.field(name)
            if any(says(m) for m in facts.messages(name) or ()):
                yield name, source
        elif facts.text(name) is not None:
            yield name, facts.field(name)[1]


@dataclass(slots=True)
class AttributeCount:
    """One attribute on the spans of one operation."""

    all: int = 0
    some: int = 0
    spans: int = 0
    cut: int = 0
    bytes: int = 0
    types: Counter[str] = field(default_factory=Counter)
    only: Counter[str] = field(default_factory=Counter)
    feeds: set[str] = field(default_factory=set)
    hashes: set[Digest] = field(default_factory=set)

    def merge(self, other: AttributeCount) -> None:
        """Adds what was counted on other trajectories."""
        for name in ("all", "some", "spans", "cut", "bytes"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.types.update(other.types)
        self.only.update(other.only)
        self.feeds |= other.feeds
        room = _KEPT_HASHES - len(self.hashes)
        self.hashes.update(sorted(other.hashes - self.hashes)[: max(room, 0)])


@dataclass(slots=True)
class OperationCount:
    """One operation of one scope of one service."""

    role: str
    trajectories: int = 0
    spans: int = 0
    attributes: dict[str, AttributeCount] = field(default_factory=dict)

    def attribute(self, name: str) -> AttributeCount:
        """The count of an attribute."""
        found = self.attributes.get(name)
        if found is None:
            if len(self.attributes) >= MAX_ATTRIBUTES:
                name = "(other)"
            found = self.attributes.setdefault(name, AttributeCount())
        return found


@dataclass(slots=True)
class _Here:
    """One attribute on the spans of one operation in one trajectory."""

    spans: int = 0
    cut: bool = False
    bytes: int = 0
    types: set[str] = field(default_factory=set)


class Counts:
    """What was counted over trajectories."""

    def __init__(self) -> None:
        self.operations: dict[Place, OperationCount] = {}
        self.gaps: Counter[str] = Counter()
        self.versions: dict[str, Counter[str]] = {}
        self.dialects: Counter[str] = Counter()
        self.tokens: Counter[str] = Counter()
        self.rules: dict[str, list[int]] = {}
        self.missing: dict[str, Counter[str]] = {}
        self.alone: Counter[str] = Counter()
        self.lacking: Counter[str] = Counter()
        self.shares: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()
        self.byte_spans: Counter[str] = Counter()
        self.unknown_attributes: Counter[str] = Counter()

    def add(self, scene: Scene) -> None:
        """Counts one trajectory."""
        trajectory = scene.trajectory
        self.shares["trajectories"] += 1
        self.gaps.update({g.code for g in trajectory.gaps})
        _add_shares(self.shares, scene)
        for name in ("input_tokens", "output_tokens"):
            self.tokens[name] += getattr(trajectory.usage, name) or 0
        by_place: dict[Place, list[Facts]] = {}
        for facts in scene.facts:
            by_place.setdefault(place_of(facts), []).append(facts)
            self._note_span(facts)
        for place, some in by_place.items():
            operation = self.operations.setdefault(place, OperationCount(some[0].role or ""))
            operation.trajectories += 1
            operation.spans += len(some)
            self._count(operation, some)

    def judged(self, results: Iterable[InvariantResult]) -> None:
        """Counts which rules were decided on one trajectory."""
        for r in results:
            row = self.rules.setdefault(r.id, [0, 0, 0])
            verdict = r.result.verdict
            if verdict == "unknown":
                row[1] += 1
                keys = r.result.missing_keys or ("other",)
                self.missing.setdefault(r.id, Counter()).update(keys)
                self.lacking.update(keys)
                if len(keys) == 1:
                    self.alone[keys[0]] += 1
            elif verdict == "not_applicable":
                row[2] += 1
            else:
                row[0] += 1

    def merge(self, other: Counts) -> None:
        """Adds what was counted over other trajectories."""
        for place, theirs in other.operations.items():
            mine = self.operations.setdefault(place, OperationCount(theirs.role))
            mine.trajectories += theirs.trajectories
            mine.spans += theirs.spans
            for name, a in theirs.attributes.items():
                mine.attribute(name).merge(a)
        for name in ("gaps", "dialects", "tokens", "alone", "lacking", "shares", "bytes", "byte_spans"):
            getattr(self, name).update(getattr(other, name))
        self.unknown_attributes.update(other.unknown_attributes)
        for scope, versions in other.versions.items():
            self.versions.setdefault(scope, Counter()).update(versions)
        for rule, row in other.rules.items():
            self.rules[rule] = [a + b for a, b in zip(self.rules.get(rule, [0, 0, 0]), row, strict=True)]
        for rule, missing in other.missing.items():
            self.missing.setdefault(rule, Counter()).update(missing)

    def share_report(self) -> Shares:
        """The shares, with those of the rules."""
        decided = sum(r[0] for r in self.rules.values())
        undecided = sum(r[1] for r in self.rules.values())
        return Shares(**self.shares, decided=decided, applicable=decided + undecided)

    def decidability(self) -> tuple[Decidability, ...]:
        """Rule by rule, in the order of the rules."""
        return tuple(
            Decidability(
                invariant=name,
                decidable=row[0],
                undecidable=row[1],
                not_applicable=row[2],
                missing=tuple(k for k, _ in _ranked(self.missing.get(name, Counter()))),
                missing_counts=dict(_ranked(self.missing.get(name, Counter()))),
            )
            for name, row in self.rules.items()
        )

    def profile(self) -> AuditProfile:
        """The counts as a record: no value and no id is in it."""
        return AuditProfile(
            shares=self.share_report(),
            operations=tuple(_operation(p, o) for p, o in sorted(self.operations.items())),
            gaps=dict(sorted(self.gaps.items())),
            versions={k: dict(sorted(v.items())) for k, v in sorted(self.versions.items())},
            dialects=dict(sorted(self.dialects.items())),
            tokens=dict(sorted(self.tokens.items())),
            decided={name: (row[0], row[0] + row[1]) for name, row in sorted(self.rules.items())},
        )

    def hashes(self) -> dict[tuple[Place, str], frozenset[bytes]]:
        """Hashes of some values of each attribute: they recognise a rename, and are in no profile."""
        return {(p, n): frozenset(a.hashes) for p, o in self.operations.items() for n, a in o.attributes.items()}

    def _note_span(self, facts: Facts) -> None:
        span = facts.span
        self.shares["spans"] += 1
        if facts.dialect is not None:
            self.dialects[facts.dialect] += 1
        if span.scope_version:
            self.versions.setdefault(span.scope_name, Counter())[span.scope_version] += 1
        sdk = span.resource.get("telemetry.sdk.version")
        if isinstance(sdk, str):
            name = f"telemetry.sdk.{span.resource.get('telemetry.sdk.language', '')}"
            self.versions.setdefault(name, Counter())[sdk] += 1

    def _count(self, operation: OperationCount, some: Sequence[Facts]) -> None:
        here: dict[str, _Here] = {}
        for facts in some:
            on_span: dict[str, list[JSON]] = {}
            for key, value in _recorded(facts.span):
                on_span.setdefault(attribute_name(key), []).append(value)
            for name, values in on_span.items():
                mine = here.setdefault(name, _Here())
                mine.spans += 1
                hashes = operation.attribute(name).hashes
                for value in values:
                    text = value if isinstance(value, str) else canonical(value)
                    size = len(text.encode("utf-8", "replace"))
                    mine.bytes += size
                    mine.types.add(value_type(value))
                    mine.cut = mine.cut or cut_json(value)
                    telling = size > 3 or isinstance(value, (int, float))
                    if len(hashes) < _KEPT_HASHES and telling and text.lower() not in _COMMON:
                        hashes.add(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest())
            for name, source in evidence_of(facts):
                mine = here.setdefault(f"@{name}", _Here())
                mine.spans += 1
                key = attribute_name(source.partition("|")[0])
                if key in on_span:
                    operation.attribute(key).feeds.add(name)
        for name, mine in here.items():
            count = operation.attribute(name)
            count.all += mine.spans == len(some)
            count.some += 1
            count.spans += mine.spans
            count.cut += mine.cut
            count.bytes += mine.bytes
            count.types.update(mine.types)
            if len(mine.types) == 1:
                count.only.update(mine.types)
            if not name.startswith("@"):
                self.bytes[name] += mine.bytes
                self.byte_spans[name] += mine.spans


def _recorded(span: Span) -> Iterator[tuple[str, JSON]]:
    yield from span.attributes.items()
    for event in span.events:
        yield f"event:{event.name}", ""
    for record in span.logs:
        if record.event_name:
            yield f"log:{record.event_name}", ""


def model_calls(scene: Scene) -> Iterator[tuple[list[Facts], bool]]:
    """The spans of each model call of a trajectory, and whether its messages are recorded with their content."""
    silent = {s for g in scene.trajectory.gaps if g.code == "messages_not_captured" for s in g.span_ids}
    spans = {f.span.span_id: f for f in scene.forest.facts}
    for step in scene.trajectory.steps:
        if step.kind == "model_call":
            some = [spans[s] for s in step.span_ids if s in spans]
            both = ("input_messages", "output_messages")
            told = any(says(m) for f in some for name in both for m in f.messages(name) or ())
            yield some, told and silent.isdisjoint(step.span_ids)


def _add_shares(shares: Counter[str], scene: Scene) -> None:
    trajectory = scene.trajectory
    for step in trajectory.steps:
        if step.kind == "tool_call":
            shares["tool_calls"] += 1
            shares["calls_with_arguments"] += step.arguments_state == "captured"
            shares["calls_with_results"] += step.result_state == "captured"
            shares["calls_with_ids"] += step.call_id is not None
    shares["model_calls"] += trajectory.usage.model_calls
    shares["model_calls_with_usage"] += trajectory.usage.model_calls - trajectory.usage.calls_without_usage
    silent = sum(not told for some, told in model_calls(scene) if some)
    shares["model_calls_with_messages"] += max(trajectory.usage.model_calls - silent, 0)


def _ranked(counter: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counter.items(), key=lambda item: (-item[1], item[0]))


def _operation(place: Place, count: OperationCount) -> OperationProfile:
    return OperationProfile(
        service=place.service,
        scope=place.scope,
        operation=place.operation,
        role=count.role,
        trajectories=count.trajectories,
        spans=count.spans,
        attributes={
            name: AttributeProfile(
                all=a.all,
                some=a.some,
                spans=a.spans,
                cut=a.cut,
                types=dict(sorted(a.types.items())),
                only=dict(sorted(a.only.items())),
                feeds=tuple(sorted(a.feeds)),
                size=round(math.log2(a.bytes / a.spans)) if a.spans and a.bytes else 0,
            )
            for name, a in sorted(count.attributes.items())
        },
    )

"""What stands under another name now: services, scopes, operations and attributes, by place, meaning and value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from tracegrade.audit.base import Place
from tracegrade.audit.semconv import replacements
from tracegrade.dialects.registry import built_in
from tracegrade.model.audit import AttributeProfile, OperationProfile

Operations = Mapping[Place, OperationProfile]
Hashes = Mapping[tuple[Place, str], frozenset[bytes]]

_LIKE = 0.4
_SAME_VALUES = 0.5
_LONG = 8
_ENOUGH = 3
_KINDRED = {"workflow": "agent"}
_FAMILIES = {
    "gen_ai.prompt.": ("input_messages", "system_instructions"),
    "gen_ai.completion.": ("output_messages",),
    "llm.input_messages.": ("input_messages",),
    "llm.output_messages.": ("output_messages",),
    "llm.request.functions.": ("definitions",),
    "llm.tools.": ("definitions",),
    "log:gen_ai.choice": ("output_messages",),
    "log:gen_ai.": ("input_messages", "system_instructions"),
    "event:gen_ai.choice": ("output_messages",),
    "event:gen_ai.": ("input_messages", "system_instructions"),
    "events": ("input_messages", "output_messages"),
    "all_messages_events": ("input_messages", "output_messages"),
}
"""Beginnings of names under which an instrumentation spreads one thing over many attributes or events."""


def align(before: Operations, now: Operations) -> tuple[dict[Place, Place], list[tuple[str, str, str]]]:
    """Each place of the baseline with the candidate's place that is the same thing, and what was renamed for it.

    Returns:
        Baseline place → candidate place, for those that are still there; and (what, old name, new name), where what is
        `service`, `scope` or `operation`.
    """
    renames: list[tuple[str, str, str]] = []
    services = _services(before, now)
    found: dict[Place, Place] = {}
    for old_service, new_service in services.items():
        if old_service != new_service:
            renames.append(("service", old_service, new_service))
        old_scopes = _scopes(before, old_service)
        new_scopes = _scopes(now, new_service)
        for old_scope, new_scope in _pair(old_scopes, new_scopes).items():
            if old_scope != new_scope:
                renames.append(("scope", old_scope, new_scope))
            olds = {p.operation: before[p] for p in before if p[:2] == (old_service, old_scope)}
            news = {p.operation: now[p] for p in now if p[:2] == (new_service, new_scope)}
            for old, new in _pair_operations(olds, news).items():
                if old != new:
                    renames.append(("operation", old, new))
                found[Place(old_service, old_scope, old)] = Place(new_service, new_scope, new)
    return found, renames


def _services(before: Operations, now: Operations) -> dict[str, str]:
    olds, news = {p.service for p in before}, {p.service for p in now}
    same = {s: s for s in olds & news}
    gone, come = sorted(olds - news), sorted(news - olds)
    if len(gone) == 1 and len(come) == 1:
        same[gone[0]] = come[0]
    return same


def _scopes(operations: Operations, service: str) -> dict[str, set[str]]:
    """Scope → what it records: its operations' roles and the names of their attributes."""
    found: dict[str, set[str]] = {}
    for place, operation in operations.items():
        if place.service == service:
            found.setdefault(place.scope, set()).update({f"role {operation.role}"}, _meaning(operation))
    return found


def _meaning(operation: OperationProfile) -> set[str]:
    return set(operation.attributes)


def _pair(olds: Mapping[str, set[str]], news: Mapping[str, set[str]]) -> dict[str, str]:
    """Names that are on both sides, and those that are gone with the most alike of those that came."""
    pairs = {n: n for n in olds if n in news}
    come = {n for n in news if n not in olds}
    ranked = sorted(
        ((_alike(olds[a], news[b]), a, b) for a in olds if a not in news for b in come),
        key=lambda x: (-x[0], x[1], x[2]),
    )
    for score, a, b in ranked:
        if score >= _LIKE and a not in pairs and b in come:
            pairs[a] = b
            come.discard(b)
    return pairs


def _pair_operations(olds: Mapping[str, OperationProfile], news: Mapping[str, OperationProfile]) -> dict[str, str]:
    roles = {_kindred(o) for o in olds.values()} & {_kindred(o) for o in news.values()}
    pairs = {n: n for n in olds if n in news}
    for role in sorted(roles):
        gone = {n: _meaning(o) for n, o in olds.items() if _kindred(o) == role and n not in news}
        come = {n: _meaning(o) for n, o in news.items() if _kindred(o) == role and n not in olds}
        pairs.update(_pair(gone, come))
    return pairs


def _kindred(operation: OperationProfile) -> str:
    """The role, where what one instrumentation calls a workflow another calls an agent."""
    return _KINDRED.get(operation.role, operation.role)


def _alike(a: set[str], b: set[str]) -> float:
    """How alike two sets of names are: the share of all that both have, or of the older ones that are still there."""
    common = len(a & b)
    if not common:
        return 0.0
    return max(common / len(a | b), common / len(a) if len(a) >= _ENOUGH else 0.0)


def successor(
    name: str,
    old: AttributeProfile,
    new: Mapping[str, AttributeProfile],
    come: Iterable[str],
    hashes: tuple[frozenset[bytes], Mapping[str, frozenset[bytes]]],
) -> str | None:
    """The attribute under which a vanished one stands now; None where there is none.

    Two names are one thing by the conventions or by what a dialect reads from them; else by their values; else by the
    end of the name together with the type.

    Args:
        name: the vanished attribute.
        old: how it stood.
        new: the attributes of the same place now.
        come: those of them that were not there before.
        hashes: of its values, and of the values of each new attribute; empty where only counts are known.
    """
    ranked: list[tuple[int, float, str]] = []
    for candidate in come:
        same = _overlap(hashes[0], hashes[1].get(candidate, frozenset()))
        if _one_thing(name, old, candidate, new[candidate]):
            ranked.append((0, -same, candidate))
        elif same >= _SAME_VALUES and _same_types(old, new[candidate]):
            ranked.append((1, -same, candidate))
        elif _tail(name) == _tail(candidate) and len(_tail(name)) >= _LONG and _same_types(old, new[candidate]):
            ranked.append((2, -same, candidate))
    return min(ranked)[2] if ranked else None


def family(name: str) -> str | None:
    """The common beginning of the names over which one thing is spread, `gen_ai.prompt.`; None for others."""
    return next((start for start in _FAMILIES if name.startswith(start) and start[-1] == "."), None)


def _tail(name: str) -> str:
    return name.rpartition(".")[2]


def _overlap(a: frozenset[bytes], b: frozenset[bytes]) -> float:
    return len(a & b) / min(len(a), len(b)) if a and b else 0.0


def _same_types(old: AttributeProfile, new: AttributeProfile) -> bool:
    return bool(set(old.types) & set(new.types))


def _one_thing(name: str, old: AttributeProfile, other: str, new: AttributeProfile) -> bool:
    """Whether two names are spellings of one thing: by the conventions, or by what is read from them."""
    known = replacements()
    if known.get(name) == other or known.get(other) == name:
        return True
    return bool(_meant(name, old) & _meant(other, new))


def _meant(name: str, attribute: AttributeProfile) -> set[str]:
    """The evidence that is read from an attribute: by its dialect, in this telemetry, or from all of its kind."""
    spread = next((fields for start, fields in _FAMILIES.items() if name.startswith(start)), ())
    return {*_fields().get(name, ()), *attribute.feeds, *spread}


@cache
def _fields() -> dict[str, frozenset[str]]:
    """Attribute → the fields that some dialect reads from it."""
    found: dict[str, set[str]] = {}
    for compiled in built_in():
        for field, specs in compiled.dialect.fields.items():
            for spec in specs:
                if not spec.startswith("@"):
                    found.setdefault(spec.partition("|")[0], set()).add(field)
    return {k: frozenset(v) for k, v in found.items()}

"""The reference of all kinds and the account of one rule, from the code that judges them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tracegrade.checks.base import Kind, find_kind
from tracegrade.checks.finding import MISSING_TEXT, NEXT_ACTION
from tracegrade.checks.load import CompiledInvariant, actions_in
from tracegrade.checks.pattern import CALLS, Action, Node, describe
from tracegrade.model.invariant import Pattern


@dataclass(frozen=True, slots=True)
class FieldReference:
    """One field that a kind takes."""

    name: str
    required: bool
    default: str
    description: str


@dataclass(frozen=True, slots=True)
class KindReference:
    """One kind of rule."""

    name: str
    summary: str
    fields: tuple[FieldReference, ...]
    example: str
    needs: tuple[str, ...]


def kind_reference(name: str) -> KindReference:
    """What a kind takes and means.

    Raises:
        UsageError: no such kind.
    """
    kind = find_kind(name)
    fields = tuple(
        FieldReference(f.alias or field, f.is_required(), _default(f), f.description or _COMMON.get(field, ""))
        for field, f in kind.params.model_fields.items()
    )
    return KindReference(kind.name, kind.summary, fields, kind.example.rstrip(), _told(kind.needs))


_COMMON = {
    "relation": "Which order is meant: executed (one ended before the other started), informed (the model had the "
    "one's result when it asked for the other), started (start times; overlap allowed).",
    "min": "How often at least.",
    "max": "How often at most.",
    "actions": "What one turn must ask for.",
    "equals": "Where the right value comes from.",
}


def _default(field: Any) -> str:
    if field.is_required():
        return ""
    value: Any = field.default if field.default_factory is None else "any call"
    if isinstance(value, bool):  # before the table below, where 1 would equal true
        return str(value).lower()
    return {None: "", (): "none"}.get(value, str(value))


def _told(codes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(MISSING_TEXT.get(code, code) for code in codes)


def evidence_of(rule: CompiledInvariant) -> dict[str, str]:
    """Codes of the evidence that a rule reads, each with how to record it."""
    kind: Kind[Any] = rule.kind
    codes = [*kind.needs, "complete"]
    for name in type(rule.params).model_fields:
        proof = name in _PROOF.get(kind.name, ()) or (kind.name == "count" and rule.params.min is not None)  # type: ignore[attr-defined]
        for action in actions_in(getattr(rule.params, name)):
            codes += _codes(action.proof if proof else action.attempt)
    if getattr(rule.params, "relation", None) == "informed":
        codes.append("turns")
    for name in ("same", "arg"):
        if getattr(rule.params, name, None):
            codes.append("arguments")
    return {c: NEXT_ACTION[c] for c in dict.fromkeys(codes) if c in NEXT_ACTION and c not in ("search", "prior")}


_PROOF = {
    "agreement": ("equals",),
    "claims": ("requires",),
    "follows": ("then",),
    "forbidden": ("until", "unless"),
    "partial_order": ("order", "required"),
    "precedes": ("first",),
    "progress": ("milestones",),
    "redundant": ("reset_by",),
    "required": ("action",),
}
"""The fields whose steps are wanted as proof, by kind (DESIGN §5, default status)."""


def _codes(node: Node) -> list[str]:
    own = [code for code, _ in node.parts]
    inner = [*node.any_of, *node.all_of, *([node.negated] if node.negated else [])]
    if node.kinds != CALLS and "message" in node.kinds:
        own.append("messages")
    return own + [code for n in inner for code in _codes(n)]


def actions_of(rule: CompiledInvariant) -> list[tuple[str, str]]:
    """The named actions of a rule, each with what it stands for."""
    found: dict[str, str] = {}

    def note(pattern: Pattern) -> None:
        if pattern.label and pattern.label not in found:
            found[pattern.label] = describe(_unnamed(pattern))
        for inner in (*(pattern.any or ()), *(pattern.all or ()), *([pattern.not_] if pattern.not_ else [])):
            note(inner)

    action: Action
    for action in rule.actions():
        note(action.pattern)
    return list(found.items())


def _unnamed(pattern: Pattern) -> Pattern:
    return pattern.named("")

"""What a kind of rule is, and where kinds come from.

A kind is a params model (the fields of the rule, pydantic) and one pure function from a view of a trajectory and its
params to a `CheckResult`. Every kind, the built-in ones too, is found by name through the entry point group
`tracegrade.checks`, on demand; two distributions that claim one name are an error that names both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module, metadata
from typing import Any, Generic, TypeVar

from tracegrade.checks.view import View
from tracegrade.errors import UsageError, did_you_mean
from tracegrade.model.invariant import Params
from tracegrade.model.verdict import CheckResult

GROUP = "tracegrade.checks"
P = TypeVar("P", bound=Params)

BUILT_IN = {
    "agreement": "tracegrade.checks.agreement:AGREEMENT",
    "allowed": "tracegrade.checks.allowed:ALLOWED",
    "arguments": "tracegrade.checks.arguments:ARGUMENTS",
    "budget": "tracegrade.checks.budget:BUDGET",
    "claims": "tracegrade.checks.claims:CLAIMS",
    "count": "tracegrade.checks.count:COUNT",
    "first": "tracegrade.checks.ends:FIRST",
    "follows": "tracegrade.checks.follows:FOLLOWS",
    "forbidden": "tracegrade.checks.forbidden:FORBIDDEN",
    "last": "tracegrade.checks.ends:LAST",
    "partial_order": "tracegrade.checks.partial_order:PARTIAL_ORDER",
    "precedes": "tracegrade.checks.precedes:PRECEDES",
    "progress": "tracegrade.checks.progress:PROGRESS",
    "recovery": "tracegrade.checks.recovery:RECOVERY",
    "redundant": "tracegrade.checks.redundant:REDUNDANT",
    "required": "tracegrade.checks.required:REQUIRED",
    "same_turn": "tracegrade.checks.same_turn:SAME_TURN",
    "sequence": "tracegrade.checks.sequence:SEQUENCE",
    "untouched": "tracegrade.checks.untouched:UNTOUCHED",
}
"""The kinds that ship with the package, in entry point form: a source tree that is not installed has no metadata."""


@dataclass(frozen=True, slots=True)
class Kind(Generic[P]):
    """One kind of rule.

    Attributes:
        name: as written after `kind:`.
        params: the model of the rule's own fields.
        check: the judgement of one trajectory; pure.
        summary: one line, for `tracegrade invariants kinds`.
        example: a rule of this kind as YAML, for the reference; its `actions` are written in place.
        needs: codes of the evidence that it cannot do without.
        explain: what a given rule demands, in words.
    """

    name: str
    params: type[P]
    check: Callable[[View, P], CheckResult]
    summary: str
    example: str
    explain: Callable[[P], str]
    needs: tuple[str, ...] = ()


def define_check(
    name: str,
    params: type[P],
    check: Callable[[View, P], CheckResult],
    *,
    summary: str = "",
    example: str = "",
    explain: Callable[[P], str] | None = None,
    needs: tuple[str, ...] = (),
) -> Kind[P]:
    """A kind of rule to be named in the entry point group `tracegrade.checks`.

    Args:
        name: what rules write after `kind:`; equal to the entry point's name.
        params: the rule's own fields.
        check: gives the verdict of one trajectory. What it raises becomes the verdict `error` of that rule alone.
        summary: one line; the first line of the params model's docstring when empty.
        example: a rule as YAML, for the reference.
        explain: the rule in words; the summary when not given.
        needs: codes of evidence, such as `arguments`, that the kind cannot do without.
    """
    told = summary or (params.__doc__ or name).strip().splitlines()[0]
    return Kind(name, params, check, told, example, explain or (lambda _: told), needs)


@lru_cache(maxsize=1)
def _entry_points() -> dict[str, list[metadata.EntryPoint]]:
    found: dict[str, list[metadata.EntryPoint]] = {}
    for entry in metadata.entry_points(group=GROUP):
        same = found.setdefault(entry.name, [])
        if all(entry.value != other.value for other in same):
            same.append(entry)
    return found


def kind_names() -> list[str]:
    """The names of all kinds, built in and installed, sorted; none is imported."""
    return sorted({*BUILT_IN, *_entry_points()})


def find_kind(name: str) -> Kind[Any]:
    """The kind called `name`.

    Raises:
        UsageError: no such kind, two distributions that claim it, or one that cannot be imported.
    """
    entries = _entry_points().get(name, [])
    values = {e.value for e in entries} | ({BUILT_IN[name]} if name in BUILT_IN else set())
    if not values:
        raise UsageError(f"no kind of rule is called `{name}`.{did_you_mean(name, kind_names())}")
    if len(values) > 1:
        owners = sorted(
            {e.dist.name if e.dist else e.value for e in entries} | ({"tracegrade"} if name in BUILT_IN else set())
        )
        raise UsageError(f"the kind `{name}` is claimed twice: {', '.join(owners)}. Remove one of them.")
    return _load(values.pop())


@lru_cache(maxsize=256)
def _load(target: str) -> Kind[Any]:
    module, _, attribute = target.partition(":")
    try:
        kind = getattr(import_module(module), attribute)
    except Exception as error:
        raise UsageError(f"the kind of rule at `{target}` cannot be imported: {error}") from error
    if not isinstance(kind, Kind):
        raise UsageError(f"`{target}` is no kind of rule: expected what `define_check` returns")
    return kind

"""Which calls are equal: the same tool with equal arguments, three-valued where arguments are not known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tracegrade.checks.view import View
from tracegrade.model.values import Tri, canonical, holds_redaction, tri_equal


def equality_key(view: View, step: int) -> str | None:
    """A text equal for two calls if and only if they are equal; None where the arguments are not known."""
    cached = view.cache.get(("equality", step))
    if cached is None:
        s = view.steps[step]
        known = s.arguments_state == "captured" and s.tool is not None and not holds_redaction(s.arguments)
        cached = f"{s.tool}\x00{canonical(s.arguments)}" if known else ""
        view.cache[("equality", step)] = cached
    return str(cached) or None


def calls_equal(view: View, a: int, b: int) -> Tri:
    """Whether two calls are equal: the same tool, equal arguments."""
    one, other = equality_key(view, a), equality_key(view, b)
    if one is not None and other is not None:
        return one == other
    x, y = view.steps[a], view.steps[b]
    if x.tool is None or y.tool is None:
        return None
    if x.tool != y.tool:
        return False
    if x.arguments_state != "captured" or y.arguments_state != "captured":
        return None
    return tri_equal(x.arguments, y.arguments)


@dataclass(slots=True)
class Group:
    """Steps that belong together, and those that may belong to them."""

    name: str
    yes: list[int] = field(default_factory=list)
    maybe: list[int] = field(default_factory=list)


def equal_groups(view: View, yes: Iterable[int], maybe: Iterable[int]) -> list[Group]:
    """The groups of equal calls among some, worked out once for all rules that ask (see `_equal_groups`)."""
    key = ("groups", tuple(yes), tuple(maybe))
    if key not in view.cache:
        view.cache[key] = _equal_groups(view, key[1], key[2])
    return view.cache[key]  # type: ignore[return-value]


def _equal_groups(view: View, yes: Iterable[int], maybe: Iterable[int]) -> list[Group]:
    """The groups of equal calls: members for certain, and every call that may be one of them.

    A call whose arguments are not known has a group of its own, to which others may belong; calls of one tool without
    any recorded arguments share one such group, since nothing tells them apart.
    """
    certain = set(yes)
    groups: dict[str, Group] = {}
    loose: dict[str, int] = {}
    members = sorted([*certain, *maybe])
    for step in members:
        key = equality_key(view, step)
        if key is None:
            shown = view.steps[step]
            loose[f"{shown.tool} {step if shown.arguments_state == 'captured' else ''}"] = step
            continue
        group = groups.setdefault(key, Group(view.steps[step].tool or ""))
        (group.yes if step in certain else group.maybe).append(step)
    unkeyed = [s for s in members if equality_key(view, s) is None]
    if not unkeyed:
        return list(groups.values())
    for group in groups.values():
        first = [*group.yes, *group.maybe][0]
        group.maybe += [s for s in unkeyed if calls_equal(view, first, s) is not False]
    result = list(groups.values())
    for step in loose.values():
        group = Group(view.steps[step].tool or "")
        for other in members:
            equal = True if other == step else calls_equal(view, step, other)
            if equal is not False:
                (group.yes if equal and other in certain and step in certain else group.maybe).append(other)
        result.append(group)
    return result

"""Generated ids, compared up to renaming: a new reservation is equal whatever its id.

An id is generated when it stands at a place that `ids` names and occurs nowhere in the initial state. Two states are
equal up to renaming when some one-to-one map of the generated ids of one onto those of the other makes them equal.
Where a glob meets a record (an object or a list), its key is the id; where it meets a text or a number, that is.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Hashable, Iterator

from tracegrade.model.values import JSON
from tracegrade.outcome.compare import ANY_ELEMENT, Options, Place, Undecidable, differing, key_of
from tracegrade.outcome.paths import Cursor, Globs, Path

MAX_RENAMINGS = 720
"""Ways to map look-alike ids that are tried before the comparison is given up as undecided."""

_ID = "⟨id⟩"
_SELF = "⟨self⟩"


def texts(state: JSON) -> frozenset[str]:
    """Every key, text and whole number (as text) that occurs in a state."""
    found: set[str] = set()
    stack = [state]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            found.update(node)
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
        elif isinstance(node, str) or (isinstance(node, int) and not isinstance(node, bool)):
            found.add(str(node))
    return frozenset(found)


def generated(state: JSON, known: frozenset[str], globs: Globs, *, records_only: bool = False) -> list[str]:
    """The generated ids of a state, in order of first appearance.

    Args:
        state: a final or expected state.
        known: `texts` of the initial state.
        globs: where ids stand.
        records_only: take keys of records alone: where `known` is not of the whole initial state.
    """
    found: dict[str, None] = {}

    def visit(node: JSON, cursor: Cursor) -> None:
        if not cursor:
            return
        if isinstance(node, dict):
            for key, value in node.items():
                below = globs.step(cursor, key)
                if globs.hit(below) and isinstance(value, (dict, list)):
                    found.setdefault(key)
                elif globs.hit(below) and not records_only:
                    found.setdefault(str(value))
                visit(value, below)
        elif isinstance(node, list):
            for i, value in enumerate(node):
                below = globs.step(cursor, str(i))
                if globs.hit(below) and not isinstance(value, (dict, list)) and not records_only:
                    found.setdefault(str(value))
                visit(value, below)

    visit(state, globs.start)
    return [text for text in found if text not in known]


def rename(node: JSON, names: dict[str, str], globs: Globs, cursor: Cursor) -> JSON:
    """The state with ids renamed: keys and texts everywhere, numbers only where a glob names them."""
    if isinstance(node, dict):
        changed = {
            names.get(key, key): rename(value, names, globs, globs.step(cursor, key)) for key, value in node.items()
        }
        same_parts = changed.keys() == node.keys() and all(changed[k] is v for k, v in node.items())
        return node if same_parts else changed
    if isinstance(node, list):
        parts = [rename(value, names, globs, globs.step(cursor, str(i))) for i, value in enumerate(node)]
        return node if all(x is y for x, y in zip(parts, node, strict=True)) else parts
    if isinstance(node, str):
        return names.get(node, node)
    if isinstance(node, int) and not isinstance(node, bool) and globs.hit(cursor):
        new = names.get(str(node))
        return node if new is None else int(new) if new.lstrip("-").isdecimal() else new
    return node


def _signatures(state: JSON, ids: list[str], options: Options) -> dict[str, Hashable]:
    """What each id's surroundings look like with every id masked: equal for ids that may be one another's image."""
    wanted = set(ids)
    seen: dict[str, Counter[Hashable]] = {i: Counter() for i in ids}
    blur = options.tolerance is not None

    def mask(node: JSON) -> JSON:
        if isinstance(node, dict):
            pairs = Counter((_ID if k in wanted else k, key_of(mask(v), bare)) for k, v in node.items())
            return [sorted(map(repr, pairs.items()))]
        if isinstance(node, list):
            return sorted(repr(mask(v)) for v in node)
        if isinstance(node, str) and node in wanted:
            return _ID
        if isinstance(node, (int, float)) and not isinstance(node, bool):
            return "⟨n⟩" if blur or str(node) in wanted else node
        return node

    bare = Place.root(Options())

    def visit(node: JSON, place: Place, masked: Path) -> None:
        if place.ignored:
            return
        if isinstance(node, dict):
            for key, value in node.items():
                below = place.down(key)
                if key in wanted and not below.ignored:
                    # what a glob ignores or reorders below an id is no part of how it looks
                    content = repr(mask(value)) if not below.ignore and not below.unordered else ""
                    seen[key][((*masked, _SELF), content)] += 1
                visit(value, below, (*masked, _ID if key in wanted else key))
        elif isinstance(node, list):
            for value in node:
                visit(value, place.down(ANY_ELEMENT), (*masked, ANY_ELEMENT))
        elif isinstance(node, str) and node in wanted:
            seen[node][(masked, "")] += 1

    visit(state, Place.root(options), ())
    return {i: frozenset(counts.items()) for i, counts in seen.items()}


def _renamings(
    expected: JSON, final: JSON, wanted: list[str], found: list[str], options: Options
) -> Iterator[dict[str, str]]:
    """Maps from the final state's ids to the expected ones that may make the states equal, likeliest first."""
    looks, finals = _signatures(expected, wanted, options), _signatures(final, found, options)
    groups: dict[Hashable, tuple[list[str], list[str]]] = {}
    for text in wanted:
        groups.setdefault(looks[text], ([], []))[0].append(text)
    for text in found:
        groups.setdefault(finals[text], ([], []))[1].append(text)
    alike = [(w, f) for w, f in groups.values() if w and len(w) == len(f)]
    odd_wanted = [t for w, f in groups.values() if not (w and len(w) == len(f)) for t in w]
    odd_found = [t for w, f in groups.values() if not (w and len(w) == len(f)) for t in f]
    if math.prod(math.factorial(len(w)) for w, _ in alike) > MAX_RENAMINGS:
        raise Undecidable(f"more than {MAX_RENAMINGS} ways to rename generated ids that look alike")
    rest = dict(zip(odd_found, odd_wanted, strict=False))
    for choice in itertools.product(*(itertools.permutations(w) for w, _ in alike)):
        names = dict(rest)
        for (_, f), w in zip(alike, choice, strict=True):
            names.update(zip(f, w, strict=True))
        yield names


def align(
    expected: JSON, final: JSON, known: frozenset[str], globs: Globs, options: Options, *, records_only: bool = False
) -> JSON:
    """The final state with its generated ids renamed to the expected ones, so as to leave the fewest differences.

    Args:
        expected: the state that should be.
        final: the state that is.
        known: `texts` of the initial state.
        globs: where ids stand.
        options: how the states are compared.
        records_only: only keys of records are generated ids.

    Raises:
        Undecidable: too many ids look alike.
    """
    wanted = generated(expected, known, globs, records_only=records_only)
    found = generated(final, known, globs, records_only=records_only)
    best, fewest = final, len(differing(expected, final, options))
    if not wanted or not found or fewest == 0:
        return best
    for names in _renamings(expected, final, wanted, found, options):
        candidate = rename(final, names, globs, globs.start)
        count = len(differing(expected, candidate, options))
        if count < fewest:
            best, fewest = candidate, count
        if fewest == 0:
            break
    return best

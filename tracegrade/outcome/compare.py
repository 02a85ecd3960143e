"""The one comparison of states: what it finds is both the verdict and the differences.

Numbers compare as numbers and never with text or booleans; null is not missing; objects by key; lists in order and as
wholes, unless a glob calls them unordered. `Options` holds the exceptions.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

import orjson

from tracegrade.model.task import Op, Patch, StateGrader, Tolerance
from tracegrade.model.values import JSON, MISSING, json_equal
from tracegrade.outcome.paths import Cursor, Globs, Path

MAX_TOLERANT_LIST = 2_000
"""Elements of an unordered list that are matched under a tolerance: the work grows with the square."""

ANY_ELEMENT = "*"
"""How a glob sees the index of an element of an unordered list: `*` matches it, a number does not."""


class Undecidable(Exception):
    """The comparison would need more work than is allowed; the verdict is then unknown."""


@dataclass(frozen=True, slots=True)
class Options:
    """How two states are compared; the default is exact equality of JSON values."""

    ignore: Globs = field(default_factory=Globs)
    unordered: Globs = field(default_factory=Globs)
    tolerance: Tolerance | None = None
    strict_numbers: bool = False

    @staticmethod
    def of(grader: StateGrader) -> Options:
        """The options that a `state` grader asks for."""
        tolerance = grader.tolerance
        if isinstance(tolerance, float):
            tolerance = Tolerance(absolute=tolerance)
        return Options(Globs(grader.ignore), Globs(grader.unordered), tolerance, grader.strict_numbers)


@dataclass(frozen=True, slots=True)
class Place:
    """A path, and where the globs stand on it."""

    options: Options
    path: Path
    ignore: Cursor
    unordered: Cursor

    @staticmethod
    def root(options: Options) -> Place:
        """The place of the whole state."""
        return Place(options, (), options.ignore.start, options.unordered.start)

    def down(self, part: str) -> Place:
        """The place one part further down."""
        options = self.options
        return Place(
            options,
            (*self.path, part),
            options.ignore.step(self.ignore, part),
            options.unordered.step(self.unordered, part),
        )

    @property
    def ignored(self) -> bool:
        """Whether this place is not compared."""
        return bool(self.ignore) and self.options.ignore.hit(self.ignore)

    @property
    def any_order(self) -> bool:
        """Whether a list here is compared as a multiset."""
        return bool(self.unordered) and self.options.unordered.hit(self.unordered)


def same(a: JSON, b: JSON, at: Place) -> bool:
    """Whether two values are equal at a place, under its options.

    Raises:
        Undecidable: an unordered list is too long to be matched under a tolerance.
    """
    if a is b or at.ignored:
        return True
    if not at.ignore and not at.unordered:
        return _same_below(a, b, at.options)
    if isinstance(a, dict) and isinstance(b, dict):
        return all(_same_member(a, b, key, at) for key in a.keys() | b.keys())
    if isinstance(a, list) and isinstance(b, list):
        if at.any_order:
            return _same_multiset(a, b, at)
        return len(a) == len(b) and all(same(x, y, at.down(str(i))) for i, (x, y) in enumerate(zip(a, b, strict=True)))
    if _is_number(a) and _is_number(b):
        return _same_number(a, b, at.options)
    return json_equal(a, b)


def _same_below(a: JSON, b: JSON, options: Options) -> bool:
    """`same` where no glob can hit any more: the greater part of any state."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same_below(v, b[k], options) for k, v in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_same_below(x, y, options) for x, y in zip(a, b, strict=True))
    if _is_number(a) and _is_number(b):
        return _same_number(a, b, options)
    return json_equal(a, b)


def _same_member(a: dict[str, JSON], b: dict[str, JSON], key: str, at: Place) -> bool:
    below = at.down(key)
    if below.ignored:
        return True
    x, y = a.get(key, MISSING), b.get(key, MISSING)
    return x is not MISSING and y is not MISSING and same(x, y, below)


def _is_number(value: JSON) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _same_number(a: float, b: float, options: Options) -> bool:
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b):
        return True
    if options.strict_numbers and (type(a) is not type(b) or repr(a) != repr(b)):
        equal = False
    else:
        equal = a == b
    tolerance = options.tolerance
    if equal or tolerance is None:
        return equal
    if options.strict_numbers and type(a) is not type(b):
        return False
    whole = float(a).is_integer() and float(b).is_integer()
    if whole and not tolerance.integers:
        return False
    allowed = max(tolerance.absolute, tolerance.relative * max(abs(a), abs(b)))
    return abs(a - b) <= allowed


def key_of(value: JSON, at: Place) -> Hashable:
    """A key equal for two values if and only if `same` holds for them; only without a tolerance."""
    if isinstance(value, dict):
        members = [(k, at.down(k)) for k in value]
        return "d", frozenset((k, key_of(value[k], below)) for k, below in members if not below.ignored)
    if isinstance(value, list):
        if at.any_order:
            element = at.down(ANY_ELEMENT)
            return "u", frozenset(Counter(key_of(v, element) for v in value).items())
        return "l", tuple(key_of(v, at.down(str(i))) for i, v in enumerate(value))
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return type(value).__name__, value
    if isinstance(value, float) and math.isnan(value):
        return "nan", None
    if at.options.strict_numbers:
        return type(value).__name__, repr(value)
    return "number", value


def _same_multiset(a: list[JSON], b: list[JSON], at: Place) -> bool:
    if len(a) != len(b):
        return False
    if at.options.tolerance is None:
        element = at.down(ANY_ELEMENT)
        return Counter(key_of(v, element) for v in a) == Counter(key_of(v, element) for v in b)
    return len(matched(a, b, at)) == len(a)


def matched(a: list[JSON], b: list[JSON], at: Place) -> dict[int, int]:
    """A largest one-to-one matching of equal elements: index in `a` → index in `b`.

    Raises:
        Undecidable: under a tolerance, more than `MAX_TOLERANT_LIST` elements.
    """
    element = at.down(ANY_ELEMENT)
    if at.options.tolerance is None:
        places: dict[Hashable, list[int]] = {}
        for j, value in enumerate(b):
            places.setdefault(key_of(value, element), []).append(j)
        found = {}
        for i, value in enumerate(a):
            if free := places.get(key_of(value, element)):
                found[i] = free.pop(0)
        return found
    if max(len(a), len(b)) > MAX_TOLERANT_LIST:
        raise Undecidable(f"an unordered list of {max(len(a), len(b))} elements is too long to match under a tolerance")
    return _maximum_matching([[j for j, y in enumerate(b) if same(x, y, element)] for x in a], len(b))


def _maximum_matching(edges: list[list[int]], n_right: int) -> dict[int, int]:
    import numpy as np
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_bipartite_matching

    rows = [i for i, targets in enumerate(edges) for _ in targets]
    columns = [j for targets in edges for j in targets]
    graph = csr_matrix((np.ones(len(rows), dtype=np.int8), (rows, columns)), shape=(len(edges), n_right))
    found = maximum_bipartite_matching(graph, perm_type="column")
    return {i: int(j) for i, j in enumerate(found) if j >= 0}


def _surely_same(a: JSON, b: JSON) -> bool:
    """Whether two values are written alike, and so equal under any options: a short cut past what did not change.

    Python's own equality is quick to find a difference, but holds for 1 and true too; the text does not.
    """
    try:
        return bool(a == b) and orjson.dumps(a) == orjson.dumps(b)
    except (TypeError, RecursionError):
        return False


def _share_parts(a: dict[str, JSON], b: dict[str, JSON]) -> bool:
    """Whether two objects were made from one, so that looking at their members one by one is the shorter way."""
    containers = (k for k, v in a.items() if isinstance(v, (dict, list)))
    return any(a[key] is b.get(key) for key in itertools.islice(containers, 3))


def walk(a: JSON, b: JSON, at: Place) -> Iterator[tuple[Place, JSON, JSON]]:
    """The smallest differing places: object members by key, anything else as a whole, in the order of the keys.

    Yields:
        The place, what `a` holds there and what `b` holds there; `MISSING` for nothing.
    """
    if a is b or at.ignored:
        return
    if isinstance(a, dict) and isinstance(b, dict):
        if not _share_parts(a, b) and _surely_same(a, b):
            return
        for key in a.keys() | b.keys() if a.keys() != b.keys() else a.keys():
            x, y = a.get(key, MISSING), b.get(key, MISSING)
            if x is not y and not (type(x) is str and x == y):
                yield from walk(x, y, at.down(key))
    elif a is MISSING or b is MISSING or not same(a, b, at):
        yield at, a, b


def differing(a: JSON, b: JSON, options: Options) -> list[tuple[Place, JSON, JSON]]:
    """All differing places, sorted by path."""
    return sorted(walk(a, b, Place.root(options)), key=lambda found: found[0].path)


def diff(a: JSON, b: JSON, options: Options | None = None) -> Patch:
    """The patch from `a` to `b`: empty if and only if they are equal under the options.

    Args:
        a: the state before.
        b: the state after.
        options: what counts as equal; exact equality of JSON values by default.

    Returns:
        Operations with list paths, sorted by path; `apply(a, diff(a, b))` equals `b` under the options.

    >>> [op.model_dump(exclude_unset=True) for op in diff({"a": 1, "b": 2}, {"a": 3})]
    [{'op': 'replace', 'path': ['a'], 'value': 3}, {'op': 'remove', 'path': ['b']}]
    """
    patch: Patch = []
    for place, x, y in differing(a, b, options or Options()):
        path: list[str | int] = list(place.path)
        if y is MISSING:
            patch.append(Op(op="remove", path=path))
        else:
            patch.append(Op(op="add" if x is MISSING else "replace", path=path, value=y))
    return patch

"""Paths into a state, and globs over them.

A path is a tuple of texts: record ids contain dots, `#`, spaces and digits, so a dotted text cannot name them all. A
list index stands as its digits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

Path = tuple[str, ...]
Cursor = tuple[tuple[int, int], ...]
"""Which glob stands at which of its parts: (glob, position) pairs."""


def parse_pointer(text: str) -> Path:
    """The parts of a JSON Pointer (RFC 6901 §4).

    Raises:
        ValueError: the text is neither empty nor starts with `/`, or holds a `~` that escapes nothing.

    >>> parse_pointer("/orders/#W1/a~1b~0c")
    ('orders', '#W1', 'a/b~c')
    """
    if text == "":
        return ()
    if not text.startswith("/"):
        raise ValueError(
            f"`{text}` is no JSON Pointer: it must be empty or start with `/`; a list of parts is fine too"
        )
    parts = text[1:].split("/")
    for part in parts:
        if "~" in part.replace("~0", "").replace("~1", ""):
            raise ValueError(f"`{text}` is no JSON Pointer: `~` stands only in `~0` and `~1`")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)


def parse_path(path: str | Sequence[str | int]) -> Path:
    """The parts of an operation's path: a JSON Pointer or a list of parts.

    >>> parse_path(["orders", "#W1", 0])
    ('orders', '#W1', '0')
    """
    return parse_pointer(path) if isinstance(path, str) else tuple(str(part) for part in path)


def parse_glob(path: str | Sequence[str | int]) -> Path:
    """The parts of a path glob: a JSON Pointer, a list of parts, or a dotted text.

    >>> parse_glob("trips.*.paid"), parse_glob("/trips/*/paid")
    (('trips', '*', 'paid'), ('trips', '*', 'paid'))
    """
    if isinstance(path, str) and path and not path.startswith("/"):
        return tuple(path.split("."))
    return parse_path(path)


class Globs:
    """A set of path globs, followed part by part while a state is walked.

    `*` and `?` match inside one part, `**` any number of parts. A glob that hits a place covers all below it.

    >>> globs = Globs(["trips.*.paid"])
    >>> globs.covers(("trips", "T-3", "paid", "0")), globs.covers(("trips", "T-3"))
    (True, False)
    """

    __slots__ = ("_patterns", "start")

    def __init__(self, globs: Iterable[str | Sequence[str | int]] = ()) -> None:
        self._patterns = tuple(parse_glob(g) for g in globs)
        self.start: Cursor = self._closure((i, 0) for i in range(len(self._patterns)))

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def step(self, cursor: Cursor, part: str) -> Cursor:
        """The cursor one part further down."""
        if not cursor:
            return cursor
        moved: list[tuple[int, int]] = []
        for i, position in cursor:
            pattern = self._patterns[i]
            if position == len(pattern):
                continue
            glob = pattern[position]
            if glob == "**":
                moved.append((i, position))
            elif glob == part or fnmatchcase(part, glob):
                moved.append((i, position + 1))
        return self._closure(moved)

    def hit(self, cursor: Cursor) -> bool:
        """Whether some glob ends exactly here."""
        return any(position == len(self._patterns[i]) for i, position in cursor)

    def covers(self, path: Sequence[str]) -> bool:
        """Whether a glob ends at the path or above it."""
        cursor = self.start
        if self.hit(cursor):
            return True
        for part in path:
            cursor = self.step(cursor, part)
            if self.hit(cursor):
                return True
        return False

    def _closure(self, items: Iterable[tuple[int, int]]) -> Cursor:
        """Adds the places that a `**` reaches by matching nothing."""
        found: set[tuple[int, int]] = set()
        for i, start in items:
            position = start
            found.add((i, position))
            pattern = self._patterns[i]
            while position < len(pattern) and pattern[position] == "**":
                position += 1
                found.add((i, position))
        return tuple(sorted(found))


def show(path: Sequence[str]) -> str:
    """A path as a person reads it: dotted where no part holds a dot, else a JSON Pointer.

    >>> show(("orders", "W1", "status")), show(("files", "a.txt")), show(())
    ('orders.W1.status', '/files/a.txt', '(the whole state)')
    """
    if not path:
        return "(the whole state)"
    if any("." in part or part == "" or part.startswith("/") for part in path):
        return "/" + "/".join(part.replace("~", "~0").replace("/", "~1") for part in path)
    return ".".join(path)

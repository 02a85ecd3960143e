"""The SQL of this package: one statement a file, runnable by hand, values always bound."""

from __future__ import annotations

from functools import cache
from importlib import resources

from tracegrade.errors import StoreError


@cache
def statement(name: str) -> str:
    """The text of `sql/<name>.sql`."""
    return (resources.files("tracegrade.store") / "sql" / f"{name}.sql").read_text(encoding="utf-8")


@cache
def migrations() -> tuple[tuple[int, str, str], ...]:
    """Number, name and text of every migration, in order."""
    folder = resources.files("tracegrade.store") / "migrations"
    found = sorted(item.name for item in folder.iterdir() if item.name.endswith(".sql"))
    return tuple(
        (int(name.split("_", 1)[0]), name.removesuffix(".sql"), (folder / name).read_text(encoding="utf-8"))
        for name in found
    )


def quoted(identifier: str) -> str:
    """An identifier, safe in SQL whatever it holds.

    Raises:
        StoreError: it is empty or holds NUL, which no identifier can.

    >>> quoted('a"b')
    '"a""b"'
    """
    if not identifier or "\x00" in identifier:
        raise StoreError(f"{identifier!r} cannot name a table or column")
    return '"' + identifier.replace('"', '""') + '"'

"""Files that ship with the package: rule packs and JSON Schemas.

In a checkout they stand beside the package (`invariants/`, `schemas/`); in an installed wheel below
`tracegrade/_data/`. This module alone knows which.
"""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal

Folder = Literal["invariants", "schemas"]


def folder(name: Folder) -> Traversable:
    """The bundled folder of that name; it may not exist where the package was taken apart."""
    installed = resources.files("tracegrade") / "_data" / name
    if installed.is_dir():
        return installed
    return Path(__file__).resolve().parent.parent / name


def names(name: Folder, ending: str) -> list[str]:
    """The stems of the bundled files that end in `ending` (such as `.yaml`), sorted."""
    where = folder(name)
    if not where.is_dir():
        return []
    return sorted(f.name.removesuffix(ending) for f in where.iterdir() if f.name.endswith(ending))


def read(name: Folder, file_name: str) -> str | None:
    """The text of one bundled file, None where there is no such file."""
    if "/" in file_name or "\\" in file_name:
        return None
    found = folder(name) / file_name
    return found.read_text(encoding="utf-8") if found.is_file() else None

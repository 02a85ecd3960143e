"""Finds the files that ship with tracegrade: bundled packs and schemas."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

_PACKAGE = Path(__file__).resolve().parent


def resource_dir(name: Literal["invariants", "schemas"]) -> Path:
    """The folder of bundled files.

    Args:
        name: `invariants` or `schemas`.

    Returns:
        The folder inside the installed wheel, or the one at the top of a source checkout.
    """
    installed = _PACKAGE / "_data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name

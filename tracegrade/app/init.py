"""Starts a project: a commented config and a pack of rules to edit."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from tracegrade.errors import UsageError

FILES = {"tracegrade.toml": "tracegrade.toml", "invariants/starter.yaml": "starter.yaml"}
"""File to write, below the folder → template of it."""


def start_project(folder: Path) -> list[Path]:
    """Write the starting files.

    Args:
        folder: where; made if it is not there.

    Returns:
        The files written.

    Raises:
        UsageError: a file is there already (then none is written), or cannot be written.
    """
    there = [name for name in FILES if (folder / name).exists()]
    if there:
        raise UsageError(f"{folder}: {', '.join(f'`{name}`' for name in there)} is there already; nothing was written")
    written = []
    for name, template in FILES.items():
        target = folder / name
        text = (resources.files("tracegrade") / "templates" / template).read_text(encoding="utf-8")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            raise UsageError(f"{target}: cannot be written: {error.strerror}") from error
        written.append(target)
    return written

"""Which files a list of paths, folders, globs and `-` stands for."""

from __future__ import annotations

import glob
import sys
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from tracegrade.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

STDIN = "-"


def expand(paths: Sequence[str]) -> list[str]:
    """The files that paths stand for, sorted: the order in which they were given changes nothing.

    Args:
        paths: files, folders (taken with all their subfolders, hidden files left out), globs (`**` included), or `-`.

    Raises:
        InputError: a path leads nowhere, or a folder or glob holds no file.
    """
    found: list[str] = []
    for path in paths:
        if path == STDIN:
            found.append(path)
        elif Path(path).is_dir():
            found.extend(_folder(path))
        elif Path(path).exists():
            found.append(path)
        else:
            found.extend(_glob(path))
    return sorted(found)


def _folder(path: str) -> list[str]:
    root = Path(path)
    files = [
        str(p)
        for p in root.rglob("*")
        if p.is_file() and not any(part.startswith(".") for part in p.relative_to(root).parts)
    ]
    if not files:
        raise InputError(f"{path}: the folder holds no file; give a file of spans, a folder of them, or `-`")
    return files


def _glob(path: str) -> list[str]:
    matches = [m for m in glob.glob(path, recursive=True) if Path(m).is_file()] if glob.has_magic(path) else []
    if matches:
        return matches
    if glob.has_magic(path):
        raise InputError(f"{path}: no file matches; is the pattern right, and quoted as the shell wants it?")
    raise InputError(_missing(path))


def _missing(path: str) -> str:
    import difflib

    parent = Path(path).parent
    names = [p.name for p in parent.iterdir()] if parent.is_dir() else []
    close = difflib.get_close_matches(Path(path).name, names, n=1)
    hint = f"; did you mean `{parent / close[0]}`?" if close else "; give a file, a folder, a glob or `-`"
    return f"{path}: there is no such file{hint}"


@contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """Open one input for reading bytes.

    Raises:
        OSError: it cannot be opened.
    """
    if path == STDIN:
        yield sys.stdin.buffer
        return
    with Path(path).open("rb") as handle:
        yield handle

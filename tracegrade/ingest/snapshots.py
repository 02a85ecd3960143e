"""Recorded states and reports that task and trial files refer to.

`sha256:H` is `states/H.json` (or `.json.gz`, `.json.zst`) beside the file that says it, and its unpacked bytes must
have that digest. Anything else is a path from there: JSON, JSON Lines of records, a SQLite or DuckDB file, or a folder
of CSV or Parquet tables.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from pathlib import Path
from typing import Final

import orjson

from tracegrade.errors import InputError, did_you_mean
from tracegrade.model.task import StateRef
from tracegrade.model.values import JSON
from tracegrade.outcome.records import read_bytes

MAX_STATE_BYTES: Final = 1 << 30
"""Unpacked size of one state above which it is refused: 1 GiB. Larger ones belong into tables."""

KEPT_STATES: Final = 4
"""States that stay parsed: trials of one benchmark share their initial state."""

_DIGEST: Final = re.compile(r"sha256:([0-9a-fA-F]{64})")


def locate(ref: StateRef) -> Path:
    """The file or folder that a reference names.

    Raises:
        InputError: the reference is malformed, or nothing is there.
    """
    base = Path(ref.base)
    if ref.ref.startswith("sha256:"):
        match = _DIGEST.fullmatch(ref.ref)
        if match is None:
            raise InputError(f"`{ref.ref}`: expected sha256: and 64 hex digits")
        stem = base / "states" / f"{match[1].lower()}.json"
        for path in (stem, stem.with_name(stem.name + ".gz"), stem.with_name(stem.name + ".zst")):
            if path.is_file():
                return path
        raise InputError(f"`{ref.ref}`: no file {stem} (or .gz, .zst)")
    path = base / ref.ref
    if not path.exists():
        siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        raise InputError(f"{path}: no such file or folder.{did_you_mean(path.name, siblings)}")
    return path


def is_tables(path: Path) -> bool:
    """Whether a state is tables: a folder, or a SQLite or DuckDB file by its first bytes."""
    return path.is_dir() or _head(path).startswith(b"SQLite format 3\0") or is_duckdb(path)


def is_duckdb(path: Path) -> bool:
    """Whether a file is a DuckDB database, by its first bytes."""
    return not path.is_dir() and _head(path)[8:12] == b"DUCK"


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(16)


def read_state(ref: StateRef) -> JSON:
    """The JSON of a state that is no table.

    Raises:
        InputError: it cannot be read, is no JSON, or has another digest than the reference says.
        LimitError: it is larger than `MAX_STATE_BYTES`.
    """
    path = locate(ref)
    content = read_bytes(path, MAX_STATE_BYTES)
    match = _DIGEST.fullmatch(ref.ref)
    if match is not None:
        digest = hashlib.sha256(content).hexdigest()
        if digest != match[1].lower():
            raise InputError(f"{path}: the content has the sha256 {digest}, not the one in its name")
    return _parse(content, path)


def _parse(content: bytes, path: Path) -> JSON:
    name = re.sub(r"\.(gz|zst|zstd)$", "", path.name.lower())
    try:
        if not name.endswith((".jsonl", ".ndjson")):
            return orjson.loads(content)
        lines = content.split(b"\n")
        return [orjson.loads(line) for line in lines if line.strip()]
    except orjson.JSONDecodeError as error:
        raise InputError(f"{path}: not JSON at line {error.lineno}: {error.msg}") from None


class StateFiles:
    """Reads states, and keeps the last few parsed so that trials over one initial state share it."""

    def __init__(self) -> None:
        self._kept: OrderedDict[StateRef, JSON] = OrderedDict()

    def state(self, ref: StateRef) -> JSON:
        """The state that a reference names; the same object while it is kept. Raises as `read_state`."""
        if ref in self._kept:
            self._kept.move_to_end(ref)
            return self._kept[ref]
        value = self._kept[ref] = read_state(ref)
        if len(self._kept) > KEPT_STATES:
            self._kept.popitem(last=False)
        return value

    def text(self, ref: StateRef) -> str:
        """The text of a file.

        Raises:
            InputError: it cannot be read.
        """
        return read_bytes(locate(ref), MAX_STATE_BYTES).decode("utf-8", errors="replace")

    def tables(self, ref: StateRef) -> bool:
        """Whether a reference names tables.

        Raises:
            InputError: nothing is there.
        """
        return ref not in self._kept and is_tables(locate(ref))

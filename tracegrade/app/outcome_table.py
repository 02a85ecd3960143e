"""Reads outcomes: a table (CSV, JSON, JSON Lines, Parquet; plain, gzip or zstd) or the JSON result of `check`.

The content decides the format, never the name. Every error names the row.
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import orjson

from tracegrade.errors import InputError, Problem, RuleFileError, UsageError, did_you_mean

Row: TypeAlias = dict[str, Any]

MAX_BYTES = 2 * 1024**3
"""Limit on the unpacked size of a table."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with their places, or the one document of a check result.

    Attributes:
        path: as given.
        rows: place ("file:line", or "file: [index]") and values by column.
        columns: all column names, in order of first appearance.
        document: the JSON object when the file is a check result, else None.
    """

    path: str
    rows: tuple[tuple[str, Row], ...] = ()
    columns: tuple[str, ...] = ()
    document: Row | None = None


def parse_pairs(options: Sequence[str] | None, option: str) -> dict[str, str]:
    """NAME=VALUE options as a dict.

    Raises:
        UsageError: one without `=`, or the same name twice.
    """
    pairs: dict[str, str] = {}
    for text in options or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} {text}: expected NAME=VALUE")
        if name in pairs:
            raise UsageError(f"{option} {text}: `{name}` is given twice")
        pairs[name] = value
    return pairs


def read_table(path: str) -> Table:
    """Read a file of outcomes; `-` is standard input.

    Raises:
        InputError: a file that cannot be read or is of no known format.
        RuleFileError: rows that are no objects, with their lines.
    """
    data = _unpacked(path)
    if not data.strip():
        raise InputError(f"{path}: the file is empty; expected a table of outcomes or a check result")
    if data.startswith(b"PAR1"):
        return _parquet(path, data)
    start = data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if start in (b"{", b"["):
        return _json(path, data)
    return _csv(path, data)


def _unpacked(path: str) -> bytes:
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    try:
        if data.startswith(b"\x1f\x8b"):
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
                data = stream.read(MAX_BYTES + 1)
        elif data.startswith(b"\x28\xb5\x2f\xfd"):
            import zstandard

            with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True) as stream:
                data = stream.read(MAX_BYTES + 1)
    except (OSError, EOFError) as error:
        raise InputError(f"{path}: the compressed data are damaged: {error}") from error
    except Exception as error:
        if type(error).__name__ != "ZstdError":
            raise
        raise InputError(f"{path}: the compressed data are damaged: {error}") from error
    if len(data) > MAX_BYTES:
        raise InputError(f"{path}: unpacks to more than {MAX_BYTES} bytes")
    return data


def _columns(rows: Sequence[tuple[str, Row]]) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for _, row in rows:
        names.update(dict.fromkeys(row))
    return tuple(names)


def _parquet(path: str, data: bytes) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(pa.BufferReader(data))
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: not a readable Parquet file: {error}") from error
    rows = tuple((f"{path}: row {i + 1}", row) for i, row in enumerate(table.to_pylist()))
    return Table(path, rows, tuple(table.column_names))


def _json(path: str, data: bytes) -> Table:
    try:
        document = orjson.loads(data.lstrip(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError:
        return _json_lines(path, data)
    if isinstance(document, dict) and str(document.get("schema", "")).startswith("tracegrade/"):
        return Table(path, document=document)
    if isinstance(document, dict) and isinstance(document.get("trials"), list):
        return Table(path, document=document)
    items = document if isinstance(document, list) else [document]
    return _of_objects(path, [(f"{path}: [{i}]", item) for i, item in enumerate(items)])


def _json_lines(path: str, data: bytes) -> Table:
    items: list[tuple[str, Any]] = []
    problems = []
    for number, line in enumerate(data.lstrip(b"\xef\xbb\xbf").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            items.append((f"{path}:{number}", orjson.loads(line)))
        except orjson.JSONDecodeError as error:
            problems.append(Problem(f"{path}:{number}", "", f"no JSON: {error}; expected one object a line"))
    if problems:
        raise RuleFileError(problems[:20])
    return _of_objects(path, items)


def _of_objects(path: str, items: Sequence[tuple[str, Any]]) -> Table:
    wrong = [Problem(where, "", "expected an object of columns") for where, item in items if not isinstance(item, dict)]
    if wrong:
        raise RuleFileError(wrong[:20])
    return Table(path, tuple(items), _columns(items))


def _csv(path: str, data: bytes) -> Table:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: neither JSON, JSON Lines, Parquet nor UTF-8 text (byte {error.start}); expected a table of "
            "outcomes or a check result"
        ) from error
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        header = next(reader, [])
        rows = list(_csv_rows(path, reader, header))
    except csv.Error as error:
        raise InputError(f"{path}:{reader.line_num}: not a readable CSV file: {error}") from error
    if len(header) < 2:
        first = "".join(header)[:40]
        raise InputError(
            f"{path}: a text of one column (`{first}`); expected CSV with the columns task_id, trial, passed"
        )
    doubled = sorted({name for name in header if header.count(name) > 1})
    if doubled:
        raise InputError(f"{path}:1: the column `{doubled[0]}` stands twice in the header")
    return Table(path, tuple(rows), tuple(header))


def _csv_rows(path: str, reader: Iterator[list[str]], header: list[str]) -> Iterator[tuple[str, Row]]:
    line = 2
    for cells in reader:
        here, line = line, reader.line_num + 1  # type: ignore[attr-defined]
        if not cells:
            continue
        if len(cells) != len(header):
            raise InputError(f"{path}:{here}: {len(cells)} cells; expected {len(header)}, as in the header")
        yield f"{path}:{here}", dict(zip(header, cells, strict=True))


@dataclass(frozen=True, slots=True)
class Mapped:
    """A table whose columns have our names.

    Attributes:
        rows: place and values by our name.
        present: our names that the table has.
        other: columns that are not ours, as in the file.
    """

    rows: tuple[tuple[str, Row], ...]
    present: frozenset[str]
    other: tuple[str, ...] = field(default=())


def map_columns(
    table: Table, known: Mapping[str, str], columns: Mapping[str, str], filters: Mapping[str, str]
) -> Mapped:
    """Rename columns and keep the rows that pass the filters.

    Args:
        table: as read.
        known: our names and what they hold; a column of the same name is taken without being asked for, unless its
            text starts with `only when named`.
        columns: our name → column of the file (`--column`).
        filters: column of the file → value as text (`--filter`).

    Raises:
        UsageError: an unknown name of ours, or a column that the file does not have.
    """
    for name in columns:
        if name not in known:
            raise UsageError(f"--column {name}=…: no such name.{did_you_mean(name, known)} Known: {', '.join(known)}.")
    for option, names in (("--column", columns.values()), ("--filter", filters)):
        for name in names:
            if name not in table.columns:
                raise UsageError(
                    f"{option}: {table.path} has no column `{name}`.{did_you_mean(name, table.columns)} "
                    f"Columns: {', '.join(table.columns)}."
                )
    sources = {n: n for n, text in known.items() if n in table.columns and not text.startswith("only when named")}
    sources.update(columns)
    kept = [(w, row) for w, row in table.rows if all(as_text(row.get(n)) == v for n, v in filters.items())]
    if filters and not kept:
        wanted = ", ".join(f"{name}={value}" for name, value in filters.items())
        raise UsageError(f"--filter {wanted}: no row of {table.path} matches.{_values(table, filters)}")
    rows = tuple((where, {name: row.get(column) for name, column in sources.items()}) for where, row in kept)
    taken = set(sources.values())
    return Mapped(rows, frozenset(sources), tuple(name for name in table.columns if name not in taken))


def _values(table: Table, filters: Mapping[str, str]) -> str:
    """The values of the first filtered column, where they are few."""
    name = next(iter(filters))
    values = sorted({as_text(row.get(name)) for _, row in table.rows})
    return f" `{name}` is one of: {', '.join(values)}." if len(values) <= 30 else did_you_mean(filters[name], values)


def as_text(value: Any) -> str:
    """A cell as text: whole floats without a fraction, null as nothing, true and false as JSON writes them.

    >>> as_text(3.0), as_text(None), as_text(True), as_text("x")
    ('3', '', 'true', 'x')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return "" if value != value else str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    return str(value)

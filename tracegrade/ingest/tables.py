"""Tables of a recorded state as Arrow: a folder of CSV or Parquet files, or a SQLite file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from tracegrade.errors import InputError
from tracegrade.outcome.tables import CellKind, TableData

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH: Final = 100_000


def read_tables(path: Path) -> dict[str, TableData]:
    """All tables of a folder of CSV or Parquet files, or of a SQLite file, by name.

    Raises:
        InputError: a file cannot be read, or a folder holds no table.
    """
    if not path.is_dir():
        return _sqlite_tables(path)
    tables: dict[str, TableData] = {}
    for file in sorted(path.iterdir()):
        if file.suffix.lower() in (".csv", ".parquet"):
            if file.stem in tables:
                raise InputError(f"{path}: two files hold the table `{file.stem}`")
            tables[file.stem] = _csv_table(file) if file.suffix.lower() == ".csv" else _parquet_table(file)
    if not tables:
        raise InputError(f"{path}: no table: expected files ending in .csv or .parquet")
    return tables


def parquet_rows(content: bytes, path: Path) -> list[dict[str, Any]]:
    """The rows of a Parquet file in memory, one dict each.

    Raises:
        InputError: it cannot be read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows: list[dict[str, Any]] = pq.read_table(pa.BufferReader(content)).to_pylist()
    except pa.ArrowException as error:
        raise InputError(f"{path}: cannot be read as Parquet: {error}") from None
    return rows


def _parquet_table(path: Path) -> TableData:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: cannot be read as Parquet: {error}") from None
    return TableData(rows, (), dict.fromkeys(rows.column_names, "plain"))


def _csv_table(path: Path) -> TableData:
    import pyarrow as pa
    import pyarrow.csv as pc

    try:
        with path.open("rb") as file:
            names = pc.open_csv(file).schema.names
        as_text = pc.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        rows = pc.read_csv(path, convert_options=as_text)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: cannot be read as CSV: {error}") from None
    return TableData(rows, (), dict.fromkeys(names, "text"))


def _sqlite_tables(path: Path) -> dict[str, TableData]:
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            connection.text_factory = lambda raw: raw.decode("utf-8", errors="replace")
            listed = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, 7) <> 'sqlite_' ORDER BY name"
            )
            return {name: _sqlite_table(connection, name) for (name,) in listed.fetchall()}
    except sqlite3.Error as error:
        raise InputError(f"{path}: cannot be read as SQLite: {error}") from None


def _sqlite_table(connection: sqlite3.Connection, name: str) -> TableData:
    import pyarrow as pa

    quoted = '"' + name.replace('"', '""') + '"'
    columns = connection.execute(f"PRAGMA table_info({quoted})").fetchall()
    names = [column[1] for column in columns]
    keys = tuple(c[1] for c in sorted((c for c in columns if c[5]), key=lambda c: c[5]))
    chunks: list[list[tuple[Any, ...]]] = [[] for _ in names]
    cursor = connection.execute(f"SELECT * FROM {quoted}")
    while batch := cursor.fetchmany(_BATCH):
        for values, chunk in zip(zip(*batch, strict=True), chunks, strict=True):
            chunk.append(values)
    arrays, kinds = {}, {}
    for column, chunk in zip(names, chunks, strict=True):
        arrays[column], kinds[column] = _column(chunk)
    rows = pa.table(arrays) if names else pa.table({})
    return TableData(rows, keys, kinds)


def _column(chunks: list[tuple[Any, ...]]) -> tuple[pa.ChunkedArray, CellKind]:
    """A column of one type as it is; SQLite lets each cell have its own, and a mixed column becomes JSON texts."""
    import pyarrow as pa

    types = set().union(*(map(type, chunk) for chunk in chunks)) - {type(None)}
    if len(types) <= 1 and bytes not in types:
        kind = {int: pa.int64(), float: pa.float64()}.get(next(iter(types), str), pa.string())
        return pa.chunked_array([pa.array(chunk, kind) for chunk in chunks], kind), "plain"
    texts = [pa.array([_json_text(value) for value in chunk], pa.string()) for chunk in chunks]
    return pa.chunked_array(texts, pa.string()), "json"


def _json_text(value: Any) -> str | None:
    if value is None:
        return None
    return orjson.dumps(f"0x{value.hex()}" if isinstance(value, bytes) else value).decode()

"""A copy of a DuckDB file with other values in it, and nothing of the old file's pages."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracegrade.errors import InputError
from tracegrade.model.values import JSON
from tracegrade.store.compare import primary_key
from tracegrade.store.queries import quoted

if TYPE_CHECKING:
    import duckdb

Row = dict[str, JSON]


def rewrite_duckdb(path: Path, change: Callable[[Row], Row]) -> bytes:
    """The bytes of a new database with the tables of the old, each row passed through a function.

    Keys stay, and so does a column in which nothing changed. A column with a changed value becomes text, or JSON where
    it was nested. Views and indexes are left out.

    Args:
        path: a DuckDB file.
        change: takes and gives the cells of a row by column, as JSON values.

    Raises:
        InputError: it cannot be read.
    """
    import duckdb

    with tempfile.TemporaryDirectory(prefix="tracegrade-") as folder:
        target = Path(folder) / "new.duckdb"
        try:
            with duckdb.connect(str(path), read_only=True) as old, duckdb.connect(str(target)) as new:
                for connection in (old, new):
                    connection.execute("SET enable_external_access = false")
                listed = old.execute(
                    "SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT internal ORDER BY ALL"
                ).fetchall()
                for schema, name in listed:
                    _table(old, new, schema, name, change)
        except duckdb.Error as error:
            raise InputError(f"{path}: cannot be read as a DuckDB database: {str(error).splitlines()[0]}") from None
        return target.read_bytes()


def _table(
    old: duckdb.DuckDBPyConnection,
    new: duckdb.DuckDBPyConnection,
    schema: str,
    name: str,
    change: Callable[[Row], Row],
) -> None:
    whole = f"{quoted(schema)}.{quoted(name)}"
    described = old.execute(
        "SELECT column_name, data_type FROM duckdb_columns() WHERE schema_name = ? AND table_name = ? "
        "ORDER BY column_index",
        [schema, name],
    ).fetchall()
    columns = [column for column, _ in described]
    types = dict(described)
    cells = [list(row) for row in old.execute(f"SELECT * FROM {whole}").fetchall()]
    rows = [[_json(v) for v in row] for row in cells]
    changed = [list(change(dict(zip(columns, row, strict=True))).values()) for row in rows]
    for i, column in enumerate(columns):
        if all(a[i] == b[i] for a, b in zip(rows, changed, strict=True)):
            continue
        nested = types[column].endswith("]") or types[column].startswith(("STRUCT", "MAP", "UNION"))
        types[column] = "JSON" if nested else "VARCHAR"
        for cell, new_row in zip(cells, changed, strict=True):
            cell[i] = json.dumps(new_row[i]) if nested and new_row[i] is not None else new_row[i]
    key = primary_key(old, schema, name)
    parts = [f"{quoted(column)} {types[column]}" for column in columns]
    if key:
        parts.append(f"PRIMARY KEY ({', '.join(map(quoted, key))})")
    new.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)}")
    new.execute(f"CREATE TABLE {whole} ({', '.join(parts)})")
    if cells:
        marks = ", ".join("?" for _ in columns)
        new.executemany(f"INSERT INTO {whole} VALUES ({marks})", cells)


def _json(value: Any) -> JSON:
    """A cell as a JSON value; times, decimals, ids and bytes as their text."""
    if isinstance(value, dict):
        return {str(k): _json(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json(v) for v in value]
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "replace")
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)

"""Arrow tables into DuckDB tables, column by column name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tracegrade.errors import StoreError
from tracegrade.store.queries import quoted

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


def insert_arrow(
    connection: duckdb.DuckDBPyConnection, table: str, rows: pa.Table, extra: Mapping[str, str] | None = None
) -> None:
    """Insert rows; columns that they do not have get the table's defaults.

    The rows are read where they are and given up when the statement ends. (A registered view would hold them until the
    transaction ends, and with them everything that was loaded.)

    Args:
        connection: where to.
        table: a table's name.
        rows: columns by name.
        extra: further columns, as SQL over those of `rows`.

    Raises:
        StoreError: a column is none of the table's.
    """
    extra = extra or {}
    columns = connection.execute(
        "SELECT column_name, column_default FROM duckdb_columns() WHERE table_name = $table ORDER BY column_index",
        {"table": table},
    ).fetchall()
    unknown = {*rows.column_names, *extra} - {name for name, _ in columns}
    if unknown:
        raise StoreError(f"`{table}` has no column {', '.join(f'`{name}`' for name in sorted(unknown))}")
    values = []
    for name, default in columns:
        value = extra.get(name) or (quoted(name) if name in rows.column_names else default or "NULL")
        values.append(f"{value} AS {quoted(name)}")
    connection.from_arrow(rows).project(", ".join(values)).insert_into(table)

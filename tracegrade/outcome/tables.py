"""What a table of a recorded state is, wherever it was read from, and its cells as JSON values."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import orjson

from tracegrade.model.values import JSON

CellKind: TypeAlias = Literal["plain", "text", "json"]


class Columns(Protocol):
    """What is used of an Arrow table: its columns by name, in order."""

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""

    def rename_columns(self, names: list[str]) -> Any:
        """The same table under other names."""


@dataclass(frozen=True, slots=True)
class TableData:
    """One table.

    Attributes:
        rows: the data as Arrow.
        keys: columns of its primary key, empty where it declares none.
        kinds: column → how its cells are written: `plain` (Arrow's own type), `text` (of a file without types: a cell
            that reads as a number is one), `json` (of a column with mixed types).
    """

    rows: Columns
    keys: tuple[str, ...]
    kinds: Mapping[str, CellKind]


def cells(values: Iterable[Any], kind: CellKind) -> Iterator[JSON]:
    """The values of a column as JSON.

    >>> list(cells(["12", "-0.5", "007", "", None], "text"))
    [12, -0.5, '007', '', None]
    """
    if kind == "json":
        return (None if v is None else orjson.loads(v) for v in values)
    return (_from_text(v) for v in values) if kind == "text" else (_plain(v) for v in values)


def _from_text(cell: str | None) -> JSON:
    """A number where the cell is written as JSON writes one, else the text: "007" is no number."""
    if cell is None or not cell or cell[0] not in "-0123456789":
        return cell
    try:
        value = orjson.loads(cell)
    except orjson.JSONDecodeError:
        return cell
    return value if isinstance(value, (int, float)) else cell


def _plain(value: Any) -> JSON:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, (datetime.date, datetime.time, datetime.datetime)):
        return value.isoformat()
    return str(value)

"""Rows of a query as a table of text or as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any

from tracegrade.model.values import JSON
from tracegrade.report.escape import printable
from tracegrade.report.json import json_document

MAX_CELL = 80
"""Longest cell of a table, in characters; what is longer ends in an ellipsis."""


def render_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """The rows under their column names, numbers to the right, with their count below.

    >>> print(render_table(["tool", "calls"], [("get_order", 2), (None, 10)]), end="")
    tool       calls
    ---------  -----
    get_order      2
    null          10
    2 rows
    """
    body = list(rows)
    cells = [[_cell(value) for value in row] for row in body]
    head = [printable(name) for name in columns]
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    right = [bool(body) and all(_is_number(row[place]) for row in body) for place in range(len(head))]
    lines = [head, ["-" * width for width in widths], *cells]
    texts = [_line(line, widths, right) for line in lines]
    return "\n".join([*texts, f"{len(body)} row{'s' * (len(body) != 1)}"]) + "\n"


def render_json(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """The rows as a JSON array of objects; what JSON has no type for is text."""
    return json_document([dict(zip(columns, map(_json, row), strict=True)) for row in rows])


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = (
        cell.rjust(width) if to_right else cell.ljust(width)
        for cell, width, to_right in zip(cells, widths, right, strict=True)
    )
    return "  ".join(padded).rstrip()


def _cell(value: Any) -> str:
    text = "null" if value is None else printable(str(value))
    return text if len(text) <= MAX_CELL else text[: MAX_CELL - 1] + "…"


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def _json(value: Any) -> JSON:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict):
        return {str(key): _json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json(item) for item in value]
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return value.hex() if isinstance(value, bytes) else str(value)

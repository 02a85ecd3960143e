"""Lists of records as tables: {key: record}, so that one changed record is one difference, whatever the order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracegrade.model.values import JSON, MISSING
from tracegrade.outcome.patch import get
from tracegrade.outcome.paths import Path, parse_glob, show


class KeysError(Exception):
    """The records cannot be told apart by the given key columns."""


def keyed(state: JSON, keys: Mapping[str, Sequence[str]]) -> JSON:
    """The state with the named lists turned into objects, one level for each key column.

    Args:
        state: any JSON; unchanged, and shared where nothing is turned.
        keys: path of a list → its key columns.

    Raises:
        KeysError: a record lacks a key column, or two records have one key.

    >>> keyed({"orders": [{"id": 7, "n": 1}]}, {"orders": ["id"]})
    {'orders': {'7': {'id': 7, 'n': 1}}}
    """
    for text, columns in keys.items():
        path = parse_glob("" if text == "." else text)
        rows = get(state, path)
        if isinstance(rows, list):
            state = _put(state, path, _table(rows, columns, path))
    return state


def _put(node: JSON, path: Path, value: JSON) -> JSON:
    if not path:
        return value
    if isinstance(node, dict):
        return {**node, path[0]: _put(node[path[0]], path[1:], value)}
    index = int(path[0])
    return [*node[:index], _put(node[index], path[1:], value), *node[index + 1 :]]


def _table(rows: list[JSON], columns: Sequence[str], path: Path) -> dict[str, JSON]:
    table: dict[str, JSON] = {}
    for number, row in enumerate(rows):
        node = table
        parts = [row.get(c, MISSING) if isinstance(row, dict) else MISSING for c in columns]
        if any(p is MISSING or isinstance(p, (dict, list)) for p in parts):
            raise KeysError(
                f"{show(path)}: record {number} has no plain value in each key column ({', '.join(columns)})"
            )
        texts = ["null" if p is None else str(p).lower() if isinstance(p, bool) else str(p) for p in parts]
        for part in texts[:-1]:
            node = node.setdefault(part, {})
        if texts[-1] in node:
            raise KeysError(f"{show(path)}: two records have the key {', '.join(texts)}")
        node[texts[-1]] = row
    return table

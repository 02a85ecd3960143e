"""Parquet: which columns a format has, and its rows as plain values.

A format of Parquet files never sees Arrow: it gets rows as dictionaries in which every timestamp is an integer of Unix
nanoseconds, every map a list of pairs and every binary column text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from tracegrade.ingest.base import Sink
from tracegrade.model.values import JSON

if TYPE_CHECKING:
    import pyarrow as pa

Row: TypeAlias = dict[str, JSON]


@dataclass(frozen=True, slots=True)
class ParquetFormat:
    """A format whose spans are rows of a table.

    Attributes:
        name: as printed by `inspect`, such as `phoenix-parquet`.
        matches: whether a table with these column names has this format; no two formats may claim one.
        convert: reads rows into the sink; the number is how many rows of the file stand before them. Bad rows go to
            `sink.skip`.
        expected: what the format looks like, for the message when nothing is recognised.
    """

    name: str
    matches: Callable[[frozenset[str]], bool]
    convert: Callable[[Sequence[Row], Sink, int], None]
    expected: str


def plain_rows(batch: pa.RecordBatch) -> list[Row]:
    """The rows of an Arrow record batch as plain values (see the module).

    Raises:
        ArrowInvalid: a timestamp does not fit 64-bit nanoseconds.
    """
    names = batch.schema.names
    columns = [_plain_column(batch.column(i)) for i in range(batch.num_columns)]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def _plain_column(column: Any) -> list[JSON]:
    import pyarrow as pa

    found = column.type
    nanos = _with_timestamps(found, pa.timestamp("ns"))
    if nanos != found:
        column = column.cast(nanos).cast(_with_timestamps(nanos, pa.int64()))
    values: list[JSON] = column.to_pylist()
    return [_text_of_bytes(v) for v in values] if _has_binary(found) else values


def _with_timestamps(found: Any, replacement: Any) -> Any:
    """A type with every timestamp inside it replaced; a time zone is dropped, since values are UTC in Arrow."""
    import pyarrow as pa

    types = pa.types
    if types.is_timestamp(found):
        return replacement
    if types.is_dictionary(found):
        return _with_timestamps(found.value_type, replacement)
    if types.is_map(found):
        return pa.map_(found.key_type, _with_timestamps(found.item_type, replacement))
    if types.is_list(found) or types.is_large_list(found) or types.is_fixed_size_list(found):
        inner = _with_timestamps(found.value_type, replacement)
        return found if inner == found.value_type else pa.list_(inner)
    if types.is_struct(found):
        return pa.struct([pa.field(f.name, _with_timestamps(f.type, replacement)) for f in found])
    return found


def _has_binary(found: Any) -> bool:
    return any(_is_binary(inner) for inner in _leaves(found))


def _leaves(found: Any) -> Iterator[Any]:
    if found.num_fields:
        for index in range(found.num_fields):
            yield from _leaves(found.field(index).type)
    else:
        yield getattr(found, "value_type", found)


def _is_binary(found: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_binary(found) or pa.types.is_large_binary(found) or pa.types.is_fixed_size_binary(found))


def _text_of_bytes(value: JSON) -> JSON:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, dict):
        return {k: _text_of_bytes(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_text_of_bytes(v) for v in value]
    return value

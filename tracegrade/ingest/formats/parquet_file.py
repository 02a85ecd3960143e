"""A Parquet file of spans: which format its columns have, and its rows in bounded batches.

Parquet is read from its end, so the input is put into a temporary file first: in memory while it is small, on disk
beyond that.
"""

from __future__ import annotations

import shutil
import tempfile
from typing import TYPE_CHECKING, Final, Protocol

from tracegrade.errors import InputError
from tracegrade.ingest.base import Sink
from tracegrade.ingest.formats.columns import ParquetFormat, plain_rows

if TYPE_CHECKING:
    import pyarrow as pa

_IN_MEMORY: Final = 32 * 1024 * 1024
_BATCH_ROWS: Final = 2_000


class _Readable(Protocol):
    def read(self, size: int = -1, /) -> bytes:
        """The next bytes, empty at the end."""


def read_parquet(stream: _Readable, sink: Sink, path: str, formats: tuple[ParquetFormat, ...]) -> str:
    """Read the spans of a Parquet file.

    Args:
        stream: the file's bytes from its start.
        sink: takes spans, log records, and the rows that cannot be read.
        path: the file's name, for messages.
        formats: the formats that may own it.

    Returns:
        The name of the format.

    Raises:
        InputError: no format has these columns, or the file is broken.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as copy:
        shutil.copyfileobj(stream, copy, 1024 * 1024)
        copy.seek(0)
        try:
            file = pq.ParquetFile(copy)
            names = file.schema_arrow.names
            found = next((f for f in formats if f.matches(frozenset(names))), None)
            if found is None:
                listed = ", ".join(f"`{n[:40]}`" for n in names[:8]) or "none"
                wanted = "; ".join(f.expected for f in formats)
                raise InputError(f"{path}: no known format: found Parquet with the columns {listed}; expected {wanted}")
            row = 0
            for batch in file.iter_batches(_BATCH_ROWS):
                _convert(batch, row, found, sink)
                row += batch.num_rows
        except (pa.ArrowException, OSError, ValueError) as error:
            reason = str(error).partition("\n")[0]
            raise InputError(f"{path}: the Parquet file is cut or broken: {reason}") from error
    return found.name


def _convert(batch: pa.RecordBatch, first_row: int, found: ParquetFormat, sink: Sink) -> None:
    """One batch at a time, and row by row where a value of it does not fit."""
    import pyarrow as pa

    try:
        rows = plain_rows(batch)
    except (pa.ArrowException, ValueError, OverflowError):
        if batch.num_rows > 1:
            for index in range(batch.num_rows):
                _convert(batch.slice(index, 1), first_row + index, found, sink)
            return
        sink.skip(f"row {first_row + 1}", "holds a time or a value that cannot be read")
        return
    found.convert(rows, sink, first_row)

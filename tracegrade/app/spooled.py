"""The reports of a run, trajectory by trajectory: the first thousands in memory, the others in a temporary file."""

from __future__ import annotations

import os
import pickle
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Final, overload

from tracegrade.model.report import TrajectoryReport

_CHUNK: Final = 512
_HELD_CHUNKS: Final = 8
_OPEN_CHUNKS: Final = 4

Change = Callable[[TrajectoryReport], TrajectoryReport]


class Spooled(Sequence[TrajectoryReport]):
    """Takes reports in any order and gives them in order of time, then id, as often as asked.

    A report holds evidence, so that those of a large file do not fit into memory. They are read back in chunks, and
    what was written is seen by nobody else: the file has no name.

    Args:
        held_chunks: chunks of 512 reports that stay in memory.
    """

    def __init__(self, held_chunks: int = _HELD_CHUNKS) -> None:
        self._held_chunks = held_chunks
        self._held: list[list[TrajectoryReport]] = []
        self._filling: list[TrajectoryReport] = []
        self._file = tempfile.TemporaryFile(prefix="tracegrade-")  # noqa: SIM115 - closed with this object
        weakref.finalize(self, self._file.close)
        self._offsets: list[int] = []
        self._open: dict[int, list[TrajectoryReport]] = {}
        self._keys: list[tuple[int, str, int]] = []
        self._sorted = True
        self._change: Change | None = None

    def append(self, report: TrajectoryReport) -> None:
        """Take one report."""
        key = (report.start_ns or 0, report.trajectory_id, len(self._keys))
        self._sorted = self._sorted and (not self._keys or self._keys[-1] <= key)
        self._keys.append(key)
        self._filling.append(report)
        if len(self._filling) == _CHUNK:
            if len(self._held) < self._held_chunks:
                self._held.append(self._filling)
            else:
                self._write(self._filling)
            self._filling = []

    def change(self, change: Change) -> None:
        """Give every report as `change` makes it, from now on."""
        self._change = change

    def __len__(self) -> int:
        return len(self._keys)

    @overload
    def __getitem__(self, index: int) -> TrajectoryReport: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[TrajectoryReport]: ...
    def __getitem__(self, index: int | slice) -> TrajectoryReport | Sequence[TrajectoryReport]:
        self._sort()
        found = self._keys[index]
        return [self._at(key[2]) for key in found] if isinstance(found, list) else self._at(found[2])

    def __iter__(self) -> Iterator[TrajectoryReport]:
        self._sort()
        for _, _, place in self._keys:
            yield self._at(place)

    def _sort(self) -> None:
        if not self._sorted:
            self._keys.sort()
            self._sorted = True

    def _write(self, chunk: list[TrajectoryReport]) -> None:
        self._offsets.append(self._file.seek(0, os.SEEK_END))
        pickle.dump(chunk, self._file, protocol=pickle.HIGHEST_PROTOCOL)

    def _at(self, place: int) -> TrajectoryReport:
        number, within = divmod(place, _CHUNK)
        if number < len(self._held):
            report = self._held[number][within]
        elif number < len(self._held) + len(self._offsets):
            report = self._read(number - len(self._held))[within]
        else:
            report = self._filling[within]
        return self._change(report) if self._change is not None else report

    def _read(self, number: int) -> list[TrajectoryReport]:
        """A chunk from the file; the last few stay open, since two runs of time may be merged."""
        chunk: list[TrajectoryReport] | None = self._open.pop(number, None)
        if chunk is None:
            self._file.seek(self._offsets[number])
            chunk = pickle.load(self._file)  # noqa: S301 - our own bytes, in a file without a name
            while len(self._open) >= _OPEN_CHUNKS:
                del self._open[next(iter(self._open))]
        self._open[number] = chunk
        return chunk

"""Bytes that are held in memory while they are few, and in a temporary file beyond that."""

from __future__ import annotations

import mmap
import tempfile
from typing import IO, TypeAlias

Buffer: TypeAlias = bytes | mmap.mmap


class Spool:
    """Takes pieces one after another and gives them back as one buffer. Has to be closed.

    Args:
        in_memory: bytes up to which no file is made.

    Attributes:
        size: bytes taken so far.
    """

    def __init__(self, in_memory: int) -> None:
        self._in_memory = in_memory
        self._pieces: list[bytes] = []
        self._file: IO[bytes] | None = None
        self._view: mmap.mmap | None = None
        self.size = 0

    @property
    def on_disk(self) -> bool:
        """Whether the bytes went to a file."""
        return self._file is not None

    def add(self, piece: bytes) -> None:
        """Take the next bytes."""
        self.size += len(piece)
        if self._file is None and self.size > self._in_memory:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115
            self._file.writelines(self._pieces)
            self._pieces.clear()
        if self._file is not None:
            self._file.write(piece)
        else:
            self._pieces.append(piece)

    def view(self) -> Buffer:
        """All bytes: a mapped file where there are many."""
        if self._file is None:
            return b"".join(self._pieces)
        if self._view is None:
            self._file.flush()
            self._view = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        return self._view

    def close(self) -> None:
        """Give the memory and the file back."""
        self._pieces.clear()
        if self._view is not None:
            self._view.close()
        if self._file is not None:
            self._file.close()


def forget(buffer: Buffer) -> None:
    """Tell the system that the pages read so far need not stay in memory: they can be read again."""
    if isinstance(buffer, mmap.mmap):
        buffer.madvise(mmap.MADV_DONTNEED)

"""Appends requests to files, whole or not at all."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from tracegrade.errors import InputError
from tracegrade.ingest.receive.requests import Export


class Recorder:
    """Takes requests from several threads. A request that was acknowledged is in every file.

    Args:
        paths: files of OTLP/JSON lines; they are made, or appended to.

    Raises:
        InputError: a file cannot be opened.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._lock = threading.Lock()
        self._files: list[BinaryIO] = []
        self.accepted: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()
        self.requests = 0
        self.refused = 0
        for path in paths:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                file = path.open("ab+")
            except OSError as error:
                self.close()
                raise InputError(f"`{path}`: cannot be written: {error.strerror or error}") from error
            self._files.append(file)
            _end_last_line(file)

    def add(self, export: Export) -> None:
        """Append one request to every file.

        Raises:
            OSError: a file could not be written; none holds the request then.
        """
        with self._lock:
            if export.line:
                self._append(export.line)
            self.requests += 1
            self.accepted[export.signal] += export.accepted
            self.rejected[export.signal] += export.rejected

    def refuse(self) -> None:
        """Count a request that could not be decoded."""
        with self._lock:
            self.refused += 1

    def _append(self, line: bytes) -> None:
        sizes = [os.fstat(f.fileno()).st_size for f in self._files]
        try:
            for file in self._files:
                file.write(line)
                file.flush()
        except OSError:
            for file, size in zip(self._files, sizes, strict=True):
                os.ftruncate(file.fileno(), size)
            raise

    def close(self) -> None:
        """Bring everything to the disk."""
        with self._lock:
            for file in self._files:
                file.flush()
                os.fsync(file.fileno())
                file.close()
            self._files.clear()


def _end_last_line(file: BinaryIO) -> None:
    """A file whose last line was cut must not swallow the next one."""
    file.seek(0, os.SEEK_END)
    if file.tell() == 0:
        return
    file.seek(-1, os.SEEK_END)
    if file.read(1) != b"\n":
        file.write(b"\n")
        file.flush()

"""What one load read, left out and found twice: plain records without I/O."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that was left out, or taken with a loss.

    Attributes:
        where: the place inside the file, such as `line 3` or `byte 4096`.
        id: the span's id where one could be read, else None.
        reason: what was wrong and what was expected.
        count: how many items this stands for (1, or more where a long list was folded).
    """

    where: str
    id: str | None
    reason: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Conflict:
    """One span id with different contents. The copy that is kept does not depend on the order of reading.

    Kept is the copy that ended, then the one of the finer clock, then the longer, then the smaller digest.
    `versions` counts the different contents that were compared.
    """

    trace_id: str
    span_id: str
    versions: int


@dataclass(slots=True)
class InputReport:
    """What was found in one input.

    Attributes:
        path: as found; `-` for standard input.
        format: such as `otlp-proto`, `otlp-json`, `jaeger-json`; empty when nothing was recognised.
        framing: `document`, `lines`, `concatenated`, `array`, `bare`, `length-prefixed`, `varint-delimited` or empty.
        compression: `gzip`, `zstd` or empty; `zstd-frames` and `gzip-frames` where each message is compressed.
        signals: number of items by signal: `traces`, `logs`, `metrics`, `profiles`.
        spans_read: spans as found, copies included.
        spans_distinct: spans that were not yet in the store.
        duplicates_dropped: identical copies of a span seen before.
        conflicting: spans of a known id with other content.
        log_records: log records as found, copies included.
        skipped: what could not be read.
        warnings: what was read with a loss, such as a value that was cut.
        error: why the file could not be read at all, None if it could.
        sha256: digest of the bytes as stored on disk, empty unless it was asked for.
        size: number of those bytes.
    """

    path: str
    format: str = ""
    framing: str = ""
    compression: str = ""
    signals: dict[str, int] = field(default_factory=dict)
    spans_read: int = 0
    spans_distinct: int = 0
    duplicates_dropped: int = 0
    conflicting: int = 0
    log_records: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    warnings: list[Skipped] = field(default_factory=list)
    error: str | None = None
    sha256: str = ""
    size: int = 0


@dataclass(slots=True)
class LoadReport:
    """What one load did, input by input in the order of their paths."""

    inputs: list[InputReport] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    conflicts_total: int = 0
    cut_traces: list[Skipped] = field(default_factory=list)

    @property
    def spans_read(self) -> int:
        """Spans as found in all inputs, copies included."""
        return sum(i.spans_read for i in self.inputs)

    @property
    def spans_distinct(self) -> int:
        """Spans that this load added."""
        return sum(i.spans_distinct for i in self.inputs)

    @property
    def duplicates_dropped(self) -> int:
        """Identical copies that were dropped."""
        return sum(i.duplicates_dropped for i in self.inputs)

    @property
    def log_records(self) -> int:
        """Log records as found, copies included."""
        return sum(i.log_records for i in self.inputs)

    @property
    def skipped(self) -> int:
        """Number of items that could not be read."""
        return sum(s.count for i in self.inputs for s in i.skipped)

    @property
    def errors(self) -> list[str]:
        """One message for each input that could not be read at all."""
        return [i.error for i in self.inputs if i.error is not None]

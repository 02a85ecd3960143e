"""What every reader of spans speaks: a sink that takes spans, log records and the reasons for what was left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tracegrade.model.span import LogRecord, Span
from tracegrade.model.values import JSON


class Sink(Protocol):
    """Takes what a reader finds, one item at a time, and never raises for a bad one."""

    def span(self, span: Span, where: str) -> None:
        """Take one span; `where` is the line, byte offset or path inside the file that it came from."""

    def log(self, record: LogRecord, where: str) -> None:
        """Take one log record."""

    def skip(self, where: str, reason: str, span_id: str | None = None) -> None:
        """Report one item that could not be read: it costs only itself."""

    def signal(self, name: str, count: int) -> None:
        """Count items of a signal that is not graded (`metrics`, `profiles`)."""


@dataclass(frozen=True, slots=True)
class DocumentFormat:
    """A format made of JSON documents (one, an array of them, concatenated, or one a line).

    Attributes:
        name: as printed by `inspect`, such as `jaeger-json`.
        matches: whether one parsed document has this format's shape; so exact that no two formats claim one document.
        convert: reads one document into the sink; `where` locates the document in its file. Bad items go to
            `sink.skip`.
        expected: what the format looks like, for the message when nothing is recognised.
    """

    name: str
    matches: Callable[[JSON], bool]
    convert: Callable[[JSON, Sink, str], None]
    expected: str

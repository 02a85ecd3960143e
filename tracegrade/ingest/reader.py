"""One input → rows and a report: unpack, recognise, decode."""

from __future__ import annotations

from tracegrade.errors import InputError
from tracegrade.ingest import json_text, otlp_json
from tracegrade.ingest.base import DocumentFormat
from tracegrade.ingest.intake import Emit, Intake
from tracegrade.ingest.options import ReadOptions
from tracegrade.ingest.otlp_json import JsonDecoder, otlp_shape
from tracegrade.ingest.otlp_json_fast import FastJsonDecoder
from tracegrade.ingest.proto_file import read_bare, read_framed
from tracegrade.ingest.sniff import HEAD_BYTES, Content, content_of
from tracegrade.ingest.sources import opened
from tracegrade.ingest.unpack import Unpacked
from tracegrade.model.load import InputReport
from tracegrade.model.values import JSON

_EXPECTED_OTHER = "OTLP protobuf (bare, length-prefixed or varint-delimited), gzip or zstd of any of these"


def read_input(path: str, options: ReadOptions, emit: Emit, digest: bool = False) -> InputReport:
    """Read one file, or `-` for standard input.

    Args:
        path: the file.
        options: limits and strictness.
        emit: takes tables of rows (`origins`, `spans`, `logs`), in bounded windows.
        digest: whether the report holds the SHA-256 of the file.

    Returns:
        What was read and what was left out. `error` is set where the file as a whole cannot be read.

    Raises:
        InputError: in strict mode, at the first item that cannot be read.
    """
    report = InputReport(path)
    intake = Intake(report, options, emit)
    try:
        with opened(path) as raw:
            stream = Unpacked(raw, path, options, intake.skip, digest)
            report.compression = stream.compression
            try:
                _read(stream, intake, options)
            finally:
                intake.flush()
            stream.drain()
            report.sha256, report.size = stream.sha256, stream.packed
    except InputError as error:
        if options.strict:
            raise
        report.error = str(error)
    except OSError as error:
        report.error = f"{path}: cannot be read: {error.strerror}"
    return report


def _read(stream: Unpacked, intake: Intake, options: ReadOptions) -> None:
    head = stream.peek(HEAD_BYTES)
    content = content_of(head, len(head) < HEAD_BYTES)
    report = intake.report
    if content.kind == "empty":
        return
    if content.kind == "json":
        _read_json(stream, intake, options)
    elif content.kind == "proto":
        _read_proto(stream, content, intake, options)
    elif content.kind == "parquet":
        from tracegrade.ingest.formats import PARQUET_FORMATS
        from tracegrade.ingest.formats.parquet_file import read_parquet

        report.format = read_parquet(stream, intake, report.path, PARQUET_FORMATS)
    else:
        raise InputError(f"{report.path}: no known format: found {content.found}; expected {expected()}")


def _read_proto(stream: Unpacked, content: Content, intake: Intake, options: ReadOptions) -> None:
    report = intake.report
    report.framing = content.framing
    if content.framing == "bare":
        report.format = "otlp-proto"
        read_bare(stream, intake, options)
        return
    documents = _Documents(intake, options)
    held = read_framed(stream, content.framing, intake, options, documents.take_text)
    kind, _, packed = held.partition("+")
    report.format = "otlp-proto" if kind != "json" else documents.format or "otlp-json"
    if packed:
        report.compression = f"{packed}-frames"
    documents.finish()


def _read_json(stream: Unpacked, intake: Intake, options: ReadOptions) -> None:
    documents = _Documents(intake, options)
    first, n_documents, last = "", 0, ""
    for document, where, framing in json_text.documents(stream, intake, options, documents.take_fast):
        documents.take(document, where)
        if where != last:  # parts of one large document have one place
            last = where
            n_documents += 1
            first = first or ("array" if isinstance(document, list) else framing)
    alone = n_documents == 1 and (first == "document" or (first != "array" and not intake.report.skipped))
    intake.report.framing = "document" if alone else _PLURAL.get(first, first)
    documents.finish()


_PLURAL = {"document": "concatenated"}


class _Documents:
    """Gives each document to the reader that knows its shape, and remembers what nobody knew."""

    def __init__(self, intake: Intake, options: ReadOptions) -> None:
        self._intake = intake
        self._otlp = JsonDecoder(intake, options)
        self._fast = FastJsonDecoder(intake, options, self._otlp)
        self._unknown: list[tuple[str, str]] = []
        self._n_unknown = 0
        self._formats = foreign_formats()
        self.format = ""

    def take_fast(self, text: bytes, where: str) -> bool:
        """Take the text of a document of the usual shape; whether it was one."""
        return self._fast.take(text, where)

    def take_text(self, text: bytes, where: str) -> None:
        """Take the text of one or more documents."""
        try:
            self.take(json_text.parse(text), where)
        except json_text.Broken as error:
            self._intake.skip(where, str(error))

    def take(self, document: JSON, where: str) -> None:
        """Take one document; an array of documents is taken item by item."""
        if document is json_text.TAKEN:
            self.format = self.format or "otlp-json"
            return
        shape = otlp_shape(document)
        if shape is not None:
            self.format = self.format or "otlp-json"
            self._otlp.document(document, shape, where)
            return
        for found in self._formats:
            if found.matches(document):
                self.format = self.format or found.name
                found.convert(document, self._intake, where)
                return
        if isinstance(document, list):
            self.format = self.format or ("otlp-json" if not document else "")
            for number, item in enumerate(document, 1):
                self.take(item, f"{where}, item {number}")
            return
        self._n_unknown += 1
        if len(self._unknown) < 200:
            self._unknown.append((where, json_text.describe(document)))

    def finish(self) -> None:
        """Report what nobody knew.

        Raises:
            InputError: nothing at all was known.
        """
        report = self._intake.report
        report.format = report.format or self.format
        if self.format:
            for where, what in self._unknown:
                self._intake.skip(where, f"{what} is no part of a known format")
            return
        if self._unknown:
            where, what = self._unknown[0]
            raise InputError(f"{report.path}: {where}: no known format: found {what}; expected {expected()}")
        if report.skipped:
            first = report.skipped[0]
            raise InputError(
                f"{report.path}: {first.where}: no document could be read: {first.reason}; expected {expected()}"
            )


def foreign_formats() -> tuple[DocumentFormat, ...]:
    """The formats of other backends that are made of JSON documents."""
    from tracegrade.ingest.formats import FORMATS

    return FORMATS


def expected() -> str:
    """What can be read, for a message."""
    return "; ".join([otlp_json.EXPECTED, _EXPECTED_OTHER, *(f.expected for f in foreign_formats())])

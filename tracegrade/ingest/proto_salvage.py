"""Messages that are damaged, cut, or too large to be parsed at once: record by record, each by itself.

Every span and log record that is whole is taken; the others are reported with their place.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from google.protobuf.message import DecodeError

from tracegrade.ingest import thin, wire
from tracegrade.ingest.ids import bytes_id
from tracegrade.ingest.options import MIB
from tracegrade.ingest.otlp_proto import ProtoDecoder
from tracegrade.ingest.spool import Buffer, forget
from tracegrade.ingest.text import decode
from tracegrade.model.values import JSON

_RECORDS_AT_ONCE: Final = 512
_FORGET_EVERY: Final = 64 * MIB
_RESOURCE, _ITEMS, _URL, _OLD_ITEMS = 1, 2, 3, 1000


def salvage(decoder: ProtoDecoder, raw: Buffer, signal: str, offset: int) -> None:
    """Take every record of a message that can be read.

    Args:
        decoder: takes the records.
        raw: top-level fields, the last of which may be cut.
        signal: `traces` or `logs`; nothing is taken of others.
        offset: position of `raw` in the unpacked file.
    """
    if signal not in ("traces", "logs"):
        return
    for field, start, end, _ in _fields(decoder, raw, 0, len(raw), offset):
        if field != 1:
            continue
        resource, url = _resource(decoder, raw, start, end, offset)
        for inner, a, b, _ in _fields(decoder, raw, start, end, offset):
            if inner in (_ITEMS, _OLD_ITEMS):
                _scope(decoder, raw, a, b, signal, resource, url, offset)
    decoder.settle()


def _resource(decoder: ProtoDecoder, raw: Buffer, start: int, end: int, offset: int) -> tuple[dict[str, JSON], str]:
    """The resource and schema URL of a message, wherever in it they stand."""
    resource: dict[str, JSON] = {}
    url = ""
    for field, a, b, cut in _quiet_fields(raw, start, end):
        if field == _URL and not cut:
            url = decode(bytes(raw[a:b]))
        elif field == _RESOURCE and not cut:
            try:
                found = thin.message("resource.v1.Resource").FromString(bytes(raw[a:b]))
                resource = decoder.attributes(found.attributes, f"byte {offset + a}")
            except DecodeError:
                decoder.intake.warn(f"byte {offset + a}", "a resource is malformed and was dropped")
    return resource, url


def _scope(
    decoder: ProtoDecoder,
    raw: Buffer,
    start: int,
    end: int,
    signal: str,
    resource: dict[str, JSON],
    url: str,
    offset: int,
) -> None:
    scope: Any = thin.message("common.v1.InstrumentationScope")()
    for field, a, b, cut in _quiet_fields(raw, start, end):
        if field == _URL and not cut:
            url = decode(bytes(raw[a:b])) or url
        elif field == 1 and not cut:
            try:
                scope = thin.message("common.v1.InstrumentationScope").FromString(bytes(raw[a:b]))
            except DecodeError:
                decoder.intake.warn(f"byte {offset + a}", "a scope is malformed and was dropped")
    origin = decoder.origin(resource, scope, url, f"byte {offset + start}")
    kind = thin.message("trace.v1.Span" if signal == "traces" else "logs.v1.LogRecord")
    take = decoder.take_span if signal == "traces" else decoder.take_log
    taken, forgotten = 0, start
    for field, a, b, cut in _fields(decoder, raw, start, end, offset):
        if field != _ITEMS:
            continue
        where = f"byte {offset + a}"
        try:
            if cut:
                raise DecodeError
            take(kind.FromString(bytes(raw[a:b])), origin, where)
        except DecodeError:
            what = "span" if signal == "traces" else "log record"
            decoder.intake.skip(where, f"a {what} is {'cut' if cut else 'malformed'}", _span_id(raw, a, b))
        taken += 1
        if taken % _RECORDS_AT_ONCE == 0:
            decoder.settle()
        if b - forgotten > _FORGET_EVERY:
            forget(raw)
            forgotten = b


def _strict_fields(raw: Buffer, start: int, end: int) -> Iterator[tuple[int, int, int, bool]]:
    """Length-delimited fields: number, start, end, and whether its end is missing.

    Raises:
        WireError: at the first damage.
    """
    pos = start
    while pos < end:
        at = pos
        tag, pos = wire.varint(raw, pos, end)
        if tag & 7 != wire.LENGTH:
            raise wire.WireError(at, f"a field of wire type {tag & 7} stands where a message was expected")
        size, pos = wire.varint(raw, pos, end)
        yield tag >> 3, pos, min(pos + size, end), pos + size > end
        pos += size


def _quiet_fields(raw: Buffer, start: int, end: int) -> Iterator[tuple[int, int, int, bool]]:
    """The fields up to the first damage, which another pass reports."""
    with suppress(wire.WireError):
        yield from _strict_fields(raw, start, end)


def _fields(
    decoder: ProtoDecoder, raw: Buffer, start: int, end: int, offset: int
) -> Iterator[tuple[int, int, int, bool]]:
    """The fields up to the first damage, which is reported."""
    try:
        yield from _strict_fields(raw, start, end)
    except wire.WireError as error:
        where = f"byte {offset + error.position}"
        decoder.intake.skip(where, f"{error.reason}; the rest of this message was left out")


def _span_id(raw: Buffer, start: int, end: int) -> str | None:
    """The span id of a span that cannot be parsed, as far as its first fields hold."""
    try:
        for number, kind, a, b in wire.fields(raw, start, end):
            if number == 2 and kind == wire.LENGTH:
                return bytes_id(bytes(raw[a:b]), 16)
    except wire.WireError:
        pass
    return None

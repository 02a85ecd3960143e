"""The protobuf wire format, as far as files need it: varints, fields, and what signal a message carries.

Pure functions over bytes. Source: the encoding guide of Protocol Buffers.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.ingest.spool import Buffer

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5

Field = tuple[int, int, int, int]
"""Field number, wire type, start and end of the value."""


class WireError(ValueError):
    """The bytes are no well-formed message; `position` says where, `cut` that more bytes might make it one."""

    def __init__(self, position: int, reason: str, cut: bool = False) -> None:
        self.position = position
        self.cut = cut
        self.reason = reason
        super().__init__(f"byte {position}: {reason}")


def varint(buf: Buffer, pos: int, end: int) -> tuple[int, int]:
    """Read one varint; returns its value and the position after it.

    Raises:
        WireError: it is cut or longer than 10 bytes.

    >>> varint(bytes([0xAC, 0x02]), 0, 2)
    (300, 2)
    """
    value = shift = 0
    start = pos
    while True:
        if pos >= end:
            raise WireError(start, "a number is cut", cut=True)
        byte = buf[pos]
        pos += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, pos
        shift += 7
        if shift > 63:
            raise WireError(start, "a number is longer than 10 bytes")


def fields(buf: Buffer, start: int, end: int, partial: bool = False) -> Iterator[Field]:
    """Iterate the fields of one message.

    Args:
        buf: the bytes.
        start: where the message starts.
        end: where it ends, or where the bytes at hand end.
        partial: take a last field that reaches beyond `end` as far as it goes, instead of refusing it.

    Raises:
        WireError: at the first field that is malformed.
    """
    pos = start
    while pos < end:
        at = pos
        try:
            tag, pos = varint(buf, pos, end)
            number, kind = tag >> 3, tag & 7
            if kind == LENGTH:
                size, pos = varint(buf, pos, end)
                stop = pos + size
            elif kind == VARINT:
                _, stop = varint(buf, pos, end)
            else:
                stop = pos + {FIXED64: 8, FIXED32: 4}[kind]
        except WireError as error:
            if partial and error.cut:
                return
            raise
        except KeyError:
            raise WireError(at, f"wire type {kind} does not occur in OTLP") from None
        if number == 0:
            raise WireError(at, "a field number is 0")
        if stop > end:
            if not partial:
                raise WireError(at, f"field {number} says {stop - pos} bytes, {end - pos} are left", cut=True)
            stop = end
        yield number, kind, pos, stop
        pos = stop


def signal_of(buf: Buffer, start: int, end: int, partial: bool = False) -> str | None:
    """What one Resource… message (field 1 of every OTLP request) carries.

    Returns:
        `traces`, `logs`, `metrics`, `profiles`, or None where it holds no record to tell by.

    Raises:
        WireError: the bytes are no such message.
    """
    seen: str | None = None
    for number, kind, a, b in fields(buf, start, end, partial):
        if number not in (1, 2, 3, 1000) or kind != LENGTH:
            raise WireError(a, f"field {number} (wire type {kind}) does not occur in an OTLP resource message")
        if number in (2, 1000) and seen is None:
            for inner, inner_kind, c, d in fields(buf, a, b, partial):
                if inner_kind != LENGTH or inner not in (1, 2, 3):
                    raise WireError(c, f"field {inner} does not occur in an OTLP scope message")
                if inner == 2:
                    seen = _record_signal(buf, c, d, partial)
                    break
        if seen is not None:
            break
    return seen


def _record_signal(buf: Buffer, start: int, end: int, partial: bool) -> str:
    """The signal of one record, from fields that only one of the record types has."""
    found: set[tuple[int, int]] = set()
    sizes: dict[int, int] = {}
    for number, kind, a, b in fields(buf, start, end, partial):
        found.add((number, kind))
        sizes.setdefault(number, b - a)
        if number > 16 and number != 1000:
            raise WireError(a, f"field {number} does not occur in an OTLP record")
    if (7, FIXED64) in found or (8, FIXED64) in found:
        return "traces"
    if (1, FIXED64) in found or (11, FIXED64) in found or (2, VARINT) in found:
        return "logs"
    if found & {(5, LENGTH), (7, LENGTH), (9, LENGTH), (10, LENGTH), (11, LENGTH)} and _is_metric(buf, start, end):
        return "metrics"
    if (1, LENGTH) in found and sizes[1] in (8, 16, 24) and ((2, LENGTH) in found or (5, LENGTH) in found):
        return "traces"
    if found & {(5, LENGTH), (6, LENGTH), (9, LENGTH), (10, LENGTH), (12, LENGTH)} and (1, LENGTH) not in found:
        return "logs"
    if (2, LENGTH) in found and (1, LENGTH) in found:
        return "profiles" if (4, VARINT) in found or (3, FIXED64) in found else "metrics"
    return "traces"


def _is_metric(buf: Buffer, start: int, end: int) -> bool:
    """Whether a record has a data field (gauge 5, sum 7, histogram 9, exponential 10, summary 11) with data points."""
    for number, kind, a, b in fields(buf, start, end):
        if kind == LENGTH and number in (5, 7, 9, 10, 11):
            try:
                inner = [(n, k) for n, k, _, _ in fields(buf, a, b)]
            except WireError:
                return False
            return bool(inner) and all((n, k) in ((1, LENGTH), (2, VARINT), (3, VARINT)) for n, k in inner)
    return False

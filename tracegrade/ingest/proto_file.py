"""Files of OTLP protobuf messages: bare and concatenated, 4-byte length-prefixed, varint-delimited, read in windows.

Frames may hold JSON as well, and each may be compressed on its own (the Collector's file exporter does both).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tracegrade.ingest import wire
from tracegrade.ingest.intake import Intake
from tracegrade.ingest.options import MIB, ReadOptions
from tracegrade.ingest.otlp_proto import ProtoDecoder
from tracegrade.ingest.proto_salvage import salvage
from tracegrade.ingest.sniff import FRAME_HEADERS
from tracegrade.ingest.spool import Buffer, Spool
from tracegrade.ingest.unpack import Unpacked, compression_of, unpack_block

_WINDOW: Final = 1 * MIB
_LARGE: Final = 32 * MIB
_LARGEST_FRAME: Final = 256 * MIB

TakeJson = Callable[[bytes, str], None]
"""Takes one JSON document and its place."""


def read_bare(stream: Unpacked, intake: Intake, options: ReadOptions) -> None:
    """Read concatenated requests: a run of top-level fields 1, each one Resource… message."""
    decoder = ProtoDecoder(intake, options)
    base = stream.offset
    buf = stream.read(_WINDOW)
    while buf:
        used = _window(buf, decoder, base)
        base, buf = base + used, buf[used:] if used else buf
        if buf and not _may_start(buf):
            reason = f"no OTLP message starts with {buf[:8].hex(' ')}; from here on nothing was read"
            intake.skip(f"byte {base}", reason)
            return
        size = _message_size(buf)
        if size > _LARGE:
            base, buf = _large(stream, buf, size, decoder, base, options)
            continue
        more = stream.read(max(_WINDOW, size - len(buf)))
        if not more:
            if buf:
                intake.skip(f"byte {base}", "the last message is cut; its whole spans were read")
                salvage(decoder, buf, _first_signal(buf), base)
            return
        buf = b"".join((buf, more)) if buf else more


def _may_start(buf: bytes) -> bool:
    """Whether a message may start here: the tag of field 1, and a length."""
    try:
        return buf[0] == 0x0A and (len(buf) < 2 or wire.varint(buf, 1, len(buf))[0] >= 0)
    except wire.WireError as error:
        return error.cut


def _message_size(buf: bytes) -> int:
    """Bytes of the message that starts here, its header included; 0 while that is not known."""
    try:
        size, start = wire.varint(buf, 1, len(buf))
    except wire.WireError:
        return 0
    return start + size


def _large(
    stream: Unpacked, buf: bytes, size: int, decoder: ProtoDecoder, base: int, options: ReadOptions
) -> tuple[int, bytes]:
    """A message (or frame) too large to be held: it goes to a file, and is decoded record by record from there.

    Returns:
        Where reading goes on, and the bytes that were read beyond the message.
    """
    intake = decoder.intake
    if size > options.max_line_bytes:
        limit = f"more than {options.max_line_bytes:,} (max_line_bytes)"
        intake.skip(f"byte {base}", f"a message says {size:,} bytes, {limit}; from here on nothing was read")
        return base, b""
    spool = Spool(_LARGE)
    try:
        while spool.size + len(buf) < size:
            spool.add(buf)
            buf = stream.read(_WINDOW)
            if not buf:
                intake.skip(f"byte {base}", "the last message is cut; its whole spans were read")
                break
        rest = size - spool.size
        spool.add(buf[:rest])
        view = spool.view()
        salvage(decoder, view, _first_signal(view), base)
    finally:
        spool.close()
    left = buf[rest:]
    return base + size, left or stream.read(_WINDOW)


def _first_signal(buf: Buffer) -> str:
    """The signal of the message that starts here, which may be cut."""
    try:
        size, start = wire.varint(buf, 1, len(buf))
        return wire.signal_of(buf, start, min(start + size, len(buf)), partial=True) or "traces"
    except wire.WireError:
        return "traces"


def _window(buf: bytes, decoder: ProtoDecoder, base: int) -> int:
    """Decode the complete messages at the start of a window, runs of one signal at once; returns the bytes used."""
    pos = run = 0
    end = len(buf)
    current: str | None = None
    while pos < end:
        try:
            if buf[pos] != 0x0A:
                break
            size, start = wire.varint(buf, pos + 1, end)
            if start + size > end:
                break
            signal = _signal(buf, start, start + size, current)
        except wire.WireError:
            break
        if signal != current and current is not None:
            decoder.message(buf[run:pos], current, base + run)
            run = pos
        current = signal
        pos = start + size
    if pos > run:
        decoder.message(buf[run:pos], current or "traces", base + run)
    return pos


def _signal(buf: bytes, start: int, end: int, current: str | None) -> str:
    """The signal of one message; a damaged or empty one is taken for one of the run it stands in."""
    try:
        return wire.signal_of(buf, start, end) or current or "traces"
    except wire.WireError:
        return current or "traces"


def read_framed(stream: Unpacked, framing: str, intake: Intake, options: ReadOptions, take_json: TakeJson) -> str:
    """Read framed messages.

    Returns:
        What the frames hold: `proto` or `json`, with `+gzip` or `+zstd` where they are compressed one by one.
    """
    decoder = ProtoDecoder(intake, options)
    base, pos = stream.offset, 0
    buf = stream.read(_WINDOW)
    kind = ""
    while True:
        header = _header(buf, pos, framing)
        if header is not None and header[0] + header[1] <= len(buf):
            size, start = header
            if size > options.max_line_bytes:
                limit = f"more than {options.max_line_bytes:,} (max_line_bytes)"
                intake.skip(f"byte {base + pos}", f"a frame says {size:,} bytes, {limit}; it was left out")
            elif size:
                kind = _frame(buf[start : start + size], decoder, base + start, options, take_json) or kind
            pos = start + size
            continue
        if header is not None and header[0] > _LARGE and buf[header[1] : header[1] + 1] == b"\x0a":
            base, buf = _large(stream, buf[header[1] :], header[0], decoder, base + header[1], options)
            kind, pos = "proto", 0
            if not buf:
                return kind
            continue
        if header is not None and header[0] > min(options.max_line_bytes, _LARGEST_FRAME):
            limit = f"more than {min(options.max_line_bytes, _LARGEST_FRAME):,} (max_line_bytes)"
            intake.skip(
                f"byte {base + pos}", f"a frame says {header[0]:,} bytes, {limit}; from here on nothing was read"
            )
            return kind
        more = stream.read(_WINDOW if header is None else max(_WINDOW, header[1] + header[0] - len(buf)))
        if not more:
            if pos < len(buf):
                _cut_frame(buf[pos:] if header is None else buf[header[1] :], decoder, base + pos, header)
            return kind
        base, buf, pos = base + pos, buf[pos:] + more, 0


def _header(buf: bytes, pos: int, framing: str) -> tuple[int, int] | None:
    """Size and start of the frame at `pos`, None where the header is not complete."""
    try:
        return FRAME_HEADERS[framing](buf, pos)
    except wire.WireError:
        return None


def _frame(frame: bytes, decoder: ProtoDecoder, offset: int, options: ReadOptions, take_json: TakeJson) -> str:
    packed = compression_of(frame)
    if packed:
        try:
            frame = unpack_block(frame, options)
        except ValueError as error:
            decoder.intake.skip(f"byte {offset}", f"a frame cannot be unpacked: {error}")
            return ""
    suffix = f"+{packed}" if packed else ""
    if frame.lstrip(b" \r\n\t")[:1] in (b"{", b"["):
        take_json(frame, f"byte {offset}")
        return f"json{suffix}"
    used = _window(frame, decoder, offset)
    if used < len(frame):
        decoder.intake.skip(
            f"byte {offset + used}", f"{len(frame) - used:,} bytes of this frame are no OTLP message and were left out"
        )
    return f"proto{suffix}"


def _cut_frame(rest: bytes, decoder: ProtoDecoder, offset: int, header: tuple[int, int] | None) -> None:
    """The last frame ends beyond the file: report it, and take its whole spans."""
    expected = "a frame header" if header is None else f"a frame of {header[0]:,} bytes"
    decoder.intake.skip(f"byte {offset}", f"the file ends inside {expected}; {len(rest):,} bytes of it are there")
    if header is not None and rest[:1] == b"\x0a":
        salvage(decoder, rest, _first_signal(rest), offset + 4)

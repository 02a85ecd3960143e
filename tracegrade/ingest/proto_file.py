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
from tracegrade.ingest.sniff import FRAME_HEADERS
from tracegrade.ingest.unpack import Unpacked, compression_of, unpack_block

_WINDOW: Final = 1 * MIB

TakeJson = Callable[[bytes, str], None]
"""Takes one JSON document and its place."""


def read_bare(stream: Unpacked, intake: Intake, options: ReadOptions) -> None:
    """Read concatenated requests: a run of top-level fields 1, each one Resource… message."""
    decoder = ProtoDecoder(intake, options)
    base = stream.offset
    buf = stream.read(_WINDOW)
    while buf:
        used = _window(buf, decoder, base)
        more = stream.read(_WINDOW if used or len(buf) < _WINDOW else len(buf))
        if not more:
            if used < len(buf):
                _tail(buf[used:], decoder, base + used)
            return
        if used == 0 and len(buf) > options.max_line_bytes:
            intake.skip(
                f"byte {base}",
                f"a message of more than {options.max_line_bytes:,} bytes (max_line_bytes); nothing after it was read",
            )
            return
        base += used
        buf = b"".join((memoryview(buf)[used:], more)) if used < len(buf) else more


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


def _tail(rest: bytes, decoder: ProtoDecoder, offset: int) -> None:
    """What follows the last complete message: the whole spans of a cut one are taken."""
    if rest[0] != 0x0A:
        decoder.intake.skip(
            f"byte {offset}",
            f"no OTLP message starts with {rest[:8].hex(' ')}; the last {len(rest):,} bytes were left out",
        )
        return
    try:
        _, start = wire.varint(rest, 1, len(rest))
        signal = _signal(rest, start, len(rest), None)
    except wire.WireError:
        signal = "traces"
    decoder.intake.skip(f"byte {offset}", "the last message is cut; its whole spans were read")
    decoder.salvage(rest, signal, offset)


def read_framed(stream: Unpacked, framing: str, intake: Intake, options: ReadOptions, take_json: TakeJson) -> str:
    """Read framed messages.

    Returns:
        What the frames hold: `proto` or `json`, with `+gzip` or `+zstd` where they are compressed one by one.
    """
    decoder = ProtoDecoder(intake, options)
    base = stream.offset
    buf = stream.read(_WINDOW)
    kind = ""
    pos = 0
    while True:
        header = _header(buf, pos, framing)
        if header is None or header[1] + header[0] > len(buf):
            missing = _WINDOW if header is None else header[1] + header[0] - len(buf)
            if header is not None and header[0] > options.max_line_bytes:
                limit = f"more than {options.max_line_bytes:,} (max_line_bytes)"
                intake.skip(
                    f"byte {base + pos}", f"a frame says {header[0]:,} bytes, {limit}; nothing after it was read"
                )
                return kind
            more = stream.read(max(missing, _WINDOW))
            if more:
                base, buf, pos = base + pos, buf[pos:] + more, 0
                continue
            if pos < len(buf):
                _cut_frame(buf[pos:] if header is None else buf[header[1] :], decoder, base + pos, header)
            return kind
        size, start = header
        if size:
            kind = _frame(buf[start : start + size], decoder, base + start, options, take_json) or kind
        pos = start + size


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
        try:
            _, start = wire.varint(rest, 1, len(rest))
        except wire.WireError:
            return
        decoder.salvage(rest, _signal(rest, start, len(rest), None), offset + 4)

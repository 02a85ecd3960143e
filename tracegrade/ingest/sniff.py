"""What a file is, told from its first unpacked bytes: content decides, never the name."""

from __future__ import annotations

from dataclasses import dataclass

from tracegrade.ingest import wire
from tracegrade.ingest.unpack import compression_of

HEAD_BYTES = 256 * 1024
_TEXT_CONTROLS = frozenset(range(32)) - {9, 10, 12, 13, 27, 30}


@dataclass(frozen=True, slots=True)
class Content:
    """What the first bytes show.

    Attributes:
        kind: `json`, `proto`, `parquet`, `empty`, or empty when nothing was recognised.
        framing: `bare`, `length-prefixed` or `varint-delimited` for messages, else empty.
        found: what the bytes look like, for the message when nothing was recognised.
    """

    kind: str
    framing: str = ""
    found: str = ""


def content_of(head: bytes, complete: bool) -> Content:
    """Recognise the first bytes of a file.

    Args:
        head: the first unpacked bytes.
        complete: whether they are the whole file.
    """
    if not head:
        return Content("empty")
    if head.startswith(b"PAR1"):
        return Content("parquet")
    text = is_text(head)
    stripped = head.lstrip(b"\xef\xbb\xbf \t\r\n\x1e")
    if text and stripped[:1] in (b"{", b"["):
        return Content("json")
    if text and not stripped:
        return Content("empty")
    if text:
        return Content("", found="text that starts with " + repr(stripped[:40].decode("utf-8", "replace")))
    if request_like(head):
        return Content("proto", "bare")
    for framing in FRAME_HEADERS:
        if _framed(head, complete, framing):
            return Content("proto", framing)
    if _begins_with_request(head):
        return Content("proto", "bare")
    return Content("", found=_binary(head))


def is_text(head: bytes) -> bool:
    """Whether bytes can be text: UTF-8 or close to it, without control characters that text does not hold."""
    return not _TEXT_CONTROLS.intersection(head[:4096])


def _begins_with_request(head: bytes) -> bool:
    """Whether one whole Resource… message stands first, whatever follows: what follows costs only itself."""
    try:
        size, start = wire.varint(head, 1, len(head))
    except wire.WireError:
        return False
    return head[0] == 0x0A and 0 < size <= len(head) - start and request_like(head[: start + size])


def request_like(buf: bytes) -> bool:
    """Whether bytes are an OTLP request, or its beginning: fields 1, each a Resource… message."""
    pos, end = 0, len(buf)
    while pos < end:
        if buf[pos] != 0x0A:
            return False
        try:
            size, start = wire.varint(buf, pos + 1, end)
            stop = start + size
            wire.signal_of(buf, start, min(stop, end), partial=stop > end)
        except wire.WireError as error:
            return error.cut and pos > 0
        pos = stop
    return end > 0


def big_endian(buf: bytes, pos: int) -> tuple[int, int]:
    """Size and start of a frame with a 4-byte header.

    Raises:
        WireError: the header is cut.
    """
    if pos + 4 > len(buf):
        raise wire.WireError(pos, "a frame header is cut", cut=True)
    return int.from_bytes(buf[pos : pos + 4], "big"), pos + 4


def varint_size(buf: bytes, pos: int) -> tuple[int, int]:
    """Size and start of a varint-delimited frame.

    Raises:
        WireError: the header is cut or no number.
    """
    return wire.varint(buf, pos, len(buf))


FRAME_HEADERS = {"length-prefixed": big_endian, "varint-delimited": varint_size}


def _framed(head: bytes, complete: bool, framing: str) -> bool:
    """Whether the head is a run of frames, each known by its own first bytes; empty frames alone are a whole file."""
    pos = seen = 0
    while pos < len(head) and seen < 64:
        try:
            size, start = FRAME_HEADERS[framing](head, pos)
        except wire.WireError as error:
            return error.cut and seen > 0
        if size and not _frame_like(head[start : start + size]):
            return seen > 0
        seen += size > 0
        pos = start + size
    return seen > 0 or (complete and pos == len(head))


def _frame_like(frame: bytes) -> bool:
    if compression_of(frame):
        return True
    if frame.lstrip(b" \r\n\t")[:1] in (b"{", b"["):
        return is_text(frame)
    return request_like(frame)


_MAGICS = (
    (b"PK\x03\x04", "a ZIP archive"),
    (b"SQLite format 3", "a SQLite database"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ", "xz data"),
    (b"ARROW1", "an Arrow file"),
    (b"\x04\x22\x4d\x18", "LZ4 data"),
    (b"\x89PNG", "a PNG image"),
    (b"%PDF", "a PDF file"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
    (b"\x7fELF", "a program"),
    (b"Obj\x01", "an Avro file"),
    (b"ORC", "an ORC file"),
)


def _binary(head: bytes) -> str:
    for magic, name in _MAGICS:
        if head.startswith(magic):
            return name
    if head[8:12] == b"DUCK":
        return "a DuckDB database (open it with --db)"
    return f"binary data that starts with {head[:16].hex(' ')}"

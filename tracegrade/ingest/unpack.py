"""Bytes of an input, unpacked as they are read: gzip (all members) and zstd (all frames), told by their first bytes.

Nothing is held beyond one block. A damaged or cut archive gives what was unpacked before the damage, and the reason.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from typing import BinaryIO, Final

from tracegrade.errors import LimitError
from tracegrade.ingest.options import MIB, ReadOptions

GZIP: Final = b"\x1f\x8b\x08"
ZSTD: Final = b"\x28\xb5\x2f\xfd"
_BLOCK: Final = 1 * MIB
_MAX_PACKED_MESSAGE: Final = 256 * MIB


def compression_of(head: bytes) -> str:
    """`gzip`, `zstd` or empty, by the first bytes.

    >>> compression_of(b"\\x1f\\x8b\\x08\\x00"), compression_of(b"{}")
    ('gzip', '')
    """
    if head.startswith(GZIP):
        return "gzip"
    return "zstd" if head.startswith(ZSTD) or _skippable(head) else ""


def _skippable(head: bytes) -> bool:
    """A zstd skippable frame (RFC 8878 §3.1.2) that is followed by a real one."""
    return (
        len(head) >= 12
        and head[1:4] == b"\x2a\x4d\x18"
        and 0x50 <= head[0] <= 0x5F
        and head[8 + int.from_bytes(head[4:8], "little") :].startswith(ZSTD)
    )


class _Gzip:
    """One gzip member being unpacked, at most one block of output at a time."""

    piece = 64 * 1024

    def __init__(self) -> None:
        self._codec = zlib.decompressobj(wbits=31)

    def feed(self, data: memoryview) -> tuple[bytes, int, bool]:
        """Unpack some of `data`; returns the output, how many bytes were used, and whether the member ended."""
        out = self._codec.decompress(data, _BLOCK)
        if self._codec.eof:
            return out, len(data) - len(self._codec.unused_data), True
        return out, len(data) - len(self._codec.unconsumed_tail), False


class _Zstd:
    """One zstd frame being unpacked. All of a piece is unpacked at once, so pieces are small: a block of 4 bytes may
    stand for 128 KiB."""

    piece = 4 * 1024

    def __init__(self) -> None:
        import zstandard

        self._codec = zstandard.ZstdDecompressor(max_window_size=128 * MIB).decompressobj()

    def feed(self, data: memoryview) -> tuple[bytes, int, bool]:
        """Unpack `data`; see `_Gzip.feed`."""
        out = self._codec.decompress(data)
        if self._codec.eof:
            return out, len(data) - len(self._codec.unused_data), True
        return out, len(data), False


def _damage() -> tuple[type[Exception], ...]:
    import zstandard

    return (zlib.error, zstandard.ZstdError)


class Unpacked:
    """A readable, peekable stream of unpacked bytes.

    Args:
        raw: the packed stream.
        path: for messages.
        options: limits.
        warn: takes the place and the reason where an archive is damaged.
        digest: whether to compute `sha256`, which costs about as much as parsing.

    Attributes:
        compression: `gzip`, `zstd` or empty.
        offset: unpacked bytes handed out so far.
        packed: bytes read from `raw`.
    """

    def __init__(
        self,
        raw: BinaryIO,
        path: str,
        options: ReadOptions,
        warn: Callable[[str, str], None],
        digest: bool = False,
    ) -> None:
        self._raw = raw
        self._path = path
        self._options = options
        self._warn = warn
        self._digest = hashlib.sha256() if digest else None
        self._ready: list[bytes] = []
        self._held = 0
        self._done = False
        self._codec: _Gzip | _Zstd | None = None
        self._made = 0
        self.offset = 0
        self.packed = 0
        self._input = memoryview(b"")
        self._ensure(64)
        self.compression = compression_of(bytes(self._input[:64]))

    @property
    def sha256(self) -> str:
        """Digest of the packed bytes read so far, empty unless asked for."""
        return self._digest.hexdigest() if self._digest else ""

    def peek(self, size: int) -> bytes:
        """The next bytes, at least `size` of them unless the stream ends before, without taking them."""
        self._fill(size)
        if len(self._ready) > 1:
            self._ready = [b"".join(self._ready)]
        return self._ready[0] if self._ready else b""

    def read(self, size: int = _BLOCK) -> bytes:
        """Take all that is ready: at least `size` bytes, fewer only at the end, and at most one block more."""
        self._fill(size)
        taken = self._ready[0] if len(self._ready) == 1 else b"".join(self._ready)
        self._ready.clear()
        self._held = 0
        self.offset += len(taken)
        return taken

    def drain(self) -> None:
        """Read the packed stream to its end, so that its digest and size are those of the whole input."""
        while self._pull():
            pass

    def _pull(self) -> bytes:
        block = self._raw.read(_BLOCK) or b""
        if self._digest:
            self._digest.update(block)
        self.packed += len(block)
        return block

    def _ensure(self, size: int) -> None:
        """Have at least `size` packed bytes at hand, unless the input ends before."""
        while len(self._input) < size and (more := self._pull()):
            self._input = memoryview(bytes(self._input) + more)

    def _fill(self, size: int) -> None:
        while self._held < size and not self._done:
            block = self._next()
            self._made += len(block)
            if block:
                self._ready.append(block)
                self._held += len(block)
            if self.compression:
                self._check()

    def _next(self) -> bytes:
        self._ensure(1)
        if not self._input:
            self._done = True
            if self._codec is not None:
                self._warn(f"byte {self.packed} (packed)", f"the {self.compression} data is cut")
            return b""
        if not self.compression:
            block, self._input = self._input, memoryview(b"")
            return block.obj if isinstance(block.obj, bytes) and len(block.obj) == len(block) else bytes(block)
        if self._codec is None:
            if not self._starts_another():
                return b""
            self._codec = _Gzip() if self.compression == "gzip" else _Zstd()
        try:
            out, used, ended = self._codec.feed(self._input[: self._codec.piece])
        except _damage() as error:
            self._done = True
            self._warn(f"byte {self._made} (unpacked)", f"the {self.compression} data is damaged: {error}")
            return b""
        self._input = self._input[used:]
        if ended:
            self._codec = None
        return out

    def _starts_another(self) -> bool:
        """Whether a further member or frame follows; zero padding ends an archive quietly."""
        self._ensure(12)
        head = bytes(self._input[:12])
        magic = GZIP[:2] if self.compression == "gzip" else ZSTD
        if head.startswith(magic) or (self.compression == "zstd" and head[1:4] == b"\x2a\x4d\x18"):
            return True
        if head.strip(b"\x00"):
            where = f"byte {self.packed - len(self._input)} (packed)"
            self._warn(
                where, f"what follows the {self.compression} data is no {self.compression} data and was left out"
            )
        self._done = True
        return False

    def _check(self) -> None:
        if self._made > self._options.max_unpacked_bytes:
            limit = self._options.max_unpacked_bytes
            raise LimitError(
                f"{self._path}: unpacks to more than {limit:,} bytes (max_unpacked_bytes); "
                "unpack it yourself and look at it, or raise the limit"
            )
        used = self.packed - len(self._input)
        if self._made > self._options.ratio_floor_bytes and self._made > self._options.max_ratio * max(used, 1):
            raise LimitError(
                f"{self._path}: {used:,} packed bytes gave {self._made:,}, more than {self._options.max_ratio} times "
                "as many (max_ratio): this looks like a decompression bomb; unpack it yourself and look at it, "
                "or raise the limit"
            )


def unpack_block(block: bytes, options: ReadOptions) -> bytes:
    """Unpack one small archive held in memory, as the Collector writes for each message.

    Raises:
        ValueError: it is damaged, cut, or unpacks to more than `max_line_bytes` or 256 MiB.
    """
    import io

    limit = min(options.max_line_bytes, _MAX_PACKED_MESSAGE)
    problems: list[str] = []
    stream = Unpacked(io.BytesIO(block), "message", options, lambda where, reason: problems.append(reason))
    out = stream.read(limit + 1)
    if problems:
        raise ValueError(problems[0])
    if len(out) > limit:
        raise ValueError(f"it unpacks to more than {limit:,} bytes (max_line_bytes)")
    return out

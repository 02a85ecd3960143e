"""Streams of JSON documents: one a line, one after another, pretty-printed, or all three mixed.

A document that is broken costs only itself: reading goes on at the next line that starts one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import orjson

from tracegrade.ingest.intake import Intake
from tracegrade.ingest.json_carve import carve
from tracegrade.ingest.options import MIB, ReadOptions
from tracegrade.ingest.spool import Spool
from tracegrade.ingest.unpack import Unpacked
from tracegrade.model.values import JSON

TAKEN: Final = object()
"""Stands for a document that was read already."""
WHOLE_BYTES: Final = 32 * MIB
"""Longer documents are taken apart before they are parsed."""
_BLOCK: Final = 4 * MIB
_OPEN: Final = b"{["
_OPENING: Final = re.compile(rb'\{\s*"[^"]*"\s*:')
_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*("?)|[{}\[\]]', re.DOTALL)
_CLOSING: Final = {b"{": b"}", b"[": b"]"}
"""Lines that open a pretty-printed document, and what its last line starts with."""
_BLANK: Final = b" \t\r\n,\x1e"


class Broken(ValueError):
    """Text that is no JSON document; says where and why."""


def parse(text: bytes) -> JSON:
    """One JSON document, strictly first, then as lenient writers make it (NaN, lone surrogates, broken UTF-8).

    Raises:
        Broken: it is no JSON.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(text.decode("utf-8", "replace"), strict=False)
    except RecursionError:
        raise Broken("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise Broken(f"no valid JSON: {error.msg} at character {error.pos + 1} of the document") from None
    except ValueError:
        raise Broken("it holds a number of more digits than can be read") from None


class _Lines:
    """Lines with their numbers; a line can be put back. A very long one comes as a `Spool`."""

    def __init__(self, stream: Unpacked, intake: Intake, options: ReadOptions) -> None:
        self._stream = stream
        self._intake = intake
        self._limit = options.max_line_bytes
        self._source = self._read()
        self._back: list[tuple[int, bytes | Spool]] = []

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> tuple[int, bytes | Spool]:
        return self._back.pop() if self._back else next(self._source)

    def put_back(self, lines: list[tuple[int, bytes | Spool]]) -> None:
        """Give lines out again, the first of them first."""
        self._back.extend(reversed(lines))

    def _read(self) -> Iterator[tuple[int, bytes | Spool]]:
        number = 1
        line = Spool(WHOLE_BYTES)
        try:
            while block := self._stream.read(_BLOCK):
                pieces = block.split(b"\n")
                for piece in pieces[:-1]:
                    if not line.size and len(piece) <= self._limit:
                        yield number, piece
                    else:
                        self._hold(line, piece, number)
                        yield from self._finished(line, number)
                        line = Spool(WHOLE_BYTES)
                    number += 1
                self._hold(line, pieces[-1], number)
            yield from self._finished(line, number)
        except BaseException:
            line.close()
            raise

    def _finished(self, line: Spool, number: int) -> Iterator[tuple[int, bytes | Spool]]:
        if line.size > self._limit:
            line.close()
        elif line.on_disk:
            yield number, line
        else:
            view = line.view()
            yield number, bytes(view)

    def _hold(self, line: Spool, piece: bytes, number: int) -> None:
        """Add a piece to its line; beyond the limit nothing is kept, and that is reported once."""
        if line.size + len(piece) <= self._limit:
            line.add(piece)
        elif line.size <= self._limit:
            reason = f"the line is longer than {self._limit:,} bytes (max_line_bytes) and was left out"
            self._intake.skip(f"line {number}", reason)
            line.size = self._limit + 1


def documents(
    stream: Unpacked, intake: Intake, options: ReadOptions, take: Callable[[bytes, str], bool]
) -> Iterator[tuple[JSON, str, str]]:
    """Iterate the documents of a text.

    Args:
        stream: the text.
        intake: takes what cannot be read.
        options: limits.
        take: may take the text of a line at its place; it then comes out as `TAKEN`.

    Yields:
        The parsed document, its place (`line 3`), and how it was written: `lines`, `document` or `concatenated`.
        One that is large comes as several small ones.
    """
    lines = _Lines(stream, intake, options)
    first = True
    for number, raw in lines:
        if isinstance(raw, Spool):
            yield from _carved(raw, f"line {number}", intake, whole=WHOLE_BYTES)
            first = False
            continue
        line = raw.removeprefix(b"\xef\xbb\xbf") if first else raw
        line = line.strip(_BLANK)
        if not line:
            continue
        first = False
        if take(line, f"line {number}"):
            yield TAKEN, f"line {number}", "lines"
            continue
        try:
            yield orjson.loads(line), f"line {number}", "lines"
            continue
        except orjson.JSONDecodeError:
            pass
        yield from _irregular(lines, number, line, intake, options)


def _carved(text: Spool, where: str, intake: Intake, whole: int) -> Iterator[tuple[JSON, str, str]]:
    """A document that is too large to be parsed at once, or that is broken somewhere, in parts."""
    try:
        view = text.view()
        for document in carve(view, whole, parse, lambda at, why: intake.skip(f"{where}, byte {at} of it", why)):
            yield document, where, "document"
    finally:
        text.close()


def _irregular(
    lines: _Lines, number: int, line: bytes, intake: Intake, options: ReadOptions
) -> Iterator[tuple[JSON, str, str]]:
    """A line that is no document by itself: part of a longer one, several in one, or broken."""
    where = f"line {number}"
    if line[:1] not in (b"{", b"["):
        intake.skip(where, f"no JSON document starts with {line[:20].decode('utf-8', 'replace')!r}")
        return
    scanner = _Scanner()
    gathered: list[tuple[int, bytes | Spool]] = [(number, line)]
    text = Spool(WHOLE_BYTES)
    try:
        current, end = _gather(lines, line, text, gathered, scanner, options)
    except BaseException:
        text.close()
        raise
    if end is None or end < 0:
        intake.skip(where, scanner.problem or "the document that starts here is cut or broken")
        if text.on_disk:
            yield from _carved(text, where, intake, whole=WHOLE_BYTES)
        else:
            _go_on(lines, gathered, scanner)
        return
    text.add(current[:end])
    rest = current[end:].strip(_BLANK)
    if rest:
        lines.put_back([(gathered[-1][0], rest)])
    framing = "document" if text.size > len(line) or not rest else "concatenated"
    yield from _parsed(text, where, framing, intake)


def _gather(
    lines: _Lines,
    line: bytes,
    text: Spool,
    gathered: list[tuple[int, bytes | Spool]],
    scanner: _Scanner,
    options: ReadOptions,
) -> tuple[bytes, int | None]:
    """Take lines until the document ends: all but the last into `text`, and, while they are few, into `gathered`.

    Returns:
        The last line taken, and the position in it after the document's end: None or negative where it has none.
    """
    current = line
    closing = _CLOSING.get(line)
    indented = False
    end = scanner.feed(current)
    while end is None:
        text.add(current + b"\n")
        try:
            following = next(lines)
        except StopIteration:
            break
        if not text.on_disk:
            gathered.append(following)
        if isinstance(following[1], Spool) or text.size + len(following[1]) > options.max_line_bytes:
            break
        current = following[1]
        if indented and current[:1] not in (b" ", b"\t", b"\r", b""):
            # Only the last line of an indented document stands at the margin; another one there starts anew.
            return current, 1 if current[:1] == closing else -1
        if _starts_again(current, line):
            break
        indented = indented or (closing is not None and len(gathered) == 2 and current[:1] in (b" ", b"\t"))
        end = None if indented else scanner.feed(current)
    return current, end


def _parsed(text: Spool, where: str, framing: str, intake: Intake) -> Iterator[tuple[JSON, str, str]]:
    """One whole document; where it is no valid JSON, the records in it that are."""
    if text.on_disk:
        yield from _carved(text, where, intake, whole=WHOLE_BYTES)
        return
    try:
        document = parse(bytes(text.view()))
    except Broken as error:
        parts = list(_carved(text, where, intake, whole=0))
        if not parts:
            intake.skip(where, str(error))
        yield from parts
        return
    yield document, where, framing


def _starts_again(line: bytes, first: bytes) -> bool:
    """Whether a line is a whole document that begins like the one that `first` opened: that one was cut."""
    opening = _OPENING.match(first)
    if opening is None or not line.startswith(opening.group()):
        return False
    try:
        return isinstance(orjson.loads(line), dict)
    except orjson.JSONDecodeError:
        return False


def _go_on(lines: _Lines, gathered: list[tuple[int, bytes | Spool]], scanner: _Scanner) -> None:
    """After a document without an end, go on at the next line that may start one."""
    for i in range(1, len(gathered)):
        if _may_start(gathered[i][1]):
            lines.put_back(gathered[i:])
            return
    if len(gathered) > 1 or scanner.problem is None:
        return
    for following in lines:
        if _may_start(following[1]):
            lines.put_back([following])
            return


def _may_start(line: bytes | Spool) -> bool:
    return isinstance(line, Spool) or line[:1] in (b"{", b"[")


class _Scanner:
    """Finds where a document ends, by its brackets and strings; fed line by line."""

    def __init__(self) -> None:
        self.problem: str | None = None
        self._stack: list[int] = []
        self._started = False

    def feed(self, line: bytes) -> int | None:
        """Scan one line.

        Returns:
            The position after the document's end, None if it goes on, -1 if it is broken here.
        """
        for match in _TOKEN.finditer(line):
            text = match.group()
            char = text[0]
            if char == 0x22:
                if not match.group(1):
                    self.problem = "the line ends inside a text: it is cut"
                    return -1
            elif char in _OPEN:
                self._stack.append(char + 2)
            else:
                if not self._stack or self._stack.pop() != char:
                    self.problem = f"an unexpected {chr(char)!r} stands at character {match.start() + 1}"
                    return -1
                if not self._stack:
                    return match.end()
        return None


def describe(doc: Any) -> str:
    """What a document that no reader knows looks like, for a message."""
    if isinstance(doc, dict):
        schema = doc.get("schema")
        if isinstance(schema, str) and schema.startswith("tracegrade/"):
            return f"what tracegrade itself wrote (`{schema[:60]}`), where spans are read"
        keys = ", ".join(f"`{str(k)[:40]}`" for k in list(doc)[:6])
        return f"a JSON object with the keys {keys}" if keys else "an empty JSON object"
    if isinstance(doc, list):
        return "an empty JSON array" if not doc else f"a JSON array of {describe(doc[0]).removeprefix('a ')}"
    return f"the JSON value {str(doc)[:40]!r}"

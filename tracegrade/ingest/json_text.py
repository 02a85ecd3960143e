"""Streams of JSON documents: one a line, one after another, pretty-printed, or all three mixed.

A document that is broken costs only itself: reading goes on at the next line that starts one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import orjson

from tracegrade.ingest.intake import Intake
from tracegrade.ingest.options import MIB, ReadOptions
from tracegrade.ingest.unpack import Unpacked
from tracegrade.model.values import JSON

_BLOCK: Final = 4 * MIB
_OPEN: Final = b"{["
_OPENING: Final = re.compile(rb'\{\s*"[^"]*"\s*:')
_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*("?)|[{}\[\]]', re.DOTALL)
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


class _Lines:
    """Lines with their numbers; a line can be put back."""

    def __init__(self, stream: Unpacked, intake: Intake, options: ReadOptions) -> None:
        self._stream = stream
        self._intake = intake
        self._limit = options.max_line_bytes
        self._source = self._read()
        self._back: list[tuple[int, bytes]] = []

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> tuple[int, bytes]:
        return self._back.pop() if self._back else next(self._source)

    def put_back(self, lines: list[tuple[int, bytes]]) -> None:
        """Give lines out again, the first of them first."""
        self._back.extend(reversed(lines))

    def _read(self) -> Iterator[tuple[int, bytes]]:
        number = 1
        rest: list[bytes] = []
        held = 0
        while block := self._stream.read(_BLOCK):
            lines = block.split(b"\n")
            if len(lines) > 1:
                rest, held = self._hold(rest, held, lines[0], number)
                if held <= self._limit:
                    yield number, b"".join(rest)
                number += 1
                for line in lines[1:-1]:
                    if len(line) <= self._limit:
                        yield number, line
                    else:
                        self._hold([], 0, line, number)
                    number += 1
                rest, held = [], 0
            rest, held = self._hold(rest, held, lines[-1], number)
        if held <= self._limit:
            yield number, b"".join(rest)

    def _hold(self, rest: list[bytes], held: int, piece: bytes, number: int) -> tuple[list[bytes], int]:
        """Put a piece to those of its line that are held; beyond the limit none is, and that is reported once."""
        total = held + len(piece)
        if total <= self._limit:
            return [*rest, piece], total
        if held <= self._limit:
            self._intake.skip(
                f"line {number}", f"the line is longer than {self._limit:,} bytes (max_line_bytes) and was left out"
            )
        return [], total


def documents(stream: Unpacked, intake: Intake, options: ReadOptions) -> Iterator[tuple[JSON, str, str]]:
    """Iterate the documents of a text.

    Yields:
        The parsed document, its place (`line 3`), and how it was written: `lines` or `document`.
    """
    lines = _Lines(stream, intake, options)
    first = True
    for number, raw in lines:
        line = raw.removeprefix(b"\xef\xbb\xbf") if first else raw
        line = line.strip(_BLANK)
        if not line:
            continue
        first = False
        try:
            yield orjson.loads(line), f"line {number}", "lines"
            continue
        except orjson.JSONDecodeError:
            pass
        yield from _irregular(lines, number, line, intake, options)


def _irregular(
    lines: _Lines, number: int, line: bytes, intake: Intake, options: ReadOptions
) -> Iterator[tuple[JSON, str, str]]:
    """A line that is no document by itself: part of a longer one, several in one, or broken."""
    where = f"line {number}"
    if line[:1] not in (b"{", b"["):
        intake.skip(where, f"no JSON document starts with {line[:20].decode('utf-8', 'replace')!r}")
        return
    scanner = _Scanner()
    gathered: list[tuple[int, bytes]] = [(number, line)]
    size = len(line)
    current = line
    while True:
        end = scanner.feed(current)
        if end is not None:
            break
        try:
            following = next(lines)
        except StopIteration:
            end = -1
            break
        size += len(following[1])
        if size > options.max_line_bytes or _starts_again(following[1], line):
            gathered.append(following)
            end = -1
            break
        gathered.append(following)
        current = following[1]
    if end < 0:
        _give_up(lines, gathered, where, scanner, intake)
        return
    text = b"\n".join([*(t for _, t in gathered[:-1]), gathered[-1][1][:end]])
    try:
        document = parse(text)
    except Broken as error:
        intake.skip(where, str(error))
        document = None
    rest = gathered[-1][1][end:].strip(_BLANK)
    if rest:
        lines.put_back([(gathered[-1][0], rest)])
    if document is not None:
        yield document, where, "document" if len(gathered) > 1 else "concatenated"


def _starts_again(line: bytes, first: bytes) -> bool:
    """Whether a line is a whole document that begins like the one that `first` opened: that one was cut."""
    opening = _OPENING.match(first)
    if opening is None or not line.startswith(opening.group()):
        return False
    try:
        return isinstance(orjson.loads(line), dict)
    except orjson.JSONDecodeError:
        return False


def _give_up(lines: _Lines, gathered: list[tuple[int, bytes]], where: str, scanner: _Scanner, intake: Intake) -> None:
    """Report a document that has no end, and go on at the next line that may start one."""
    reason = scanner.problem or "the document that starts here is cut or broken"
    intake.skip(where, reason)
    for i in range(1, len(gathered)):
        if gathered[i][1][:1] in (b"{", b"["):
            lines.put_back(gathered[i:])
            return
    if len(gathered) > 1 or scanner.problem is None:
        return
    for following in lines:
        if following[1][:1] in (b"{", b"["):
            lines.put_back([following])
            return


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
        keys = ", ".join(f"`{str(k)[:40]}`" for k in list(doc)[:6])
        return f"a JSON object with the keys {keys}" if keys else "an empty JSON object"
    if isinstance(doc, list):
        return "an empty JSON array" if not doc else f"a JSON array of {describe(doc[0]).removeprefix('a ')}"
    return f"the JSON value {str(doc)[:40]!r}"

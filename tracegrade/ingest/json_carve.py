"""One large or damaged JSON document → many small ones of the same shape.

A request with a million spans becomes requests with some spans each, every one with its resource and scope, so that
memory does not grow with the document, and a span that is no JSON costs only itself. Only lists that hold records
(`resourceSpans`, `spans`, `data`, a list of documents, …) are taken apart: a record never is.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

import orjson

from tracegrade.ingest.options import MIB
from tracegrade.ingest.spool import Buffer, forget
from tracegrade.model.values import JSON

Parse = Callable[[bytes], JSON]
"""Parses one text, or raises ValueError."""
Report = Callable[[int, str], None]
"""Takes the offset of an item that is no JSON, and the reason."""

_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"(\s*+:\s*+[{\[])?+|[{}\[\]]|"', re.DOTALL)
_RECORDS: Final = frozenset({b"spans", b"logRecords", b"log_records", b"logs", b"metrics"})
_LISTS: Final = _RECORDS | {
    b"batches",
    b"data",
    b"trace",
    b"traces",
    b"resourceSpans",
    b"resource_spans",
    b"resourceLogs",
    b"resource_logs",
    b"scopeSpans",
    b"scope_spans",
    b"scopeLogs",
    b"scope_logs",
    b"instrumentationLibrarySpans",
    b"instrumentation_library_spans",
    b"observations",
}
_GROUP: Final = 1 * MIB
_FORGET_EVERY: Final = 64 * MIB
_OBJECT, _ARRAY, _QUOTE = 0x7B, 0x5B, 0x22


@dataclass(slots=True)
class _Node:
    """A container that may be taken apart. `items` holds start and end of each element of a list, two numbers each;
    `parts` the elements or members that are nodes themselves, by their place in the list, or by their order."""

    opener: int
    start: int
    key: bytes
    end: int = -1
    items: array[int] = field(default_factory=lambda: array("q"))
    parts: dict[int, _Node] = field(default_factory=dict)

    @property
    def opens_nodes(self) -> bool:
        """Whether what stands in it can be a node, whatever its key."""
        return self.opener == _ARRAY and self.key not in _RECORDS


def carve(buffer: Buffer, whole: int, parse: Parse, report: Report) -> Iterator[JSON]:
    """Iterate small documents that together hold what one large document holds.

    Args:
        buffer: the text, from the document's first bracket; it may be cut.
        whole: containers up to this many bytes are parsed at once.
        parse: parses a small text.
        report: takes what is no JSON.

    Yields:
        Documents of the shape of the large one. Nothing, where it has no list of records.
    """
    root = _scan(buffer, whole)
    if root is None or not (root.parts or root.items):
        return
    if root.end < 0:
        report(len(buffer), "the document is cut or broken; its whole records were read")
    yield from _documents(buffer, root, parse, report)


def _scan(buffer: Buffer, whole: int) -> _Node | None:
    """The tree of containers that are taken apart."""
    stack: list[_Node] = []
    deep = 0  # brackets that are open inside a container that is not taken apart
    start = forgotten = 0
    for match in _TOKEN.finditer(buffer):
        first = buffer[match.start()]
        if first == _QUOTE:
            if match.end() - match.start() == 1:
                break  # a text without an end
            if match.group(1) is None:
                continue
        if first in (0x7D, 0x5D):
            if deep:
                deep -= 1
                if not deep and stack[-1].opener == _ARRAY:
                    stack[-1].items.extend((start, match.end()))
                continue
            if not stack or stack[-1].opener + 2 != first:
                break
            node = stack.pop()
            node.end = match.end()
            if not stack:
                return node
            _adopt(stack[-1], node, whole)
            if match.end() - forgotten > _FORGET_EVERY:
                forget(buffer)
                forgotten = match.end()
            continue
        if deep:
            deep += 1
            continue
        at = match.end() - 1
        key = bytes(buffer[match.start() + 1 : match.start(1) - 1]) if first == _QUOTE else b""
        if not stack or _is_node(stack[-1], key, buffer[at]):
            stack.append(_Node(buffer[at], at, key))
        else:
            start, deep = at, 1
    return _unfinished(stack)


def _is_node(parent: _Node, key: bytes, opener: int) -> bool:
    if parent.opener == _ARRAY:
        return parent.opens_nodes and opener == _OBJECT
    return key in _LISTS


def _adopt(parent: _Node, node: _Node, whole: int) -> None:
    """Give a finished container to its parent: as a node if it is large and can be taken apart, else as an item."""
    large = node.end - node.start > whole and (node.opener == _ARRAY or bool(node.parts))
    if parent.opener == _ARRAY:
        if large:
            parent.parts[len(parent.items) // 2] = node
        parent.items.extend((node.start, node.end))
    elif large:
        parent.parts[len(parent.parts)] = node


def _unfinished(stack: list[_Node]) -> _Node | None:
    """The tree of a document that is cut: what was open at the cut holds what was complete."""
    while len(stack) > 1:
        node = stack.pop()
        parent = stack[-1]
        if node.opener == _ARRAY or node.parts:
            parent.parts[len(parent.items) // 2 if parent.opener == _ARRAY else len(parent.parts)] = node
            if parent.opener == _ARRAY:
                parent.items.extend((node.start, node.start))
    return stack[0] if stack else None


def _documents(buffer: Buffer, node: _Node, parse: Parse, report: Report) -> Iterator[JSON]:
    if node.opener == _ARRAY:
        yield from _elements(buffer, node, parse, report)
        return
    try:
        around = parse(_without(buffer, node))
    except ValueError as error:
        report(node.start, str(error))
        around = {}
    for part in node.parts.values():
        for document in _documents(buffer, part, parse, report):
            yield {**around, part.key.decode("utf-8", "replace"): document}


def _without(buffer: Buffer, node: _Node) -> bytes:
    """The text of an object with null in the place of its large lists."""
    pieces: list[bytes] = []
    position = node.start
    for part in node.parts.values():
        pieces += (bytes(buffer[position : part.start]), b"null")
        position = part.end
        if position < 0:  # the document is cut inside this part
            return b"".join([*pieces, b"}"])
    return b"".join([*pieces, bytes(buffer[position : node.end]) if node.end >= 0 else b"}"])


def _elements(buffer: Buffer, node: _Node, parse: Parse, report: Report) -> Iterator[list[JSON]]:
    """The elements of a list: small ones in groups, large ones taken apart."""
    starts, ends = node.items[0::2], node.items[1::2]
    first = forgotten = 0
    for place in range(len(starts) + 1):
        is_part = place < len(starts) and place in node.parts
        full = place < len(starts) and place > first and ends[place] - starts[first] > _GROUP
        if place > first and (is_part or full or place == len(starts)):
            yield from _group(buffer, starts[first:place], ends[first:place], parse, report)
            first = place
            if place < len(starts) and starts[place] - forgotten > _FORGET_EVERY:
                forget(buffer)
                forgotten = starts[place]
        if is_part:
            for document in _documents(buffer, node.parts[place], parse, report):
                yield [document]
            first = place + 1


def _group(buffer: Buffer, starts: array[int], ends: array[int], parse: Parse, report: Report) -> Iterator[list[JSON]]:
    try:
        yield orjson.loads(b"[" + bytes(buffer[starts[0] : ends[-1]]) + b"]")
        return
    except orjson.JSONDecodeError:
        pass
    found = []
    for start, end in zip(starts, ends, strict=True):
        try:
            found.append(parse(bytes(buffer[start:end])))
        except ValueError as error:
            report(start, str(error))
    yield found

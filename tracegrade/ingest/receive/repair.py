"""Text of a protobuf message that is no UTF-8, replaced, so that one bad attribute does not cost a whole batch."""

from __future__ import annotations

from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor

from tracegrade.ingest import wire
from tracegrade.ingest.text import decode

_MAX_DEPTH: Final = 100


def with_valid_text(body: bytes, descriptor: Any, depth: int = 0) -> bytes:
    """The same message with every `string` field made valid UTF-8.

    Args:
        body: a message on the wire.
        descriptor: its type, a protobuf Descriptor of either implementation.
        depth: how deep it is nested.

    Raises:
        ValueError: it is no message on the wire, or is nested deeper than protobuf allows.
    """
    if depth > _MAX_DEPTH:
        raise ValueError("nested too deeply")
    out = bytearray()
    for number, kind, start, end in wire.fields(body, 0, len(body)):
        content = body[start:end]
        out += varint(number << 3 | kind)
        if kind == wire.LENGTH:
            field = descriptor.fields_by_number.get(number)
            if field is not None and field.type == FieldDescriptor.TYPE_STRING:
                content = decode(content).encode()
            elif field is not None and field.message_type is not None:
                content = with_valid_text(content, field.message_type, depth + 1)
            out += varint(len(content))
        out += content
    return bytes(out)


def varint(value: int) -> bytes:
    """A number of at most 64 bits as protobuf writes it.

    >>> varint(300)
    b'\\xac\\x02'
    """
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)

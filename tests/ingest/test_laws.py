"""What holds for any spans: every encoding gives the same rows, and no order changes them."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ingest.spans import Reader, in_order, json_document, json_line, proto_message, spans
from tracegrade.model.span import Span

LAWS = settings(max_examples=40, deadline=None)


def framed(messages: list[bytes]) -> bytes:
    return b"".join(len(m).to_bytes(4, "big") + m for m in messages)


def varint_delimited(messages: list[bytes]) -> bytes:
    from google.protobuf.internal.encoder import _VarintBytes  # type: ignore[attr-defined]

    return b"".join(_VarintBytes(len(m)) + m for m in messages)


@LAWS
@given(found=spans())
def test_protobuf_and_json_of_the_same_spans_give_the_same_rows(found: list[Span], reader: Reader) -> None:
    expected = in_order(found)
    assert reader.read(proto_message(found).SerializeToString()) == expected
    assert reader.read(json_line(found)) == expected


@LAWS
@given(found=spans())
def test_every_framing_gives_the_same_rows(found: list[Span], reader: Reader) -> None:
    expected = in_order(found)
    messages = [proto_message([s]).SerializeToString() for s in found]
    assert reader.read(b"".join(messages)) == expected
    assert reader.read(framed(messages)) == expected
    assert reader.read(varint_delimited(messages)) == expected
    documents = [json_document([s]) for s in found]
    assert reader.read(json.dumps(documents).encode()) == expected
    assert reader.read(b"".join(json.dumps(d, indent=2).encode() for d in documents)) == expected
    assert reader.read(b" ".join(json.dumps(d, ensure_ascii=False).encode() for d in documents)) == expected
    assert reader.read(framed([json.dumps(d).encode() for d in documents])) == expected


@LAWS
@given(found=spans(), data=st.data())
def test_the_order_and_division_of_input_change_nothing(found: list[Span], data: st.DataObject, reader: Reader) -> None:
    expected = in_order(found)
    shuffled = data.draw(st.permutations(found))
    cut = data.draw(st.integers(0, len(shuffled)))
    parts = [part for part in (shuffled[:cut], shuffled[cut:]) if part]
    assert reader.read(*(json_line(part) for part in parts)) == expected
    assert reader.read(b"".join(json_line([s]) for s in shuffled)) == expected
    assert reader.read(*(proto_message(part).SerializeToString() for part in reversed(parts))) == expected


@LAWS
@given(found=spans(), copies=st.integers(2, 4))
def test_copies_in_any_encoding_are_one_span_each(found: list[Span], copies: int, reader: Reader) -> None:
    twice, report, _ = reader.load(
        json_line(found) * copies, proto_message(found).SerializeToString(), json.dumps(json_document(found)).encode()
    )
    assert twice == in_order(found)
    assert report.spans_read == len(found) * (copies + 2)
    assert report.duplicates_dropped == len(found) * (copies + 1)
    assert report.conflicts_total == 0

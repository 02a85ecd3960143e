"""Spans that opentelemetry-sdk holds in this process, as the OTLP that the readers read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan


class HoldsSpans(Protocol):
    """What an `InMemorySpanExporter` is to us."""

    def get_finished_spans(self) -> Sequence[ReadableSpan]:
        """The spans that have ended."""


def encode(spans: HoldsSpans | Sequence[ReadableSpan]) -> bytes:
    """Finished spans as one bare OTLP protobuf request.

    Args:
        spans: the spans, or an in-memory exporter that holds them.
    """
    finished = spans if isinstance(spans, Sequence) else spans.get_finished_spans()
    return encode_spans(finished).SerializeToString()

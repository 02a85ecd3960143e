"""One export request: decoded, checked, and ready to be written; and what to answer.

A span or log record without a valid id or of the wrong shape is rejected alone, and the answer says so (OTLP 1.x,
"partial success"); a request that cannot be decoded at all is refused as a whole and must not be sent again.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any, Final, Literal

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from tracegrade.ingest import json_text
from tracegrade.ingest.ids import hex_id
from tracegrade.ingest.receive.repair import varint, with_valid_text
from tracegrade.ingest.text import dumps
from tracegrade.model.values import JSON

Signal = Literal["traces", "logs", "metrics"]

INVALID_ARGUMENT: Final = 3
UNAVAILABLE: Final = 14


class BadRequest(ValueError):
    """The request cannot be decoded; sending it again would not help."""


@dataclass(frozen=True, slots=True)
class _Shape:
    request: type[Message]
    response: type[Message]
    top: tuple[str, str]
    scopes: tuple[str, ...]
    records: tuple[str, ...]
    rejected: str


_SHAPES: Final[dict[Signal, _Shape]] = {
    "traces": _Shape(
        trace_service_pb2.ExportTraceServiceRequest,
        trace_service_pb2.ExportTraceServiceResponse,
        ("resourceSpans", "resource_spans"),
        ("scopeSpans", "scope_spans", "instrumentationLibrarySpans"),
        ("spans",),
        "rejected_spans",
    ),
    "logs": _Shape(
        logs_service_pb2.ExportLogsServiceRequest,
        logs_service_pb2.ExportLogsServiceResponse,
        ("resourceLogs", "resource_logs"),
        ("scopeLogs", "scope_logs"),
        ("logRecords", "log_records"),
        "rejected_log_records",
    ),
    "metrics": _Shape(
        metrics_service_pb2.ExportMetricsServiceRequest,
        metrics_service_pb2.ExportMetricsServiceResponse,
        ("resourceMetrics", "resource_metrics"),
        ("scopeMetrics", "scope_metrics"),
        ("metrics",),
        "rejected_data_points",
    ),
}
_ID_KEYS: Final = frozenset({"traceId", "spanId", "parentSpanId"})


@dataclass(frozen=True, slots=True)
class Export:
    """What one request holds.

    Attributes:
        signal: of the request.
        line: the request as one line of OTLP/JSON with its line feed; empty where nothing is left of it.
        accepted: number of spans, log records or metrics in `line`.
        rejected: number of those left out.
        reason: why the first of them was.
    """

    signal: Signal
    line: bytes
    accepted: int
    rejected: int = 0
    reason: str = ""


def decode_proto(signal: Signal, body: bytes) -> Export:
    """Read a protobuf request; text that is no UTF-8 becomes U+FFFD.

    Raises:
        BadRequest: it is no such message.
    """
    request = _SHAPES[signal].request
    try:
        message = request.FromString(body)
    except DecodeError:
        try:
            message = request.FromString(with_valid_text(body, request.DESCRIPTOR))
        except (DecodeError, ValueError, RecursionError):
            raise BadRequest(f"the body is no {request.DESCRIPTOR.name} in protobuf") from None
    document = MessageToDict(message, use_integers_for_enums=True)
    _hex_ids(document)
    return _checked(signal, document)


def decode_json(signal: Signal, body: bytes) -> Export:
    """Read a JSON request.

    Raises:
        BadRequest: it is no JSON object of this signal.
    """
    try:
        document = json_text.parse(body)
    except json_text.Broken as error:
        raise BadRequest(f"the body is no JSON: {error}") from None
    shape = _SHAPES[signal]
    if not isinstance(document, dict) or (document and not any(k in document for k in shape.top)):
        found = json_text.describe(document)
        raise BadRequest(f"the body is {found}; an object with `{shape.top[0]}` was expected")
    return _checked(signal, document)


def _hex_ids(value: Any) -> None:
    """Protobuf's JSON writes ids as base64; OTLP/JSON has them in hex."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in _ID_KEYS and isinstance(inner, str):
                value[key] = base64.b64decode(inner).hex()
            else:
                _hex_ids(inner)
    elif isinstance(value, list):
        for inner in value:
            _hex_ids(inner)


def _checked(signal: Signal, document: dict[str, JSON]) -> Export:
    shape = _SHAPES[signal]
    accepted = rejected = 0
    reason = ""
    for scope in _scopes(document, shape):
        for name in shape.records:
            records = scope.get(name)
            if not isinstance(records, list):
                continue
            kept = []
            for record in records:
                problem = _problem(signal, record)
                if problem:
                    rejected += 1
                    reason = reason or problem
                else:
                    kept.append(record)
            accepted += len(kept)
            scope[name] = kept
    line = dumps(document) + b"\n" if accepted else b""
    return Export(signal, line, accepted, rejected, reason)


def _scopes(document: dict[str, JSON], shape: _Shape) -> list[dict[str, JSON]]:
    found = []
    for top in shape.top:
        for resource in _objects(document.get(top)):
            for key in shape.scopes:
                found += _objects(resource.get(key))
    return found


def _objects(value: JSON) -> list[dict[str, JSON]]:
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []


def _problem(signal: Signal, record: JSON) -> str:
    if not isinstance(record, dict):
        return "a record is no object"
    if signal != "traces":
        return ""
    for camel, snake, digits in (("traceId", "trace_id", 32), ("spanId", "span_id", 16)):
        if hex_id(record.get(camel, record.get(snake)), digits) is None:
            return f"a span has no valid `{camel}`: {digits} hex digits that are not all zeros were expected"
    return ""


def answer(export: Export, *, json: bool) -> bytes:
    """The body of a successful answer, in the encoding of the request."""
    shape = _SHAPES[export.signal]
    response: Any = shape.response()
    if export.rejected:
        setattr(response.partial_success, shape.rejected, export.rejected)
        response.partial_success.error_message = export.reason
    if json:
        return dumps(MessageToDict(response))
    encoded: bytes = response.SerializeToString()
    return encoded


def failure(code: int, message: str, *, json: bool) -> bytes:
    """The body of a refusal: a `google.rpc.Status`."""
    if json:
        return dumps({"code": code, "message": message})
    text = message.encode("utf-8", "replace")
    return bytes([0x08, code, 0x12]) + varint(len(text)) + text

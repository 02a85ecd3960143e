"""Send log events where telemetry goes: to an OTLP endpoint, or into a file that any OTLP reader reads."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from tracegrade.errors import UsageError
from tracegrade.ingest.otlp_write import write_spans
from tracegrade.model.span import LogRecord

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk._logs.export import LogRecordExporter

BATCH: Final = 500
_LOGS_PATH: Final = "/v1/logs"


def is_endpoint(target: str) -> bool:
    """Whether a target is an address, not a file."""
    return target.startswith(("http://", "https://"))


def emit_events(records: Sequence[LogRecord], target: str) -> int:
    """Write log events to a file or send them to an endpoint.

    Args:
        records: the events, in order. All share the resource and scope of the first.
        target: `http://…` or `https://…` of an OTLP/HTTP endpoint (`/v1/logs` is added to a bare address; headers and
            certificates come from the `OTEL_EXPORTER_OTLP_…` variables), else a file, its format told by its ending.

    Returns:
        How many were written.

    Raises:
        UsageError: the file cannot be written, the endpoint refused a batch, or the exporter is not installed.
    """
    if not is_endpoint(target):
        try:
            write_spans((), Path(target), logs=records)
        except OSError as error:
            raise UsageError(f"--emit-otel {target}: cannot be written: {error.strerror or error}") from error
        return len(records)
    if find_spec("opentelemetry.exporter.otlp.proto.http") is None:
        raise UsageError(
            f"--emit-otel {target}: sending needs opentelemetry-exporter-otlp-proto-http: "
            "pip install 'tracegrade[http]', or give a file"
        )
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter

    address = target if urlsplit(target).path.strip("/") else target.rstrip("/") + _LOGS_PATH
    exporter = OTLPLogExporter(endpoint=address)
    try:
        _export(records, exporter, target)
    finally:
        exporter.shutdown()  # type: ignore[no-untyped-call]
    return len(records)


def _export(records: Sequence[LogRecord], exporter: LogRecordExporter, target: str) -> None:
    """Make the records with the SDK and export them batch by batch, so that a refusal is seen."""
    from opentelemetry._logs import SeverityNumber
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import (
        InMemoryLogRecordExporter,
        LogRecordExportResult,
        SimpleLogRecordProcessor,
    )
    from opentelemetry.sdk.resources import Resource

    if not records:
        return
    first = records[0]
    memory = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]
    provider = LoggerProvider(resource=Resource(first.resource), shutdown_on_exit=False)
    provider.add_log_record_processor(SimpleLogRecordProcessor(memory))
    logger = provider.get_logger(first.scope_name, first.scope_version)
    source = iter(records)
    sent = 0
    while batch := list(islice(source, BATCH)):
        for record in batch:
            logger.emit(
                timestamp=record.time_ns,
                observed_timestamp=record.time_ns,
                context=_context(record),
                severity_number=SeverityNumber(record.severity),
                body=record.body,
                attributes=record.attributes,
                event_name=record.event_name,
            )
        if exporter.export(memory.get_finished_logs()) is not LogRecordExportResult.SUCCESS:
            raise UsageError(f"--emit-otel {target}: the endpoint refused events, after {sent} of {len(records)}")
        sent += len(batch)
        memory.clear()


def _context(record: LogRecord) -> Context:
    """The span that the event belongs to, as the SDK passes it along."""
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

    span = SpanContext(
        trace_id=int(record.trace_id or "0", 16),
        span_id=int(record.span_id or "0", 16),
        is_remote=True,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )
    return set_span_in_context(NonRecordingSpan(span))

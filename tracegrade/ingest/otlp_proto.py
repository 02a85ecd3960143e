"""OTLP protobuf → rows.

What cannot be read costs only itself: a message that does not parse goes to `proto_salvage`, record by record.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf.message import DecodeError

from tracegrade.ingest import thin, wire
from tracegrade.ingest.ids import bytes_id
from tracegrade.ingest.intake import Intake, SpanRow
from tracegrade.ingest.log_rows import log_row
from tracegrade.ingest.options import ReadOptions
from tracegrade.ingest.proto_values import ProtoValues, TooDeep, remember
from tracegrade.ingest.text import INT64_MAX, decode, dumps
from tracegrade.model.values import JSON

_NO_TRACE, _NO_SPAN = bytes(16), bytes(8)
_SHORT: Final = 96


class ProtoDecoder:
    """Decodes OTLP messages of one input into its intake.

    Args:
        intake: takes rows, reasons and counts.
        options: limits.
    """

    def __init__(self, intake: Intake, options: ReadOptions) -> None:
        self.intake = intake
        self.options = options
        self._values = ProtoValues(options, intake.warn)
        self._names: dict[bytes, str] = {}
        self._statuses: dict[bytes, tuple[int, str]] = {}
        self._rows: list[SpanRow] = []
        self._texts: list[bytes] = []
        self._traces = thin.message("trace.v1.TracesData")
        self._logs = thin.message("logs.v1.LogsData")
        self._status_type = thin.message("trace.v1.Status")

    def message(self, raw: bytes, signal: str, offset: int) -> None:
        """Decode one request or a run of concatenated ones, all of one signal.

        Args:
            raw: the bytes; every top-level field is one Resource… message.
            signal: as `wire.signal_of` says.
            offset: position of `raw` in the unpacked file, for messages.
        """
        if signal == "traces":
            self._decode(raw, self._traces, self._spans, offset)
        elif signal == "logs":
            self._decode(raw, self._logs, self._log_records, offset)
        else:
            self.intake.signal(signal, _count_records(raw))

    def _decode(self, raw: bytes, kind: Any, take: Any, offset: int) -> None:
        data = kind()
        try:
            data.ParseFromString(raw)
        except DecodeError:
            from tracegrade.ingest.proto_salvage import salvage

            salvage(self, raw, "traces" if kind is self._traces else "logs", offset)
            return
        take(data, offset)
        self.settle()

    def settle(self) -> None:
        """Hand on the spans that were taken."""
        self.intake.add_spans(self._rows, self._texts)
        self._rows.clear()
        self._texts.clear()

    def _spans(self, data: Any, offset: int) -> None:
        where = f"byte {offset}"
        for resource_spans in data.resource_spans:
            resource = self.attributes(resource_spans.resource.attributes, where)
            for scope_spans in resource_spans.scope_spans:
                url = decode(scope_spans.schema_url or resource_spans.schema_url)
                origin = self.origin(resource, scope_spans.scope, url, where)
                for span in scope_spans.spans:
                    self.take_span(span, origin, where)

    def _log_records(self, data: Any, offset: int) -> None:
        where = f"byte {offset}"
        for resource_logs in data.resource_logs:
            resource = self.attributes(resource_logs.resource.attributes, where)
            for scope_logs in resource_logs.scope_logs:
                url = decode(scope_logs.schema_url or resource_logs.schema_url)
                origin = self.origin(resource, scope_logs.scope, url, where)
                for record in scope_logs.log_records:
                    self.take_log(record, origin, where)

    def origin(self, resource: dict[str, JSON], scope: Any, url: str, where: str) -> int:
        """The id of a resource and a scope message; see `Intake.origin`."""
        attributes = self.attributes(scope.attributes, where)
        return self.intake.origin(resource, decode(scope.name), decode(scope.version), attributes, url)

    def take_span(self, span: Any, origin: int, where: str) -> None:
        """Take one span message; `settle` hands it on."""
        trace, own, parent = span.trace_id, span.span_id, span.parent_span_id
        if len(trace) == 16 and len(own) == 8 and trace != _NO_TRACE and own != _NO_SPAN:
            trace_id, span_id = trace.hex(), own.hex()
        else:
            found = self._odd_ids(span, where)
            if found is None:
                return
            trace_id, span_id = found
        start, end = span.start_time_unix_nano, span.end_time_unix_nano
        if start > INT64_MAX or end > INT64_MAX:
            self.intake.skip(where, f"a time of {max(start, end)} ns is beyond the year 2262", span_id)
            return
        lost = 0
        get, slow = self._values.memo.get, self._values.fragment
        try:
            text = b",".join([get(kv) or slow(kv) for kv in span.attributes])
        except (ValueError, IndexError, DecodeError):
            values, lost = self._values.exact(span.attributes, where, span_id)
            text = dumps(values)[1:-1]
        name, state, kind = span.name, span.trace_state, span.kind
        code, message = self._statuses.get(span.status) or self._status(span.status)
        events, links = span.events, span.links
        self._texts.append(text)
        self._rows.append(
            (
                trace_id,
                span_id,
                parent.hex() if len(parent) == 8 and parent != _NO_SPAN else bytes_id(parent, 16),
                self._names.get(name) or self._name(name),
                kind if 0 <= kind <= 5 else 0,
                start or None,
                end or None,
                code,
                message,
                self._events(events, where, span_id) if events else None,
                self._links(links, where) if links else None,
                origin,
                decode(state) if state else "",
                span.flags,
                span.dropped_attributes_count + lost,
                span.dropped_events_count,
                span.dropped_links_count,
                1,
            )
        )

    def _odd_ids(self, span: Any, where: str) -> tuple[str, str] | None:
        """The ids of a span in a form that a wrong reader made of them; None, with the reason, if there are none."""
        trace_id, span_id = bytes_id(span.trace_id, 32), bytes_id(span.span_id, 16)
        if trace_id is not None and span_id is not None:
            return trace_id, span_id
        reason = (
            f"span {decode(span.name)!r} has the trace id `{span.trace_id.hex()}` and the span id "
            f"`{span.span_id.hex()}`; 16 and 8 bytes that are not all zeros were expected"
        )
        self.intake.skip(where, reason, span_id or span.span_id.hex() or None)
        return None

    def _name(self, raw: bytes) -> str:
        name = decode(raw)
        if len(raw) <= _SHORT:
            remember(self._names, raw, name)
        return name

    def _status(self, raw: bytes) -> tuple[int, str]:
        """Code and message of a status; one that is malformed counts as not set."""
        try:
            status = self._status_type.FromString(raw)
        except DecodeError:
            return 0, ""
        found = (status.code if 0 <= status.code <= 2 else 0, decode(status.message))
        remember(self._statuses, raw, found)
        return found

    def attributes(self, raw: Any, where: str) -> dict[str, JSON]:
        """The attributes of a resource, scope or link."""
        return self._values.exact(raw, where, None)[0]

    def _events(self, events: Any, where: str, span_id: str) -> bytes:
        found = []
        for event in events:
            values, lost = self._values.exact(event.attributes, where, span_id)
            time = event.time_unix_nano
            found.append(
                {
                    "name": decode(event.name),
                    "time_ns": time if 0 < time <= INT64_MAX else None,
                    "attributes": values,
                    "dropped_attributes": event.dropped_attributes_count + lost,
                }
            )
        return dumps(found)

    def _links(self, links: Any, where: str) -> bytes | None:
        found = []
        for link in links:
            trace_id, span_id = bytes_id(link.trace_id, 32), bytes_id(link.span_id, 16)
            if trace_id is None or span_id is None:
                self.intake.warn(where, "a link without a valid id was dropped")
                continue
            values = self.attributes(link.attributes, where)
            found.append({"trace_id": trace_id, "span_id": span_id, "attributes": values})
        return dumps(found) if found else None

    def take_log(self, record: Any, origin: int, where: str) -> None:
        """Take one log record message."""
        values, _ = self._values.exact(record.attributes, where, None)
        try:
            body = self._values.any_value(record.body, 0)
        except (TooDeep, DecodeError):
            self.intake.skip(where, f"a log body is malformed or nested deeper than {self.options.max_depth} levels")
            return
        cut = self._values.cut(body)
        if cut is not None:
            body, size = cut
            self.intake.warn(where, f"a log body of {size} bytes was cut to {self.options.max_value_bytes}")
        time = record.time_unix_nano or record.observed_time_unix_nano
        self.intake.add_log(
            log_row(
                bytes_id(record.trace_id, 32),
                bytes_id(record.span_id, 16),
                time if 0 < time <= INT64_MAX else None,
                decode(record.event_name),
                record.severity_number,
                body,
                values,
                origin,
            )
        )


def _count_records(raw: bytes) -> int:
    """Number of records (metrics, profiles) in a message."""
    count = 0
    try:
        for _, kind, a, b in wire.fields(raw, 0, len(raw)):
            for number_, kind, c, d in wire.fields(raw, a, b):
                if number_ == 2 and kind == wire.LENGTH:
                    count += sum(n == 2 for n, *_ in wire.fields(raw, c, d))
    except wire.WireError:
        pass
    return count

"""OTLP/JSON → rows, in the spelling of the specification and in those that exporters really write.

Requests, one ResourceSpans, ScopeSpans or span alone, Tempo's `batches` and `trace`; camelCase or snake_case; ids in
hex or base64; 64-bit numbers as numbers or text; enums by number or name; every optional field missing or null.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from tracegrade.ingest.ids import hex_id
from tracegrade.ingest.intake import Intake, cleaned
from tracegrade.ingest.log_rows import log_row
from tracegrade.ingest.options import ReadOptions
from tracegrade.ingest.proto_values import TooDeep
from tracegrade.ingest.text import INT64_MAX, INT64_MIN, clean, cut_utf8, dumps, number, printable
from tracegrade.model.values import JSON

_SPAN_KEYS: Final = ("resourceSpans", "resource_spans", "batches")
_LOG_KEYS: Final = ("resourceLogs", "resource_logs")
_OTHER: Final = {
    "resourceMetrics": ("metrics", "scopeMetrics", "metrics"),
    "resource_metrics": ("metrics", "scope_metrics", "metrics"),
    "resourceProfiles": ("profiles", "scopeProfiles", "profiles"),
    "resource_profiles": ("profiles", "scope_profiles", "profiles"),
}
_SCOPE_KEYS: Final = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans", "instrumentation_library_spans")
_SCOPE_LOG_KEYS: Final = ("scopeLogs", "scope_logs", "instrumentationLibraryLogs", "instrumentation_library_logs")
_RECORD_KEYS: Final = ("logRecords", "log_records", "logs")
_CAMEL: Final = {
    "trace_id": "traceId",
    "span_id": "spanId",
    "parent_span_id": "parentSpanId",
    "trace_state": "traceState",
    "start_time_unix_nano": "startTimeUnixNano",
    "end_time_unix_nano": "endTimeUnixNano",
    "time_unix_nano": "timeUnixNano",
    "observed_time_unix_nano": "observedTimeUnixNano",
    "dropped_attributes_count": "droppedAttributesCount",
    "dropped_events_count": "droppedEventsCount",
    "dropped_links_count": "droppedLinksCount",
    "severity_number": "severityNumber",
    "event_name": "eventName",
    "schema_url": "schemaUrl",
}
_KINDS: Final = {"unspecified": 0, "internal": 1, "server": 2, "client": 3, "producer": 4, "consumer": 5}
_STATUS: Final = {"unset": 0, "ok": 1, "error": 2}

EXPECTED: Final = (
    "OTLP/JSON: an object with `resourceSpans`, `resourceLogs`, `batches` or `trace`, "
    "or one ResourceSpans, ScopeSpans or span a line"
)


class BadSpan(ValueError):
    """One span or record cannot be read; the text says why."""


def otlp_shape(doc: JSON) -> str | None:
    """What part of OTLP/JSON a document is: `request`, `resource`, `scope`, `span`, or None for something else."""
    if not isinstance(doc, dict):
        return None
    keys = doc.keys()
    if any(k in keys for k in (*_SPAN_KEYS, *_LOG_KEYS, *_OTHER)):
        return "request"
    inner = doc.get("trace") or doc.get("result")  # Tempo; Jaeger 2
    if isinstance(inner, dict) and any(k in inner for k in _SPAN_KEYS):
        return "request"
    if any(k in keys for k in (*_SCOPE_KEYS, *_SCOPE_LOG_KEYS, "scopeMetrics", "scope_metrics")):
        return "resource"
    for name in ("spans", *_RECORD_KEYS):
        items = doc.get(name)
        if isinstance(items, list) and ("scope" in keys or (items and _record_shape(items[0]))):
            return "scope"
    return "span" if _record_shape(doc) else None


def _record_shape(doc: JSON) -> bool:
    """Whether a document is one span or log record: OTLP's own field names, attributes as a list of pairs."""
    if not isinstance(doc, dict) or not isinstance(doc.get("attributes", []), (list, type(None))):
        return False
    if _is_log(doc):
        return True
    ids = ("traceId" in doc and "spanId" in doc) or ("trace_id" in doc and "span_id" in doc)
    return ids and any(k in doc for k in ("startTimeUnixNano", "start_time_unix_nano", "endTimeUnixNano"))


def _is_log(doc: dict[str, JSON]) -> bool:
    times = ("timeUnixNano", "time_unix_nano", "observedTimeUnixNano", "observed_time_unix_nano")
    return any(k in doc for k in times) and any(
        k in doc for k in ("body", "severityNumber", "severity_number", "eventName", "event_name", "severityText")
    )


class JsonDecoder:
    """Decodes OTLP/JSON documents of one input into its intake.

    Args:
        intake: takes rows, reasons and counts.
        options: limits.
    """

    def __init__(self, intake: Intake, options: ReadOptions) -> None:
        self.intake = intake
        self.options = options

    def document(self, doc: dict[str, Any], shape: str, where: str) -> None:
        """Take one document of the shape that `otlp_shape` told."""
        if shape == "span":
            origin = self.intake.origin({}, "", "")
            (self._log if _is_log(doc) else self._span)(doc, origin, where)
        elif shape == "scope":
            self._scope(doc, {}, "", where)
        elif shape == "resource":
            self._resource(doc, where)
        else:
            self._request(doc, where)

    def _request(self, doc: dict[str, Any], where: str) -> None:
        inner = doc.get("trace") or doc.get("result")
        if isinstance(inner, dict):
            self._request(inner, where)
        for key in (*_SPAN_KEYS, *_LOG_KEYS):
            for item in _list(doc.get(key)):
                if isinstance(item, dict):
                    self._resource(item, where)
                else:
                    self.intake.skip(where, f"`{key}` holds {printable(item)} where an object was expected")
        for key, (signal, scopes, records) in _OTHER.items():
            for resource in _list(doc.get(key)):
                for scope in _list(resource.get(scopes) if isinstance(resource, dict) else None):
                    if isinstance(scope, dict):
                        self.intake.signal(signal, len(_list(scope.get(records))))

    def _resource(self, doc: dict[str, Any], where: str) -> None:
        resource = _dict(doc.get("resource"))
        url = _string(doc.get("schemaUrl") or doc.get("schema_url"))
        for key in (*_SCOPE_KEYS, *_SCOPE_LOG_KEYS):
            for scope in _list(doc.get(key)):
                if isinstance(scope, dict):
                    self._scope(scope, resource, url, where)
                else:
                    self.intake.skip(where, f"`{key}` holds {printable(scope)} where an object was expected")

    def origin(self, resource: dict[str, Any], scope: dict[str, Any], url: str, where: str) -> int:
        """The id of a resource and a scope object; see `Intake.origin`."""
        return self.intake.origin(
            self._attributes(resource.get("attributes"), where, None)[0],
            _string(scope.get("name")),
            _string(scope.get("version")),
            self._attributes(scope.get("attributes"), where, None)[0],
            clean(url),
        )

    def _scope(self, doc: dict[str, Any], resource: dict[str, Any], url: str, where: str) -> None:
        scope = _dict(doc.get("scope") or doc.get("instrumentationLibrary") or doc.get("instrumentation_library"))
        own_url = _string(doc.get("schemaUrl") or doc.get("schema_url"))
        origin = self.origin(resource, scope, own_url or url, where)
        for span in _list(doc.get("spans")):
            self._span(span, origin, where)
        for key in _RECORD_KEYS:
            for record in _list(doc.get(key)):
                self._log(record, origin, where)

    def _span(self, span: Any, origin: int, where: str) -> None:
        try:
            self._take_span(span, origin, where)
        except BadSpan as error:
            found = span.get("spanId", span.get("span_id")) if isinstance(span, dict) else None
            self.intake.skip(where, str(error), found if isinstance(found, str) and found else None)

    def _take_span(self, span: Any, origin: int, where: str) -> None:
        if not isinstance(span, dict):
            raise BadSpan(f"{printable(span)} stands where a span was expected")
        if "trace_id" in span or "span_id" in span:
            span = {_CAMEL.get(k, k): v for k, v in span.items()}
        trace_id, span_id = hex_id(span.get("traceId"), 32), hex_id(span.get("spanId"), 16)
        if trace_id is None or span_id is None:
            field, found = ("traceId", span.get("traceId")) if trace_id is None else ("spanId", span.get("spanId"))
            size = 32 if trace_id is None else 16
            raise BadSpan(f"`{field}` is {printable(found)}; {size} hex digits that are not all zeros were expected")
        parent = span.get("parentSpanId")
        parent_id = hex_id(parent, 16) if parent else None
        if parent and parent_id is None and str(parent).strip("0"):
            self.intake.warn(where, f"`parentSpanId` is {printable(parent)}, no span id; taken as no parent", span_id)
        text, lost = self._attribute_text(span.get("attributes"), where, span_id)
        code, message = self.status(span.get("status"))
        events, links = span.get("events"), span.get("links")
        row = (
            trace_id,
            span_id,
            parent_id,
            _string(span.get("name")),
            _enum(span.get("kind"), _KINDS, "SPAN_KIND_"),
            _time(span, "startTimeUnixNano"),
            _time(span, "endTimeUnixNano"),
            code,
            message,
            self.events(events, where, span_id) if events else None,
            self.links(links, where, span_id) if links else None,
            origin,
            _string(span.get("traceState")),
            _count(span.get("flags")),
            _count(span.get("droppedAttributesCount")) + lost,
            _count(span.get("droppedEventsCount")),
            _count(span.get("droppedLinksCount")),
            1,
        )
        self.intake.add_spans([row], [text[1:-1]])

    def status(self, status: Any) -> tuple[int, str]:
        """Code and message of a status object."""
        found = _dict(status)
        return _enum(found.get("code"), _STATUS, "STATUS_CODE_"), _string(found.get("message"))

    def _attribute_text(self, raw: Any, where: str, span_id: str) -> tuple[bytes, int]:
        """Attributes as JSON text; the usual case of texts and plain numbers first."""
        if not raw:
            return b"{}", 0
        try:
            text = orjson.dumps({kv["key"]: self._plain(kv["value"]) for kv in raw})
            if b"\\u0000" not in text:
                return text, 0
        except (TypeError, KeyError, ValueError, AttributeError):
            pass
        values, lost = self._attributes(raw, where, span_id)
        return dumps(values), lost

    def _plain(self, value: dict[str, Any]) -> JSON:
        """A value of the usual shape.

        Raises:
            TypeError, KeyError, ValueError, AttributeError: an unusual one; the exact way decides.
        """
        text = value.get("stringValue")
        if text is not None:
            if len(value) != 1 or len(text) * 4 > self.options.max_value_bytes:
                raise ValueError
            return text + ""
        plain = self.any_value(value, 0)
        if isinstance(plain, _Unreadable):
            raise ValueError
        return plain

    def _attributes(self, raw: Any, where: str, span_id: str | None) -> tuple[dict[str, JSON], int]:
        """Attributes one by one, with every oddity handled; the second value counts those that were lost."""
        values: dict[str, JSON] = {}
        lost = 0
        pairs = [{"key": k, "value": v} for k, v in raw.items()] if isinstance(raw, dict) else _list(raw)
        for pair in pairs:
            reason = ""
            key = clean(_string(pair.get("key"))) if isinstance(pair, dict) else "?"
            try:
                if not isinstance(pair, dict) or "key" not in pair:
                    raise BadSpan(f"{printable(pair)} stands where an attribute was expected")
                value = pair.get("value")
                value = cleaned(value) if isinstance(raw, dict) else self.any_value(value, 0)
            except TooDeep:
                reason = f"attribute {key!r} is nested deeper than {self.options.max_depth} levels and was dropped"
            except BadSpan as error:
                reason = f"attribute {key!r} was dropped: {error}"
            else:
                value, reason = self._checked(key, value)
                values[key] = value
            if reason:
                self.intake.warn(where, reason, span_id)
                lost += 1
        return values, lost

    def _checked(self, key: str, value: JSON) -> tuple[JSON, str]:
        """The value, cut where it is over the limit, and what was lost."""
        limit = self.options.max_value_bytes
        if isinstance(value, _Unreadable):
            return str(value), f"attribute {key!r}: intValue {printable(str(value))} is no 64-bit integer; kept as text"
        if isinstance(value, str) and len(value) * 4 > limit:
            size = len(value.encode("utf-8", "replace"))
            if size > limit:
                return cut_utf8(value, limit), f"attribute {key!r} of {size} bytes was cut to {limit}"
        return value, ""

    def any_value(self, value: Any, depth: int) -> JSON:
        """The value of an AnyValue object, `depth` levels below an attribute.

        Raises:
            TooDeep: it is nested beyond the limit.
            BadSpan: it is no such object.
        """
        if value is None:
            return None
        if not isinstance(value, dict):
            raise BadSpan(f'{printable(value)} stands where a value such as {{"stringValue": …}} was expected')
        for key, content in value.items():
            convert = _CONVERT.get(key)
            if convert is not None and content is not None:
                return convert(content)
            if key in ("arrayValue", "array_value"):
                if depth >= self.options.max_depth:
                    raise TooDeep
                return [self.any_value(v, depth + 1) for v in _list(_dict(content).get("values"))]
            if key in ("kvlistValue", "kvlist_value"):
                if depth >= self.options.max_depth:
                    raise TooDeep
                pairs = [p for p in _list(_dict(content).get("values")) if isinstance(p, dict)]
                return {clean(_string(p.get("key"))): self.any_value(p.get("value"), depth + 1) for p in pairs}
        return None

    def events(self, events: Any, where: str, span_id: str) -> bytes | None:
        """Span events as JSON text; None where there are none."""
        found = []
        for event in _list(events):
            if not isinstance(event, dict):
                continue
            event = {_CAMEL.get(k, k): v for k, v in event.items()}
            values, lost = self._attributes(event.get("attributes"), where, span_id)
            try:
                time = _time(event, "timeUnixNano")
            except BadSpan as error:
                self.intake.warn(where, f"a span event: {error}", span_id)
                time = None
            found.append(
                {
                    "name": _string(event.get("name")),
                    "time_ns": time,
                    "attributes": values,
                    "dropped_attributes": _count(event.get("droppedAttributesCount")) + lost,
                }
            )
        return dumps(found) if found else None

    def links(self, links: Any, where: str, own_id: str) -> bytes | None:
        """Span links as JSON text; None where there are none."""
        found = []
        for link in _list(links):
            link = {_CAMEL.get(k, k): v for k, v in _dict(link).items()}
            trace_id, span_id = hex_id(link.get("traceId"), 32), hex_id(link.get("spanId"), 16)
            if trace_id is None or span_id is None:
                self.intake.warn(where, "a link without a valid id was dropped", own_id)
                continue
            values, _ = self._attributes(link.get("attributes"), where, own_id)
            found.append({"trace_id": trace_id, "span_id": span_id, "attributes": values})
        return dumps(found) if found else None

    def _log(self, record: Any, origin: int, where: str) -> None:
        if not isinstance(record, dict):
            self.intake.skip(where, f"{printable(record)} stands where a log record was expected")
            return
        record = {_CAMEL.get(k, k): v for k, v in record.items()}
        span_id = hex_id(record.get("spanId"), 16)
        try:
            time = _time(record, "timeUnixNano") or _time(record, "observedTimeUnixNano")
            body = self.any_value(record.get("body"), 0)
        except TooDeep:
            self.intake.skip(where, f"a log body is nested deeper than {self.options.max_depth} levels", span_id)
            return
        except BadSpan as error:
            self.intake.skip(where, f"a log record: {error}", span_id)
            return
        body, reason = self._checked("body", body)
        if reason:
            self.intake.warn(where, reason.replace("attribute 'body'", "a log body"), span_id)
        self.intake.add_log(
            log_row(
                hex_id(record.get("traceId"), 32),
                span_id,
                time,
                _string(record.get("eventName")),
                _enum(record.get("severityNumber"), {}, "SEVERITY_NUMBER_", top=24),
                body,
                self._attributes(record.get("attributes"), where, span_id)[0],
                origin,
            )
        )


class _Unreadable(str):
    """The text of an integer that cannot be read: kept, and reported."""

    __slots__ = ()


def _int(content: Any) -> JSON:
    if isinstance(content, bool):
        return _Unreadable(content)
    if isinstance(content, float) and content.is_integer():
        content = int(content)
    try:
        digits = content.removeprefix("-").isdigit() if isinstance(content, str) else isinstance(content, int)
        value = int(content) if digits else None
    except ValueError:
        value = None
    if value is None or not INT64_MIN <= value <= INT64_MAX:
        return _Unreadable(clean(str(content)))
    return value


def _double(content: Any) -> JSON:
    try:
        return number(float(content))
    except (TypeError, ValueError, OverflowError):
        return clean(str(content))


def _bool(content: Any) -> JSON:
    return content if isinstance(content, bool) else str(content).lower() == "true"


def _text(content: Any) -> JSON:
    return clean(content) if isinstance(content, str) else dumps(content).decode()


_CONVERT: Final = {
    "stringValue": _text,
    "string_value": _text,
    "intValue": _int,
    "int_value": _int,
    "doubleValue": _double,
    "double_value": _double,
    "boolValue": _bool,
    "bool_value": _bool,
    "bytesValue": _text,
    "bytes_value": _text,
}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _string(value: Any) -> str:
    if isinstance(value, str):
        return clean(value)
    return "" if value is None else str(value)


def _time(item: dict[str, Any], key: str) -> int | None:
    """Nanoseconds of a field; None where it is missing or 0.

    Raises:
        BadSpan: it is no time.
    """
    raw = item.get(key)
    if raw is None or raw == "":
        return None
    value: int | None = None
    if isinstance(raw, (int, str)) and not isinstance(raw, bool):
        try:
            value = int(raw)
        except ValueError:
            value = None
    elif isinstance(raw, float) and raw.is_integer():
        value = int(raw)
    if value is None or not 0 <= value <= INT64_MAX:
        raise BadSpan(f"`{key}` is {printable(raw)}; nanoseconds since 1970 were expected")
    return value or None


def _enum(value: Any, names: dict[str, int], prefix: str, top: int | None = None) -> int:
    """The number of an enum that is given by number or name; 0 for what is not known."""
    top = max(names.values()) if top is None else top
    if isinstance(value, str):
        name = value.upper().removeprefix(prefix).lower()
        if name in names:
            return names[name]
        if not name.isdecimal() or len(name) > 10:
            return _severity(name) if prefix.startswith("SEVERITY") else 0
        value = int(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= top else 0


def _severity(name: str) -> int:
    """A severity by name, such as `info` or `error2` (OpenTelemetry logs data model, SeverityNumber)."""
    names = ("trace", "debug", "info", "warn", "error", "fatal")
    base, step = (name[:-1], int(name[-1])) if name[-1:] in ("2", "3", "4") else (name, 1)
    return names.index(base) * 4 + step if base in names else 0


def _count(value: Any) -> int:
    """A 32-bit count or flags, 0 for what is none."""
    if isinstance(value, str) and value.isdecimal() and len(value) <= 10:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**32 else 0

"""A sink that remembers, and the one run that `fixtures/traces/formats` holds in every format."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tracegrade.ingest.formats import FORMATS, PARQUET_FORMATS, plain_rows
from tracegrade.model.span import LogRecord, Span


@dataclass
class Recorder:
    """A `Sink` that keeps everything."""

    spans: list[Span] = field(default_factory=list)
    logs: list[LogRecord] = field(default_factory=list)
    skipped: list[tuple[str, str, str | None]] = field(default_factory=list)
    signals: dict[str, int] = field(default_factory=dict)

    def span(self, span: Span, where: str) -> None:
        self.spans.append(span)

    def log(self, record: LogRecord, where: str) -> None:
        self.logs.append(record)

    def skip(self, where: str, reason: str, span_id: str | None = None) -> None:
        self.skipped.append((where, reason, span_id))

    def signal(self, name: str, count: int) -> None:
        self.signals[name] = self.signals.get(name, 0) + count

    @property
    def by_id(self) -> dict[str, Span]:
        return {s.span_id: s for s in self.spans}


def documents(text: str) -> Iterator[Any]:
    """The JSON documents of a text, one after another."""
    decoder, position = json.JSONDecoder(), 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        document, position = decoder.raw_decode(text, position)
        yield document


def convert(*found: Any) -> Recorder:
    """Read documents; each must be claimed by exactly one format."""
    sink = Recorder()
    for number, document in enumerate(found):
        claims = [f for f in FORMATS if f.matches(document)]
        assert [f.name for f in claims] == [claims[0].name] if claims else False, document
        claims[0].convert(document, sink, f"document {number + 1}")
    return sink


def convert_file(path: Path) -> Recorder:
    """Read a file of one of the formats."""
    if path.suffix != ".parquet":
        return convert(*documents(path.read_text(encoding="utf-8")))
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    claims = [f for f in PARQUET_FORMATS if f.matches(frozenset(table.column_names))]
    assert len(claims) == 1
    sink = Recorder()
    for batch in table.to_batches():
        claims[0].convert(plain_rows(batch), sink, 0)
    return sink


@pytest.fixture(scope="session")
def format_files(repo_root: Path) -> Path:
    """The folder with one run in many formats."""
    return repo_root / "fixtures" / "traces" / "formats"


@pytest.fixture(scope="session")
def original(format_files: Path) -> dict[str, dict[str, Any]]:
    """The run as OTLP has it, by span id: an oracle read with nothing but the json module."""
    return otlp_oracle(format_files / "otlp.json")


def otlp_oracle(path: Path) -> dict[str, dict[str, Any]]:
    """The spans of OTLP/JSON lines by id, with plain values."""
    found = {}
    for document in documents(path.read_text(encoding="utf-8")):
        for resource in document["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    found[span["spanId"]] = {
                        "trace_id": span["traceId"],
                        "parent": span.get("parentSpanId") or None,
                        "name": span["name"],
                        "start": int(span["startTimeUnixNano"]),
                        "end": int(span["endTimeUnixNano"]),
                        "status": _STATUS.index(span.get("status", {}).get("code", 0)) % 3,
                        "kind": _KIND.index(span.get("kind", 0)) % 6,
                        "attributes": _plain(span.get("attributes", [])),
                        "events": [(e["name"], _plain(e.get("attributes", []))) for e in span.get("events", [])],
                        "resource": _plain(resource["resource"]["attributes"]),
                        "scope": scope["scope"].get("name", ""),
                    }
    return found


_STATUS = [0, 1, 2, "STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR"]
_KIND = [
    0,
    1,
    2,
    3,
    4,
    5,
    *(f"SPAN_KIND_{k}" for k in ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")),
]


def _plain(pairs: list[dict[str, Any]]) -> dict[str, Any]:
    return {p["key"]: _value(p["value"]) for p in pairs}


def _value(value: dict[str, Any]) -> Any:
    ((kind, held),) = value.items()
    if kind == "intValue":
        return int(held)
    return [_value(v) for v in held["values"]] if kind == "arrayValue" else held

"""The formats that tracegrade reads besides OTLP: one module each.

A new one is one module that exports a `DocumentFormat` (JSON) or a `ParquetFormat`, added to the tuple below.
"""

from __future__ import annotations

from tracegrade.ingest.base import DocumentFormat
from tracegrade.ingest.formats.clickhouse import CLICKHOUSE, CLICKHOUSE_PARQUET
from tracegrade.ingest.formats.columns import ParquetFormat, plain_rows
from tracegrade.ingest.formats.console import PYTHON_CONSOLE
from tracegrade.ingest.formats.jaeger import JAEGER
from tracegrade.ingest.formats.js_objects import JS_OBJECTS
from tracegrade.ingest.formats.langfuse import LANGFUSE
from tracegrade.ingest.formats.mlflow import MLFLOW
from tracegrade.ingest.formats.otlp_parquet import OTLP_PARQUET
from tracegrade.ingest.formats.phoenix import PHOENIX, PHOENIX_PARQUET
from tracegrade.ingest.formats.zipkin import ZIPKIN

FORMATS: tuple[DocumentFormat, ...] = (
    JAEGER,
    ZIPKIN,
    PYTHON_CONSOLE,
    JS_OBJECTS,
    PHOENIX,
    LANGFUSE,
    CLICKHOUSE,
    MLFLOW,
)
"""No two of them claim one document."""

PARQUET_FORMATS: tuple[ParquetFormat, ...] = (PHOENIX_PARQUET, CLICKHOUSE_PARQUET, OTLP_PARQUET)
"""No two of them claim one table."""

__all__ = ["FORMATS", "PARQUET_FORMATS", "ParquetFormat", "plain_rows"]

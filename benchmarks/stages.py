"""What is measured: each stage is a function of the benchmark files that gives CPU seconds and a number of spans.

Every stage runs in a process of its own, so that its peak memory is its own, and is warmed up on a small file first, so
that imports and first queries do not count.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Result:
    """CPU seconds (user and system) of the best run, spans handled, peak resident memory in MiB of the process."""

    seconds: float
    spans: int
    peak_mib: int


Stage = Callable[[Path], int]
"""Does the work on one file and returns the number of spans."""


def measure(stage: Stage, file: Path, warm_up: Path, repeats: int) -> Result:
    """Run a stage some times and keep the cheapest run."""
    # DuckDB takes a process whose main module is no file for a person's session, and draws bars into the output.
    sys.modules["__main__"].__file__ = __file__
    stage(warm_up)
    best, spans = float("inf"), 0
    for _ in range(repeats):
        before = time.process_time()
        spans = stage(file)
        best = min(best, time.process_time() - before)
    return Result(best, spans, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


def bare_proto(file: Path) -> int:
    """The limit: `ParseFromString` over the whole file, nothing read."""
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    data = TracesData()
    data.ParseFromString(file.read_bytes())
    return sum(len(s.spans) for r in data.resource_spans for s in r.scope_spans)


_SPAN = """STRUCT(traceId VARCHAR, spanId VARCHAR, parentSpanId VARCHAR, name VARCHAR, kind INTEGER,
    startTimeUnixNano VARCHAR, endTimeUnixNano VARCHAR, flags BIGINT, attributes STRUCT("key" VARCHAR,
    "value" STRUCT(stringValue VARCHAR, intValue VARCHAR, doubleValue DOUBLE, boolValue BOOLEAN, arrayValue JSON))[])"""
_REQUEST = f"""STRUCT(resourceSpans STRUCT(resource JSON, scopeSpans STRUCT(scope JSON, spans {_SPAN}[])[])[])"""


_COLUMNS = "{'json': '" + _REQUEST.replace("\n", " ") + "'}"


def bare_json(file: Path) -> int:
    """The limit for JSON: DuckDB's typed read of the whole file into vectors, nothing kept."""
    import duckdb

    with duckdb.connect(config={"threads": "1"}) as connection:
        rows = connection.execute(
            """SELECT sum(list_sum(list_transform(json.resourceSpans, lambda r: list_sum(list_transform(r.scopeSpans,
                   lambda s: len(s.spans)))))), count(json)
               FROM read_json(?, format = 'newline_delimited', records = false, columns = {json: ?},
                   maximum_object_size = 67108864)""".replace("{json: ?}", _COLUMNS),
            [str(file)],
        ).fetchall()
    return int(rows[0][0])


def load(file: Path) -> int:
    """Read a file into a store in memory."""
    from tracegrade.app.load import load as load_files
    from tracegrade.store import Store

    with Store.open() as store:
        return load_files(store, [str(file)]).spans_distinct


def reconstruct(file: Path) -> int:
    """Load a file and rebuild every trajectory."""
    from tracegrade.app.collector import rare_collections
    from tracegrade.app.load import load as load_files
    from tracegrade.app.trajectories import iter_trajectories
    from tracegrade.store import Store

    with rare_collections(), Store.open() as store:
        spans = load_files(store, [str(file)]).spans_distinct
        for _ in iter_trajectories(store):
            pass
        return spans


def check(file: Path) -> int:
    """The whole of `check` with twenty rules: load, rebuild, check, roll up."""
    from tracegrade.app.check import CheckOptions, run_check

    report = run_check(CheckOptions(paths=[str(file)], invariants=[str(RULES)]))
    return report.summary.spans


def check_text(file: Path) -> int:
    """`check` with its report as text, as a terminal gets it."""
    from tracegrade.app.check import CheckOptions, run_check
    from tracegrade.report.text import render

    report = run_check(CheckOptions(paths=[str(file)], invariants=[str(RULES)]))
    if not render(report):
        raise ValueError("no report")
    return report.summary.spans


def check_one_trace(file: Path) -> int:
    """`check` with the core pack over one trace, however long."""
    from tracegrade.app.check import CheckOptions, run_check
    from tracegrade.ingest import ReadOptions

    report = run_check(CheckOptions(paths=[str(file)], read=ReadOptions(max_spans_per_trace=2_000_000)))
    return report.summary.spans


def stdlib_json(file: Path) -> int:
    """For comparison: a plain loop of the standard library's parser over the lines, nothing kept."""
    import json

    spans = 0
    with file.open("rb") as lines:
        for line in lines:
            document = json.loads(line)
            spans += sum(len(s["spans"]) for r in document["resourceSpans"] for s in r["scopeSpans"])
    return spans


def polars_json(file: Path) -> int:
    """For comparison: polars reads the lines into nested columns; the spans are counted, nothing else is done."""
    import polars

    frame = polars.read_ndjson(file, infer_schema_length=None)
    requests = frame.explode("resourceSpans").unnest("resourceSpans").explode("scopeSpans").unnest("scopeSpans")
    return int(requests.get_column("spans").list.len().sum())


def pyarrow_json(file: Path) -> int:
    """For comparison: pyarrow reads the lines into nested columns; the spans are counted, nothing else is done."""
    from pyarrow import compute
    from pyarrow.json import ReadOptions, read_json

    column = read_json(file, read_options=ReadOptions(use_threads=False, block_size=64 << 20)).column("resourceSpans")
    scopes = compute.struct_field(compute.list_flatten(column), "scopeSpans")
    spans = compute.struct_field(compute.list_flatten(scopes), "spans")
    return int(compute.sum(compute.list_value_length(spans)).as_py())


RULES = Path(__file__).with_name("rules.yaml")

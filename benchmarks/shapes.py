"""Inputs of odd shapes: `python -m benchmarks.shapes`. CPU seconds should grow with the number of items, no faster.

Many small files (`load`), one trace of many spans and one trajectory of many calls (`check` with the core pack).
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from benchmarks import generate, stages
from benchmarks.__main__ import run
from benchmarks.generate import START_NS, put

BATCH = 5_000


def files(folder: Path, count: int) -> Path:
    """A folder of files, each with three spans of a trace."""
    folder.mkdir()
    number = 0
    for request in generate.requests(count * generate.SPANS_PER_TRACE):
        whole = request.resource_spans[0].scope_spans[0]
        for first in range(0, len(whole.spans), generate.SPANS_PER_TRACE):
            one = TracesData()
            resource_spans = one.resource_spans.add(resource=request.resource_spans[0].resource)
            resource_spans.scope_spans.add(scope=whole.scope, spans=whole.spans[first : first + 3])
            (folder / f"{number:05}.pb").write_bytes(one.SerializeToString())
            number += 1
    return folder


def trace(path: Path, spans: int, every: int) -> Path:
    """One trace: an agent and `spans` spans below it, every so many of them a tool call, on a clock of 1 µs."""
    rng = random.Random(0)
    trace_id, root = rng.randbytes(16), rng.randbytes(8)
    with path.open("wb") as out:
        for first in range(0, spans, BATCH):
            request = TracesData()
            resource_spans = request.resource_spans.add()
            put(resource_spans.resource.attributes, {"service.name": "agent", "service.instance.id": "1"})
            scope_spans = resource_spans.scope_spans.add()
            if first == 0:
                end = START_NS + (spans + 2) * 1_000
                span = scope_spans.spans.add(trace_id=trace_id, span_id=root, name="invoke_agent a", kind=1)
                span.start_time_unix_nano, span.end_time_unix_nano = START_NS, end
                put(span.attributes, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"})
            for i in range(first, min(first + BATCH, spans)):
                start = START_NS + (i + 1) * 1_000
                span = scope_spans.spans.add(
                    trace_id=trace_id, span_id=rng.randbytes(8), parent_span_id=root, name="GET /", kind=3
                )
                span.start_time_unix_nano, span.end_time_unix_nano = start, start + 900
                if i % every == 0:
                    call = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": f"look_up_{i % 7}"}
                    call |= {"gen_ai.tool.call.arguments": f'{{"n": {i}}}', "gen_ai.tool.call.result": '{"ok": true}'}
                    put(span.attributes, call)
            out.write(request.SerializeToString())
    return path


def main() -> None:
    """Prints a row for each shape and size."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small = trace(folder / "small.pb", 100, 2)
        print(f"  {'shape':<40}{'items':>10}{'CPU s':>9}{'µs an item':>12}{'peak MiB':>10}")
        rows = [("files, load", n, files(folder / f"files{n}", n), stages.load) for n in (1_000, 10_000)]
        rows += [
            ("spans of one trace, 2 % calls", n, trace(folder / f"spans{n}.pb", n, 50), stages.check_one_trace)
            for n in (100_000, 1_000_000)
        ]
        rows += [
            ("calls of one trajectory", n, trace(folder / f"calls{n}.pb", n, 1), stages.check_one_trace)
            for n in (5_000, 10_000, 19_000, 50_000, 100_000)
        ]
        for shape, items, path, stage in rows:
            found = run(stage, path, small, 1)
            each = found.seconds / items * 1e6
            print(f"  {shape:<40}{items:>10,}{found.seconds:>9.2f}{each:>12.1f}{found.peak_mib:>10}", flush=True)


if __name__ == "__main__":
    main()

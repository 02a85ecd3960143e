"""Mutates small real files and reads them: whatever comes out, reading must never fail in a way that was not meant.

    python -m tests.hostile.fuzz --inputs 100000 --seed 1

Input number n of a seed is always the same bytes; `--only n` writes and reads that one again. Every input goes through
the reader; every twentieth through the database, the dialects and `inspect` too.
"""

from __future__ import annotations

import argparse
import gzip
import random
import re
import struct
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import zstandard

from tracegrade.app.inspect import InspectOptions, inspect
from tracegrade.ingest import ReadOptions, read_input

REPO = Path(__file__).resolve().parent.parent.parent
WHOLE_EVERY = 20
_HEX = re.compile(r"[0-9a-f]+")
_OPTIONS = ReadOptions(
    max_unpacked_bytes=20_000_000, ratio_floor_bytes=1_000_000, max_line_bytes=5_000_000, max_value_bytes=100_000
)

TOKENS = [
    *(
        b"null",
        b"true",
        b"-1",
        b"0",
        b"1e999",
        b"NaN",
        b"-Infinity",
        b"18446744073709551616",
        b"9" * 400,
        b"9" * 5000,
        b'""',
    ),
    *(b'"\\ud800"', b'"\\u0000"', '"²"'.encode(), b"[]", b"{}", b"[" * 100, b'{"a":' * 100),
    *(b'"' + b"x" * 5000 + b'"', b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"\n", b"\r\n", b",", b":", b"\\"),
    *(b'{"stringValue":null}', b'{"arrayValue":{"values":[{}]}}', b"0x", b"=" * 4),
]


def seeds() -> list[tuple[str, bytes]]:
    """Small files of every format, framing and compression, with their names."""
    found = []
    for path in sorted((REPO / "fixtures" / "traces").rglob("*")):
        if path.is_file() and path.suffix != ".md" and path.stat().st_size < 60_000:
            found.append((str(path.relative_to(REPO)), path.read_bytes()))
    proto = _proto()
    frame = struct.pack(">I", len(proto)) + proto
    lines = next(c for n, c in found if n.endswith("good.otlp.jsonl") and len(c) < 30_000)
    packed = zstandard.ZstdCompressor().compress(proto)
    found += [
        ("proto", proto),
        ("proto twice", proto + proto),
        ("framed", frame + frame),
        ("zstd frames", (struct.pack(">I", len(packed)) + packed) * 2),
        ("gzip", gzip.compress(lines, mtime=0)),
        ("zstd", zstandard.ZstdCompressor().compress(lines)),
    ]
    return found


def _proto() -> bytes:
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    message = TracesData()
    resource = message.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = "svc"
    scope = resource.scope_spans.add()
    scope.scope.name = "scope"
    for number in range(1, 5):
        span = scope.spans.add(trace_id=b"t" * 16, span_id=number.to_bytes(8, "big"), name=f"execute_tool f{number}")
        span.start_time_unix_nano, span.end_time_unix_nano = 10**18 + number, 10**18 + number + 5
        span.attributes.add(key="gen_ai.tool.name").value.string_value = "f"
        span.attributes.add(key="n").value.int_value = number
        inner = span.attributes.add(key="list").value.array_value.values.add()
        inner.kvlist_value.values.add(key="k").value.double_value = 1.5
        span.events.add(name="e", time_unix_nano=5).attributes.add(key="x").value.bool_value = True
    return message.SerializeToString()


def _flip(data: bytearray, chance: random.Random) -> None:
    for _ in range(chance.randint(1, 8)):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _cut(data: bytearray, chance: random.Random) -> None:
    del data[chance.randrange(len(data)) :]


def _drop(data: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(data))
    del data[start : start + chance.randint(1, 200)]


def _repeat(data: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(data))
    piece = data[start : start + chance.randint(1, 400)]
    data[start:start] = piece * chance.randint(1, 20)


def _insert(data: bytearray, chance: random.Random) -> None:
    place = chance.randrange(len(data))
    data[place:place] = chance.choice(TOKENS)


def _replace_value(data: bytearray, chance: random.Random) -> None:
    """Put a token in the place of a JSON value."""
    values = list(re.finditer(rb'(?<=[:\[,])\s*("(?:[^"\\]|\\.)*"|-?[0-9][0-9.e+-]*|true|false|null|\{\}|\[\])', data))
    if values:
        found = chance.choice(values)
        data[found.start() : found.end()] = chance.choice(TOKENS)
    else:
        _insert(data, chance)


def _swap_key(data: bytearray, chance: random.Random) -> None:
    """Give one JSON key the name of another."""
    keys = list(re.finditer(rb'"[A-Za-z_.]{1,40}"(?=\s*:)', data))
    if len(keys) > 1:
        one, other = chance.sample(keys, 2)
        data[one.start() : one.end()] = other.group()
    else:
        _flip(data, chance)


def _noise(data: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(data))
    size = chance.randint(1, 32)
    data[start : start + size] = chance.randbytes(size)


MUTATIONS: Sequence[Callable[[bytearray, random.Random], None]] = (
    _flip, _cut, _drop, _repeat, _insert, _replace_value, _replace_value, _swap_key, _noise,
)  # fmt: skip


def mutated(number: int, seed: int, of: Sequence[tuple[str, bytes]]) -> tuple[str, bytes]:
    """Input `number` of a seed: the name of the file it came from, and its bytes."""
    chance = random.Random(f"{seed}:{number}")
    name, content = chance.choice(of)
    data = bytearray(content)
    if chance.random() < 0.1:  # the start of one file and the end of another
        other_name, other = chance.choice(of)
        name = f"{name} + {other_name}"
        data[chance.randrange(len(data)) :] = other[chance.randrange(len(other)) :]
    for _ in range(chance.choice((1, 1, 2, 3, 6))):
        if data:
            chance.choice(MUTATIONS)(data, chance)
    return name, bytes(data)


def check(path: Path, *, whole: bool) -> str:
    """Read one file and hold what came out against what must always be true.

    Returns:
        How it ended: `error`, `nothing`, or the format.

    Raises:
        AssertionError: something that must be true is not.
    """
    taken: Counter[str] = Counter()

    def emit(kind: str, rows: Any) -> None:
        taken[kind] += rows.num_rows
        if kind == "spans":
            for column, digits in (("trace_id", 32), ("span_id", 16)):
                for value in rows.column(column).to_pylist():
                    assert len(value) == digits, value
                    assert _HEX.fullmatch(value), value
                    assert value.strip("0"), value

    report = read_input(str(path), _OPTIONS, emit)
    assert report.spans_read == taken["spans"]
    assert report.log_records == taken["logs"]
    assert report.error is None or str(path) in report.error
    assert all(s.where and s.reason and s.count > 0 for s in report.skipped)
    if whole:
        found = inspect(InspectOptions([str(path)], reading=_OPTIONS))
        assert found.contents.spans == found.inputs[0].spans_distinct
    if report.error is not None:
        return "error"
    return report.format if report.spans_read or report.log_records else "nothing"


def fuzz(inputs: int, seed: int, start: int = 0) -> tuple[Counter[str], list[tuple[int, str, str]]]:
    """Read many mutated files.

    Returns:
        How many ended how, and each failure: its number, its seed file and the traceback.
    """
    of = seeds()
    ends: Counter[str] = Counter()
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "input"
        for number in range(start, start + inputs):
            name, content = mutated(number, seed, of)
            path.write_bytes(content)
            try:
                ends[check(path, whole=number % WHOLE_EVERY == 0)] += 1
            except Exception:
                failures.append((number, name, traceback.format_exc()))
                ends["FAILED"] += 1
    return ends, failures


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.fuzz")
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="the number of one input; it is written to the folder at hand")
    options = parser.parse_args(words)
    if options.only is not None:
        name, content = mutated(options.only, options.seed, seeds())
        path = Path(f"fuzz-{options.seed}-{options.only}")
        path.write_bytes(content)
        print(f"{path}, from {name}: {check(path, whole=True)}")
        return 0
    ends, failures = fuzz(options.inputs, options.seed)
    for end, count in ends.most_common():
        print(f"{count:8} {end}")
    for number, name, trace in failures:
        print(f"\ninput {number} of seed {options.seed}, from {name}:\n{trace}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

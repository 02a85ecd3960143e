"""CPU time of each stage over one generated file, as ratios to the bare parse of the same run.

    python -m benchmarks [--spans 100000] [--repeats 2] [--agentevals BIN]

Each stage runs in a process of its own after a warm-up; a ratio compares stages of one run on one machine, which is
all that it says. `check` and `reconstruct` include the load.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
from pathlib import Path

from benchmarks import generate, peers, rules, stages
from benchmarks.stages import Result, Stage, measure

PROTO: dict[str, Stage] = {
    "bare ParseFromString": stages.bare_proto,
    "load": stages.load,
    "load + reconstruct": stages.reconstruct,
    "check, 20 rules (whole)": stages.check,
}
JSON: dict[str, Stage] = {
    "bare typed read in DuckDB": stages.bare_json,
    "load": stages.load,
    "check, 20 rules (whole)": stages.check,
    "json.loads of each line": stages.stdlib_json,
    "pyarrow.json.read_json": stages.pyarrow_json,
    "polars.read_ndjson": stages.polars_json,
}


def run(stage: Stage, file: Path, warm_up: Path, repeats: int) -> Result:
    """A stage in a process of its own."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(measure, (stage, file, warm_up, repeats))


def table(title: str, chosen: dict[str, Stage], file: Path, warm_up: Path, repeats: int) -> None:
    """Runs the stages and prints a row for each."""
    print(f"{title}: {file.stat().st_size / 2**20:.0f} MiB")
    print(f"  {'stage':<28}{'CPU s':>9}{'ratio':>9}{'spans/s':>12}{'peak MiB':>10}")
    limit = 0.0
    for name, stage in chosen.items():
        try:
            result = run(stage, file, warm_up, repeats)
        except ImportError as error:
            print(f"  {name:<28}not measured: {error.name} is not installed (pip install {error.name})", flush=True)
            continue
        limit = limit or result.seconds
        ratio = result.seconds / limit
        rate = result.spans / result.seconds
        print(f"  {name:<28}{result.seconds:>9.2f}{ratio:>9.1f}{rate:>12,.0f}{result.peak_mib:>10}", flush=True)


def main() -> None:
    """Generates the files and prints both tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--spans", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--agentevals", help="the command of agentevals-cli, in an environment of its own")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = {}
        for form, ending in (("proto", "pb"), ("jsonl", "jsonl")):
            for size, count in (("all", options.spans), ("small", 500)):
                path = paths[form, size] = Path(folder) / f"{size}.{ending}"
                generate.write(path, count, form)
        print(f"{options.spans:,} spans, 20 a trace; best of {options.repeats} runs")
        table("OTLP protobuf", PROTO, paths["proto", "all"], paths["proto", "small"], options.repeats)
        table("OTLP/JSON lines", JSON, paths["jsonl", "all"], paths["jsonl", "small"], options.repeats)
        peers.table(paths["jsonl", "all"], paths["jsonl", "small"], options.agentevals)


if __name__ == "__main__":
    if sys.argv[1:2] == ["rules"]:
        rules.main(sys.argv[2:])
    else:
        main()

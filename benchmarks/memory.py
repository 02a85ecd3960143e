"""Peak memory on large files: `python -m benchmarks.memory [--size 3] [--folder DIR]`, size in GB (10^9 bytes).

A file of the size and one of a third of it are generated (`--folder` says where; that much space is needed). Each stage
runs in a process of its own; what is printed is the process's largest resident set, libraries included. The files are
removed at the end.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks import generate, stages
from benchmarks.__main__ import run

BYTES_A_SPAN = 2_374
STAGES = {"load": stages.load, "check, 20 rules, as text": stages.check_text}


def main() -> None:
    """Generates the files and prints a row for each stage and file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--size", type=float, default=3.0)
    parser.add_argument("--folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        small = Path(name) / "small.pb"
        generate.write(small, 500)
        print(f"  {'stage':<28}{'MB':>8}{'spans':>12}{'CPU s':>9}{'peak MB':>10}")
        for size in (options.size / 3, options.size):
            file = Path(name) / "all.pb"
            written = generate.write(file, int(size * 1e9 / BYTES_A_SPAN / 20) * 20)
            for stage, work in STAGES.items():
                found = run(work, file, small, 1)
                peak = found.peak_mib * 2**20 / 1e6
                print(
                    f"  {stage:<28}{written / 1e6:>8.0f}{found.spans:>12,}{found.seconds:>9.1f}{peak:>10.0f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()

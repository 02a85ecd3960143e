"""Spans per CPU second of whole commands, start-up included, on one file: `tracegrade check` beside `agentevals run`.

agentevals-cli is not installed with tracegrade, whose libraries it does not share: give the path of its command. It
scores one metric (`tool_trajectory_avg_score`, in order) against one expected conversation, to which every trace is
assigned by an attribute, so that it has no case to look for; tracegrade checks twenty rules.
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.stages import RULES

_CASE = "expected"


def table(file: Path, small: Path, agentevals: str | None) -> None:
    """Runs both commands over both files and prints spans per CPU second."""
    print("whole commands over OTLP/JSON lines")
    print(f"  {'command':<28}{'CPU s':>9}{'start-up':>10}{'spans/s':>12}{'without':>12}")
    ours = [
        str(Path(sys.executable).with_name("tracegrade")),
        "check",
        "--invariants",
        str(RULES),
        "--fail-on",
        "never",
    ]
    _row("tracegrade check, 20 rules", ours, file, small)
    command = shutil.which(agentevals) if agentevals else None
    if command is None:
        where = f"`{agentevals}` is no command" if agentevals else "give --agentevals the path of its command"
        print(f"  {'agentevals run, 1 metric':<28}not measured: {where} (pip install agentevals-cli)")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        expected = folder / "eval_set.json"
        expected.write_text(json.dumps(_eval_set()))
        theirs = [command, "run", "--eval-set", str(expected), "--trajectory-match-type", "in_order"]
        theirs += ["--output", "json"]
        files = [_assigned(path, folder / path.name) for path in (file, small)]
        _row("agentevals run, 1 metric", theirs, *files)


def _row(name: str, command: Sequence[str], file: Path, small: Path) -> None:
    spans, few = _spans(file), _spans(small)
    start = _cpu([*command, str(small)])
    whole = _cpu([*command, str(file)])
    without = (spans - few) / (whole - start)
    print(f"  {name:<28}{whole:>9.2f}{start:>10.2f}{spans / whole:>12,.0f}{without:>12,.0f}", flush=True)


def _cpu(command: Sequence[str]) -> float:
    """CPU seconds of a command, its children included.

    Raises:
        SystemExit: it failed.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr[-2000:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _spans(file: Path) -> int:
    with file.open("rb") as lines:
        return sum(line.count(b'"spanId":') for line in lines)


def _assigned(file: Path, target: Path) -> Path:
    """The same spans, each resource with the attribute by which agentevals finds the expected conversation."""
    attribute = {"key": "agentevals.eval.case.id", "value": {"stringValue": _CASE}}
    with file.open("rb") as lines, target.open("w") as out:
        for line in lines:
            document = json.loads(line)
            for resource_spans in document["resourceSpans"]:
                resource_spans["resource"]["attributes"].append(attribute)
            out.write(json.dumps(document, separators=(",", ":"), ensure_ascii=False) + "\n")
    return target


def _eval_set() -> dict[str, object]:
    calls = [{"name": name, "args": {}} for name in ("verify_identity", "get_order", "cancel_order")]
    turn = {
        "invocation_id": "1",
        "user_content": {"role": "user", "parts": [{"text": "cancel my order"}]},
        "final_response": {"role": "model", "parts": [{"text": "done"}]},
        "intermediate_data": {"tool_uses": calls, "tool_responses": [], "intermediate_responses": []},
    }
    return {"eval_set_id": "benchmark", "eval_cases": [{"eval_id": _CASE, "conversation": [turn]}]}

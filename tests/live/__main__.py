"""Installs real agent frameworks, runs them, and compares what tracegrade reads with what their tools logged.

    python -m tests.live [--only STACK] [--environments FOLDER] [--keep FOLDER]

Each stack gets an environment of its own and talks to a scripted server on loopback. Needs a package index. Exits with
1 where anything that was recorded contradicts the tools' own log, or where nothing was read.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tracegrade.app.trajectories import TrajectoryOptions, trajectories_from_paths
from tracegrade.model.trajectory import Step
from tracegrade.model.values import json_equal

GENERATE = Path(__file__).resolve().parents[2] / "fixtures" / "generate"
BEHAVIOURS = ("good", "unverified", "claims-only", "repeats", "recovers")
OWN_TOOLS = {"final_answer"}
"""Tools by which a framework itself ends a run; no tool of the desk logs them."""


def _module(name: str) -> Any:
    """A module of fixtures/generate, which are scripts and no package."""
    spec = importlib.util.spec_from_file_location(name, GENERATE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def extra_stacks(stack: Any) -> tuple[Any, ...]:
    """Stacks that are run here only; the newest releases, so that a change of theirs is seen."""
    langchain = ("langgraph", "langchain", "langchain-openai")
    return (
        stack(
            "langgraph-openinference",
            (*langchain, "openinference-instrumentation-langchain"),
            "drive_langgraph.py",
            ("openinference.instrumentation.langchain", "LangChainInstrumentor"),
        ),
        stack(
            "langgraph-openllmetry",
            (*langchain, "opentelemetry-instrumentation-langchain"),
            "drive_langgraph.py",
            ("opentelemetry.instrumentation.langchain", "LangchainInstrumentor"),
        ),
        stack(
            "smolagents-openinference",
            ("smolagents[openai]", "openinference-instrumentation-smolagents"),
            "drive_smolagents.py",
        ),
        stack("strands", ("strands-agents[openai]",), "drive_strands.py"),
    )


def compare(spans: Path, log: Path, tokens: tuple[int, int]) -> tuple[str, bool]:
    """What is right of one run, as text, and whether nothing contradicts the log.

    Args:
        spans: the exported spans.
        log: what the tools logged, one JSON object a line.
        tokens: input and output tokens that the server returned.
    """
    truth = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    found = list(trajectories_from_paths([str(spans)], TrajectoryOptions()))
    calls = [c for t in found for c in t.calls() if not c.prior and c.tool not in OWN_TOOLS]
    names = [c.tool for c in calls] == [t["name"] for t in truth]
    pairs = list(zip(calls, truth, strict=False))
    arguments = _share([(c.arguments_state, json_equal(c.arguments, t["arguments"])) for c, t in pairs])
    results = _share([(c.result_state, _same_result(c.result, t["result"])) for c, t in pairs if "result" in t])
    status = all(_status_fits(c, t) for c, t in pairs)
    usage = _sum(t.usage for t in found)
    counted = all(ours in (None, theirs) for ours, theirs in zip(usage, tokens, strict=True))
    right = bool(found) and names and arguments[1] and results[1] and status and counted
    text = (
        f"calls {len(calls)}/{len(truth)}{'' if names else ' WRONG'}  arguments {arguments[0]}  results {results[0]}  "
        f"status {'ok' if status else 'WRONG'}  tokens {usage[0]}+{usage[1]}{'' if counted else f' WRONG, {tokens}'}"
    )
    return text, right


def _share(cells: list[tuple[str, bool]]) -> tuple[str, bool]:
    captured = [equal for state, equal in cells if state == "captured"]
    return f"{len(captured)}/{len(cells)}{'' if all(captured) else ' WRONG'}", all(captured)


def _same_result(result: Any, truth: Any) -> bool:
    """Equal, or the one content block of it that a Strands tool gives its framework."""
    return json_equal(result, truth) or json_equal(result, [{"json": truth}])


def _status_fits(call: Step, truth: dict[str, Any]) -> bool:
    return call.status is None or (call.status == "error") == ("error" in truth)


def _sum(usages: Any) -> tuple[int | None, int | None]:
    found = list(usages)
    sums = []
    for name in ("input_tokens", "output_tokens"):
        values = [v for u in found if (v := getattr(u, name)) is not None]
        sums.append(sum(values) if values else None)
    return sums[0], sums[1]


def main() -> int:
    """Runs every stack and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="one stack, by its name")
    parser.add_argument("--environments", type=Path, help="where the environments are kept for the next time")
    parser.add_argument("--keep", type=Path, help="where spans and logs are kept")
    given = parser.parse_args()
    generate, desk = _module("generate"), _module("desk")
    wrong = ran = 0
    with tempfile.TemporaryDirectory() as made:
        kept, homes = given.keep or Path(made) / "spans", given.environments or Path(made) / "environments"
        for stack in (*generate.STACKS, *extra_stacks(generate.Stack)):
            if given.only not in (None, stack.folder):
                continue
            python = generate.prepare(stack, homes)
            for behaviour in BEHAVIOURS:
                spans, log = kept / stack.folder / f"{behaviour}.jsonl", kept / stack.folder / f"{behaviour}.log"
                log.parent.mkdir(parents=True, exist_ok=True)
                log.unlink(missing_ok=True)
                os.environ[desk.LOG] = str(log)
                ran += 1
                try:
                    generate.drive(stack, python, behaviour, spans)
                except subprocess.CalledProcessError as error:
                    print(f"{stack.folder:26}{behaviour:13}did not run: exit {error.returncode}")
                    wrong += 1
                    continue
                answers = [desk.completion(i, a)["usage"] for i, a in enumerate(desk.all_answers(behaviour))]
                tokens = tuple(sum(a[k] for a in answers) for k in ("prompt_tokens", "completion_tokens"))
                text, right = compare(spans, log, tokens)
                print(f"{stack.folder:26}{behaviour:13}{text}", flush=True)
                wrong += not right
    print(f"{ran} runs, {wrong} wrong")
    return 1 if wrong or not ran else 0


if __name__ == "__main__":
    sys.exit(main())

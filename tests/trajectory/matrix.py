"""What is right of each recorded stack and behaviour, against its manifest: the table of docs/dialects.md."""

from __future__ import annotations

import json
from dataclasses import astuple, dataclass
from typing import Any

from tests.trajectory.test_shared_traces import NO_CALLS_AT_ALL, REASONING_TWICE, STACKS, TRACES
from tests.trajectory.test_verdicts_across_stacks import PACK, truths
from tracegrade.app.trajectories import TrajectoryOptions, trajectories_from_paths
from tracegrade.checks.run import run_checks
from tracegrade.model.trajectory import Step, Trajectory
from tracegrade.model.values import json_equal

WRONG = "WRONG"
BY_MESSAGES = {"openinference-openai-noparent"}
"""Stacks that write a trace for each model call and no conversation: read with --group-by messages."""


@dataclass(frozen=True, slots=True)
class Row:
    """One cell each: how many of the true ones are there, or what the export lacks."""

    stack: str
    behaviour: str
    calls: str
    arguments: str
    results: str
    tokens: str
    verdicts: str

    def wrong(self) -> bool:
        """Whether any cell contradicts the truth."""
        return any(WRONG in cell for cell in astuple(self))


def rows() -> list[Row]:
    """All rows, by stack and behaviour."""
    return [row(stack, name) for stack, entry in sorted(STACKS.items()) for name in entry["behaviours"]]


def row(stack: str, behaviour: str) -> Row:
    """The row of one stack and behaviour."""
    entry = STACKS[stack]["behaviours"][behaviour]
    paths = [str(TRACES / f) for f in entry["files"].values() if f.endswith(".pb")]
    options = TrajectoryOptions(group_by="messages" if stack in BY_MESSAGES else "auto")
    found = sorted(trajectories_from_paths(paths, options), key=lambda t: t.start_ns or 0)
    pairs = _pairs(found, entry["true_tool_calls"])
    return Row(
        stack,
        behaviour,
        _calls(stack, found, pairs, entry["true_tool_calls"]),
        _arguments(pairs),
        _results(pairs),
        _tokens(stack, found, entry["llm_totals"]),
        _verdicts(stack, behaviour, found),
    )


def _key(name: str | None, arguments: Any) -> str:
    return json.dumps([name, arguments], sort_keys=True)


def _pairs(found: list[Trajectory], truth: list[Any]) -> list[tuple[Step, Any]]:
    """Each call with what the tool logged: in order, parallel ones by what they were asked."""
    calls = [c for t in found for c in t.calls() if not c.prior]
    in_order = list(zip(calls, truth, strict=False))
    if all(c.tool == t["name"] for c, t in in_order):
        return in_order
    by_name = sorted(calls, key=lambda c: _key(c.tool, c.arguments))
    return list(zip(by_name, sorted(truth, key=lambda t: _key(t["name"], t["arguments"])), strict=False))


def _calls(stack: str, found: list[Trajectory], pairs: list[tuple[Step, Any]], truth: list[Any]) -> str:
    n = sum(1 for t in found for c in t.calls() if not c.prior)
    if n == 0 and truth:
        said = all("calls_not_recorded" in {g.code for g in t.gaps} for t in found)
        return "not recorded" if stack in NO_CALLS_AT_ALL and said else WRONG
    right = sum(c.tool == t["name"] for c, t in pairs)
    return f"{right}/{len(truth)}" if right == n == len(truth) else f"{WRONG} {right}/{len(truth)}, {n} found"


def _arguments(pairs: list[tuple[Step, Any]]) -> str:
    captured = [(c, t) for c, t in pairs if c.arguments_state == "captured"]
    if any(not json_equal(c.arguments, t["arguments"]) for c, t in captured):
        return WRONG
    return _share(len(captured), len(pairs))


def _results(pairs: list[tuple[Step, Any]]) -> str:
    captured = [(c, t) for c, t in pairs if c.result_state == "captured" and t["error"] is None]
    if any(not json_equal(c.result, t["result"]) for c, t in captured):
        return WRONG
    if any(c.status is not None and (c.status == "error") != (t["error"] is not None) for c, t in pairs):
        return f"{WRONG} status"
    return _share(len(captured), sum(t["error"] is None for _, t in pairs))


def _share(some: int, all_: int) -> str:
    return "–" if not all_ else "not recorded" if not some else f"{some}/{all_}"


def _tokens(stack: str, found: list[Trajectory], totals: dict[str, int]) -> str:
    said = []
    for name in ("input_tokens", "output_tokens"):
        values = [v for t in found if (v := getattr(t.usage, name)) is not None]
        if not values:
            said.append("null")
        elif sum(values) == totals[name]:
            said.append(f"{sum(values)}")
        elif stack in REASONING_TWICE and name == "output_tokens":
            flagged = any("reasoning_counted_twice" in {w.code for w in t.warnings} for t in found)
            twice = sum(values) == totals[name] + totals["reasoning_tokens"]
            said.append(f"{sum(values)} (reasoning twice, flagged)" if twice and flagged else WRONG)
        else:
            said.append(f"{WRONG} {sum(values)}")
    return "not recorded" if said == ["null", "null"] else " + ".join(said)


def _verdicts(stack: str, behaviour: str, found: list[Trajectory]) -> str:
    expected = truths(stack, behaviour)
    if expected is None or len(found) != 1:
        return "–"
    results = {r.id: r.result.verdict for r in run_checks(found[0], PACK.invariants)}
    wrong = [rule for rule, truth in expected.items() if results[rule] not in (truth, "unknown")]
    decided = sum(results[rule] != "unknown" for rule in expected)
    return f"{WRONG} {', '.join(wrong)}" if wrong else f"{decided}/{len(expected)}"

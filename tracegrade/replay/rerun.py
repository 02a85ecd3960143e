"""Recorded tool calls, executed again in an environment.

Comes in: the calls of a trajectory, an initial state and a factory. Goes out: what the calls changed and, call by
call, whether the result is the recorded one. Only what was executed is executed again, in the order in which the
trajectory shows it.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import orjson

from tracegrade.model.replay import CallReport, CallVerdict
from tracegrade.model.trajectory import Step, Trajectory
from tracegrade.model.values import JSON, MISSING, canonical, json_equal, tri_equal
from tracegrade.replay.environment import MISSING_TOOL, Factory, as_json, make_environment
from tracegrade.trajectory.diff import changed_fields

MAX_SHOWN = 3


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call as far as re-execution needs it; small, so that it can be handed to another process."""

    seq: int
    tool: str
    arguments: JSON
    result: JSON
    result_known: bool
    failed: bool | None
    span_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rerun:
    """One execution of all calls: what it changed, and the verdict of each call.

    Attributes:
        patch: what turns the initial state into the final one; None where nothing is concluded.
        calls: the verdicts.
        digests: of each result, for comparing repeats.
        final_sha256: digest of the final state as JSON with sorted keys and no spaces.
        differs: where the final state is not the recorded one, as lines; None where none was given.
        miss: what the environment does not have.
    """

    patch: list[dict[str, JSON]] | None
    calls: tuple[CallReport, ...]
    digests: tuple[str, ...]
    final_sha256: str | None = None
    differs: tuple[str, ...] | None = None
    miss: str | None = None


def recorded_calls(trajectory: Trajectory) -> tuple[list[RecordedCall], str | None]:
    """The calls to execute again, or why they cannot be.

    Calls that are only known to have been asked for, and those that were not executed, are left out. Where it is not
    known whether a call was executed, or its arguments were not captured, the final state cannot be had.

    Returns:
        The calls in display order, and the reason why the trajectory cannot be replayed, else None.
    """
    found = []
    for step in trajectory.calls():
        if step.prior:
            continue  # they happened before the recorded initial state
        if step.executed is False:
            continue
        if step.executed is None:
            return [], f"whether {_named(step)} was executed is not recorded"
        if step.arguments_state != "captured":
            return [], f"the arguments of {_named(step)} are {step.arguments_state.replace('_', ' ')}"
        if step.status == "unfinished":
            return [], f"{_named(step)} did not end: what it changed is not known"
        known = step.result_state == "captured"
        failed = None if step.status is None or step.status_suspect else step.status == "error"
        arguments = {} if step.arguments is None else step.arguments
        found.append(
            RecordedCall(step.seq, step.tool or step.name, arguments, step.result, known, failed, step.span_ids)
        )
    if not trajectory.complete:
        return [], "the trajectory is not complete: calls may be missing"
    return found, None


def _named(step: Step) -> str:
    return f"call {step.seq} of `{step.tool or step.name}`"


def rerun(calls: Sequence[RecordedCall], initial: bytes, factory: Factory, recorded_final: JSON = MISSING) -> Rerun:
    """Execute calls one after another in a fresh environment.

    Args:
        calls: from `recorded_calls`.
        initial: the state to start from, as JSON text.
        factory: makes the environment.
        recorded_final: the state that was recorded at the end, if any.

    Raises:
        UsageError: the factory returned no environment.
    """
    environment = make_environment(factory, initial)
    reports: list[CallReport] = []
    digests: list[str] = []
    for call in calls:
        if call.tool not in environment.tools:
            message = MISSING_TOOL.format(call.tool)
            reports.append(_report(call, "error", message))
            return Rerun(None, tuple(reports), tuple(digests), miss=message)
        try:
            result, raised = environment.call(call.tool, copy.deepcopy(call.arguments)), None
        except Exception as error:  # a tool's own failure is a result like any other
            result, raised = f"{type(error).__name__}: {error}", error
        digests.append(state_digest(result))
        reports.append(_compared(call, result, raised))
    final = as_json(environment.state)
    differs = None if recorded_final is MISSING else tuple(_lines(recorded_final, final))
    patch = state_patch(_parsed(initial), final)
    return Rerun(patch, tuple(reports), tuple(digests), state_digest(final), differs)


@lru_cache(maxsize=1)
def _parsed(initial: bytes) -> JSON:
    """The initial state, shared by repeats and by trials over one state; nothing may change it."""
    return json.loads(initial)


def _lines(recorded: JSON, found: JSON) -> Iterator[str]:
    for op in state_patch(recorded, found):
        where = "/".join(str(p) for p in op["path"]) or "the top"
        yield f"{where}: {op['op']} {_short(op['value']) if 'value' in op else ''}".rstrip()


def state_patch(before: JSON, after: JSON, path: tuple[str, ...] = ()) -> list[dict[str, JSON]]:
    """What turns one state into another, as operations of a trial's `final_patch`; objects are entered, lists and
    scalars replaced whole.

    >>> state_patch({"a": {"b": 1}, "c": 2}, {"a": {"b": 1.0, "d": [3]}})
    [{'op': 'add', 'path': ['a', 'd'], 'value': [3]}, {'op': 'remove', 'path': ['c']}]
    """
    if _text(before) == _text(after):
        return []
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return [] if json_equal(before, after) else [{"op": "replace", "path": list(path), "value": after}]
    found: list[dict[str, JSON]] = []
    for key, value in after.items():
        if key in before:
            found += state_patch(before[key], value, (*path, key))
        else:
            found.append({"op": "add", "path": [*path, key], "value": value})
    return found + [{"op": "remove", "path": [*path, key]} for key in before if key not in after]


def _text(value: JSON) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except (TypeError, orjson.JSONEncodeError):
        return canonical(value).encode("utf-8", "surrogatepass")


def _compared(call: RecordedCall, result: JSON, raised: Exception | None) -> CallReport:
    if raised is not None:
        if call.failed:
            return _report(call, "same", "failed as recorded")
        verdict: CallVerdict = "different" if call.failed is False else "unknown"
        return _report(call, verdict, f"raises {type(raised).__name__}, which is not recorded")
    if not call.result_known:
        return _report(call, "unknown", "the recorded result was not captured")
    equal = tri_equal(call.result, result)
    if equal:
        return _report(call, "same")
    if equal is None:
        return _report(call, "unknown", "the recorded result was redacted")
    return _report(call, "different", difference(call.result, result))


def _report(call: RecordedCall, verdict: CallVerdict, message: str = "") -> CallReport:
    return CallReport(seq=call.seq, tool=call.tool, verdict=verdict, message=message, span_ids=call.span_ids)


def difference(recorded: JSON, found: JSON) -> str:
    """Where two values differ, in a line: the first few places.

    >>> difference({"a": 1, "b": 2}, {"a": 1, "b": 3})
    'at b: recorded 2, now 3'
    """
    changes = list(changed_fields(recorded, found))
    shown = [f"at {'.'.join(c.path) or 'the top'}: recorded {_short(c.left)}, now {_short(c.right)}" for c in changes]
    more = f" and {len(shown) - MAX_SHOWN} more" if len(shown) > MAX_SHOWN else ""
    return "; ".join(shown[:MAX_SHOWN]) + more


def _short(value: JSON) -> str:
    text = "nothing" if value is MISSING else canonical(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


def state_digest(state: JSON) -> str:
    """The sha256 of a value as JSON with sorted keys and no spaces: what names a state in `states/`."""
    return hashlib.sha256(_text(state)).hexdigest()

"""Short, plain texts for values, times and steps, shared by every format.

What comes out may still hold control characters: each format escapes for its own medium at the place where it writes.
A cut always says how much it left out.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from tracegrade.model.report import InputReport, StepReport, TrialKey
from tracegrade.model.trajectory import Usage
from tracegrade.model.values import JSON
from tracegrade.model.verdict import StepRef

ARGUMENTS_WIDTH: Final = 120
NAME_WIDTH: Final = 60
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NOT_THERE: Final = {"not_captured": "not recorded", "truncated": "cut short", "unparsed": "not JSON"}


def json_text(value: JSON) -> str:
    """A value on one line, in JSON; integers exact at any size.

    >>> json_text({"order_id": "W1", "n": 2})
    '{"order_id": "W1", "n": 2}'
    """
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "(nested too deeply to show)"


def short(text: str, limit: int) -> str:
    """The text, or its beginning and the number of characters left out.

    >>> short("abcdefgh", 4)
    'abcd… (+4 characters)'
    """
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… (+{len(text) - limit:,} characters)"


def arguments_text(arguments: JSON, state: str | None, limit: int = ARGUMENTS_WIDTH, raw: str | None = None) -> str:
    """Arguments as one would write a call; what was not recorded says so.

    >>> arguments_text({"order_id": "W1", "n": 2}, "captured")
    'order_id="W1", n=2'
    >>> arguments_text(None, "not_captured")
    '…not recorded…'
    """
    if state is not None and state != "captured":
        what = _NOT_THERE.get(state, state)
        return f"…{what}…" if raw is None else f"…{what}: {short(raw, limit)}…"
    if isinstance(arguments, dict):
        return short(", ".join(f"{k}={json_text(v)}" for k, v in arguments.items()), limit)
    if arguments is None:
        return "null" if state == "captured" else ""
    return short(json_text(arguments), limit)


def result_text(result: JSON, state: str | None, limit: int = ARGUMENTS_WIDTH) -> str:
    """A result on one line; a text stands as it is, without quotes."""
    if state is not None and state != "captured":
        return f"…{_NOT_THERE.get(state, state)}…"
    return short(result if isinstance(result, str) else json_text(result), limit)


def step_text(step: StepRef | StepReport, limit: int = ARGUMENTS_WIDTH) -> str:
    """What a step is, on one line: the call with its arguments, who said what, or its kind and name."""
    if step.kind == "tool_call":
        raw = step.arguments_raw if isinstance(step, StepReport) else None
        return f"{short(step.name, NAME_WIDTH)}({arguments_text(step.arguments, step.arguments_state, limit, raw)})"
    if step.kind == "message":
        said = f"“{short(' '.join(step.text.split()), limit)}”" if step.text is not None else "…not recorded…"
        speaker = step.role if isinstance(step, StepReport) else None
        return f"{short(speaker or step.name, NAME_WIDTH)}: {said}"
    return f"{step.kind.replace('_', ' ')} {short(step.name, NAME_WIDTH)}".rstrip()


def status_text(status: str | None) -> str:
    """A call's status in words: what the spans do not show is said."""
    return {None: "status not shown", "not_executed": "not executed"}.get(status, status or "")


def clock(ns: int | None) -> str:
    """A moment in UTC, to the millisecond.

    >>> clock(1_700_000_000_123_456_789)
    '2023-11-14 22:13:20.123Z'
    """
    if ns is None:
        return "no time"
    try:
        moment = _EPOCH + timedelta(microseconds=ns // 1000)
    except OverflowError:
        return f"{ns} ns"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def offset(ns: int | None, origin_ns: int | None) -> str:
    """How long after the start of its trajectory something began.

    >>> offset(2_500_000_000, 1_000_000_000)
    '+1.500s'
    """
    if ns is None:
        return "no time"
    if origin_ns is None:
        return clock(ns)
    return f"{(ns - origin_ns) / 1e9:+,.3f}s"


def duration(ns: int | None) -> str:
    """A length of time in the unit that suits it.

    >>> duration(1_500), duration(2_500_000), duration(61_000_000_000)
    ('1.5 µs', '2.5 ms', '1 min 1 s')
    """
    if ns is None:
        return "no end"
    if ns < 1_000:
        return f"{ns} ns"
    if ns < 1_000_000:
        return f"{ns / 1e3:.3g} µs"
    if ns < 1_000_000_000:
        return f"{ns / 1e6:.3g} ms"
    if ns < 60_000_000_000:
        return f"{ns / 1e9:.3g} s"
    minutes, seconds = divmod(ns // 1_000_000_000, 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s"
    return f"{minutes // 60:,} h {minutes % 60} min"


def plural(count: int, noun: str) -> str:
    """A count with its noun.

    >>> plural(1, "trajectory"), plural(2000, "trajectory")
    ('1 trajectory', '2,000 trajectories')
    """
    many = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else many}"


def listed(names: Sequence[str], limit: int) -> str:
    """The first names, and how many more there are.

    >>> listed(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    shown = ", ".join(names[:limit])
    left = len(names) - limit
    return shown if left <= 0 else f"{shown} and {left:,} more"


def trial_text(task_id: str | None, trial: TrialKey | None, trajectory_id: str | None) -> str:
    """What a person would call the trial: its task and number where it has them, else its trajectory."""
    if task_id is None:
        return f"trajectory {trajectory_id}" if trajectory_id else "a trial without spans"
    task = f"task {short(task_id, NAME_WIDTH)}"
    return task if trial is None else f"{task}, trial {trial}"


def error_text(entry: InputReport) -> str:
    """Why an input could not be used, without its path."""
    return (entry.error or "").removeprefix(f"{entry.path}: ")


def usage_text(usage: Usage) -> str:
    """Tokens and cost in words; a lower bound says so, a computed cost by what, and what is missing is not called 0."""
    if usage.model_calls == 0:
        return "no model calls"
    parts = [plural(usage.model_calls, "model call")]
    at_least = "" if usage.complete else "at least "
    if usage.input_tokens is None and usage.output_tokens is None:
        parts.append("tokens not recorded")
    else:
        tokens = [
            f"{n:,} {what}"
            for n, what in ((usage.input_tokens, "input"), (usage.output_tokens, "output"))
            if n is not None
        ]
        parts.append(f"{at_least}{' + '.join(tokens)} tokens")
    if usage.cost_usd is not None:
        digits = 4 if usage.cost_usd >= 0.01 or usage.cost_usd == 0 else 6
        by = f" ({usage.cost_source})" if usage.cost_source not in (None, "recorded") else ""
        parts.append(f"{'' if usage.cost_complete else 'at least '}${usage.cost_usd:,.{digits}f}{by}")
    if usage.calls_without_usage:
        parts.append(f"{usage.calls_without_usage:,} without usage")
    return ", ".join(parts)

"""Log events of command-line agents as spans, so that a session without spans is a trajectory too (DIALECTS §3.12).

Claude Code, Codex and Gemini CLI export what they do as log records: one a tool result, one a model response, one a
user prompt. Each becomes a span of its session's own trace; an event is written when something ended, so its start is
its time less its duration. The trace id is the hash of the agent and the session, so that it is the same whenever the
same session is loaded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from tracegrade.dialects.interpret import as_number
from tracegrade.model.span import LogRecord, Span
from tracegrade.model.values import JSON

_PREFIXES = ("claude_code.", "codex.", "gemini_cli.")
_SESSION_KEYS = ("session.id", "conversation.id", "session_id", "conversation_id")
_MILLISECOND = 1_000_000
_ROOT_NAMES = {"claude_code.": "claude_code.session", "codex.": "codex.session", "gemini_cli.": "gemini_cli.session"}


def agent_event(record: LogRecord) -> str | None:
    """The full name of a command-line agent's event (`codex.tool_result`); None for any other record."""
    names = [
        record.event_name,
        record.attributes.get("event.name"),
        record.body if isinstance(record.body, str) else None,
    ]
    for name in names:
        if isinstance(name, str) and name.startswith(_PREFIXES):
            return name
    bare = record.attributes.get("event.name") or record.event_name
    if isinstance(bare, str) and record.scope_name.startswith("com.anthropic.claude_code"):
        return f"claude_code.{bare}"
    return None


def spans_from_logs(records: Iterable[LogRecord]) -> list[Span]:
    """One trace per session of a command-line agent; other records give nothing."""
    sessions: dict[tuple[str, str], list[tuple[Any, LogRecord, str]]] = {}
    for record in records:
        name = agent_event(record)
        if name is None:
            continue
        prefix = next(p for p in _PREFIXES if name.startswith(p))
        session = next((str(record.attributes[k]) for k in _SESSION_KEYS if record.attributes.get(k)), None)
        session = session or next((str(record.resource[k]) for k in _SESSION_KEYS if record.resource.get(k)), "")
        sessions.setdefault((prefix, session), []).append((_order(record), record, name))
    spans: list[Span] = []
    for (prefix, session), events in sorted(sessions.items()):
        spans += _session(prefix, session, sorted(events, key=lambda e: e[0]))
    return spans


def _time(record: LogRecord) -> int:
    if record.time_ns:
        return record.time_ns
    stamp = record.attributes.get("event.timestamp")
    if isinstance(stamp, str):
        try:
            moment = datetime.fromisoformat(stamp.replace("Z", "+00:00"))
        except ValueError:
            return 0
        return int(moment.timestamp()) * 1_000_000_000 + moment.microsecond * 1000
    return 0


def _order(record: LogRecord) -> tuple[Any, ...]:
    sequence = as_number(record.attributes.get("event.sequence"))
    return (
        _time(record),
        sequence if sequence is not None else -1,
        str(record.event_name),
        repr(sorted(record.attributes)),
    )


def _session(prefix: str, session: str, events: list[tuple[Any, LogRecord, str]]) -> list[Span]:
    trace_id = hashlib.sha256(f"{prefix}\x1f{session}".encode()).hexdigest()[:32]
    root_id = hashlib.sha256(f"{trace_id} root".encode()).hexdigest()[:16]
    spans = []
    times = []
    for number, (_, record, name) in enumerate(events):
        end = _time(record)
        duration = as_number(record.attributes.get("duration_ms")) or 0
        start = end - int(duration * _MILLISECOND) if end else None
        times += [t for t in (start, end) if t]
        spans.append(_span(trace_id, root_id, number, name, record, start, end or None))
    first = events[0][1]
    root = Span(
        trace_id=trace_id,
        span_id=root_id,
        parent_span_id=None,
        name=_ROOT_NAMES[prefix],
        kind=1,
        start_ns=min(times, default=None),
        end_ns=max(times, default=None),
        status_code=0,
        status_message="",
        attributes={"session.id": session} if session else {},
        resource=first.resource,
        scope_name=first.scope_name,
        scope_version=first.scope_version,
        precision_ns=_MILLISECOND,
    )
    return [root, *spans]


def _span(
    trace_id: str, root_id: str, number: int, name: str, record: LogRecord, start: int | None, end: int | None
) -> Span:
    attributes: dict[str, JSON] = dict(record.attributes)
    if isinstance(record.body, dict):
        attributes = {**record.body, **attributes}
    span_id = hashlib.sha256(f"{trace_id} {number} {name}".encode()).hexdigest()[:16]
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_span_id=root_id,
        name=name,
        kind=1,
        start_ns=start,
        end_ns=end,
        status_code=0,
        status_message="",
        attributes=attributes,
        resource=record.resource,
        scope_name=record.scope_name,
        scope_version=record.scope_version,
        precision_ns=_MILLISECOND,
    )

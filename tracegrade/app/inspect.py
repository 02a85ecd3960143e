"""Say what files are and what is in them, without judging anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tracegrade.app.load import load
from tracegrade.app.trajectories import Seen, TrajectoryOptions, iter_trajectories
from tracegrade.ingest import ReadOptions
from tracegrade.model.inspect import Contents, Graded, InspectedInput, InspectReport, ScopeCount
from tracegrade.model.load import InputReport as LoadedInput
from tracegrade.model.load import Skipped as LoadedSkipped
from tracegrade.model.report import GapCount, NameCount, Skipped
from tracegrade.model.trajectory import Trajectory
from tracegrade.store import Store

_TOTALS = """
SELECT count(*), count(DISTINCT trace_id), min(start_ns), max(coalesce(end_ns, start_ns)),
       count(*) FILTER (WHERE end_ns IS NULL), max(precision_ns)
FROM spans
"""
_LOGS = "SELECT count(*), min(time_ns), max(time_ns) FROM log_records"
_SERVICES = """
SELECT coalesce(service_name, ''), count(*) FROM spans GROUP BY 1 ORDER BY 2 DESC, 1
"""
_SCOPES = """
SELECT scope_name, scope_version, count(*) FROM spans GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2
"""


@dataclass(frozen=True, slots=True)
class InspectOptions:
    """What to look at and how.

    Attributes:
        paths: files, folders, globs, or `-`.
        db: a database to keep the spans in, or one to look into.
        reading: limits and strictness.
        trajectories: how spans are grouped.
    """

    paths: Sequence[str]
    db: Path | None = None
    reading: ReadOptions | None = None
    trajectories: TrajectoryOptions | None = None


def inspect(options: InspectOptions) -> InspectReport:
    """Read files and describe them. A file that cannot be read is described by its error; the others are read.

    Args:
        options: what to look at.

    Raises:
        InputError: a path leads nowhere, or, in strict mode, the first item that cannot be read.
        StoreError: the database cannot be used.
    """
    with Store.open(options.db) as store:
        loaded = load(store, options.paths, options.reading)
        seen = Seen()
        tally = _Tally()
        for trajectory in iter_trajectories(store, options.trajectories, seen):
            tally.take(trajectory)
        return InspectReport(
            inputs=tuple(_input(i) for i in loaded.inputs),
            contents=_contents(store, seen),
            graded=tally.graded(seen),
        )


def _input(found: LoadedInput) -> InspectedInput:
    return InspectedInput(
        path=found.path,
        size=found.size,
        format=found.format or None,
        framing=found.framing or None,
        compression=found.compression or None,
        signals=dict(found.signals),
        spans_read=found.spans_read,
        spans_distinct=found.spans_distinct,
        duplicates_dropped=found.duplicates_dropped,
        conflicting=found.conflicting,
        log_records=found.log_records,
        skipped=tuple(_skipped(s) for s in found.skipped),
        warnings=tuple(_skipped(s) for s in found.warnings),
        error=found.error,
    )


def _skipped(entry: LoadedSkipped) -> Skipped:
    return Skipped(where=entry.where, reason=entry.reason, id=entry.id, count=entry.count)


def _contents(store: Store, seen: Seen) -> Contents:
    spans, traces, first, last, unfinished, precision = next(iter(store.query(_TOTALS).rows))
    logs, first_log, last_log = next(iter(store.query(_LOGS).rows))
    read = sum(seen.spans_by_dialect.values())
    return Contents(
        spans=spans,
        traces=traces,
        log_records=logs,
        first_ns=min((t for t in (first, first_log) if t is not None), default=None),
        last_ns=max((t for t in (last, last_log) if t is not None), default=None),
        unfinished=unfinished,
        precision_ns=precision,
        services=tuple(NameCount(name=n, count=c) for n, c in store.query(_SERVICES).rows if n),
        scopes=tuple(ScopeCount(name=n, version=v, spans=c) for n, v, c in store.query(_SCOPES).rows if n),
        dialects=_counts(Counter(seen.spans_by_dialect)),
        unread_spans=max(spans - read, 0),
    )


def _counts(counter: Counter[str]) -> tuple[NameCount, ...]:
    """The most frequent first, equal ones by name."""
    return tuple(NameCount(name=n, count=c) for n, c in sorted(counter.items(), key=lambda item: (-item[1], item[0])))


class _Tally:
    """Counts over trajectories as they stream by."""

    def __init__(self) -> None:
        self._trajectories: Counter[str] = Counter()
        self._steps: Counter[str] = Counter()
        self._tools: Counter[str] = Counter()
        self._agents: Counter[str] = Counter()
        self._models: Counter[str] = Counter()
        self._gaps: Counter[str] = Counter()
        self._gap_trajectories: Counter[str] = Counter()
        self._gap_messages: dict[str, str] = {}

    def take(self, trajectory: Trajectory) -> None:
        kinds = Counter(step.kind for step in trajectory.steps)
        self._trajectories["all"] += 1
        self._trajectories["complete"] += trajectory.complete
        self._trajectories["with_tool_calls"] += kinds["tool_call"] > 0
        self._trajectories["with_messages"] += kinds["message"] > 0
        self._steps.update(kinds)
        self._tools.update(step.name for step in trajectory.calls())
        self._models.update(step.name for step in trajectory.steps if step.kind == "model_call")
        self._agents.update(trajectory.agents)
        for gap in trajectory.gaps:
            self._gaps[gap.code] += gap.count
            self._gap_messages.setdefault(gap.code, gap.message)
        self._gap_trajectories.update({gap.code for gap in trajectory.gaps})

    def graded(self, seen: Seen) -> Graded:
        gaps = sorted(self._gap_trajectories.items(), key=lambda item: (-item[1], item[0]))
        return Graded(
            trajectories=self._trajectories["all"],
            complete=self._trajectories["complete"],
            with_tool_calls=self._trajectories["with_tool_calls"],
            with_messages=self._trajectories["with_messages"],
            joined=tuple(seen.joined),
            set_up_traces=len(seen.set_up),
            other_traces=seen.other,
            steps=dict(sorted(self._steps.items())),
            tools=_counts(self._tools),
            agents=_counts(self._agents),
            models=_counts(self._models),
            gaps=tuple(
                GapCount(code=code, message=self._gap_messages[code], count=self._gaps[code], trajectories=n)
                for code, n in gaps
            ),
        )

"""Trajectories out of files or a database: read, store, group, rebuild.

Traces stream through: one that stands alone becomes a trajectory as it is read; those that may belong together are
noted, grouped once all are known, and read again. Memory holds one trace at a time and a few words on each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracegrade.dialects.logs import spans_from_logs
from tracegrade.dialects.registry import Registry
from tracegrade.errors import InputError, UsageError
from tracegrade.model.span import Span
from tracegrade.model.trajectory import Trajectory
from tracegrade.model.values import canonical
from tracegrade.trajectory.build import BuildOptions, build_trajectory
from tracegrade.trajectory.forest import Forest
from tracegrade.trajectory.group import Group, Part, describe, group, parts_of

if TYPE_CHECKING:
    from tracegrade.ingest import ReadOptions
    from tracegrade.store import Store

_GROUPS_AT_ONCE = 256
_GRADED_ROLES = frozenset({"agent", "workflow", "model", "tool", "handoff", "message"})


@dataclass(frozen=True, slots=True)
class TrajectoryOptions:
    """How spans become trajectories.

    Attributes:
        group_by: `auto`, `trace`, `conversation`, `messages`, or an attribute's name.
        task_key, trial_key: span or resource attributes that hold a trial's task and number.
        trial_traces: trace id → a name of the trial that a trials file gives it; such traces join by it only.
        trial_conversations: conversation id → the same.
        build: how spans are read.
        dialects: files of a user's own dialects.
    """

    group_by: str = "auto"
    task_key: str | None = None
    trial_key: str | None = None
    trial_traces: Mapping[str, str] = field(default_factory=dict)
    trial_conversations: Mapping[str, str] = field(default_factory=dict)
    build: BuildOptions = field(default_factory=BuildOptions)
    dialects: tuple[Path, ...] = ()


@dataclass(slots=True)
class Seen:
    """What went by while trajectories were read, known once the last one was.

    Attributes:
        set_up: ids of traces that only prepare agents.
        other: number of traces without any GenAI span.
        joined: what was joined or split, in sentences.
        spans_by_dialect: dialect → number of spans read in it.
    """

    set_up: list[str] = field(default_factory=list)
    other: int = 0
    joined: list[str] = field(default_factory=list)
    spans_by_dialect: dict[str, int] = field(default_factory=dict)


def iter_trajectories(
    store: Store, options: TrajectoryOptions | None = None, seen: Seen | None = None
) -> Iterator[Trajectory]:
    """The trajectories of a store: those of single traces in order of time, then those of several.

    Args:
        store: an open store.
        options: how to group and read.
        seen: takes what else is in the store.
    """
    options = options or TrajectoryOptions()
    seen = seen if seen is not None else Seen()
    registry = _registry(options)
    waiting: list[Part] = []
    recurring = store.recurring(registry.plain_keys("conversation_id"))
    cut = store.cut_traces()
    rejoin = options.group_by in ("auto", "conversation")
    detached = store.detached_call_ids(registry.plain_keys("call_id")) if rejoin else set()
    for spans in _all_traces(store):
        forest = Forest(spans, registry)
        _count(forest, seen)
        if not any(f.role in _GRADED_ROLES for f in forest.facts):
            if any(f.role == "setup" for f in forest.facts):
                seen.set_up.append(spans[0].trace_id)
            else:
                seen.other += 1
            continue
        parts = [_own(p, options) for p, _ in parts_of(spans, forest, options.group_by, _keys(options))]
        alone = (
            len(parts) == 1 and parts[0].key is None and parts[0].history is None and not _may_join(parts[0], recurring)
        )
        if alone:
            built = _trajectory(registry, options, Group((parts[0],), "trace"), spans, forest, cut)
            lost = _lost_calls(parts[0], built, forest, detached) if detached else None
            if lost is None:
                yield built
            else:
                waiting.append(lost)
        else:
            waiting += parts
    groups = group(waiting)
    seen.joined = describe(groups)
    for start in range(0, len(groups), _GROUPS_AT_ONCE):
        some = groups[start : start + _GROUPS_AT_ONCE]
        traces = _traces_of(store, {p.trace_id for g in some for p in g.parts})
        for found in some:
            yield _trajectory(registry, options, found, _spans_of(traces, registry, options, found), None, cut)


def _all_traces(store: Store) -> Iterator[list[Span]]:
    yield from store.traces()
    by_trace: dict[str, list[Span]] = {}
    for span in spans_from_logs(store.loose_logs()):
        by_trace.setdefault(span.trace_id, []).append(span)
    yield from by_trace.values()


def _count(forest: Forest, seen: Seen) -> None:
    for f in forest.facts:
        if f.dialect is not None:
            seen.spans_by_dialect[f.dialect] = seen.spans_by_dialect.get(f.dialect, 0) + 1


def _keys(options: TrajectoryOptions) -> tuple[str, ...]:
    return tuple(k for k in (options.task_key, options.trial_key) if k)


def _own(part: Part, options: TrajectoryOptions) -> Part:
    """A part under the name of the trial that a trials file gives its trace or conversation."""
    name = options.trial_traces.get(part.trace_id)
    if name is None and part.conversation_id is not None:
        name = options.trial_conversations.get(part.conversation_id)
    return replace(part, key=name) if name is not None and part.key is None else part


def _may_join(part: Part, recurring: set[str]) -> bool:
    """Whether another trace may be of the part's conversation; ids that a converter gave are not looked for."""
    return part.conversation_id is not None and (part.conversation_id in recurring or not part.plain_id)


def _lost_calls(part: Part, built: Trajectory, forest: Forest, detached: set[str]) -> Part | None:
    """The part with what may join it by call id: tool calls without the trace that asked, or requests without a span.

    Tools run in threads or workers lose their context and become traces of their own (DIALECTS §5, detached threads).
    """
    ids = {c.call_id for c in built.calls()}
    if not any(f.role in ("agent", "workflow", "model") for f in forest.facts):
        whole = bool(ids) and None not in ids and ids <= detached
        return replace(part, strays=frozenset(i for i in ids if i)) if whole else None
    wants = frozenset(
        c.call_id for c in built.calls() if c.call_id in detached and c.start_ns is None and not c.prior and c.call_id
    )
    return replace(part, wants=wants) if wants else None


def _traces_of(store: Store, ids: set[str]) -> dict[str, list[Span]]:
    traces = {spans[0].trace_id: spans for spans in store.traces(sorted(ids))}
    if len(traces) < len(ids):
        for span in spans_from_logs(store.loose_logs()):
            if span.trace_id in ids:
                traces.setdefault(span.trace_id, []).append(span)
    return traces


def _spans_of(
    traces: Mapping[str, list[Span]], registry: Registry, options: TrajectoryOptions, found: Group
) -> list[Span]:
    wanted = {(p.trace_id, p.root) for p in found.parts}
    spans: list[Span] = []
    for trace_id in sorted({p.trace_id for p in found.parts}):
        trace = traces[trace_id]
        for part, own in parts_of(trace, Forest(trace, registry), options.group_by, _keys(options)):
            if (part.trace_id, part.root) in wanted:
                spans += own
    return spans


def _trajectory(
    registry: Registry,
    options: TrajectoryOptions,
    found: Group,
    spans: Sequence[Span],
    forest: Forest | None,
    cut: Mapping[str, int],
) -> Trajectory:
    first = found.parts[0]
    identity = min(p.trace_id for p in found.parts)
    if first.root is not None and len({p.trace_id for p in found.parts}) == 1:
        identity = f"{identity}/{first.root}"
    built = build_trajectory(
        spans,
        registry,
        options.build,
        trajectory_id=identity,
        conversation_id=found.conversation_id or first.conversation_id,
        joined_by=found.joined_by,
        forest=forest,
        left_out=sum(cut.get(trace_id, 0) for trace_id in {p.trace_id for p in found.parts}) if cut else 0,
        left_apart=found.ambiguous,
    )
    task = _attribute_text(built, options.task_key)
    trial = _attribute_text(built, options.trial_key)
    return replace(built, task_id=task, trial=trial) if task is not None or trial is not None else built


def _attribute_text(trajectory: Trajectory, key: str | None) -> str | None:
    if key is None or key not in trajectory.attributes:
        return None
    value = trajectory.attributes[key]
    return value if isinstance(value, str) else canonical(value)


def _registry(options: TrajectoryOptions) -> Registry:
    from tracegrade.dialects.custom import load_dialects

    return Registry(load_dialects(options.dialects))


def trajectories_from_paths(
    paths: Sequence[str],
    options: TrajectoryOptions | None = None,
    db: Path | None = None,
    read: ReadOptions | None = None,
) -> Iterator[Trajectory]:
    """The trajectories in some files, read into memory (or into a database that is kept).

    Args:
        paths: files, folders, globs, `-` for standard input.
        options: how spans become trajectories.
        db: a database file to keep the spans in.
        read: limits of the readers, and whether to stop at the first item that cannot be read.

    Raises:
        InputError: no file could be read, or, in strict mode, the first item that cannot be.
        UsageError: nothing to read was named.
    """
    from tracegrade.app.load import load
    from tracegrade.store import Store

    if not paths:
        msg = "no input named: give files, folders, globs, or - for standard input"
        raise UsageError(msg)
    with Store.open(db) as store:
        report = load(store, paths, read)
        if report.errors and not report.spans_distinct and not report.spans_read:
            raise InputError("\n".join(report.errors))
        yield from iter_trajectories(store, options)

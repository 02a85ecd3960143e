"""Traffic in, a reproducible sample of whole trajectories out, with a manifest of its weights; and weighted rates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tracegrade.app.load import load
from tracegrade.app.replay_grade import read_result
from tracegrade.app.trajectories import TrajectoryOptions, iter_trajectories
from tracegrade.dialects.logs import spans_from_logs
from tracegrade.errors import UsageError
from tracegrade.ingest import ReadOptions
from tracegrade.ingest.otlp_write import format_of, write_spans
from tracegrade.model.load import LoadReport
from tracegrade.model.sample import Manifest, SampledTrajectory, Source, StratumReport
from tracegrade.model.span import LogRecord, Span
from tracegrade.model.trajectory import Trajectory
from tracegrade.replay.sample import KEEP, Sample, Unit, draw, labels_of, threshold, threshold_weight
from tracegrade.score.weighted import kish_n
from tracegrade.store import Store

MIXED: Final = "its spans carry different sampling thresholds; the largest counts"
_CHUNK: Final = 200


@dataclass(frozen=True, slots=True)
class SampleOptions:
    """What to sample and how.

    Attributes:
        paths: files of spans, folders, globs, `-`.
        db: a database, instead of or beside files.
        out: where to write the spans; None draws without writing.
        by: dimensions to stratify by.
        size, rate: one of them: how many trajectories, or which share.
        keep: strata with no more trajectories than this are taken whole.
        seed: another seed, another sample.
        since, until: window on the start, as ISO 8601 or Unix nanoseconds; `until` is outside.
        weight_attribute: a span or resource attribute that holds how many traces one stands for.
        probability_attribute: one that holds the probability with which it was kept.
        result: a check result, for outcomes and tags.
        trajectories: how to group spans.
        read: how to read.
    """

    paths: Sequence[str] = ()
    db: Path | None = None
    out: Path | None = None
    by: Sequence[str] = ()
    size: int | None = None
    rate: float | None = None
    keep: int = KEEP
    seed: int = 0
    since: str | None = None
    until: str | None = None
    weight_attribute: str | None = None
    probability_attribute: str | None = None
    result: Path | None = None
    trajectories: TrajectoryOptions = field(default_factory=TrajectoryOptions)
    read: ReadOptions = field(default_factory=ReadOptions)


def sample(options: SampleOptions) -> Manifest:
    """Draw a sample and write it.

    Raises:
        UsageError: options that do not go together.
        InputError: a path leads nowhere, a result that is none, or, in strict mode, an item that cannot be read.
    """
    if options.out is not None and format_of(options.out)[0] is None:
        raise UsageError(f"--out {options.out}: the name tells no format; end it in .pb, .proto, .json or .jsonl")
    since, until = _moment(options.since, "--since"), _moment(options.until, "--until")
    with Store.open(options.db) as store:
        loaded = load(store, list(options.paths), options.read) if options.paths else LoadReport()
        found, weights_from = units_of(store, options)
        units = [u for u in found if _inside(u, since, until)]
        drawn = draw(units, by=options.by, size=options.size, rate=options.rate, keep=options.keep, seed=options.seed)
        spans = _write(store, drawn, options.out) if options.out is not None and drawn.chosen else 0
    return _manifest(options, loaded, found, units, drawn, spans, weights_from, (since, until))


def units_of(store: Store, options: SampleOptions) -> tuple[list[Unit], str]:
    """Every unit of a store, and where weights came from."""
    weights = _Weights(options)
    by_trace = {t: weights.of(spans) for spans in store.traces() if (t := spans[0].trace_id)}
    results = _results(options.result)
    trajectories = [
        Unit(
            id=t.trajectory_id,
            trajectory_ids=(t.trajectory_id,),
            trace_ids=t.trace_ids,
            start_ns=t.start_ns,
            labels=labels_of(t, *_known(results, t)),
        )
        for t in iter_trajectories(store, options.trajectories)
    ]
    return [_weighted(u, by_trace) for u in _joined(trajectories)], weights.source()


def _joined(units: Sequence[Unit]) -> list[Unit]:
    """Units that share no trace: trajectories of one trace are kept or left together."""
    by_trace: dict[str, list[int]] = {}
    for index, unit in enumerate(units):
        for trace in unit.trace_ids:
            by_trace.setdefault(trace, []).append(index)
    leader = list(range(len(units)))

    def find(index: int) -> int:
        while leader[index] != index:
            leader[index] = leader[leader[index]]
            index = leader[index]
        return index

    for indexes in by_trace.values():
        for other in indexes[1:]:
            leader[find(other)] = find(indexes[0])
    groups: dict[int, list[Unit]] = {}
    for index, unit in enumerate(units):
        groups.setdefault(find(index), []).append(unit)
    return [group[0] if len(group) == 1 else _merged(group) for group in groups.values()]


def _merged(group: Sequence[Unit]) -> Unit:
    ids = tuple(sorted(i for u in group for i in u.trajectory_ids))
    labels: dict[str, set[str]] = {}
    for unit in group:
        for dimension, names in (unit.labels or {}).items():
            labels.setdefault(dimension, set()).update(names)
    starts = [u.start_ns for u in group if u.start_ns is not None]
    return Unit(
        id=ids[0],
        trajectory_ids=ids,
        trace_ids=tuple(sorted({t for u in group for t in u.trace_ids})),
        start_ns=min(starts, default=None),
        labels={d: tuple(sorted(names)) for d, names in labels.items()},
    )


class _Weights:
    """Reads upstream weights off spans: an attribute where one is named, else `tracestate`."""

    def __init__(self, options: SampleOptions) -> None:
        if options.weight_attribute and options.probability_attribute:
            raise UsageError("give one of --weight-attribute and --probability-attribute")
        self._key = options.weight_attribute or options.probability_attribute
        self._inverse = options.probability_attribute is not None
        self._found = 0

    def of(self, spans: Sequence[Span]) -> tuple[float, tuple[str, ...]]:
        """The weight of a trace, that of its root, and what makes it doubtful."""
        root = next((s for s in spans if s.parent_span_id is None), spans[0])
        if self._key is not None:
            return self._attribute(self._key, [root, *spans])
        limits = {t for s in spans if (t := threshold(s.trace_state)) is not None}
        if not limits:
            return 1.0, ()
        self._found += 1
        return threshold_weight(max(limits)), (MIXED,) if len(limits) > 1 else ()

    def _attribute(self, key: str, spans: Sequence[Span]) -> tuple[float, tuple[str, ...]]:
        value = next((v for s in spans for a in (s.attributes, s.resource) if (v := a.get(key)) is not None), None)
        try:
            number = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return 1.0, (f"no number in `{key}`; weight 1 is assumed",)
        if self._inverse:
            number = 1 / number if 0 < number <= 1 else 0.0
        if not 1 <= number < float("inf"):
            return 1.0, (f"`{key}` is no {'probability' if self._inverse else 'weight of 1 or more'}",)
        self._found += 1
        return number, ()

    def source(self) -> str:
        """Where the weights came from."""
        if self._key is not None:
            return f"the attribute `{self._key}`"
        return "tracestate" if self._found else "none: each trajectory counts once"


def _weighted(unit: Unit, by_trace: Mapping[str, tuple[float, tuple[str, ...]]]) -> Unit:
    known = [by_trace[t] for t in unit.trace_ids if t in by_trace]
    if not known:
        return unit
    gaps = {g for _, found in known for g in found}
    if len({w for w, _ in known}) > 1:
        gaps.add(MIXED)
    return replace(unit, weight=max(w for w, _ in known), gaps=tuple(sorted(gaps)))


def _write(store: Store, drawn: Sample, out: Path) -> int:
    traces = [t for c in drawn.chosen for t in c.unit.trace_ids]
    wanted = frozenset(traces)

    def spans() -> Iterator[Span]:
        for start in range(0, len(traces), _CHUNK):
            for trace in store.traces(traces[start : start + _CHUNK]):
                yield from trace

    def logs() -> Iterator[LogRecord]:
        yield from (r for r in store.loose_logs() if _trace_of(r) in wanted)

    out.parent.mkdir(parents=True, exist_ok=True)
    return write_spans(spans(), out, logs=logs())


def _trace_of(record: LogRecord) -> str | None:
    """The trace of a log record: its own, or that of the session of a command-line agent."""
    session = spans_from_logs([record])
    return session[0].trace_id if session else record.trace_id


def _inside(unit: Unit, since: int | None, until: int | None) -> bool:
    if since is None and until is None:
        return True
    start = unit.start_ns
    return start is not None and (since is None or start >= since) and (until is None or start < until)


def _moment(text: str | None, option: str) -> int | None:
    if text is None:
        return None
    if text.isdecimal():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{option} {text}: expected a time such as 2026-03-01T00:00:00Z, or Unix nanoseconds"
        ) from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since_epoch = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since_epoch.days * 86_400 + since_epoch.seconds) * 10**9 + since_epoch.microseconds * 1000


def _manifest(
    options: SampleOptions,
    loaded: LoadReport,
    found: Sequence[Unit],
    units: Sequence[Unit],
    drawn: Sample,
    spans: int,
    weights_from: str,
    window: tuple[int | None, int | None],
) -> Manifest:
    warnings = []
    missed = [s for s in drawn.strata if s.chosen == 0]
    if missed:
        warnings.append(
            f"{len(missed)} of {len(drawn.strata)} strata have no trajectory in the sample: it is too small"
        )
    doubtful = [c for c in drawn.chosen if c.unit.gaps]
    if doubtful:
        warnings.append(f"the weights of {len(doubtful)} trajectories are doubtful: {doubtful[0].unit.gaps[0]}")
    if loaded.skipped:
        warnings.append(f"{loaded.skipped} items of the inputs could not be read; `inspect` says which")
    trajectories = tuple(
        SampledTrajectory(
            trajectory_id=i,
            trace_ids=c.unit.trace_ids,
            stratum=c.stratum,
            upstream_weight=c.unit.weight,
            probability=c.probability,
            weight=c.weight,
            gaps=c.unit.gaps,
        )
        for c in drawn.chosen
        for i in c.unit.trajectory_ids
    )
    return Manifest(
        sources=tuple(Source(path=i.path, sha256=i.sha256, spans=i.spans_read, error=i.error) for i in loaded.inputs),
        output=str(options.out) if options.out is not None and drawn.chosen else None,
        seed=options.seed,
        by=tuple(options.by),
        size=options.size,
        rate=options.rate,
        keep=options.keep,
        since_ns=window[0],
        until_ns=window[1],
        weights_from=weights_from,
        population=sum(len(u.trajectory_ids) for u in units),
        outside_window=sum(len(u.trajectory_ids) for u in found) - sum(len(u.trajectory_ids) for u in units),
        population_weight=float(sum(u.weight * len(u.trajectory_ids) for u in units)),
        effective_n=kish_n([t.weight for t in trajectories]),
        spans=spans,
        strata=tuple(StratumReport(key=s.key, population=s.population, chosen=s.chosen) for s in drawn.strata),
        trajectories=trajectories,
        warnings=tuple(warnings),
    )


# ---------------------------------------------------------------------- results of a check


def _results(path: Path | None) -> dict[str, dict[str, Any]]:
    if path is None:
        return {}
    return {t["trajectory_id"]: t for t in read_result(path).get("trajectories", ())}


def _known(results: Mapping[str, dict[str, Any]], trajectory: Trajectory) -> tuple[str | None, Sequence[str]]:
    """Outcome (else verdict) and tags that a result gives a trajectory."""
    known = results.get(trajectory.trajectory_id)
    if known is None:
        return None, ()
    outcome = (known.get("outcome") or {}).get("verdict") or known.get("verdict")
    return outcome, known.get("tags") or ()

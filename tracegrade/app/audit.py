"""`audit`: is this telemetry good enough to grade, and did it get worse?"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel

from tracegrade.app.trajectories import TrajectoryOptions, iter_trajectories
from tracegrade.audit.base import Options, Place, Rule, Scene, Totals
from tracegrade.audit.catalog import rules
from tracegrade.audit.compare import FLOOR, Comparison, compare_coverage
from tracegrade.audit.judge import (
    attribute_bytes,
    conclusion,
    coverage,
    ratchet_shares,
    slipped,
    tightened,
    todo,
    waive,
)
from tracegrade.audit.ledger import Ledger
from tracegrade.audit.profile import Counts, attribute_name
from tracegrade.audit.semconv import NAMESPACES, Conventions, conventions
from tracegrade.dialects.registry import Registry
from tracegrade.errors import Problem, RuleFileError, UsageError, did_you_mean
from tracegrade.model.audit import (
    PROFILE_SCHEMA,
    AuditProfile,
    AuditReport,
    AuditWaiver,
    AuditWaivers,
    FailOnLevel,
    Ratchet,
)
from tracegrade.model.report import Warned
from tracegrade.report.inputs import input_reports, load_warnings
from tracegrade.trajectory.forest import Forest

if TYPE_CHECKING:
    from tracegrade.audit.renames import Hashes
    from tracegrade.checks.load import CompiledInvariant
    from tracegrade.ingest import ReadOptions
    from tracegrade.model.load import LoadReport
    from tracegrade.model.span import Span
    from tracegrade.model.trajectory import Trajectory
    from tracegrade.replay.redact.detect import Detector
    from tracegrade.store import Store

M = TypeVar("M", bound=BaseModel)
DEFAULT_PACKS = ("core",)
_AT_ONCE = 128
_SHORT = 128
_LARGEST_PROFILE = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """Everything that `audit` can be told; the names are those of the command line.

    Attributes:
        paths: files, folders, globs of spans.
        db: a database that holds spans, instead of files or beside them.
        invariants: rule files and packs whose decidability is asked.
        baseline: files of spans, a database or a saved profile to compare with.
        semconv: version of the conventions; the newest if None.
        no_content: content must not be in the telemetry.
        only, skip: globs of audit rules.
        services: globs of services to look at; all if empty.
        waivers: a file of waivers.
        ratchet: a file of floors, made if it is not there and tightened otherwise.
        fail_on: the mildest level that fails.
        floor: least fall of a share that is told.
    """

    paths: Sequence[str] = ()
    db: Path | None = None
    invariants: Sequence[str] | None = None
    baseline: Sequence[str] = ()
    semconv: str | None = None
    no_content: bool = False
    only: Sequence[str] = ()
    skip: Sequence[str] = ()
    services: Sequence[str] = ()
    waivers: Path | None = None
    ratchet: Path | None = None
    fail_on: FailOnLevel = "error"
    floor: float = FLOOR
    read: ReadOptions | None = None
    trajectories: TrajectoryOptions = field(default_factory=TrajectoryOptions)
    today: date | None = None


def run_audit(options: AuditOptions) -> AuditReport:
    """Audits what is in some files, or in a database.

    Args:
        options: what to read and what to hold it against.

    Raises:
        RuleFileError: rules, waivers or the ratchet are malformed.
        UsageError: options do not go together, or name what is not known.
        InputError: a path leads nowhere.
        StoreError: a database cannot be used.
    """
    with _store(options.paths, options.db, options.read) as (store, loaded):
        return audit_store(store, options, loaded)


def audit_store(store: Store, options: AuditOptions, loaded: LoadReport | None) -> AuditReport:
    """Audits all trajectories of an open store; what `run_audit` does once everything is read."""
    chosen = _chosen(options)
    waivers = _waivers(options.waivers)
    floors = _ratchet(options.ratchet)
    audit = Options(conventions(options.semconv), _detect, options.no_content)
    compiled = _compiled(options)
    ledger = Ledger(chosen, audit)
    counts = _count(store, options, compiled, ledger, audit.conventions)
    comparison = _compare(options, compiled, counts) if options.baseline else None
    shares = counts.share_report()
    now = ratchet_shares(shares)
    down = slipped(floors.floors, now) if floors is not None else []
    ledger.conclude(Totals(counts, loaded, comparison, down))
    findings, idle = waive(ledger.findings(), waivers, options.today or date.today())
    unreadable = [i.path for i in loaded.inputs if i.error is not None] if loaded is not None else []
    summary = conclusion(findings, shares, options.fail_on, unreadable)
    if options.ratchet is not None and counts.shares["trajectories"]:
        _write_ratchet(options.ratchet, tightened(floors.floors if floors is not None else {}, now))
    return AuditReport(
        verdict="fail" if summary.exit_code else "pass",
        summary=summary,
        semconv=audit.conventions.version,
        inputs=input_reports(loaded) if loaded is not None else (),
        baseline=", ".join(options.baseline) or None,
        shares=shares,
        findings=tuple(findings),
        coverage=coverage(counts, _coverage_before(comparison)),
        decidability=counts.decidability(),
        todo=todo(counts),
        bytes=attribute_bytes(counts),
        unknown_attributes=dict(sorted(counts.unknown_attributes.items())),
        warnings=tuple(_warnings(loaded, idle)),
    )


def count_store(store: Store, options: AuditOptions) -> Counts:
    """What the telemetry of an open store carries; `profile()` and `hashes()` of it go into `compare_coverage`."""
    return _count(store, options, _compiled(options), None, None)


def take_profile(options: AuditOptions) -> AuditProfile:
    """The profile of some telemetry: counts, to compare later telemetry with. No value and no id stands in it.

    Raises:
        The same as `run_audit`.
    """
    with _store(options.paths, options.db, options.read) as (store, _):
        return count_store(store, options).profile()


def _chosen(options: AuditOptions) -> list[Rule]:
    known = [r.id for r in rules()]
    for pattern in (*options.only, *options.skip):
        if not fnmatch.filter(known, pattern):
            raise UsageError(f"no rule of the audit is called `{pattern}`.{did_you_mean(pattern, known)}")
    return [
        r
        for r in rules()
        if (not options.only or r.id == "no-telemetry" or any(fnmatch.fnmatchcase(r.id, p) for p in options.only))
        and not any(fnmatch.fnmatchcase(r.id, p) for p in options.skip)
    ]


def _compiled(options: AuditOptions) -> Sequence[CompiledInvariant]:
    from tracegrade.checks.load import load_packs, rules_of

    return rules_of(load_packs(tuple(options.invariants or DEFAULT_PACKS)))


@contextmanager
def _store(
    paths: Sequence[str], db: Path | None, read: ReadOptions | None
) -> Iterator[tuple[Store, LoadReport | None]]:
    from tracegrade.app.load import load
    from tracegrade.store import Store

    if not paths and db is None:
        raise UsageError("nothing to audit was named: give files, folders, globs, - for standard input, or --db")
    with Store.open(db) as store:
        yield store, load(store, list(paths), read) if paths else None


def _count(
    store: Store,
    options: AuditOptions,
    compiled: Sequence[CompiledInvariant],
    ledger: Ledger | None,
    known: Conventions | None,
) -> Counts:
    """Counts every trajectory of a store, and shows each to the rules."""
    from tracegrade.checks.run import run_checks

    counts = Counts()
    for scene in _scenes(store, options):
        counts.add(scene)
        counts.judged(run_checks(scene.trajectory, compiled))
        if known is not None:
            for facts in scene.facts:
                unknown = (k for k in facts.span.attributes if k.startswith(NAMESPACES) and k not in known.attributes)
                counts.unknown_attributes.update(attribute_name(k) for k in unknown)
        if ledger is not None:
            ledger.look(scene)
    return counts


def _scenes(store: Store, options: AuditOptions) -> Iterator[Scene]:
    """Every trajectory with its spans; memory holds the spans of a fixed number of trajectories."""
    from tracegrade.dialects.custom import load_dialects

    registry = Registry(load_dialects(options.trajectories.dialects))
    seen: set[str] = set()
    for some in _batches(iter_trajectories(store, options.trajectories)):
        ids = sorted({t for trajectory in some for t in trajectory.trace_ids})
        traces = {spans[0].trace_id: spans for spans in store.traces(ids)}
        for trajectory in some:
            if options.services and not _served(trajectory, options.services):
                continue
            spans: list[Span] = []
            for trace in trajectory.trace_ids:
                if trace not in seen:
                    spans += traces.get(trace, ())
                if "/" in trajectory.trajectory_id:  # another trajectory of the trace may follow
                    seen.add(trace)
            forest = Forest(spans, registry)
            yield Scene(trajectory, forest, [f for f in forest.facts if f.role is not None])


def _batches(trajectories: Iterable[Trajectory]) -> Iterator[list[Trajectory]]:
    iterator = iter(trajectories)
    while some := list(islice(iterator, _AT_ONCE)):
        yield some


def _served(trajectory: Trajectory, services: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(s, p) for s in trajectory.services for p in services)


def _compare(options: AuditOptions, compiled: Sequence[CompiledInvariant], counts: Counts) -> Comparison:
    hashes: Hashes = {}
    saved = read_profile(options.baseline)
    if saved is None:
        paths, db = _spans_or_db(options.baseline)
        with _store(paths, db, options.read) as (store, _):
            before = _count(store, options, compiled, None, None)
        saved, hashes = before.profile(), before.hashes()
    if not saved.shares.trajectories:
        raise UsageError(f"--baseline {', '.join(options.baseline)}: holds no trajectory, so nothing can be compared")
    return compare_coverage(
        saved, counts.profile(), floor=options.floor, hashes=(hashes, counts.hashes()) if hashes else None
    )


def read_profile(paths: Sequence[str]) -> AuditProfile | None:
    """The profile in a file of `audit profile`; None where the path is something else.

    Raises:
        UsageError: it is a profile of another version.
    """
    import orjson
    from pydantic import ValidationError

    path = Path(paths[0])
    if len(paths) != 1 or not path.is_file() or path.stat().st_size > _LARGEST_PROFILE:
        return None
    try:
        data = orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError:
        return None
    if not isinstance(data, dict) or not str(data.get("schema", "")).startswith("tracegrade/audit-profile/"):
        return None
    try:
        if data["schema"] != PROFILE_SCHEMA:
            raise UsageError(f"{paths[0]}: is a {data['schema']}, expected {PROFILE_SCHEMA}: make it again")
        return AuditProfile.model_validate(data)
    except ValidationError as error:
        raise UsageError(f"{paths[0]}: is no whole profile: {error.errors()[0]['msg']}; make it again") from error


def _spans_or_db(paths: Sequence[str]) -> tuple[Sequence[str], Path | None]:
    if len(paths) == 1 and Path(paths[0]).is_file():
        with Path(paths[0]).open("rb") as file:
            head = file.read(12)
        if head[8:12] == b"DUCK":
            return (), Path(paths[0])
    return paths, None


def _detect(text: str, kinds: frozenset[str]) -> tuple[str, ...]:
    """The kind of each place of a text that the redactor would take out."""
    return _detect_short(text, kinds) if len(text) <= _SHORT else _detect_any(text, kinds)


def _detect_any(text: str, kinds: frozenset[str]) -> tuple[str, ...]:
    from tracegrade.replay.redact.detect import find_secrets

    return tuple(hit.kind for hit in find_secrets(text, _detectors(kinds)))


_detect_short = lru_cache(maxsize=16_384)(_detect_any)
"""Short texts (models, names, roles) stand on span after span."""


@cache
def _detectors(kinds: frozenset[str]) -> tuple[Detector, ...]:
    from tracegrade.replay.redact.detect import DETECTORS

    return tuple(d for d in DETECTORS if d.kind in kinds)


def _coverage_before(comparison: Comparison | None) -> dict[tuple[str, str, str, str], tuple[int, int]]:
    """The baseline's counts under the candidate's names of places."""
    found = {}
    for o in comparison.baseline.operations if comparison is not None else ():
        old = Place(o.service, o.scope, o.operation)
        place = comparison.places.get(old, old) if comparison is not None else old
        for name, a in o.attributes.items():
            found[(*place, name)] = (a.all, o.trajectories)
    return found


def _waivers(path: Path | None) -> Sequence[AuditWaiver]:
    return _read_yaml(path, AuditWaivers).waivers if path is not None else ()


def _ratchet(path: Path | None) -> Ratchet | None:
    return _read_yaml(path, Ratchet) if path is not None and path.exists() else None


def _read_yaml(path: Path, model: type[M]) -> M:
    import yaml
    from pydantic import ValidationError

    try:
        return model.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")) or {})
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RuleFileError([Problem(str(path), "", f"not valid YAML: {error}")]) from error
    except ValidationError as error:
        problems = [Problem(str(path), ".".join(map(str, e["loc"])), e["msg"]) for e in error.errors()]
        raise RuleFileError(problems) from error


def _write_ratchet(path: Path, floors: dict[str, float]) -> None:
    from tracegrade.report.json import json_document

    try:
        path.write_text(json_document({"floors": floors}), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--ratchet {path}: cannot be written: {error.strerror}") from error


def _warnings(loaded: LoadReport | None, idle: Iterable[tuple[AuditWaiver, str]]) -> Iterator[Warned]:
    if loaded is not None:
        yield from load_warnings(loaded)
    for waiver, why in idle:
        message = f"waiver of {waiver.owner} for `{waiver.rule}` ({waiver.reason}): {why}"
        yield Warned(code="idle_waiver", message=message, context={"rule": waiver.rule, "owner": waiver.owner})

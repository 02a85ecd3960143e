"""One side of a gate from whatever it is: a check result, a table of outcomes, a database, or spans."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracegrade.app.graded_database import document_of_database
from tracegrade.app.outcome_table import Row, Table, read_table
from tracegrade.app.outcomes import COLUMNS, Reading, trials_of_check, trials_of_table
from tracegrade.errors import InputError, RuleFileError
from tracegrade.model.audit import AuditProfile
from tracegrade.model.scored import ScoredTrial
from tracegrade.score.gate_rules import NO_CALLS
from tracegrade.score.gate_sides import GateSide, InvariantRow

if TYPE_CHECKING:
    from tracegrade.app.check import CheckOptions
    from tracegrade.store import Store

DUCKDB_MAGIC = b"DUCK"
HEAD_BYTES = 64 * 1024
"""How much of a file is looked at to tell what it is."""
HIDDEN_GAPS = frozenset({"calls_not_recorded", "orphan_spans", "no_root", "content_cut", "dropped_attributes"})
"""Gaps that take evidence away from a grade."""
REPORT_MARKS = re.compile(
    rb'"schema"\s*:\s*"tracegrade/|"tracegrade_version"\s*:|\A\{\s*"(?:coverage|dialects|evidence|trials)"'
)
"""What the beginning of a result of tracegrade shows: its own keys, or those that stand first when keys are sorted."""


@dataclass(frozen=True, slots=True)
class GradeBy:
    """How raw spans are graded.

    Attributes:
        invariants: rule files or packs; None for the defaults of `check`.
        tasks: task file.
        trials: trials files of baseline and candidate.
        task_key, trial_key: attributes that hold task and trial ids.
        group_by: what makes spans one trajectory.
    """

    invariants: Sequence[str] | None = None
    tasks: str | None = None
    trials: tuple[str | None, str | None] = (None, None)
    task_key: str | None = None
    trial_key: str | None = None
    group_by: str | None = None


def load_side(path: str, reading: Reading, grade: GradeBy, which: int = 0) -> GateSide:
    """One side of a comparison from a check result, a table, a database, or spans.

    Args:
        path: of the input.
        reading: how to read a table.
        grade: how to grade spans.
        which: 0 for the baseline, 1 for the candidate.

    Raises:
        InputError, RuleFileError, StoreError, UsageError: it cannot be read.
    """
    file = Path(path)
    if is_database(file):
        return _side_of_database(file, grade)
    table = _table(file, reading) if file.is_file() else None
    if table is None:
        document, telemetry = _graded(path, grade, which)
        return replace(side_of_check(path, document), telemetry=telemetry, from_spans=True)
    digest = _digest(file, reading)
    if table.document is not None:
        return side_of_check(path, table.document, digest)
    trials = tuple(trials_of_table(table, reading))
    chosen = ", ".join(f"{name}={value}" for name, value in reading.filters.items())
    name = f"{path} ({chosen})" if chosen else path
    return GateSide(name, trials, trace_ids=_traces(trials), digest=digest)


def is_database(file: Path) -> bool:
    """Whether a path leads to a DuckDB database."""
    if not file.is_file():
        return False
    with file.open("rb") as stream:
        return stream.read(12)[8:12] == DUCKDB_MAGIC


def may_be_results(file: Path, reading: Reading) -> bool:
    """Whether the beginning of a file looks like a check result or a table of outcomes, and not like spans."""
    from tracegrade.ingest import ReadOptions
    from tracegrade.ingest.sniff import is_text
    from tracegrade.ingest.unpack import Unpacked

    if reading.columns or reading.filters:
        return True
    try:
        with file.open("rb") as raw:
            head = Unpacked(raw, str(file), ReadOptions(), lambda _code, _message: None).peek(HEAD_BYTES)
    except (OSError, InputError):
        return False
    if head.startswith(b"PAR1"):
        return True
    if not is_text(head):
        return False
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start[:1] not in (b"{", b"["):
        return True
    return bool(REPORT_MARKS.search(start)) or any(f'"{name}"'.encode() in start for name in ("task_id", "passed"))


def _table(file: Path, reading: Reading) -> Table | None:
    """The file as a check result or a table of outcomes, or None where it must be spans."""
    if not may_be_results(file, reading):
        return None
    try:
        table = read_table(str(file))
    except (InputError, RuleFileError):
        if reading.columns or reading.filters:
            raise
        return None
    if table.document is not None:
        schema = str(table.document.get("schema", ""))
        return table if schema.startswith("tracegrade/") or not schema else None
    known = set(table.columns) & COLUMNS.keys()
    return table if reading.columns or reading.filters or {"task_id", "passed"} & known else None


def _digest(file: Path, reading: Reading) -> str:
    """Of the bytes and of what is read from them: two filters of one table are not the same input."""
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256")
    digest.update(repr((sorted(reading.filters.items()), sorted(reading.columns.items()), reading.threshold)).encode())
    return digest.hexdigest()


def _graded(path: str, grade: GradeBy, which: int) -> tuple[Row, AuditProfile]:
    """The check result of spans, and what those spans carry."""
    from tracegrade.app.check import run_check

    profiles: list[AuditProfile] = []
    options = check_options(path, grade, which)
    report = run_check(options, graded=lambda store: profiles.append(_profile(store, grade)))
    if not report.trajectories:
        problem = next((i.error for i in report.inputs if i.error), "no trajectory in it")
        raise InputError(f"{path}: neither a check result, a table of outcomes, a database nor spans: {problem}")
    return report.model_dump(by_alias=True), profiles[0]


def _profile(store: Store, grade: GradeBy) -> AuditProfile:
    """What the spans of an open store carry."""
    from tracegrade.app.audit import AuditOptions, count_store
    from tracegrade.app.check import trajectory_options

    trajectories = trajectory_options(check_options("", grade, 0))
    return count_store(store, AuditOptions(invariants=grade.invariants, trajectories=trajectories)).profile()


def check_options(path: str, grade: GradeBy, which: int) -> CheckOptions:
    """How `check` grades the spans of one side."""
    from tracegrade.app.check import CheckOptions

    return CheckOptions(
        paths=(path,),
        invariants=grade.invariants,
        tasks=grade.tasks,
        trials=grade.trials[which],
        task_key=grade.task_key,
        trial_key=grade.trial_key,
        group_by=grade.group_by,
    )


def side_of_check(path: str, document: Row, digest: str | None = None) -> GateSide:
    """A side from a check result.

    Without graded trials the verdict of each trajectory, over its error-level rules, is its result.

    Raises:
        InputError: another kind of document.
    """
    trajectories: list[Row] = list(document.get("trajectories") or ())
    if document.get("trials"):
        trials = tuple(trials_of_check(path, document, Reading({}, {})))
    else:
        trials = tuple(_by_verdict(path, i, t) for i, t in enumerate(trajectories) if t.get("task_id") is not None)
    telemetry = document.get("telemetry")
    traced = (*trajectories, *(document.get("trials") or ()))
    kept = document.get("evidence") or {"n_trajectories": len(trajectories), "lacking": _lacking(trajectories)}
    return GateSide(
        path,
        trials,
        tuple(_rows(trajectories)),
        {r["id"]: r["sha256"] for r in document.get("rules") or () if r.get("level", "error") == "error"},
        document.get("tasks_sha256"),
        {name: tuple(map(str, values)) for name, values in (document.get("protocol") or {}).items()},
        frozenset(trace for item in traced for trace in item.get("trace_ids") or ()),
        digest,
        kept["n_trajectories"],
        kept["lacking"],
        frozenset(d["name"] for d in document.get("dialects") or ()),
        sampled=sum(w["context"]["traces"] for w in document.get("warnings") or () if w["code"] == "unweighted"),
        telemetry=None if telemetry is None else AuditProfile.model_validate(telemetry),
    )


def _by_verdict(path: str, index: int, row: Row) -> ScoredTrial:
    verdict = row.get("verdict")
    usage = row.get("usage") or {}
    tokens = [usage.get("input_tokens"), usage.get("output_tokens")]
    nanoseconds = row.get("duration_ns")
    decided = verdict in ("pass", "fail")
    return ScoredTrial(
        task_id=str(row["task_id"]),
        trial=str(row["trial"]) if row.get("trial") is not None else str(row["trajectory_id"]),
        attempt=row.get("attempt"),
        passed=verdict == "pass" if decided else None,
        reason=None if decided else verdict,
        cluster=row.get("cluster"),
        tags=tuple(row.get("tags") or ()),
        cost_usd=usage.get("cost_usd"),
        tokens=None if None in tokens else float(sum(t or 0 for t in tokens)),
        seconds=None if nanoseconds is None else nanoseconds / 1e9,
        trace_ids=tuple(row.get("trace_ids") or ()),
        where=f"{path}: trajectories[{index}]",
    )


def _rows(trajectories: Sequence[Row]) -> list[InvariantRow]:
    """Verdicts of rules by trajectory; what does not apply, is waived or only measures is left out."""
    rows = []
    for trajectory in trajectories:
        unit = trajectory.get("cluster") or trajectory.get("conversation_id") or trajectory.get("trajectory_id")
        for result in trajectory.get("invariants") or ():
            verdict = result["verdict"]
            if verdict == "not_applicable" or result.get("waived") or result.get("gates") is False:
                continue
            if result.get("level", "error") == "info":
                continue
            tags = tuple(result.get("tags") or ())
            rows.append(
                InvariantRow(
                    result["id"],
                    verdict == "pass" if verdict in ("pass", "fail") else None,
                    None if trajectory.get("task_id") is None else str(trajectory["task_id"]),
                    str(unit),
                    tuple(trajectory.get("tags") or ()),
                    safety="safety" in tags and result.get("level", "error") == "error",
                )
            )
    return rows


def _lacking(trajectories: Sequence[Row]) -> dict[str, int]:
    """Kind of missing evidence → trajectories that lack it."""
    lacks: Counter[str] = Counter()
    for trajectory in trajectories:
        steps = trajectory.get("steps") or {}
        kinds = {f"gap {g['code']}" for g in trajectory.get("gaps") or () if g["code"] in HIDDEN_GAPS}
        kinds |= {
            f"rule {r['id']} cannot be decided"
            for r in trajectory.get("invariants") or ()
            if r["verdict"] == "unknown" and r.get("level", "error") == "error"
        }
        if (trajectory.get("outcome") or {}).get("verdict") == "unknown":
            kinds.add("the outcome cannot be decided")
        if steps and not steps.get("tool_call"):
            kinds.add(NO_CALLS)
        lacks.update(kinds)
    return dict(lacks)


def _traces(trials: Sequence[ScoredTrial]) -> frozenset[str]:
    return frozenset(trace for trial in trials for trace in trial.trace_ids)


def _side_of_database(file: Path, grade: GradeBy) -> GateSide:
    """A side from a database that `check --db` wrote: what was graded there, and what its spans carry."""
    from tracegrade.store import Store

    side = side_of_check(str(file), document_of_database(file))
    with Store.open(file) as store:
        if not store.count("span_rows"):
            return side
        return replace(side, telemetry=_profile(store, grade), from_spans=True)

"""The use case of `gate`: read both sides, whatever they are, and compare them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracegrade.app.outcome_table import Row, Table, read_table
from tracegrade.app.outcomes import COLUMNS, Reading, trials_of_check, trials_of_database, trials_of_table
from tracegrade.errors import InputError, RuleFileError
from tracegrade.model.gate import GateReport
from tracegrade.model.scored import ScoredTrial
from tracegrade.score.gate import GatePolicy, gate
from tracegrade.score.gate_sides import GateSide, InvariantRow

if TYPE_CHECKING:
    from tracegrade.app.check import CheckOptions
    from tracegrade.app.trajectories import TrajectoryOptions

DUCKDB_MAGIC = b"DUCK"
HIDDEN_GAPS = frozenset({"calls_not_recorded", "orphan_spans", "no_root", "content_cut", "dropped_attributes"})
"""Gaps that take evidence away from a grade."""


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


@dataclass(frozen=True, slots=True)
class GateQuestion:
    """What to compare.

    Attributes:
        baseline, candidate: a check result, a table, a database, or spans.
        columns, threshold: how to read tables.
        filters: rows taken of the tables, of baseline and candidate.
        grade: how to grade spans.
        policy: what makes the gate fail.
        spans: spans of baseline and candidate, for the first divergent step of flipped tasks; an input that is spans
            itself needs none.
        history: a database of recorded runs, whose names can stand for baseline and candidate.
    """

    baseline: str
    candidate: str
    columns: Mapping[str, str] = field(default_factory=dict)
    threshold: float | None = None
    filters: tuple[Mapping[str, str], Mapping[str, str]] = field(default_factory=lambda: ({}, {}))
    grade: GradeBy = field(default_factory=GradeBy)
    policy: GatePolicy = field(default_factory=GatePolicy)
    spans: tuple[str | None, str | None] = (None, None)
    history: Path | None = None


def run_gate(question: GateQuestion) -> GateReport:
    """Compare two inputs.

    Raises:
        InputError, RuleFileError, StoreError, UsageError: something cannot be read.
    """
    sides = [
        _side(question, path, filters, which)
        for which, (path, filters) in enumerate(
            zip((question.baseline, question.candidate), question.filters, strict=True)
        )
    ]
    report = gate(sides[0], sides[1], question.policy)
    spans = [
        given or (side.name if side.from_spans else None) for given, side in zip(question.spans, sides, strict=True)
    ]
    if report.tasks.flipped and spans[0] is not None and spans[1] is not None:
        from tracegrade.app.divergence import with_divergence

        options = tuple(_trajectory_options(question.grade, which) for which in (0, 1))
        return with_divergence(report, (sides[0], sides[1]), (spans[0], spans[1]), (options[0], options[1]))
    return report


def _side(question: GateQuestion, path: str, filters: Mapping[str, str], which: int) -> GateSide:
    """A side: a recorded run where the history has one of that name and no file has, else an input."""
    if question.history is not None and not Path(path).exists():
        from tracegrade.app.runs import side_of_run

        return side_of_run(question.history, path)
    return load_side(path, Reading(question.columns, filters, question.threshold), question.grade, which)


def _trajectory_options(grade: GradeBy, which: int) -> TrajectoryOptions:
    """How the spans of a side become trajectories, as `check` makes them."""
    from tracegrade.app.check import trajectory_options

    trials = None
    if grade.tasks is not None and grade.trials[which] is not None:
        from tracegrade.outcome.load import load_tasks, load_trials

        trials = load_trials(Path(grade.trials[which] or ""), load_tasks(Path(grade.tasks)).tasks)
    return trajectory_options(_check_options("", grade, which), trials)


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
    if file.is_file() and _is_database(file):
        return _side_of_database(file)
    table = _table(file, reading) if file.is_file() else None
    if table is None:
        return replace(side_of_check(path, _graded(path, grade, which)), from_spans=True)
    digest = _digest(file, reading)
    if table.document is not None:
        return side_of_check(path, table.document, digest)
    trials = tuple(trials_of_table(table, reading))
    chosen = ", ".join(f"{name}={value}" for name, value in reading.filters.items())
    name = f"{path} ({chosen})" if chosen else path
    return GateSide(name, trials, trace_ids=_traces(trials), digest=digest)


def _is_database(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(12)[8:12] == DUCKDB_MAGIC


def _table(file: Path, reading: Reading) -> Table | None:
    """The file as a check result or a table of outcomes, or None where it must be spans."""
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
    digest = hashlib.sha256(file.read_bytes())
    digest.update(repr((sorted(reading.filters.items()), sorted(reading.columns.items()), reading.threshold)).encode())
    return digest.hexdigest()


def _graded(path: str, grade: GradeBy, which: int) -> Row:
    """The check result of spans."""
    from tracegrade.app.check import run_check

    report = run_check(_check_options(path, grade, which))
    if not report.trajectories:
        problem = next((i.error for i in report.inputs if i.error), "no trajectory in it")
        raise InputError(f"{path}: neither a check result, a table of outcomes, a database nor spans: {problem}")
    return report.model_dump(by_alias=True)


def _check_options(path: str, grade: GradeBy, which: int) -> CheckOptions:
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
        kinds = {f"gap {g['code']}" for g in trajectory.get("gaps") or () if g["code"] in HIDDEN_GAPS}
        kinds |= {
            f"rule {r['id']} cannot be decided"
            for r in trajectory.get("invariants") or ()
            if r["verdict"] == "unknown" and r.get("level", "error") == "error"
        }
        if (trajectory.get("outcome") or {}).get("verdict") == "unknown":
            kinds.add("the outcome cannot be decided")
        lacks.update(kinds)
    return dict(lacks)


def _traces(trials: Sequence[ScoredTrial]) -> frozenset[str]:
    return frozenset(trace for trial in trials for trace in trial.trace_ids)


def _side_of_database(file: Path) -> GateSide:
    """A side from the derived tables of a database that `check --db` wrote."""
    from tracegrade.store import Store

    trials = tuple(trials_of_database(file))
    rows = []
    with Store.open(file) as store:
        result = store.query(
            "SELECT r.trajectory_id, r.invariant_id, r.level, r.tags, r.verdict, r.waived, t.task_id, "
            "t.conversation_id FROM results r LEFT JOIN trajectories t USING (trajectory_id) ORDER BY ALL"
        )
        for trajectory, rule, level, tags, verdict, waived, task, conversation in result.rows:
            if verdict == "not_applicable" or waived is not None or level == "info":
                continue
            decided = verdict == "pass" if verdict in ("pass", "fail") else None
            safety = level == "error" and "safety" in (tags or ())
            rows.append(InvariantRow(rule, decided, task, conversation or trajectory, (), safety=safety))
    return GateSide(str(file), trials, tuple(rows), trace_ids=_traces(trials))

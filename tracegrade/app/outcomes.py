"""From a table or a check result to scored trials."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tracegrade.app.graded_database import document_of_database
from tracegrade.app.outcome_table import Row, Table, as_text, map_columns, read_table
from tracegrade.errors import InputError, Problem, RuleFileError, UsageError, did_you_mean
from tracegrade.model.scored import INFRASTRUCTURE, ScoredTrial

COLUMNS: Final[dict[str, str]] = {
    "task_id": "the task",
    "trial": "which trial of the task; 0 where there is no such column",
    "passed": "0/1, true/false, pass/fail; empty: not scored",
    "attempt": "which try of a trial that crashed",
    "cluster": "tasks with one label are not independent",
    "tag": "what the task is about; several separated by `|`",
    "cost_usd": "dollars",
    "tokens": "tokens",
    "calls": "model or tool calls",
    "duration_s": "seconds",
    "end_reason": "completed, infrastructure_error, …",
    "human_minutes": "how long the task takes a person",
    "human": "a person's verdict, 0/1",
    "judge": "a judge's verdict, 0/1",
    "position": "place of the judged answer",
    "length": "length of the judged answer",
    "family": "model family that wrote the answer",
    "judge_family": "model family of the judge",
    "fingerprint": "hash of texts and arguments: equal trials are copies",
    "seed": "seed of the trial",
    "trace_id": "the trace of the trial",
    "crashed": "only when named: true where the attempt was lost to infrastructure",
}
"""Names that `--column` knows."""

TRUE: Final = frozenset({"1", "true", "pass", "passed", "yes"})
FALSE: Final = frozenset({"0", "false", "fail", "failed", "no"})
NOT_SCORED: Final = {"unknown": "unknown", "not_applicable": "not_applicable", "error": "error"}
MAX_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read outcomes.

    Attributes:
        columns: our name → column of the file.
        filters: column of the file → value.
        threshold: a number that is at least this passes; without it only 0 and 1 are results.
    """

    columns: Mapping[str, str]
    filters: Mapping[str, str]
    threshold: float | None = None


def read_outcomes(path: str, reading: Reading) -> tuple[list[ScoredTrial], Row | None]:
    """Read one file.

    Args:
        path: table or check result; `-` is standard input.
        reading: columns, filters, threshold.

    Returns:
        The trials, and the document where the file is a check result.

    Raises:
        InputError, RuleFileError, UsageError: as in `read_table`, or rows whose values are wrong; each is named.
    """
    table = read_table(path)
    if table.document is not None:
        return trials_of_check(path, table.document, reading), table.document
    return trials_of_table(table, reading), None


def trials_of_table(table: Table, reading: Reading) -> list[ScoredTrial]:
    """The trials of a table.

    Raises:
        RuleFileError: a missing column or wrong values; the first 20 rows are named.
    """
    mapped = map_columns(table, COLUMNS, reading.columns, reading.filters)
    problems = [
        Problem(
            table.path,
            name,
            f"the table has no such column.{did_you_mean(name, mapped.other)} Name one with --column {name}=COLUMN. "
            f"Columns: {', '.join(table.columns)}",
        )
        for name in ("task_id", "passed")
        if name not in mapped.present
    ]
    if problems:
        raise RuleFileError(problems)
    trials = []
    for where, row in mapped.rows:
        try:
            trials.append(_trial(where, row, reading.threshold))
        except _WrongCell as error:
            problems.append(Problem(where, error.column, error.message))
    if problems:
        rest = len(problems) - MAX_PROBLEMS
        more = [Problem(table.path, "", f"and {rest} more such rows")] if rest > 0 else []
        raise RuleFileError(problems[:MAX_PROBLEMS] + more)
    return trials


class _WrongCell(Exception):
    """A cell that cannot be what its column holds."""

    def __init__(self, column: str, message: str) -> None:
        super().__init__(message)
        self.column = column
        self.message = message


def _trial(where: str, row: Row, threshold: float | None) -> ScoredTrial:
    task = as_text(row.get("task_id"))
    if not task:
        raise _WrongCell("task_id", "empty; expected the name of the task")
    end_reason = as_text(row.get("end_reason")) or None
    if _boolean(row, "crashed"):
        end_reason = INFRASTRUCTURE
    passed, reason = _passed(row.get("passed"), threshold)
    if reason == "excluded":
        end_reason, reason = INFRASTRUCTURE, None
    attempt = _number(row, "attempt")
    if attempt is not None and not attempt.is_integer():
        raise _WrongCell("attempt", f"`{attempt}` is no whole number")
    tags = row.get("tag")
    names = [as_text(t) for t in tags] if isinstance(tags, list) else as_text(tags).split("|")
    trace = as_text(row.get("trace_id"))
    return ScoredTrial(
        task_id=task,
        trial=as_text(row.get("trial")) or "0",
        attempt=None if attempt is None else int(attempt),
        passed=passed,
        reason=reason,
        end_reason=end_reason,
        cluster=as_text(row.get("cluster")) or None,
        tags=tuple(sorted({n.strip() for n in names if n.strip()})),
        cost_usd=_number(row, "cost_usd", least=0),
        tokens=_number(row, "tokens", least=0),
        calls=_number(row, "calls", least=0),
        seconds=_number(row, "duration_s", least=0),
        human_minutes=_number(row, "human_minutes", least=0),
        human=_boolean(row, "human"),
        judge=_boolean(row, "judge"),
        position=as_text(row.get("position")) or None,
        length=_number(row, "length", least=0),
        family=as_text(row.get("family")) or None,
        judge_family=as_text(row.get("judge_family")) or None,
        fingerprint=as_text(row.get("fingerprint")) or None,
        seed=as_text(row.get("seed")) or None,
        trace_ids=(trace,) if trace else (),
        where=where,
    )


def _passed(value: Any, threshold: float | None) -> tuple[bool | None, str | None]:
    """A result, or None and the reason where one is stated."""
    text = as_text(value).strip()
    if not text:
        return None, None
    word = text.casefold()
    if word in NOT_SCORED:
        return None, NOT_SCORED[word]
    if word in ("excluded", INFRASTRUCTURE):
        return None, "excluded"
    if word in TRUE - {"1"}:
        return True, None
    if word in FALSE - {"0"}:
        return False, None
    try:
        number = float(text)
    except ValueError:
        raise _WrongCell("passed", f"`{text[:60]}`; expected 0, 1, true, false, or nothing if not scored") from None
    if math.isnan(number):
        return None, None
    if threshold is not None:
        return number >= threshold, None
    if number not in (0.0, 1.0):
        raise _WrongCell(
            "passed", f"`{text[:60]}` is neither 0 nor 1; give --threshold X if a score of at least X is a pass"
        )
    return number == 1.0, None


def _boolean(row: Row, column: str) -> bool | None:
    word = as_text(row.get(column)).strip().casefold()
    if word in ("", "nan"):
        return None
    if word in TRUE or word in ("1.0",):
        return True
    if word in FALSE or word in ("0.0",):
        return False
    raise _WrongCell(column, f"`{word[:60]}`; expected 0, 1, true, false or nothing")


def _number(row: Row, column: str, least: float | None = None) -> float | None:
    text = as_text(row.get(column)).strip()
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        raise _WrongCell(column, f"`{text[:60]}` is no number") from None
    if math.isnan(number):
        return None
    if math.isinf(number) or (least is not None and number < least):
        raise _WrongCell(column, f"`{text[:60]}`; expected a finite number" + (" of at least 0" if least == 0 else ""))
    return number


def trials_of_check(path: str, document: Row, reading: Reading) -> list[ScoredTrial]:
    """The trials of a check result: its `trials`, else its trajectories that belong to a task.

    Raises:
        InputError: another kind of document, or one without trials.
        UsageError: `--column` and `--filter` are for tables.
    """
    schema = str(document.get("schema", "tracegrade/check"))
    if not schema.startswith("tracegrade/check"):
        raise InputError(f"{path}: a document of `{schema}`; expected a check result (`tracegrade/check/…`) or a table")
    if reading.columns or reading.filters:
        raise UsageError(f"{path} is a check result: --column and --filter are for tables of outcomes")
    trials = document.get("trials") or []
    trajectories = document.get("trajectories") or []
    by_id = {trace: t for t in trajectories for trace in t.get("trace_ids") or ()}
    by_id |= {t["trajectory_id"]: t for t in trajectories if t.get("trajectory_id") is not None}
    rows = trials or [t for t in trajectories if t.get("task_id") is not None and t.get("outcome") is not None]
    if not rows:
        raise InputError(
            f"{path}: the check result has no trials of tasks; run `tracegrade check … --tasks FILE --trials FILE`"
        )
    return [_checked(f"{path}: trials[{i}]", row, by_id) for i, row in enumerate(rows)]


def _checked(where: str, row: Row, by_id: Mapping[str, Row]) -> ScoredTrial:
    outcome = row.get("outcome") or {}
    verdict = outcome.get("verdict", "unknown")
    traces = tuple(row.get("trace_ids") or ())
    trajectory = next((by_id[name] for name in (row.get("trajectory_id"), *traces) if name in by_id), row)
    usage = trajectory.get("usage") or {}
    end_reason = row.get("end_reason") or outcome.get("end_reason")
    if verdict == "excluded":
        end_reason = INFRASTRUCTURE
    tokens = [usage.get("input_tokens"), usage.get("output_tokens")]
    told = row.get("tokens")
    seconds = row.get("duration_s")
    if seconds is None and trajectory.get("duration_ns") is not None:
        seconds = trajectory["duration_ns"] / 1e9
    cost = row.get("cost_usd")
    steps = trajectory.get("steps") or {}
    return ScoredTrial(
        task_id=as_text(row.get("task_id")),
        trial=as_text(row.get("trial")) or "0",
        attempt=row.get("attempt"),
        passed=verdict == "pass" if verdict in ("pass", "fail") else None,
        reason=None if verdict in ("pass", "fail", "excluded") else verdict,
        end_reason=end_reason,
        cluster=row.get("cluster") or trajectory.get("cluster"),
        tags=tuple(sorted({*(row.get("tags") or ()), *(trajectory.get("tags") or ())})),
        cost_usd=cost if cost is not None else usage.get("cost_usd"),
        tokens=told if told is not None else None if None in tokens else float(sum(t or 0 for t in tokens)),
        calls=float(steps.get("tool_call", 0)) if steps else None,
        seconds=seconds,
        human_minutes=row.get("human_minutes"),
        human=_label(where, row.get("labels") or {}, "human"),
        judge=_recorded_verdict(outcome),
        seed=as_text(row.get("seed")) or None,
        fingerprint=row.get("fingerprint"),
        trace_ids=traces,
        task_sha256=row.get("task_sha256"),
        where=where,
    )


def _label(where: str, labels: Row, name: str) -> bool | None:
    """A label of the trials file that is a verdict.

    Raises:
        RuleFileError: it is neither 0 nor 1.
    """
    try:
        return _boolean(labels, name)
    except _WrongCell as error:
        raise RuleFileError([Problem(where, f"labels.{name}", error.message)]) from None


def _recorded_verdict(outcome: Row) -> bool | None:
    """The verdict that an evaluation recorded in the spans gave, where a grader read it beside others."""
    graders = outcome.get("graders") or ()
    found = [g.get("verdict") for g in graders if g.get("kind") == "recorded"]
    return found[0] == "pass" if len(found) == 1 and found[0] in ("pass", "fail") else None


def trials_of_database(path: Path) -> list[ScoredTrial]:
    """The trials that a database holds the outcomes of.

    Raises:
        InputError: no such file, or no outcome in it.
        StoreError: not a database of tracegrade.
    """
    document = document_of_database(path)
    if not document["trials"]:
        raise InputError(
            f"--db {path}: no outcomes in it; run `tracegrade check … --db {path} --tasks FILE --trials FILE` first"
        )
    return trials_of_check(str(path), document, Reading({}, {}))


def outcomes_of(paths: Sequence[str], reading: Reading) -> tuple[list[ScoredTrial], list[Row]]:
    """The trials of several files, and the documents of those that are check results."""
    trials: list[ScoredTrial] = []
    documents: list[Row] = []
    for path in paths:
        rows, document = read_outcomes(path, reading)
        trials += rows
        if document is not None:
            documents.append(document)
    return trials, documents

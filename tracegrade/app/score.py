"""The use case of `score`: read outcomes, score them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tracegrade.app.outcome_table import read_table
from tracegrade.app.outcomes import Reading, outcomes_of, trials_of_database
from tracegrade.errors import InputError, UsageError
from tracegrade.model.score import Floor, ScoreReport
from tracegrade.score.scorecard import Options, score


def score_files(
    paths: Sequence[str],
    reading: Reading,
    options: Options | None = None,
    floors: str | None = None,
    database: Path | None = None,
) -> ScoreReport:
    """Score the outcomes in some files together.

    Args:
        paths: tables or check results; `-` is standard input.
        reading: how to read tables.
        options: what to compute.
        floors: a JSON result of `tasks check`, whose floors stand beside the score; by default those of the check
            results themselves, where they have them.
        database: a DuckDB file of `check --db`, whose outcomes are scored too.

    Raises:
        InputError, RuleFileError, StoreError, UsageError: something cannot be read, or nothing is given.
        NothingToGrade: no trial is scored.
    """
    if not paths and database is None:
        raise UsageError("nothing to score: give a check result, a table of outcomes, or --db FILE")
    trials, documents = outcomes_of(paths, reading)
    if database is not None:
        trials += trials_of_database(database)
        paths = [*paths, str(database)]
    found = next((d["floors"] for d in documents if d.get("floors")), None)
    if floors is not None:
        found = (read_table(floors).document or {}).get("floors")
        if not found:
            raise InputError(f"{floors}: no floors in it; expected the JSON result of `tracegrade tasks check`")
    options = options or Options()
    if found:
        options = replace(options, floors={name: _floor(value) for name, value in sorted(found.items())})
    return score(trials, options, paths)


def _floor(value: Mapping[str, Any]) -> Floor:
    passed, tasks = int(value["passed"]), int(value["tasks"])
    return Floor(
        passed=passed, tasks=tasks, task_ids=tuple(value.get("task_ids", ())), rate=passed / tasks if tasks else None
    )

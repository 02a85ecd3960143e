"""Grade recorded trajectories again, and compare with what an earlier result said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tracegrade.app.check import CheckOptions, run_check
from tracegrade.errors import InputError
from tracegrade.model.replay import GradeReport
from tracegrade.model.report import CheckReport
from tracegrade.replay.regrade import compare_results


def replay_grade(options: CheckOptions, against: Path) -> tuple[GradeReport, CheckReport]:
    """Grade, and say which verdicts are others than in an earlier result, and why.

    Args:
        options: what to grade and by which rules and tasks, as for `check`.
        against: the JSON of an earlier `check`.

    Returns:
        The comparison, and the new result.

    Raises:
        InputError: `against` is no result of `check`; else as `run_check`.
    """
    before = read_result(against)
    report = run_check(options)
    found = compare_results(before, report.model_dump(mode="json"))
    compared = GradeReport(
        against=str(against),
        against_version=before.get("tracegrade_version"),
        trajectories=len(report.trajectories),
        compared=found.compared,
        unchanged=found.unchanged,
        changed=found.changed,
        rules_added=found.rules_added,
        rules_removed=found.rules_removed,
        rules_changed=found.rules_changed,
        errors=tuple(i.error for i in report.inputs if i.error is not None),
    )
    return compared, report


def read_result(path: Path, kind: str = "check") -> dict[str, Any]:
    """The JSON document that a command printed or wrote.

    Args:
        path: the file.
        kind: the command, as the document's `schema` names it.

    Raises:
        InputError: it cannot be read, or is something else.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise InputError(f"{path}: not JSON; expected the JSON of `tracegrade {kind}`") from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(schema, str) or not schema.startswith(f"tracegrade/{kind}/"):
        raise InputError(f"{path}: a document of `{schema}`; expected `tracegrade/{kind}/…`")
    return dict(document)

"""Render a result that was kept: read `check`'s JSON again, with scores or steps beside it where given."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from tracegrade.errors import InputError, UsageError
from tracegrade.model.frontier import FRONTIER_SCHEMA, FrontierReport
from tracegrade.model.report import CHECK_SCHEMA, SHOW_SCHEMA, CheckReport, ShowReport
from tracegrade.model.score import SCORE_SCHEMA, ScoreReport

_MODELS: Final[dict[str, type[BaseModel]]] = {
    CHECK_SCHEMA: CheckReport,
    SHOW_SCHEMA: ShowReport,
    SCORE_SCHEMA: ScoreReport,
    FRONTIER_SCHEMA: FrontierReport,
}


@dataclass(frozen=True, slots=True)
class Results:
    """What some result files hold: one check, the steps of `show` in it, one score, one frontier."""

    check: CheckReport
    score: ScoreReport | None = None
    frontier: FrontierReport | None = None


def read_results(paths: Sequence[str]) -> Results:
    """The results in some files of JSON, recognised by their `schema`.

    Args:
        paths: one file that `check` wrote; beside it, what `show`, `score` and `frontier` wrote about the same trials.

    Raises:
        InputError: a file cannot be read or is no result of this version.
        UsageError: there is not exactly one check, or more than one score or frontier.
    """
    found: dict[type[BaseModel], list[Any]] = {model: [] for model in _MODELS.values()}
    for path in paths:
        record = _read(Path(path))
        found[type(record)].append(record)
    checks, scores, frontiers = found[CheckReport], found[ScoreReport], found[FrontierReport]
    if len(checks) != 1 or len(scores) > 1 or len(frontiers) > 1:
        raise UsageError(
            "expected one result of `check` and at most one each of `score` and `frontier`; "
            f"got {len(checks)}, {len(scores)} and {len(frontiers)}"
        )
    shown = tuple(t for show in found[ShowReport] for t in show.trajectories)
    check = checks[0].model_copy(update={"shown": shown})
    return Results(check, scores[0] if scores else None, frontiers[0] if frontiers else None)


def _read(path: Path) -> BaseModel:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: no JSON: {error}; expected what `check --format json` writes") from error
    schema = record.get("schema") if isinstance(record, dict) else None
    model = _MODELS.get(schema) if isinstance(schema, str) else None
    if model is None:
        raise InputError(f"{path}: `schema` is {schema!r}; expected one of {', '.join(_MODELS)}")
    try:
        return model.model_validate(record)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        raise InputError(f"{path}: {where}: {first['msg']}{more}; expected a result of this version") from error

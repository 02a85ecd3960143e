"""Tasks and trials from files, with every mistake of a file reported at once."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import orjson
from pydantic import BaseModel, TypeAdapter, ValidationError

from tracegrade.errors import Problem, RuleFileError, did_you_mean
from tracegrade.model import task as model
from tracegrade.model.task import (
    AnswerGrader,
    Grader,
    Reference,
    RequirementsGrader,
    Snapshot,
    StateGrader,
    StateRef,
    Task,
    TestsGrader,
    Trial,
)
from tracegrade.model.values import JSON
from tracegrade.outcome.paths import parse_glob, parse_path
from tracegrade.outcome.records import Document, Located, RowReader, read_document
from tracegrade.outcome.requirements import order_of
from tracegrade.outcome.trials import distinct_trials

FORMAT_VERSION: Final = 1
_MISSPELT: Final = 0.85
"""How much a column must look like a field that is missing to be taken for it (difflib's ratio)."""
_HEADER: Final = frozenset({"version", "defaults", "benchmark", "tasks", "trials", "$schema"})
_M = TypeVar("_M", Task, Trial)

_FIELD_NAMES: Final = sorted(
    {
        info.alias or name
        for kind in vars(model).values()
        if isinstance(kind, type) and issubclass(kind, BaseModel)
        for name, info in kind.model_fields.items()
    }
)
_JSON_CELLS: Final = frozenset(
    {"graders", "initial", "final", "final_patch", "snapshots", "match", "labels", "reference", "report"}
    | {"failing_end_reasons", "excluded_end_reasons", "tags"}
)


@dataclass(frozen=True, slots=True)
class TaskFile:
    """The tasks of a file: task id (as text) → task, where each stands, and the digest of the content."""

    path: Path
    tasks: dict[str, Task]
    places: dict[str, str]
    sha256: str


@dataclass(frozen=True, slots=True)
class TrialFile:
    """The trials of a file, equal copies dropped, and where each stands."""

    path: Path
    trials: list[Trial]
    places: list[str]
    sha256: str


def load_tasks(path: Path, read_parquet: RowReader | None = None) -> TaskFile:
    """Read a tasks file.

    Args:
        path: YAML, JSON, JSON Lines, CSV or Parquet; plain, gzip or zstd. A list of tasks, or an object with `tasks`
            and, beside it, `benchmark` and `defaults` (fields that each task has unless it says otherwise).
        read_parquet: reads the rows of a Parquet file (`tracegrade.ingest.tables.parquet_rows`).

    Raises:
        InputError: the file cannot be read.
        RuleFileError: it is malformed; all problems are listed.
    """
    document = read_document(path, "tasks", read_parquet)
    problems: list[Problem] = []
    tasks: dict[str, Task] = {}
    places: dict[str, str] = {}
    for record, task in _validated(document, Task, path, problems):
        where = record.where([])
        resolved = _resolve_task(task, path.parent)
        problems += [Problem(record.where(parts), _dotted(parts), text) for parts, text in _deeper_problems(task)]
        if task.key in tasks and tasks[task.key] != resolved:
            problems.append(
                Problem(where, "id", f"task `{task.id}` stands at {places[task.key]} too, with other content")
            )
        tasks.setdefault(task.key, resolved)
        places.setdefault(task.key, where)
    if problems:
        raise RuleFileError(problems)
    return TaskFile(path, tasks, places, hashlib.sha256(document.content).hexdigest())


def load_trials(path: Path, tasks: Mapping[str, Task], read_parquet: RowReader | None = None) -> TrialFile:
    """Read a trials file and check it against the tasks.

    Args:
        path: in the forms of `load_tasks`, with `trials` for `tasks`. In a table, columns that are no field of a
            trial are its labels.
        tasks: task id (as text) → task.
        read_parquet: reads the rows of a Parquet file.

    Raises:
        InputError: the file cannot be read.
        RuleFileError: it is malformed, names unknown tasks, or has unequal copies of one trial; all are listed.
    """
    document = read_document(path, "trials", read_parquet)
    problems: list[Problem] = []
    trials: list[Trial] = []
    places: list[str] = []
    for record, trial in _validated(document, Trial, path, problems):
        trials.append(_resolve_trial(trial, path.parent))
        places.append(record.where([]))
    try:
        trials, places = distinct_trials(trials, tasks, places)
    except RuleFileError as error:
        problems += error.problems
    if problems:
        raise RuleFileError(problems)
    return TrialFile(path, trials, places, hashlib.sha256(document.content).hexdigest())


def _validated(document: Document, kind: type[_M], path: Path, problems: list[Problem]) -> Iterator[tuple[Located, _M]]:
    """Each record that is well-formed; what is wrong with the others goes to `problems`."""
    defaults = _defaults(document.header, path, problems)
    for record in document.records:
        value = {**defaults, **(_from_cells(record, kind, problems) if record.tabular else record.value)}
        try:
            yield record, kind.model_validate(value)
        except ValidationError as error:
            problems += _problems(error, record)


def _defaults(header: Mapping[str, JSON], path: Path, problems: list[Problem]) -> dict[str, JSON]:
    unknown = sorted(header.keys() - _HEADER)
    problems += [Problem(str(path), name, f"unknown key.{did_you_mean(name, _HEADER)}") for name in unknown]
    version = header.get("version", FORMAT_VERSION)
    if version != FORMAT_VERSION:
        problems.append(Problem(str(path), "version", f"expected {FORMAT_VERSION}, found {version!r}"))
    defaults = header.get("defaults") or {}
    if not isinstance(defaults, dict):
        problems.append(Problem(str(path), "defaults", "expected an object"))
        defaults = {}
    return {**({"benchmark": header["benchmark"]} if "benchmark" in header else {}), **defaults}


def _problems(error: ValidationError, record: Located) -> Iterator[Problem]:
    seen: set[tuple[str, str]] = set()
    for detail in error.errors(include_url=False):
        parts = [p for p in detail["loc"] if isinstance(p, (str, int))]
        message = _message(detail, parts)
        shown = _dotted([p for p in parts if not _is_tag(p)])
        if (shown, message) not in seen:
            seen.add((shown, message))
            yield Problem(record.where(parts), shown, message)


def _message(detail: Any, parts: Sequence[str | int]) -> str:
    kind = detail["type"]
    if kind == "extra_forbidden":
        return f"unknown key.{did_you_mean(str(parts[-1]), _FIELD_NAMES)}"
    if kind == "missing":
        return "is required"
    if kind == "union_tag_invalid":
        context = detail["ctx"]
        known = [tag.strip().strip("'") for tag in context["expected_tags"].split(",")]
        return f"`{context['tag']}` is none of {', '.join(known)}.{did_you_mean(str(context['tag']), known)}"
    if kind == "union_tag_not_found":
        return "`kind` is required: which grader is it?"
    text = str(detail["msg"]).removeprefix("Value error, ")
    return text if kind == "value_error" else f"{text}; found {_short(detail.get('input'))}"


def _short(value: JSON) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


_TAGS: Final = frozenset(
    {"state", "outputs", "answer", "tests", "script", "recorded", "invariants", "actions", "requirements"}
)


def _is_tag(part: str | int) -> bool:
    """Whether a part of pydantic's location is the name of a union's member, which is no key of the file."""
    return isinstance(part, str) and (part in _TAGS - {"requirements"} or "[" in part or part[:1].isupper())


def _dotted(parts: Sequence[str | int]) -> str:
    return ".".join(str(p) for p in parts)


def _from_cells(record: Located, kind: type[Task] | type[Trial], problems: list[Problem]) -> dict[str, JSON]:
    """A row of a table as a record: JSON where a cell must be, and a trial's other columns as its labels."""
    value: dict[str, JSON] = {}
    labels: dict[str, JSON] = {}
    for name, cell in record.value.items():
        if name in kind.model_fields:
            value[name] = _cell(name, cell, record, problems)
        elif kind is Trial:
            absent = kind.model_fields.keys() - record.value.keys()
            if close := difflib.get_close_matches(name, absent, n=1, cutoff=_MISSPELT):
                text = f"is this column `{close[0]}`, misspelt? Name it `labels.{name}` if it is a label"
                problems.append(Problem(record.where([name]), name, text))
            labels[name.removeprefix("labels.")] = cell
        else:
            value[name] = cell
    if labels:
        value["labels"] = {**labels, **(value.get("labels") or {})}
    return value


def _cell(name: str, cell: JSON, record: Located, problems: list[Problem]) -> JSON:
    if not isinstance(cell, str):
        return cell
    if name in _JSON_CELLS and cell.lstrip().startswith(("{", "[")):
        try:
            return orjson.loads(cell)
        except orjson.JSONDecodeError as error:
            problems.append(Problem(record.where([name]), name, f"not JSON: {error.msg}"))
            return None
    if name == "tags":
        return [tag.strip() for tag in cell.split(";") if tag.strip()]
    if name == "trial" and cell.isdecimal() and str(int(cell)) == cell:
        return int(cell)
    return cell


def _deeper_problems(task: Task) -> Iterator[tuple[list[str | int], str]]:
    """What the types cannot say: circles of requirements, broken patterns and paths."""
    for number, grader in enumerate(task.graders):
        for text in _grader_problems(grader):
            yield ["graders", number], text


def _grader_problems(grader: Grader) -> Iterator[str]:
    try:
        if isinstance(grader, RequirementsGrader):
            order_of(grader.requirements)
        elif isinstance(grader, StateGrader):
            for glob in (*grader.ignore, *grader.unordered, *grader.ids):
                parse_glob(glob)
            for patch in (grader.goal or [], *(grader.any_of or [])):
                for op in patch:
                    parse_path(op.path)
    except ValueError as error:
        yield str(error)
    if isinstance(grader, AnswerGrader) and grader.extract is not None:
        import re2

        try:
            re2.compile(grader.extract)
        except re2.error as error:
            yield f"extract: not a regular expression (RE2): {error}"
    if isinstance(grader, RequirementsGrader):
        for requirement in grader.requirements:
            yield from (f"requirement `{requirement.id}`: {text}" for text in _grader_problems(requirement.grader))


def _ref(value: JSON, base: Path) -> JSON:
    return StateRef(value, str(base)) if isinstance(value, str) else value


def _resolve_task(task: Task, base: Path) -> Task:
    """The task with every text that refers to a file tied to the folder of the tasks file."""
    update: dict[str, Any] = {"initial": _ref(task.initial, base)}
    update["graders"] = [_resolve_grader(g, base) for g in task.graders]
    if task.reference is not None:
        update["reference"] = _with_refs(task.reference, ("final", "report"), base)
    return task.model_copy(update=update)


def _resolve_grader(grader: Grader, base: Path) -> Grader:
    if isinstance(grader, StateGrader) and grader.expected is not None:
        return _with_refs(grader, ("expected",), base)
    if isinstance(grader, TestsGrader) and grader.report is not None:
        return _with_refs(grader, ("report",), base)
    if isinstance(grader, RequirementsGrader):
        inner = [r.model_copy(update={"grader": _resolve_grader(r.grader, base)}) for r in grader.requirements]
        return grader.model_copy(update={"requirements": inner})
    return grader


def _resolve_trial(trial: Trial, base: Path) -> Trial:
    snapshots = [_with_refs(s, ("state",), base) for s in trial.snapshots]
    return _with_refs(trial, ("initial", "final", "report"), base).model_copy(update={"snapshots": snapshots})


_R = TypeVar("_R", StateGrader, TestsGrader, Reference, Trial, Snapshot)


def _with_refs(value: _R, names: Sequence[str], base: Path) -> _R:
    return value.model_copy(update={name: _ref(getattr(value, name), base) for name in names})


def tasks_schema() -> dict[str, JSON]:
    """The JSON Schema of a tasks file."""
    return _file_schema(Task, "tasks", "Tasks of tracegrade: problems and the graders of their outcomes")


def trials_schema() -> dict[str, JSON]:
    """The JSON Schema of a trials file."""
    return _file_schema(Trial, "trials", "Trials of tracegrade: what was recorded of each try at a task")


def _file_schema(kind: type[Task] | type[Trial], key: str, title: str) -> dict[str, JSON]:
    schema = TypeAdapter(kind).json_schema(ref_template="#/$defs/{model}")
    definitions = schema.pop("$defs", {})
    name = kind.__name__
    # with defaults for all, a record need not be whole by itself
    definitions |= {name: schema, f"Partial{name}": {k: v for k, v in schema.items() if k != "required"}}
    whole, partial = ({"type": "array", "items": {"$ref": f"#/$defs/{n}"}} for n in (name, f"Partial{name}"))
    common = {
        "$schema": {"type": "string"},
        "version": {"const": FORMAT_VERSION},
        "benchmark": schema["properties"].get("benchmark", {"type": "string"}),
        "tasks": {"type": "array"},
        "trials": {"type": "array"},
    }
    defaults = {"defaults": {"$ref": f"#/$defs/Partial{name}"}}
    shape = {"type": "object", "additionalProperties": False}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "anyOf": [
            whole,
            {**shape, "required": [key], "properties": {**common, key: whole}},
            {**shape, "required": [key, "defaults"], "properties": {**common, **defaults, key: partial}},
        ],
        "$defs": definitions,
    }

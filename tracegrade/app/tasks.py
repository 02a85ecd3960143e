"""The use case of `tasks check`, and reading tasks and trials for others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tracegrade.app.states import RecordedStates
from tracegrade.errors import NothingToGrade
from tracegrade.ingest.tables import parquet_rows
from tracegrade.outcome.check_tasks import TasksCheck, check_tasks
from tracegrade.outcome.grade_trials import TrialGrader
from tracegrade.outcome.load import TaskFile, TrialFile, load_tasks, load_trials
from tracegrade.report.escape import printable


def read_tasks(path: Path) -> TaskFile:
    """Read a tasks file in any of its forms.

    Raises:
        InputError: a file cannot be read.
        RuleFileError: it is malformed.
        NothingToGrade: it holds no task.
    """
    file = load_tasks(path, parquet_rows)
    if not file.tasks:
        raise NothingToGrade(f"{path}: no task in it")
    return file


def read_trials(path: Path, tasks: TaskFile) -> TrialFile:
    """Read a trials file in any of its forms, and check it against the tasks.

    Raises:
        InputError: a file cannot be read.
        RuleFileError: it is malformed, or does not fit the tasks.
    """
    return load_trials(path, tasks.tasks, parquet_rows)


def check_tasks_file(path: Path) -> TasksCheck:
    """Grade the probes of every task of a file. Raises as `read_tasks`."""
    return check_tasks(read_tasks(path).tasks.values(), RecordedStates())


def trial_grader(tasks: Path, trials: Path | None) -> tuple[TrialGrader, TaskFile, TrialFile | None]:
    """A grader that takes trajectories one at a time, and the files it was made from.

    Args:
        tasks: the tasks file.
        trials: the trials file; None where task and trial ids are read from the spans.

    Raises:
        InputError: a file cannot be read.
        RuleFileError: one is malformed, or they do not fit together.
        NothingToGrade: there is no task.
    """
    task_file = read_tasks(tasks)
    trial_file = None if trials is None else read_trials(trials, task_file)
    grader = TrialGrader(task_file.tasks, None if trial_file is None else trial_file.trials, RecordedStates())
    return grader, task_file, trial_file


def tasks_text(check: TasksCheck) -> str:
    """What a person reads of `tasks check`: floors, then every task with a problem."""
    lines = [f"{len(check.tasks)} tasks"]
    labels = {"do_nothing": "pass when nothing is done", "claim_only": "pass when the outputs are only said"}
    for name, floor in check.floors().items():
        lines.append(f"  {floor['passed']:>4} of {floor['tasks']:>4} {labels[name]}{_by_tag(floor['by_tag'])}")
    troubled = [t for t in check.tasks if t.problems]
    for task in troubled:
        lines.append(f"task {printable(str(task.task.id))}")
        lines += [f"  {p.level}: {printable(p.message)} [{p.code}]" for p in task.problems]
    lines.append(_verdict(check))
    return "\n".join(lines)


def _by_tag(floors: Mapping[str, Mapping[str, int]]) -> str:
    parts = [f"{printable(tag)} {f['passed']}/{f['tasks']}" for tag, f in floors.items()]
    return f" ({', '.join(parts)})" if parts else ""


def _verdict(check: TasksCheck) -> str:
    if check.broken:
        return f"{len(check.broken)} of {len(check.tasks)} tasks cannot be graded rightly"
    return "every task can be passed, and its graders see a wrong, a missing and an extra change where they can"

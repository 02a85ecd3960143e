"""Grade the graders: can each task be passed, and by whom that should not?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from tracegrade.errors import TracegradeError
from tracegrade.model.outcome import Outcome
from tracegrade.model.task import OutputsGrader, StateGrader, Task
from tracegrade.model.values import JSON
from tracegrade.outcome.evidence import Memo, NoFiles, Source
from tracegrade.outcome.grade import grade
from tracegrade.outcome.keyed import KeysError
from tracegrade.outcome.normal_forms import can_match
from tracegrade.outcome.patch import PatchError
from tracegrade.outcome.presets import resolve
from tracegrade.outcome.probes import PROBES, Probe, Prober, leaves

TASKS_CHECK_SCHEMA: Final = "tracegrade/tasks-check/1"
FLOORS: Final = ("do_nothing", "claim_only")
_MUST_FAIL: Final = ("extra_change", "wrong_value", "missing_change")


@dataclass(frozen=True, slots=True)
class TaskProblem:
    """Something wrong with a task: at level `error` its verdicts mean nothing, at `warning` less than they seem."""

    code: str
    level: Literal["error", "warning"]
    message: str


@dataclass(frozen=True, slots=True)
class TaskCheck:
    """What the probes of one task got. `vacuous` is whether doing nothing passes."""

    task: Task
    probes: Mapping[str, str]
    problems: tuple[TaskProblem, ...]

    @property
    def vacuous(self) -> bool:
        """Whether an agent that does nothing passes."""
        return self.probes["do_nothing"] == "pass"

    def to_json(self) -> dict[str, JSON]:
        """As it stands in the JSON of `tasks check`."""
        return {
            "task_id": self.task.id,
            "benchmark": self.task.benchmark,
            "tags": list(self.task.tags),
            "vacuous": self.vacuous,
            "probes": dict(self.probes),
            "problems": [{"code": p.code, "level": p.level, "message": p.message} for p in self.problems],
        }


@dataclass(frozen=True, slots=True)
class TasksCheck:
    """What the probes of all tasks got."""

    tasks: tuple[TaskCheck, ...]

    @property
    def broken(self) -> list[TaskCheck]:
        """Tasks with a problem at error level."""
        return [t for t in self.tasks if any(p.level == "error" for p in t.problems)]

    def floors(self) -> dict[str, JSON]:
        """How many tasks an agent passes that does nothing, or only says what it should: overall, by tag, by benchmark.

        Tasks to which the probe does not apply are left out of `tasks`.
        """
        return {name: self._floor(name) for name in FLOORS}

    def _floor(self, name: str) -> dict[str, JSON]:
        passed = [t.task.id for t in self.tasks if t.probes[name] == "pass"]
        tags = sorted({tag for t in self.tasks for tag in t.task.tags})
        benchmarks = sorted({t.task.benchmark for t in self.tasks if t.task.benchmark is not None})
        return {
            **_counts(self.tasks, name),
            "task_ids": passed,
            "by_tag": {tag: _counts([t for t in self.tasks if tag in t.task.tags], name) for tag in tags},
            "by_benchmark": {b: _counts([t for t in self.tasks if t.task.benchmark == b], name) for b in benchmarks},
        }

    def to_json(self) -> dict[str, JSON]:
        """The JSON of `tasks check`."""
        return {
            "schema": TASKS_CHECK_SCHEMA,
            "n_tasks": len(self.tasks),
            "floors": self.floors(),
            "tasks": [t.to_json() for t in self.tasks],
        }


def _counts(tasks: Sequence[TaskCheck], name: str) -> dict[str, int]:
    verdicts = [t.probes[name] for t in tasks]
    return {"passed": verdicts.count("pass"), "tasks": len(verdicts) - verdicts.count("not_applicable")}


def check_tasks(tasks: Iterable[Task], source: Source | None = None) -> TasksCheck:
    """Grade the probes of every task.

    Args:
        tasks: as loaded; benchmarks' defaults are filled in.
        source: reads the states that tasks refer to.
    """
    reader, memo = source or NoFiles(), Memo()
    return TasksCheck(tuple(_check(resolve(task), reader, memo) for task in tasks))


def _check(task: Task, source: Source, memo: Memo) -> TaskCheck:
    try:
        prober = Prober(task, source)
    except (PatchError, KeysError) as error:
        problem = TaskProblem("unreachable_goal", "error", f"the goal does not fit the initial state: {error}")
        return TaskCheck(task, dict.fromkeys(PROBES, "error"), (problem, *_output_problems(task)))
    except TracegradeError as error:
        problem = TaskProblem("unreadable_state", "error", str(error))
        return TaskCheck(task, dict.fromkeys(PROBES, "error"), (problem, *_output_problems(task)))
    outcomes = {name: _outcome(prober.make(name), task, source, memo) for name in PROBES}
    probes = {name: "not_applicable" if o is None else o.verdict for name, o in outcomes.items()}
    return TaskCheck(task, probes, tuple(_problems(task, outcomes)))


def _outcome(probe: Probe | None, task: Task, source: Source, memo: Memo) -> Outcome | None:
    if probe is None:
        return None
    return grade(task, probe.trial, probe.trajectory, source=source, memo=memo, messages=probe.messages)


def _problems(task: Task, outcomes: Mapping[str, Outcome | None]) -> Iterable[TaskProblem]:
    if not task.graders and not task.infeasible:
        yield TaskProblem("no_grader", "error", "the task has no grader: its outcome is always unknown")
        return
    yield from _output_problems(task)
    yield from _reference_problems(task, outcomes["reference"])
    verdict = {name: None if o is None else o.verdict for name, o in outcomes.items()}
    if task.impossible:
        return
    if verdict["do_nothing"] == "pass":
        yield TaskProblem("vacuous", "warning", "an agent that does nothing passes")
    elif verdict["claim_only"] == "pass":
        yield TaskProblem("claim_passes", "warning", "an agent that changes nothing and says the outputs passes")
    for name in _MUST_FAIL:
        if verdict[name] == "pass":
            partial = any(isinstance(g, StateGrader) and g.scope == "goal" for g in leaves(task.graders))
            level: Literal["error", "warning"] = "warning" if partial or task.combine == "any" else "error"
            yield TaskProblem(f"{name}_passes", level, f"the graders do not see a {name.replace('_', ' ')}")


def _output_problems(task: Task) -> Iterable[TaskProblem]:
    for grader in leaves(task.graders):
        if isinstance(grader, OutputsGrader):
            for expected in grader.expected:
                if not can_match(grader.normal_form, expected):
                    text = f"no message can contain {expected!r} under the normal form `{grader.normal_form}`"
                    yield TaskProblem("output_never_matches", "error", text)


def _reference_problems(task: Task, reference: Outcome | None) -> Iterable[TaskProblem]:
    if reference is None or task.impossible or reference.verdict == "pass":
        return
    recorded = "the recorded reference" if task.reference is not None else "an agent that does what the goal says"
    if reference.verdict in ("fail", "error"):
        yield TaskProblem("reference_fails", "error", f"{recorded} does not pass: {reference.reason}")
        return
    text = f"no reference: whether the task can be passed is not known ({reference.reason})"
    yield TaskProblem("reference_unknown", "warning", text)

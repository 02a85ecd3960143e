"""All trials: trajectories in one at a time, an outcome out for each trial, and everything that did not match.

    grader = TrialGrader(tasks, trials, source=source)
    for trajectory in trajectories:
        graded = grader.add(trajectory, invariant_results)   # None: no trial, listed in the end
    result = grader.finish()                                 # trials without spans are graded here

Memory holds one record a trial, never a trajectory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tracegrade.model.outcome import Outcome
from tracegrade.model.task import Task, Trial
from tracegrade.model.trajectory import Trajectory
from tracegrade.model.verdict import InvariantResult
from tracegrade.outcome.evidence import Memo, NoFiles, Source
from tracegrade.outcome.grade import grade
from tracegrade.outcome.join import Joiner, join_keys
from tracegrade.outcome.presets import resolve
from tracegrade.outcome.trials import counted_attempt, is_crashed


@dataclass(frozen=True, slots=True)
class GradedTrial:
    """One trial with its outcome.

    `counted` is False for an attempt that another one of the same trial takes the place of. `trajectory_id` is None
    for a trial without spans. `tags` are those of the task and the trial.
    """

    trial: Trial
    task: Task
    outcome: Outcome
    trajectory_id: str | None = None
    trace_ids: tuple[str, ...] = ()
    counted: bool = True

    @property
    def tags(self) -> tuple[str, ...]:
        """Tags of the task and of the trial, each once."""
        return tuple(dict.fromkeys([*self.task.tags, *self.trial.tags]))


@dataclass(frozen=True, slots=True)
class TrialWarning:
    """Something that the user must be told: a stable code, a sentence, and what it is about."""

    code: str
    message: str
    context: Mapping[str, str | int | float]


@dataclass(frozen=True, slots=True)
class UnmatchedTrial:
    """A trial that no trajectory belongs to, and what it was looked for by."""

    task_id: str
    trial: int | str
    attempt: int | None
    looked_for: str


@dataclass(frozen=True, slots=True)
class GradedTrials:
    """The outcomes of all trials, in the order of the trials file.

    Attributes:
        trials: every attempt; scores take those that are `counted`.
        unmatched_trials: trials without spans; graded from their snapshots all the same.
        unmatched_trajectories: ids of trajectories without a trial.
        attempts: number of attempts.
        crashed: attempts that ended in an infrastructure error.
        warnings: re-runs after a failure, trajectories that several trials claim, and the like.
    """

    trials: tuple[GradedTrial, ...]
    unmatched_trials: tuple[UnmatchedTrial, ...] = ()
    unmatched_trajectories: tuple[str, ...] = ()
    attempts: int = 0
    crashed: int = 0
    warnings: tuple[TrialWarning, ...] = ()

    @property
    def crash_rate(self) -> float | None:
        """Crashed attempts ÷ all attempts; None without any."""
        return self.crashed / self.attempts if self.attempts else None


@dataclass(slots=True)
class TrialGrader:
    """Grades trials as their trajectories come.

    Args:
        tasks: task id (as text) → task.
        trials: distinct trials (`distinct_trials`); None where task and trial ids are read from the spans alone.
        source: reads the states that the files refer to.
    """

    tasks: Mapping[str, Task]
    trials: Sequence[Trial] | None = None
    source: Source = field(default_factory=NoFiles)
    _joiner: Joiner = field(init=False)
    _done: dict[int, GradedTrial] = field(init=False, default_factory=dict)
    _implied: list[Trial] = field(init=False, default_factory=list)
    _implied_index: dict[tuple[str, str, int | None], int] = field(init=False, default_factory=dict)
    _loose: list[str] = field(init=False, default_factory=list)
    _warnings: list[TrialWarning] = field(init=False, default_factory=list)
    _memo: Memo = field(init=False, default_factory=Memo)

    def __post_init__(self) -> None:
        self.tasks = {key: resolve(task) for key, task in self.tasks.items()}
        self._joiner = Joiner.of(self.trials or ())

    def find(self, trajectory: Trajectory) -> Trial | None:
        """The trial that a trajectory belongs to, without grading it."""
        index = self._index(trajectory)
        return None if index is None else self._all()[index]

    def add(self, trajectory: Trajectory, invariants: Iterable[InvariantResult] = ()) -> GradedTrial | None:
        """Grade the trial of a trajectory; None where it has none, or where that is not clear."""
        index = self._index(trajectory)
        if index is None:
            self._loose.append(trajectory.trajectory_id)
            return None
        trial = self._all()[index]
        task = self.tasks[trial.key[0]]
        if index in self._done:
            return self._second(index, trajectory)
        outcome = grade(task, trial, trajectory, source=self.source, invariants=invariants, memo=self._memo)
        graded = GradedTrial(trial, task, outcome, trajectory.trajectory_id, trajectory.trace_ids)
        self._done[index] = graded
        return graded

    def finish(self) -> GradedTrials:
        """Grade the trials that no trajectory came for, and settle attempts."""
        unmatched: list[UnmatchedTrial] = []
        trials = self._all()
        for index, trial in enumerate(trials):
            if index not in self._done:
                task = self.tasks[trial.key[0]]
                outcome = grade(task, trial, None, source=self.source, memo=self._memo)
                self._done[index] = GradedTrial(trial, task, outcome)
                looked_for = "; ".join(f"{key[0]} {' '.join(key[1:])}" for key in join_keys(trial))
                unmatched.append(UnmatchedTrial(outcome.task_id, trial.trial, trial.attempt, looked_for))
        settled = self._settle([self._done[i] for i in range(len(trials))])
        crashed = sum(is_crashed(g.trial, g.task) for g in settled)
        return GradedTrials(
            tuple(settled), tuple(unmatched), tuple(self._loose), len(settled), crashed, tuple(self._warnings)
        )

    def _all(self) -> Sequence[Trial]:
        return self._implied if self.trials is None else self.trials

    def _index(self, trajectory: Trajectory) -> int | None:
        if self.trials is None:
            return self._imply(trajectory)
        found = self._joiner.find(trajectory)
        if len(found) > 1:
            names = ", ".join("/".join(self.trials[i].key) for i in found)
            text = f"trajectory {trajectory.trajectory_id} may belong to several trials ({names}) and is not graded"
            self._warnings.append(TrialWarning("several_trials", text, {"trajectory": trajectory.trajectory_id}))
        return found[0] if len(found) == 1 else None

    def _imply(self, trajectory: Trajectory) -> int | None:
        """The trial that the spans themselves name, made on first sight."""
        if trajectory.task_id is None or str(trajectory.task_id) not in self.tasks:
            return None
        trial = Trial(
            task_id=trajectory.task_id,
            trial=0 if trajectory.trial is None else trajectory.trial,
            attempt=trajectory.attempt,
        )
        index = self._implied_index.setdefault((*trial.key, trial.attempt), len(self._implied))
        if index == len(self._implied):
            self._implied.append(trial)
        return index

    def _second(self, index: int, trajectory: Trajectory) -> GradedTrial:
        """A further trajectory of a trial that is graded already: what was said is not known then."""
        first = self._done[index]
        text = (
            f"trial {'/'.join(first.trial.key)} has several trajectories ({first.trajectory_id}, "
            f"{trajectory.trajectory_id}); group by what makes them one, or give each its own trial"
        )
        self._warnings.append(TrialWarning("several_trajectories", text, {"trajectory": trajectory.trajectory_id}))
        outcome = replace(first.outcome, verdict="unknown", reason="the trial has several trajectories", root_causes=())
        self._done[index] = replace(first, outcome=outcome)
        return replace(first, outcome=outcome, trajectory_id=trajectory.trajectory_id, trace_ids=trajectory.trace_ids)

    def _settle(self, graded: list[GradedTrial]) -> list[GradedTrial]:
        groups: dict[tuple[str, str], list[int]] = {}
        for i, one in enumerate(graded):
            groups.setdefault(one.trial.key, []).append(i)
        for key, indices in groups.items():
            ordered = sorted(indices, key=lambda i: graded[i].trial.attempt or 0)
            chosen = counted_attempt([graded[i].trial for i in ordered], graded[ordered[0]].task)
            for place, i in enumerate(ordered):
                graded[i] = replace(graded[i], counted=place == chosen)
            if chosen < len(ordered) - 1:
                self._warn_rerun(key, graded[ordered[chosen]], len(ordered) - 1 - chosen)
        return graded

    def _warn_rerun(self, key: tuple[str, str], counted: GradedTrial, later: int) -> None:
        verdict = counted.outcome.verdict
        code = "rerun_trap" if verdict == "fail" else "rerun_ignored"
        text = f"task {key[0]}, trial {key[1]}: {later} further attempt(s) after one that ended by itself ({verdict}) "
        text += "do not count"
        if verdict == "fail":
            text += ": repeating a failure until it passes measures pass@2, not pass^1"
        self._warnings.append(TrialWarning(code, text, {"task_id": key[0], "trial": key[1], "attempts": later}))


def grade_trials(
    tasks: Mapping[str, Task],
    trials: Sequence[Trial] | None,
    trajectories: Iterable[tuple[Trajectory, Sequence[InvariantResult]]] = (),
    *,
    source: Source | None = None,
) -> GradedTrials:
    """Grade all trials at once; `TrialGrader` does the same trajectory by trajectory.

    Args:
        tasks: task id (as text) → task.
        trials: distinct trials, or None to take task and trial ids from the spans.
        trajectories: each with the results of the rules that ran on it; read once.
        source: reads the states that the files refer to.
    """
    grader = TrialGrader(tasks, trials, source or NoFiles())
    for trajectory, results in trajectories:
        grader.add(trajectory, results)
    return grader.finish()

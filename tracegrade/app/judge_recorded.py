"""Evaluations that stand in spans (events, evaluator spans, scores, feedback) against people's labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tracegrade.app.outcome_table import map_columns, read_table
from tracegrade.app.outcomes import COLUMNS, trials_of_table
from tracegrade.app.outcomes import Reading as TableReading
from tracegrade.app.trajectories import TrajectoryOptions, trajectories_from_paths
from tracegrade.errors import NothingToGrade, Problem, RuleFileError, UsageError, did_you_mean
from tracegrade.model.judge import JudgeReport, RecordedJudge
from tracegrade.model.report import Warned
from tracegrade.model.scored import ScoredTrial
from tracegrade.model.trajectory import Step, Trajectory
from tracegrade.outcome.recorded import evaluation_passes
from tracegrade.score.estimating import Settings
from tracegrade.score.judges import judge_agreement

KEYS: Final = ("trace_id", "conversation_id")
"""Columns that say which trajectory a label is of."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """What is asked of recorded evaluations.

    Attributes:
        labels: a table of `trace_id` (or `conversation_id`) and `human`, and, where present, `task_id`, `position`,
            `length`, `family`, `judge_family`.
        columns: our name → column of that table.
        threshold: a score passes at or above it.
        evaluation: only the evaluation of this name.
        settings: level and seed.
        trajectories: how spans become trajectories.
    """

    labels: str
    columns: Mapping[str, str]
    threshold: float | None = None
    evaluation: str | None = None
    settings: Settings = field(default_factory=Settings)
    trajectories: TrajectoryOptions | None = None


def judge_recorded(paths: Sequence[str], asked: Labelled) -> JudgeReport:
    """Compare every evaluation that spans hold with people.

    Raises:
        InputError, RuleFileError, UsageError: something cannot be read, or no evaluation has that name.
        NothingToGrade: the spans hold no evaluation, or none of a labelled trajectory.
    """
    labels = read_labels(asked)
    found: dict[str, list[ScoredTrial]] = {}
    used: set[str] = set()
    for trajectory in trajectories_from_paths(paths, asked.trajectories):
        steps = [step for step in trajectory.steps if step.kind == "evaluation"]
        label = next((labels[key] for key in _keys(trajectory) if key in labels), None)
        used.update(key for key in _keys(trajectory) if key in labels)
        for name in dict.fromkeys(step.name for step in steps):
            verdict = _verdict([step for step in steps if step.name == name], asked.threshold)
            found.setdefault(name, []).append(_trial(trajectory, label, verdict))
    if asked.evaluation is not None and found and asked.evaluation not in found:
        hint = did_you_mean(asked.evaluation, found)
        raise UsageError(f"--evaluation {asked.evaluation}: no such evaluation in the spans.{hint}")
    names = sorted(found) if asked.evaluation is None else [n for n in found if n == asked.evaluation]
    judges = tuple(_judge(name, found[name], asked.settings) for name in names)
    if not any(judge.agreement for judge in judges):
        raise NothingToGrade(_nothing(judges, bool(used)))
    return JudgeReport(
        inputs=tuple(paths),
        labels=asked.labels,
        seed=asked.settings.seed,
        confidence=asked.settings.confidence,
        n_labels=len(labels),
        judges=judges,
        warnings=tuple(_unused(len(labels) - len(used))),
    )


def read_labels(asked: Labelled) -> dict[str, ScoredTrial]:
    """People's labels by trace or conversation id.

    Raises:
        InputError, RuleFileError, UsageError: the table cannot be read, lacks a column, or labels one run twice.
    """
    known = {**COLUMNS, "conversation_id": "the conversation", "passed": "only when named: not needed here"}
    table = read_table(asked.labels)
    mapped = map_columns(table, known, asked.columns, {})
    key = next((name for name in KEYS if name in mapped.present), None)
    if key is None or "human" not in mapped.present:
        name = "human" if key is not None else "trace_id"
        hint = (
            f"the table has no such column; name one with --column {name}=COLUMN. Columns: {', '.join(table.columns)}"
        )
        raise RuleFileError([Problem(asked.labels, name, hint)])
    rows = tuple((w, {"task_id": row[key], **row, "passed": None, "trial": w}) for w, row in mapped.rows)
    names = tuple({*mapped.present, "task_id", "passed", "trial"})
    trials = trials_of_table(replace(table, rows=rows, columns=names), TableReading({}, {}))
    labels: dict[str, ScoredTrial] = {}
    for (where, row), trial in zip(mapped.rows, trials, strict=True):
        identity = str(row[key]).lower() if key == "trace_id" else str(row[key])
        if labels.setdefault(identity, trial).human is not trial.human:
            raise RuleFileError([Problem(where, key, f"`{identity}` is labelled twice, and not alike")])
    return labels


def _keys(trajectory: Trajectory) -> Iterator[str]:
    yield from trajectory.trace_ids
    if trajectory.conversation_id is not None:
        yield trajectory.conversation_id


def _verdict(steps: Sequence[Step], threshold: float | None) -> bool | None:
    """What all results of one evaluation of a trajectory say; None where they disagree or one is no verdict."""
    verdicts = {None if step.status == "error" else evaluation_passes(step.score, threshold) for step in steps}
    return verdicts.pop() if len(verdicts) == 1 else None


def _trial(trajectory: Trajectory, label: ScoredTrial | None, verdict: bool | None) -> ScoredTrial:
    base = label or ScoredTrial(trajectory.task_id or trajectory.trajectory_id, trajectory.trajectory_id)
    answers = [s.text for s in trajectory.steps if s.kind == "message" and s.role == "assistant" and s.text is not None]
    length = base.length if base.length is not None else float(len(answers[-1])) if answers else None
    return replace(base, judge=verdict, length=length)


def _judge(name: str, trials: Sequence[ScoredTrial], settings: Settings) -> RecordedJudge:
    decided = [trial for trial in trials if trial.judge is not None]
    return RecordedJudge(
        name=name,
        n_trajectories=len(trials),
        n_undecided=len(trials) - len(decided),
        n_unlabelled=sum(trial.human is None for trial in decided),
        agreement=judge_agreement(decided, settings),
    )


def _nothing(judges: Sequence[RecordedJudge], labelled: bool) -> str:
    if not judges:
        return "the spans hold no evaluation: neither `gen_ai.evaluation.result` events, evaluator spans nor scores"
    names = ", ".join(judge.name for judge in judges)
    if not labelled:
        return f"no label is of a trajectory in the spans (evaluations: {names})"
    if all(judge.n_undecided == judge.n_trajectories for judge in judges):
        return f"no result of {names} says pass or fail; with --threshold X a score of at least X passes"
    return f"no labelled trajectory has a verdict of {names}"


def _unused(number: int) -> Iterator[Warned]:
    if number:
        yield Warned(
            code="labels_without_trajectory",
            message=f"{number} labels are of no trajectory in the spans.",
            context={"count": number},
        )

"""The key of a trial, attempts, and re-runs that would measure something else.

(task, trial) is a key. Equal copies count once; unequal ones need an `attempt`. Of several attempts the first that did
not end in an infrastructure error counts; an attempt after that one is the rerun trap: the best of two tries is
pass@2, not pass@1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tracegrade.errors import Problem, RuleFileError, did_you_mean
from tracegrade.model.task import END_REASONS, EXCLUDED_END_REASONS, Task, Trial
from tracegrade.outcome.join import join_keys
from tracegrade.outcome.presets import known_end_reason, preset_of


def distinct_trials(
    trials: Sequence[Trial], tasks: Mapping[str, Task], places: Sequence[str]
) -> tuple[list[Trial], list[str]]:
    """The trials without their equal copies.

    Args:
        trials: as read.
        tasks: task id → task.
        places: where each trial stands, `file:line`.

    Returns:
        The trials and where each stands, in order.

    Raises:
        RuleFileError: all at once: unknown tasks and end reasons, unequal copies of one (task, trial) without an
            attempt or with the same one, and two trials that would join to the same spans.
    """
    problems = [p for trial, place in zip(trials, places, strict=True) for p in _own_problems(trial, tasks, place)]
    kept: dict[tuple[str, str, int | None], int] = {}
    for index, trial in enumerate(trials):
        key = (*trial.key, trial.attempt)
        first = kept.setdefault(key, index)
        if first != index and trial != trials[first]:
            problems.append(_unequal(trial, places[index], places[first]))
    problems += _mixed_attempts(trials, places)
    indices = sorted(kept.values())
    problems += _same_spans(trials, places, indices)
    if problems:
        raise RuleFileError(problems)
    return [trials[i] for i in indices], [places[i] for i in indices]


def _own_problems(trial: Trial, tasks: Mapping[str, Task], place: str) -> Iterable[Problem]:
    task = tasks.get(str(trial.task_id))
    if task is None:
        yield Problem(place, "task_id", f"no task `{trial.task_id}`.{did_you_mean(str(trial.task_id), tasks)}")
        return
    if trial.end_reason is not None and known_end_reason(trial.end_reason, task) is None:
        known = [*END_REASONS, *preset_of(task).end_reasons]
        hint = did_you_mean(trial.end_reason, known)
        yield Problem(place, "end_reason", f"`{trial.end_reason}` is none of {', '.join(known)}.{hint}")


def _unequal(trial: Trial, place: str, first: str) -> Problem:
    attempt = "" if trial.attempt is None else f", attempt {trial.attempt}"
    return Problem(
        place,
        "trial",
        f"task {trial.task_id}, trial {trial.trial}{attempt} stands at {first} too, with other content; "
        "give re-runs an `attempt`, and other trials another `trial`",
    )


def _mixed_attempts(trials: Sequence[Trial], places: Sequence[str]) -> Iterable[Problem]:
    numbered = {t.key for t in trials if t.attempt is not None}
    for trial, place in zip(trials, places, strict=True):
        if trial.attempt is None and trial.key in numbered:
            text = f"task {trial.task_id}, trial {trial.trial} has other attempts: which one is this?"
            yield Problem(place, "attempt", text)


def _same_spans(trials: Sequence[Trial], places: Sequence[str], indices: Sequence[int]) -> Iterable[Problem]:
    owner: dict[tuple[str, ...], int] = {}
    for index in indices:
        for key in join_keys(trials[index]):
            if key[0] in ("key", "conversation_id", "match") and trials[index].attempt is not None:
                continue  # attempts of one trial may share them; the attempt recorded in the spans decides
            first = owner.setdefault(key, index)
            if first != index:
                text = f"`{key[-1]}` belongs to the trial at {places[first]} too: one trial, one set of spans"
                yield Problem(places[index], key[0], text)


def is_crashed(trial: Trial, task: Task) -> bool:
    """Whether an attempt ended for a reason that is not the agent's, so that it may be repeated."""
    if trial.end_reason is None:
        return False
    ended = known_end_reason(trial.end_reason, task)
    excluded = EXCLUDED_END_REASONS if task.excluded_end_reasons is None else task.excluded_end_reasons
    return ended in excluded


def counted_attempt(attempts: Sequence[Trial], task: Task) -> int:
    """The index of the attempt that counts: the first that did not crash, or the last where all did."""
    return next((i for i, t in enumerate(attempts) if not is_crashed(t, task)), len(attempts) - 1)

"""What trials cost: per trial, per success, per resolved task, with a person as fallback.

A missing cost is not zero, and a recorded zero is no proof of a free agent: both are counted and make the sums lower
bounds; where no trial has a positive cost there is no value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from tracegrade.model.estimate import Estimate
from tracegrade.model.score import Cost, Spend
from tracegrade.model.scored import ScoredTrial
from tracegrade.score.estimating import Ends, Settings, derived, estimate, ratio, unit_name
from tracegrade.score.passk import Floats, Ints
from tracegrade.score.trials import Counts, Settled

QUANTILE_CELLS = 20_000_000
"""Resamples times successes for the bootstrap of a quantile; fewer resamples beyond it, never under 200."""


def weighted_quantiles(values: ArrayLike, weights: ArrayLike, level: float) -> Floats:
    """The linearly interpolated quantile of values repeated `weights` times, for each row of weights.

    Args:
        values: sorted, shape (values,).
        weights: whole numbers ≥ 0, shape (rows, values).
        level: in [0, 1].

    Returns:
        Shape (rows,), NaN for a row without weight; with weights of 1 equal to `numpy.quantile`.

    >>> weighted_quantiles([1.0, 2.0, 4.0], [[1, 1, 1], [0, 0, 2]], 0.75)
    array([3., 4.])
    """
    x = np.asarray(values, dtype=np.float64)
    reached = np.cumsum(np.asarray(weights, dtype=np.int64), axis=1)
    total = reached[:, -1]
    place = (np.maximum(total, 1) - 1) * level
    low = np.floor(place)
    at_low = (reached > low[:, None]).argmax(axis=1)
    at_high = (reached > np.minimum(low + 1, np.maximum(total, 1) - 1)[:, None]).argmax(axis=1)
    mixed = x[at_low] + (x[at_high] - x[at_low]) * (place - low)
    return np.asarray(np.where(total > 0, mixed, np.nan), dtype=np.float64)


def quantile_per_success(
    values: Floats, task: Ints, n_tasks: int, clusters: Floats | None, level: float, settings: Settings
) -> tuple[float | None, Ends | None, str]:
    """A quantile over successes, with a percentile bootstrap over tasks or clusters.

    Args:
        values: one value a success, shape (successes,).
        task: the task of each success, shape (successes,).
        n_tasks: number of tasks.
        clusters: numeric labels, shape (tasks,), or None.
        level: in [0, 1].
        settings: level and seed.
    """
    if values.size == 0:
        return None, None, ""
    order = np.lexsort((task, values))
    values, task = values[order], task[order]
    point = float(np.quantile(values, level))
    label = np.arange(n_tasks) if clusters is None else clusters.astype(np.int64)
    size = int(label.max()) + 1
    unit = unit_name(clusters)
    if size < 2:
        return point, None, f"no interval from one of the {unit}"
    rng = np.random.default_rng(settings.seed)
    draws = max(min(settings.resamples, 200), min(settings.resamples, QUANTILE_CELLS // max(values.size, size)))
    results = []
    step = max(1, 2_000_000 // max(values.size, size))
    for start in range(0, draws, step):
        rows = min(step, draws - start)
        drawn = rng.integers(0, size, size=(rows, size)) + (np.arange(rows) * size)[:, None]
        weight = np.bincount(drawn.ravel(), minlength=rows * size).reshape(rows, size)
        results.append(weighted_quantiles(values, weight[:, label[task]], level))
    column = np.concatenate(results)
    tail = (1 - settings.confidence) / 2
    low, high = np.quantile(column[np.isfinite(column)], [tail, 1 - tail])
    name = f"percentile bootstrap over {unit}, {draws} resamples, seed {settings.seed}"
    return point, (min(float(low), point), max(float(high), point)), name


def spend(
    settled: Settled,
    counts: Counts,
    read: Callable[[ScoredTrial], float | None],
    settings: Settings,
    *,
    zero_is_missing: bool = False,
) -> Spend:
    """One resource over the trials.

    Args:
        settled: the counted trials and all attempts.
        counts: per task, in the same order.
        read: takes the resource from an attempt; None where it was not recorded.
        settings: level, seed, method.
        zero_is_missing: a zero does not count as recorded for `value` to exist (dollars).
    """
    place = {task: i for i, task in enumerate(counts.task_ids)}
    size = len(place)
    total, own, known = np.zeros(size), np.zeros(size), np.zeros(size)
    missing = zeros = positive = 0
    values, tasks = [], []
    for attempt in settled.attempts:
        value = read(attempt)
        if value is None:
            missing += 1
            continue
        zeros += value == 0
        positive += value > 0
        total[place[attempt.task_id]] += value
    for trial in settled.trials:
        value = read(trial)
        if value is None or trial.passed is None or trial.crashed:
            continue
        i = place[trial.task_id]
        own[i] += value
        known[i] += 1
        if trial.passed:
            values.append(value)
            tasks.append(i)
    note = _note(missing, zeros if zero_is_missing else 0, len(settled.attempts))
    usable = positive > 0 or (not zero_is_missing and zeros > 0)
    labels = counts.labels()
    successes, owner = np.asarray(values, dtype=np.float64), np.asarray(tasks, dtype=np.int64)
    nothing: tuple[float | None, Ends | None, str] = (None, None, "")

    def wrap(value: tuple[float | None, Ends | None, str], trials: int, why: str | None = note) -> Estimate:
        point = value if usable else nothing
        return estimate(
            point,
            settings,
            n_tasks=size,
            n_trials=trials,
            n_excluded={"not_recorded": missing} if missing else {},
            note=why if usable else "not recorded" if not zeros else "no positive value recorded: not the same as free",
        )

    passes = int(counts.c.sum())
    resolved = ratio(total, counts.c, labels, settings) if usable else nothing
    return Spend(
        per_trial=wrap(ratio(own, known, labels, settings) if usable else nothing, int(known.sum())),
        per_success_median=wrap(quantile_per_success(successes, owner, size, labels, 0.5, settings), len(values)),
        per_success_p95=wrap(quantile_per_success(successes, owner, size, labels, 0.95, settings), len(values)),
        per_resolved=wrap(
            resolved, int(counts.n.sum()), "no success: no cost per resolved task" if not passes else note
        ),
        total=float(total.sum()) if usable else None,
        n_recorded=len(settled.attempts) - missing,
        n_missing=missing,
        n_zero=zeros,
    )


def _note(missing: int, zeros: int, attempts: int) -> str | None:
    parts = [f"{missing} of {attempts} attempts have no recorded value"] if missing else []
    parts += [f"{zeros} of {attempts} attempts have a recorded zero"] if zeros else []
    return f"a lower bound: {' and '.join(parts)}" if parts else None


def cost(settled: Settled, counts: Counts, settings: Settings, fallback_usd: float | None = None) -> Cost:
    """Dollars per trial, success and resolved task.

    Args:
        settled, counts, settings: as in `spend`.
        fallback_usd: cost F of a person who does what the agent did not; c + (1 − p) F is then given too.
    """
    dollars = spend(settled, counts, lambda trial: trial.cost_usd, settings, zero_is_missing=True)
    usable = dollars.total is not None and dollars.n_missing == 0 and dollars.n_zero == 0
    human: Estimate | None = None
    if fallback_usd is not None:
        human = _with_fallback(settled, counts, settings, fallback_usd, dollars)
    return Cost(
        **{name: getattr(dollars, name) for name in Spend.model_fields},
        usable=usable,
        fallback_usd=fallback_usd,
        with_fallback=human,
    )


def _with_fallback(settled: Settled, counts: Counts, settings: Settings, person: float, dollars: Spend) -> Estimate:
    place = {task: i for i, task in enumerate(counts.task_ids)}
    sums = np.zeros((len(place), 2))
    for trial in settled.trials:
        if trial.cost_usd is not None and trial.passed is not None and not trial.crashed:
            sums[place[trial.task_id]] += (trial.cost_usd + person * (not trial.passed), 1)
    value: tuple[float | None, Ends | None, str] = (None, None, "")
    if dollars.total is not None and sums[:, 1].sum() > 0:
        value = derived(sums, lambda means: means[:, 0] / means[:, 1], counts.labels(), settings)
    return estimate(value, settings, n_tasks=len(place), n_trials=int(sums[:, 1].sum()), note=dollars.per_trial.note)


def total_cost(trials: Sequence[ScoredTrial]) -> dict[str, float | None]:
    """The recorded dollars of each task over its attempts; None where none is recorded."""
    total: dict[str, float | None] = {}
    for trial in trials:
        before = total.setdefault(trial.task_id, None)
        if trial.cost_usd is not None:
            total[trial.task_id] = (before or 0.0) + trial.cost_usd
    return total

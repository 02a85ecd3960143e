"""The time horizon: how long a task may be, for a person, so that the agent still succeeds half of the time.

A weighted logistic regression of success on log2 of a person's minutes. Tasks of one family are not independent, so
the interval resamples families, then tasks within them, then runs within those.

Source: Kwa et al., Measuring AI Ability to Complete Long Tasks, arXiv:2503.14499, section 4 and appendix D.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from tracegrade.errors import NothingToGrade
from tracegrade.model.estimate import Estimate
from tracegrade.model.horizon import Horizon
from tracegrade.model.scored import ScoredTrial
from tracegrade.score.passk import Floats, Ints
from tracegrade.score.trials import reason_not_scored, settle

Weighting: TypeAlias = Literal["invsqrt", "equal"]
NoFit: TypeAlias = Literal["no_successes", "no_failures", "slope_not_negative"]
SHARES = (0.5, 0.8)
FLAT = 1e-9
"""A slope less steep than this is rounding: there is no length at which success crosses a share."""


@dataclass(frozen=True, slots=True)
class HorizonOptions:
    """How to fit.

    Attributes:
        weights: `invsqrt`: a task weighs 1/√(tasks of its family); `equal`: every task weighs the same. A task's
            weight is split over its runs, and all weights sum to 1.
        regularization: λ of the penalty λ/2 · slope²; the intercept is not penalised.
        metr: report 0 minutes where there is no success, as METR does, instead of null.
        draws: resamples of the hierarchical bootstrap.
        confidence: level of the interval.
        seed: of the resampling.
    """

    weights: Weighting = "invsqrt"
    regularization: float = 1e-5
    metr: bool = False
    draws: int = 1_000
    confidence: float = 0.95
    seed: int = 0


def fit_logistic(x: ArrayLike, share: ArrayLike, weight: ArrayLike, penalty: float) -> tuple[Floats, Floats]:
    """Slopes and intercepts of weighted logistic regressions with a penalty on the slope, several at once.

    Minimises Σ w · (log loss of share) + penalty/2 · slope², which is scikit-learn's objective with C = 1/penalty.

    Args:
        x: predictor, shape (tasks,).
        share: successes as a share in [0, 1], shape (fits, tasks); fractional scores are allowed.
        weight: shape (fits, tasks), each row summing to 1.
        penalty: ≥ 0; at 0 perfectly separated data have no finite slope.

    Returns:
        slopes and intercepts, shape (fits,).
    """
    from scipy.special import expit

    xs = np.asarray(x, dtype=np.float64)
    centre = xs.mean()
    z = xs - centre
    y, w = np.atleast_2d(np.asarray(share, dtype=np.float64)), np.atleast_2d(np.asarray(weight, dtype=np.float64))
    slope, level = np.zeros(len(y)), np.zeros(len(y))

    def loss(b: Floats, a: Floats) -> Floats:
        eta = a[:, None] + b[:, None] * z
        return np.asarray((w * (np.logaddexp(0, eta) - y * eta)).sum(axis=1) + penalty / 2 * b**2, dtype=np.float64)

    value = loss(slope, level)
    for _ in range(200):
        p = expit(level[:, None] + slope[:, None] * z)
        error, spread = w * (p - y), w * p * (1 - p)
        g0, g1 = error.sum(axis=1), (error * z).sum(axis=1) + penalty * slope
        h00, h01 = spread.sum(axis=1) + 1e-14, (spread * z).sum(axis=1)
        h11 = (spread * z * z).sum(axis=1) + penalty + 1e-14
        determinant = np.maximum(h00 * h11 - h01**2, 1e-28)
        step0, step1 = (h11 * g0 - h01 * g1) / determinant, (h00 * g1 - h01 * g0) / determinant
        scale = np.minimum(1.0, 5.0 / np.maximum(np.hypot(step0, step1), 1e-300))
        for _ in range(30):
            new = loss(slope - scale * step1, level - scale * step0)
            worse = new > value + 1e-15
            if not worse.any():
                break
            scale = np.where(worse, scale / 2, scale)
        slope, level, value = slope - scale * step1, level - scale * step0, new
        if np.all(np.hypot(step0, step1) < 1e-11):
            break
    return slope, level - slope * centre


def minutes_at(slope: ArrayLike, intercept: ArrayLike, share: float) -> Floats:
    """Minutes at which the fitted success rate is `share`: 2^((logit(share) − intercept) / slope).

    >>> round(float(minutes_at(-0.5, 2.0, 0.5)), 6)
    16.0
    """
    logit = np.log(share / (1 - share))
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        return np.asarray(np.exp2((logit - np.asarray(intercept)) / np.asarray(slope)), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class _Tasks:
    """Per task: log2 minutes, runs, successes, weight (sum 1), family; shape (tasks,) each."""

    x: Floats
    n: Ints
    c: Ints
    weight: Floats
    family: Ints


def _tasks(trials: Sequence[ScoredTrial], weighting: Weighting) -> _Tasks:
    order: dict[str, int] = {}
    families: dict[str, int] = {}
    rows: list[list[float]] = []
    for trial in trials:
        if trial.task_id not in order:
            order[trial.task_id] = len(order)
            name = f"c:{trial.cluster}" if trial.cluster is not None else f"t:{trial.task_id}"
            rows.append([float(np.log2(trial.human_minutes or 1.0)), 0, 0, families.setdefault(name, len(families))])
        rows[order[trial.task_id]][1] += 1
        rows[order[trial.task_id]][2] += bool(trial.passed)
    table = np.array(rows, dtype=np.float64)
    family = table[:, 3].astype(np.int64)
    sizes = np.bincount(family)[family]
    weight = 1 / np.sqrt(sizes) if weighting == "invsqrt" else np.ones(len(table))
    return _Tasks(
        table[:, 0], table[:, 1].astype(np.int64), table[:, 2].astype(np.int64), weight / weight.sum(), family
    )


def no_fit(n: Ints, c: Ints, slope: float) -> NoFit | None:
    """Why there is no horizon, or None."""
    if not c.any():
        return "no_successes"
    if np.array_equal(n, c):
        return "no_failures"
    return "slope_not_negative" if slope > -FLAT else None


def horizon(rows: Sequence[ScoredTrial], options: HorizonOptions | None = None, agent: str | None = None) -> Horizon:
    """Fit the time horizon of one agent.

    Args:
        rows: attempts with `human_minutes`; `cluster` is the family.
        options: how to fit.
        agent: name for the report.

    Raises:
        RuleFileError: unequal rows with one key.
        NothingToGrade: no scored trial has minutes.
    """
    options = options or HorizonOptions()
    scored, excluded = [], defaultdict[str, int](int)
    for trial in settle(rows).trials:
        if trial.passed is None or trial.crashed:
            excluded[reason_not_scored(trial)] += 1
        elif not trial.human_minutes:
            excluded["no_human_minutes"] += 1
        else:
            scored.append(trial)
    if not scored:
        raise NothingToGrade("no scored trial has `human_minutes` above 0: there is nothing to fit")
    data = _tasks(scored, options.weights)
    slopes, intercepts = fit_logistic(data.x, data.c / data.n, data.weight, options.regularization)
    slope, intercept = float(slopes[0]), float(intercepts[0])
    why = no_fit(data.n, data.c, slope)
    fitted = why is None
    low, high = float(np.exp2(data.x.min())), float(np.exp2(data.x.max()))
    ends = _intervals(data, options) if fitted else dict.fromkeys(SHARES, (np.nan, np.nan, 0))
    estimates, beyond = {}, {}
    for share in SHARES:
        name = f"p{100 * share:.0f}"
        value = float(minutes_at(slope, intercept, share)) if fitted else None
        if why == "no_successes" and options.metr:
            value = 0.0
        estimates[name] = _estimate(value, ends[share], why, options, len(data.n), len(scored), dict(excluded))
        beyond[name] = fitted and value is not None and not low <= value <= high
    return Horizon(
        agent=agent,
        coef=slope if fitted else None,
        intercept=intercept if fitted else None,
        p50_minutes=estimates["p50"],
        p80_minutes=estimates["p80"],
        reason=why,
        extrapolated=beyond,
        min_minutes=low,
        max_minutes=high,
        n_tasks=len(data.n),
        n_families=int(data.family.max()) + 1,
        n_runs=len(scored),
        n_excluded=dict(sorted(excluded.items())),
    )


def _estimate(
    value: float | None,
    ends: tuple[float, float, int],
    why: NoFit | None,
    options: HorizonOptions,
    tasks: int,
    runs: int,
    excluded: dict[str, int],
) -> Estimate:
    low, high, dropped = ends
    note = (
        why if value is None else f"{dropped} of {options.draws} resamples have no falling slope" if dropped else None
    )
    known = value is not None and why is None
    return Estimate(
        value,
        min(low, value) if known and value is not None and np.isfinite(low) else None,
        max(high, value) if known and value is not None and np.isfinite(high) else None,
        options.confidence,
        f"hierarchical bootstrap (family, task, run), {options.draws} resamples, seed {options.seed}" if known else "",
        tasks,
        runs,
        excluded,
        note,
    )


def _resample(data: _Tasks, options: HorizonOptions) -> tuple[Floats, Ints]:
    """Task multiplicities (draws, tasks) and resampled successes (draws, tasks)."""
    rng = np.random.default_rng(options.seed)
    families = int(data.family.max()) + 1
    members = [np.flatnonzero(data.family == f) for f in range(families)]
    times = np.zeros((options.draws, len(data.n)), dtype=np.int64)
    for d in range(options.draws):
        for f, repeats in enumerate(np.bincount(rng.integers(0, families, families), minlength=families)):
            if repeats:
                own = members[f]
                drawn = rng.integers(0, own.size, size=repeats * own.size)
                times[d, own] += np.bincount(drawn, minlength=own.size)
    return times.astype(np.float64), rng.binomial(times * data.n, data.c / data.n)


def _intervals(data: _Tasks, options: HorizonOptions) -> dict[float, tuple[float, float, int]]:
    """Share → (low, high, resamples without a falling slope). Runs carry their weight with them."""
    times, passes = _resample(data, options)
    runs = times * data.n
    share = passes / np.maximum(runs, 1)
    weight = times * data.weight
    weight /= weight.sum(axis=1, keepdims=True)
    slope, intercept = fit_logistic(data.x, share, weight, max(options.regularization, 1e-9))
    none, all_ = passes.sum(axis=1) == 0, passes.sum(axis=1) == runs.sum(axis=1)
    rising = ~none & ~all_ & (slope > -FLAT)
    tails = [(1 - options.confidence) / 2, 0.5 + options.confidence / 2]
    result = {}
    for target in SHARES:
        minutes = np.where(none, 0.0, np.where(all_, np.inf, minutes_at(slope, intercept, target)))
        kept = minutes[~rising]
        low, high = np.quantile(kept, tails, method="nearest") if kept.size else (np.nan, np.nan)
        result[target] = (float(low), float(high), int(rising.sum()))
    return result

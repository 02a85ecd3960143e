"""The beta-binomial model of how success differs between tasks: fit, curve beyond n, test, interval.

Each task's success probability is drawn from Beta(a, b); its trials are independent given that. The fit is on the
histogram of (n, c), so its cost does not grow with the number of tasks. Where the likelihood has its supremum at a
boundary of the model, the boundary is named and a and b are None: a number there would depend on the optimiser.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from tracegrade.score.passk import Floats, Ints, check_counts, mean_over_tasks, pass_hat_k

Boundary: TypeAlias = Literal["no_overdispersion", "all_or_nothing", "no_successes", "no_failures", "one_trial_each"]

GAIN = 1e-7
"""A beta-binomial fit whose log-likelihood beats the binomial's by less than this has no overdispersion."""
LIMIT = 18.0
"""log a and log b are kept within ± this; beyond it the beta is a point or a coin for every practical k."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A beta-binomial fit by maximum likelihood.

    Attributes:
        a, b: parameters; None at a boundary.
        mean: a / (a + b), or the rate at a boundary; None without any trial.
        log_likelihood: with the binomial coefficients; None without any trial.
        boundary: None, or the name of the boundary at which the supremum lies.
        null_log_likelihood: of one common success probability (binomial).
    """

    a: float | None
    b: float | None
    mean: float | None
    log_likelihood: float | None
    boundary: Boundary | None
    null_log_likelihood: float | None


@dataclass(frozen=True, slots=True)
class Moments:
    """The fit by moments over tasks with n ≥ 2; s, a and b are None where a or b is outside (0, ∞)."""

    m1: float | None
    m2: float | None
    s: float | None
    a: float | None
    b: float | None


def histogram(n: ArrayLike, c: ArrayLike) -> tuple[Ints, Ints, Floats]:
    """Distinct (n, c) pairs with n ≥ 1 in increasing order, and how many tasks have each.

    >>> [x.tolist() for x in histogram([4, 4, 0, 4], [1, 1, 0, 3])]
    [[4, 4], [1, 3], [2.0, 1.0]]
    """
    trials, passes = check_counts(n, c)
    pairs = np.column_stack([trials.ravel(), passes.ravel()])
    pairs, tasks = np.unique(pairs[pairs[:, 0] > 0], axis=0, return_counts=True)
    return pairs[:, 0], pairs[:, 1], tasks.astype(np.float64)


def _log_choose(n: Ints, c: Ints) -> Floats:
    from scipy.special import gammaln

    return np.asarray(gammaln(n + 1) - gammaln(c + 1) - gammaln(n - c + 1), dtype=np.float64)


def log_likelihood(n: ArrayLike, c: ArrayLike, a: float, b: float) -> float:
    """Log-likelihood of Beta(a, b) with the binomial coefficients, summed over tasks.

    >>> round(log_likelihood([1], [1], 3.0, 1.0), 6)
    -0.287682
    """
    from scipy.special import betaln

    trials, passes, tasks = histogram(n, c)
    each = betaln(a + passes, b + trials - passes) - betaln(a, b) + _log_choose(trials, passes)
    return float(tasks @ each)


def _binomial_log_likelihood(n: Ints, c: Ints, tasks: Floats) -> tuple[Floats, Floats]:
    """Pooled rate and log-likelihood of one common probability, for each row of task numbers (fits, types)."""
    from scipy.special import xlog1py, xlogy

    p = (tasks * c).sum(axis=1) / (tasks * n).sum(axis=1)
    logs = xlogy(c, p[:, None]) + xlog1py(n - c, -p[:, None]) + _log_choose(n, c)
    return p, np.where(tasks > 0, tasks * np.where(tasks > 0, logs, 0.0), 0.0).sum(axis=1)


def fit(n: ArrayLike, c: ArrayLike) -> Fit:
    """Fit by maximum likelihood on (log a, log b).

    Args:
        n: scored trials of each task, shape (tasks,).
        c: passes of each task, shape (tasks,).

    >>> fit([2, 2, 2], [0, 2, 2]).boundary, fit([2, 2], [0, 0]).boundary, fit([1, 1], [0, 1]).boundary
    ('all_or_nothing', 'no_successes', 'one_trial_each')
    """
    trials, passes, tasks = histogram(n, c)
    if trials.size == 0:
        return Fit(None, None, None, None, None, None)
    return fit_many(trials, passes, tasks[None, :])[0]


def fit_many(n: Ints, c: Ints, tasks: Floats) -> list[Fit]:
    """Fit several histograms over the same (n, c) types at once.

    Args:
        n, c: the types, shape (types,), or (fits, types) where each fit has its own; n ≥ 1.
        tasks: number of tasks of each type in each histogram, shape (fits, types).
    """
    n, c = np.broadcast_to(n, tasks.shape), np.broadcast_to(c, tasks.shape)
    pooled, null = _binomial_log_likelihood(n, c, tasks)
    inner = np.any((tasks > 0) & (c > 0) & (c < n), axis=1)
    log_ab, best = np.zeros((len(tasks), 2)), np.full(len(tasks), -np.inf)
    if inner.any():
        log_ab[inner], best[inner] = _maximise(n[inner], c[inner], tasks[inner], pooled[inner])
    return [
        _name(n[i], c[i], tasks[i], float(pooled[i]), float(null[i]), bool(inner[i]), log_ab[i], float(best[i]))
        for i in range(len(tasks))
    ]


def _name(n: Ints, c: Ints, tasks: Floats, p: float, null: float, inner: bool, log_ab: Floats, best: float) -> Fit:
    """The fit of one histogram, with its boundary where the supremum is not inside."""
    if p in (0.0, 1.0):
        return Fit(None, None, p, null, "no_successes" if p == 0 else "no_failures", null)
    if not np.any((tasks > 0) & (n > 1)):
        return Fit(None, None, p, null, "one_trial_each", null)
    if not inner:
        # P(0 passes) + P(all pass) ≤ 1, with equality only in the limit of a coin per task: that limit is the supremum.
        share = float(tasks @ (c > 0) / tasks.sum())
        passed = float(tasks @ (c > 0))
        top = passed * np.log(share) + (tasks.sum() - passed) * np.log1p(-share)
        return Fit(None, None, share, float(top), "all_or_nothing", null)
    if best <= null + GAIN:
        return Fit(None, None, p, null, "no_overdispersion", null)
    a, b = (float(x) for x in np.exp(log_ab))
    return Fit(a, b, a / (a + b), best, None, null)


def _maximise(n: Ints, c: Ints, tasks: Floats, pooled: Floats) -> tuple[Floats, Floats]:
    """Damped Newton steps on (log a, log b) for each histogram; shapes (fits, 2) and (fits,)."""
    log_ab = np.log(_start(n, c, tasks, pooled))
    value = _value(n, c, tasks, log_ab)
    damping = np.full(len(tasks), 1e-3)
    left = np.arange(len(tasks))
    for _ in range(100):
        slope, curve = _derivatives(n[left], c[left], tasks[left], log_ab[left])
        move = _newton_step(slope, curve, damping[left])
        tried = np.clip(log_ab[left] + move, -LIMIT, LIMIT)
        new = _value(n[left], c[left], tasks[left], tried)
        better = new >= value[left]
        log_ab[left] = np.where(better[:, None], tried, log_ab[left])
        value[left] = np.where(better, new, value[left])
        damping[left] = np.where(better, damping[left] / 8, np.maximum(damping[left], 1e-9) * 16)
        left = left[np.abs(move).max(axis=1) >= 1e-10]
        if left.size == 0:
            break
    return log_ab, value


def _start(n: Ints, c: Ints, tasks: Floats, pooled: Floats) -> Floats:
    """Starting a and b from the pooled rate and the excess of pairs that agree, shape (fits, 2)."""
    pairs = (tasks * n * (n - 1.0)).sum(axis=1)
    both = (tasks * c * (c - 1.0)).sum(axis=1) / np.maximum(pairs, 1.0)
    rho = np.clip((both - pooled**2) / np.maximum(pooled * (1 - pooled), 1e-12), 0.02, 0.9)
    size = (1 - rho) / rho
    return np.column_stack([pooled * size, (1 - pooled) * size])


def _value(n: Ints, c: Ints, tasks: Floats, log_ab: Floats) -> Floats:
    from scipy.special import betaln

    a, b = np.exp(log_ab[:, :1]), np.exp(log_ab[:, 1:])
    each = betaln(a + c, b + n - c) - betaln(a, b) + _log_choose(n, c)
    return np.asarray((tasks * each).sum(axis=1), dtype=np.float64)


def _derivatives(n: Ints, c: Ints, tasks: Floats, log_ab: Floats) -> tuple[Floats, Floats]:
    """Gradient (fits, 2) and Hessian (fits, 2, 2) in log a, log b."""
    from scipy.special import digamma, zeta

    a, b = np.exp(log_ab[:, :1]), np.exp(log_ab[:, 1:])
    total = tasks.sum(axis=1)
    first = [(tasks * digamma(x + y)).sum(axis=1) - total * digamma(x[:, 0]) for x, y in ((a, c), (b, n - c))]
    whole = (tasks * digamma(a + b + n)).sum(axis=1) - total * digamma((a + b)[:, 0])
    second = [(tasks * zeta(2, x + y)).sum(axis=1) - total * zeta(2, x[:, 0]) for x, y in ((a, c), (b, n - c))]
    cross = (tasks * zeta(2, a + b + n)).sum(axis=1) - total * zeta(2, (a + b)[:, 0])
    a, b = a[:, 0], b[:, 0]
    slope = np.column_stack([a * (first[0] - whole), b * (first[1] - whole)])
    curve = np.empty((len(log_ab), 2, 2))
    curve[:, 0, 0] = a * a * (second[0] - cross) + slope[:, 0]
    curve[:, 1, 1] = b * b * (second[1] - cross) + slope[:, 1]
    curve[:, 0, 1] = curve[:, 1, 0] = -a * b * cross
    return slope, curve


def _newton_step(slope: Floats, curve: Floats, damping: Floats) -> Floats:
    """An ascent step of length at most 2: Newton's where the surface is concave, else damped towards the gradient."""
    lowest = np.linalg.eigvalsh(-curve)[:, 0]
    scale = np.abs(curve).max(axis=(1, 2)) + 1e-12
    shift = np.maximum(0.0, 1e-6 * scale - lowest) + damping * scale
    step = np.linalg.solve(-curve + shift[:, None, None] * np.eye(2), slope[:, :, None])[:, :, 0]
    length = np.linalg.norm(step, axis=1, keepdims=True)
    return np.asarray(step * np.minimum(1.0, 2.0 / np.maximum(length, 1e-300)), dtype=np.float64)


def moments(n: ArrayLike, c: ArrayLike) -> Moments:
    """The fit by moments over tasks with at least two trials.

    m1 and m2 are the unbiased pass^1 and pass^2; s = (m1 − m2) / (m2 − m1²), a = m1·s, b = (1 − m1)·s.

    >>> fit = moments([2, 2, 2, 2], [0, 1, 1, 2])
    >>> fit.m1, fit.m2, fit.a
    (0.5, 0.25, None)
    """
    trials, passes = check_counts(n, c)
    keep = trials >= 2
    m1, _ = mean_over_tasks(pass_hat_k(trials[keep], passes[keep], 1))
    m2, _ = mean_over_tasks(pass_hat_k(trials[keep], passes[keep], 2))
    if m1 is None or m2 is None:
        return Moments(m1, m2, None, None, None)
    excess = m2 - m1 * m1
    if abs(excess) < 1e-12:
        return Moments(m1, m2, None, None, None)
    s = (m1 - m2) / excess
    a, b = m1 * s, (1 - m1) * s
    return Moments(m1, m2, s, a, b) if a > 0 and b > 0 else Moments(m1, m2, None, None, None)


def curve_hat(a: ArrayLike, b: ArrayLike, k: int) -> Floats:
    """pass^k of Beta(a, b): B(a + k, b) / B(a, b).

    >>> float(curve_hat(1.0, 1.0, 3).round(12))
    0.25
    """
    from scipy.special import betaln

    return np.asarray(np.exp(betaln(np.add(a, k), b) - betaln(a, b)), dtype=np.float64)


def curve_at(a: ArrayLike, b: ArrayLike, k: int) -> Floats:
    """pass@k of Beta(a, b): 1 − B(a, b + k) / B(a, b).

    >>> float(curve_at(1.0, 1.0, 3).round(12))
    0.75
    """
    from scipy.special import betaln

    return np.asarray(-np.expm1(betaln(a, np.add(b, k)) - betaln(a, b)), dtype=np.float64)


def curve(fitted: Fit, k: int) -> tuple[float | None, float | None]:
    """pass^k and pass@k of a fit, at a boundary in its limit; None where the fit says nothing about them."""
    if fitted.mean is None:
        return None, None
    p = fitted.mean
    if fitted.a is not None and fitted.b is not None:
        return float(curve_hat(fitted.a, fitted.b, k)), float(curve_at(fitted.a, fitted.b, k))
    if fitted.boundary == "no_overdispersion":
        return p**k, 1 - (1 - p) ** k
    if fitted.boundary == "one_trial_each" and k > 1:
        return None, None
    return p, p


@dataclass(frozen=True, slots=True)
class Heterogeneity:
    """The likelihood-ratio test of one success probability for all tasks against the beta-binomial."""

    statistic: float
    p_value: float


def heterogeneity(fitted: Fit) -> Heterogeneity | None:
    """Test whether tasks differ at all; None where the data cannot say (no trials, one trial each, no or only passes).

    The null hypothesis lies on the boundary, so the statistic is half the time 0 and half the time χ² with one degree
    of freedom.

    Source: Self & Liang 1987, JASA 82:605, case 5.
    """
    if fitted.log_likelihood is None or fitted.null_log_likelihood is None:
        return None
    if fitted.boundary in ("no_successes", "no_failures", "one_trial_each"):
        return None
    from scipy.special import chdtrc

    statistic = max(0.0, 2 * (fitted.log_likelihood - fitted.null_log_likelihood))
    return Heterogeneity(statistic, 0.5 * float(chdtrc(1, statistic)) if statistic > 0 else 1.0)


def simulate(fitted: Fit, n: Ints, draws: int, rng: np.random.Generator) -> Ints:
    """Counts drawn from a fit that has a success probability for every task, shape (draws, tasks)."""
    shape = (draws, len(n))
    if fitted.a is not None and fitted.b is not None:
        p = rng.beta(fitted.a, fitted.b, size=shape)
    elif fitted.boundary == "all_or_nothing":
        p = (rng.random(shape) < (fitted.mean or 0.0)).astype(np.float64)
    else:
        p = np.full(shape, fitted.mean or 0.0)
    return np.asarray(rng.binomial(n, p), dtype=np.int64)


def curve_interval(
    n: ArrayLike, c: ArrayLike, ks: list[int], *, confidence: float = 0.95, draws: int = 400, seed: int = 0
) -> dict[int, tuple[tuple[float, float], tuple[float, float]]]:
    """Parametric-bootstrap percentile intervals of the fitted curve, and nothing where it is not defined.

    Counts are drawn from the fit with the data's own n, fitted again, and the quantiles of the curves taken. A fit at a
    boundary says nothing about how far the spread of tasks may be from it: the result is then empty, and the posterior
    of `tracegrade.score.posterior` is the interval to use.

    Returns:
        k → (interval of pass^k, interval of pass@k).

    Source: Efron & Tibshirani 1993, section 6.5.
    """
    trials, passes = check_counts(n, c)
    keep = trials > 0
    trials, passes = trials[keep], passes[keep]
    fitted = fit(trials, passes)
    if fitted.boundary is not None:
        return {}
    refits = _refit(fitted, trials, draws, seed)
    tails = [(1 - confidence) / 2, 0.5 + confidence / 2]
    result = {}
    for k in ks:
        pairs = [curve(f, k) for f in refits]
        here = curve(fitted, k)
        ends = []
        for which in (0, 1):
            point = here[which]
            values = [pair[which] for pair in pairs if pair[which] is not None]
            if point is not None:
                low, high = np.quantile(np.asarray(values, dtype=np.float64), tails)
                ends.append((min(float(low), point), max(float(high), point)))
        result[k] = (ends[0], ends[1])
    return result


def _refit(fitted: Fit, trials: Ints, draws: int, seed: int) -> list[Fit]:
    """Fits to counts drawn from a fit; tasks are taken in the order of their n, so their order does not matter."""
    trials = np.sort(trials)
    rng = np.random.default_rng(seed)
    sizes, index = np.unique(trials, return_inverse=True)
    if trials.size <= int((sizes + 1).sum()):
        counts = simulate(fitted, trials, draws, rng)
        return fit_many(trials, counts, np.ones(counts.shape))
    offset = np.concatenate([[0], np.cumsum(sizes + 1)[:-1]])
    types_n = np.repeat(sizes, sizes + 1)
    types_c = np.concatenate([np.arange(s + 1) for s in sizes])
    tasks = np.zeros((draws, len(types_n)))
    block = max(1, 4_000_000 // len(trials))
    for first in range(0, draws, block):
        codes = simulate(fitted, trials, min(block, draws - first), rng) + offset[index]
        for row, code in enumerate(codes, start=first):
            tasks[row] = np.bincount(code, minlength=len(types_n))
    return fit_many(types_n, types_c, tasks)

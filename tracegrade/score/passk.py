"""pass@k and pass^k of tasks with n scored trials and c passes, without bias.

In: arrays of counts, one entry a task. Out: one value a task, or the mean over the tasks that have at least k trials.
A task with fewer than k trials has no value (NaN), never 0: no subset of k of its trials exists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from collections.abc import Sequence

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

PRODUCT_UP_TO = 256
"""Largest k for which the product is multiplied out; beyond it log-gamma is used."""


def check_counts(n: ArrayLike, c: ArrayLike) -> tuple[Ints, Ints]:
    """The counts as equal-shaped integer arrays.

    Args:
        n: scored trials of each task, integers ≥ 0.
        c: passes of each task, integers with 0 ≤ c ≤ n.

    Raises:
        ValueError: counts that are no integers, or outside 0 ≤ c ≤ n.
    """
    trials, passes = np.broadcast_arrays(np.asarray(n), np.asarray(c))
    for name, values in (("n", trials), ("c", passes)):
        if not np.all(np.equal(np.mod(values, 1), 0)):
            raise ValueError(f"{name}: counts must be whole numbers")
    trials, passes = trials.astype(np.int64), passes.astype(np.int64)
    if np.any(passes < 0) or np.any(passes > trials):
        raise ValueError("c: expected 0 <= c <= n for every task")
    return trials, passes


def _check_k(k: int) -> None:
    if k < 1:
        raise ValueError("k: expected a whole number of at least 1")


def pass_hat_k(n: ArrayLike, c: ArrayLike, k: int) -> Floats:
    """pass^k of each task: the share of its k-subsets of trials in which all pass, C(c, k) / C(n, k).

    Args:
        n: scored trials, shape (tasks,) or any shape that broadcasts with c.
        c: passes, same shape.
        k: size of the subset, ≥ 1.

    Returns:
        Values in [0, 1], NaN where n < k.

    Source: Yao et al., τ-bench, arXiv:2406.12045, §4 (the unbiased estimate of p^k under n independent trials).

    >>> pass_hat_k([4, 4, 2], [3, 4, 1], 3)
    array([0.25, 1.  ,  nan])
    """
    _check_k(k)
    trials, passes = check_counts(n, c)
    values = np.where(passes >= k, 1.0, 0.0)
    if k <= PRODUCT_UP_TO:
        for i in range(k):
            values = values * (np.maximum(passes - i, 0) / np.maximum(trials - i, 1))
    else:
        from scipy.special import gammaln

        top = np.maximum(passes, k)
        whole = np.maximum(trials, top)
        log = gammaln(top + 1) - gammaln(top - k + 1) - gammaln(whole + 1) + gammaln(whole - k + 1)
        values = values * np.exp(log)
    return np.asarray(np.where(trials >= k, values, np.nan), dtype=np.float64)


def pass_at_k(n: ArrayLike, c: ArrayLike, k: int) -> Floats:
    """pass@k of each task: the share of its k-subsets of trials in which at least one passes.

    That is 1 − C(n − c, k) / C(n, k).

    Args:
        n: scored trials, shape (tasks,) or any shape that broadcasts with c.
        c: passes, same shape.
        k: size of the subset, ≥ 1.

    Returns:
        Values in [0, 1], NaN where n < k.

    Source: Chen et al., Evaluating Large Language Models Trained on Code, arXiv:2107.03374, equation 1.

    >>> pass_at_k([4, 4, 2], [1, 0, 1], 2)
    array([0.5, 0. , 1. ])
    """
    trials, passes = check_counts(n, c)
    return 1.0 - pass_hat_k(trials, trials - passes, k)


def plug_in_hat_k(n: ArrayLike, c: ArrayLike, k: int) -> Floats:
    """(c / n)^k of each task: biased upwards (Jensen: x^k is convex), shown only on request.

    Args:
        n: scored trials, shape (tasks,).
        c: passes, shape (tasks,).
        k: exponent, ≥ 1.

    Returns:
        Values in [0, 1], NaN where n < k, so that it covers the same tasks as `pass_hat_k`.

    >>> plug_in_hat_k([4], [2], 2)
    array([0.25])
    """
    _check_k(k)
    trials, passes = check_counts(n, c)
    return np.asarray(np.where(trials >= k, (passes / np.maximum(trials, 1)) ** k, np.nan), dtype=np.float64)


def plug_in_at_k(n: ArrayLike, c: ArrayLike, k: int) -> Floats:
    """1 − (1 − c / n)^k of each task: biased downwards (the function is concave), shown only on request.

    >>> plug_in_at_k([4], [2], 2)
    array([0.75])
    """
    trials, passes = check_counts(n, c)
    return 1.0 - plug_in_hat_k(trials, trials - passes, k)


def mean_over_tasks(values: ArrayLike) -> tuple[float | None, int]:
    """The mean of the tasks that have a value, and their number; None where there is none.

    Args:
        values: one value a task, NaN for none, shape (tasks,).

    >>> mean_over_tasks([0.5, float("nan"), 1.0]), mean_over_tasks([float("nan")])
    ((0.75, 2), (None, 0))
    """
    array = np.asarray(values, dtype=np.float64)
    known = array[~np.isnan(array)]
    return (float(known.mean()), int(known.size)) if known.size else (None, 0)


def default_ks(n: ArrayLike) -> Sequence[int]:
    """The k shown when none are asked for: 1 to 8, then powers of two, up to the most trials that any task has.

    >>> default_ks([4, 4, 3]), default_ks([40, 2])
    ([1, 2, 3, 4], [1, 2, 3, 4, 5, 6, 7, 8, 16, 32])
    """
    most = int(np.max(np.asarray(n, dtype=np.int64), initial=0))
    powers = [2**e for e in range(4, 14)]
    return [k for k in [*range(1, 9), *powers] if k <= max(most, 1)]

"""Estimates from sampled traffic: totals, rates and bounds that carry the weights.

A weight is the reciprocal of the probability with which a trajectory came into the sample. Totals are of the traffic
that was (Horvitz-Thompson, unbiased for any sampling with known probabilities). Rates are of the process that made it
(Hájek: a weighted mean), so that even a census has an interval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tracegrade.model.estimate import Estimate
from tracegrade.score.intervals import clopper_pearson

Floats: TypeAlias = npt.NDArray[np.float64]
Numbers: TypeAlias = Sequence[float] | Sequence[bool] | Floats


def kish_n(weights: Numbers) -> float:
    """(Σw)² / Σw²: how many equally weighted trajectories carry as much; 0 of none.

    Source: Kish 1965, Survey Sampling, section 11.7.

    >>> kish_n([1, 1, 1, 1]), round(kish_n([1, 1, 1, 97]), 3)
    (4.0, 1.062)
    """
    w = _weights(weights)
    return float(w.sum() ** 2 / np.sum(w**2)) if w.size else 0.0


def upper_bound_for_zero(n: float, confidence: float = 0.95) -> float:
    """The largest rate that leaves a chance of 1 − confidence to see none in n: 1 − (1 − confidence)^{1/n}.

    It is the one-sided Clopper-Pearson bound; for 95 % and large n it is close to 3/n, the rule of three.

    Args:
        n: number of independent trajectories, > 0; of weighted ones, `kish_n`.
        confidence: in (0, 1).

    Raises:
        ValueError: n is not above zero.

    >>> round(upper_bound_for_zero(300), 5), 3 / 300
    (0.00994, 0.01)
    """
    if n <= 0:
        raise ValueError("no trajectory, no bound")
    return float(-math.expm1(math.log1p(-confidence) / n))


def weighted_total(
    values: Numbers, weights: Numbers, confidence: float = 0.95, excluded: Mapping[str, int] | None = None
) -> Estimate:
    """Σ w·y: the total over all traffic, of which a sample was seen.

    The variance is that of independent (Poisson) sampling, Σ w(w − 1)y², to which consistent-probability sampling by
    trace amounts; for stratified samples of fixed size it errs to the wide side. The interval is normal and starts no
    lower than what was seen.

    Args:
        values: one value a trajectory, such as 1 for a violation or its cost, shape (n,).
        weights: one weight a trajectory, ≥ 1, shape (n,).
        confidence: in (0, 1).
        excluded: trajectories left out, by reason.

    Returns:
        The total; null without a trajectory. Where every value is zero the interval is null: see `weighted_rate`.

    Source: Horvitz & Thompson 1952, JASA 47:663; variance for Poisson sampling as in Särndal, Swensson, Wretman 1992,
    Model Assisted Survey Sampling, eq. 3.5.3.
    """
    y, w = np.asarray(values, dtype=np.float64), _weights(weights)
    left_out = dict(excluded or {})
    if not w.size:
        return _none("no trajectory", confidence, left_out)
    from scipy.special import ndtri

    total = float(np.sum(w * y))
    error = math.sqrt(float(np.sum(w * (w - 1) * y**2)))
    half = float(ndtri(0.5 + confidence / 2)) * error
    seen = float(y.sum())
    known = bool(np.any(y != 0)) or bool(np.all(w == 1))
    return Estimate(
        value=total,
        low=max(total - half, seen) if known and seen >= 0 else total - half if known else None,
        high=total + half if known else None,
        confidence=confidence,
        method="Horvitz-Thompson, normal",
        n_trials=w.size,
        n_excluded=left_out,
    )


def weighted_rate(
    values: Numbers, weights: Numbers, confidence: float = 0.95, excluded: Mapping[str, int] | None = None
) -> Estimate:
    """Σ w·y / Σ w: the share of trajectories for which something holds, with an interval at the effective n.

    The effective n is R(1 − R)/v with the linearised variance v = Σ w²(y − R)²/(Σw)², at most the number seen; where
    the rate is 0 or 1 it is Kish's. The interval is Clopper-Pearson's at that n, so that zero of many has an upper
    bound and rare events keep their coverage.

    Args:
        values: 1 or 0 (a share in 0..1 is allowed), shape (n,).
        weights: one weight a trajectory, > 0, shape (n,).
        confidence: in (0, 1).
        excluded: trajectories left out, by reason.

    Returns:
        The rate, `method` naming the effective n; null without a trajectory.

    Source: Hájek 1971; Korn & Graubard 1998, Survey Methodology 24(2):193, for the interval.
    """
    y, w = np.asarray(values, dtype=np.float64), _weights(weights)
    left_out = dict(excluded or {})
    if not w.size:
        return _none("no trajectory", confidence, left_out)
    rate = float(np.sum(w * y) / w.sum())
    spread = float(np.sum((w * (y - rate)) ** 2) / w.sum() ** 2)
    effective = min(rate * (1 - rate) / spread, float(w.size)) if spread > 0 else kish_n(w)
    low, high = clopper_pearson(rate * effective, effective, confidence)
    weighted = "unweighted" if np.all(w == w[0]) else "weighted (Hájek)"
    return Estimate(
        value=rate,
        low=low,
        high=high,
        confidence=confidence,
        method=f"{weighted}, Clopper-Pearson at an effective n of {effective:.1f}",
        n_trials=w.size,
        n_excluded=left_out,
    )


def _weights(weights: Numbers) -> Floats:
    w = np.asarray(weights, dtype=np.float64)
    if np.any(~np.isfinite(w)) or np.any(w <= 0):
        raise ValueError("a weight is a finite number above zero")
    return w


def _none(note: str, confidence: float, excluded: dict[str, int]) -> Estimate:
    return Estimate(None, confidence=confidence, n_excluded=excluded, note=note)

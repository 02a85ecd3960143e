"""What crashed attempts do to a rate, under the three ways that people treat them.

f is the share of attempts that crash, assumed independent of the task; m1 and m2 are pass^1 and pass^2 of the attempts
that did not crash.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from tracegrade.score.passk import Floats


def scored_as_failure(f: ArrayLike, m1: ArrayLike) -> Floats:
    """The rate when a crash counts as a failure: (1 − f) m1.

    >>> float(scored_as_failure(0.25, 0.8).round(6))
    0.6
    """
    return _array((1.0 - _array(f)) * _array(m1))


def with_reruns(f: ArrayLike, m1: ArrayLike, reruns: int) -> Floats:
    """The rate when a crash is run again up to `reruns` times and then counts as a failure: (1 − f^(r+1)) m1.

    >>> float(with_reruns(0.5, 0.8, 1).round(6))
    0.6
    """
    return _array((1.0 - _array(f) ** (reruns + 1)) * _array(m1))


def rerunning_failures(f: ArrayLike, m1: ArrayLike, m2: ArrayLike) -> Floats:
    """The rate when every failure, crashed or not, is run once more: 2(1 − f) m1 − (1 − f)² m2.

    That is pass@2 under another name.

    >>> float(rerunning_failures(0.0, 0.5, 0.25).round(6))
    0.75
    """
    alive = 1.0 - _array(f)
    return _array(2.0 * alive * _array(m1) - alive**2 * _array(m2))


def _array(values: ArrayLike) -> Floats:
    import numpy as np

    return np.asarray(values, dtype=np.float64)

"""CPU time of the bootstrap as a ratio to scipy's, and peak memory with many tasks: `python -m benchmarks.statistics`.

The limit on the ratio is 1.5: all k, both curves, against one call of `scipy.stats.bootstrap` on one of them.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable

import numpy as np
from scipy import stats

from tracegrade.score.estimating import Settings, pass_curves
from tracegrade.score.passk import pass_hat_k

LIMIT = 1.5
KS = list(range(1, 9))


def cpu(work: Callable[[], object], repeats: int = 3) -> float:
    """The least CPU seconds of a few runs."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def compare(
    tasks: int = 1_000, trials: int = 8, resamples: int = 10_000, *, unequal: bool = False
) -> tuple[float, float]:
    """CPU seconds of ours (all k, both curves) and of scipy's BCa on one vector of task values."""
    rng = np.random.default_rng(0)
    n = rng.integers(trials // 2, trials + 1, tasks) if unequal else np.full(tasks, trials)
    c = rng.binomial(n, rng.beta(0.6, 0.9, tasks))
    values = pass_hat_k(n, c, 1)
    settings = Settings(resamples=resamples)
    ours = cpu(lambda: pass_curves(n, c, None, KS, settings))
    theirs = cpu(
        lambda: stats.bootstrap((values,), np.mean, n_resamples=resamples, method="BCa", batch=500, random_state=0)
    )
    return ours, theirs


def main() -> None:
    """Print ratios and peak memory; exit 1 beyond the limit."""
    failed = False
    for unequal in (False, True):
        ours, theirs = compare(unequal=unequal)
        failed |= ours / theirs > LIMIT
        kind = "4 to 8" if unequal else "8"
        print(
            f"1,000 tasks × {kind} trials × 10,000 resamples: {ours:.3f} s, "
            f"scipy {theirs:.3f} s, ratio {ours / theirs:.2f}"
        )
    rng = np.random.default_rng(0)
    n = np.full(100_000, 8)
    c = rng.binomial(n, rng.beta(0.6, 0.9, n.size))
    seconds = cpu(lambda: pass_curves(n, c, None, KS, Settings()), repeats=1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"100,000 tasks × 8 trials × 10,000 resamples: {seconds:.3f} s, peak memory of the process {peak:.0f} MiB")
    raise SystemExit(failed)


if __name__ == "__main__":
    main()

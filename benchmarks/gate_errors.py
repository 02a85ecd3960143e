"""How often the gate is wrong, and what it sees: `python -m benchmarks.gate_errors > tables.md`.

Without a change: the share of data sets in which a drop of the pass rate is established. With one: the share in which
it is, beside exact paired tests on the same data. The tables stand in docs/gate.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from scipy import stats

from tracegrade.score.paired import differences, mcnemar_exact

TASKS = (10, 30, 100, 500)
TRIALS = (1, 2, 4, 8)
A, B = 0.8, 0.6


def false_alarms(tasks: int, trials: int, clustered: bool, sets: int, seed: int) -> tuple[float, float]:
    """Shares of data sets without any change in which a drop, or a gain, is established.

    Args:
        tasks, trials: tasks, and trials of each.
        clustered: four tasks share one rate, and at times the luck of one side.
        sets: data sets drawn.
        seed: of the draws.
    """
    rng = np.random.default_rng([seed, tasks, trials])
    drops = gains = 0
    for i in range(sets):
        clusters = np.arange(tasks) // 4 if clustered else np.arange(tasks)
        p = rng.beta(A, B, clusters.max() + 1)[clusters]
        before, after = rng.binomial(trials, p) / trials, rng.binomial(trials, p) / trials
        if clustered:  # a change of luck that a whole cluster shares on one side
            after = np.where(rng.random(clusters.max() + 1)[clusters] < 0.2, np.round(rng.random(tasks)), after)
            before = np.where(rng.random(clusters.max() + 1)[clusters] < 0.2, np.round(rng.random(tasks)), before)
        top, bottom = np.bincount(clusters, weights=after - before), np.bincount(clusters).astype(float)
        binary = trials == 1 and not clustered
        found = differences(top, bottom, rates=True, binary=binary, resamples=500, seed=i).at(0.05)
        drops += found.high < 0
        gains += found.low > 0
    return drops / sets, gains / sets


def power(tasks: int, trials: int, drop: float, sets: int, seed: int) -> tuple[float, float]:
    """Shares of data sets with a drop in which the gate, and an exact paired test on the same data, establish it.

    The test is McNemar's for one trial a task, else scipy's permutation test of the mean of the differences.
    """
    rng = np.random.default_rng([seed, tasks, trials])
    ours = exact = 0
    for i in range(sets):
        p = rng.beta(A, B, tasks)
        worse = p * (1 - drop * (A + B) / A)
        top = (rng.binomial(trials, worse) - rng.binomial(trials, p)) / trials
        found = differences(top, np.ones(tasks), rates=True, binary=trials == 1, resamples=1_000, seed=i).at(0.05)
        ours += found.high < 0
        exact += top.mean() < 0 and exact_p(top, trials, i) <= 0.05
    return ours / sets, exact / sets


def exact_p(top: np.ndarray, trials: int, seed: int) -> float:
    """The two-sided p of the paired test on differences by task."""
    if trials == 1:
        return mcnemar_exact(int((top < 0).sum()), int((top > 0).sum()))
    found = stats.permutation_test(
        (top,), np.mean, permutation_type="samples", vectorized=True, n_resamples=1_000,
        rng=np.random.default_rng(seed),
    )  # fmt: skip
    return float(found.pvalue)


def tables(sets: int, seed: int) -> Iterator[str]:
    """Both tables as Markdown."""
    yield "| no change: a drop is established in | " + " | ".join(f"{n} tasks" for n in TASKS) + " |"
    yield "|---|" + "---|" * len(TASKS)
    for clustered in (False, True):
        for trials in TRIALS:
            # without a change both sides are alike: drops and gains are two measurements of one rate
            cells = [f"{50 * sum(false_alarms(n, trials, clustered, sets, seed)):.1f} %" for n in TASKS]
            name = f"{trials} trial" + ("s" if trials > 1 else "") + (", clusters of 4" if clustered else "")
            yield f"| {name} | " + " | ".join(cells) + " |"
    yield ""
    yield (
        "| drop of 10 points: seen by the gate / by the exact test | " + " | ".join(f"{n} tasks" for n in TASKS) + " |"
    )
    yield "|---|" + "---|" * len(TASKS)
    for trials, test in ((1, "McNemar"), (4, "sign-flip permutation, scipy")):
        pairs = [power(n, trials, 0.10, sets // 4, seed) for n in TASKS]
        cells = [f"{100 * ours:.0f} % / {100 * exact:.0f} %" for ours, exact in pairs]
        yield f"| {trials} trial{'s' if trials > 1 else ''} ({test}) | " + " | ".join(cells) + " |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for line in tables(options.sets, options.seed):
        print(line, flush=True)

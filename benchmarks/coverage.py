"""How often each interval holds the true value: `python -m benchmarks.coverage > table.md`.

Tasks are drawn anew for every data set, so the truth is the mean over all tasks that could be drawn, not over those
that were. The table stands in docs/scores.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np

from tracegrade.score.beta_binomial import curve_hat, curve_interval
from tracegrade.score.estimating import Settings, pass_curves
from tracegrade.score.intervals import (
    clopper_pearson,
    clustered_standard_error,
    jeffreys,
    naive_standard_error,
    t_interval,
    wilson,
)
from tracegrade.score.posterior import curve_posterior

TASKS = (10, 30, 100, 500)
A, B = 0.8, 0.6
Ends = tuple[float, float]
Interval = Callable[[np.ndarray, np.ndarray, np.ndarray | None], Ends]


def bootstrap(k: int, method: str) -> Interval:
    """pass^k by a bootstrap over tasks or clusters, as `score` gives it (all-equal data included)."""

    def interval(n: np.ndarray, c: np.ndarray, clusters: np.ndarray | None) -> Ends:
        ends = pass_curves(n, c, clusters, [k], Settings(method=method, resamples=2_000)).hat[k][1]  # type: ignore[arg-type]
        assert ends is not None
        return ends

    return interval


def analytic(n: np.ndarray, c: np.ndarray, clusters: np.ndarray | None) -> Ends:
    """Mean ± t · standard error."""
    values = c / n
    groups = np.arange(len(n)) if clusters is None else clusters
    error = naive_standard_error(values) if clusters is None else clustered_standard_error(values, clusters)
    return t_interval(float(values.mean()), error or 0.0, len(np.unique(groups)))


def proportion(function: Callable[[float, float], Ends]) -> Interval:
    """An interval of passes out of tasks, for one trial a task."""
    return lambda n, c, _: function(float(c.sum()), float(len(n)))


def fitted(n: np.ndarray, c: np.ndarray, _: np.ndarray | None) -> Ends:
    """pass^16 of the fitted curve, by parametric bootstrap where it is defined, else by the posterior."""
    ends = curve_interval(n, c, [16], draws=200) or curve_posterior(n, c, [16])
    return ends[16][0]


def posterior(n: np.ndarray, c: np.ndarray, _: np.ndarray | None) -> Ends:
    """pass^4 by the posterior that `score` uses when all tasks are equal."""
    return curve_posterior(n, c, [4])[4][0]


def spread(tasks: int, trials: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, None]:
    """Tasks whose probabilities are drawn from Beta(0.8, 0.6)."""
    n = np.full(tasks, trials)
    return n, rng.binomial(trials, rng.beta(A, B, tasks)), None


def clustered(tasks: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tasks in clusters of five that share half of what makes them easy."""
    clusters = np.arange(tasks) // 5
    shared, own = rng.beta(A, B, clusters.max() + 1)[clusters], rng.beta(A, B, tasks)
    p = np.where(rng.random(tasks) < 0.5, shared, own)
    return np.full(tasks, 4), rng.binomial(4, p), clusters.astype(float)


def rows() -> Iterator[tuple[str, str, Callable[[int, np.random.Generator], tuple], float, Interval, float]]:
    """What is estimated, by what, on which data, the truth, the interval, and its share of the data sets."""
    mean = A / (A + B)
    four, sixteen = float(curve_hat(A, B, 4)), float(curve_hat(A, B, 16))

    def trials4(tasks: int, rng: np.random.Generator) -> tuple:
        return spread(tasks, 4, rng)

    def one(p: float) -> Callable[[int, np.random.Generator], tuple]:
        return lambda tasks, rng: (np.ones(tasks, dtype=int), rng.binomial(1, p, tasks), None)

    yield "rate, 4 trials", "BCa over tasks", trials4, mean, bootstrap(1, "bca"), 1.0
    yield "rate, 4 trials", "percentile over tasks", trials4, mean, bootstrap(1, "percentile"), 1.0
    yield "rate, 4 trials", "analytic, t", trials4, mean, analytic, 1.0
    yield "pass^4, 4 trials", "BCa over tasks", trials4, four, bootstrap(4, "bca"), 1.0
    yield "pass^4, 4 trials", "percentile over tasks", trials4, four, bootstrap(4, "percentile"), 1.0
    yield "pass^4, 4 trials", "posterior", trials4, four, posterior, 0.3
    yield "pass^16 from 4 trials", "fit, parametric bootstrap", trials4, sixteen, fitted, 0.3
    for p in (0.6, 0.95):
        name = f"rate {p:g}, 1 trial"
        yield name, "BCa over tasks", one(p), p, bootstrap(1, "bca"), 1.0
        yield name, "percentile over tasks", one(p), p, bootstrap(1, "percentile"), 1.0
        yield name, "Wilson", one(p), p, proportion(wilson), 1.0
        yield name, "Clopper–Pearson", one(p), p, proportion(clopper_pearson), 1.0
        yield name, "Jeffreys", one(p), p, proportion(jeffreys), 1.0
    yield "rate, clusters of 5", "BCa over clusters", clustered, mean, bootstrap(1, "bca"), 1.0
    yield "rate, clusters of 5", "analytic, clustered t", clustered, mean, analytic, 1.0
    yield (
        "rate, clusters of 5",
        "BCa over tasks (wrong here)",
        lambda tasks, rng: (*clustered(tasks, rng)[:2], None),
        mean,
        bootstrap(1, "bca"),
        1.0,
    )


def measure(data_sets: int, seed: int, tasks: tuple[int, ...] = TASKS) -> Iterator[tuple[str, str, list[float]]]:
    """Coverage of each row for each number of tasks."""
    for what, how, draw, truth, interval, share in rows():
        found = []
        for size in tasks:
            rng = np.random.default_rng([seed, size])
            sets = max(1, int(data_sets * share))
            hits = 0
            for _ in range(sets):
                low, high = interval(*draw(size, rng))
                hits += low - 1e-12 <= truth <= high + 1e-12
            found.append(hits / sets)
        yield what, how, found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-sets", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print("| estimate | interval | nominal | " + " | ".join(f"{t} tasks" for t in TASKS) + " |")
    print("|---|---|---|" + "---|" * len(TASKS))
    for what, how, found in measure(options.data_sets, options.seed):
        print(f"| {what} | {how} | 95 % | " + " | ".join(f"{100 * x:.1f} %" for x in found) + " |", flush=True)


if __name__ == "__main__":
    main()

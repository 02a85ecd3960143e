"""How large a drop a comparison can see, and how many tasks or trials it takes: by simulation.

Each task's success probability is drawn from the fitted spread. A drop lowers every task in proportion, so that the
mean falls by the drop and every probability stays in [0, 1]. In the paired design both sides try the same tasks; in
the unpaired one each side draws its own. The tests are those a gate rests on: for one trial a task the exact McNemar
test, else a t test on differences between tasks; unpaired, Welch's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tracegrade.score.beta_binomial import Fit
from tracegrade.score.passk import Floats, Ints

Design: TypeAlias = Literal["paired", "unpaired"]
MOST_TASKS = 100_000
MOST_TRIALS = 256


@dataclass(frozen=True, slots=True)
class Spread:
    """How success probabilities differ between tasks.

    Attributes:
        mean: mean success probability.
        a, b: of the beta; None for all tasks alike (`alike`) or for tasks that always pass or always fail.
        alike: with a and b None, whether every task has the same probability.
    """

    mean: float
    a: float | None = None
    b: float | None = None
    alike: bool = True

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Success probabilities."""
        if self.a is not None and self.b is not None:
            return np.asarray(rng.beta(self.a, self.b, size=shape), dtype=np.float64)
        if self.alike:
            return np.full(shape, self.mean)
        return np.asarray(rng.random(shape) < self.mean, dtype=np.float64)


def spread_of_fit(fitted: Fit) -> Spread:
    """The spread that a fit stands for. With one trial each it is not known, and all tasks alike is assumed."""
    return Spread(fitted.mean or 0.0, fitted.a, fitted.b, alike=fitted.boundary != "all_or_nothing")


@dataclass(frozen=True, slots=True)
class Study:
    """A comparison to be planned.

    Attributes:
        spread: of success probabilities on the baseline.
        design: `paired` (same tasks on both sides) or `unpaired`.
        alpha: two-sided level; half of it is the chance of a false alarm about a drop.
        simulations: comparisons drawn.
        seed: of everything drawn.
    """

    spread: Spread
    design: Design = "paired"
    alpha: float = 0.05
    simulations: int = 1_000
    seed: int = 0

    def power(self, tasks: int, trials: int, drop: float) -> float:
        """Probability that a drop is significant.

        Args:
            tasks: tasks a side, ≥ 2.
            trials: trials a task, ≥ 1.
            drop: fall of the mean, 0 ≤ drop ≤ mean.
        """
        rng = np.random.default_rng([self.seed, tasks, trials])
        kept = 1 - drop / self.spread.mean if self.spread.mean > 0 else 1.0
        significant = 0
        block = max(1, 2_000_000 // tasks)
        for start in range(0, self.simulations, block):
            shape = (min(block, self.simulations - start), tasks)
            before = self.spread.draw(shape, rng)
            after = before if self.design == "paired" else self.spread.draw(shape, rng)
            c0, c1 = rng.binomial(trials, before), rng.binomial(trials, after * max(kept, 0.0))
            significant += int(np.sum(self._falls(c0, c1, trials)))
        return significant / self.simulations

    def _falls(self, before: Ints, after: Ints, trials: int) -> NDArray[np.bool_]:
        """Whether each simulated comparison shows a significant drop."""
        from scipy.special import bdtr, stdtr

        tasks = before.shape[1]
        if self.design == "paired" and trials == 1:
            lost, gained = (before > after).sum(axis=1), (after > before).sum(axis=1)
            both = lost + gained
            tail = np.asarray(bdtr(gained, np.maximum(both, 1), 0.5), dtype=np.float64)
            return np.asarray((tail <= self.alpha / 2) & (both > 0))
        if self.design == "paired":
            gap = (after - before) / trials
            error = gap.std(axis=1, ddof=1) / np.sqrt(tasks)
            freedom: Floats | float = tasks - 1.0
            mean = gap.mean(axis=1)
        else:
            v0, v1 = ((x / trials).var(axis=1, ddof=1) / tasks for x in (before, after))
            error = np.sqrt(v0 + v1)
            freedom = (v0 + v1) ** 2 / np.maximum((v0**2 + v1**2) / (tasks - 1), 1e-300)
            mean = after.mean(axis=1) / trials - before.mean(axis=1) / trials
        with np.errstate(invalid="ignore", divide="ignore"):
            p = stdtr(freedom, mean / error)
        return np.asarray(np.where(error > 0, p <= self.alpha / 2, mean < 0), dtype=np.bool_)

    def smallest_visible_drop(self, tasks: int, trials: int, power: float = 0.8, step: float = 0.002) -> float | None:
        """The smallest drop seen with the wanted power, to within `step`; None where even a fall to zero is not."""
        low, high = 0.0, self.spread.mean
        if self.power(tasks, trials, high) < power:
            return None
        while high - low > step:
            middle = (low + high) / 2
            low, high = (low, middle) if self.power(tasks, trials, middle) >= power else (middle, high)
        return high

    def tasks_needed(self, trials: int, drop: float, power: float = 0.8) -> int | None:
        """Tasks at which the drop is seen with the wanted power; None beyond 100,000."""
        return _smallest(lambda tasks: self.power(tasks, trials, drop) >= power, 2, MOST_TASKS)

    def trials_needed(self, tasks: int, drop: float, power: float = 0.8) -> int | None:
        """Trials a task at which the drop is seen with the wanted power; None where 256 are not enough."""
        return _smallest(lambda trials: self.power(tasks, trials, drop) >= power, 1, MOST_TRIALS)


def _smallest(enough: Callable[[int], bool], first: int, limit: int) -> int | None:
    """The smallest number that is enough, by doubling and then halving, to within 2 %."""
    high = first
    while not enough(high):
        if high >= limit:
            return None
        high = min(high * 2, limit)
    low = high // 2
    while high - low > max(1, high // 50):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high

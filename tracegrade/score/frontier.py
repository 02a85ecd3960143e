"""Cost against success over several agents: who is worth its price, and what retries, mixtures and routing would buy.

All agents are compared on the tasks that all of them have. An agent whose cost is missing or zero is listed with the
reason and not placed: it would dominate everyone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from tracegrade.errors import NothingToGrade
from tracegrade.model.estimate import Estimate
from tracegrade.model.frontier import ORIGIN, BudgetMatch, FrontierAgent, FrontierReport, Mixture, Retry, Router
from tracegrade.model.report import Warned
from tracegrade.model.scored import ScoredTrial
from tracegrade.score import beta_binomial
from tracegrade.score.estimating import Settings, estimate, pass_curves, ratio
from tracegrade.score.intervals import cluster_sums, resample
from tracegrade.score.passk import Floats, Ints, mean_over_tasks, pass_at_k
from tracegrade.score.trials import Settled, count, settle

MOST_TRIES = 16
"""Retries shown for an agent."""


def pareto_front(cost: ArrayLike, rate: ArrayLike) -> list[int]:
    """Indices of the points that none dominates, from the cheapest.

    A point dominates another when it costs no more and solves no less, and one of the two strictly.

    Args:
        cost, rate: shape (agents,).

    >>> pareto_front([1, 2, 3], [0.5, 0.4, 0.9])
    [0, 2]
    """
    costs, rates = np.asarray(cost, dtype=np.float64), np.asarray(rate, dtype=np.float64)
    front = [i for i in range(costs.size) if not dominators(costs, rates, i)]
    return sorted(front, key=lambda i: (costs[i], rates[i], i))


def dominators(cost: ArrayLike, rate: ArrayLike, i: int) -> list[int]:
    """Indices of the points that dominate point i."""
    costs, rates = np.asarray(cost, dtype=np.float64), np.asarray(rate, dtype=np.float64)
    better = (costs <= costs[i]) & (rates >= rates[i]) & ((costs < costs[i]) | (rates > rates[i]))
    return np.flatnonzero(better).tolist()


def upper_hull(cost: ArrayLike, rate: ArrayLike) -> list[int]:
    """Corners of the upper convex hull of the points and the origin, up to the highest rate; −1 is the origin.

    Every point on it is reached by mixing two neighbours; points in the middle of an edge are no corners.

    Args:
        cost: shape (agents,), > 0.
        rate: shape (agents,).

    Source: Kapoor et al., AI Agents That Matter, arXiv:2407.01502, section 2 and appendix; Andrew 1979 (chain).

    >>> upper_hull([1.0, 2.0, 4.0], [0.5, 0.6, 0.9])
    [-1, 0, 2]
    """
    costs, rates = np.asarray(cost, dtype=np.float64), np.asarray(rate, dtype=np.float64)
    points = [(0.0, 0.0, -1)] + [(float(costs[i]), float(rates[i]), i) for i in range(costs.size)]
    points.sort(key=lambda p: (p[0], -p[1], p[2]))
    chain: list[tuple[float, float, int]] = []
    for x, y, i in points:
        if chain and y <= chain[-1][1]:
            continue
        while len(chain) >= 2:
            (x0, y0, _), (x1, y1, _) = chain[-2], chain[-1]
            if (x1 - x0) * (y - y0) - (x - x0) * (y1 - y0) < -1e-15:
                break
            chain.pop()
        chain.append((x, y, i))
    return [i for _, _, i in chain]


def expected_tries(pass_at: ArrayLike) -> Floats:
    """Expected tries when trying up to k times until a verifier accepts: Σ_{i<k} (1 − pass@i), pass@0 = 0.

    Args:
        pass_at: pass@1 … pass@k, shape (k,).

    Returns:
        For 1 … k, shape (k,).

    >>> expected_tries([0.5, 0.75])
    array([1. , 1.5])
    """
    at = np.concatenate([[0.0], np.asarray(pass_at, dtype=np.float64)[:-1]])
    return np.asarray(np.cumsum(1.0 - at), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class _Agent:
    """One agent on the shared tasks; arrays have shape (tasks,)."""

    name: str
    n: Ints
    c: Ints
    cost: Floats
    usable: bool
    reason: str | None


def _unusable(settled: Settled) -> str | None:
    """Why the costs of an agent cannot be used, or None."""
    costs = [trial.cost_usd for trial in settled.attempts]
    missing, zeros = sum(cost is None for cost in costs), sum(cost == 0 for cost in costs)
    if missing == len(costs):
        return "no cost is recorded"
    if missing + zeros == len(costs):
        return "no positive cost is recorded: not the same as free"
    parts = [f"{missing} of {len(costs)} costs are missing"] if missing else []
    parts += [f"{zeros} of {len(costs)} costs are zero"] if zeros else []
    return " and ".join(parts) or None


def _agent(name: str, settled: Settled, tasks: Sequence[str]) -> _Agent:
    counts = count(settled)
    place = {task: i for i, task in enumerate(tasks)}
    n, c = np.zeros(len(tasks), dtype=np.int64), np.zeros(len(tasks), dtype=np.int64)
    for task, trials, passes in zip(counts.task_ids, counts.n, counts.c, strict=True):
        if task in place:
            n[place[task]], c[place[task]] = trials, passes
    spent, tries = np.zeros(len(tasks)), np.zeros(len(tasks))
    for trial in settled.attempts:
        if trial.task_id in place and trial.cost_usd is not None:
            spent[place[trial.task_id]] += trial.cost_usd
            tries[place[trial.task_id]] += 1
    reason = _unusable(settled)
    return _Agent(name, n, c, spent / np.maximum(n, 1), reason is None, reason)


def frontier(
    agents: Mapping[str, Sequence[ScoredTrial]],
    settings: Settings | None = None,
    *,
    verifier: bool = False,
    inputs: Sequence[str] = (),
) -> FrontierReport:
    """Place agents by cost a task and success rate.

    Args:
        agents: name → recorded attempts.
        settings: level, seed and method of the intervals.
        verifier: a check exists that tells a passing try from a failing one, so that retries are honest.
        inputs: names of the files, for the report.

    Raises:
        RuleFileError: unequal rows with one key.
        NothingToGrade: no task is scored for every agent.
    """
    settings = settings or Settings()
    settled = {name: settle(rows) for name, rows in sorted(agents.items())}
    tasks = _shared(settled)
    if not tasks:
        raise NothingToGrade("no task has a scored trial of every agent: they cannot be compared")
    table = [_agent(name, done, tasks) for name, done in settled.items()]
    placed = [agent for agent in table if agent.usable]
    cost = np.array([agent.cost.mean() for agent in placed])
    rate = np.array([(agent.c / agent.n).mean() for agent in placed])
    front, hull = pareto_front(cost, rate), upper_hull(cost, rate) if placed else []
    shares = _front_shares(placed, settings)
    names = [agent.name for agent in placed]
    rows = []
    for agent in table:
        i = names.index(agent.name) if agent.usable else -1
        retries = _retries(agent) if verifier and agent.usable else ()
        rows.append(
            FrontierAgent(
                name=agent.name,
                rate=_rate(agent, settings),
                cost=_cost(agent, settings),
                usable=agent.usable,
                reason=agent.reason,
                on_front=i in front and agent.usable,
                on_hull=i in hull and agent.usable,
                front_share=float(shares[i]) if agent.usable else None,
                dominated_by=tuple(names[j] for j in dominators(cost, rate, i)) if agent.usable else (),
                retries=retries,
                matches=tuple(_matches(agent, retries, placed)) if agent.usable else (),
            )
        )
    return FrontierReport(
        inputs=tuple(inputs),
        seed=settings.seed,
        n_tasks_shared=len(tasks),
        agents=tuple(rows),
        front=tuple(names[i] for i in front),
        hull=tuple(ORIGIN if i < 0 else names[i] for i in hull),
        mixtures=tuple(_mixtures(hull, names, cost, rate)),
        router=_router(placed),
        warnings=tuple(_warnings(settled, tasks, table, verifier)),
    )


def _shared(settled: Mapping[str, Settled]) -> list[str]:
    """Tasks with a scored trial of every agent, in the order of the first."""
    scored = [
        {t.task_id: None for t in done.trials if t.passed is not None and not t.crashed} for done in settled.values()
    ]
    return [task for task in scored[0] if all(task in other for other in scored)] if scored else []


def _rate(agent: _Agent, settings: Settings) -> Estimate:
    value = pass_curves(agent.n, agent.c, None, [1], settings).hat[1]
    return estimate(value, settings, n_tasks=len(agent.n), n_trials=int(agent.n.sum()))


def _cost(agent: _Agent, settings: Settings) -> Estimate:
    if not agent.usable:
        return Estimate(None, confidence=settings.confidence, n_tasks=len(agent.n), note=agent.reason)
    value = ratio(agent.cost, np.ones(len(agent.n)), None, settings)
    return estimate(value, settings, n_tasks=len(agent.n), n_trials=int(agent.n.sum()))


def _front_shares(placed: Sequence[_Agent], settings: Settings) -> Floats:
    """How often each agent is on the front when the shared tasks are drawn again, the same draw for all."""
    if not placed:
        return np.empty(0)
    values = np.column_stack([agent.cost for agent in placed] + [agent.c / agent.n for agent in placed])
    totals, sizes, counts = cluster_sums(values, None)
    draws = min(settings.resamples, 2_000)
    drawn = resample(totals, sizes, counts=counts, resamples=draws, seed=settings.seed).draws
    size = len(placed)
    cost, rate = drawn[:, :size], drawn[:, size:]
    on = np.zeros(size)
    for i in range(size):
        better = (cost <= cost[:, [i]]) & (rate >= rate[:, [i]])
        strictly = (cost < cost[:, [i]]) | (rate > rate[:, [i]])
        on[i] = 1.0 - np.mean((better & strictly).any(axis=1))
    return on


def _retries(agent: _Agent) -> tuple[Retry, ...]:
    """Rate, tries and cost with a verifier, for 1 … tries; the fitted curve beyond the fewest trials of a task."""
    fitted = beta_binomial.fit(agent.n, agent.c)
    least = int(agent.n.min())
    at: list[float] = []
    for k in range(1, MOST_TRIES + 1):
        value, _ = (
            mean_over_tasks(pass_at_k(agent.n, agent.c, k)) if k <= least else beta_binomial.curve(fitted, k)[::-1]
        )
        if value is None:
            break
        # The fitted curve may start below the last value that was measured; more tries never solve less.
        at.append(max(float(value), at[-1] if at else 0.0))
    tries = expected_tries(at)
    each = float(agent.cost.mean())
    return tuple(
        Retry(tries=k, rate=rate, expected_tries=float(t), cost_usd=float(t) * each, extrapolated=k > least)
        for k, (rate, t) in enumerate(zip(at, tries, strict=True), start=1)
    )


def _matches(agent: _Agent, retries: Sequence[Retry], placed: Sequence[_Agent]) -> list[BudgetMatch]:
    """For each dearer agent, the most retries that its cost pays for."""
    results = []
    for other in placed:
        budget = float(other.cost.mean())
        affordable = [retry for retry in retries if retry.cost_usd <= budget]
        if other is agent or not affordable or affordable[-1].tries < 2:
            continue
        best = affordable[-1]
        results.append(
            BudgetMatch(
                dearer=other.name,
                tries=best.tries,
                rate=best.rate,
                cost_usd=best.cost_usd,
                dearer_rate=float((other.c / other.n).mean()),
                dearer_cost_usd=budget,
                extrapolated=best.extrapolated,
            )
        )
    return sorted(results, key=lambda match: match.dearer_cost_usd)


def _mixtures(hull: Sequence[int], names: Sequence[str], cost: Floats, rate: Floats) -> list[Mixture]:
    """The middle of each edge of the hull."""
    results = []
    for left, right in pairwise(hull):
        x0, y0 = (0.0, 0.0) if left < 0 else (float(cost[left]), float(rate[left]))
        x1, y1 = float(cost[right]), float(rate[right])
        results.append(
            Mixture(
                cheaper=ORIGIN if left < 0 else names[left],
                dearer=names[right],
                share_dearer=0.5,
                rate=(y0 + y1) / 2,
                cost_usd=(x0 + x1) / 2,
            )
        )
    return results


def _router(placed: Sequence[_Agent]) -> Router | None:
    if not placed:
        return None
    rates = np.stack([agent.c / agent.n for agent in placed])
    costs = np.stack([agent.cost for agent in placed])
    best = rates.max(axis=0)
    # Where nobody solves the task, the cheapest agent fails on it.
    price = np.where(rates >= best, costs, np.inf).min(axis=0)
    return Router(rate=float(best.mean()), cost_usd=float(price.mean()))


def _warnings(
    settled: Mapping[str, Settled], tasks: Sequence[str], table: Sequence[_Agent], verifier: bool
) -> list[Warned]:
    kept = set(tasks)
    left = {name: len({t.task_id for t in done.trials} - kept) for name, done in settled.items()}
    left = {name: number for name, number in left.items() if number}
    warnings = []
    if left:
        said = ", ".join(f"{name} {number}" for name, number in left.items())
        warnings.append(
            Warned(
                code="tasks_left_out",
                message=f"Only tasks scored for every agent are compared; left out: {said}.",
                context={"left_out": dict(left)},
            )
        )
    warnings += [
        Warned(code="unusable_cost", message=f"{a.name} is not placed: {a.reason}.", context={"agent": a.name})
        for a in table
        if a.reason
    ]
    if not verifier:
        warnings.append(
            Warned(
                code="no_verifier",
                message="Retries are not priced: say --verifier if a check tells a passing try from a failing one.",
            )
        )
    return warnings

"""The use cases of `frontier`, `horizon` and `power`: read outcomes, compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tracegrade.app.outcome_table import Table, as_text, read_table
from tracegrade.app.outcomes import Reading, outcomes_of, read_outcomes, trials_of_table
from tracegrade.errors import NothingToGrade, UsageError, did_you_mean
from tracegrade.model.frontier import FrontierReport
from tracegrade.model.horizon import HorizonReport
from tracegrade.model.power import Power, PowerReport
from tracegrade.model.scored import ScoredTrial
from tracegrade.score import beta_binomial
from tracegrade.score.estimating import Settings
from tracegrade.score.frontier import frontier
from tracegrade.score.horizon import HorizonOptions, horizon
from tracegrade.score.power import Design, Spread, Study, spread_of_fit
from tracegrade.score.trials import count, settle


def agents_of(inputs: Sequence[str], reading: Reading, agent: str | None) -> dict[str, list[ScoredTrial]]:
    """The trials of each agent: one table with a column of agents, or one file (`NAME=FILE`) each.

    Args:
        inputs: files, each optionally as NAME=FILE.
        reading: how to read tables.
        agent: the column that names the agent.

    Raises:
        UsageError: the column is not there, or two files have one name.
    """
    agents: dict[str, list[ScoredTrial]] = {}
    for text in inputs:
        name, path = _named(text)
        if agent is None:
            rows, _ = read_outcomes(path, reading)
            if name in agents:
                raise UsageError(f"two inputs are named `{name}`: give them as NAME=FILE")
            agents[name] = rows
            continue
        table = read_table(path)
        if agent not in table.columns:
            raise UsageError(
                f"--agent: {path} has no column `{agent}`.{did_you_mean(agent, table.columns)} "
                f"Columns: {', '.join(table.columns)}."
            )
        for value in dict.fromkeys(as_text(row.get(agent)) for _, row in table.rows):
            part = Table(path, tuple((w, r) for w, r in table.rows if as_text(r.get(agent)) == value), table.columns)
            if all(_matches(row, reading) is False for _, row in part.rows):
                continue
            agents.setdefault(value, []).extend(trials_of_table(part, reading))
    return agents


def _matches(row: dict[str, object], reading: Reading) -> bool:
    return all(as_text(row.get(name)) == value for name, value in reading.filters.items())


def _named(text: str) -> tuple[str, str]:
    """NAME=FILE apart; a file without a name is its own."""
    name, equals, path = text.partition("=")
    return (name, path) if equals and name and path else (text, text)


def frontier_files(
    inputs: Sequence[str], reading: Reading, agent: str | None, settings: Settings, *, verifier: bool
) -> FrontierReport:
    """Place the agents of some files by cost and rate.

    Raises:
        InputError, RuleFileError, UsageError: something cannot be read.
        NothingToGrade: no task is shared.
    """
    agents = agents_of(inputs, reading, agent)
    return frontier(agents, settings, verifier=verifier, inputs=inputs)


def horizon_files(inputs: Sequence[str], reading: Reading, agent: str | None, options: HorizonOptions) -> HorizonReport:
    """The time horizon of the agents of some files.

    Raises:
        InputError, RuleFileError, UsageError: something cannot be read.
        NothingToGrade: no scored trial has minutes.
    """
    agents = agents_of(inputs, reading, agent)
    found = tuple(horizon(rows, options, name) for name, rows in agents.items() if rows)
    if not found:
        raise NothingToGrade("no trials: there is nothing to fit")
    return HorizonReport(
        inputs=tuple(inputs),
        seed=options.seed,
        weights=options.weights,
        regularization=options.regularization,
        preset="metr" if options.metr else None,
        horizons=found,
    )


@dataclass(frozen=True, slots=True)
class PowerQuestion:
    """What to plan for.

    Attributes:
        tasks, trials: of the comparison; by default those of the inputs.
        drop: fall of the mean rate to be seen, in (0, 1).
        power: wanted probability of seeing it.
        alpha: two-sided level.
        spread: by default fitted on the inputs.
        designs: which comparisons.
        simulations, seed: of the simulation.
    """

    tasks: int | None = None
    trials: int | None = None
    drop: float = 0.05
    power: float = 0.8
    alpha: float = 0.05
    spread: Spread | None = None
    designs: tuple[Design, ...] = ("paired", "unpaired")
    simulations: int = 1_000
    seed: int = 0


def plan_power(inputs: Sequence[str], reading: Reading, question: PowerQuestion) -> PowerReport:
    """Tasks and trials that a drop needs, and the drop that tasks and trials can see.

    Raises:
        InputError, RuleFileError, UsageError: something cannot be read, or neither inputs nor a spread are given.
        NothingToGrade: no trial of the inputs is scored.
    """
    spread, source = question.spread, "as given"
    if inputs:
        rows, _ = outcomes_of(inputs, reading)
        counts = count(settle(rows))
        keep = counts.n > 0
        if not keep.any():
            raise NothingToGrade("no trial of the inputs is scored: there is no spread to fit")
        question = replace(
            question,
            tasks=question.tasks or int(keep.sum()),
            trials=question.trials or max(1, round(float(counts.n[keep].mean()))),
        )
        if spread is None:
            fitted = beta_binomial.fit(counts.n, counts.c)
            spread = spread_of_fit(fitted)
            source = f"fitted on {int(keep.sum())} tasks" + (f" ({fitted.boundary})" if fitted.boundary else "")
    if spread is None:
        raise UsageError("give outcomes whose spread is fitted, or --rate with --a and --b")
    if not 0 < spread.mean <= 1:
        raise UsageError("the baseline never passes: there is no drop to see")
    if question.drop > spread.mean:
        raise UsageError(f"a drop of {question.drop:g} is more than the baseline rate of {spread.mean:.3g}")
    return PowerReport(
        inputs=tuple(inputs),
        seed=question.seed,
        simulations=question.simulations,
        alpha=question.alpha,
        target_power=question.power,
        drop=question.drop,
        mean=spread.mean,
        a=spread.a,
        b=spread.b,
        spread=source,
        designs=tuple(_design(design, spread, question) for design in question.designs),
    )


def _design(design: Design, spread: Spread, question: PowerQuestion) -> Power:
    study = Study(spread, design, question.alpha, question.simulations, question.seed)
    tasks, trials = question.tasks or 50, question.trials or 1
    return Power(
        design=design,
        tasks=tasks,
        trials=trials,
        power=study.power(tasks, trials, question.drop),
        smallest_visible_drop=study.smallest_visible_drop(tasks, trials, question.power),
        tasks_needed=study.tasks_needed(trials, question.drop, question.power),
        trials_needed=study.trials_needed(tasks, question.drop, question.power),
        false_alarms=study.power(tasks, trials, 0.0),
    )

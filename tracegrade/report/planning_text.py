"""Frontier, horizon and power as plain text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tracegrade.model.frontier import FrontierAgent, FrontierReport
from tracegrade.model.horizon import Horizon, HorizonReport
from tracegrade.model.power import Power, PowerReport
from tracegrade.report.escape import printable
from tracegrade.report.score_text import INDENT, amount, amount_interval, counted, interval, percent, wrapped

SHOWN_AGENTS = 20
NO_FIT = {
    "no_successes": "no horizon: no success",
    "no_failures": "no horizon: no failure",
    "slope_not_negative": "no horizon: success does not fall with length",
}


def frontier_text(report: FrontierReport) -> str:
    """Agents from the cheapest, the front, the hull, and what retries and routing would buy."""
    return wrapped(_frontier(report))


def _frontier(report: FrontierReport) -> Iterator[str]:
    yield f"{counted(len(report.agents), 'agent')} on {counted(report.n_tasks_shared, 'shared task')}"
    yield ""
    width = min(30, max((len(printable(a.name)) for a in report.agents), default=5))
    yield f"   #  {'agent':<{width}}  {'rate':<22}{'$ per trial':<26}on front  place"
    order = sorted(report.agents, key=lambda a: (not a.usable, a.cost.value or 0.0, a.name))
    number = {agent.name: i for i, agent in enumerate(order, start=1)}
    for agent in order[:SHOWN_AGENTS]:
        share = "" if agent.front_share is None else f"{100 * agent.front_share:.0f} %"
        yield (
            f"{number[agent.name]:>4}  {short(agent.name, width):<{width}}  {interval(agent.rate):<22}"
            f"{amount_interval(agent.cost, '$', 3):<26}{share:<10}{_place(agent, number)}"
        )
    if len(order) > SHOWN_AGENTS:
        yield f"{INDENT}and {len(order) - SHOWN_AGENTS} more (all of them in the JSON)"
    yield ""
    yield "front    " + (" → ".join(printable(n) for n in report.front) or "empty")
    yield "hull     " + " → ".join(printable(n) for n in report.hull)
    if report.router is not None:
        yield (
            f"router   at most {percent(report.router.rate)} at {amount(report.router.cost_usd, '$')} a task, if the "
            "right agent were known for each task"
        )
    for agent in order:
        for match in agent.matches[-1:]:
            yield (
                f"retries  {printable(agent.name)} with a verifier, up to {match.tries} tries: {percent(match.rate)} "
                f"at {amount(match.cost_usd, '$')}{' (extrapolated)' if match.extrapolated else ''}, against "
                f"{printable(match.dearer)} {percent(match.dearer_rate)} at {amount(match.dearer_cost_usd, '$')}"
            )
    for warning in report.warnings:
        yield f"! {printable(warning.message)}"


def short(name: str, width: int) -> str:
    """A name made printable and cut to a width.

    >>> short("a long name", 7)
    'a long…'
    """
    text = printable(name)
    return text if len(text) <= width else text[: width - 1] + "…"


def _place(agent: FrontierAgent, number: Mapping[str, int]) -> str:
    if not agent.usable:
        return "not placed"
    if agent.on_hull:
        return "hull"
    if agent.on_front:
        return "front"
    above = sorted(number[name] for name in agent.dominated_by)
    return f"below #{above[0]}{f' +{len(above) - 1}' if len(above) > 1 else ''}"


def minutes(value: float | None) -> str:
    """A duration of a person in its natural unit.

    >>> minutes(0.5), minutes(90.0), minutes(None)
    ('30 s', '1.5 h', '–')
    """
    if value is None:
        return "–"
    if value < 1:
        return f"{60 * value:.3g} s"
    return f"{value:.3g} min" if value < 60 else f"{value / 60:.3g} h"


def horizon_text(report: HorizonReport) -> str:
    """The horizons of each agent."""
    lines = [f"time horizon: weights {report.weights}, penalty {report.regularization:g}, seed {report.seed}", ""]
    for horizon in report.horizons:
        lines += _horizon(horizon)
    lines += [f"! {printable(w.message)}" for w in report.warnings]
    return wrapped(lines)


def _horizon(horizon: Horizon) -> Iterator[str]:
    families = "1 family" if horizon.n_families == 1 else f"{horizon.n_families} families"
    yield (
        f"{printable(horizon.agent or 'agent')}: {counted(horizon.n_runs, 'run')} of "
        f"{counted(horizon.n_tasks, 'task')} in {families}, "
        f"{minutes(horizon.min_minutes)} to {minutes(horizon.max_minutes)}"
    )
    if horizon.reason is not None:
        yield f"{INDENT}{NO_FIT[horizon.reason]}" + (
            "; reported as 0, as METR does" if horizon.p50_minutes.value == 0 else ""
        )
        return
    for name, estimate in (("50 %", horizon.p50_minutes), ("80 %", horizon.p80_minutes)):
        ends = f"[{minutes(estimate.low)}, {minutes(estimate.high)}]"
        beyond = "  outside the range of tasks: extrapolated" if horizon.extrapolated[f"p{name[:2]}"] else ""
        yield f"{INDENT}{name}  {minutes(estimate.value)} {ends}{beyond}"


def power_text(report: PowerReport) -> str:
    """What each design can see."""
    spread = f"Beta({amount(report.a)}, {amount(report.b)})" if report.a is not None else "no spread between tasks"
    lines = [
        f"baseline rate {percent(report.mean)}, {spread} ({report.spread}); two-sided level {report.alpha:g}, "
        f"{report.simulations} simulations, seed {report.seed}",
        "",
    ]
    for design in report.designs:
        lines += _power(design, report)
    return wrapped(lines)


def _power(design: Power, report: PowerReport) -> Iterator[str]:
    points = f"{100 * report.drop:g} points"
    target = f"{100 * report.target_power:g} %"
    smallest = design.smallest_visible_drop
    yield f"{design.design}, {counted(design.tasks, 'task')} × {counted(design.trials, 'trial')}"
    yield f"{INDENT}a drop of {points} is seen with probability {percent(design.power)}"
    yield (
        f"{INDENT}smallest drop seen with {target}: "
        f"{'none, not even to zero' if smallest is None else f'{100 * smallest:.1f} points'}"
    )
    needed = "more than 100,000" if design.tasks_needed is None else f"{design.tasks_needed}"
    yield f"{INDENT}to see {points}: {needed} tasks at {counted(design.trials, 'trial')} each"
    trials = "no number of trials is enough" if design.trials_needed is None else counted(design.trials_needed, "trial")
    yield f"{INDENT}or, with {counted(design.tasks, 'task')}: {trials}" + (
        " each" if design.trials_needed is not None else " (add tasks)"
    )
    yield f"{INDENT}false alarms without a change: {percent(design.false_alarms)}"

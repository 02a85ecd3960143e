"""What `replay` found, as lines for a person: changed verdicts, calls executed again, a new agent's runs, drift."""

from __future__ import annotations

from collections import Counter

from tracegrade.model.replay import (
    AgentReport,
    AgentTrial,
    ContractReport,
    GradeReport,
    ToolsReport,
    ToolsTrial,
    VerdictChange,
)
from tracegrade.report.phrase import json_text, plural, short, trial_text
from tracegrade.report.screen import Screen, Styled

_SHOWN = 12
_WIDTH = 160
_CAUSES = {
    "trajectory_added": "the trajectory is new",
    "trajectory_removed": "the trajectory is gone",
    "rule_added": "the rule is new",
    "rule_removed": "the rule is gone",
    "rule_changed": "the rule changed",
    "tasks_changed": "the tasks changed",
    "reading_changed": "the trajectory reads differently (spans, grouping, dialect)",
    "dialect_changed": "a dialect changed",
    "tracegrade_changed": "another version of tracegrade",
    "not_explained": "no change of rules, tasks, spans or program explains it",
}


def grade_text(report: GradeReport, *, style: bool = False, width: int = 100) -> str:
    """The comparison of two results as text."""
    screen = Screen(style=style, width=width)
    screen.line(
        Styled("compared ", "bold"),
        f"{plural(report.compared, 'verdict')} of {plural(report.trajectories, 'trajectory')} with {report.against}",
    )
    for label, rules in (
        ("new", report.rules_added),
        ("gone", report.rules_removed),
        ("changed", report.rules_changed),
    ):
        if rules:
            screen.line(f"rules {label}: {', '.join(rules)}")
    if not report.changed:
        screen.line(Styled("no verdict is another one", "good"))
    worse = sum(c.worse for c in report.changed)
    if report.changed:
        screen.line(
            Styled("changed: ", "bold"), plural(len(report.changed), "verdict"), f", {worse} of them for the worse"
        )
        for cause, count in Counter(c.cause for c in report.changed).most_common():
            screen.line(f"  {count:>6}  {_CAUSES[cause]}")
    for change in sorted(report.changed, key=lambda c: not c.worse)[:_SHOWN]:
        _change(screen, change)
    _more(screen, len(report.changed), _SHOWN)
    for error in report.errors:
        screen.prose(Styled("cannot be read:", "bad"), error)
    return screen.text()


def _change(screen: Screen, change: VerdictChange) -> None:
    name = trial_text(change.task_id, change.trial, change.trajectory_id)
    verdicts = f"{change.before or 'none'} → {change.after or 'none'}"
    screen.line("  ", Styled(change.what, "bold"), f"  {verdicts}  {name}  ({_CAUSES[change.cause]})")
    if change.message:
        screen.prose("     ", short(change.message, _WIDTH))


def _more(screen: Screen, total: int, shown: int) -> None:
    if total > shown:
        screen.line(f"  and {total - shown} more (all of them with --format json)")


def tools_text(report: ToolsReport, *, style: bool = False, width: int = 100) -> str:
    """Calls that were executed again, as text."""
    screen = Screen(style=style, width=width)
    ran = [t for t in report.trials if t.status == "replayed"]
    calls = [c for t in ran for c in t.calls]
    verdicts = Counter[str](c.verdict for c in calls)
    screen.line(
        Styled("replayed ", "bold"), f"{len(ran)} of {plural(len(report.trials), 'trajectory')} in {report.environment}"
    )
    if calls:
        screen.line(f"results of {plural(len(calls), 'call')}: " + _counts(verdicts))
    compared = [t for t in ran if t.final_equal is not None]
    if compared:
        same = sum(bool(t.final_equal) for t in compared)
        screen.line(f"final states: {same} of {len(compared)} equal the recorded ones")
    noise = report.noise
    if noise.repeats > 1:
        screen.line(
            f"noise over {noise.repeats} repeats of {plural(noise.trials, 'trajectory')}: states of "
            f"{noise.unstable_states} differ, results of {noise.unstable_results} calls, outcomes of "
            f"{noise.unstable_outcomes}; the grader contradicts itself on {noise.grader_disagreements}"
        )
    if report.drifted:
        screen.line("tools whose results are others now: " + _counts(report.drifted))
    notable = [t for t in report.trials if _notable(t)]
    for trial in notable[:_SHOWN]:
        _tools_trial(screen, trial)
    _more(screen, len(notable), _SHOWN)
    reasons = Counter(t.message for t in report.trials if t.status == "not_replayable")
    for reason, count in reasons.most_common(5):
        screen.line(f"not replayable: {count}, {short(reason, _WIDTH)}")
    for warning in report.warnings:
        screen.prose(Styled("note:", "unsure"), warning)
    for error in report.errors:
        screen.prose(Styled("cannot be read:", "bad"), error)
    return screen.text()


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{n} {name}" for name, n in sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _notable(trial: ToolsTrial) -> bool:
    if trial.status != "replayed":
        return trial.status != "not_replayable"
    return trial.final_equal is False or trial.stable is False or any(c.verdict == "different" for c in trial.calls)


def _tools_trial(screen: Screen, trial: ToolsTrial) -> None:
    style = "bad" if trial.status != "replayed" or trial.final_equal is False else "unsure"
    screen.line("  ", Styled(trial_text(trial.task_id, trial.trial, trial.trajectory_id), style), f"  {trial.message}")
    for call in [c for c in trial.calls if c.verdict == "different"][:3]:
        screen.prose("     ", short(f"call {call.seq} {call.tool}: {call.message}", _WIDTH))
    for line in trial.differences[:3]:
        screen.prose("     ", short(f"final state {line}", _WIDTH))
    if trial.unstable:
        screen.prose("     ", short("not the same in every repeat: " + ", ".join(trial.unstable), _WIDTH))


def agent_text(report: AgentReport, *, style: bool = False, width: int = 100) -> str:
    """A new agent's runs, as text."""
    screen = Screen(style=style, width=width)
    statuses = Counter[str](t.status for t in report.trials)
    colour = {"pass": "good", "fail": "bad", "inconclusive": "unsure"}[report.verdict]
    screen.line(
        Styled(report.verdict, colour), f"  {report.agent} on {plural(len(report.trials), 'recorded trajectory')}"
    )
    screen.line(f"matching {report.matching}, seed {report.seed}; " + _counts(statuses))
    screen.line(f"verdicts recorded: {_counts(report.recorded_verdicts)}")
    screen.line(f"verdicts now:      {_counts(report.new_verdicts)}")
    if report.spans is not None:
        screen.line(f"spans of the new run: {report.spans}")
    for reason in report.reasons[:_SHOWN]:
        screen.prose(Styled("because", colour), short(reason, 3 * _WIDTH))
    _more(screen, len(report.reasons), _SHOWN)
    for warning in report.warnings:
        screen.prose(Styled("note:", "unsure"), warning)
    notable = [t for t in report.trials if t.status != "not_replayable" and _speaks(t)]
    for trial in notable[:_SHOWN]:
        _agent_trial(screen, trial)
    _more(screen, len(notable), _SHOWN)
    for error in report.errors:
        screen.prose(Styled("cannot be read:", "bad"), error)
    return screen.text()


def _speaks(trial: AgentTrial) -> bool:
    return bool(trial.divergence or trial.misses or trial.leftovers or trial.faults or trial.changed)


def _agent_trial(screen: Screen, trial: AgentTrial) -> None:
    screen.line("  ", Styled(trial_text(trial.task_id, trial.trial, trial.trajectory_id), "bold"), f"  {trial.status}")
    if trial.divergence is not None:
        found = trial.divergence
        text = f"first divergent step: recorded {found.recorded or 'nothing'}, now {found.replayed or 'nothing'}"
        screen.prose("     ", short(text, _WIDTH))
    for change in trial.changed[:3]:
        screen.prose("     ", short(f"{change.what}: {change.before} → {change.after}  {change.message or ''}", _WIDTH))
    for miss in trial.misses[:3]:
        nearest = f"; nearest {json_text(miss.nearest)}" if miss.nearest is not None else ""
        screen.prose("     ", short(f"{miss.what}: {json_text(miss.asked)}{nearest}", 2 * _WIDTH))
    if trial.leftovers:
        names = Counter[str]()
        for leftover in trial.leftovers:
            names[leftover.tool] += leftover.count
        screen.prose("     ", f"recorded and not asked for: {_counts(names)}")
    if trial.faults:
        screen.prose(
            "     ", "faults: " + ", ".join(f"{f.kind} at call {f.call} of {f.tool}" for f in trial.faults[:5])
        )


def contract_text(report: ContractReport, *, style: bool = False, width: int = 100) -> str:
    """Drift of the tools' contract, as text."""
    screen = Screen(style=style, width=width)
    screen.line(
        Styled("compared ", "bold"),
        f"{plural(report.calls, 'recorded call')} with {report.tools}; those of {report.checked} could be validated",
    )
    for change in sorted(report.changes, key=lambda c: not c.breaking)[: 2 * _SHOWN]:
        name = change.tool + (f".{change.parameter}" if change.parameter else "")
        screen.line("  ", Styled(change.kind.replace("_", " "), "bad" if change.breaking else "bold"), f"  {name}")
    _more(screen, len(report.changes), 2 * _SHOWN)
    for call in report.invalid[:_SHOWN]:
        screen.line(
            "  ", Styled(f"{call.what} refused", "bad"), f"  {call.tool}, call {call.seq} of {call.trajectory_id}"
        )
        screen.prose("     ", short(call.message, _WIDTH))
    _more(screen, len(report.invalid), _SHOWN)
    if not report.changes and not report.invalid:
        screen.line(Styled("nothing changed, and every call would be accepted", "good"))
    for error in report.errors:
        screen.prose(Styled("cannot be read:", "bad"), error)
    return screen.text()

"""The result of `check` on one screen: what was read, the verdict, the shortest counterexamples, what is not graded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tracegrade.model.report import CheckReport, Coverage, InputReport, NameCount, Notable, Share
from tracegrade.report.counterexample import write_highlight
from tracegrade.report.highlights import Highlight, highlights
from tracegrade.report.outcome_lines import outcome_lines
from tracegrade.report.phrase import error_text, listed, plural, short, trial_text, usage_text
from tracegrade.report.screen import VERDICT_STYLE, Screen, Styled

MAX_INPUTS: Final = 4
MAX_HIGHLIGHTS: Final = 6
MAX_WARNINGS: Final = 6
MAX_NOTABLE: Final = 3
MAX_NAMES: Final = 8
NAME_WIDTH: Final = 60
TEXT_WIDTH: Final = 400
FIRST_ERROR_WIDTH: Final = 900
NEXT_ERROR_WIDTH: Final = 90
_OUTCOMES: Final = ("pass", "fail", "unknown", "excluded", "not_applicable", "error")
_PATHS: Final = ("clean", "violating", "unknown", "not_judged")


def render(report: CheckReport, *, style: bool = False, width: int = 100) -> str:
    """The report as text for a terminal.

    Args:
        report: what `check` found.
        style: use ANSI colours.
        width: columns to wrap at.
    """
    screen = Screen(style=style, width=width)
    _verdict(screen, report)
    _inputs(screen, report)
    _contents(screen, report)
    _rules(screen, report)
    _outcomes(screen, report)
    _evidence(screen, highlights(report))
    _ungraded(screen, report)
    _warnings(screen, report)
    return screen.text()


def _verdict(screen: Screen, report: CheckReport) -> None:
    summary = report.summary
    word, mark = _word(report)
    verdicts = [f"{summary.verdicts[v]:,} {v.replace('_', ' ')}" for v in VERDICT_STYLE if v in summary.verdicts]
    tail = f": {', '.join(verdicts)}" if verdicts else ""
    screen.line(Styled(word, mark), f"  {plural(summary.trajectories, 'trajectory')}{tail}")
    for reason in summary.reasons:
        screen.prose("", reason)


def _word(report: CheckReport) -> tuple[str, str]:
    """The word for the exit code: it alone says whether the run is green."""
    summary = report.summary
    if summary.exit_code == 0 and summary.verdict in ("fail", "unknown", "not_applicable"):
        return f"EXIT 0 ({summary.verdict.upper().replace('_', ' ')})", VERDICT_STYLE[summary.verdict]
    return {0: ("PASS", "good"), 1: ("FAIL", "bad"), 2: ("ERROR", "bad")}.get(
        summary.exit_code, ("NOTHING CONCLUDED", "unsure")
    )


def _inputs(screen: Screen, report: CheckReport) -> None:
    screen.blank()
    unreadable = [i for i in report.inputs if i.error is not None]
    for place, entry in enumerate(unreadable[:MAX_INPUTS]):
        why = short(error_text(entry), FIRST_ERROR_WIDTH if place == 0 else NEXT_ERROR_WIDTH)
        screen.prose(Styled("Unreadable", "bad"), f"{entry.path}: {why}", indent=0)
    _left_out(screen, len(unreadable) - MAX_INPUTS, "more unreadable input", indent=10)
    read = sorted((i for i in report.inputs if i.error is None), key=lambda i: not i.skipped)
    for entry in read[:MAX_INPUTS]:
        _input(screen, entry)
    if len(read) > MAX_INPUTS:
        rest = read[MAX_INPUTS:]
        screen.line(f"          and {plural(len(rest), 'more file')}: {sum(i.spans_read for i in rest):,} spans")


def _input(screen: Screen, entry: InputReport) -> None:
    notes = [f"{entry.spans_read:,} spans"]
    if entry.log_records:
        notes.append(f"{entry.log_records:,} log records")
    if entry.duplicates_dropped:
        notes.append(f"{entry.duplicates_dropped:,} duplicates dropped")
    notes += [f"{n:,} {name} skipped (not graded)" for name, n in sorted(entry.signals.items())]
    screen.prose("Read      ", f"{entry.path} ({entry.format or 'unknown format'}): {', '.join(notes)}", indent=0)
    for skipped in entry.skipped[:MAX_NOTABLE]:
        times = f" ×{skipped.count:,}" if skipped.count > 1 else ""
        where = f"{skipped.where}, span {skipped.id}" if skipped.id else skipped.where
        screen.prose(Styled("skipped", "yellow"), f"{where}: {short(skipped.reason, TEXT_WIDTH)}{times}", indent=10)
    _left_out(screen, len(entry.skipped) - MAX_NOTABLE, "more reason for skipping", indent=10)


def _contents(screen: Screen, report: CheckReport) -> None:
    view = report.overview
    n = report.summary.trajectories
    found = plural(n, "trajectory") + (f", {view.complete:,} complete" if n else "")
    steps = ", ".join(plural(c, kind.replace("_", " ")) for kind, c in sorted(view.steps.items()))
    screen.prose("Found     ", f"{found}; steps: {steps or 'none'}", indent=0)
    for label, count in (("set-up only", view.set_up_traces), ("without GenAI spans", view.other_traces)):
        if count:
            screen.line(f"          {plural(count, 'trace')} {label}: listed, not graded")
    _names(screen, "Services  ", _counted(view.services))
    _names(screen, "Agents    ", _counted(view.agents))
    _names(screen, "Tools     ", [_tool(u.name, u.calls, u.errors, u.unfinished) for u in view.tools])
    _names(screen, "Models    ", _counted(view.models))
    if n:
        screen.prose("Usage     ", usage_text(view.usage), indent=0)
    _names(screen, "Dialects  ", [f"{d.name} ({plural(d.spans, 'span')})" for d in report.dialects])
    gaps = [f"{g.code} in {plural(g.trajectories, 'trajectory')} (×{g.count:,})" for g in view.gaps]
    if n:
        _names(screen, "Gaps      ", gaps or ["none"])


def _tool(name: str, calls: int, errors: int, unfinished: int) -> str:
    notes = [plural(errors, "error")] if errors else []
    notes += [f"{unfinished:,} unfinished"] if unfinished else []
    return f"{short(name, NAME_WIDTH)} ×{calls:,}" + (f" ({', '.join(notes)})" if notes else "")


def _counted(entries: Sequence[NameCount]) -> list[str]:
    return [f"{short(e.name, NAME_WIDTH)} ({e.count:,})" for e in entries]


def _names(screen: Screen, label: str, names: Sequence[str]) -> None:
    if names:
        screen.prose(label, listed(names, MAX_NAMES), indent=0)


def _rules(screen: Screen, report: CheckReport) -> None:
    tallies = report.summary.rules
    screen.blank()
    source = listed(report.rule_sources, MAX_NAMES) or "none given"
    screen.prose("Rules     ", f"{plural(len(report.rules) or len(tallies), 'rule')} from {source}", indent=0)
    passed = [t for t in tallies if t.passed and not (t.failed or t.unknown or t.error)]
    idle = [t for t in tallies if not (t.passed or t.failed or t.unknown or t.error or t.waived)]
    if passed:
        screen.prose(Styled("pass", "good"), listed([t.id for t in passed], MAX_NAMES), indent=2)
    for tally in [t for t in tallies if t.seen][:MAX_NAMES]:
        text = f"{tally.id}: {tally.seen:,} of {tally.passed:,} passes hold only of the steps that were seen"
        screen.prose("", text, indent=4, style="dim")
    if idle:
        screen.prose(Styled("not applicable", "dim"), listed([t.id for t in idle], MAX_NAMES), indent=2)
    for tally in [t for t in tallies if t.waived]:
        screen.prose(Styled("waived", "dim"), f"{tally.id} in {plural(tally.waived, 'trajectory')}", indent=2)
    for tally in [t for t in tallies if t.measure_mean is not None][:MAX_NAMES]:
        text = f"{tally.id}: {tally.measure_mean:.3g}, mean over {plural(tally.measures, 'trajectory')} with a measure"
        screen.prose(Styled("measured", "cyan"), text, indent=2)


def _outcomes(screen: Screen, report: CheckReport) -> None:
    summary = report.summary
    unmatched = report.unmatched
    if summary.outcomes:
        screen.blank()
        counts = [f"{summary.outcomes[o]:,} {o.replace('_', ' ')}" for o in _OUTCOMES if o in summary.outcomes]
        screen.prose("Outcomes  ", f"{plural(sum(summary.outcomes.values()), 'trial')}: {', '.join(counts)}", indent=0)
        _table(screen, report)
        _trials(screen, report)
        _notable(screen, "right for the wrong reason", summary.right_for_the_wrong_reason)
        _notable(screen, "failed by a hair", summary.failed_by_a_hair)
        causes = sorted(summary.root_causes.items(), key=lambda i: (-i[1], i[0]))
        if causes:
            text = listed([f"{c.replace('_', ' ')} ×{n:,}" for c, n in causes], MAX_NAMES)
            screen.prose("why trials failed:", text)
    safety = report.coverage.safety
    if safety.applicable or summary.safety_violations:
        bad = len(summary.safety_violations)
        text = f"{plural(bad, 'violation')}; {_decided(safety)} (apart from outcomes, never averaged)"
        screen.prose(Styled("Safety    ", "bad" if bad else ""), text, indent=0)
        _notable(screen, "violated", summary.safety_violations)
    if unmatched.trials or unmatched.trajectories:
        text = f"{plural(len(unmatched.trials), 'trial')} without spans"
        text += f", {plural(len(unmatched.trajectories), 'trajectory')} without a trial"
        screen.prose(Styled("Unmatched ", "yellow"), text, indent=0)


def _trials(screen: Screen, report: CheckReport) -> None:
    """Every trial that failed or could not be graded in one line, as many as fit."""
    for verdict, style in (("error", "bad"), ("fail", "bad"), ("unknown", "unsure")):
        lines = outcome_lines(report, (verdict,))  # type: ignore[arg-type]
        for line in lines[:MAX_NOTABLE]:
            screen.prose(Styled(verdict, style), f"{line.name}: {short(line.text, 280)}")
        _left_out(screen, len(lines) - MAX_NOTABLE, f"more {verdict} trial", indent=4)


def _table(screen: Screen, report: CheckReport) -> None:
    cells: dict[tuple[str, str], int] = {(c.outcome, c.path): c.trajectories for c in report.summary.outcome_by_path}
    outcomes = [o for o in _OUTCOMES if any(key[0] == o for key in cells)]
    paths = [p for p in _PATHS if any(key[1] == p for key in cells)]
    if not cells:
        return
    screen.line("  outcome \\ path  ", "".join(f"{p.replace('_', ' '):>12}" for p in paths))
    for outcome in outcomes:
        row = "".join(f"{cells.get((outcome, p), 0):>12,}" for p in paths)
        screen.line(f"  {outcome.replace('_', ' '):<16}", row)


def _notable(screen: Screen, label: str, entries: Sequence[Notable]) -> None:
    for entry in entries[:MAX_NOTABLE]:
        rule = f" [{entry.rule}]" if entry.rule else ""
        name = trial_text(entry.task_id, entry.trial, entry.trajectory_id)
        spans = f" (span {', '.join(entry.span_ids[:2])})" if entry.span_ids else ""
        screen.prose(Styled(f"{label}:", "yellow"), f"{name}{rule}: {short(entry.evidence, 240)}{spans}")
    _left_out(screen, len(entries) - MAX_NOTABLE, "more such case", indent=4)


def _decided(share: Share) -> str:
    return f"{share.decided:,} of {plural(share.applicable, 'applicable verdict')} decided"


def _evidence(screen: Screen, found: Sequence[Highlight]) -> None:
    shown = [h for h in found if h.rule.level != "info"][:MAX_HIGHLIGHTS]
    for highlight in shown:
        screen.blank()
        write_highlight(screen, highlight)
    rest = [h for h in found if h not in shown]
    if rest:
        screen.blank()
        names = listed([f"{h.rule.id} ({h.verdict}, {h.rule.level}, ×{h.trajectories:,})" for h in rest], MAX_NAMES)
        screen.prose(Styled("Not shown", "dim"), f"{names}; --format json has all of them", indent=0)


def _ungraded(screen: Screen, report: CheckReport) -> None:
    coverage: Coverage = report.coverage
    if not coverage.rules.applicable:
        return
    screen.blank()
    screen.prose("Graded    ", f"{_decided(coverage.rules)}, over trajectories and error-level rules", indent=0)
    for why in coverage.undecided[:MAX_NOTABLE]:
        text = f"{plural(why.pairs, 'verdict')} in {plural(why.trajectories, 'trajectory')}: "
        screen.prose(Styled("undecided", "unsure"), f"{text}{_evidence_name(why.missing)} ({listed(why.rules, 4)})")
    _left_out(screen, len(coverage.undecided) - MAX_NOTABLE, "more kind of missing evidence", indent=4)


_EVIDENCE: Final = {
    "arguments": "arguments of calls were not recorded",
    "result": "results of calls were not recorded",
    "status": "the status of calls is not shown",
    "messages": "messages were not recorded",
    "order": "the order of steps is not known",
    "turns": "turns were not recorded",
    "complete": "steps may be missing",
}


def _evidence_name(code: str) -> str:
    return _EVIDENCE.get(code, code)


def _warnings(screen: Screen, report: CheckReport) -> None:
    if report.warnings:
        screen.blank()
    for warning in report.warnings[:MAX_WARNINGS]:
        screen.prose(Styled("Warning   ", "yellow"), short(warning.message, TEXT_WIDTH), indent=0)
    _left_out(screen, len(report.warnings) - MAX_WARNINGS, "more warning")


def _left_out(screen: Screen, count: int, what: str, indent: int = 2) -> None:
    if count > 0:
        screen.line(" " * indent, Styled(f"… {plural(count, what)} not shown; --format json has all", "dim"))

"""The result of `check` as one self-contained page: it opens from a disk and asks for nothing.

Overview, rules, outcomes, task × trial, pass^k where scores are given, and every trajectory with its verdicts; where
its steps are given (`CheckReport.shown`), with a timeline on which parallel steps stand beside each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final
from xml.etree import ElementTree as ET

from tracegrade.model.frontier import FrontierReport
from tracegrade.model.report import (
    CheckReport,
    Notable,
    ShownTrajectory,
    TrajectoryReport,
)
from tracegrade.model.score import ScoreReport
from tracegrade.model.values import JSON
from tracegrade.model.verdict import VERDICT_ORDER
from tracegrade.report.charts import cost_frontier, pass_curves
from tracegrade.report.counterexample import highlight_text
from tracegrade.report.heat_map import heat_map
from tracegrade.report.highlights import highlights
from tracegrade.report.page import Child, badge, document, el, left_out, table
from tracegrade.report.page_trajectory import trajectories
from tracegrade.report.phrase import error_text, listed, plural, short, trial_text, usage_text
from tracegrade.report.timeline import timeline

MAX_LISTED: Final = 1000
MAX_DRAWN_STEPS: Final = 60_000
MAX_HIGHLIGHTS: Final = 30
MAX_NAMES: Final = 40
MAX_NOTABLE: Final = 20
VALUE_WIDTH: Final = 300
_WORDS: Final = {0: "passed", 1: "failed", 2: "error", 3: "nothing concluded"}
_VERDICT_OF_EXIT: Final = {0: "pass", 1: "fail", 2: "error", 3: "unknown"}


def render(report: CheckReport, score: ScoreReport | None = None, frontier: FrontierReport | None = None) -> str:
    """The report as a page.

    Args:
        report: what `check` found; trajectories in `shown` are drawn, the worst first.
        score: what `score` found on the same trials, for the curves.
        frontier: what `frontier` found, for cost against success.
    """
    order = sorted(report.trajectories, key=lambda t: VERDICT_ORDER.index(t.verdict))
    listed_ = order[:MAX_LISTED]
    drawn, data = _drawn(listed_, report.shown)
    places = {t.trajectory_id: place for place, t in enumerate(listed_)}
    body = [
        el("header", *_header(report)),
        el(
            "main",
            _contents(report),
            _rules(report),
            _outcomes(report),
            heat_map(report, places),
            el("section", el("h2", "Success over k trials"), pass_curves(score)) if score is not None else None,
            el("section", el("h2", "Cost and success"), cost_frontier(frontier)) if frontier is not None else None,
            _evidence(report),
            trajectories(listed_, drawn, len(order), places),
            _warnings(report),
        ),
        el("footer", _footer(report)),
    ]
    return document(f"tracegrade: {_WORDS.get(report.summary.exit_code, '')}", body, data)


def _drawn(
    graded: Sequence[TrajectoryReport], shown: Sequence[ShownTrajectory]
) -> tuple[dict[str, int], list[dict[str, JSON]]]:
    """The timelines of the page, and by trajectory id the place of its own; the worst come first."""
    by_id = {s.trajectory_id: s for s in shown}
    places: dict[str, int] = {}
    data: list[dict[str, JSON]] = []
    left = MAX_DRAWN_STEPS
    for t in graded:
        steps = by_id.get(t.trajectory_id)
        if steps is None or (data and len(steps.steps) > left):
            continue
        left -= len(steps.steps)
        places[t.trajectory_id] = len(data)
        data.append(timeline(steps, t))
    return places, data


def _header(report: CheckReport) -> Iterable[Child]:
    summary = report.summary
    word = _WORDS.get(summary.exit_code, "")
    yield el("h1", "tracegrade ", el("span", word, cls=f"badge {_VERDICT_OF_EXIT.get(summary.exit_code, 'unknown')}"))
    counts = [el("li", badge(v), f" {summary.verdicts[v]:,}") for v in VERDICT_ORDER if v in summary.verdicts]
    yield el("p", plural(summary.trajectories, "trajectory"), cls="lead")
    yield el("ul", *counts, cls="counts")
    yield el("ul", *(el("li", r) for r in summary.reasons), cls="reasons")
    for entry in report.inputs:
        if entry.error is not None:
            yield el("p", badge("error"), f" {entry.path}: {error_text(entry)}")


def _contents(report: CheckReport) -> ET.Element:
    view = report.overview
    steps = ", ".join(plural(n, kind.replace("_", " ")) for kind, n in view.steps.items())
    facts: list[tuple[str, str]] = [
        (
            "read",
            "; ".join(f"{i.path} ({i.format or 'unknown'}): {i.spans_read:,} spans" for i in report.inputs[:MAX_NAMES]),
        ),
        ("files", plural(len(report.inputs), "file") if len(report.inputs) > MAX_NAMES else ""),
        (
            "found",
            f"{plural(report.summary.trajectories, 'trajectory')}, {view.complete:,} complete; {steps or 'no steps'}",
        ),
        ("services", _names([f"{s.name} ({s.count:,})" for s in view.services])),
        ("agents", _names([f"{a.name} ({a.count:,})" for a in view.agents])),
        ("models", _names([f"{m.name} ({m.count:,})" for m in view.models])),
        ("usage", usage_text(view.usage)),
        ("dialects", _names([f"{d.name} ({plural(d.spans, 'span')})" for d in report.dialects])),
        ("gaps", _names([f"{g.code} in {plural(g.trajectories, 'trajectory')} (×{g.count:,})" for g in view.gaps])),
        ("rules from", _names(list(report.rule_sources))),
    ]
    rows = [el("div", el("dt", name), el("dd", text)) for name, text in facts if text]
    tools = [
        [u.name, *(f"{n:,}" for n in (u.calls, u.errors, u.unfinished, u.not_executed, u.unknown))] for u in view.tools
    ]
    head = ["tool", "calls", "errors", "unfinished", "not executed", "status not shown"]
    return el(
        "section",
        el("h2", "What is in the files"),
        el("dl", *rows),
        table(head, [[short(str(c), VALUE_WIDTH) for c in row] for row in tools[:MAX_NAMES]]) if tools else None,
        left_out(len(tools) - MAX_NAMES, "more tool"),
    )


def _names(names: list[str]) -> str:
    return listed([short(n, VALUE_WIDTH) for n in names], MAX_NAMES)


def _rules(report: CheckReport) -> ET.Element:
    why = {r.id: r.why for r in report.rules}
    rows: list[list[Child]] = []
    for t in report.summary.rules:
        counts = (t.error, t.failed, t.unknown, t.passed, t.not_applicable, t.waived)
        seen = f"{t.seen:,} passes hold only of the steps that were seen" if t.seen else ""
        measure = f"mean measure {t.measure_mean:.3g} of {t.measures:,}" if t.measure_mean is not None else ""
        worst = "error" if t.error else "fail" if t.failed else "unknown" if t.unknown else "pass" if t.passed else ""
        name = el("div", el("b", t.id), el("div", why.get(t.id) or "", cls="note"))
        level = f"{t.level}, safety" if "safety" in t.tags else t.level
        rows.append(
            [
                name,
                level,
                badge(worst) if worst else "",
                *(f"{n:,}" for n in counts),
                " ".join((seen, measure)).strip(),
            ]
        )
    head = ["rule", "level", "worst", "crashed", "fail", "unknown", "pass", "not applicable", "waived", ""]
    coverage = report.coverage
    parts = [f"{coverage.rules.decided:,} of {plural(coverage.rules.applicable, 'applicable verdict')} decided"]
    if coverage.safety.applicable:
        parts.append(f"of safety rules {coverage.safety.decided:,} of {coverage.safety.applicable:,}")
    undecided = [
        f"{u.missing}: {plural(u.pairs, 'verdict')} in {plural(u.trajectories, 'trajectory')} ({listed(u.rules, 6)})"
        for u in coverage.undecided
    ]
    return el(
        "section",
        el("h2", "Rules"),
        table(head, rows) if rows else el("p", "No rule was run."),
        el("p", "; ".join(parts), cls="note"),
        el("ul", *(el("li", badge("unknown"), f" missing {u}") for u in undecided)) if undecided else None,
    )


def _outcomes(report: CheckReport) -> ET.Element | None:
    summary = report.summary
    unmatched = report.unmatched
    if not (summary.outcomes or summary.safety_violations or unmatched.trials):
        return None
    cells: dict[tuple[str, str], int] = {(c.outcome, c.path): c.trajectories for c in summary.outcome_by_path}
    paths = [p for p in ("clean", "violating", "unknown", "not_judged") if any(k[1] == p for k in cells)]
    rows: list[list[Child]] = [
        [badge(o), *(f"{cells.get((o, p), 0):,}" for p in paths)] for o in dict.fromkeys(k[0] for k in cells)
    ]
    counts = [el("li", badge(o), f" {n:,}") for o, n in summary.outcomes.items()]
    causes = sorted(summary.root_causes.items(), key=lambda i: (-i[1], i[0]))
    section = el(
        "section",
        el("h2", "Outcomes" if summary.outcomes else "Safety"),
        el("ul", *counts, cls="counts"),
        table(["outcome \\ path", *(p.replace("_", " ") for p in paths)], rows) if rows else None,
    )
    section.extend(_notable("Safety violations (apart from outcomes, never averaged)", summary.safety_violations))
    section.extend(_notable("Right for the wrong reason", summary.right_for_the_wrong_reason))
    section.extend(_notable("Failed by a hair", summary.failed_by_a_hair))
    if causes:
        section.append(el("h3", "Why trials failed"))
        section.append(el("p", ", ".join(f"{c.replace('_', ' ')} ×{n:,}" for c, n in causes)))
    if unmatched.trials or unmatched.trajectories:
        text = f"{plural(len(unmatched.trials), 'trial')} without spans, "
        section.append(
            el("p", f"{text}{plural(len(unmatched.trajectories), 'trajectory')} without a trial.", cls="note")
        )
    return section


def _notable(title: str, entries: Sequence[Notable]) -> Iterable[ET.Element]:
    if not entries:
        return
    yield el("h3", title)
    items = []
    for e in entries[:MAX_NOTABLE]:
        rule = f" [{e.rule}]" if e.rule else ""
        name = trial_text(e.task_id, e.trial, e.trajectory_id)
        items.append(el("li", el("b", name), f"{rule}: {short(e.evidence, VALUE_WIDTH)}"))
    yield el("ul", *items)
    left = left_out(len(entries) - MAX_NOTABLE, "more case")
    if left is not None:
        yield left


def _evidence(report: CheckReport) -> ET.Element | None:
    found = highlights(report)
    if not found:
        return None
    blocks = [
        el("pre", highlight_text(h, width=110), cls=f"evidence {h.verdict if h.rule.level == 'error' else 'note'}")
        for h in found[:MAX_HIGHLIGHTS]
    ]
    title = el("h2", "The shortest counterexample of each rule that did not pass")
    return el("section", title, *blocks, left_out(len(found) - MAX_HIGHLIGHTS, "more rule"))


def _warnings(report: CheckReport) -> ET.Element | None:
    skipped = [f"{i.path}: {s.where}: {s.reason} ×{s.count:,}" for i in report.inputs for s in i.skipped]
    texts = [w.message for w in report.warnings] + [f"skipped {s}" for s in skipped]
    if not texts:
        return None
    items = [el("li", short(text, VALUE_WIDTH)) for text in texts[:MAX_NAMES]]
    return el("section", el("h2", "Warnings"), el("ul", *items), left_out(len(texts) - MAX_NAMES, "more warning"))


def _footer(report: CheckReport) -> str:
    rules = f"{plural(len(report.rules), 'rule')}" if report.rules else "no rules"
    tasks = f", tasks sha256 {report.tasks_sha256[:12]}" if report.tasks_sha256 else ""
    return f"tracegrade {report.tracegrade_version}, {rules}{tasks}, grouped by {report.group_by}, seed {report.seed}"

"""Every trajectory of a page: its facts, verdicts and outcome, and a place for its timeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from xml.etree import ElementTree as ET

from tracegrade.model.report import InvariantReport, TrajectoryReport
from tracegrade.model.verdict import VERDICT_ORDER
from tracegrade.report.counterexample import finding_text
from tracegrade.report.page import Child, badge, el, left_out, table
from tracegrade.report.phrase import clock, duration, json_text, listed, plural, short, trial_text, usage_text

MAX_FINDINGS: Final = 20
VALUE_WIDTH: Final = 300


def trajectories(
    graded: Sequence[TrajectoryReport], drawn: Mapping[str, int], total: int, places: Mapping[str, int]
) -> ET.Element:
    """The section of trajectories.

    Args:
        graded: those that are listed, the worst first.
        drawn: by trajectory id, the place of its timeline in the page's data.
        total: how many there are in all.
        places: by trajectory id, its number on the page.
    """
    items = [_trajectory(t, places[t.trajectory_id], drawn.get(t.trajectory_id)) for t in graded]
    notes = [
        left_out(total - len(graded), "more trajectory"),
        el(
            "p",
            f"{plural(len(graded) - len(drawn), 'trajectory')} without a timeline: their steps are not in this page.",
            cls="note",
        )
        if len(drawn) < len(graded)
        else None,
    ]
    empty = el("p", "There is no trajectory.") if not graded else None
    warning = el("noscript", el("p", "Timelines need the script of this page."))
    return el("section", el("h2", "Trajectories"), empty, *notes, warning, *items)


def _trajectory(t: TrajectoryReport, place: int, timeline_at: int | None) -> ET.Element:
    name = trial_text(t.task_id, t.trial, t.trajectory_id)
    tools = ", ".join(f"{u.name} ×{u.calls}" for u in t.tools)
    summary = el(
        "summary",
        badge(t.verdict),
        " ",
        el("b", short(name, VALUE_WIDTH)),
        el("span", f" {short(tools, 120)}", cls="note"),
        el("span", " incomplete", cls="note gap") if not t.complete else None,
    )
    holder = el("div", cls="timeline", data_timeline=timeline_at) if timeline_at is not None else None
    return el(
        "details", summary, _facts(t), _verdicts(t), _outcome(t), holder, id=f"t-{place}", cls=f"trajectory {t.verdict}"
    )


def _facts(t: TrajectoryReport) -> ET.Element:
    rows = [
        ("trajectory", t.trajectory_id),
        ("traces", listed(t.trace_ids, 6)),
        ("conversation", t.conversation_id or ""),
        ("began", f"{clock(t.start_ns)}, took {duration(t.duration_ns)}" if t.start_ns is not None else ""),
        ("usage", usage_text(t.usage)),
        ("agents", listed(t.agents, 12)),
        ("gaps", "; ".join(f"{g.code} ×{g.count:,}: {short(g.message, VALUE_WIDTH)}" for g in t.gaps)),
        ("warnings", "; ".join(short(w.message, VALUE_WIDTH) for w in t.warnings)),
    ]
    return el("dl", *(el("div", el("dt", k), el("dd", v)) for k, v in rows if v))


def _verdicts(t: TrajectoryReport) -> ET.Element:
    rank = {v: place for place, v in enumerate(VERDICT_ORDER)}
    results = sorted(t.invariants, key=lambda r: rank[r.verdict])
    told = [r for r in results if r.verdict in ("error", "fail", "unknown")]
    rest = [r for r in results if r.verdict not in ("error", "fail", "unknown")]
    blocks = [_result(t, r) for r in told]
    quiet = ", ".join(
        f"{r.id} ({r.verdict.replace('_', ' ')}{', of the steps seen' if r.scope == 'seen' else ''})" for r in rest
    )
    return el("div", *blocks, el("p", f"Other rules: {quiet}", cls="note") if quiet else None)


def _result(t: TrajectoryReport, r: InvariantReport) -> ET.Element:
    texts = [finding_text(f, origin_ns=t.start_ns, width=110) for f in r.findings[:MAX_FINDINGS]]
    left = len(r.findings) - MAX_FINDINGS
    if left > 0:
        texts.append(f"{plural(left, 'more finding')} not shown; --format json has all")
    head = el("p", badge(r.verdict), " ", el("b", r.id), f" {r.level}", f" waived: {r.waived}" if r.waived else "")
    return el("div", head, el("pre", "\n".join(texts)) if texts else None, cls="result")


def _outcome(t: TrajectoryReport) -> ET.Element | None:
    outcome = t.outcome
    if outcome is None:
        return None
    rows: list[list[Child]] = []
    for grader in outcome.graders:
        rows.append([grader.kind, badge(grader.verdict), "", grader.reason, ""])
        for d in grader.differences[:MAX_FINDINGS]:
            expected, observed = (
                "(nothing)" if d.absent == side else short(json_text(value), VALUE_WIDTH)
                for side, value in (("expected", d.expected), ("observed", d.observed))
            )
            rows.append([d.kind.replace("_", " "), "", json_text(list(d.path)), expected, observed])
        left = max(grader.n_differences, len(grader.differences)) - MAX_FINDINGS
        if left > 0:
            rows.append([plural(left, "more difference"), "", "not shown", "", ""])
    causes = "; ".join(f"{c.category.replace('_', ' ')}: {short(c.evidence, VALUE_WIDTH)}" for c in outcome.root_causes)
    return el(
        "div",
        el("p", badge(outcome.verdict), " ", el("b", "outcome"), f" {outcome.reason}"),
        el("p", f"ended: {outcome.end_reason}", cls="note") if outcome.end_reason else None,
        el("p", f"Why: {causes}") if causes else None,
        table(["grader", "verdict", "path", "expected", "observed"], rows) if rows else None,
        cls="result",
    )

"""The page: self-contained, safe, complete, and drawn by a real browser."""

from __future__ import annotations

import base64
import hashlib
import json as stdlib
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.report.samples import HOSTILE, SECOND, START, call, check_report, ref, trajectory
from tests.report.test_hostile import Tags
from tracegrade.model.report import (
    CheckReport,
    InvariantReport,
    OutcomeReport,
    ShownTrajectory,
    StepReport,
    TrajectoryReport,
    TrialReport,
)
from tracegrade.model.trajectory import Trajectory
from tracegrade.model.verdict import Finding
from tracegrade.report import build, html
from tracegrade.report.rollup import check_summary
from tracegrade.report.timeline import lanes, timeline
from tracegrade.trajectory.order import Order

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no browser: install chromium")


def page() -> str:
    report = check_report()
    shown = (build.shown_trajectory(trajectory(complete=False)), build.shown_trajectory(trajectory("b" * 32)))
    return html.render(report.model_copy(update={"shown": shown}))


def single() -> CheckReport:
    """One trajectory with its steps: the page opens it by itself."""
    report = check_report()
    return report.model_copy(
        update={
            "trajectories": report.trajectories[:1],
            "shown": (build.shown_trajectory(trajectory(complete=False)),),
        }
    )


def dom(path: Path) -> str:
    """The page as it stands after its script ran."""
    assert BROWSER is not None
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    command += [f"--user-data-dir={path.parent / 'profile'}", "--virtual-time-budget=4000", "--window-size=1200,2000"]
    done = subprocess.run(
        [*command, "--enable-logging=stderr", "--dump-dom", path.as_uri()],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=True,
    )
    assert "Refused to" not in done.stderr
    assert "Uncaught" not in done.stderr
    return done.stdout


# --- what stands in the file -----------------------------------------------------------------------------------------


def test_it_asks_for_nothing_and_has_no_handler_in_the_markup() -> None:
    tags = Tags(page())
    assert not {"link", "img", "iframe", "object", "embed", "base", "form", "video", "audio"} & set(tags.tags)
    names = {name for name, _ in tags.attributes}
    assert not {"src", "style", "srcset", "action", "formaction", "background"} & names
    assert not [name for name in names if name.startswith("on")]
    assert all(value and value.startswith("#t-") for name, value in tags.attributes if name == "href")


def test_its_policy_allows_its_own_script_and_style_only() -> None:
    made = page()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', made)
    assert policy is not None
    allowed = set(re.findall(r"'sha256-([^']*)'", policy.group(1)))
    assert policy.group(1).startswith("default-src 'none'")
    assert "unsafe" not in policy.group(1)
    texts = re.findall(r"<style>(.*?)</style>|<script>(.*?)</script>", made, re.DOTALL)
    hashes = {base64.b64encode(hashlib.sha256("".join(t).encode()).digest()).decode() for t in texts}
    assert hashes == allowed


def test_its_data_cannot_end_their_element_and_can_be_read() -> None:
    tags = Tags(page())
    (data,) = tags.data
    assert "<" not in data
    timelines = stdlib.loads(data)
    assert [len(t["steps"]) for t in timelines] == [8, 8]


def test_the_same_report_makes_the_same_bytes() -> None:
    assert page() == page()


def test_the_worst_trajectory_stands_first_and_cells_lead_to_it() -> None:
    made = page()
    assert made.index("right-order-cancelled</b> error") < made.index('id="t-2"')
    assert 'class="fail" title="fail"><a href="#t-0">✗</a>' in made


def test_a_trajectory_without_steps_is_listed_and_that_is_said() -> None:
    made = html.render(check_report())
    assert "3 trajectories without a timeline" in made
    assert made.count('class="trajectory') == 3


def test_more_trajectories_than_are_listed_are_counted() -> None:
    graded = tuple(TrajectoryReport(trajectory_id=str(n), trace_ids=()) for n in range(html.MAX_LISTED + 7))
    summary, coverage = check_summary(graded)
    made = html.render(CheckReport(summary=summary, coverage=coverage, trajectories=graded))
    assert "7 more trajectories not shown" in made


def test_an_empty_report_is_a_page_that_says_so() -> None:
    summary, coverage = check_summary([])
    made = html.render(CheckReport(summary=summary, coverage=coverage))
    assert "There is no trajectory." in made
    assert "nothing concluded" in made


def test_the_grid_shows_the_attempt_that_counts() -> None:
    def trial(task: str, number: int, verdict: Any, attempt: int) -> TrialReport:
        return TrialReport(task_id=task, trial=number, attempt=attempt, outcome=OutcomeReport(verdict=verdict))

    trials = (
        trial("a", 0, "excluded", 0),
        trial("a", 0, "pass", 1),
        trial("a", 10, "fail", 0),
        trial("b", 2, "fail", 0),
    )
    summary, coverage = check_summary([], trials=trials)
    made = html.render(CheckReport(summary=summary, coverage=coverage, trials=trials))
    grid = re.search(r'<table class="heat">(.*?)</table>', made, re.DOTALL)
    assert grid is not None
    rows = re.findall(r"<tr>(.*?)</tr>", grid.group(1))
    assert [re.sub("<[^>]*>", " ", row).split() for row in rows] == [
        ["task", "\\", "trial", "0", "2", "10"],
        ["b", "✗"],
        ["a", "✓", "✗"],
    ]


# --- timelines -------------------------------------------------------------------------------------------------------


def step(seq: int, start: int, end: int | None) -> StepReport:
    return StepReport(kind="tool_call", seq=seq, name="t", start_ns=start, end_ns=end)


def test_steps_that_overlap_never_share_a_lane() -> None:
    steps = [step(0, 0, 100), step(1, 10, 20), step(2, 15, 30), step(3, 20, 40), step(4, 100, None), step(5, 200, 300)]
    rows = lanes(steps)
    assert rows == {0: 0, 1: 1, 2: 2, 3: 1, 4: 0, 5: 1}


def test_a_finding_hangs_at_the_steps_that_it_cites() -> None:
    t = trajectory()
    found = Finding("r", "error", "wrong", steps=(ref(t.steps[4]),))
    graded = TrajectoryReport(
        trajectory_id="t", trace_ids=(), verdict="fail", invariants=(InvariantReport("r", "fail", findings=(found,)),)
    )
    data = timeline(build.shown_trajectory(t), graded)
    assert [s["seq"] for s in data["steps"] if s["findings"]] == [4]
    assert data["findings"][0]["text"] == "wrong"


def test_values_are_bounded_and_the_cut_is_said() -> None:
    t = Trajectory("t", ("t",), (call(0, "t", 0, 1, result="x" * 50_000),), Order.from_pairs(1, []))
    data = timeline(build.shown_trajectory(t))
    assert len(stdlib.dumps(data)) < 5_000
    assert "(+48,000 characters)" in stdlib.dumps(data, ensure_ascii=False)


# --- in a browser ----------------------------------------------------------------------------------------------------


@needs_browser
def test_a_browser_draws_the_trajectory_and_runs_nothing_of_the_data(tmp_path: Path) -> None:
    report = single()
    attack = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    shown: ShownTrajectory = report.shown[0]
    steps = tuple(s.model_copy(update={"text": attack, "name": attack, "result": attack}) for s in shown.steps)
    report = report.model_copy(update={"shown": (shown.model_copy(update={"steps": steps}),)})
    path = tmp_path / "report.html"
    path.write_text(html.render(report), encoding="utf-8")
    made = dom(path)
    assert "<title>tracegrade: failed</title>" in made
    assert "<img" not in made
    assert len(re.findall(r'<div class="step ', made)) == 8
    assert len(re.findall(r'<li class="block parallel">', made)) == 2
    assert len(re.findall(r"<rect class=", made)) == 6
    assert "8 of 8 steps" in made
    assert made.count("right-order-cancelled (fail): cancel_order") == 2
    assert HOSTILE not in made


@needs_browser
def test_a_browser_opens_a_trajectory_of_ten_thousand_steps(tmp_path: Path) -> None:
    n = 10_000
    steps = tuple(call(i, f"tool_{i % 7}", i // 4 + 0.1 * (i % 4), i // 4 + 0.9) for i in range(n))
    order = Order.from_pairs(n, [(i, i + 1) for i in range(n - 1)])
    t = Trajectory("big", ("a" * 32,), steps, order, start_ns=START, duration_ns=n // 4 * SECOND)
    graded = build.trajectory_report(t)
    summary, coverage = check_summary([graded])
    report = CheckReport(summary=summary, coverage=coverage, trajectories=(graded,), shown=(build.shown_trajectory(t),))
    path = tmp_path / "big.html"
    path.write_text(html.render(report), encoding="utf-8")
    assert path.stat().st_size < 8_000_000
    made = dom(path)
    assert f"of {n} steps" in made
    assert len(re.findall(r"<rect class=", made)) > 1000

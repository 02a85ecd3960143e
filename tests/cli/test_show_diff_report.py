"""`show`, `diff` and `report` on the bundled traces."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.conftest import REPO
from tracegrade.cli.main import load

TRACES = REPO / "fixtures" / "traces"
DESK = TRACES / "support-desk.otlp.jsonl"
GOOD = TRACES / "otel-genai" / "good.otlp.jsonl"
UNVERIFIED = TRACES / "otel-genai" / "unverified.otlp.jsonl"


def run(command: str, *arguments: str | Path) -> Result:
    import importlib

    app = importlib.import_module(f"tracegrade.cli.{command}").app
    return CliRunner().invoke(app, [str(a) for a in arguments])


def result(tmp_path: Path, *arguments: str | Path) -> Path:
    path = tmp_path / "result.json"
    run("check", GOOD, UNVERIFIED, "--invariants", "customer-support", "--out", path, *arguments)
    return path


def error(ran: Result) -> str:
    assert ran.exception is not None
    return str(ran.exception)


def test_show_prints_every_step_in_order() -> None:
    ran = run("show", GOOD)
    assert ran.exit_code == 0
    tools = re.findall(r"s  (\w+_\w+)\(", ran.output)
    assert tools == ["verify_guest", "get_stay", "cancel_stay", "refund_deposit"]


def test_show_as_json_has_all_trajectories_and_text_says_what_it_leaves_out() -> None:
    assert len(json.loads(run("show", DESK, "--format", "json").output)["trajectories"]) == 4
    ran = run("show", DESK, "--first", "1")
    assert ran.output.count("\ntrajectory ") + ran.output.startswith("trajectory ") == 1
    assert "3 more trajectories are not shown" in ran.output


def test_show_chooses_by_the_beginning_of_an_id() -> None:
    ids = [t["trajectory_id"] for t in json.loads(run("show", DESK, "--format", "json").output)["trajectories"]]
    chosen = json.loads(run("show", DESK, "--format", "json", "--trajectory", ids[1][:12]).output)["trajectories"]
    assert [t["trajectory_id"] for t in chosen] == [ids[1]]


def test_show_of_a_name_that_is_not_there_says_which_there_are() -> None:
    ran = run("show", GOOD, "--trajectory", "nothing")
    assert "no trajectory goes by `nothing`" in error(ran)
    assert "TASK/TRIAL" in error(ran)


def test_show_reads_a_database_again(tmp_path: Path) -> None:
    db = tmp_path / "spans.duckdb"
    first = run("show", DESK, "--db", db, "--format", "json")
    again = run("show", "--db", db, "--format", "json")
    assert json.loads(again.output)["trajectories"] == json.loads(first.output)["trajectories"]


def test_show_of_nothing_is_an_error(tmp_path: Path) -> None:
    empty = tmp_path / "empty.json"
    empty.write_text('{"resourceSpans": []}')
    ran = run("show", empty)
    assert getattr(ran.exception, "exit_code", None) == 3


def test_diff_names_the_first_step_that_differs() -> None:
    ran = run("diff", GOOD, UNVERIFIED)
    assert ran.exit_code == 1
    assert "First difference at the first step:" in ran.output
    assert 'result.status: "booked" → "cancelled"' in ran.output


def test_diff_of_a_file_with_itself_is_equal() -> None:
    ran = run("diff", GOOD, GOOD)
    assert ran.exit_code == 0
    assert "No step differs." in ran.output


def test_diff_as_json() -> None:
    record: dict[str, Any] = json.loads(run("diff", GOOD, UNVERIFIED, "--format", "json").output)
    assert (record["equal"], record["first"]) == (False, 0)
    assert {p["kind"] for p in record["pairs"]} == {"same", "changed", "only_left", "only_right"}


def test_diff_of_several_trajectories_asks_which() -> None:
    ran = run("diff", DESK, GOOD)
    assert "4 trajectories: choose one with --left" in error(ran)


@pytest.mark.parametrize("kind", ["text", "json", "junit", "sarif", "markdown", "github", "html"])
def test_a_kept_result_renders_as_check_did(tmp_path: Path, kind: str) -> None:
    path = result(tmp_path)
    fresh = run("check", GOOD, UNVERIFIED, "--invariants", "customer-support", "--format", kind)
    kept = run("report", path, "--format", kind)
    assert kept.exit_code == 0
    if kind == "html":  # the steps are not part of the result
        assert "2 trajectories without a timeline" in kept.output
    else:
        assert kept.output == fresh.output


def test_steps_scores_and_costs_beside_a_result_are_drawn(tmp_path: Path) -> None:
    path = result(tmp_path)
    steps = tmp_path / "steps.json"
    steps.write_text(run("show", GOOD, UNVERIFIED, "--format", "json").output)
    table = tmp_path / "trials.csv"
    rows = [f"task-{t},{n},{int((t + n) % 3 > 0)}" for t in range(6) for n in range(4)]
    table.write_text("task_id,trial,passed\n" + "\n".join(rows) + "\n")
    scores = tmp_path / "score.json"
    scores.write_text(run("score", table, "--format", "json").output)
    agents = []
    for name, cost in (("cheap", 0.01), ("dear", 0.2)):
        agents.append(tmp_path / f"{name}.csv")
        lines = [f"task-{t},{n},{int((t + n) % 3 > (name == 'cheap'))},{cost}" for t in range(6) for n in range(4)]
        agents[-1].write_text("task_id,trial,passed,cost_usd\n" + "\n".join(lines) + "\n")
    frontier = tmp_path / "frontier.json"
    frontier.write_text(run("frontier", *agents, "--format", "json").output)
    page = run("report", path, steps, scores, frontier, "--format", "html").output
    assert "without a timeline" not in page
    assert page.count('class="timeline"') == 2
    assert 'class="curve hat"' in page
    assert 'class="band at"' in page
    assert page.count('class="dot at"') >= 2
    assert "dollars a trial" in page


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "no JSON"),
        ('{"schema": "other"}', "expected one of tracegrade/check/1"),
        ('{"schema": "tracegrade/check/1", "inputs": 3}', "inputs: "),
    ],
)
def test_what_is_no_result_is_said(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "result.json"
    path.write_text(text)
    assert words in error(run("report", path))


def test_a_result_of_another_kind_alone_is_not_enough(tmp_path: Path) -> None:
    steps = tmp_path / "steps.json"
    steps.write_text(run("show", GOOD, "--format", "json").output)
    assert "expected one result of `check`" in error(run("report", steps))


def test_the_commands_are_listed() -> None:
    for name in ("show", "diff", "report"):
        assert load(name) is not None


def test_diff_stops_at_what_cannot_be_read_when_strict(tmp_path: Path) -> None:
    cut = tmp_path / "cut.jsonl"
    cut.write_text(GOOD.read_text(encoding="utf-8") + '{"resourceSpans": [{"scopeSp')
    assert run("diff", cut, GOOD).exit_code == 0
    assert f"{cut}: line 2" in error(run("diff", cut, GOOD, "--strict"))
    assert "Did you mean `max_depth`?" in error(run("diff", GOOD, GOOD, "--limit", "max_depht=1"))

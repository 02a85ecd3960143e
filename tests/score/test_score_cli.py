"""The commands: exit codes, one screen, JSON that fits its schema, the same bytes twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from typer.testing import CliRunner

from tracegrade.cli.frontier import app as frontier_app
from tracegrade.cli.horizon import app as horizon_app
from tracegrade.cli.power import app as power_app
from tracegrade.cli.power import parse_points
from tracegrade.cli.score import app as score_app
from tracegrade.cli.score import parse_ks
from tracegrade.errors import UsageError
from tracegrade.model.frontier import frontier_schema
from tracegrade.model.horizon import horizon_schema
from tracegrade.model.power import power_schema
from tracegrade.model.score import score_schema

runner = CliRunner()


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    lines = ["task_id,trial,passed,cost_usd,agent,tag,human_minutes,cluster,human"]
    for agent, shift in (("big", 1.0), ("small", 0.6)):
        for task in range(30):
            p = rng.beta(1, 1) * shift
            for trial in range(3):
                passed = int(rng.random() < p)
                cost = 2.0 if agent == "big" else 0.1
                lines.append(
                    f"t{task},{trial},{passed},{cost},{agent},k{task % 3},{2 ** (task % 8)},f{task % 5},{passed}"
                )
    path = tmp_path / "outcomes.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def run(app: Any, *args: object) -> Any:
    return runner.invoke(app, [str(a) for a in args])


def test_score_screen_and_json(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "score.json"
    options = (table, "--filter", "agent=big", "--resamples", 400, "--fallback-cost", 20, "--plug-in", "--out", out)
    result = run(score_app, *options)
    assert result.exit_code == 0, result.output
    assert len(result.stdout.splitlines()) <= 50
    assert max(map(len, result.stdout.splitlines()[1:])) <= 110
    for word in (
        "success rate",
        "pass^k",
        "pass@k",
        "extrapolated",
        "J_eff",
        "crashes",
        "flaky first",
        "by tag",
        "judge",
    ):
        assert word in result.stdout
    document = json.loads(out.read_text())
    jsonschema.validate(document, score_schema())
    assert document["pass_hat_k"]["1"]["value"] == pytest.approx(document["rate"]["value"])
    again = run(score_app, *options[:-2], "--format", "json")
    assert again.stdout == out.read_text(), "the same seed gives the same bytes"
    other = run(score_app, *options[:-2], "--format", "json", "--seed", 5)
    assert other.stdout != again.stdout


def test_score_of_nothing_is_three_and_of_a_wrong_table_two(tmp_path: Path) -> None:
    from tracegrade.cli.main import app as program

    empty, wrong = tmp_path / "empty.csv", tmp_path / "wrong.csv"
    empty.write_text("task_id,passed\na,\n")
    wrong.write_text("task_id,passed\na,perhaps\n")
    result = run(program, "score", empty)
    assert (result.exit_code, "no trial could be scored" in result.output) == (3, True)
    result = run(program, "score", wrong)
    assert (result.exit_code, "wrong.csv:2: passed" in result.output) == (2, True)
    assert "Traceback" not in result.output
    assert run(program, "score").exit_code == 2


def test_frontier(table: Path) -> None:
    result = run(frontier_app, table, "--agent", "agent", "--verifier", "--format", "json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    jsonschema.validate(document, frontier_schema())
    assert document["hull"][0] == "(origin)"
    assert document["n_tasks_shared"] == 30
    small = next(a for a in document["agents"] if a["name"] == "small")
    assert small["matches"][0]["dearer"] == "big"
    text = run(frontier_app, table, "--agent", "agent").stdout
    assert "router" in text
    assert "say --verifier" in text


def test_frontier_of_files_by_name(table: Path, tmp_path: Path) -> None:
    lines = table.read_text().splitlines()
    for name in ("big", "small"):
        (tmp_path / f"{name}.csv").write_text("\n".join([lines[0], *(x for x in lines if f",{name}," in x)]))
    result = run(frontier_app, f"A={tmp_path / 'big.csv'}", f"B={tmp_path / 'small.csv'}", "--format", "json")
    assert [a["name"] for a in json.loads(result.stdout)["agents"]] == ["A", "B"]


def test_horizon(table: Path) -> None:
    result = run(horizon_app, table, "--agent", "agent", "--resamples", 100, "--format", "json")
    assert result.exit_code in (0, 3), result.output
    document = json.loads(result.stdout)
    jsonschema.validate(document, horizon_schema())
    assert [h["agent"] for h in document["horizons"]] == ["big", "small"]


def test_horizon_without_a_fit_is_three(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("task_id,passed,human_minutes\na,0,5\nb,0,10\n")
    result = run(horizon_app, path)
    assert (result.exit_code, "no success" in result.stdout) == (3, True)
    assert run(horizon_app, path, "--preset", "metr").exit_code == 0


def test_power(table: Path) -> None:
    options = (table, "--filter", "agent=big", "--drop", "15pp", "--simulations", 200)
    result = run(power_app, *options, "--format", "json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    jsonschema.validate(document, power_schema())
    assert [d["design"] for d in document["designs"]] == ["paired", "unpaired"]
    assert document["designs"][0]["tasks"] == 30
    assert "smallest drop" in run(power_app, *options).stdout
    known = run(power_app, "--rate", 0.6, "--correlation", 0.4, "--tasks", 40, "--drop", "0.2", "--simulations", 200)
    assert "Beta(0.9, 0.6)" in known.stdout


@pytest.mark.parametrize("text", ["0", "a", "1,,2", "-1", "1.5"])
def test_wrong_ks(text: str) -> None:
    with pytest.raises(UsageError, match="--k"):
        parse_ks(text)


@pytest.mark.parametrize(("text", "value"), [("4pp", 0.04), ("4 %", 0.04), ("0.04", 0.04), ("100pp", 1.0)])
def test_points(text: str, value: float) -> None:
    assert parse_points(text, "--drop") == pytest.approx(value)


@pytest.mark.parametrize("text", ["4", "pp", "-1pp", "nan", "101%"])
def test_wrong_points(text: str) -> None:
    with pytest.raises(UsageError, match="--drop"):
        parse_points(text, "--drop")


def test_hostile_names_do_not_reach_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("task_id,trial,passed,tag\na\x1b[31m,0,1,x\x1b]0;evil\x07\na\x1b[31m,1,0,x\nb,0,1,y\n")
    result = run(score_app, path, "--resamples", 200)
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.stdout
    assert "\\x1b[31m" in result.stdout

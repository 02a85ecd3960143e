"""Evaluations that stand in spans, against people's labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from statsmodels.stats.inter_rater import cohens_kappa
from typer.testing import CliRunner

from tests.score.recorded import record
from tracegrade.cli.judge import app
from tracegrade.errors import NothingToGrade, RuleFileError, UsageError
from tracegrade.model.judge import judge_schema

Span = dict[str, Any]
N = 24


def run(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def human(task: int) -> int:
    return int(task % 3 > 0)


def judged(task: int) -> int:
    return 1 - human(task) if task % 8 == 0 else human(task)


def evaluated(kind: str, value: int, label: str | None = None) -> Span:
    told = [{"key": "gen_ai.evaluation.name", "value": {"stringValue": kind}}]
    if label is not None:
        told.append({"key": "gen_ai.evaluation.score.label", "value": {"stringValue": label}})
    told.append({"key": "gen_ai.evaluation.score.value", "value": {"doubleValue": value}})
    return {"timeUnixNano": "1700000000009000000", "name": "gen_ai.evaluation.result", "attributes": told}


def evaluator(span: Span, value: int) -> Span:
    told = {"openinference.span.kind": "EVALUATOR", "output.value": json.dumps({"score": value, "label": "x"})}
    return {
        **span,
        "spanId": "e" * 12 + span["spanId"][-4:],
        "parentSpanId": span["spanId"],
        "name": "correct",
        "attributes": [{"key": k, "value": {"stringValue": v}} for k, v in told.items()],
    }


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Spans with three evaluations each, and a table of labels for all but the last four runs."""
    recorded = record(tmp_path, "a", [[1]] * N)
    traces = {t["trace_id"]: int(t["task_id"][1:]) for t in json.loads(recorded.trials.read_text())["trials"]}
    document = json.loads(recorded.spans.read_text())
    spans = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    for span in [s for s in spans if s["name"] == "invoke_agent desk"]:
        task = traces[span["traceId"]]
        span["events"] = [
            evaluated("helpful", judged(task), "pass" if judged(task) else "fail"),
            evaluated("scored", 5 * judged(task)),
        ]
        spans.append(evaluator(span, judged(task)))
    recorded.spans.write_text(json.dumps(document))
    labels = tmp_path / "people.csv"
    rows = [f"{trace},{human(task)}" for trace, task in traces.items() if task < N - 4]
    labels.write_text("trace,verdict\n" + "\n".join(rows) + "\n" + "f" * 32 + ",1\n")
    return recorded.spans, labels


NAMED = ("--column", "trace_id=trace", "--column", "human=verdict")


def test_events_and_evaluator_spans_are_held_against_people(files: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "judge.json"
    result = run(files[0], "--labels", files[1], *NAMED, "--out", out)
    assert result.exit_code == 0, result.output
    report = json.loads(out.read_text())
    jsonschema.validate(report, judge_schema())
    judges = {judge["name"]: judge for judge in report["judges"]}
    assert list(judges) == ["correct", "helpful", "scored"]
    fives = sum(judged(task) for task in range(N))
    table = [[0, 0], [0, 0]]
    for task in range(N - 4):
        table[judged(task)][human(task)] += 1
    for name in ("correct", "helpful"):
        found = judges[name]["agreement"]
        assert (judges[name]["n_trajectories"], judges[name]["n_unlabelled"]) == (N, 4)
        assert (found["both_fail"], found["both_pass"]) == (table[0][0], table[1][1])
        assert (found["judge_fail_human_pass"], found["judge_pass_human_fail"]) == (table[0][1], table[1][0])
        assert found["kappa"]["value"] == pytest.approx(cohens_kappa(table).kappa)
    assert (judges["scored"]["n_undecided"], judges["helpful"]["n_undecided"]) == (fives, 0), "5 is no verdict"
    assert [w["code"] for w in report["warnings"]] == ["labels_without_trajectory"]
    assert "helpful: 24 runs, 4 without a label" in result.stdout
    assert run(files[0], "--labels", files[1], *NAMED, "--format", "json").stdout == out.read_text()


def test_a_threshold_makes_scores_verdicts(files: tuple[Path, Path]) -> None:
    words = (files[0], "--labels", files[1], *NAMED, "--evaluation", "scored", "--threshold", 3, "--format", "json")
    (judge,) = json.loads(run(*words).stdout)["judges"]
    assert (judge["n_undecided"], judge["agreement"]["n"]) == (0, N - 4)


def test_mistakes_are_named(files: tuple[Path, Path], tmp_path: Path) -> None:
    spans, labels = files
    bare = record(tmp_path, "b", [[1]] * 3).spans
    twice = tmp_path / "twice.csv"
    twice.write_text(labels.read_text() + "f" * 32 + ",0\n")
    other = tmp_path / "other.csv"
    other.write_text("trace,verdict\n" + "e" * 32 + ",1\n")
    for error, text, words in (
        (UsageError, "Did you mean `helpful`", (spans, "--labels", labels, *NAMED, "--evaluation", "helpfull")),
        (RuleFileError, "no such column", (spans, "--labels", labels)),
        (RuleFileError, "labelled twice", (spans, "--labels", twice, *NAMED)),
        (NothingToGrade, "no evaluation", (bare, "--labels", labels, *NAMED)),
        (NothingToGrade, "no label is of", (spans, "--labels", other, *NAMED)),
        (UsageError, "does not go with", (spans, "--labels", labels, "--model", "m")),
        (UsageError, "--labels FILE", (spans,)),
    ):
        result = run(*words)
        assert isinstance(result.exception, error), (words, result.exception)
        assert text in str(result.exception)

"""Recorded evaluations become steps, whichever way they were recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.trajectory.spans import RESOURCE, TRACE, agent, build, chat, says, span
from tracegrade.app.trajectories import trajectories_from_paths
from tracegrade.model.span import LogRecord, SpanEvent
from tracegrade.model.trajectory import Step, Trajectory

EVENT = "gen_ai.evaluation.result"
SAID = {
    "gen_ai.evaluation.name": "relevance",
    "gen_ai.evaluation.score.value": 0.75,
    "gen_ai.evaluation.score.label": "pass",
    "gen_ai.evaluation.explanation": "it answers",
}


def evaluations(t: Trajectory) -> list[Step]:
    return [s for s in t.steps if s.kind == "evaluation"]


def log(**more: Any) -> LogRecord:
    return LogRecord(TRACE, f"{2:016x}", 15, EVENT, 9, None, {**SAID, **more}, RESOURCE, "judge", "1")


@pytest.mark.parametrize("way", ["span event", "log record", "both"])
def test_an_evaluation_event_is_one_step_of_the_judged_span(way: str) -> None:
    events = (SpanEvent(EVENT, 15, SAID),) if way != "log record" else ()
    logs = (log(),) if way != "span event" else ()
    t = build(agent(), chat(2, 10, 20, [says("user", "hi")], [says("assistant", "ok")], events=events, logs=logs))
    (step,) = evaluations(t)
    assert (step.name, step.score, step.text, step.status) == (
        "relevance",
        {"value": 0.75, "label": "pass"},
        "it answers",
        "ok",
    )
    assert step.span_ids == (f"{2:016x}",)


def test_two_results_are_two_steps_and_a_failed_evaluator_is_an_error() -> None:
    events = (SpanEvent(EVENT, 15, SAID), SpanEvent(EVENT, 16, {**SAID, "gen_ai.evaluation.score.value": 0.1}))
    failed = SpanEvent(EVENT, 17, {"gen_ai.evaluation.name": "tone", "error.type": "timeout"})
    t = build(agent(), chat(2, 10, 20, None, None, events=(*events, failed)))
    assert [(s.name, s.score, s.status) for s in evaluations(t)] == [
        ("relevance", {"value": 0.75, "label": "pass"}, "ok"),
        ("relevance", {"value": 0.1, "label": "pass"}, "ok"),
        ("tone", None, "error"),
    ]


@pytest.mark.parametrize(
    ("output", "score"),
    [
        ('{"score": 1, "label": "correct", "explanation": "why"}', {"value": 1, "label": "correct"}),
        ("0.5", {"value": 0.5}),
        ("correct", {"label": "correct"}),
        ('{"other": 1}', None),
    ],
)
def test_an_evaluator_span_gives_its_output_as_score(output: str, score: object) -> None:
    judge = span(
        3,
        "correctness",
        30,
        40,
        parent=1,
        openinference__span__kind="EVALUATOR",
        output__value=output,
    )
    (step,) = evaluations(build(agent(), judge))
    assert (step.name, step.score) == ("correctness", score)


def test_scores_of_langfuse_stand_on_what_they_judge(tmp_path: Path) -> None:
    observation = {"type": "AGENT", "startTime": "2026-01-01T00:00:00.000Z", "endTime": "2026-01-01T00:00:01.000Z"}
    trace = {
        "id": "1" * 32,
        "timestamp": "2026-01-01T00:00:00.000Z",
        "sessionId": "s",
        "observations": [
            {**observation, "id": "a" * 16, "name": "desk"},
            {**observation, "id": "b" * 16, "name": "answer", "parentObservationId": "a" * 16, "type": "GENERATION"},
        ],
        "scores": [
            {"name": "helpful", "value": 1, "dataType": "BOOLEAN", "timestamp": "2026-01-01T00:00:02.000Z"},
            {"name": "tone", "value": 0, "stringValue": "rude", "dataType": "CATEGORICAL", "observationId": "b" * 16},
        ],
    }
    file = tmp_path / "trace.json"
    file.write_text(json.dumps(trace))
    (t,) = trajectories_from_paths([str(file)])
    assert {(s.name, json.dumps(s.score), s.span_ids) for s in evaluations(t)} == {
        ("helpful", '{"value": true}', ("a" * 16,)),
        ("tone", '{"label": "rude"}', ("b" * 16,)),
    }


def test_feedback_of_mlflow_stands_on_the_root(tmp_path: Path) -> None:
    root = {
        "name": "desk",
        "trace_id": "1" * 32,
        "span_id": "a" * 16,
        "start_time_unix_nano": 1,
        "end_time_unix_nano": 9,
        "attributes": {"mlflow.spanType": '"AGENT"'},
    }
    feedback = {
        "assessment_name": "grounded",
        "feedback": {"value": False},
        "rationale": "no source",
        "create_time": "2026-01-01T00:00:00Z",
    }
    expectation = {"assessment_name": "expected", "expectation": {"value": "yes"}}
    file = tmp_path / "trace.json"
    file.write_text(
        json.dumps({"info": {"trace_id": "1" * 32, "assessments": [feedback, expectation]}, "data": {"spans": [root]}})
    )
    (t,) = trajectories_from_paths([str(file)])
    assert [(s.name, s.score, s.text) for s in evaluations(t)] == [("grounded", {"value": False}, "no source")]

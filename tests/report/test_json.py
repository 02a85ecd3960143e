"""The JSON of a report: what the types hold, byte for byte the same, integers exact, and as its schema says."""

from __future__ import annotations

import json as stdlib
from typing import Any

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

from tests.report.samples import BIG, check_report, show_report, trajectory
from tracegrade.model.report import (
    CheckReport,
    ShowReport,
    Warned,
    check_schema,
    diff_schema,
    show_schema,
)
from tracegrade.report import json
from tracegrade.report.build_diff import diff_report
from tracegrade.trajectory.diff import diff_trajectories

KEYS = {
    "schema", "inputs", "summary", "warnings", "trajectories", "unmatched", "trials", "rules", "tasks_sha256",
    "protocol", "coverage", "dialects", "tracegrade_version",
}  # fmt: skip
TRAJECTORY_KEYS = {
    "trajectory_id", "trace_ids", "conversation_id", "task_id", "trial", "complete", "gaps", "verdict", "invariants",
    "outcome", "tags", "cluster", "usage",
}  # fmt: skip
USAGE_KEYS = {
    "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "model_calls",
    "calls_without_usage", "complete", "cost_usd",
}  # fmt: skip
STEP_KEYS = {
    "kind", "seq", "tool", "call_id", "agent", "arguments", "arguments_state", "arguments_raw", "result",
    "result_state", "status", "status_evidence", "requested", "executed", "turn", "start_ns", "end_ns", "span_ids",
    "sources",
}  # fmt: skip


def test_it_has_the_keys_that_others_rely_on() -> None:
    record = stdlib.loads(json.render(check_report()))
    assert record.keys() >= KEYS
    assert "shown" not in record
    first = record["trajectories"][0]
    assert first.keys() >= TRAJECTORY_KEYS
    assert first["usage"].keys() >= USAGE_KEYS
    assert first["gaps"][0].keys() == {"code", "message", "count", "span_ids"}
    assert first["invariants"][0].keys() >= {"id", "verdict", "level", "measure", "findings"}
    assert first["outcome"].keys() >= {"verdict", "end_reason", "graders"}
    assert first["outcome"]["graders"][0]["differences"][0].keys() >= {"kind", "path", "expected", "observed"}
    assert record["inputs"][0]["skipped"][0].keys() == {"where", "id", "reason", "count"}
    step = stdlib.loads(json.render(show_report()))["trajectories"][0]["steps"][2]
    assert step.keys() >= STEP_KEYS


def test_it_is_what_the_types_hold() -> None:
    for report in (check_report(), show_report()):
        assert stdlib.loads(json.render(report)) == stdlib.loads(stdlib.dumps(report.model_dump()))


def test_it_reads_back_to_the_same_report() -> None:
    report = check_report()
    assert CheckReport.model_validate(stdlib.loads(json.render(report))) == report
    shown = show_report()
    assert ShowReport.model_validate(stdlib.loads(json.render(shown))) == shown


def test_integers_are_exact_at_any_size() -> None:
    step = stdlib.loads(json.render(show_report()))["trajectories"][0]["steps"][3]
    assert step["arguments"]["id"] == BIG


def test_it_is_as_its_schema_says() -> None:
    left, right = trajectory("left"), trajectory("right", other=True)
    diff = diff_report(left, right, diff_trajectories(left, right))
    for report, schema in ((check_report(), check_schema()), (show_report(), show_schema()), (diff, diff_schema())):
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.validate(stdlib.loads(json.render(report)), schema)


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), VALUES, max_size=3))
def test_any_value_comes_back_as_it_was(context: dict[str, Any]) -> None:
    report = ShowReport(warnings=(Warned(code="c", message="m", context=context),))
    text = json.render(report)
    assert stdlib.loads(text)["warnings"][0]["context"] == context
    assert text == json.render(report)


def test_what_is_no_number_is_null_and_a_lone_surrogate_stays_one() -> None:
    text = json.json_document({"a": float("nan"), "b": "\ud800", "c": 2**80})
    assert stdlib.loads(text) == {"a": None, "b": "\ud800", "c": 2**80}
    text.encode("utf-8")

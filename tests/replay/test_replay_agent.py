"""A new agent on recorded conversations: what it is given, what is a miss, and what the gate says."""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.replay.conftest import answer, desk_tape, recorder
from tests.replay.desk_agents import careful
from tracegrade.app.replay_agent import replay_agent
from tracegrade.app.replay_runs import AgentOptions
from tracegrade.app.replay_server import MISS_STATUS, serve
from tracegrade.app.trajectories import trajectories_from_paths
from tracegrade.errors import UsageError
from tracegrade.ingest.sdk import encode
from tracegrade.model.replay import AgentReport, replay_agent_schema
from tracegrade.model.values import canonical
from tracegrade.replay import session as session_module
from tracegrade.replay.faults import FaultPlan, RateLimited, emptied, malformed, parse_fault
from tracegrade.replay.session import Session
from tracegrade.replay.tape import RecordedFailure, ReplayMiss, Tape, record


class Nobody:
    """A watch that writes nothing."""

    from tracegrade.ingest.capture import SilentWatch as _Silent

    turn = _Silent.turn
    call = _Silent.call
    said = _Silent.said
    model = _Silent.model


def session(tape: Tape, *faults: str, seed: int = 0) -> Session:
    return Session(tape, FaultPlan([parse_fault(f) for f in faults], seed, "t"), Nobody())


# ---------------------------------------------------------------------- the tape


def test_strict_gives_each_recording_once_and_only_for_equal_arguments() -> None:
    tape = Tape((), (answer("get", {"id": 1}, "a"), answer("get", {"id": 2}, "b"), answer("get", {"id": 1.0}, "c")))
    here = session(tape)
    assert [here.call("get", {"id": i}) for i in (2, 1, 1)] == ["b", "a", "c"]
    with pytest.raises(ReplayMiss, match="more often"):
        here.call("get", {"id": 1})
    assert not tape.leftovers()


def test_first_in_first_out_ignores_arguments_and_keeps_the_order_of_each_tool() -> None:
    tape = Tape(
        (), (answer("get", {"id": 1}, "a"), answer("put", {}, "p"), answer("get", {"id": 2}, "b")), matching="fifo"
    )
    here = session(tape)
    assert [here.call("get", {"id": 9}), here.call("get", {"x": 1}), here.call("put", {"y": 1})] == ["a", "b", "p"]


def test_a_miss_names_the_nearest_and_fails_even_if_caught() -> None:
    tape = Tape((), (answer("get", {"id": 1, "of": {"a": 1}}, "a"), answer("get", {"id": 9, "of": {"a": 9}}, "b")))
    with pytest.raises(ReplayMiss, match=r"of\.a: recorded 1, asked 2"):
        session(tape).call("get", {"id": 1, "of": {"a": 2}})
    miss = tape.misses[0]
    assert (miss.nearest, miss.asked) == (
        {"id": 1, "of": {"a": 1}},
        {"tool": "get", "arguments": {"id": 1, "of": {"a": 2}}},
    )
    with pytest.raises(ReplayMiss, match="no recording of `put` is left"):
        session(tape).call("put")
    assert [(x.tool, x.count) for x in tape.leftovers()] == [("get", 1), ("get", 1)]


def test_what_was_not_captured_is_a_miss_and_a_failure_stays_one() -> None:
    tape = Tape(
        (), (answer("a", {}, None, known=False), answer("b", {}, None, failed=True), answer("c", {}, "no", failed=True))
    )
    with pytest.raises(ReplayMiss, match="not captured"):
        session(tape).call("a")
    with pytest.raises(RecordedFailure):
        session(tape).call("b")
    assert session(tape).call("c") == "no"


ARGUMENTS = st.dictionaries(st.sampled_from("ab"), st.integers(0, 2), max_size=2)


@given(calls=st.lists(st.tuples(st.sampled_from(["x", "y"]), ARGUMENTS), max_size=8), data=st.data())
def test_the_recorded_calls_in_any_order_all_match(calls: list[Any], data: Any) -> None:
    tape = Tape((), tuple(answer(tool, args, i) for i, (tool, args) in enumerate(calls)))
    here = session(tape)
    given = [here.call(tool, args) for tool, args in data.draw(st.permutations(calls))]
    assert sorted(given) == list(range(len(calls)))
    assert (tape.misses, tape.leftovers()) == ([], ())


def test_model_responses_follow_the_prompt_they_followed(shared: Path) -> None:
    trajectory = next(iter(trajectories_from_paths([str(shared / "traces" / "openai-v2-latest" / "good.jsonl")])))
    tape = record(trajectory)
    here = session(tape)
    messages: list[Any] = [{"role": "system", "content": "new words"}, {"role": "user", "content": tape.turns[0]}]
    texts = []
    for _ in range(10):
        response = here.respond(messages)
        if not response.calls:
            texts.append(response.text)
            break
        for call_id, tool, arguments in response.calls:
            result = here.call(tool, arguments)
            messages.append({"role": "tool", "tool_call_id": call_id, "content": json.dumps(result)})
    assert texts == ["Order W1 is cancelled and 54.04 was refunded."]
    assert (tape.misses, tape.leftovers()) == ([], ())
    with pytest.raises(ReplayMiss, match="no recorded model response is left"):
        here.respond(messages)
    with pytest.raises(ReplayMiss, match="follows this prompt"):
        session(record(trajectory)).respond([{"role": "user", "content": "something else"}])
    tape = record(trajectory)
    with pytest.raises(ReplayMiss, match="follows this prompt"):
        session(tape).respond([*messages[:-1], messages[-1] | {"content": '{"error": "late"}'}])
    (miss,) = tape.misses
    assert miss.asked == {"users": list(tape.turns), "results": 4, "other_results": ['{"error":"late"}']}
    assert miss.nearest["other_results"] == [canonical(trajectory.calls()[-1].result)]


# ---------------------------------------------------------------------- faults


@pytest.mark.parametrize("text", ["", "timeuot", "timeout@0", "429%0", "429%2", "timeout:get@x", "slow@1%0.5"])
def test_faults_that_cannot_be(text: str) -> None:
    with pytest.raises(UsageError, match="--fault"):
        parse_fault(text)


def test_faults_befall_the_call_they_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "SLOW_S", 0.0)
    gets = [answer("get", {}, {"id": 7, "n": [1]}) for _ in range(6)]
    tape = Tape((), (*gets, answer("put", {}, "ok")))
    faults = ("timeout:get@1", "429:get@2", "empty:get@3", "malformed:get@4", "slow:get@5")
    here = session(tape, *faults)
    with pytest.raises(TimeoutError):
        here.call("get")
    with pytest.raises(RateLimited):
        here.call("get")
    assert here.call("put") == "ok"
    assert [here.call("get") for _ in range(4)] == [{}, {"id": "7", "n": [1]}, {"id": 7, "n": [1]}, {"id": 7, "n": [1]}]
    assert [(f.kind, f.call) for f in here.faults] == [
        ("timeout", 1),
        ("429", 2),
        ("empty", 3),
        ("malformed", 4),
        ("slow", 5),
    ]
    assert len(tape.leftovers()) == 1  # calls that did not get through used no recording up
    assert tape.leftovers()[0].count == 2


def test_faults_by_chance_are_the_same_for_a_seed() -> None:
    def hits(seed: int) -> list[bool]:
        plan = FaultPlan([parse_fault("429%0.3")], seed, "t")
        return [plan.next("get")[0] is not None for _ in range(200)]

    assert hits(1) == hits(1) != hits(2)
    assert 35 < sum(hits(1)) < 90


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=3),
        lambda x: st.lists(x, max_size=2) | st.dictionaries(st.text(max_size=2), x, max_size=2),
    )
)
def test_broken_results_differ_and_empty_ones_are_empty(value: Any) -> None:
    assert not emptied(value)
    if value not in ("", {}) and not (isinstance(value, str) and len(value) < 1):
        assert malformed(value) != value


# ---------------------------------------------------------------------- the gate


def run(recording: Path, rules: Path, agent: str, **options: Any) -> AgentReport:
    report = replay_agent(
        AgentOptions(
            agent=f"desk_agents:{agent}", paths=[str(recording)], invariants=[str(rules)], processes=1, **options
        )
    )
    jsonschema.validate(json.loads(report.model_dump_json()), replay_agent_schema())
    return report


def test_the_same_agent_passes_and_leaves_nothing_over(
    recording: Path, rules: Path, here: Path, tmp_path: Path
) -> None:
    out = tmp_path / "new.jsonl.gz"
    report = run(recording, rules, "careful", out=out)
    assert (report.verdict, report.exit_code, report.reasons, report.warnings) == ("pass", 0, (), ())
    trial = report.trials[0]
    assert (trial.status, trial.divergence, trial.changed, trial.leftovers) == ("replayed", None, (), ())
    assert report.recorded_verdicts == report.new_verdicts == {"pass": 2}
    new = list(trajectories_from_paths([str(out)]))
    assert [t.trajectory_id for t in new] == [trial.new_trajectory_id]
    assert new[0].complete
    assert [c.tool for c in new[0].calls()] == ["verify_identity", "get_order", "cancel_order"]


def test_an_agent_that_drops_the_confirmation_fails_naming_rule_and_step(
    recording: Path, rules: Path, here: Path
) -> None:
    report = run(recording, rules, "hasty")
    assert (report.verdict, report.exit_code) == ("fail", 1)
    trial = report.trials[0]
    assert [(c.what, c.before, c.after) for c in trial.changed] == [("confirmed", "pass", "fail")]
    assert "confirmed: pass → fail" in report.reasons[0]
    assert "cancel_order" in report.reasons[0]
    assert trial.divergence is not None
    assert "Shall I cancel it?" in str(trial.divergence.recorded)


def test_a_miss_is_an_error_of_the_replay_and_no_score(recording: Path, rules: Path, here: Path) -> None:
    report = run(recording, rules, "curious")
    assert (report.verdict, report.exit_code) == ("inconclusive", 3)
    trial = report.trials[0]
    assert (trial.status, trial.changed) == ("miss", ())
    assert trial.misses[0].nearest == {"order_id": "W1"}
    assert {x.tool for x in trial.leftovers} == {"verify_identity", "get_order", "cancel_order"}
    assert report.new_verdicts == {}


@pytest.mark.parametrize(
    ("agent", "status", "message"),
    [
        ("broken", "error", "the agent is broken"),
        ("crashing", "crash", "process ended"),
        ("hanging", "timeout", "0.5 s"),
    ],
)
def test_an_agent_that_breaks_costs_only_its_trial(
    recording: Path, rules: Path, here: Path, agent: str, status: str, message: str
) -> None:
    report = run(recording, rules, agent, limit_s=0.5 if agent == "hanging" else 20)
    assert (report.verdict, report.trials[0].status) == ("inconclusive", status)
    assert message in report.trials[0].message


def test_two_replays_give_the_same_bytes(recording: Path, rules: Path, here: Path) -> None:
    one, two = (run(recording, rules, "hasty", faults=[parse_fault("slow%0.5")]).model_dump_json() for _ in range(2))
    assert one == two


def test_faults_reach_the_agent_and_are_reported(recording: Path, rules: Path, here: Path) -> None:
    report = run(recording, rules, "patient", faults=[parse_fault("timeout:get_order@1")])
    assert [(f.kind, f.tool, f.call) for f in report.trials[0].faults] == [("timeout", "get_order", 1)]
    assert report.trials[0].status == "replayed"
    assert report.warnings == ("1 recorded calls were not asked for, in 1 of 1 runs: did the agent do its task?",)


def test_an_instrumented_agents_own_spans(recording: Path, rules: Path, here: Path, tmp_path: Path) -> None:
    out = tmp_path / "new.pb"
    report = run(recording, rules, "own_tracer", own_spans=True, out=out)
    assert report.trials[0].status == "replayed"
    new = next(iter(trajectories_from_paths([str(out)])))
    assert [c.tool for c in new.calls()] == ["get_order"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "one of --agent"),
        ({"agent": "desk_agents:careful", "command": ["x"]}, "one of --agent"),
        ({"agent": "desk_agents"}, "module:name"),
        ({"agent": "no_such_module:x"}, "cannot be imported"),
        ({"agent": "desk_agents:no_such"}, "has no `no_such`"),
        ({"command": ["/no/such/program"]}, "cannot be run"),
    ],
)
def test_agents_that_cannot_be(recording: Path, here: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        replay_agent(AgentOptions(paths=[str(recording)], processes=1, **options))


def test_an_incomplete_trajectory_is_not_replayed(rules: Path, here: Path, tmp_path: Path, shared: Path) -> None:
    path = shared / "traces" / "pydantic-ai-nocontent" / "good.jsonl"
    report = run(path, rules, "careful")
    assert (report.verdict, report.exit_code) == ("inconclusive", 3)
    assert {t.status for t in report.trials} == {"not_replayable"}
    assert all("not recorded" in t.message or "not complete" in t.message for t in report.trials)


# ---------------------------------------------------------------------- programs


def test_a_program_on_the_loopback_endpoint(rules: Path, here: Path, tmp_path: Path, shared: Path) -> None:
    path = shared / "traces" / "openai-v2-latest" / "good.jsonl"
    out = tmp_path / "new.pb"
    command = [sys.executable, str(here / "desk_program.py")]
    report = replay_agent(
        AgentOptions(command=command, paths=[str(path)], invariants=[str(rules)], processes=1, out=out)
    )
    trial = report.trials[0]
    assert (trial.status, trial.misses, trial.leftovers, trial.divergence) == ("replayed", (), (), None)
    new = next(iter(trajectories_from_paths([str(out)])))
    assert [c.tool for c in new.calls()] == ["verify_identity", "get_order", "cancel_order", "refund"]
    assert {s.name for s in new.steps if s.kind == "agent"} == {"invoke_agent desk"} or new.complete


def test_a_program_without_spans_is_seen_by_what_it_asks(rules: Path, here: Path, tmp_path: Path, shared: Path) -> None:
    program = tmp_path / "silent.py"
    program.write_text((here / "desk_program.py").read_text().replace("OTLPSpanExporter()", "InMemorySpanExporter()"))
    text = program.read_text()
    program.write_text(
        text.replace(
            "from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter",
            "from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter",
        )
    )
    path = shared / "traces" / "openai-v2-latest" / "good.jsonl"
    out = tmp_path / "new.pb"
    options = AgentOptions(
        command=[sys.executable, str(program)], paths=[str(path)], invariants=[str(rules)], processes=1, out=out
    )
    report = replay_agent(options)
    assert report.trials[0].status == "replayed", report.trials[0].message
    assert report.recorded_verdicts == report.new_verdicts
    new = next(iter(trajectories_from_paths([str(out)])))
    assert [c.tool for c in new.calls()] == ["verify_identity", "get_order", "cancel_order", "refund"]
    assert new.usage.model_calls == 5
    assert new.usage.input_tokens == 1000


def test_a_program_that_fails(rules: Path, recording: Path, tmp_path: Path) -> None:
    options = AgentOptions(
        command=[sys.executable, "-c", "import sys; sys.exit('no luck')"],
        paths=[str(recording)],
        invariants=[str(rules)],
    )
    trial = replay_agent(options).trials[0]
    assert trial.status == "error"
    assert "ended with 1: no luck" in trial.message


# ---------------------------------------------------------------------- the endpoint


def post(url: str, body: Any) -> tuple[int, Any]:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request) as found:
            return found.status, json.loads(found.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def test_the_endpoint_answers_misses_and_faults_with_their_own_codes() -> None:
    tape = Tape((), (answer("get", {"id": 1}, {"a": "ü"}), answer("get", {"id": 2}, None, failed=True)))
    with serve(session(tape, "timeout:slow@1", "429:busy@1")) as (address, _):
        assert post(f"{address}/tools/get", {"id": 1}) == (200, {"a": "ü"})
        for name, arguments, status in (
            ("get", {"id": 1}, MISS_STATUS), ("get", {"id": 2}, 500), ("slow", {}, 504), ("busy", {}, 429),
        ):  # fmt: skip
            code, body = post(f"{address}/tools/{name}", arguments)
            assert (code, "message" in body["error"]) == (status, True)
        assert post(f"{address}/v1/chat/completions", {"messages": []})[0] == MISS_STATUS
        assert post(f"{address}/v1/chat/completions", {})[0] == 400
        assert post(f"{address}/elsewhere", {})[0] == 404
    with pytest.raises(urllib.error.URLError):
        post(f"{address}/tools/get", {"id": 1})


def test_streaming_gives_the_response_in_one_piece() -> None:
    from tracegrade.replay.tape import ModelResponse

    tape = Tape((), (), (ModelResponse("hi", (("c1", "get", {"id": 1}),), ("hello",), (), 3, 4, "m"),))
    with serve(session(tape)) as (address, _):
        body = json.dumps({"messages": [{"role": "user", "content": "hello"}], "stream": True}).encode()
        request = urllib.request.Request(f"{address}/v1/chat/completions", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as found:
            lines = [x.removeprefix("data: ") for x in found.read().decode().split("\n\n") if x]
    assert lines[-1] == "[DONE]"
    chunk = json.loads(lines[0])
    delta = chunk["choices"][0]["delta"]
    assert (delta["content"], delta["tool_calls"][0]["index"]) == ("hi", 0)
    assert json.loads(delta["tool_calls"][0]["function"]["arguments"]) == {"id": 1}
    assert chunk["usage"] == {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}


def test_captured_spans_hold_turns_calls_and_what_was_said(tmp_path: Path) -> None:
    with recorder() as (watch, exporter):
        careful(Session(desk_tape(), FaultPlan([], 0, ""), watch))
    path = tmp_path / "spans.pb"
    path.write_bytes(encode(exporter))
    found = next(iter(trajectories_from_paths([str(path)])))
    shown = [(s.kind, s.role or s.tool or "") for s in found.steps if s.kind in ("message", "tool_call")]
    assert shown == [
        ("message", "user"),
        ("tool_call", "verify_identity"),
        ("tool_call", "get_order"),
        ("message", "assistant"),
        ("message", "user"),
        ("tool_call", "cancel_order"),
        ("message", "assistant"),
    ]
    assert found.complete
    assert record(found) == desk_tape_with_responses(found)


def desk_tape_with_responses(found: Any) -> Tape:
    tape = desk_tape()
    return Tape(tape.turns, tape.answers, record(found).responses)

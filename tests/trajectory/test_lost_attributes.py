"""One kind of attribute lost on its way: verdicts stay, or become unknown; none turns into another."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from tests.trajectory.spans import agent, answers, build, chat, says, without
from tests.trajectory.test_shared_traces import STACKS, TRACES
from tracegrade.app.load import load, load_spans
from tracegrade.app.trajectories import iter_trajectories
from tracegrade.checks.load import load_packs, parse_pack, rules_of
from tracegrade.checks.run import run_checks
from tracegrade.model.span import Span
from tracegrade.model.verdict import Verdict
from tracegrade.store import Store

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "traces"
FILES = sorted(
    str(f.relative_to(FIXTURES))
    for d in ("otel-genai", "openinference", "openllmetry")
    for f in (FIXTURES / d).glob("*.jsonl")
    if "repeats" not in f.name  # `recovers` reads twice, too, and costs less
)


def spans_of(path: Path) -> list[Span]:
    with Store.open(None) as store:
        load(store, [str(path)])
        return [s for trace in store.traces() for s in trace]


def pack_for(spans: list[Span]) -> str:
    """Rules over whatever tools the spans call, so that the law does not hang on one scenario."""
    tools = sorted({c.tool or "" for c in build(*spans).calls()}) or ["refund"]
    first, last, n = tools[0], tools[-1], len(build(*spans).calls())
    return f"""
version: 1
pack: law
invariants:
  - {{id: before, kind: precedes, why: order, first: {{tool: {first}}}, then: {{tool: {last}}}}}
  - {{id: after, kind: precedes, why: order, first: {{tool: {last}}}, then: {{tool: {first}}}}}
  - {{id: needed, kind: required, why: presence, action: {{tool: {last}}}}}
  - {{id: once, kind: count, why: bounds, action: {{tool: "*"}}, max: {n}}}
  - {{id: fine, kind: forbidden, why: status, action: {{tool: "*", status: error}}}}
  - {{id: then, kind: follows, why: order, when: {{tool: {first}}}, then: {{tool: {last}}}}}
  - {{id: said, kind: claims, why: words, when: {{matches: "."}}, requires: {{tool: {last}}}}}
  - {{id: asked, kind: precedes, why: words, first: {{message: user, text: {{matches: "."}}}}, then: {{tool: {last}}}}}
"""


def verdicts(spans: list[Span], pack: str) -> dict[str, list[Verdict]]:
    rules = [*parse_pack(pack).invariants, *rules_of(load_packs(("core",)))]
    found: dict[str, list[Verdict]] = defaultdict(list)
    with Store.open(None) as store:
        load_spans(store, spans)
        for trajectory in iter_trajectories(store):
            for result in run_checks(trajectory, rules):
                found[result.id].append(result.result.verdict)
    return {rule: sorted(v) for rule, v in found.items()}


def turned(spans: list[Span]) -> list[str]:
    pack = pack_for(spans)
    whole = verdicts(spans, pack)
    wrong = []
    for key in sorted({k for s in spans for k in s.attributes}):
        less = verdicts([without(s, key) for s in spans], pack)
        wrong += [
            f"{key}: {rule} {whole[rule]} -> {less[rule]}"
            for rule in whole.keys() & less.keys()
            if less[rule] != whole[rule] and "unknown" not in less[rule]
        ]
    return wrong


@pytest.mark.parametrize("name", FILES)
def test_no_lost_attribute_turns_a_verdict(name: str) -> None:
    assert turned(spans_of(FIXTURES / name)) == []


@pytest.mark.slow
@pytest.mark.parametrize("stack", list(STACKS) or ["absent"])
def test_no_lost_attribute_turns_a_verdict_of_any_stack(stack: str, shared: Path) -> None:
    for behaviour, entry in STACKS[stack]["behaviours"].items():
        if behaviour in ("good", "unverified", "parallel", "error_retry"):
            paths = [TRACES / f for f in entry["files"].values() if f.endswith(".pb")]
            spans = [s for path in paths for s in spans_of(path)]
            if build(*spans).calls():
                assert turned(spans) == [], behaviour


ASK = {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "refund", "arguments": {"n": 1}}]}
BLANK = {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "arguments": {"n": 1}}]}
NO_ID = {"role": "assistant", "parts": [{"type": "tool_call", "name": "refund", "arguments": {"n": 1}}]}
HELLO = says("user", "hello")


@pytest.mark.parametrize(("first", "second"), [(ASK, BLANK), (BLANK, ASK), (ASK, NO_ID), (NO_ID, ASK), (BLANK, NO_ID)])
def test_copies_of_a_request_complete_each_other(first: object, second: object) -> None:
    t = build(
        agent(),
        chat(2, 10, 20, [HELLO], [first]),
        chat(3, 30, 40, [HELLO, second, answers("c1", "done")], [says("assistant", "ok")]),
    )
    (call,) = t.calls()
    assert (call.tool, call.arguments, call.executed, call.result) == ("refund", {"n": 1}, True, "done")


def test_a_call_whose_name_is_nowhere_may_be_any_tool() -> None:
    t = build(
        agent(),
        chat(2, 10, 20, [HELLO], [BLANK]),
        chat(3, 30, 40, [HELLO, BLANK, answers("c1", "done")], [says("assistant", "ok")]),
    )
    (call,) = t.calls()
    assert call.tool is None
    assert "tool_name_not_captured" in {g.code for g in t.gaps}
    pack = """
version: 1
pack: p
invariants:
  - {id: never, kind: forbidden, why: w, action: {tool: refund}}
  - {id: must, kind: required, why: w, action: {tool: refund}}
"""
    assert {r.id: r.result.verdict for r in run_checks(t, parse_pack(pack).invariants)} == {
        "never": "unknown",
        "must": "unknown",
    }


@pytest.mark.parametrize("role", [None, "[REDACTED]", "⟦word:1a⟧"])
def test_a_message_whose_role_is_lost_proves_nothing(role: str | None) -> None:
    message = {"parts": [{"type": "text", "content": "yes"}], **({"role": role} if role else {})}
    t = build(
        agent(),
        chat(2, 10, 20, [message], [ASK]),
        chat(3, 30, 40, [message, ASK, answers("c1", "done")], [says("assistant", "ok")]),
    )
    pack = """
version: 1
pack: p
invariants:
  - {id: confirmed, kind: precedes, why: w, first: {message: user, text: {matches: yes}}, then: {tool: refund}}
"""
    (result,) = run_checks(t, parse_pack(pack).invariants)
    assert result.result.verdict == "unknown"


def test_a_copy_with_an_id_belongs_to_the_request_that_learned_this_id_before() -> None:
    def asked(n: int | None) -> dict[str, object]:
        part = {"type": "tool_call", "name": "read", "arguments": {"n": 1}}
        return {"role": "assistant", "parts": [part if n is None else part | {"id": f"c{n}"}]}

    one, two = [asked(1), answers("c1", "first")], [asked(2), answers("c2", "second")]
    t = build(
        agent(),
        chat(2, 10, 20, [HELLO], [asked(None)]),
        chat(3, 30, 40, [HELLO, *one], [asked(None)]),
        chat(4, 50, 60, [HELLO, *one, *two], [says("assistant", "ok")]),
    )
    assert [(c.call_id, c.result) for c in t.calls()] == [("c1", "first"), ("c2", "second")]

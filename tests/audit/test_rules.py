"""Each rule on telemetry that has its fault, and none on telemetry that has none."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.audit.telemetry import agent_run, audit, edited, found, loud, span
from tracegrade.audit.catalog import FAMILIES, rules
from tracegrade.model.span import Span, SpanEvent, SpanLink


def with_attributes(where: str, **values: Any) -> Callable[[Span], Span]:
    """Sets attributes (`a__b` is `a.b`; None takes one out) on spans whose name begins with something."""

    def edit(s: Span) -> Span:
        if not s.name.startswith(where):
            return s
        new = dict(s.attributes)
        for key, value in values.items():
            name = key.replace("__", ".")
            if value is None:
                new.pop(name, None)
            else:
                new[name] = value
        return replace(s, attributes=new)

    return edit


def with_fields(where: str, **fields: Any) -> Callable[[Span], Span]:
    return lambda s: replace(s, **fields) if s.name.startswith(where) else s


def silent(s: Span) -> Span:
    """A span without content."""
    drop = ("messages", "arguments", "result")
    return replace(s, attributes={k: v for k, v in s.attributes.items() if not k.endswith(drop)})


SAID = '[{"role": "assistant", "parts": [{"type": "text", "content": "so be it"}]}]'
FAULTS: dict[str, Callable[[Span], Span]] = {
    "orphan-spans": with_fields("execute_tool", parent_span_id="f" * 16),
    "unfinished-span": with_fields("execute_tool", end_ns=None),
    "negative-duration": with_fields("execute_tool", start_ns=50, end_ns=40),
    "dropped-data": with_fields("chat", dropped_attributes=3),
    "truncated-value": with_attributes("execute_tool", gen_ai__tool__call__arguments='{"n": "lo'),
    "broken-json": with_attributes("execute_tool", gen_ai__tool__call__arguments="{'n': 1}"),
    "several-roots": with_fields("execute_tool", parent_span_id=None),
    "child-outside-parent": with_fields("execute_tool", end_ns=2000),
    "link-to-nowhere": lambda s: replace(s, links=(SpanLink(s.trace_id, "e" * 16, {}),)),
    "sampled": with_fields("chat", trace_state="ot=th:8"),
    "missing-required": with_attributes("chat", gen_ai__provider__name=None),
    "missing-recommended": with_attributes("chat", server__address=None),
    "renamed-attribute": with_attributes("chat", gen_ai__system="openai"),
    "deprecated-attribute": with_attributes("chat", gen_ai__prompt="hello"),
    "wrong-type": with_attributes("chat", gen_ai__usage__input_tokens="12"),
    "unknown-value": with_attributes("chat", gen_ai__provider__name="acme"),
    "unknown-attribute": with_attributes("chat", gen_ai__usage__imput_tokens=3),
    "span-kind": with_fields("execute_tool", kind=3),
    "span-name": with_fields("chat", name="chat completion"),
    "replaced-event": with_fields("chat", events=(SpanEvent("gen_ai.choice", 1, {}),)),
    "arguments-not-recorded": silent,
    "results-not-recorded": silent,
    "messages-not-recorded": silent,
    "usage-missing": with_attributes("chat", gen_ai__usage__input_tokens=None, gen_ai__usage__output_tokens=None),
    "call-ids-missing": lambda s: silent(with_attributes("execute_tool", gen_ai__tool__call__id=None)(s)),
    "conversation-id-missing": with_attributes("invoke_agent", gen_ai__conversation__id=None),
    "aggregate-usage": with_attributes("invoke_agent", gen_ai__usage__input_tokens=25),
    "credential": with_attributes("execute_tool", gen_ai__tool__call__result="use ghp_" + "a1B2" * 9),
    "personal-data": with_attributes("execute_tool", gen_ai__tool__call__result="bob@example.com"),
    "span-without-request": with_attributes("chat", gen_ai__output__messages=SAID, gen_ai__input__messages=SAID),
}


def test_good_telemetry_has_no_finding_above_a_note() -> None:
    report = audit([s for t in range(1, 4) for s in agent_run(t)])
    assert loud(report) == set()
    assert report.verdict == "pass"
    assert report.summary.score == 1.0


@pytest.mark.parametrize("rule", sorted(FAULTS))
def test_a_fault_is_found_where_it_is(rule: str) -> None:
    clean = [s for t in range(1, 4) for s in agent_run(t)]
    assert found(audit(clean), rule) == []
    findings = found(audit(edited(clean, FAULTS[rule])), rule)
    assert findings
    for finding in findings:
        assert finding.why
        assert finding.fix
        assert finding.count >= 1
    if rule != "unknown-attribute":
        assert findings[0].context["service"] == "shop"
        assert findings[0].context["scope"] == "acme"
        assert findings[0].context["examples"][0]["span_id"]


def test_orphans_are_told_by_their_missing_parent() -> None:
    spans = agent_run(1, ["a", "b", "c"])
    (finding,) = found(audit(edited(spans, FAULTS["orphan-spans"])), "orphan-spans")
    assert finding.count == 3
    assert finding.context["missing_parents"] == ["f" * 16]
    assert "3 spans" in str(finding.observed)


def test_clocks_of_two_hosts_are_skew_and_not_a_child_outside() -> None:
    far = {"service.name": "tools", "service.instance.id": "two", "host.name": "far"}
    report = audit(edited(agent_run(1), with_fields("execute_tool", end_ns=2000, resource=far)))
    assert found(report, "clock-skew")
    assert not found(report, "child-outside-parent")


def test_a_call_that_only_messages_show_is_told() -> None:
    spans = [s for s in agent_run(1) if not s.name.startswith("execute_tool")]
    assert found(audit(spans), "call-without-span")[0].count == 1


def test_copies_and_reused_ids_are_told() -> None:
    spans = agent_run(1)
    report = audit([*spans, *spans])
    assert found(report, "duplicate-spans")[0].count == len(spans)
    other = [replace(s, name=s.name + " again") for s in spans[:1]]
    assert found(audit([*spans, *other]), "id-reuse")[0].count == 1


def test_no_telemetry_fails_whatever_the_level() -> None:
    for spans in ([], [span(1, 1, "GET /")]):
        report = audit(spans, fail_on="never")
        assert report.verdict == "fail"
        assert report.summary.exit_code == 1
        assert report.findings[0].rule == "no-telemetry"


def test_content_is_an_error_only_where_none_may_be() -> None:
    spans = agent_run(1)
    assert not found(audit(spans), "content-present")
    findings = found(audit(spans, no_content=True), "content-present")
    assert {f.context["attribute"] for f in findings} >= {"gen_ai.tool.call.arguments", "gen_ai.input.messages"}
    assert not found(audit(edited(spans, silent), no_content=True), "content-present")


def test_a_secret_is_told_without_its_value() -> None:
    report = audit(edited(agent_run(1), FAULTS["credential"]))
    assert report.summary.exit_code == 1
    assert "a1B2a1B2" not in report.model_dump_json()


def test_the_switch_of_the_instrumentation_is_named() -> None:
    spans = edited(agent_run(1), lambda s: replace(silent(s), scope_name="pydantic-ai"))
    (finding,) = found(audit(spans), "arguments-not-recorded")
    assert "include_content=True" in finding.fix


def test_what_the_conventions_say_depends_on_the_version() -> None:
    spans = edited(agent_run(1), FAULTS["renamed-attribute"])
    assert found(audit(spans, semconv="1.37"), "renamed-attribute")
    assert not found(audit(spans, semconv="1.36"), "renamed-attribute")


def test_rules_that_lack_evidence_are_told_with_the_fix_worth_most(tmp_path: Any) -> None:
    pack = tmp_path / "rules.yaml"
    pack.write_text(
        json.dumps(
            {
                "version": 1,
                "pack": "p",
                "invariants": [
                    {"id": "small", "kind": "forbidden", "action": {"tool": "get_order", "args": {"n": {"gt": 5}}}},
                    {"id": "called", "kind": "required", "action": {"tool": "get_order"}},
                ],
                "examples": [],
            }
        )
    )
    report = audit([s for t in (1, 2) for s in edited(agent_run(t), silent)], invariants=[str(pack)])
    rows = {d.invariant: d for d in report.decidability}
    assert (rows["small"].decidable, rows["small"].undecidable, rows["small"].missing) == (0, 2, ("arguments",))
    assert rows["called"].decidable == 2
    assert report.summary.score == 0.5
    assert (report.todo[0].evidence, report.todo[0].verdicts, report.todo[0].alone) == ("arguments", 2, 2)
    assert found(report, "rule-undecidable")[0].level == "warning"


def test_every_rule_has_a_file_an_id_and_texts() -> None:
    ids = [r.id for r in rules()]
    assert len(ids) == len(set(ids))
    for rule in rules():
        assert rule.family in FAMILIES
        assert rule.summary.endswith(".")
        assert rule.why.endswith(".")
        assert rule.fix.endswith(".")
        assert (rule.look is None) != (rule.conclude is None)

"""The command: exit codes, formats, profiles, floors, waivers; and what is written down of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.audit.telemetry import agent_run, audit
from tests.test_rules_of_the_house import REPO, script
from tracegrade.audit.semconv import conventions, versions
from tracegrade.errors import UsageError
from tracegrade.ingest.otlp_write import write_spans
from tracegrade.model.span import Span
from tracegrade.pytest_plugin import TracegradeAudit

ARGUMENTS = "gen_ai.tool.call.arguments"
RUNS = [s for t in range(1, 9) for s in agent_run(t)]
Cli = Callable[..., Any]


def without(spans: list[Span], *names: str) -> list[Span]:
    return [replace(s, attributes={k: v for k, v in s.attributes.items() if k not in names}) for s in spans]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("telemetry")
    found = {name: folder / f"{name}.jsonl" for name in ("good", "bare", "empty")}
    write_spans(RUNS, found["good"])
    write_spans(without(RUNS, ARGUMENTS, "gen_ai.output.messages", "gen_ai.input.messages"), found["bare"])
    found["empty"].write_text("")
    return found


def test_good_telemetry_exits_0_and_no_telemetry_1(run_cli: Cli, files: dict[str, Path]) -> None:
    assert run_cli("audit", files["good"]).exit_code == 0
    nothing = run_cli("audit", files["empty"])
    assert nothing.exit_code == 1
    assert "no-telemetry" in nothing.stdout


def test_a_file_that_cannot_be_read_exits_2(run_cli: Cli, files: dict[str, Path], tmp_path: Path) -> None:
    noise = tmp_path / "noise.bin"
    noise.write_bytes(b"\xff\xfe not spans")
    assert run_cli("audit", noise).exit_code == 2
    assert run_cli("audit", noise, files["good"]).exit_code == 2


def test_lost_arguments_exit_1_and_name_the_evidence(run_cli: Cli, files: dict[str, Path]) -> None:
    result = run_cli("audit", files["bare"], "--baseline", files["good"], "--format", "json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert report["verdict"] == "fail"
    lost = {f["context"]["attribute"] for f in report["findings"] if f["rule"].endswith("-vanished")}
    assert {ARGUMENTS, "@arguments"} <= lost
    (row,) = [r for r in report["coverage"] if r["attribute"] == ARGUMENTS]
    assert (row["present"], row["total"], row["baseline_present"], row["baseline_total"]) == (0, 8, 8, 8)


def test_a_profile_is_as_good_as_its_files_for_what_is_lost(
    run_cli: Cli, files: dict[str, Path], tmp_path: Path
) -> None:
    saved = tmp_path / "telemetry.profile.json"
    assert run_cli("audit", "profile", files["good"], "--out", saved).exit_code == 0
    text = saved.read_text(encoding="utf-8")
    for span in RUNS:
        assert span.trace_id not in text
        assert span.span_id not in text
        for value in span.attributes.values():
            if isinstance(value, str) and value.startswith(("conversation", "k", "r1", "[", "{")):
                assert json.dumps(value) not in text
    rules = []
    for baseline in (saved, files["good"]):
        report = json.loads(run_cli("audit", files["bare"], "--baseline", baseline, "--format", "json").stdout)
        rules.append({(f["rule"], f["context"].get("attribute")) for f in report["findings"] if f["level"] == "error"})
    assert rules[0] == rules[1] != set()


def test_a_database_is_a_baseline_too(run_cli: Cli, files: dict[str, Path], tmp_path: Path) -> None:
    db = tmp_path / "old.duckdb"
    assert run_cli("audit", files["good"], "--db", db).exit_code == 0
    assert run_cli("audit", files["bare"], "--baseline", db).exit_code == 1
    assert run_cli("audit", "--db", db, "--baseline", files["good"]).exit_code == 0


def test_a_baseline_without_a_trajectory_is_refused(run_cli: Cli, files: dict[str, Path]) -> None:
    result = run_cli("audit", files["good"], "--baseline", files["empty"])
    assert result.exit_code == 2
    assert "nothing can be compared" in result.stderr


def test_json_fits_its_schema_and_is_the_same_each_time(run_cli: Cli, files: dict[str, Path], tmp_path: Path) -> None:
    words = ("audit", files["bare"], "--baseline", files["good"], "--format", "json")
    first = run_cli(*words).stdout
    assert first == run_cli(*words).stdout
    schema = json.loads((REPO / "schemas" / "audit.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(json.loads(first), schema)
    profile = json.loads(run_cli("audit", "profile", files["good"]).stdout)
    jsonschema.validate(profile, json.loads((REPO / "schemas" / "profile.schema.json").read_text()))


def test_every_format_tells_the_failure(run_cli: Cli, files: dict[str, Path], tmp_path: Path) -> None:
    outs = {e: tmp_path / f"report.{e}" for e in ("xml", "sarif", "md", "txt", "json")}
    words = [w for path in outs.values() for w in ("--out", path)]
    assert run_cli("audit", files["bare"], "--baseline", files["good"], *words).exit_code == 1
    suite = ET.fromstring(outs["xml"].read_text(encoding="utf-8"))
    assert int(suite.get("failures", "0")) >= 2
    log = json.loads(outs["sarif"].read_text(encoding="utf-8"))
    assert {"evidence-vanished", "attribute-vanished"} <= {r["ruleId"] for r in log["runs"][0]["results"]}
    assert "❌" in outs["md"].read_text(encoding="utf-8")
    assert "Audit failed" in outs["txt"].read_text(encoding="utf-8")
    refused = run_cli("audit", files["good"], "--out", tmp_path / "page.html")
    assert refused.exit_code == 2
    assert not (tmp_path / "page.html").exists()


def test_text_of_a_trace_does_not_act_on_a_terminal_or_a_document(run_cli: Cli, tmp_path: Path) -> None:
    evil = "\x1b[31m<b>|`x`]]>\x00"
    spans = [replace(s, scope_name=evil, resource={"service.name": evil}) for s in without(RUNS, ARGUMENTS)]
    path = tmp_path / "evil.jsonl"
    write_spans([replace(s, attributes={**s.attributes, "gen_ai.system": evil}) for s in spans], path)
    for name in ("text", "json", "junit", "sarif", "markdown"):
        out = run_cli("audit", path, "--format", name).stdout
        assert "\x1b" not in out
        assert "\x00" not in out
        if name == "junit":
            ET.fromstring(out)


def test_floors_only_rise(run_cli: Cli, files: dict[str, Path], tmp_path: Path) -> None:
    floors = tmp_path / "floors.json"
    words = ("--ratchet", floors, "--only", "ratchet-slipped")
    assert run_cli("audit", files["bare"], *words).exit_code == 0
    low = json.loads(floors.read_text())["floors"]
    assert low["calls_with_arguments"] == 0.0
    assert run_cli("audit", files["good"], *words).exit_code == 0
    high = json.loads(floors.read_text())["floors"]
    assert high["calls_with_arguments"] == 1.0
    slipped = run_cli("audit", files["bare"], *words)
    assert slipped.exit_code == 1
    assert "calls_with_arguments" in slipped.stdout
    assert json.loads(floors.read_text())["floors"] == high


def test_a_waiver_covers_until_its_day_and_an_idle_one_is_told(tmp_path: Path) -> None:
    path = tmp_path / "waivers.yaml"
    path.write_text(
        "waivers:\n"
        "  - {rule: arguments-*, service: sh*, owner: desk, reason: in review, expires: 2027-01-31}\n"
        "  - {rule: clock-skew, owner: desk, reason: old hosts, expires: 2027-01-31}\n"
    )
    spans = without(RUNS, ARGUMENTS, "gen_ai.output.messages", "gen_ai.input.messages")
    options = {"only": ["arguments-not-recorded"], "fail_on": "warning", "waivers": path}
    before = audit(spans, today=date(2027, 1, 31), **options)
    assert (before.summary.exit_code, before.summary.waived) == (0, 1)
    assert [w.context["rule"] for w in before.warnings] == ["clock-skew"]
    after = audit(spans, today=date(2027, 2, 1), **options)
    assert (after.summary.exit_code, after.summary.waived) == (1, 0)
    assert "expired on 2027-01-31" in after.warnings[0].message


def test_a_malformed_waiver_is_told_with_its_field(run_cli: Cli, files: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "waivers.yaml"
    path.write_text("waivers:\n  - {rule: x, owner: desk, expires: never}\n")
    result = run_cli("audit", files["good"], "--waivers", path)
    assert result.exit_code == 2
    assert "waivers.0.reason" in result.stderr
    assert "waivers.0.expires" in result.stderr


def test_an_unknown_rule_and_version_are_told_with_what_is_known(run_cli: Cli, files: dict[str, Path]) -> None:
    assert "Did you mean `orphan-spans`" in run_cli("audit", files["good"], "--skip", "orphan-span").stderr
    assert "1.41.1" in run_cli("audit", files["good"], "--semconv", "9.9").stderr


def test_other_services_can_be_left_out() -> None:
    spans = [*RUNS, *(replace(s, trace_id="f" * 32, resource={"service.name": "other"}) for s in agent_run(99))]
    assert audit(spans).shares.trajectories == 9
    assert audit(spans, services=["sh*"]).shares.trajectories == 8


def test_the_conventions_know_every_published_change() -> None:
    assert list(versions()) == sorted(versions(), key=lambda v: [int(p) for p in v.split(".")])
    assert versions() == ["1.26.0", "1.27.0", "1.28.0", "1.29.0", *(f"1.{n}.0" for n in range(30, 41)), "1.41.1"]
    assert "mcp.method.name" in conventions("1.39").attributes.keys() - conventions("1.38").attributes.keys()
    assert "azure.ai.openai" in conventions("1.35").attributes["gen_ai.system"].values
    old, new = conventions("1.36"), conventions("1.37")
    assert not old.attributes["gen_ai.system"].deprecated
    assert new.attributes["gen_ai.system"].replaced_by == "gen_ai.provider.name"
    assert "gen_ai.tool.call.arguments" not in conventions("1.37").attributes
    assert "gen_ai.tool.call.arguments" in conventions("1.38").attributes
    assert conventions("1.28").attributes["gen_ai.usage.prompt_tokens"].replaced_by == "gen_ai.usage.input_tokens"
    assert "invoke_agent" in conventions("1.33").attributes["gen_ai.operation.name"].values
    with pytest.raises(UsageError, match=r"1\.41\.1"):
        conventions("2.0")


def test_the_document_says_what_the_rules_say() -> None:
    committed = (REPO / "docs" / "audit.md").read_text(encoding="utf-8")
    assert committed == script("audit_docs").render(), "run `python .ci/audit_docs.py`"


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    yield exporter
    exporter.shutdown()


def test_the_fixture_fails_a_test_whose_agent_sends_nothing(
    exporter: InMemorySpanExporter, tracegrade_audit: TracegradeAudit
) -> None:
    with pytest.raises(pytest.fail.Exception, match="no-telemetry"):
        tracegrade_audit(exporter)
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_order"}
    provider.get_tracer("acme").start_span("execute_tool get_order", attributes=attributes).end()
    report = tracegrade_audit(exporter)
    assert report.shares.tool_calls == 1
    with pytest.raises(pytest.fail.Exception, match="arguments-not-recorded"):
        tracegrade_audit(exporter, fail_on="warning")


def test_receive_audits_what_a_command_sent(run_cli: Cli, tmp_path: Path) -> None:
    import sys

    program = tmp_path / "agent.py"
    program.write_text("pass\n")
    result = run_cli("receive", "--audit", "--", sys.executable, program)
    assert result.exit_code == 1
    assert "no-telemetry" in result.stdout

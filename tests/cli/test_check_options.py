"""`tracegrade check`: its files, formats, config, limits and mistakes, as seen from a shell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

UNVERIFIED = "fixtures/traces/otel-genai/unverified.otlp.jsonl"


@pytest.fixture
def unverified(repo_root: Path) -> Path:
    return repo_root / UNVERIFIED


def test_every_out_is_written_in_the_format_of_its_ending(tmp_path: Path, unverified: Path, run_cli: Any) -> None:
    names = ["r.json", "r.xml", "r.sarif", "r.md", "r.html", "r.txt"]
    outs = [word for name in names for word in ("--out", tmp_path / name)]
    run = run_cli("check", unverified, "--invariants", "customer-support", *outs)
    assert (run.exit_code, run.stderr) == (1, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    assert json.loads((tmp_path / "r.json").read_text())["summary"]["exit_code"] == 1
    assert json.loads((tmp_path / "r.sarif").read_text())["version"] == "2.1.0"
    assert int(ET.parse(tmp_path / "r.xml").getroot().get("failures", "0")) > 0
    assert "identity-before-writes" in (tmp_path / "r.html").read_text()


def test_the_ending_is_checked_before_the_work(tmp_path: Path, run_cli: Any) -> None:
    run = run_cli("check", tmp_path / "nowhere", "--out", tmp_path / "r.pdf")
    assert run.exit_code == 2
    assert "ending" in run.stderr


@pytest.mark.parametrize("kind", ["text", "json", "junit", "sarif", "markdown", "github", "html"])
def test_every_format_gives_the_same_exit_code_and_no_colour(kind: str, unverified: Path, run_cli: Any) -> None:
    run = run_cli("check", unverified, "--invariants", "customer-support", "--format", kind)
    assert (run.exit_code, run.stderr) == (1, "")
    assert "identity-before-writes" in run.stdout
    assert "\x1b" not in run.stdout


def test_the_config_holds_and_flags_win(
    tmp_path: Path, unverified: Path, run_cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tracegrade.toml").write_text('invariants = ["customer-support"]\nfail_on = "never"\n')
    monkeypatch.chdir(tmp_path)
    quiet = run_cli("check", unverified, "--format", "json")
    assert quiet.exit_code != 1
    assert json.loads(quiet.stdout)["rule_sources"] == ["customer-support"]
    assert run_cli("check", unverified, "--fail-on", "fail").exit_code == 1
    core = run_cli("check", unverified, "--invariants", "core", "--format", "json")
    assert json.loads(core.stdout)["rule_sources"] == ["core"]


def test_a_wrong_config_is_an_error_even_where_flags_say_all(
    tmp_path: Path, unverified: Path, run_cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tracegrade.toml").write_text("fail-on = 'never'\n")
    monkeypatch.chdir(tmp_path)
    run = run_cli("check", unverified, "--fail-on", "fail")
    assert run.exit_code == 2
    assert "tracegrade.toml:1: fail-on: unknown key. Did you mean `fail_on`?" in run.stderr


def test_a_limit_cuts_and_says_what(unverified: Path, run_cli: Any) -> None:
    run = run_cli("check", unverified, "--limit", "max_value_bytes=40", "--format", "json")
    losses = [warning["message"] for warning in json.loads(run.stdout)["warnings"]]
    assert any("gen_ai.input.messages" in loss and "cut to 40" in loss for loss in losses)


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"", 3), (b"hello\n", 2), (b"\x00\x01\x02", 2), (b"{}", 2), (b'{"resourceSpans": []}', 3), (None, 2)],
)
@pytest.mark.parametrize("kind", ["text", "json"])
def test_a_file_without_spans_is_never_green_and_never_a_traceback(
    content: bytes | None, code: int, kind: str, tmp_path: Path, run_cli: Any
) -> None:
    path = tmp_path / "spans.json"
    if content is not None:
        path.write_bytes(content)
    run = run_cli("check", path, "--format", kind)
    assert run.exit_code == code
    assert "Traceback" not in run.stdout + run.stderr
    assert "fault" not in run.stderr
    assert str(path) in run.stdout + run.stderr


def test_standard_input_is_a_file(unverified: Path, run_cli: Any) -> None:
    run = run_cli("check", "-", "--invariants", "customer-support", stdin=unverified.read_bytes())
    assert run.exit_code == 1
    assert "identity-before-writes" in run.stdout


def test_nothing_named_is_a_usage_error(run_cli: Any) -> None:
    run = run_cli("check")
    assert run.exit_code == 2
    assert "--db" in run.stderr


def test_an_unknown_pack_names_the_closest(unverified: Path, run_cli: Any) -> None:
    run = run_cli("check", unverified, "--invariants", "custmer-support")
    assert run.exit_code == 2
    assert "customer-support" in run.stderr

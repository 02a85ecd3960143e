"""Names and texts made to harm: in paths, in spans of every format, in what is printed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.formats.test_oddities import ONE
from tests.hostile.conftest import document, lines, span
from tracegrade.app.load import load
from tracegrade.report.escape import UNPRINTABLE
from tracegrade.store import Store

NAMES = [
    "it's.jsonl",
    'a"b.jsonl',
    "a;DROP TABLE spans;--.jsonl",
    "[a-z]*?.jsonl",
    "a b\tc.jsonl",
    "line\nfeed.jsonl",
    "\x1b[2J\x1b]0;x\x07.jsonl",
    "-rf",
    "--help",
    "{a,b}.jsonl",
    "$(id).jsonl",
    "%s%n.jsonl",
    "\u202etxt.exe",
    "ünïcode-日本.jsonl",
    "a" * 200,
    ".hidden",
    "back\\slash",
    os.fsdecode(b"no-utf8-\xff.jsonl"),
]
HOSTILE = "\x1b[31mX\x1b]0;title\x07\u202e\x9b<script>alert('x')</script>[bold]\"';--\r\n::error::x"


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_any_name_is_read(name: str, tmp_path: Path, run_cli: Any) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    path = folder / name
    path.write_bytes(lines(document(span(1))))
    run = run_cli("inspect", "--format", "json", "--", str(path))
    assert run.exit_code == 0, run.stderr
    (item,) = json.loads(run.stdout)["inputs"]
    assert (item["spans_read"], item["error"]) == (1, None)
    assert not UNPRINTABLE.search(run.stdout.replace("\n", ""))
    if UNPRINTABLE.search(name):
        text = run_cli("inspect", "--", str(path))
        assert not UNPRINTABLE.search(text.stdout.replace("\n", ""))


def test_a_pattern_still_is_one_and_a_folder_takes_every_name(tmp_path: Path, run_cli: Any) -> None:
    for number, name in enumerate(n for n in NAMES if not n.startswith(".")):
        (tmp_path / name).write_bytes(lines(document(span(number + 1))))
    with Store.open() as store:
        assert load(store, [str(tmp_path)]).spans_distinct == len(NAMES) - 1
        assert load(store, [f"{tmp_path}/*.jsonl"]).spans_read == sum(n.endswith(".jsonl") for n in NAMES)


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("bad", [HOSTILE, "a\ud800\x00b"], ids=["escape codes", "surrogate"])
def test_hostile_text_in_any_field_of_any_format(name: str, bad: str, tmp_path: Path, run_cli: Any) -> None:
    item, whole, _ = ONE[name]
    extra: dict[str, Any] = {
        "name": bad,
        "operationName": bad,
        "SpanName": bad,
        "tags": {bad: bad, "otel.scope.name": bad, "host.name": bad},
        "localEndpoint": {"serviceName": bad},
        "attributes": {bad: bad, "mlflow.spanType": bad},
        "SpanAttributes": {bad: bad},
        "ResourceAttributes": {bad: bad},
        "ServiceName": bad,
        "resource": {"attributes": {bad: bad}},
        "instrumentationScope": {"name": bad, "version": bad},
        "attributes.a": bad,
        "status_message": bad,
        "input": {bad: [bad]},
        "metadata": {bad: bad, "resourceAttributes": {bad: bad}, "scope": {"name": bad}},
    }
    if name == "jaeger-json":
        extra["tags"] = [{"key": bad, "value": bad}, {"key": "otel.scope.name", "value": bad}]
        extra["process"] = {"serviceName": bad, "tags": [{"key": bad, "value": bad}]}
    path = tmp_path / "spans"
    path.write_text(json.dumps(whole(item | {k: v for k, v in extra.items() if k in item or k not in ONE})))
    for command in (
        ("inspect",),
        ("inspect", "--format", "json"),
        ("check",),
        ("check", "--format", "json"),
        ("show",),
    ):
        run = run_cli(*command, path)
        assert run.exit_code in (0, 1, 3), (command, run.stderr)
        assert "Traceback" not in run.stderr
        assert "fault in tracegrade" not in run.stderr
        assert not UNPRINTABLE.search((run.stdout + run.stderr).replace("\n", ""))
        if "json" in command and "inspect" in command:
            assert json.loads(run.stdout)["contents"]["spans"] == 1
        assert not any(line.lstrip().startswith("::") for line in run.stdout.splitlines())

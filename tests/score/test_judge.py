"""A judge against a scripted server on loopback; a second run without it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tracegrade.app.judge import Item, JudgeOptions, Rubric, judge, judged_rows, parse_reply, read_items, read_rubric
from tracegrade.app.outcomes import Reading
from tracegrade.app.score import score_files
from tracegrade.cli.judge import app
from tracegrade.errors import InputError, RuleFileError, UsageError
from tracegrade.score.estimating import Settings
from tracegrade.score.scorecard import Options

RUBRIC = Rubric.model_validate(
    {"criteria": [{"id": "polite", "question": "Is it polite?"}, {"id": "right", "question": "Is it right?"}]}
)


class Script(BaseHTTPRequestHandler):
    """Says yes to a criterion whose word stands in the answer; busy at first; keeps what it was sent."""

    seen: list[dict[str, Any]]
    headers_seen: list[str | None]
    busy: int

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if type(self).busy:
            type(self).busy -= 1
            self.send_response(429)
            self.end_headers()
            return
        type(self).seen.append(body)
        type(self).headers_seen.append(self.headers.get("Authorization"))
        text = body["messages"][1]["content"]
        answer, criterion = text.split("<<<")[1].split(">>>")[0], text.split("Criterion: ")[1]
        wanted = "polite" if "polite" in criterion else "right"
        verdict = "garbled" if "garble" in answer else "yes" if wanted in answer else "no"
        reply = json.dumps({"reason": f"it is {wanted}", "verdict": verdict})
        data = json.dumps({"choices": [{"message": {"content": reply}}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[str]:
    Script.seen, Script.headers_seen, Script.busy = [], [], 1
    httpd = HTTPServer(("127.0.0.1", 0), Script)
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}/v1"
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def items(*answers: str) -> list[Item]:
    return [
        Item(f"t{i}", "0", "How?", a, {"human": int("right" in a and "polite" in a)}) for i, a in enumerate(answers)
    ]


def options(tmp_path: Path, **fields: Any) -> JudgeOptions:
    waits: list[float] = []
    return JudgeOptions("judge-1", tmp_path / "calls.jsonl", wait=waits.append, **fields)


def test_a_second_run_needs_no_endpoint(server: str, tmp_path: Path) -> None:
    asked = items("polite right", "polite", "neither", "polite right garble")
    live = judge(asked, RUBRIC, options(tmp_path, endpoint=server, api_key="sk-test-key"))
    assert len(Script.seen) == 8
    assert Script.headers_seen[0] == "Bearer sk-test-key"
    again = judge(asked, RUBRIC, options(tmp_path))
    assert again == live
    assert len(Script.seen) == 8
    assert "sk-test-key" not in (tmp_path / "calls.jsonl").read_text()
    assert [j.verdict for j in live] == [True, True, True, False, False, False, None, None]
    rows = list(judged_rows(asked, live, "judge-1"))
    assert [row["judge"] for row in rows] == [True, False, False, None]
    assert rows[0]["judge_polite"] is True
    assert live[0].reason == "it is polite"


def test_what_is_not_recorded_is_an_error_without_an_endpoint(server: str, tmp_path: Path) -> None:
    judge(items("polite"), RUBRIC, options(tmp_path, endpoint=server))
    with pytest.raises(UsageError, match="2 of 4 calls are not in the record"):
        judge(items("polite", "new"), RUBRIC, options(tmp_path))


def test_orders_are_drawn_and_the_same_for_a_seed(server: str, tmp_path: Path) -> None:
    asked = items(*(f"polite {i}" for i in range(20)))
    found = judge(asked, RUBRIC, options(tmp_path, endpoint=server))
    assert {j.first for j in found} == {"yes", "no"}
    order = [body["messages"][1]["content"] for body in Script.seen]
    assert order != sorted(order, key=lambda text: int(text.split("polite ")[1].split("\n")[0]))
    other = judge(asked, RUBRIC, options(tmp_path / "b", endpoint=server, seed=1))
    assert [j.first for j in other] != [j.first for j in found]


def test_a_busy_endpoint_is_asked_again_and_a_broken_one_named(server: str, tmp_path: Path) -> None:
    Script.busy = 3
    assert judge(items("polite right"), RUBRIC, options(tmp_path, endpoint=server))[0].verdict is True
    Script.busy = 99
    with pytest.raises(InputError, match="429"):
        judge(items("other"), RUBRIC, options(tmp_path, endpoint=server))
    with pytest.raises(InputError, match="no usable answer"):
        judge(items("other"), RUBRIC, options(tmp_path, endpoint="http://127.0.0.1:9/v1"))
    with pytest.raises(UsageError, match="http"):
        judge(items("other"), RUBRIC, options(tmp_path, endpoint="file:///etc"))


@pytest.mark.parametrize(
    ("content", "verdict"),
    [
        ('{"verdict": "yes", "reason": "r"}', True),
        ('Sure: {"reason": "r", "verdict": "NO"}', False),
        ("yes", None),
        ('{"verdict": "yes"} {"verdict": "no"}', None),
        ("", None),
        (None, None),
    ],
)
def test_only_a_clear_reply_is_a_verdict(content: str | None, verdict: bool | None) -> None:
    assert parse_reply({"choices": [{"message": {"content": content}}]})[0] is verdict
    assert parse_reply({})[0] is None


def test_command_and_score(server: str, tmp_path: Path) -> None:
    table, rubric, out = tmp_path / "answers.jsonl", tmp_path / "rubric.yaml", tmp_path / "judged.jsonl"
    answers = ["polite right", "polite", "right", "polite right"] * 5
    lines = [
        {"task_id": f"t{i}", "question": "How?", "answer": a, "human": int(a == "polite right")}
        for i, a in enumerate(answers)
    ]
    table.write_text("\n".join(json.dumps(line) for line in lines))
    rubric.write_text("criteria:\n- {id: polite, question: 'Is it polite?'}\n- {id: right, question: 'Is it right?'}\n")
    words = ["--rubric", rubric, "--model", "judge-1", "--record", tmp_path / "calls.jsonl", "--out", out]
    Script.busy = 0
    live = CliRunner().invoke(app, [str(x) for x in (table, *words, "--endpoint", server)])
    assert live.exit_code == 0, live.output
    first = out.read_bytes()
    assert CliRunner().invoke(app, [str(x) for x in (table, *words)]).exit_code == 0
    assert out.read_bytes() == first
    report = score_files([str(out)], Reading({}, {}), Options(settings=Settings(resamples=300)))
    assert report.judge is not None
    assert report.judge.agreement.value == 1.0
    assert report.rate.value == 0.5


def test_rubrics_and_items_that_cannot_be_read(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("criteria: []\nextra: 1\n")
    with pytest.raises(RuleFileError, match="extra"):
        read_rubric(bad)
    with pytest.raises(InputError, match="cannot be read"):
        read_rubric(tmp_path / "none.yaml")
    table = tmp_path / "t.csv"
    table.write_text("task_id,answer\na,b\n")
    with pytest.raises(RuleFileError, match="question"):
        read_items(str(table))
    calls = tmp_path / "calls.jsonl"
    calls.write_text("{}\n")
    with pytest.raises(InputError, match=r"calls.jsonl:1"):
        judge(items("a"), RUBRIC, options(tmp_path))

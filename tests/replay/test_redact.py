"""Redaction: everywhere, consistently, without changing what rules can tell, and without a trace of what was there."""

from __future__ import annotations

import base64
import gzip
import importlib
import json
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from tracegrade.app.check import CheckOptions, run_check
from tracegrade.app.redact import RedactOptions, redact
from tracegrade.errors import UsageError
from tracegrade.ingest.otlp_write import write_spans
from tracegrade.model.span import LogRecord, Span, SpanEvent, SpanLink
from tracegrade.model.values import json_equal, tri_equal
from tracegrade.replay.redact.detect import DETECTORS, find_secrets, word_detector
from tracegrade.replay.redact.ids import IdMap
from tracegrade.replay.redact.keep import AllowList, read_by_rules
from tracegrade.replay.redact.policy import KeyNames, Policy
from tracegrade.replay.redact.redactor import Redactor
from tracegrade.store import Store

SECRET = "bob.secret@example.com"
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"

BASE = Span(
    trace_id=TRACE,
    span_id=SPAN,
    parent_span_id=None,
    name="execute_tool find_user",
    kind=1,
    start_ns=1,
    end_ns=2,
    status_code=0,
    status_message="",
    attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find_user"},
    resource={"service.name": "desk"},
    scope_name="desk",
    scope_version="1",
)
LOG = LogRecord(TRACE, SPAN, 1, "e", 9, "b", {}, {"service.name": "desk"}, "desk", "1")


def attribute(value: Any, key: str = "k") -> Span:
    return replace(BASE, attributes={**BASE.attributes, key: value})


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


PLACES: dict[str, Span] = {
    "span attribute": attribute(SECRET),
    "inside a text": attribute(f"to {SECRET}, please"),
    "attribute list": attribute(["a", SECRET]),
    "attribute object": attribute({"a": [{"b": SECRET}]}),
    "attribute key": attribute(1, f"user.{SECRET}"),
    "JSON in a string": attribute(json.dumps({"a": [{"b": SECRET}]})),
    "key of JSON in a string": attribute(json.dumps({"a": {SECRET: 1}})),
    "JSON in JSON in a string": attribute(json.dumps({"a": json.dumps([json.dumps({"b": SECRET})])})),
    "cut JSON": attribute('{"a": {"b": "' + SECRET),
    "cut JSON with an escape": attribute('{"a": "' + SECRET.replace("@", "\\u0040")),
    "JSON with a key twice": attribute('{"a": "' + SECRET + '", "a": "x"}'),
    "base64": attribute(encoded(f"name: {SECRET}")),
    "base64 of base64": attribute(encoded(f"part {encoded(SECRET)} end")),
    "base64 of JSON": attribute(encoded(json.dumps({"a": SECRET}))),
    "base64 of gzip": attribute(base64.b64encode(gzip.compress(SECRET.encode(), mtime=0)).decode()),
    "base64 of zlib, for URLs": attribute(base64.urlsafe_b64encode(zlib.compress(SECRET.encode())).decode()),
    "data URL": attribute("data:text/plain;base64," + encoded(f"dear {SECRET}!")),
    "percent signs": attribute(f"https://example.org/?q={SECRET.replace('@', '%40')}&x=1"),
    "HTML": attribute(SECRET.replace("@", "&#64;")),
    "Python repr": attribute("{'a': '" + SECRET + "'}"),
    "span name": replace(BASE, name=f"find {SECRET}"),
    "status message": replace(BASE, status_code=2, status_message=f"no user {SECRET}"),
    "resource attribute": replace(BASE, resource={**BASE.resource, "x": SECRET}),
    "scope name": replace(BASE, scope_name=f"desk {SECRET}"),
    "scope version": replace(BASE, scope_version=SECRET),
    "scope attribute": replace(BASE, scope_attributes={"x": SECRET}),
    "schema url": replace(BASE, schema_url=f"https://example.org/{SECRET}"),
    "trace state": replace(BASE, trace_state=f"v={SECRET}"),
    "event name": replace(BASE, events=(SpanEvent(f"got {SECRET}", 1, {}),)),
    "event attribute": replace(BASE, events=(SpanEvent("e", 1, {"x": SECRET}),)),
    "link attribute": replace(BASE, links=(SpanLink(TRACE, "b7ad6b7169203332", {"x": SECRET}),)),
    "log body": replace(BASE, logs=(replace(LOG, body=f"hello {SECRET}"),)),
    "log body object": replace(BASE, logs=(replace(LOG, body={"content": [{"text": SECRET}]}),)),
    "log attribute": replace(BASE, logs=(replace(LOG, attributes={"x": SECRET}),)),
    "log event name": replace(BASE, logs=(replace(LOG, event_name=f"e {SECRET}"),)),
    "log resource": replace(BASE, logs=(replace(LOG, resource={"service.name": "desk", "x": SECRET}),)),
}
UNPACK: dict[str, Callable[[bytes], bytes]] = {
    "jsonl": bytes,
    "json": bytes,
    "pb": bytes,
    "proto": bytes,
    "jsonl.gz": gzip.decompress,
    "pb.zst": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
}


def forms(secret: str) -> list[bytes]:
    """How a secret may stand in a file: plain, escaped, and as base64 at every alignment."""
    found = [secret.encode(), secret.replace("@", "%40").encode(), secret.replace("@", "\\u0040").encode()]
    found.append(secret.replace("@", "&#64;").encode())
    for shift in range(3):
        text = base64.b64encode(b"x" * shift + secret.encode())
        found.append(text[4 if shift else 0 : len(text) // 4 * 4 - 4])
    return found


@pytest.mark.parametrize("place", PLACES)
def test_a_secret_in_any_place_is_taken_out_once_and_for_all(place: str) -> None:
    first, again = Redactor(Policy(b"key")), Redactor(Policy(b"key"))
    clean = first.span(PLACES[place])
    assert first.counts.total >= 1
    assert again.span(clean) == clean
    assert again.counts.total == 0
    assert not [f for f in forms(SECRET) if f in repr(clean).encode()]


@pytest.mark.parametrize("ending", UNPACK)
def test_every_format_is_checked_before_and_after(ending: str, tmp_path: Path) -> None:
    spans = [replace(s, span_id=f"{n:016x}") for n, s in enumerate(PLACES.values(), 1)]
    planted, clean = tmp_path / f"planted.{ending}", tmp_path / "out" / f"clean.{ending}"
    write_spans(spans, planted)
    before = redact(RedactOptions(paths=[str(planted)], check=True))
    assert before.exit_code == 1
    assert {left.place for left in before.left or ()} > {"span name", "log body", "link attribute", "scope attribute"}
    report = redact(RedactOptions(paths=[str(planted)], out=clean, check=True))
    assert (report.exit_code, report.left, report.spans) == (0, (), len(spans))
    written = UNPACK[ending](clean.read_bytes())
    assert not [f for f in forms(SECRET) if f in written]
    assert SECRET not in report.model_dump_json() + before.model_dump_json()
    assert "example.com" not in report.model_dump_json() + before.model_dump_json()


def test_no_search_finds_it_in_the_database_or_in_any_report(tmp_path: Path) -> None:
    spans = [replace(s, span_id=f"{n:016x}") for n, s in enumerate(PLACES.values(), 1)]
    planted, clean, db = tmp_path / "planted.jsonl", tmp_path / "clean.jsonl", tmp_path / "kept.duckdb"
    write_spans(spans, planted)
    redact(RedactOptions(paths=[str(planted)], out=clean))
    report = run_check(CheckOptions(paths=[str(clean)], invariants=["core"], db=str(db), keep_steps=True))
    for kind in ("text", "json", "markdown", "junit", "sarif", "github", "html"):
        text = importlib.import_module(f"tracegrade.report.{kind}").render(report)
        assert not [f for f in forms(SECRET) if f in text.encode()], kind
    with Store.open(db) as store:
        tables = [row[0] for row in store.query("SELECT table_name FROM duckdb_tables()").rows]
        tables += [row[0] for row in store.query("SELECT view_name FROM duckdb_views() WHERE NOT internal").rows]
        rows = [repr(row) for table in tables for row in store.query(f'SELECT * FROM "{table}"').rows]
    assert len(rows) > len(spans)
    assert not [f for f in forms(SECRET) for row in rows if f in row.encode()]


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all texts in a document."""
    if isinstance(value, str):
        return [path]
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, item in pairs for found in leaves(item, (*path, key))]


def planted(document: Any, path: tuple[Any, ...], value: str) -> Any:
    if not path:
        return value
    copy = dict(document) if isinstance(document, dict) else list(document)
    copy[path[0]] = planted(copy[path[0]], path[1:], value)
    return copy


@pytest.mark.parametrize(
    "name", ["zipkin.json", "python-console.json", "mlflow.json", "js-sdk-objects.json", "otlp.json"]
)
def test_a_secret_in_every_text_of_other_formats(repo_root: Path, tmp_path: Path, name: str) -> None:
    text = (repo_root / "fixtures" / "traces" / "formats" / name).read_text()
    try:
        document, many = json.loads(text), False
    except json.JSONDecodeError:
        decoder, documents, at = json.JSONDecoder(), [], 0
        while at < len(text.rstrip()):
            found, at = decoder.raw_decode(text, at)
            documents.append(found)
            at += len(text[at:]) - len(text[at:].lstrip())
        document, many = documents, True
    shapes = {tuple("*" if isinstance(p, int) else p for p in path): path for path in leaves(document)}
    chosen = dict(list(shapes.items())[:: max(1, len(shapes) // 12)])
    for shape, path in chosen.items():
        changed = planted(document, path, SECRET)
        source, out = tmp_path / "planted.json", tmp_path / "out.jsonl"
        source.write_text("\n".join(map(json.dumps, changed)) if many else json.dumps(changed))
        before = redact(RedactOptions(paths=[str(source)], check=True))
        assert before.left, shape
        report = redact(RedactOptions(paths=[str(source)], out=out))
        assert SECRET not in report.model_dump_json(), shape
        assert SECRET.encode() not in out.read_bytes(), shape
    assert len(chosen) > 8


# ---------------------------------------------------------------------- equal stays equal


WORDS = st.sampled_from(["bob@example.com", "amy@example.com", "4111111111111111", "Ann Zyx", "x", "x y", "", "⟦"])
SCALARS = st.one_of(WORDS, st.integers(-3, 3), st.just(4111111111111111), st.booleans(), st.none(), st.floats(-2, 2))
VALUES = st.recursive(
    st.one_of(SCALARS, st.builds("{} {}".format, WORDS, WORDS), st.builds(lambda v: json.dumps({"a": v}), SCALARS)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("ab"), inner, max_size=2)),
    max_leaves=4,
)
POLICY = Policy(b"key", (word_detector(["Ann Zyx"]), *DETECTORS), KeyNames(["b"]))  # type: ignore[arg-type]


@given(a=VALUES, b=VALUES)
@settings(max_examples=400)
def test_redaction_never_turns_equal_into_different_or_back(a: Any, b: Any) -> None:
    """Wherever the two values stand: in the open, or below a key whose values are taken out."""
    for key_a, key_b in (("a", "a"), ("a", "b"), ("b", "b")):
        redactor = Redactor(POLICY)
        new_a, new_b = (redactor.document({k: v}, "d")[k] for k, v in ((key_a, a), (key_b, b)))
        assert tri_equal(new_a, new_b) in (json_equal(a, b), None)


@given(value=VALUES)
def test_a_second_pass_finds_nothing_and_changes_nothing(value: Any) -> None:
    once = Redactor(POLICY).document({"a": value, "b": value}, "d")
    again = Redactor(POLICY)
    assert again.document(once, "d") == once
    assert again.counts.total == 0


@given(value=VALUES)
def test_order_of_work_and_other_values_change_nothing(value: Any) -> None:
    warm = Redactor(POLICY)
    for other in ("bob@example.com", "Ann Zyx x", {"b": 1}):
        warm.document(other, "d")
    assert warm.document(value, "d") == Redactor(POLICY).document(value, "d")


def test_another_secret_gives_other_placeholders_and_none_is_written() -> None:
    one, two = (Redactor(Policy(key)).document(SECRET, "d") for key in (b"one", b"two"))
    assert one != two
    assert "one-secret" not in repr(Policy(b"one-secret"))


def test_key_names_as_people_spell_them() -> None:
    keys = KeyNames(["customer email"])
    for name in ("customer_email", "customerEmail", "order.customer-email", "password", "db_password", "X-Api-Key"):
        assert keys.matches(name, "v"), name
    for name in ("email", "customer_emails", "gen_ai.usage.input_tokens", "max_tokens", "gen_ai.token.type"):
        assert not keys.matches(name, "v"), name
    assert not keys.matches("password", True)
    assert keys.matches("customer_email", True)


@pytest.mark.parametrize(
    "text",
    [
        'see "password": "hunter22" there',
        "password=hunter22&x=1",
        "PASSWORD: hunter22",
        "{'db_password': 'hunter22'}",
        '{"a": "{\\"password\\": \\"hunter22\\"',
        "<password>hunter22</password>",
    ],
)
def test_values_by_name_in_texts_that_are_no_json(text: str) -> None:
    redactor = Redactor(Policy(b"key"))
    assert "hunter22" not in redactor.text(text, "t")
    assert redactor.counts.total == 1


def test_values_by_the_name_beside_them_or_the_path_of_a_patch() -> None:
    document = {
        "pairs": [{"key": "password", "value": "p1"}, {"name": "apiKey", "value": ["p2"]}],
        "patch": [
            {"op": "replace", "path": ["users", "u1", "password"], "value": "p3"},
            {"op": "add", "path": "/users/u1/secret", "value": {"a": "p4"}},
            {"op": "add", "path": "/users/u1/city", "value": "p5"},
        ],
    }
    text = json.dumps(Redactor(Policy(b"key")).document(document, "d"))
    assert [p for p in ("p1", "p2", "p3", "p4", "p5") if f'"{p}"' in text] == ["p5"]


@pytest.mark.parametrize(
    "value", ["bob@example.com", "4111 1111 1111 1111", "DE89370400440532013000", "+49 30 1234567"]
)
def test_formats_are_kept_by_values_that_belong_to_nobody(value: str) -> None:
    kinds = frozenset({"email", "card", "iban", "phone"})
    redactor = Redactor(Policy(b"key", preserve=kinds))
    new = redactor.document([value, f"{value}, {value}", value + "1"], "d")
    assert "⟦" not in new[0]
    assert new[1] == f"{new[0]}, {new[0]}"
    assert new[0] != value
    assert find_secrets(new[0]) == []
    assert Redactor(Policy(b"key", preserve=kinds)).document(new, "d") == new
    letters = sum(c.isalpha() for c in value)
    assert (letters > 0) == any(c.isalpha() for c in new[0])


def test_too_deep_is_taken_out_unseen() -> None:
    value: Any = SECRET
    for _ in range(500):
        value = [value]
    assert SECRET not in repr(Redactor(Policy(b"key")).document(value, "d"))
    assert SECRET not in Redactor(Policy(b"key")).text("[" * 5000 + f'"{SECRET}"' + "]" * 5000, "t")


# ---------------------------------------------------------------------- ids


def test_ids_are_the_same_wherever_they_stand() -> None:
    policy = Policy(b"key", map_ids=True)
    conversation = "conv-778899"
    parent = replace(
        BASE, attributes={"gen_ai.conversation.id": conversation, "note": f"see {TRACE} and {conversation}"}
    )
    child = replace(
        BASE,
        span_id="b7ad6b7169203332",
        parent_span_id=SPAN,
        links=(SpanLink(TRACE, SPAN, {}),),
        attributes={"gen_ai.tool.call.id": "call_abc12345", "x": json.dumps([{"id": "call_abc12345"}])},
        logs=(replace(LOG, body=f"trace {TRACE[:8]}-{TRACE[8:12]}-{TRACE[12:16]}-{TRACE[16:20]}-{TRACE[20:]}"),),
    )
    ids = IdMap(policy)
    for span in (parent, child):
        ids.learn(span)
    redactor = Redactor(policy, ids)
    new_parent, new_child = map(redactor.span, (parent, child))
    assert new_child.trace_id == new_parent.trace_id != TRACE
    assert new_child.parent_span_id == new_parent.span_id == new_child.links[0].span_id != SPAN
    assert (len(new_parent.trace_id), len(new_parent.span_id)) == (32, 16)
    int(new_parent.trace_id, 16)
    assert new_parent.trace_id in new_parent.attributes["note"]
    assert new_parent.attributes["gen_ai.conversation.id"] in new_parent.attributes["note"]
    assert new_child.attributes["gen_ai.tool.call.id"] == json.loads(new_child.attributes["x"])[0]["id"]
    assert str(new_child.logs[0].body).replace("-", "") == f"trace {new_parent.trace_id}"
    trial = redactor.document({"trace_id": TRACE, "conversation_id": conversation}, "trial")
    assert trial["trace_id"] == new_parent.trace_id
    text = repr((new_parent, new_child, trial))
    assert not [i for i in (TRACE, SPAN, conversation, "call_abc12345") if i in text]


# ---------------------------------------------------------------------- allow-list


def test_allow_list_keeps_what_rules_read_and_the_shape() -> None:
    rules = [
        {"kind": "precedes", "params": {"first": {"tool": ["find"]}, "same": [["order_id"]]}},
        {
            "kind": "required",
            "params": {"action": {"args": {"reason.code": {"eq": 5}}, "result": {"items.*.sku": "A"}}},
        },
    ]
    allow = read_by_rules(rules)
    assert allow.fields == {"order_id", "reason", "code", "items", "sku"}
    assert not allow.texts
    redactor = Redactor(Policy(b"key", allow=allow))
    span = attribute(
        json.dumps({"order_id": "W1", "city": "Rome", "reason": {"code": 5, "why": "late"}, "n": 7, "ok": True}),
        "gen_ai.tool.call.arguments",
    )
    messages = [{"role": "user", "parts": [{"type": "text", "content": "I am Bob"}]}]
    span = replace(
        span,
        attributes={**span.attributes, "gen_ai.input.messages": json.dumps(messages), "internal.note": "Bob", "n": 3},
        status_message="Bob is unknown",
        events=(SpanEvent("exception", 1, {"exception.type": "KeyError", "exception.message": "Bob"}),),
    )
    new = redactor.span(span)
    arguments = json.loads(new.attributes["gen_ai.tool.call.arguments"])
    assert (arguments["order_id"], arguments["reason"]["code"], arguments["ok"]) == ("W1", 5, True)
    assert all(str(v).startswith("⟦") for v in (arguments["city"], arguments["n"], arguments["reason"]["why"]))
    assert new.attributes["gen_ai.tool.name"] == "find_user"
    kept = json.loads(new.attributes["gen_ai.input.messages"])[0]
    assert (kept["role"], kept["parts"][0]["type"]) == ("user", "text")
    assert new.events[0].attributes["exception.type"] == "KeyError"
    assert "Bob" not in repr(new)
    assert "I am Bob" in repr(Redactor(Policy(b"key", allow=AllowList(texts=True))).span(span))


# ---------------------------------------------------------------------- options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "nothing was named"),
        ({"paths": ["x"]}, "--out FILE"),
        ({"paths": ["x"], "out": Path("x.txt")}, "tells no format"),
        ({"paths": ["x"], "check": True, "map_ids": True}, "need --out"),
        ({"paths": ["x"], "check": True, "preserve": ["emial"]}, "Did you mean `email`"),
        ({"paths": ["x"], "check": True, "words": [Path("no-such-file")]}, "cannot be read"),
        ({"paths": ["x"], "check": True, "entities": "no-such-pipeline"}, "--entities"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("(", "\\(")):
        redact(RedactOptions(**options))


def test_rules_that_are_not_there_are_told_before_anything_is_written(repo_root: Path, tmp_path: Path) -> None:
    spans, out = repo_root / "fixtures" / "traces" / "support-desk.otlp.jsonl", tmp_path / "out.jsonl"
    with pytest.raises(UsageError, match=r"no-such-pack\.yaml"):
        redact(RedactOptions(paths=[str(spans)], out=out, verify=["no-such-pack.yaml"]))
    assert not out.exists()


def test_a_short_secret_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEGRADE_REDACT_SECRET", "short")
    with pytest.raises(UsageError, match="at least 16"):
        redact(RedactOptions(paths=["x"], check=True))

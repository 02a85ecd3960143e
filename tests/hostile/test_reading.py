"""Files as people really have them, and broken ones: every report of trouble with reading spans that we know of."""

from __future__ import annotations

import base64
import gzip
import json
import random
import struct
from pathlib import Path
from typing import Any

import pytest
import zstandard
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from tests.hostile.conftest import TRACE, Load, attribute, document, lines, span
from tracegrade.app.load import load
from tracegrade.errors import InputError
from tracegrade.ingest import ReadOptions
from tracegrade.store import Store


def proto(*numbers: int) -> bytes:
    message = TracesData()
    scope = message.resource_spans.add().scope_spans.add()
    for number in numbers:
        scope.spans.add(trace_id=bytes.fromhex(TRACE), span_id=number.to_bytes(8, "big"), name=f"s{number}")
    return message.SerializeToString()


def framed(*messages: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(m)) + m for m in messages)


class TestIds:
    @pytest.mark.parametrize(
        "spelling",
        [
            lambda h: h,
            lambda h: h.upper(),
            lambda h: base64.b64encode(bytes.fromhex(h)).decode(),
            lambda h: base64.b64encode(h.encode()).decode(),
            lambda h: base64.b64decode(h).hex(),
        ],
        ids=["hex", "upper case", "base64", "base64 of the hex text", "hex once read as base64"],
    )
    def test_every_spelling_gives_the_same_id(self, spelling: Any, loaded: Load) -> None:
        ids = {"traceId": spelling(TRACE), "spanId": spelling("30f55b20c91fe7cc")}
        (found,) = loaded(lines(document(span(**ids)))).spans
        assert (found.trace_id, found.span_id) == (TRACE, "30f55b20c91fe7cc")

    @pytest.mark.parametrize("bad", ["", "0" * 32, "12", "zz" * 16, None, 7, [], {}])
    def test_an_id_that_is_none_is_skipped_and_never_joined(self, bad: Any, loaded: Load) -> None:
        found = loaded(lines(document(span(1, traceId=bad), span(2), span(3, traceId=bad))))
        assert found.by_number.keys() == {2}
        assert sum(s.count for s in found.report.skipped) == 2
        assert all("traceId" in s.reason for s in found.report.skipped)


class TestNumbers:
    @pytest.mark.parametrize("value", [25, "25", 25.0])
    def test_integers_as_text_and_as_numbers(self, value: Any, loaded: Load) -> None:
        (found,) = loaded(lines(document(span(attributes={"n": {"intValue": value}})))).spans
        assert found.attributes["n"] == 25

    def test_both_in_one_file_and_times_too(self, loaded: Load) -> None:
        as_text, as_number = span(1), span(2, startTimeUnixNano=10**18 + 1, endTimeUnixNano=10**18 + 2)
        found = loaded(lines(document(as_text, as_number)))
        assert found.by_number[2].start_ns == 10**18 + 1
        assert found.report.skipped == []

    def test_a_count_that_cannot_be_read_is_a_warning_and_no_zero(self, loaded: Load) -> None:
        found = loaded(lines(document(span(attributes={"gen_ai.usage.input_tokens": {"intValue": "many"}}))))
        assert found.spans[0].attributes["gen_ai.usage.input_tokens"] == "many"
        assert found.report.warnings

    def test_structured_arguments_and_their_text_are_the_same_value(self, loaded: Load) -> None:
        big = 2**60 + 1
        nested = {"kvlistValue": {"values": [attribute("n", {"intValue": str(big)})]}}
        found = loaded(lines(document(span(1, attributes={"a": nested}), span(2, attributes={"a": f'{{"n": {big}}}'}))))
        assert found.by_number[1].attributes["a"] == json.loads(found.by_number[2].attributes["a"]) == {"n": big}

    @pytest.mark.parametrize("bad", ["not-a-number", -1, 2**70, {}, "1e400"])
    def test_a_bad_time_costs_one_span_with_line_and_id(
        self, bad: Any, loaded: Load, run_cli: Any, tmp_path: Path
    ) -> None:
        content = lines(document(span(1)), document(span(2, startTimeUnixNano=bad), span(3)))
        found = loaded(content)
        assert found.by_number.keys() == {1, 3}
        (skipped,) = found.report.skipped
        assert skipped.where.startswith("line 2")
        assert skipped.id == f"{2:016x}"
        path = tmp_path / "spans"
        path.write_bytes(content)
        run = run_cli("check", path, "--strict")
        assert run.exit_code == 2
        assert "line 2" in run.stderr
        assert "Traceback" not in run.stderr


class TestFraming:
    def test_tempo_names(self, loaded: Load) -> None:
        resources = document(span(1))["resourceSpans"]
        for whole in ({"batches": resources}, {"trace": {"resourceSpans": resources}}):
            assert loaded(json.dumps(whole).encode()).by_number.keys() == {1}

    def test_other_signals_are_counted_and_cost_nothing(self, loaded: Load) -> None:
        metrics = {"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": "m"}, {"name": "n"}]}]}]}
        logs = {
            "resourceLogs": [{"scopeLogs": [{"logRecords": [{"timeUnixNano": "5", "body": {"stringValue": "b"}}]}]}]
        }
        found = loaded(lines(metrics, document(span(1)), logs))
        assert (found.report.signals["metrics"], found.report.log_records, len(found.spans)) == (2, 1, 1)
        assert found.report.skipped == []

    def test_a_cut_last_frame_is_reported_with_its_place(self, loaded: Load) -> None:
        whole = framed(proto(1), proto(2))
        found = loaded(whole[:-5])
        assert 1 in found.by_number
        assert found.report.framing == "length-prefixed"
        assert any(str(len(framed(proto(1)))) in s.where for s in found.report.skipped)

    @pytest.mark.parametrize("pack", [zstandard.ZstdCompressor().compress, gzip.compress], ids=["zstd", "gzip"])
    def test_messages_packed_one_by_one_and_the_stream_as_a_whole(self, pack: Any, loaded: Load) -> None:
        each = loaded(framed(pack(proto(1)), pack(proto(2))))
        whole = loaded(pack(framed(proto(1), proto(2))))
        text = loaded(framed(pack(lines(document(span(1)))), pack(lines(document(span(2))))))
        assert each.by_number.keys() == whole.by_number.keys() == text.by_number.keys() == {1, 2}
        assert each.report.compression.endswith("-frames")

    def test_a_half_last_line_costs_only_itself(self, loaded: Load) -> None:
        content = lines(document(span(1)), document(span(2)))[:-30]
        found = loaded(content)
        assert found.by_number.keys() == {1}
        assert [s.where for s in found.report.skipped] == ["line 2"]
        with pytest.raises(InputError, match="line 2"):
            loaded(content, options=ReadOptions(strict=True))

    def test_a_line_of_many_megabytes_is_read_and_one_over_the_limit_left_out(self, loaded: Load) -> None:
        content = lines(document(span(1)), document(span(2, attributes={"a": "x" * 5_000_000})), document(span(3)))
        assert loaded(content).by_number.keys() == {1, 2, 3}
        found = loaded(content, options=ReadOptions(max_line_bytes=1_000_000))
        assert found.by_number.keys() == {1, 3}
        assert [s.where for s in found.report.skipped] == ["line 2"]
        assert "1,000,000" in found.report.skipped[0].reason

    def test_one_object_of_forty_megabytes(self, loaded: Load) -> None:
        found = loaded(
            json.dumps(document(*(span(i, attributes={"a": "x" * 1_000_000}) for i in range(1, 41)))).encode()
        )
        assert len(found.spans) == 40


class TestCopies:
    def test_exact_copies_are_one_span_and_counted(self, loaded: Load) -> None:
        found = loaded(lines(document(span(1)), document(span(1)), document(span(1))))
        assert (len(found.spans), found.report.duplicates_dropped) == (1, 2)

    def test_loading_again_changes_nothing(self, tmp_path: Path) -> None:
        path = tmp_path / "a"
        path.write_bytes(lines(document(span(1), span(2))))
        overlapping = tmp_path / "b"
        overlapping.write_bytes(lines(document(span(2), span(3))))
        with Store.open() as store:
            for _ in range(2):
                load(store, [str(path), str(overlapping)])
            assert store.count("spans") == 3

    def test_another_content_of_one_id_is_a_conflict_with_a_fixed_winner(self, tmp_path: Path) -> None:
        one, two = lines(document(span(1))), lines(document(span(1, name="other")))
        winners = set()
        for order in ([one, two], [two, one]):
            with Store.open() as store:
                paths = []
                for number, content in enumerate(order):
                    path = tmp_path / f"{len(winners)}{number}"
                    path.write_bytes(content)
                    paths.append(str(path))
                report = load(store, paths)
                assert report.conflicts_total == 1
                ((found,),) = store.traces()
                winners.add(found.name)
        assert len(winners) == 1

    def test_the_order_of_lines_and_files_changes_nothing(self, loaded: Load) -> None:
        documents = [document(span(i, parentSpanId=f"{i // 2:016x}" if i > 1 else "")) for i in range(1, 20)]
        expected = loaded(lines(*documents)).spans
        shuffled = random.Random(7)
        for _ in range(3):
            shuffled.shuffle(documents)
            assert loaded(lines(*documents[:9]), lines(*documents[9:])).spans == expected


class TestText:
    @pytest.mark.parametrize("bad", ["a\ud800b", "a\x00b", "\udfff"], ids=["surrogate", "NUL", "low surrogate"])
    def test_bad_text_anywhere_becomes_the_replacement_character(self, bad: str, loaded: Load) -> None:
        event = {"name": bad, "timeUnixNano": "5", "attributes": [attribute(bad, bad)]}
        link = {"traceId": TRACE, "spanId": "1" * 16, "attributes": [attribute("k", bad)]}
        odd = span(1, name=bad, attributes={"v": bad, bad: "k"}, events=[event], links=[link], traceState=bad)
        odd["status"] = {"code": 2, "message": bad}
        found = loaded(lines(document(odd, span(2), resource={"r": bad, bad: "r"}, scope=bad)))
        assert found.by_number.keys() == {1, 2}
        kept = found.by_number[1]
        good = bad.replace("\ud800", "\ufffd").replace("\x00", "\ufffd").replace("\udfff", "\ufffd")
        assert kept.attributes["v"] == kept.status_message == kept.name == kept.scope_name == good
        assert kept.resource["r"] == kept.events[0].name == kept.links[0].attributes["k"] == good

    def test_bytes_that_are_no_utf8(self, loaded: Load) -> None:
        content = lines(document(span(1, attributes={"v": "XXXX"}), span(2))).replace(b"XXXX", b"\xff\xfe\xc3(")
        found = loaded(content)
        assert found.by_number.keys() == {1, 2}
        assert "\ufffd" in found.by_number[1].attributes["v"]

    @pytest.mark.parametrize("field", ["attributes", "events", "links", "status", "parentSpanId", "name", "kind"])
    def test_every_optional_field_may_be_null_or_missing(self, field: str, loaded: Load) -> None:
        missing = {k: v for k, v in span(2).items() if k != field}
        found = loaded(lines(document(span(1) | {field: None}, missing)))
        assert found.by_number.keys() == {1, 2}
        event = {"name": None, "timeUnixNano": None, "attributes": None}
        assert len(loaded(lines(document(span(3, events=[event, None], links=[None])))).spans) == 1

    def test_duplicate_keys(self, loaded: Load) -> None:
        twice = span(1)
        twice["attributes"] += [attribute("gen_ai.tool.name", "g")]
        content = lines(document(twice)).replace(b'"name": "execute_tool f"', b'"name": "a", "name": "b"')
        (found,) = loaded(content).spans
        assert found.name == "b"
        assert found.attributes["gen_ai.tool.name"] in ("f", "g")


class TestShape:
    def test_deep_nesting_costs_one_value(self, loaded: Load) -> None:
        deep: dict[str, Any] = {"stringValue": "x"}
        for _ in range(200):
            deep = {"arrayValue": {"values": [deep]}}
        found = loaded(lines(document(span(1, attributes={"deep": deep, "k": "v"}), span(2))))
        assert found.by_number.keys() == {1, 2}
        assert "deep" not in found.by_number[1].attributes
        assert found.by_number[1].attributes["k"] == "v"
        assert any("deep" in w.reason and "64" in w.reason for w in found.report.warnings)

    def test_brackets_without_end(self, loaded: Load) -> None:
        found = loaded(b"[" * 200_000 + b"\n" + lines(document(span(1))))
        assert found.report.error is not None or found.by_number.keys() == {1}
        assert loaded(lines(document(span(1))) + b'{"a":' * 100_000).by_number.keys() == {1}

    def test_parents_in_a_circle(self, loaded: Load, run_cli: Any, tmp_path: Path) -> None:
        parents = {1: 2, 2: 3, 3: 1, 4: 4}
        circle = [
            span(child, parentSpanId=f"{parent:016x}", attributes={"gen_ai.tool.call.id": f"call_{child}"})
            for child, parent in parents.items()
        ]
        content = lines(document(*circle))
        assert len(loaded(content).spans) == 4
        path = tmp_path / "circle"
        path.write_bytes(content)
        run = run_cli("inspect", path, "--format", "json")
        assert run.exit_code == 0
        assert json.loads(run.stdout)["graded"]["steps"]["tool_call"] == 4
        assert run_cli("check", path).exit_code in (0, 1, 3)

    def test_a_value_over_the_limit_is_cut_at_a_character(self, loaded: Load) -> None:
        found = loaded(
            lines(document(span(1, attributes={"v": "é" * 5_000}))), options=ReadOptions(max_value_bytes=4_001)
        )
        assert found.by_number[1].attributes["v"] == "é" * 2_000
        assert any("4001" in w.reason.replace(",", "") for w in found.report.warnings)

    def test_a_trace_over_the_limit_keeps_the_first_spans(self, loaded: Load) -> None:
        content = lines(document(*(span(i) for i in range(1, 101))))
        found = loaded(content, options=ReadOptions(max_spans_per_trace=10))
        assert sorted(found.by_number) == list(range(1, 11))


class TestPacked:
    def test_a_bomb_is_stopped(self, loaded: Load) -> None:
        bomb = gzip.compress(b'{"a": "' + b"x" * 200_000_000, 9)
        assert len(bomb) < 400_000
        found = loaded(bomb)
        assert found.report.error is not None
        assert "400" in found.report.error
        assert "max_ratio" in found.report.error or "ratio" in found.report.error

    def test_the_limit_on_unpacked_bytes(self, loaded: Load) -> None:
        content = gzip.compress(lines(*(document(span(i)) for i in range(1, 200))))
        found = loaded(content, options=ReadOptions(max_unpacked_bytes=10_000))
        assert found.report.error is not None
        assert "10,000" in found.report.error

    @pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress], ids=["gzip", "zstd"])
    def test_a_cut_archive_gives_what_came_before_the_cut(self, pack: Any, loaded: Load) -> None:
        noise = random.Random(5)
        content = lines(*(document(span(i, attributes={"a": noise.randbytes(400).hex()})) for i in range(1, 2000)))
        packed = pack(content)
        found = loaded(packed[: len(packed) * 3 // 4])
        assert 0 < len(found.spans) < 1999
        assert found.report.skipped or found.report.error

    def test_a_packed_file_of_nothing(self, loaded: Load) -> None:
        found = loaded(gzip.compress(b""))
        assert found.spans == []
        assert found.report.error is None


def test_a_failed_load_leaves_the_database_as_it_was(tmp_path: Path) -> None:
    db, good, bad = tmp_path / "runs.duckdb", tmp_path / "good", tmp_path / "bad"
    good.write_bytes(lines(document(span(1), span(2))))
    bad.write_bytes(lines(document(span(3))) + b'{"resourceSpans": [broken\n')
    with Store.open(db) as store:
        load(store, [str(good)])
    with Store.open(db) as store:
        with pytest.raises(InputError):
            load(store, [str(bad)], ReadOptions(strict=True))
        assert store.count("spans") == 2
    with Store.open(db) as store:
        assert store.count("spans") == 2
        load(store, [str(bad)])
        assert store.count("spans") == 3


OTHER_FILES = {
    "text": b"hello\n",
    "program": b"\x7fELF" + bytes(500),
    "pdf": b"%PDF-1.7\n",
    "zip": b"PK\x03\x04" + bytes(100),
    "other json": b'{"a": 1}\n',
    "numbers": b"[1, 2]",
    "null": b"null",
    "html": b"<html></html>",
    "csv": b"a,b\n1,2\n",
    "noise": b"\xff" * 300,
}


@pytest.mark.parametrize("content", OTHER_FILES.values(), ids=OTHER_FILES)
def test_a_file_of_something_else_is_an_error_that_says_what_and_what_for(
    content: bytes, run_cli: Any, tmp_path: Path
) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(content)
    for command in ("inspect", "check"):
        run = run_cli(command, path)
        assert run.exit_code == 2, run.stdout
        text = run.stdout + run.stderr
        assert "expected" in text
        assert "OTLP" in text
        assert "Traceback" not in text
        assert "duckdb" not in text.lower()


def test_a_file_of_zeros_is_never_green(run_cli: Any, tmp_path: Path) -> None:
    path = tmp_path / "zeros"
    path.write_bytes(bytes(4096))
    assert run_cli("check", path).exit_code in (2, 3)


HOSTILE_JSON = {
    "digits": '{"n": ' + "9" * 5_000 + "}",
    "beyond double": '{"n": ' + "9" * 400 + "}",
    "open brackets": "[" * 100_000,
    "deep": '{"a":' * 3_000 + "1" + "}" * 3_000,
    "no numbers": '{"n": NaN, "m": 1e999}',
    "surrogate": '{"a": "\\ud800"}',
    "duplicate keys": '{"a": 1, "a": 2}',
    "python": "{'a': " * 3_000,
}


@pytest.mark.parametrize("text", HOSTILE_JSON.values(), ids=HOSTILE_JSON)
def test_hostile_json_inside_a_text(text: str, run_cli: Any, tmp_path: Path) -> None:
    tool = {"gen_ai.tool.call.arguments": text, "gen_ai.tool.call.result": text, "gen_ai.tool.definitions": text}
    chat = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": text,
        "gen_ai.output.messages": text,
        "gen_ai.usage.input_tokens": text,
    }
    path = tmp_path / "spans"
    path.write_bytes(lines(document(span(1, attributes=tool), span(2, attributes=chat))))
    for command in ("check", "show"):
        run = run_cli(command, path, "--format", "json")
        assert run.exit_code in (0, 1, 3), run.stderr
        json.loads(run.stdout)


def test_an_answer_of_jaegers_newer_api(loaded: Load) -> None:
    assert loaded(json.dumps({"result": document(span(1))}).encode()).by_number.keys() == {1}


class TestOtherFormats:
    """The limits hold in formats that are not OTLP too."""

    @staticmethod
    def zipkin(**tags: Any) -> bytes:
        base = {"traceId": TRACE, "name": "f", "timestamp": 5, "duration": 1}
        return json.dumps([base | {"id": f"{1:016x}", "tags": tags}, base | {"id": f"{2:016x}"}]).encode()

    def test_a_long_value_is_cut_and_counted(self, loaded: Load) -> None:
        found = loaded(self.zipkin(v="é" * 5_000, k="short"), options=ReadOptions(max_value_bytes=4_001))
        assert found.by_number[1].attributes == {"v": "é" * 2_000, "k": "short"}
        assert found.by_number[1].dropped_attributes == 1
        assert [w.id for w in found.report.warnings] == [f"{1:016x}"]

    def test_a_deep_value_costs_only_itself(self, loaded: Load) -> None:
        deep: Any = "x"
        for _ in range(100):
            deep = [deep]
        found = loaded(self.zipkin(v=deep, k="kept"))
        assert found.by_number[1].attributes == {"k": "kept"}
        assert found.by_number.keys() == {1, 2}
        assert "64" in found.report.warnings[0].reason

"""Dialects: tables are sound, a user's own is read like the built-in ones, one span can be explained."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trajectory.spans import span
from tracegrade.dialects.base import FIELDS
from tracegrade.dialects.custom import load_dialects
from tracegrade.dialects.interpret import interpret
from tracegrade.dialects.registry import Registry, built_in
from tracegrade.errors import RuleFileError
from tracegrade.trajectory.build import build_trajectory

OWN = """
name: shop-sdk
source: our own SDK
version: "1"
marks: ["attr:shop.op"]
roles:
  - shop.op: {call_tool: tool, ask: model}
fields:
  tool: [shop.tool]
  arguments: ["shop.args|kwargs"]
  output_messages: ["shop.answer|output_messages"]
tool_spans: true
"""


def test_every_table_names_its_source_and_only_known_fields() -> None:
    names = [c.dialect.name for c in built_in()]
    assert len(names) == len(set(names))
    for compiled in built_in():
        dialect = compiled.dialect
        assert dialect.source
        assert dialect.version
        assert dialect.checked
        assert set(dialect.fields) <= set(FIELDS), dialect.name


def test_a_dialect_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(OWN)
    registry = Registry(load_dialects([file]))
    call = span(1, "x", shop__op="call_tool", shop__tool="refund", shop__args='{"args": [], "kwargs": {"order": "W1"}}')
    facts = interpret(call, registry)
    assert (facts.role, facts.dialect) == ("tool", "shop-sdk")
    found = build_trajectory([call], registry)
    assert [(c.tool, c.arguments) for c in found.calls()] == [("refund", {"order": "W1"})]
    assert build_trajectory([call], Registry()).calls() == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("attr:shop.op", "shop.op", "expected attr:KEY"),
        ("shop.args|kwargs", "shop.args|kwarg", "unknown converter"),
        ("tool: [shop.tool]", "tol: [shop.tool]", "unknown field"),
        ("call_tool: tool", "call_tool: hammer", "roles"),
    ],
)
def test_a_malformed_dialect_says_what_is_wrong(tmp_path: Path, old: str, new: str, said: str) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(OWN.replace(old, new))
    with pytest.raises(RuleFileError) as caught:
        load_dialects([file])
    assert said in str(caught.value)
    assert str(file) in str(caught.value)


def test_a_date_and_a_number_without_quotes_are_text(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(OWN.replace('version: "1"', "version: 1.5\nchecked: 2026-11-02"))
    (found,) = load_dialects([file])[:1]
    assert (found.version, found.checked) == ("1.5", "2026-11-02")


def test_indices_are_numbers_and_may_have_gaps() -> None:
    attributes = {"openinference.span.kind": "LLM"}
    for i in (11, 2, 0):
        attributes[f"llm.input_messages.{i}.message.role"] = "user"
        attributes[f"llm.input_messages.{i}.message.content"] = f"text {i}"
    call = span(1, "ChatCompletion", **{k.replace(".", "__"): v for k, v in attributes.items()})
    messages = interpret(call, Registry()).messages("input_messages")
    assert messages is not None
    assert [m.parts[0].text for m in messages] == ["text 0", "text 2", "text 11"]  # type: ignore[union-attr]


def test_tool_parameters_are_the_schema_not_the_arguments() -> None:
    call = span(
        1, "refund.run", openinference__span__kind="TOOL", tool__name="refund", tool__parameters='{"type": "object"}'
    )
    content, _ = interpret(call, Registry()).content("arguments")
    assert content.state == "not_captured"


def test_both_provider_keys_are_read() -> None:
    for key in ("gen_ai__system", "gen_ai__provider__name"):
        assert (
            interpret(span(1, "chat m", gen_ai__operation__name="chat", **{key: "openai"}), Registry()).text("provider")
            == "openai"
        )

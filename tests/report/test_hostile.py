"""Whatever stands in a trace, every format holds it as text and is what it says it is."""

from __future__ import annotations

import json as stdlib
import re
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree as ET

from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.report.samples import HOSTILE, START, check_report
from tracegrade.model.report import CheckReport, InputReport, InvariantReport, RuleReport, TrajectoryReport, Warned
from tracegrade.model.trajectory import Gap
from tracegrade.model.verdict import Finding, StepRef
from tracegrade.report import github, html, json, junit, markdown, sarif, text
from tracegrade.report.escape import printable
from tracegrade.report.rollup import check_summary

ODD = "\x00\x1b\x9b\u202e\u2066\ufffe\ud800<>&\"'`|:#*_[]()\n\r\t\\%"
TEXTS = st.text(st.characters(codec=None) | st.sampled_from(ODD), max_size=40)


def report_of(text_: str) -> CheckReport:
    """A report with one text in every place that a trace, a path or a rule can fill."""
    step = StepRef(
        0, "tool_call", text_, {text_: text_}, "captured", "ok", start_ns=START, span_ids=(text_,), role=text_
    )
    said = StepRef(1, "message", text_, text=text_, role="claim")
    finding = Finding(
        text_, "error", text_, text_, (text_,), (step, said), text_, text_, (text_,), text_, context={text_: text_}
    )
    rules = (
        InvariantReport(text_, "fail", findings=(finding,), kind=text_, tags=("safety", text_)),
        InvariantReport(text_ + "!", "unknown", findings=(finding,), missing=(text_,)),
        InvariantReport(text_ + "?", "fail", findings=(finding,), waived=text_),
    )
    graded = TrajectoryReport(
        trajectory_id=text_,
        trace_ids=(text_,),
        conversation_id=text_,
        task_id=text_,
        trial=text_,
        verdict="fail",
        gaps=(Gap(text_, text_, 1, (text_,)),),
        invariants=rules,
        agents=(text_,),
        services=(text_,),
    )
    inputs = (InputReport(path=text_, format=text_, spans_distinct=1, error=text_), InputReport(path="b" + text_))
    summary, coverage = check_summary([graded], inputs=inputs, dialects=("d",))
    return CheckReport(
        inputs=inputs,
        summary=summary,
        coverage=coverage,
        warnings=(Warned(code=text_, message=text_),),
        trajectories=(graded,),
        rules=(RuleReport(id=text_, sha256=text_, why=text_),),
        rule_sources=(text_,),
    )


class Tags(HTMLParser):
    """The elements and attributes of a page, and the text of its data element."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.data: list[str] = []
        self._inside = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self._inside = ("id", "data") in attrs

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.data.append(data)


@settings(max_examples=60, deadline=None)
@given(TEXTS)
def test_no_format_lets_it_act(text_: str) -> None:
    report = report_of(text_)
    for module in (text, json, junit, sarif, markdown, github, html):
        made = module.render(report)
        made.encode("utf-8")
        assert printable(made, newlines=True) == made, module.__name__


@settings(max_examples=60, deadline=None)
@given(TEXTS)
def test_xml_json_and_commands_can_be_read(text_: str) -> None:
    report = report_of(text_)
    suites = ET.fromstring(junit.render(report))
    assert {s.get("name") for s in suites} >= {"tracegrade"}
    stdlib.loads(sarif.render(report))
    for line in github.render(report).splitlines():
        assert re.match(r"::(error|warning|notice) title=[^:,]*::", line)


@settings(max_examples=60, deadline=None)
@given(TEXTS)
def test_a_page_has_the_elements_of_the_page_without_it(text_: str) -> None:
    assert Tags(html.render(report_of(text_ or "x"))).tags == Tags(html.render(report_of("x"))).tags


@settings(max_examples=100, deadline=None)
@given(TEXTS)
def test_a_code_span_of_markdown_holds_the_text(text_: str) -> None:
    tokens = MarkdownIt("commonmark").enable("table").parse(f"| a |\n|---|\n| {markdown.code(text_, 100)} |\n")
    inline = [child for t in tokens if t.type == "inline" for child in t.children or () if child.type != "text"]
    assert [t.type for t in inline] == ["code_inline"]
    shown = printable(text_)
    assert inline[0].content.strip() == (shown.strip() if shown.strip() else "")


def test_markdown_has_no_markup_of_the_data() -> None:
    made = MarkdownIt("commonmark").enable("table").render(markdown.render(check_report()))
    assert "<img" not in made
    assert "<script" not in made
    assert "<b>" not in made


def test_a_fence_is_not_ended_by_the_text_inside() -> None:
    inside = "````\n```\nx"
    tokens = MarkdownIt("commonmark").parse(markdown.block(inside))
    assert [(t.type, t.content) for t in tokens] == [("fence", inside + "\n")]


def test_a_workflow_command_is_one_line_and_cannot_be_left() -> None:
    made = github.command("error", HOSTILE, HOSTILE)
    assert "\n" not in made
    assert made.count("::error ") == 1


def test_no_line_of_the_text_begins_with_a_command() -> None:
    warned = check_report().model_copy(update={"warnings": (Warned(code="c", message="x " * 60 + "::error::y"),)})
    for width in range(40, 140, 7):
        for line in text.render(warned, width=width).splitlines():
            assert not line.lstrip().startswith("::")


def test_a_value_of_a_megabyte_is_cut_and_the_cut_is_said() -> None:
    report = report_of("y" * 1_000_000)
    for module in (text, markdown, github):
        made: Any = module.render(report)
        assert len(made) < 60_000, module.__name__
        assert re.search(r"… \(\+[\d,]+ characters\)", made), module.__name__

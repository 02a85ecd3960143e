"""Every example of the documents prints what the document says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_rules_of_the_house import REPO, script
from tracegrade.checks.examples import run_examples, untested_rules
from tracegrade.checks.load import parse_pack

examples = script("examples")


@pytest.mark.parametrize("path", examples.documents(), ids=lambda path: str(path.relative_to(REPO)))
def test_what_an_example_prints_is_what_the_document_shows(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text == examples.render(text), "run `python .ci/examples.py`"


def blocks(language: str) -> list[str]:
    text = (REPO / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("code", [block for block in blocks("python") if "def test_" not in block])
def test_the_python_of_the_readme_runs(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPO)
    exec(compile(code, "README.md", "exec"), {})


@pytest.mark.parametrize("text", [*blocks("yaml"), (REPO / "tracegrade/templates/starter.yaml").read_text()])
def test_packs_shown_to_a_newcomer_load_and_their_examples_hold(text: str) -> None:
    pack = parse_pack(text)
    assert [result for result in run_examples(pack) if not result.ok] == []
    assert untested_rules(pack) == []

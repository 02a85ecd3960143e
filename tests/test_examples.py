"""Every example of the documents prints what the document says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_rules_of_the_house import REPO, script

examples = script("examples")


@pytest.mark.parametrize("path", examples.documents(), ids=lambda path: str(path.relative_to(REPO)))
def test_what_an_example_prints_is_what_the_document_shows(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text == examples.render(text), "run `python .ci/examples.py`"

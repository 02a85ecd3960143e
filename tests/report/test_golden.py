"""Every format of one report with everything in it, byte for byte.

`TRACEGRADE_UPDATE_GOLDEN=1 pytest tests/report/test_golden.py` writes the files anew: read the diff before committing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

import pytest

from tests.conftest import REPO
from tests.report.samples import check_report, clean_report, show_report, trajectory
from tracegrade.report import diff_text, github, html, json, junit, markdown, sarif, steps_text, text
from tracegrade.report.build_diff import diff_report
from tracegrade.report.escape import printable
from tracegrade.trajectory.diff import diff_trajectories


def _body() -> str:
    """The page without its script and style, which are files of their own."""
    found = re.search(r"<body>(.*)<script type=", html.render(check_report()), re.DOTALL)
    assert found is not None
    return found.group(1).replace("><", ">\n<") + "\n"


def _diff() -> str:
    left, right = trajectory("left"), trajectory("right", other=True)
    return diff_text.render(diff_report(left, right, diff_trajectories(left, right)))


FORMATS: dict[str, Callable[[], str]] = {
    "check.txt": lambda: text.render(check_report()),
    "check.color.txt": lambda: text.render(check_report(), style=True).replace("\x1b", "<ESC>"),
    "clean.txt": lambda: text.render(clean_report()),
    "check.json": lambda: json.render(check_report()),
    "check.xml": lambda: junit.render(check_report()),
    "check.sarif": lambda: sarif.render(check_report()),
    "check.md": lambda: markdown.render(check_report()),
    "check.github.txt": lambda: github.render(check_report()),
    "check.body.html": _body,
    "show.txt": lambda: steps_text.render(show_report()),
    "show.sources.txt": lambda: steps_text.render(show_report(), sources=True),
    "show.json": lambda: json.render(show_report()),
    "diff.txt": _diff,
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_report_is_as_recorded(name: str) -> None:
    path = REPO / "tests" / "golden" / name
    made = FORMATS[name]()
    if os.environ.get("TRACEGRADE_UPDATE_GOLDEN"):
        path.write_text(made, encoding="utf-8", newline="\n")
    assert made == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FORMATS)
def test_no_control_character_of_the_data_is_in_any_format(name: str) -> None:
    made = FORMATS[name]()
    assert printable(made, newlines=True) == made
    assert "\n::error::x" not in made

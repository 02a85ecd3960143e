"""What the commands share: output files, colour."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tracegrade.cli.common import out_format, use_color, write_reports
from tracegrade.errors import UsageError


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("r.json", "json"),
        ("r.xml", "junit"),
        ("r.sarif", "sarif"),
        ("r.sarif.json", "sarif"),
        ("R.MD", "markdown"),
        ("a.b.html", "html"),
        ("r.txt", "text"),
    ],
)
def test_the_ending_chooses_the_format(name: str, expected: str) -> None:
    assert out_format(Path(name)) == expected


@pytest.mark.parametrize("name", ["report", "report.pdf", "json"])
def test_another_ending_is_an_error_that_lists_the_known_ones(name: str) -> None:
    with pytest.raises(UsageError, match=r"\.json .*\.md"):
        out_format(Path(name))


def test_reports_are_written_in_new_folders(tmp_path: Path) -> None:
    outs = [tmp_path / "new" / "a.json", tmp_path / "b.md"]
    write_reports(lambda kind: f"as {kind}", outs)
    assert [path.read_bytes() for path in outs] == [b"as json\n", b"as markdown\n"]


def test_a_report_that_cannot_be_written_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        write_reports(str, [tmp_path / "file" / "a.json"])


def test_colour_only_on_a_terminal_and_never_with_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert use_color(Terminal())
    assert not use_color(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not use_color(Terminal())

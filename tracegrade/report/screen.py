"""Lines for a terminal: everything written through here is made printable first, then styled."""

from __future__ import annotations

import textwrap
from typing import Final, NamedTuple

from tracegrade.report.escape import printable
from tracegrade.report.phrase import short

PART_WIDTH: Final = 1000
"""Characters of one part of a line: what is longer is cut, and it is said by how much."""

_CODES: Final = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "cyan": "36",
    "bad": "1;31",
    "good": "1;32",
    "unsure": "1;33",
}
VERDICT_STYLE: Final = {
    "error": "bad",
    "fail": "bad",
    "unknown": "unsure",
    "pass": "good",
    "not_applicable": "dim",
    "excluded": "dim",
}


class Styled(NamedTuple):
    """Text with a style of `_CODES`; the style is dropped where there is no colour."""

    text: str
    style: str


class Screen:
    """Collects lines. Control characters of the data never reach the output: only our own style codes do.

    A line never begins with `::`, which some CI runners obey.

    Args:
        style: write ANSI style codes.
        width: columns to wrap prose at.
    """

    def __init__(self, *, style: bool = False, width: int = 100) -> None:
        self._style = style
        self._lines: list[str] = []
        self.width = width

    def line(self, *parts: str | Styled) -> None:
        """Add one line made of the parts."""
        text = "".join(self._write(p) for p in parts).rstrip()
        if text.lstrip().startswith("::"):  # data that begins a line must not be a command to a CI runner
            text = text.replace("::", "\\::", 1)
        self._lines.append(text)

    def blank(self) -> None:
        """Add an empty line, unless there is one already or nothing above it."""
        if self._lines and self._lines[-1]:
            self._lines.append("")

    def prose(self, label: str | Styled, text: str, *, indent: int = 2, style: str = "") -> None:
        """Add a label and a text wrapped beside it."""
        head = printable(label.text if isinstance(label, Styled) else label)
        gap = " " if head and not head.endswith(" ") else ""
        hang = indent + len(head) + len(gap)
        wrapped = textwrap.wrap(
            printable(short(text, PART_WIDTH)),
            max(20, self.width - hang),
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]
        self.line(" " * indent, label, gap, Styled(wrapped[0], style) if style else wrapped[0])
        for more in wrapped[1:]:
            self.line(" " * hang, Styled(more, style) if style else more)

    def text(self) -> str:
        """All lines, ending in one line feed."""
        lines = self._lines
        while lines and not lines[-1]:
            lines = lines[:-1]
        return "\n".join(lines) + "\n"

    def _write(self, part: str | Styled) -> str:
        if isinstance(part, str):
            return printable(short(part, PART_WIDTH))
        text = printable(short(part.text, PART_WIDTH))
        code = _CODES.get(part.style)
        return f"\x1b[{code}m{text}\x1b[0m" if self._style and code and text else text

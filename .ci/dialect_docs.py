"""Writes docs/dialects.md: the dialects from their tables, and what recorded stacks show, computed from the spans.

The second table needs the recorded traces beside the repository (`TRACEGRADE_SHARED`); without them it stays as it is.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "dialects.md"
TABLES = "<!-- Dialects: written by .ci/dialect_docs.py from tracegrade/dialects/tables. -->"
MATRIX = "<!-- Stacks: written by .ci/dialect_docs.py from recorded spans and their manifest. -->"
END = "<!-- End of what is written. -->"


def tables_text() -> str:
    """The dialects in the order in which they are asked."""
    from tracegrade.dialects.registry import Registry

    lines = ["| dialect | facts from | version | checked |", "| --- | --- | --- | --- |"]
    for compiled in Registry().compiled:
        d = compiled.dialect
        lines.append(f"| `{d.name}` | {d.source} | {d.version} | {d.checked} |")
    return "\n".join(lines)


def matrix_text() -> str:
    """Stack × behaviour × what is right of it."""
    sys.path.insert(0, str(ROOT))
    from tests.trajectory.matrix import rows

    lines = [
        "| stack | behaviour | calls | arguments | results | tokens in + out | verdicts decided |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for r in rows():
        cells = (r.stack, r.behaviour, r.calls, r.arguments, r.results, r.tokens, r.verdicts)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def render(*, matrix: bool) -> str:
    """The text of docs/dialects.md.

    Args:
        matrix: whether the recorded traces are there to compute the second table from.
    """
    text = TARGET.read_text(encoding="utf-8")
    for mark, made in ((TABLES, tables_text()), (MATRIX, matrix_text() if matrix else None)):
        if made is not None:
            head, _, rest = text.partition(mark)
            _, _, tail = rest.partition(END)
            text = f"{head}{mark}\n\n{made}\n\n{END}{tail}"
    return text


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    from tests.trajectory.test_shared_traces import STACKS

    TARGET.write_text(render(matrix=bool(STACKS)), encoding="utf-8")

"""Writes the columns of docs/store.md from an empty database."""

from __future__ import annotations

from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "docs" / "store.md"
MARK = "<!-- Columns: written by .ci/store_docs.py from the schema. -->"
END = "<!-- End of what is written. -->"
TABLES = {
    "spans": "every span as it was loaded; a view",
    "span_events": "one row an event of a span; a view",
    "span_links": "one row a link of a span; a view",
    "log_records": "every log record; a view",
    "loads": "one row a file that was read",
    "trajectories": "one row a trajectory, with its verdict and usage",
    "steps": "one row a step: tool calls, model calls, messages, …",
    "results": "one row a rule and trajectory",
    "findings": "one row a piece of evidence for a result that is no pass",
    "outcomes": "one row a trial, graded by its task",
    "gradings": "by what the last `check` graded: rules and their hashes, tasks, protocol, dialects",
    "runs": "the history that `tracegrade runs` keeps",
}


def columns_text() -> str:
    """Each table with its columns and their types."""
    from tracegrade.store import Store

    parts = []
    with Store.open(None) as store:
        for name, what in TABLES.items():
            columns = ", ".join(f"`{row[0]}` {str(row[1]).lower()}" for row in store.query(f"DESCRIBE {name}").rows)
            parts.append(f"**`{name}`**: {what}.\n\n{columns}")
    return "\n\n".join(parts)


def render() -> str:
    """The text of docs/store.md."""
    head, _, rest = TARGET.read_text(encoding="utf-8").partition(MARK)
    return f"{head}{MARK}\n\n{columns_text()}\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    TARGET.write_text(render(), encoding="utf-8")

"""Writes docs/audit.md: every rule of the audit from the code, below what is said of the audit as a whole."""

from __future__ import annotations

from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "docs" / "audit.md"
MARK = "<!-- Written by .ci/audit_docs.py from the rules; edit those. -->"
TITLES = {
    "gradeability": "Gradeability: can your rules be decided?",
    "regression": "Against a baseline",
    "structure": "Structure of traces",
    "conventions": "GenAI semantic conventions",
    "privacy": "Privacy and cost",
}


def rules_text() -> str:
    """The reference of all rules, by family."""
    from tracegrade.audit.catalog import FAMILIES, rules

    parts = [MARK]
    for family in FAMILIES:
        parts.append(f"### {TITLES[family]}")
        parts += [
            f"#### {rule.id}\n\n*{rule.level}.* {rule.summary}\n\n- Why it matters: {rule.why}\n- Fix: {rule.fix}"
            for rule in rules()
            if rule.family == family
        ]
    return "\n\n".join(parts) + "\n"


def render() -> str:
    """The text of docs/audit.md."""
    head, _, _ = TARGET.read_text(encoding="utf-8").partition(MARK)
    return head + rules_text()


if __name__ == "__main__":
    TARGET.write_text(render(), encoding="utf-8")

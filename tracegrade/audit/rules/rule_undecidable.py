"""Your rules that these traces cannot decide."""

from __future__ import annotations

from collections.abc import Iterator

from tracegrade.audit.base import Options, Rule, Sighting, Totals


def conclude(totals: Totals, options: Options) -> Iterator[Sighting]:
    """Rules with undecided verdicts; a warning where they are never decided."""
    for row in totals.counts.decidability():
        if not row.undecidable:
            continue
        applicable = row.decidable + row.undecidable
        never = row.decidable == 0
        yield Sighting(
            f"`{row.invariant}` cannot be decided on {'any' if never else 'some'} of the trajectories it applies to",
            expected="a verdict",
            observed=f"{row.undecidable} of {applicable} undecided for lack of: {', '.join(row.missing)}",
            key=row.invariant,
            count=row.undecidable,
            level="warning" if never else "info",
            context={"invariant": row.invariant, "missing": list(row.missing)},
        )


RULE = Rule(
    id="rule-undecidable",
    family="gradeability",
    level="warning",
    summary="A rule is unknown on trajectories because evidence is missing.",
    why="An undecided rule says nothing: it neither passes nor fails.",
    fix="Record what is named as missing; the to-do list says how many verdicts each piece would decide.",
    conclude=conclude,
)

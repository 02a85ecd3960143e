"""Verdicts before and after redaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from tracegrade.app.check import CheckOptions, run_check
from tracegrade.ingest import ReadOptions
from tracegrade.model.redact import Changed
from tracegrade.replay.redact.ids import IdMap


def verdict_changes(
    before: Sequence[str], after: Sequence[str], packs: Sequence[str], read: ReadOptions, ids: IdMap | None
) -> tuple[Changed, ...]:
    """The verdicts that are others on the redacted spans, `unknown` apart.

    Args:
        before: the original files.
        after: the redacted ones.
        packs: the rules.
        read: how to read.
        ids: the mapping of ids, where they were mapped.
    """
    was = _verdicts(before, packs, read, ids.trace if ids else None)
    now = _verdicts(after, packs, read, ids.mapped_trace if ids else None)
    changed = []
    for (trajectory, what), verdict in sorted(was.items()):
        found = now.get((trajectory, what), "missing")
        if found not in (verdict, "unknown"):
            changed.append(Changed(trajectory=trajectory, what=what, before=verdict, after=found))
    return tuple(changed)


def _verdicts(
    paths: Sequence[str], packs: Sequence[str], read: ReadOptions, name_of: Callable[[str], str | None] | None
) -> dict[tuple[str, str], str]:
    """Verdicts by trajectory and rule. A trace whose id is not in the spans (it was made for log records) goes by its
    start: its id comes from other ids, which may be mapped."""
    report = run_check(CheckOptions(paths=paths, invariants=packs, read=read))
    found: dict[tuple[str, str], str] = {}
    seen: Counter[str] = Counter()
    for trajectory in report.trajectories:
        names = [name_of(t) if name_of else t for t in trajectory.trace_ids]
        name = " ".join(sorted(n for n in names if n)) if all(names) else f"started at {trajectory.start_ns}"
        seen[name] += 1
        for result in trajectory.invariants:
            found[f"{name} #{seen[name]}" if seen[name] > 1 else name, result.id] = result.verdict
    return found

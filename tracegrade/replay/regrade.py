"""Two results of `check` over the same trajectories: which verdicts are others now, and why.

Comes in: two results as JSON documents. Goes out: the changes, each with the changes of rules, tasks, reading and
program that may have caused it. It compares verdicts and never makes one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tracegrade.model.replay import Cause, VerdictChange
from tracegrade.model.values import canonical

Document = Mapping[str, Any]

_RANK: Final = {"error": 3, "fail": 3, "unknown": 2, "excluded": 2}
_READING: Final = ("complete", "steps", "tools", "usage", "gaps", "joined_by", "trace_ids", "agents")
"""What of a trajectory depends on the spans and on how they are read, but on no rule."""


@dataclass(frozen=True, slots=True)
class Regraded:
    """The comparison: changes in the order of the new result's trajectories, and what both sides have."""

    changed: tuple[VerdictChange, ...]
    compared: int
    unchanged: int
    rules_added: tuple[str, ...]
    rules_removed: tuple[str, ...]
    rules_changed: tuple[str, ...]


def compare_results(before: Document, after: Document) -> Regraded:
    """Compare two results of `check`.

    Args:
        before: the earlier result, as JSON.
        after: the new one.
    """
    old_rules, new_rules = _digests(before), _digests(after)
    changed: list[VerdictChange] = []
    compared = 0
    old = {_identity(t): t for t in before.get("trajectories", ())}
    new = {_identity(t): t for t in after.get("trajectories", ())}
    for identity in [*new, *(i for i in old if i not in new)]:
        was, now = old.get(identity), new.get(identity)
        verdicts = (_verdicts(was) if was else {}), (_verdicts(now) if now else {})
        for what in [*verdicts[1], *(w for w in verdicts[0] if w not in verdicts[1])]:
            a, b = verdicts[0].get(what), verdicts[1].get(what)
            compared += a is not None and b is not None
            if (a or {}).get("verdict") == (b or {}).get("verdict"):
                continue
            causes = tuple(_causes(what, (was, now), (before, after), (old_rules.get(what), new_rules.get(what))))
            changed.append(_change(now or was or {}, what, a, b, causes))
    both = old_rules.keys() & new_rules.keys()
    return Regraded(
        changed=tuple(changed),
        compared=compared,
        unchanged=compared - sum(c.before is not None and c.after is not None for c in changed),
        rules_added=tuple(sorted(new_rules.keys() - old_rules.keys())),
        rules_removed=tuple(sorted(old_rules.keys() - new_rules.keys())),
        rules_changed=tuple(sorted(r for r in both if old_rules[r] != new_rules[r])),
    )


def _identity(trajectory: Document) -> str:
    return str(trajectory["trajectory_id"])


def _digests(document: Document) -> dict[str, str]:
    return {r["id"]: r["sha256"] for r in document.get("rules", ())}


def _verdicts(trajectory: Document) -> dict[str, Document]:
    """What was judged, by rule id, and the outcome under `outcome`."""
    found: dict[str, Document] = {i["id"]: i for i in trajectory.get("invariants", ())}
    if trajectory.get("outcome") is not None:
        found["outcome"] = trajectory["outcome"]
    return found


def _change(
    trajectory: Document, what: str, before: Document | None, after: Document | None, causes: tuple[Cause, ...]
) -> VerdictChange:
    was, now = ((d or {}).get("verdict") for d in (before, after))
    finding: Document = next(iter((after or {}).get("findings") or ()), {})
    return VerdictChange(
        trajectory_id=_identity(trajectory),
        task_id=trajectory.get("task_id"),
        trial=trajectory.get("trial"),
        what=what,
        level=(after or before or {}).get("level", "error"),
        before=was,
        after=now,
        worse=_RANK.get(now or "", 1) > _RANK.get(was or "", 1),
        cause=causes[0],
        causes=causes,
        message=finding.get("message") or (after or {}).get("reason") or None,
        span_ids=tuple(finding.get("span_ids") or ()),
    )


def _causes(
    what: str,
    trajectories: tuple[Document | None, Document | None],
    documents: tuple[Document, Document],
    digests: tuple[str | None, str | None],
) -> Iterator[Cause]:
    """Every change that may explain a verdict, the most direct first; `not_explained` where there is none."""
    was, now = trajectories
    if was is None or now is None:
        yield "trajectory_added" if was is None else "trajectory_removed"
        return
    found = False
    if what == "outcome":
        if documents[0].get("tasks_sha256") != documents[1].get("tasks_sha256"):
            found = True
            yield "tasks_changed"
    elif digests[0] != digests[1]:
        found = True
        yield "rule_added" if digests[0] is None else "rule_removed" if digests[1] is None else "rule_changed"
    if any(canonical(was.get(k)) != canonical(now.get(k)) for k in _READING):
        found = True
        yield "reading_changed"
    if _dialects(documents[0]) != _dialects(documents[1]) or was.get("dialects") != now.get("dialects"):
        found = True
        yield "dialect_changed"
    if documents[0].get("tracegrade_version") != documents[1].get("tracegrade_version"):
        found = True
        yield "tracegrade_changed"
    if not found:
        yield "not_explained"


def _dialects(document: Document) -> dict[str, Any]:
    return {d["name"]: d.get("source") for d in document.get("dialects", ())}

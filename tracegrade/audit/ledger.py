"""Runs rules over trajectories as they stream by, and folds what they see into findings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tracegrade.audit.base import Options, Place, Rule, Scene, Sighting, Totals
from tracegrade.model.audit import AuditFinding
from tracegrade.model.values import JSON
from tracegrade.model.verdict import Level

MAX_EXAMPLES = 3
MAX_KINDS = 500
"""Kinds of sightings that one rule tells apart; what is beyond is folded into one finding of that rule."""


@dataclass(slots=True)
class _Fold:
    """Sightings of one kind at one place."""

    rule: Rule
    first: Sighting
    count: int = 0
    trajectories: int = 0
    last: object = None
    examples: list[JSON] = field(default_factory=list)


class Ledger:
    """What the rules saw so far.

    Args:
        rules: those to run.
        options: what the audit was told.
    """

    def __init__(self, rules: Sequence[Rule], options: Options) -> None:
        self._rules = rules
        self._options = options
        self._folds: dict[tuple[str, Place, str], _Fold] = {}
        self._kinds: dict[str, int] = {}

    def look(self, scene: Scene) -> None:
        """Shows one trajectory to every rule."""
        for rule in self._rules:
            if rule.look is not None:
                self._take(rule, rule.look(scene, self._options), scene.trajectory.trajectory_id)

    def conclude(self, totals: Totals) -> None:
        """Shows what was counted to every rule."""
        for rule in self._rules:
            if rule.conclude is not None:
                self._take(rule, rule.conclude(totals, self._options), None)

    def findings(self) -> list[AuditFinding]:
        """One finding for each kind and place: worst first, then in the order of the rules, then the most frequent."""
        order = {rule.id: i for i, rule in enumerate(self._rules)}
        levels = {"error": 0, "warning": 1, "info": 2}
        found = [_finding(fold) for fold in self._folds.values()]
        found.sort(key=lambda f: (levels[f.level], order[f.rule], -f.count, f.message, str(f.context.get("scope"))))
        return found

    def _take(self, rule: Rule, sightings: Iterable[Sighting], trajectory: str | None) -> None:
        for sighting in sightings:
            key = (rule.id, sighting.place, sighting.key or sighting.what)
            fold = self._folds.get(key)
            if fold is None:
                if self._kinds.get(rule.id, 0) >= MAX_KINDS:
                    key = (rule.id, Place(), "")
                    sighting = Sighting(f"further kinds of what `{rule.id}` finds", count=sighting.count)
                else:
                    self._kinds[rule.id] = self._kinds.get(rule.id, 0) + 1
                fold = self._folds.setdefault(key, _Fold(rule, sighting))
            fold.count += sighting.count
            if trajectory is not None and fold.last != trajectory:
                fold.trajectories += 1
                fold.last = trajectory
            if sighting.span is not None and len(fold.examples) < MAX_EXAMPLES:
                fold.examples.append({"trace_id": sighting.span.trace_id, "span_id": sighting.span.span_id})


def _finding(fold: _Fold) -> AuditFinding:
    first, rule = fold.first, fold.rule
    level: Level = first.level or rule.level
    context: dict[str, JSON] = {}
    if first.place != Place():
        context |= first.place._asdict()
    if first.span is not None:
        context["span_name"] = first.span.name
    if fold.examples:
        context["examples"] = list(fold.examples)
    if fold.trajectories:
        context["trajectories"] = fold.trajectories
    return AuditFinding(
        rule=rule.id,
        level=level,
        message=_message(fold),
        expected=first.expected,
        observed=first.observed,
        context=context | first.context,
        count=fold.count,
        why=rule.why,
        fix=first.fix or rule.fix,
    )


def _message(fold: _Fold) -> str:
    place = fold.first.place
    where = ", ".join(p for p in (place.operation, place.scope, place.service) if p)
    text = f"{fold.first.what} ({where})" if where else fold.first.what
    if fold.trajectories:
        times = "" if fold.count == 1 else "s"
        runs = "trajectory" if fold.trajectories == 1 else "trajectories"
        text += f": {fold.count} time{times} in {fold.trajectories} {runs}"
    return text[:1].upper() + text[1:]

"""Whether a step has another of some kind before it (or after it): the core of every rule about order.

`Search` holds one side (what is looked for) with its conditions; `around` answers for one step in three values. The
same object explains the answer: which candidate came closest, and what kept it from counting.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from tracegrade.checks.finding import name_of, unseen_codes, why_unsure
from tracegrade.checks.pattern import Action
from tracegrade.checks.same import SameIndex, SamePair, describe_same, same_codes, same_values
from tracegrade.checks.view import Matches, View
from tracegrade.checks.within import WITHIN_CODE, Distance, is_within
from tracegrade.model.trajectory import Relation
from tracegrade.model.values import Tri, tri_and, tri_not


class Story(NamedTuple):
    """Why a search around one step ended as it did.

    Attributes:
        key: short name of the reason, for folding repeats.
        observed: the reason in words.
        steps: what was looked at, each with its role.
        codes: evidence that would decide, for an unknown.
    """

    key: str
    observed: str
    steps: list[tuple[int, str]]
    codes: list[str]


class Search:
    """Looks for a proof around a step.

    Args:
        view: the trajectory.
        action: what counts as proof.
        relation: the order meant.
        side: `before` looks for a proof before the step, `after` for one after it.
        same: values that both must share; `first` paths belong to the earlier named action of the rule.
        within: how far apart they may be.
        alternate: an action no other step of which may lie between the two.
    """

    def __init__(
        self,
        view: View,
        action: Action,
        relation: Relation,
        side: Literal["before", "after"] = "before",
        same: tuple[SamePair, ...] | None = None,
        within: Distance | None = None,
        alternate: Action | None = None,
    ) -> None:
        self.view, self.action, self.relation, self.side = view, action, relation, side
        self.same, self.within, self.alternate = same, within, alternate
        self._plain = same is None and within is None and alternate is None
        self.found: Matches = view.match(action, "proof")
        self._index: dict[bool, SameIndex] = {}

    @property
    def word(self) -> str:
        """`before` or `after`."""
        return self.side

    def may_be_unseen(self) -> bool:
        """Whether a proof may exist that was not seen."""
        return self.found.open or (self.side == "before" and self.view.has_prior)

    def pair(self, proof: int, step: int) -> Tri:
        """Whether a candidate stands to the step as the rule asks, its own match aside."""
        earlier, later = (proof, step) if self.side == "before" else (step, proof)
        value = self.view.before(earlier, later, self.relation)
        if value is False or self._plain:
            return value
        rest: list[Tri] = [value]
        if self.same is not None:
            rest.append(self._same(proof, step))
        if self.within is not None:
            rest.append(is_within(self.view, earlier, later, self.within, self.relation))
        if self.alternate is not None:
            rest.append(tri_not(self._interrupted(earlier, later)))
        return tri_and(rest)

    def _interrupted(self, earlier: int, later: int) -> Tri:
        """Whether another step of `alternate` lies between two steps."""
        assert self.alternate is not None  # noqa: S101 - asked by `pair` only then
        found = self.view.match(self.alternate, "attempt")
        value: Tri = False
        for sure, group in ((True, found.certain()), (None, found.possible())):
            for other in group:
                if other in (earlier, later):
                    continue
                between = tri_and((sure, self._before(earlier, other), self._before(other, later)))
                if between is True:
                    return True
                if between is None:
                    value = None
        return None if value is False and self.view.steps[earlier].prior else value

    def _before(self, a: int, b: int) -> Tri:
        return self.view.before(a, b, self.relation)

    def _same(self, proof: int, step: int) -> Tri:
        assert self.same is not None  # noqa: S101 - asked by `pair` only then
        first, then = (proof, step) if self.side == "before" else (step, proof)
        return same_values(self.view, self.same, first, then)

    def candidates(self, step: int, certain: bool) -> Iterable[int]:
        """Proofs that may stand around the step: certain matches, or those that are not certain.

        The likeliest come first: the earliest of those before, the latest of those after.
        """
        found = self.found.certain() if certain else self.found.possible()
        if self.same is None:
            return found if self.side == "before" else reversed(found)
        if certain not in self._index:
            side = "first" if self.side == "before" else "then"
            self._index[certain] = SameIndex(self.view, self.same, tuple(found), side)
        return self._index[certain].near(step)

    def around(self, step: int) -> Tri:
        """Whether the step has a proof on the wanted side."""
        best: Tri = False
        for proof in self.candidates(step, True):
            value = self.pair(proof, step)
            if value is True:
                return True
            if value is None:
                best = None
        if best is False:
            for proof in self.candidates(step, False):
                if self.pair(proof, step) is not False:
                    best = None
                    break
        return None if best is False and self.may_be_unseen() else best

    def story(self, step: int) -> Story:
        """What kept the step from having a proof, told of the candidate that came closest."""
        value = self.around(step)
        return self._undecided(step) if value is None else self._missing(step)

    def _undecided(self, step: int) -> Story:
        view = self.view
        for proof in (*self.found.certain(), *self.found.possible()):
            if self.pair(proof, step) is False:
                continue
            codes = why_unsure(view, [self.action.proof], [proof])
            earlier, later = (proof, step) if self.side == "before" else (step, proof)
            if view.before(earlier, later, self.relation) is None:
                codes.append("turns" if self.relation == "informed" else "order")
            if self.same is not None and self._same(proof, step) is None:
                first, then = (proof, step) if self.side == "before" else (step, proof)
                codes += same_codes(view, self.same, first, then)
            if self.alternate is not None and self._interrupted(earlier, later) is None:
                codes.append("order")
            if self.within is not None and is_within(view, earlier, later, self.within, self.relation) is None:
                codes.append(WITHIN_CODE[self.within.unit])
            told = f"{name_of(view.steps[proof])} may or may not be the `{self.action.label}` {self.word} it"
            return Story("undecided:" + ",".join(codes), told, [(proof, self.action.label)], codes or ["order"])
        codes = unseen_codes(view, self.action.proof)
        if self.side == "before" and view.has_prior:
            codes.append("prior")
            told = f"no `{self.action.label}` was seen; the conversation began in a trace outside this trajectory"
        else:
            told = f"no `{self.action.label}` was seen {self.word} it, but one may have gone unrecorded"
        return Story("unseen:" + ",".join(codes), told, [], codes)

    def _missing(self, step: int) -> Story:
        """The closest miss, best first: overlapping, on the wrong side, too far, of another thing, failed, absent."""
        view, label = self.view, self.action.label
        for proof in self.found.certain():
            if proof != step and view.order.compare(proof, step, self.relation) == "concurrent":
                told = f"{name_of(view.steps[proof])} ran at the same time (concurrent): it was not done {self.word} it"
                if self.relation == "informed":
                    told = f"{name_of(view.steps[proof])} was asked for in the same turn (concurrent)"
                return Story("concurrent", told, [(proof, label)], [])
        for proof in self.found.certain():
            earlier, later = (proof, step) if self.side == "before" else (step, proof)
            if view.before(earlier, later, self.relation) is not True:
                continue
            if self.same is not None and self._same(proof, step) is False:
                told = f"{name_of(view.steps[proof])} is not about {describe_same(self.same)}"
                return Story("other", told, [(proof, label)], [])
            if self.alternate is not None and self._interrupted(earlier, later):
                told = f"another `{self.alternate.label}` lies between it and {name_of(view.steps[proof])}"
                return Story("interrupted", told, [(proof, label)], [])
            told = f"{name_of(view.steps[proof])} is further away than {self.within.written if self.within else ''}"
            return Story("far", told, [(proof, label)], [])
        for proof in self.found.certain():
            if proof != step:
                wrong = "after" if self.side == "before" else "before"
                told = f"{name_of(view.steps[proof])} came only {wrong} it"
                return Story("wrong side", told, [(proof, label)], [])
        for proof in view.match(self.action, "attempt").yes:
            status = view.steps[proof].status
            if proof != step and status != "ok":
                told = f"{name_of(view.steps[proof])} ended with status {status}: it proves nothing"
                return Story("failed", told, [(proof, label)], [])
        return Story("absent", f"`{label}` does not occur", [], [])

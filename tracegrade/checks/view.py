"""One trajectory as the checks of many rules look at it: indexed once, every pattern evaluated once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tracegrade.checks.pattern import CALLS, Action, Node, Reading, name_matches
from tracegrade.model.trajectory import Relation, Step, Trajectory
from tracegrade.model.values import Tri

NO_STEPS: tuple[int, ...] = ()


class Matches:
    """The steps that a pattern matches, by index, in display order.

    Attributes:
        yes, maybe: steps of this trajectory that certainly, or perhaps, match.
        prior_yes, prior_maybe: the same among steps of an earlier part of the conversation.
        open: a matching step may exist that was not seen: the trajectory is incomplete, or the pattern means messages
            and what was said is not recorded.
    """

    __slots__ = ("maybe", "open", "prior_maybe", "prior_yes", "yes")

    def __init__(
        self,
        yes: Sequence[int],
        maybe: Sequence[int],
        prior_yes: Sequence[int],
        prior_maybe: Sequence[int],
        is_open: bool,
    ) -> None:
        self.yes, self.maybe = yes, maybe
        self.prior_yes, self.prior_maybe = prior_yes, prior_maybe
        self.open = is_open

    @property
    def has_prior(self) -> bool:
        """Whether a step of an earlier part of the conversation matches, certainly or perhaps."""
        return bool(self.prior_yes or self.prior_maybe)

    def certain(self) -> Sequence[int]:
        """Certain matches, those of an earlier part of the conversation first: what counts as proof."""
        return (*self.prior_yes, *self.yes) if self.prior_yes else self.yes

    def possible(self) -> Sequence[int]:
        """Matches that are not certain, wherever they stand."""
        return (*self.prior_maybe, *self.maybe) if self.prior_maybe else self.maybe


class View:
    """A trajectory with its indexes.

    Attributes:
        trajectory: the trajectory itself.
        steps: its steps; an index into them names a step everywhere in the checks.
        complete: whether every step is there.
        has_prior: whether an earlier part of the conversation exists that may hold steps that are not shown.
    """

    # `_plain`: every call bears a name, ran and ended for certain; then the index alone decides a plain pattern.
    __slots__ = (
        "_by_kind",
        "_by_tool",
        "_matches",
        "_plain",
        "cache",
        "complete",
        "has_prior",
        "messages_open",
        "order",
        "steps",
        "task_tags",
        "trajectory",
    )

    def __init__(self, trajectory: Trajectory, task_tags: Sequence[str] = ()) -> None:
        self.trajectory = trajectory
        self.steps = trajectory.steps
        self.order = trajectory.order
        self.complete = trajectory.complete
        self.task_tags = task_tags
        self.messages_open = not (trajectory.complete and trajectory.messages_recorded)
        self._matches: dict[Node, Matches] = {}
        self._by_kind: dict[str, list[Step]] = {}
        self._by_tool: dict[str | None, list[Step]] = {}
        self.cache: dict[object, object] = {}
        self.has_prior = False
        plain = True
        by_kind, by_tool = self._by_kind, self._by_tool
        for step in self.steps:
            kind = step.kind
            if kind in by_kind:
                by_kind[kind].append(step)
            else:
                by_kind[kind] = [step]
            if kind == "tool_call":
                tool = step.tool
                if tool in by_tool:
                    by_tool[tool].append(step)
                else:
                    by_tool[tool] = [step]
                if step.executed is not True or step.status not in _ENDED or step.status_suspect or tool is None:
                    plain = False
            if step.prior:
                self.has_prior = True
        self._plain = plain and not self.has_prior

    def of_kinds(self, kinds: Iterable[str]) -> list[Step]:
        """The steps of some kinds, in display order, prior ones included."""
        found = [self._by_kind[k] for k in kinds if k in self._by_kind]
        if len(found) == 1:
            return found[0]
        return sorted((s for part in found for s in part), key=lambda s: s.index)

    def tools_seen(self) -> list[str]:
        """The names of the tools that the trajectory's calls bear."""
        return [t for t in self._by_tool if t is not None]

    def match(self, action: Action, reading: Reading) -> Matches:
        """The steps that an action matches, read as proof or as attempt."""
        return self.match_node(action.proof if reading == "proof" else action.attempt)

    def match_node(self, node: Node) -> Matches:
        """The steps that a compiled pattern matches."""
        found = self._matches.get(node)
        if found is None:
            found = self._matches[node] = self._evaluate(node)
        return found

    def _candidates(self, node: Node) -> list[Step]:
        if node.names is None:
            return self.of_kinds(node.kinds)
        groups = [steps for t, steps in self._by_tool.items() if t is None or name_matches(node.names, t)]
        if len(groups) == 1:
            return groups[0]
        return sorted((s for g in groups for s in g), key=lambda s: s.index) if groups else []

    def _evaluate(self, node: Node) -> Matches:
        is_open = not self.complete or (self.messages_open and "message" in node.kinds)
        candidates = self._candidates(node)
        if not candidates:
            return _NOTHING_OPEN if is_open else _NOTHING
        if self._plain and node.plain is not None:
            sure = [s.index for s in candidates if node.plain == "attempt" or s.status == "ok"]
            return Matches(sure, NO_STEPS, NO_STEPS, NO_STEPS, is_open)
        yes: list[int] = []
        maybe: list[int] = []
        prior: list[list[int]] = [[], []]
        test = node.test
        for step in candidates:
            value = test(step)
            if value is False:
                continue
            if step.prior:
                prior[value is None].append(step.index)
            elif value is True:
                yes.append(step.index)
            else:
                maybe.append(step.index)
        return Matches(yes, maybe, prior[0], prior[1], is_open)

    def executed_calls(self) -> Matches:
        """All tool calls that ran, whatever came of them."""
        return self.match_node(ANY_CALL)

    def before(self, a: int, b: int, relation: Relation) -> Tri:
        """Whether step `a` comes before step `b`; unknown where neither clock nor causality decides."""
        if a == b:
            return False
        ordering = self.order.compare(a, b, relation)
        return True if ordering == "before" else None if ordering == "unknown" else False


_ENDED = frozenset({"ok", "error"})
_NOTHING = Matches(NO_STEPS, NO_STEPS, NO_STEPS, NO_STEPS, False)
_NOTHING_OPEN = Matches(NO_STEPS, NO_STEPS, NO_STEPS, NO_STEPS, True)

ANY_CALL = Node(
    CALLS,
    [("executed", lambda step: step.executed)],
    None,
    (),
    (),
    None,
    "attempt",
)

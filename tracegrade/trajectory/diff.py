"""Where two trajectories part: their acts aligned, and for each pair what changed, field by field.

Compared are tool calls, handoffs and retrievals, on request what was said too. Steps that stand beside each other are
put into one order first (by name, then arguments), so that the order in which a recorder wrote them down is no
difference. The alignment keeps the order of both sides and is found in two passes: equal acts first, then acts of one
name between them. It explains a difference; it never decides a verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, Literal, TypeAlias

from tracegrade.model.trajectory import Step, Trajectory
from tracegrade.model.values import JSON, MISSING, canonical, json_equal
from tracegrade.trajectory.parallel import parallel_groups

_COMPARED: Final = frozenset({"tool_call", "handoff", "retrieval"})
_SAID: Final = frozenset({"user", "assistant"})

PairKind: TypeAlias = Literal["same", "changed", "undecided", "only_left", "only_right"]


@dataclass(frozen=True, slots=True)
class Change:
    """One field in which two aligned steps differ; `MISSING` where a side has no such field."""

    path: tuple[str, ...]
    left: JSON
    right: JSON


@dataclass(frozen=True, slots=True)
class Pair:
    """Two aligned steps, or one that stands on one side only.

    `undecided` lists the parts that could not be compared, since a side did not record them.
    """

    kind: PairKind
    left: Step | None
    right: Step | None
    changes: tuple[Change, ...] = ()
    undecided: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TrajectoryDiff:
    """The alignment of two trajectories; `first` is the place of the first pair that is not the same."""

    pairs: tuple[Pair, ...]
    first: int | None

    @property
    def equal(self) -> bool:
        """Whether no act differs; acts that could not be compared are not equal."""
        return self.first is None


def diff_trajectories(left: Trajectory, right: Trajectory, *, messages: bool = False) -> TrajectoryDiff:
    """Align the acts of two trajectories.

    Args:
        left: one trajectory.
        right: the other.
        messages: compare what the user and the assistant said too.
    """
    pairs = tuple(_align(_acts(left, messages), _acts(right, messages)))
    first = next((place for place, pair in enumerate(pairs) if pair.kind != "same"), None)
    return TrajectoryDiff(pairs, first)


def changed_fields(left: JSON, right: JSON, path: tuple[str, ...] = ()) -> Iterator[Change]:
    """The fields in which two values differ, in the order of the left one, then those that only the right one has.

    >>> [(c.path, c.left, c.right) for c in changed_fields({"a": 1, "b": [1, 2]}, {"a": 1.0, "b": [1, 3]})]
    [(('b', '1'), 2, 3)]
    """
    if isinstance(left, dict) and isinstance(right, dict):
        for key in [*left, *(k for k in right if k not in left)]:
            yield from changed_fields(left.get(key, MISSING), right.get(key, MISSING), (*path, str(key)))
    elif isinstance(left, list) and isinstance(right, list):
        for place in range(max(len(left), len(right))):
            a = left[place] if place < len(left) else MISSING
            b = right[place] if place < len(right) else MISSING
            yield from changed_fields(a, b, (*path, str(place)))
    elif left is MISSING or right is MISSING:
        if left is not right:
            yield Change(path, left, right)
    elif not json_equal(left, right):
        yield Change(path, left, right)


def _acts(trajectory: Trajectory, messages: bool) -> list[Step]:
    groups = parallel_groups(trajectory.steps, trajectory.order)
    acts = [
        s for s in trajectory.steps if s.kind in _COMPARED or (messages and s.kind == "message" and s.role in _SAID)
    ]
    place: dict[int, int] = {}
    for at, step in enumerate(acts):
        if step.index in groups:
            place.setdefault(groups[step.index][0], at)
    keyed = [
        (place[groups[s.index][0]], *_key(s), at) if s.index in groups else (at, "", "", at)
        for at, s in enumerate(acts)
    ]
    return [acts[key[-1]] for key in sorted(keyed)]


def _key(step: Step) -> tuple[str, str]:
    """What makes two acts equal for the alignment: kind and name, then arguments or text as far as recorded."""
    name = f"{step.kind} {step.name}"
    if step.kind == "message":
        return name, step.text if step.text is not None else f"\0{step.text_state}"
    if step.arguments_state != "captured":
        return name, f"\0{step.arguments_state} {step.arguments_raw or ''}"
    return name, canonical(step.arguments)


def _align(left: Sequence[Step], right: Sequence[Step]) -> Iterator[Pair]:
    keys = [_key(s) for s in left], [_key(s) for s in right]
    for tag, a, a_end, b, b_end in SequenceMatcher(None, *keys, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from map(_pair, left[a:a_end], right[b:b_end])
        else:
            yield from _align_by_name(left[a:a_end], right[b:b_end])


def _align_by_name(left: Sequence[Step], right: Sequence[Step]) -> Iterator[Pair]:
    names = [_key(s)[0] for s in left], [_key(s)[0] for s in right]
    for tag, a, a_end, b, b_end in SequenceMatcher(None, *names, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from map(_pair, left[a:a_end], right[b:b_end])
            continue
        yield from (Pair("only_left", s, None) for s in left[a:a_end])
        yield from (Pair("only_right", None, s) for s in right[b:b_end])


def _pair(left: Step, right: Step) -> Pair:
    changes: list[Change] = []
    undecided: list[str] = []
    parts = [
        ("arguments", (left.arguments_state, left.arguments), (right.arguments_state, right.arguments)),
        ("result", (left.result_state, left.result), (right.result_state, right.result)),
    ]
    if left.kind == "message":
        parts = [("text", (left.text_state, left.text), (right.text_state, right.text))]
    for name, (state, value), (other_state, other) in parts:
        if state == other_state == "captured":
            changes += changed_fields(value, other, (name,))
        elif name != "result" or state != other_state:
            undecided.append(name)  # results that neither side records are no open question: there is nothing to see
    if left.kind == "tool_call":
        changes += changed_fields(left.status, right.status, ("status",))
        changes += changed_fields(left.executed, right.executed, ("executed",))
    kind: PairKind = "changed" if changes else "undecided" if undecided else "same"
    return Pair(kind, left, right, tuple(changes), tuple(undecided))

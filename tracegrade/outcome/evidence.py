"""What a grader may look at: the trial's records, the states, and what the agent said and did."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from tracegrade.errors import TracegradeError
from tracegrade.model.task import Patch, StateGrader, StateRef, Task, Trial
from tracegrade.model.trajectory import Step, Trajectory
from tracegrade.model.values import JSON, MISSING, Tri
from tracegrade.model.verdict import InvariantResult, Verdict
from tracegrade.outcome.patch import PatchError, apply
from tracegrade.outcome.paths import Path
from tracegrade.outcome.renaming import texts
from tracegrade.outcome.state import named_paths


def verdict_of(value: Tri) -> Verdict:
    """`pass`, `fail` or `unknown` for true, false or unknown."""
    return "unknown" if value is None else "pass" if value else "fail"


@dataclass(frozen=True, slots=True)
class States:
    """What a `state` grader compares; of tables only the rows that differ or that a patch touches.

    `cut` says which differing rows were left out, if any: what then looks equal is not known to be.
    """

    initial: JSON
    final: JSON
    expected: JSON
    of_tables: bool = False
    cut: str = ""


class Source(Protocol):
    """Reads what task and trial files refer to. Implemented where files may be read."""

    def state(self, ref: StateRef) -> JSON:
        """The state that a reference names; the same object for the same content, where it still has it.

        Raises:
            TracegradeError: it cannot be read, or its content is not what the reference says.
        """

    def text(self, ref: StateRef) -> str:
        """The text of a file.

        Raises:
            TracegradeError: it cannot be read.
        """

    def tables(self, ref: StateRef) -> bool:
        """Whether the reference names a database or a folder of tables, to be compared in `table_states`."""

    def table_states(self, states: tuple[JSON, JSON, JSON], grader: StateGrader, touched: frozenset[Path]) -> States:
        """The rows of tables that differ or that a patch touches, as small states.

        Args:
            states: initial, final and expected state; each a reference to tables, a state, or `MISSING`.
            grader: its `keys` (table → key columns; where left out, the table's own primary key), and what it ignores.
            touched: paths that a patch names: their rows are included.

        Raises:
            TracegradeError: a table cannot be read, or its rows cannot be told apart by its keys.
        """


class NoFiles:
    """A source where everything is given in full: any reference is an error."""

    def state(self, ref: StateRef) -> JSON:
        """Raises: there is nothing to read from."""
        raise TracegradeError(f"{ref.ref}: no source of states was given")

    def text(self, ref: StateRef) -> str:
        """Raises: there is nothing to read from."""
        raise TracegradeError(f"{ref.ref}: no source of files was given")

    def tables(self, ref: StateRef) -> bool:
        """Nothing is a table."""
        return False

    def table_states(self, states: tuple[JSON, JSON, JSON], grader: StateGrader, touched: frozenset[Path]) -> States:
        """Raises: there is nothing to read from."""
        raise TracegradeError("no source of tables was given")


@dataclass(frozen=True, slots=True)
class Said:
    """One message of the agent; `beside_call` where the text stood beside a tool call."""

    text: str
    beside_call: bool = False


@dataclass(frozen=True, slots=True)
class Messages:
    """What the agent said, in order. `whole` is False where something it said may be missing from `said`.

    `last_known` is whether the last of `said` certainly is the last thing that the agent said. `why` says what is
    missing.
    """

    said: tuple[Said, ...]
    whole: bool
    last_known: bool
    why: str = ""


_PLACEHOLDER = re.compile("⟦[^⟧]*⟧")

NOTHING_RECORDED = Messages((), whole=False, last_known=False, why="the trial has no spans")


def messages_of(trajectory: Trajectory | None) -> Messages:
    """The agent's messages in a trajectory.

    Messages that stand only in the recorded history of its first model call happened in a trace that is not loaded;
    such a history may lack steps, so that what is absent from it shows nothing.
    """
    if trajectory is None:
        return NOTHING_RECORDED
    if trajectory.complete and all(s.kind == "agent" for s in trajectory.steps):
        return Messages((), whole=True, last_known=True)  # an agent that called no model has said nothing
    steps = [s for s in trajectory.steps if s.kind == "message" and s.role == "assistant" and not s.prior]
    known = [s for s in steps if s.text_state == "captured" and s.text is not None]
    hidden = len(known) < len(steps) or any("⟦" in (s.text or "") for s in known)
    # nothing that a placeholder itself says may count as said
    said = tuple(Said(_PLACEHOLDER.sub("⟦⟧", s.text or ""), s.beside_call) for s in known)
    earlier = any(s.prior for s in trajectory.steps)
    whys = {
        "messages are not recorded": not trajectory.messages_recorded,
        "a message was not captured, cut or redacted": hidden,
        "the trajectory is not complete": not trajectory.complete,
        "earlier messages stand in a trace that is not loaded": earlier,
    }
    why = next((text for text, holds in whys.items() if holds), "")
    last_shown = not steps or (steps[-1].text_state == "captured" and "⟦" not in (steps[-1].text or ""))
    last_known = trajectory.complete and trajectory.messages_recorded and last_shown and not (earlier and not steps)
    return Messages(said, whole=not why, last_known=last_known, why=why)


@dataclass(slots=True)
class Memo:
    """What many trials share and is computed once: the texts of an initial state."""

    _texts: dict[int, tuple[JSON, frozenset[str]]] = field(default_factory=dict)

    def texts(self, state: JSON) -> frozenset[str]:
        """`texts` of a state, remembered for the last few states by identity."""
        known = self._texts.get(id(state))
        if known is None or known[0] is not state:
            if len(self._texts) >= 8:
                self._texts.clear()
            known = self._texts[id(state)] = (state, texts(state))
        return known[1]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything recorded of one trial."""

    task: Task
    trial: Trial
    trajectory: Trajectory | None = None
    messages: Messages = NOTHING_RECORDED
    invariants: Mapping[str, InvariantResult] = field(default_factory=dict)
    source: Source = field(default_factory=NoFiles)
    memo: Memo = field(default_factory=Memo)

    def states(self, grader: StateGrader) -> States:
        """The initial, final and expected state that a grader compares, `MISSING` where not recorded.

        Raises:
            TracegradeError: one cannot be read, or the recorded patch does not fit the initial state.
        """
        given = self.trial.initial if self.trial.initial is not None else self.task.initial
        states = States(self.load(given), self.load(self.trial.final), self.load(grader.expected))
        patch = self.trial.final_patch
        given_states = (states.initial, states.final, states.expected)
        if any(isinstance(s, StateRef) for s in given_states):
            goals = [grader.goal or [], *(grader.any_of or []), patch or []]
            touched = frozenset(path for goal in goals for path in named_paths(goal))
            states = self.source.table_states(given_states, grader, touched)
        if patch is not None and states.initial is not MISSING:
            states = replace(states, final=self.patched(states.initial, patch))
        return states

    def patched(self, initial: JSON, patch: Patch) -> JSON:
        """A recorded state that was given as a patch.

        Raises:
            TracegradeError: the patch does not fit the initial state.
        """
        try:
            return apply(initial, patch)
        except PatchError as error:
            raise TracegradeError(f"the recorded patch does not fit the initial state: {error}") from None

    def load(self, given: JSON) -> JSON:
        """A state from what stands in a file: `MISSING` for null, references followed unless to tables.

        Raises:
            TracegradeError: it cannot be read.
        """
        if given is None:
            return MISSING
        if isinstance(given, StateRef):
            return given if self.source.tables(given) else self.source.state(given)
        return given

    def calls(self) -> list[Step]:
        """The tool calls of the trajectory, without those of earlier traces."""
        return [] if self.trajectory is None else [s for s in self.trajectory.calls() if not s.prior]

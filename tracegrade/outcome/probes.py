"""Agents that a grader must tell apart: what each would leave behind and say on a task.

- `reference` does what the task asks for;
- `do_nothing` leaves the state untouched and says nothing;
- `claim_only` leaves the state untouched and says the expected outputs;
- `extra_change` does what is asked and changes something else too;
- `wrong_value` does what is asked with one other value;
- `missing_change` does all that is asked but one change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tracegrade.model.task import (
    ActionsGrader,
    AnswerGrader,
    Grader,
    Op,
    OutputsGrader,
    Patch,
    RequirementsGrader,
    StateGrader,
    StateRef,
    Task,
    TestsGrader,
    Trial,
)
from tracegrade.model.trajectory import Step, StepOrder, Trajectory
from tracegrade.model.values import JSON, MISSING
from tracegrade.outcome.compare import Options, diff
from tracegrade.outcome.evidence import Evidence, Messages, Said, Source, States
from tracegrade.outcome.keyed import keyed
from tracegrade.outcome.patch import apply
from tracegrade.outcome.paths import Globs
from tracegrade.outcome.state import named_paths

PROBES: Final = ("reference", "do_nothing", "claim_only", "extra_change", "wrong_value", "missing_change")
_OF_THE_WORLD: Final = frozenset({"state", "tests", "script", "recorded", "actions", "invariants"})
_STRICT: Final = Options(strict_numbers=True)


@dataclass(frozen=True, slots=True)
class Probe:
    """What an imagined agent leaves behind: a trial, what it said, and the calls it made."""

    trial: Trial
    messages: Messages
    trajectory: Trajectory


def leaves(graders: Sequence[Grader]) -> Iterator[Grader]:
    """The graders, those inside requirements in the place of these."""
    for grader in graders:
        if isinstance(grader, RequirementsGrader):
            yield from leaves([r.grader for r in grader.requirements])
        else:
            yield grader


def looks_at_the_world(task: Task) -> bool:
    """Whether some grader asks for more than words: else a claim is all there is to the task."""
    return any(g.kind in _OF_THE_WORLD for g in leaves(task.graders))


class Prober:
    """Makes the probes of one task.

    Args:
        task: resolved.
        source: reads states.

    Raises:
        PatchError: the goal does not fit the initial state.
        TracegradeError: a state cannot be read.
    """

    def __init__(self, task: Task, source: Source) -> None:
        self.task = task
        self._graders = list(leaves(task.graders))
        self._states = [g for g in self._graders if isinstance(g, StateGrader)]
        self._initial: JSON = MISSING
        self._tables = False
        self._goal: Patch = []
        self._whole: JSON = MISSING
        if self._states:
            self._plan(source)

    def _plan(self, source: Source) -> None:
        """The initial state and the patch over it that all `state` graders ask for."""
        first = self._states[0]
        evidence = Evidence(self.task, Trial(task_id=self.task.id, final_patch=[]), source=source)
        if isinstance(first.expected, StateRef) and source.tables(first.expected):
            self._whole, self._tables = first.expected, True
            return
        states: States = evidence.states(first)
        self._tables = states.of_tables
        keys = {k: v for g in self._states for k, v in g.keys.items()}
        self._initial = states.initial if states.initial is MISSING else keyed(states.initial, keys)
        if first.expected is not None:
            self._whole = keyed(states.expected, keys)
            if self._initial is not MISSING:
                self._goal = diff(self._initial, self._whole, _STRICT)
        elif self._initial is not MISSING:
            goals = [g.any_of[0] if g.any_of is not None else g.goal or [] for g in self._states]
            wanted = self._initial
            for goal in goals:
                wanted = apply(wanted, goal)
            self._goal = diff(self._initial, wanted, _STRICT)

    def make(self, name: str) -> Probe | None:
        """A probe by name; None where it does not apply to the task."""
        if name == "reference":
            return self._recorded_reference() or self._agent(self._done(), says=True, right=True)
        if name == "do_nothing":
            return self._agent({"final_patch": []}, says=False, right=False)
        if name == "claim_only":
            says = looks_at_the_world(self.task)
            return self._agent({"final_patch": []}, says=True, right=False) if says else None
        patch = {"extra_change": self._extra, "wrong_value": self._wrong, "missing_change": self._missing}[name]()
        return None if patch is None else self._agent({"final_patch": patch}, says=True, right=True)

    def _done(self) -> dict[str, Any]:
        if self._whole is not MISSING:
            return {"final": self._whole}
        return {"final_patch": self._goal}

    def _agent(self, final: dict[str, Any], *, says: bool, right: bool) -> Probe:
        update: dict[str, Any] = dict(final) if self._states else {}
        if self._initial is not MISSING and not self._tables:
            update["initial"] = self._initial
        answers = [g for g in self._graders if isinstance(g, AnswerGrader)]
        if says and answers:
            update["answer"] = answers[0].any_of[0] if answers[0].any_of else answers[0].expected
            update["labels"] = {g.column: update["answer"] for g in answers if g.column is not None}
        tests = [g for g in self._graders if isinstance(g, TestsGrader)]
        if tests:
            update["report"] = _report(tests, right=right)
        said = self._outputs() if says else []
        steps = self._calls() if right else ()
        return self._probe(Trial(task_id=self.task.id, end_reason="completed").model_copy(update=update), said, steps)

    def _probe(self, trial: Trial, said: Sequence[str], steps: tuple[Step, ...]) -> Probe:
        messages = Messages(tuple(Said(text) for text in said), whole=True, last_known=True)
        trajectory = Trajectory("probe", (), steps, StepOrder(), root_ended=True)
        return Probe(trial, messages, trajectory)

    def _outputs(self) -> list[str]:
        return [str(e) for g in self._graders if isinstance(g, OutputsGrader) for e in g.expected]

    def _calls(self) -> tuple[Step, ...]:
        wanted = [call for g in self._graders if isinstance(g, ActionsGrader) for call in g.expected]
        return tuple(
            Step(i, "tool_call", c.tool, tool=c.tool, arguments=c.args, arguments_state="captured", executed=True)
            for i, c in enumerate(wanted)
        )

    def _recorded_reference(self) -> Probe | None:
        given = self.task.reference
        if given is None:
            return None
        update = {
            "final": given.final,
            "final_patch": given.final_patch,
            "answer": given.answer,
            "labels": given.labels,
            "report": given.report,
        }
        trial = Trial(task_id=self.task.id, end_reason="completed").model_copy(update=update)
        return self._probe(trial, given.messages, self._calls())

    def _missing(self) -> Patch | None:
        return self._goal[:-1] if self._goal else None

    def _wrong(self) -> Patch | None:
        for number, op in enumerate(self._goal):
            if op.op == "remove":
                continue
            place = self._scalar(op.value, tuple(str(p) for p in op.path))
            if place is not None:
                wrong = Op(op="replace", path=list(place), value=_other(_at(op.value, place[len(op.path) :])))
                return [*self._goal[: number + 1], wrong, *self._goal[number + 1 :]]
        return None

    def _extra(self) -> Patch | None:
        if not self._states or self._initial is MISSING:
            return None
        touched = named_paths(self._goal)
        place = self._scalar(self._initial, (), touched)
        if place is not None:
            return [*self._goal, Op(op="replace", path=list(place), value=_other(_at(self._initial, place)))]
        covered = self._ignored(("extra",))
        if isinstance(self._initial, dict) and not self._tables and not covered:
            return [*self._goal, Op(op="add", path=["extra"], value=True)]
        return None

    def _ignored(self, path: tuple[str, ...]) -> bool:
        return any(Globs(g.ignore).covers(path) for g in self._states)

    def _scalar(
        self, node: JSON, path: tuple[str, ...], touched: Sequence[tuple[str, ...]] = ()
    ) -> tuple[str, ...] | None:
        """The first plain value that is compared and lies outside the touched places."""
        if self._ignored(path) or any(path[: len(t)] == t for t in touched):
            return None
        if isinstance(node, (dict, list)):
            items = node.items() if isinstance(node, dict) else ((str(i), v) for i, v in enumerate(node))
            found = (self._scalar(value, (*path, str(key)), touched) for key, value in items)
            return next((f for f in found if f is not None), None)
        return path if path else None


def _at(node: JSON, path: Sequence[str]) -> JSON:
    for part in path:
        node = node[part] if isinstance(node, dict) else node[int(part)]
    return node


def _other(value: JSON) -> JSON:
    """A value of the same type that no tolerance would take for the same."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value * 3 + 1_000_003
    return f"{value}~" if isinstance(value, str) else "~"


def _report(graders: Sequence[TestsGrader], *, right: bool) -> dict[str, str]:
    """What the tests say of a right solution, or of the code as it was: there `fail_to_pass` fails."""
    report = {test: "passed" for g in graders for test in g.pass_to_pass}
    report |= {test: "passed" if right else "failed" for g in graders for test in g.fail_to_pass}
    if any(g.require == "all" for g in graders) and not report:
        report["every test"] = "passed" if right else "failed"
    return report

"""The examples of a pack: short trajectories with the verdict that rules must give on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracegrade.checks.load import CompiledInvariant, Pack
from tracegrade.checks.run import run_checks
from tracegrade.model.invariant import ExampleStep, ExampleTrajectory
from tracegrade.model.trajectory import ContentState, Step, Trajectory, Usage
from tracegrade.model.verdict import InvariantResult, Verdict
from tracegrade.trajectory.order import Interval, Order, Placement

_SECOND = 10**9
_CLOCK = "example"


class _Builder:
    """Lays steps on one clock and one conversation: each takes a second, a second after the one before."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.placements: list[Placement] = []
        self.now = 0.0
        self.position = 0
        self.turn = 0

    def add(self, written: ExampleStep) -> None:
        group = written.parallel or written.turn or written.unordered
        how = "parallel" if written.parallel else "unordered" if written.unordered else "turn"
        for _ in range(written.times):
            self._turn([written] if group is None else [s for s in group for _ in range(s.times)], how)

    def _turn(self, group: Sequence[ExampleStep], how: str) -> None:
        begin = self.now
        latest = begin
        position = self.position
        for step in group:
            start = step.start_s if step.start_s is not None else begin if how == "parallel" else latest
            if how == "turn" and step.start_s is None and step is not group[0]:
                start = latest + 1
            length = step.duration_s if step.duration_s is not None else 0.0 if step.message else 1.0
            self._place(step, start, start + length, how)
            if step.message is not None:
                self.position += 1
            latest = max(latest, start + length)
        self.now = latest + 1
        self.position = max(self.position, position) + 2
        if any(s.tool is not None for s in group):
            self.turn += 1

    def _place(self, written: ExampleStep, start: float, end: float, how: str) -> None:
        ran = written.executed and "executed" not in written.not_captured
        finished = written.status != "unfinished"
        placement = Placement(first=written.prior)
        a, b = round(start * _SECOND), round(end * _SECOND)
        if how != "unordered" and not written.prior and ran:
            placement.own[_CLOCK] = Interval(a, b if finished else None)
        if "turn" not in written.not_captured:
            answered = self.position if written.message else self.position + 1
            placement.talk[_CLOCK] = Interval(self.position, answered if finished and ran else None)
        clocked = _CLOCK in placement.own
        self.placements.append(placement)
        self.steps.append(self._step(written, a if clocked else None, b if clocked and finished else None))

    def _step(self, w: ExampleStep, start: int | None, end: int | None) -> Step:
        index = len(self.steps)
        kind = "tool_call" if w.tool is not None else "message" if w.message is not None else w.step
        assert kind is not None  # noqa: S101 - the model saw to it
        is_call = kind == "tool_call"
        executed = None if "executed" in w.not_captured else w.executed
        status = w.status if executed else "not_executed" if executed is False else None
        args, result, text = (_state(w, part) for part in ("args", "result", "text"))
        return Step(
            index=index,
            seq=index,
            kind=kind,
            name=w.name or w.tool or w.message or "",
            tool=w.tool,
            agent=None if "agent" in w.not_captured else w.agent,
            arguments=w.args if is_call and args == "captured" else None,
            arguments_state=args if is_call else "not_captured",
            result=w.result if is_call and result == "captured" else None,
            result_state=result if is_call else "not_captured",
            status=(status if "status" not in w.not_captured else None) if is_call else None,
            status_evidence="example" if is_call else "",
            status_suspect=w.suspect,
            requested=True if is_call else None,
            executed=executed if is_call else None,
            turn=self.turn if is_call and "turn" not in w.not_captured else None,
            role=w.message,
            text=w.text if w.message and text == "captured" else None,
            text_state=text if w.message else "not_captured",
            prior=w.prior,
            start_ns=start,
            end_ns=end,
            span_ids=(f"{index + 1:016x}",),
            trace_id="0" * 31 + "1",
        )


def _state(written: ExampleStep, part: str) -> ContentState:
    if part in written.truncated:
        return "truncated"
    return "not_captured" if part in written.not_captured else "captured"


def build_example(written: ExampleTrajectory) -> Trajectory:
    """The trajectory that an example describes.

    By default steps are executed, ok, captured, one after another, each in its own turn, and the trajectory complete.
    """
    builder = _Builder()
    for step in written.steps:
        builder.add(step)
    steps = tuple(builder.steps)
    starts = [s.start_ns for s in steps if s.start_ns is not None]
    ends = [s.end_ns for s in steps if s.end_ns is not None]
    known = max(ends) - min(starts) if starts and ends else 0
    given = written.usage
    return Trajectory(
        trajectory_id="example",
        trace_ids=("0" * 31 + "1",),
        steps=steps,
        order=Order(builder.placements),
        complete=written.complete,
        task_id=written.task,
        definitions=dict(written.definitions),
        messages_recorded=written.messages_recorded,
        root_ended=written.complete,
        duration_ns=known if written.duration_s is None else round(written.duration_s * _SECOND),
        usage=Usage(
            input_tokens=given.input_tokens if given else None,
            output_tokens=given.output_tokens if given else None,
            cost_usd=given.cost_usd if given else None,
            complete=given.complete if given else True,
            cost_complete=given.complete if given else True,
            model_calls=sum(s.kind == "model_call" for s in steps),
        ),
        agents=tuple(dict.fromkeys(s.agent for s in steps if s.agent)),
        services=written.services,
        attributes=dict(written.attributes),
    )


@dataclass(frozen=True, slots=True)
class ExampleResult:
    """What one rule said of one example."""

    rule: str
    where: str
    name: str
    expected: Verdict
    result: InvariantResult

    @property
    def ok(self) -> bool:
        """Whether the verdict is the one that the example states."""
        return self.result.result.verdict == self.expected


def run_examples(pack: Pack) -> list[ExampleResult]:
    """Every rule of every example, in the order written."""
    rules: dict[str, CompiledInvariant] = {r.id: r for r in pack.invariants}
    found = []
    for example, where in pack.examples:
        trajectory = build_example(example.trajectory)
        chosen = [rules[name] for name in example.for_]
        results = run_checks(trajectory, chosen, task_tags=example.trajectory.task_tags)
        found += [ExampleResult(r.id, where, example.name, example.expected, r) for r in results]
    return found


def untested_rules(pack: Pack) -> list[tuple[str, list[str]]]:
    """The rules of the file itself that lack a holding or a violated example, with what is lacking."""
    shown: dict[str, set[str]] = {}
    for example, _ in pack.examples:
        for name in example.for_:
            shown.setdefault(name, set()).add(example.expected)
    own = set(pack.own)
    lacking = []
    for rule in pack.invariants:
        if rule.id in own and not rule.measures_only:
            missing = [w for v, w in (("pass", "holds"), ("fail", "violated")) if v not in shown.get(rule.id, set())]
            if missing:
                lacking.append((rule.id, missing))
    return lacking

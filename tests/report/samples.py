"""A report built by hand, with hostile text wherever a trace may put text."""

from __future__ import annotations

from tracegrade.model.outcome import Difference, GraderResult, Outcome, RootCause
from tracegrade.model.report import (
    CheckReport,
    DialectReport,
    InputReport,
    RuleReport,
    ShowReport,
    Skipped,
    TrajectoryReport,
    TrialReport,
    Unmatched,
    UnmatchedTrial,
    Warned,
)
from tracegrade.model.trajectory import Gap, Step, Trajectory, Usage
from tracegrade.model.verdict import CheckResult, Finding, InvariantResult, StepRef
from tracegrade.report import build, rollup
from tracegrade.trajectory.order import Order

HOSTILE = (
    "\x1b[31mred\x07 \x9b0m \u202eevil\u202c </script><img src=x onerror=alert(1)> [bold]b[/] | `x` ]]> & "
    "\"q\" 'a'\n::error::x %0A \ufffe"
)
SECOND = 1_000_000_000
START = 1_760_000_000 * SECOND
BIG = 2**70


def call(index: int, tool: str, start: float, end: float | None, **more: object) -> Step:
    """A tool call that ran from `start` to `end` seconds after the beginning."""
    values: dict[str, object] = {
        "arguments": {"order_id": "W1"},
        "arguments_state": "captured",
        "result": {"ok": True},
        "result_state": "captured",
        "status": "ok",
        "status_evidence": "span status UNSET, no evidence of failure",
        "requested": True,
        "executed": True,
        "turn": index,
        "agent": "support",
        "sources": {"arguments": "span attribute gen_ai.tool.call.arguments"},
    }
    values.update(more)
    return Step(
        index=index,
        kind="tool_call",
        name=tool,
        seq=index,
        tool=tool,
        call_id=f"call_{index}",
        start_ns=START + int(start * SECOND),
        end_ns=None if end is None else START + int(end * SECOND),
        trace_id="a" * 32,
        span_ids=(f"{index + 1:016x}",),
        **values,  # type: ignore[arg-type]
    )


def message(index: int, role: str, text: str, at: float) -> Step:
    """A message of the conversation."""
    moment = START + int(at * SECOND)
    return Step(
        index=index,
        kind="message",
        name=role,
        seq=index,
        role=role,
        text=text,
        text_state="captured",
        start_ns=moment,
        end_ns=moment,
        trace_id="a" * 32,
    )


def model_call(index: int, start: float, end: float) -> Step:
    """A call of a model."""
    return Step(
        index=index,
        kind="model_call",
        name="gpt-4o",
        seq=index,
        model="gpt-4o",
        provider="openai",
        usage=Usage(input_tokens=1200, output_tokens=80, model_calls=1),
        start_ns=START + int(start * SECOND),
        end_ns=START + int(end * SECOND),
        trace_id="a" * 32,
        span_ids=(f"{index + 1:016x}",),
    )


def trajectory(name: str = "a" * 32, *, complete: bool = True, other: bool = False) -> Trajectory:
    """Two look-ups side by side, then a cancellation of the wrong order, then hostile text.

    With `other`, the two look-ups are written down the other way round, another order is cancelled, the hostile tool
    is not called, and the refund's arguments are recorded.
    """
    if other:
        return _other(name)
    steps = (
        message(0, "user", "Cancel order W1, please.", 0.0),
        model_call(1, 0.1, 0.9),
        call(2, "get_order", 1.0, 1.8, turn=1),
        call(3, "get_customer", 1.1, 1.5, turn=1, arguments={"id": BIG}, result="Ann", status=None, executed=None),
        call(4, "cancel_order", 2.0, 2.4, turn=2, arguments={"order_id": "W2"}, status="error"),
        call(5, HOSTILE, 2.5, None, turn=3, arguments={HOSTILE: HOSTILE}, result=HOSTILE, status="unfinished"),
        call(6, "refund", 3.0, 3.0, turn=4, arguments=None, arguments_state="not_captured", agent=HOSTILE),
        message(7, "assistant", HOSTILE, 3.5),
    )
    pairs = [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (4, 6), (6, 7)]
    gaps = (
        () if complete else (Gap("orphan_spans", f"3 spans of a missing parent {HOSTILE}", 3, ("00000000000000aa",)),)
    )
    return Trajectory(
        trajectory_id=name,
        trace_ids=("a" * 32,),
        steps=steps,
        order=Order.from_pairs(len(steps), pairs, [(2, 3), (5, 6)]),
        complete=complete,
        gaps=gaps,
        conversation_id="conv-1",
        task_id="cancel-W1",
        trial="0",
        usage=Usage(input_tokens=1200, output_tokens=80, model_calls=1, cost_usd=0.0123),
        agents=("support",),
        services=("shop", HOSTILE),
        dialects=("gen_ai",),
        models=("gpt-4o",),
        start_ns=START,
        duration_ns=4 * SECOND,
    )


def _other(name: str) -> Trajectory:
    steps = (
        message(0, "user", "Cancel order W1, please.", 0.0),
        call(1, "get_customer", 1.0, 1.4, arguments={"id": BIG}, result="Ann", status=None, executed=None),
        call(2, "get_order", 1.1, 1.8),
        call(3, "cancel_order", 2.0, 2.4, arguments={"order_id": "W3", HOSTILE: HOSTILE}, status="error"),
        call(4, "refund", 3.0, 3.1, arguments={"amount": 5}),
    )
    order = Order.from_pairs(len(steps), [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)], [(1, 2)])
    return Trajectory(name, ("b" * 32,), steps, order, start_ns=START, duration_ns=3 * SECOND)


def ref(step: Step, role: str | None = None) -> StepRef:
    """The step as a finding cites it."""
    return StepRef(
        seq=step.seq,
        kind=step.kind,
        name=step.name,
        arguments=step.arguments,
        arguments_state=step.arguments_state,
        status=step.status,
        text=step.text,
        start_ns=step.start_ns,
        end_ns=step.end_ns,
        span_ids=step.span_ids,
        role=role,
    )


def results(t: Trajectory, *, broken: bool = True) -> list[InvariantResult]:
    """One result of every verdict, level and kind of evidence."""
    look, cancel, odd = t.steps[2], t.steps[4], t.steps[5]
    wrong = Finding(
        rule="right-order-cancelled",
        level="error",
        message="cancel_order(order_id=W2) has no get_order with the same order_id before it",
        trace_id=t.trace_ids[0],
        span_ids=cancel.span_ids,
        steps=(ref(look, "first"), ref(cancel, "then")),
        expected='a get_order with order_id = "W2" before it',
        observed='get_order with order_id = "W1"',
        next_action="look up the order that is cancelled",
        context={"order_id": "W2"},
    )
    nasty = Finding(
        rule="no-odd-tools",
        level="error",
        message=f"{HOSTILE} was called",
        trace_id=t.trace_ids[0],
        span_ids=odd.span_ids,
        steps=(ref(odd, "action"),),
        expected=HOSTILE,
        observed=HOSTILE,
        count=85,
        context={HOSTILE: HOSTILE},
    )
    unknown = Finding(
        rule="refund-is-positive",
        level="error",
        message="the arguments of refund were not recorded",
        span_ids=t.steps[6].span_ids,
        steps=(ref(t.steps[6], "action"),),
        missing=(f"arguments of refund in span {t.steps[6].span_ids[0]}",),
        next_action="turn on content capture in the instrumentation",
    )
    slow = Finding(rule="quick", level="warning", message="4 s, over the budget of 3 s", observed="4 s", expected="3 s")
    good = CheckResult("pass")
    return [
        InvariantResult(
            "verified-first", "precedes", "error", ("policy",), CheckResult("pass", scope="seen", n_seen=8)
        ),
        InvariantResult(
            "right-order-cancelled", "precedes", "error", (), CheckResult("fail", (wrong,)) if broken else good
        ),
        InvariantResult(
            "no-odd-tools", "forbidden", "error", ("safety",), CheckResult("fail", (nasty,)) if broken else good
        ),
        InvariantResult(
            "refund-is-positive",
            "arguments",
            "error",
            (),
            CheckResult("unknown", (unknown,), missing_keys=("arguments",)),
        ),
        InvariantResult("quick", "budget", "warning", (), CheckResult("fail", (slow,))),
        InvariantResult("progress", "progress", "error", (), CheckResult("pass", measure=0.75)),
        InvariantResult("handover", "last", "error", (), CheckResult("not_applicable")),
    ]


def outcome(verdict: str = "fail") -> Outcome:
    """A graded end with one difference."""
    difference = Difference("side_effect", ("orders", "#W2", HOSTILE), "open", "cancelled")
    failed = verdict == "fail"
    grader = GraderResult(
        "state",
        "fail" if failed else "pass",
        reason="1 difference" if failed else "",
        differences=(difference,) if failed else (),
        n_differences=int(failed),
    )
    return Outcome(
        task_id="cancel-W1",
        trial=0,
        verdict=verdict,  # type: ignore[arg-type]
        end_reason="completed",
        graders=(grader,),
        root_causes=(RootCause("wrong_argument", f"order_id W2 instead of W1 {HOSTILE}"),) if failed else (),
        near_miss="orders/#W2/status: expected open, observed cancelled" if failed else None,
    )


def trajectories() -> list[TrajectoryReport]:
    """One broken run, one that is right for the wrong reason, one without a trial."""
    measured = ("progress",)
    bad = trajectory(complete=False)
    lucky = trajectory("b" * 32)
    plain = trajectory("c" * 32)
    return [
        build.trajectory_report(bad, results(bad), outcome(), tags=("cancel",), cluster="W1", measurements=measured),
        build.trajectory_report(lucky, results(lucky), outcome("pass"), tags=("cancel",), measurements=measured),
        build.trajectory_report(plain, results(plain, broken=False), measurements=measured),
    ]


def check_report(*, min_coverage: float = 0.9) -> CheckReport:
    """A run with everything in it."""
    graded = trajectories()
    inputs = (
        InputReport(
            path=f"spans/{HOSTILE}.otlp",
            format="otlp-json",
            spans_read=120,
            spans_distinct=117,
            duplicates_dropped=3,
            log_records=7,
            skipped=(Skipped(where="line 4", reason=f"no span id {HOSTILE}", id="00aa", count=2),),
            signals={"metrics": 12},
        ),
    )
    trials = (
        TrialReport(
            task_id="cancel-W1", trial=0, trajectory_id="a" * 32, trace_ids=("a" * 32,), outcome=graded[0].outcome
        ),
        TrialReport(
            task_id="cancel-W1", trial=1, trajectory_id="b" * 32, trace_ids=("b" * 32,), outcome=graded[1].outcome
        ),
        TrialReport(
            task_id=f"task {HOSTILE}",
            trial=0,
            outcome=build.outcome_report(
                Outcome(task_id="x", trial=0, verdict="excluded", end_reason="infrastructure_error")
            ),
        ),
    )
    summary, coverage = rollup.check_summary(
        graded,
        inputs=inputs,
        trials=trials,
        dialects=("gen_ai",),
        policy=rollup.Policy(min_coverage=min_coverage),
    )
    return CheckReport(
        tracegrade_version="0.0.0",
        inputs=inputs,
        summary=summary,
        coverage=coverage,
        overview=build.overview(graded, set_up_traces=1),
        warnings=(
            Warned(code="tool_not_seen", message=f"`isue_refund` was never seen {HOSTILE}", context={"tool": HOSTILE}),
        ),
        trajectories=tuple(graded),
        unmatched=Unmatched(trials=(UnmatchedTrial(task_id="x", trial=0),), trajectories=("c" * 32,)),
        trials=trials,
        rules=tuple(
            RuleReport(
                id=r.id, sha256="0" * 64, kind=r.kind, level=r.level, tags=r.tags, pack="shop", why=f"Because {HOSTILE}"
            )
            for r in graded[0].invariants
        ),
        rule_sources=("core", f"rules/{HOSTILE}.yaml"),
        tasks_sha256="1" * 64,
        protocol={"model": ["gpt-4o"], HOSTILE: HOSTILE},
        dialects=(DialectReport(name="gen_ai", source="semantic conventions 1.37", spans=117),),
    )


def clean_report() -> CheckReport:
    """A run in which nothing is wrong, as a newcomer sees it."""
    t = trajectory("c" * 32)
    graded = [build.trajectory_report(t, [r for r in results(t, broken=False) if r.result.verdict == "pass"])]
    inputs = (InputReport(path="spans.otlp", format="otlp-protobuf", spans_read=12, spans_distinct=12),)
    summary, coverage = rollup.check_summary(graded, inputs=inputs, dialects=("gen_ai",))
    return CheckReport(
        tracegrade_version="0.0.0",
        inputs=inputs,
        summary=summary,
        coverage=coverage,
        overview=build.overview(graded),
        trajectories=tuple(graded),
        rules=tuple(RuleReport(id=r.id, sha256="0" * 64) for r in graded[0].invariants),
        rule_sources=("core",),
        dialects=(DialectReport(name="gen_ai", spans=12),),
    )


def show_report() -> ShowReport:
    """The broken run, step by step."""
    return ShowReport(tracegrade_version="0.0.0", trajectories=(build.shown_trajectory(trajectory(complete=False)),))

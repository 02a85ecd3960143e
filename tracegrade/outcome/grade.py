"""One trial's outcome: how it ended, what its graders say, and how they combine (DESIGN §6)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from tracegrade.model.outcome import GraderResult, Outcome, OutcomeVerdict
from tracegrade.model.task import Task, Trial
from tracegrade.model.trajectory import Trajectory
from tracegrade.model.values import JSON, Tri
from tracegrade.model.verdict import InvariantResult
from tracegrade.outcome.evidence import Evidence, Memo, Messages, NoFiles, Source, messages_of, verdict_of
from tracegrade.outcome.graders import run
from tracegrade.outcome.presets import known_end_reason, resolve
from tracegrade.outcome.root_cause import near_miss, root_causes

CHEAT: Final = "cheat"
"""The reason of a failed outcome where a task that cannot be solved was passed."""

_WITH_SHARE = frozenset({"recorded", "script", "requirements", "tests"})
"""Graders whose share is itself a score; of the others a share only says how near it was."""


def grade(
    task: Task,
    trial: Trial,
    trajectory: Trajectory | None = None,
    *,
    source: Source | None = None,
    invariants: Iterable[InvariantResult] = (),
    memo: Memo | None = None,
    messages: Messages | None = None,
) -> Outcome:
    """Grade one trial.

    Args:
        task: the problem; its benchmark's defaults are filled in.
        trial: what was recorded beside the spans.
        trajectory: the trial's spans, None where it has none.
        source: reads states and reports that the files refer to.
        invariants: results of the rules that ran on the trajectory.
        memo: pass one to many calls that share initial states.
        messages: what the agent said, where that is known otherwise than from the trajectory.

    Returns:
        The outcome. It is `excluded` for an infrastructure error, `fail` for any other end than `completed` that the
        task does not exempt, and `unknown` where it is not known how the trial ended or evidence is missing.
    """
    task = resolve(task)
    evidence = Evidence(
        task,
        trial,
        trajectory,
        messages_of(trajectory) if messages is None else messages,
        {r.id: r for r in invariants},
        source or NoFiles(),
        memo or Memo(),
    )
    ended = _end_reason(task, trial, trajectory)
    base = Outcome(str(task.id), trial.trial, "unknown", attempt=trial.attempt, end_reason=ended)
    if ended is not None and ended in (task.excluded_end_reasons or ()):
        return replace(base, verdict="excluded", reason=f"ended by {ended}")
    if trial.end_reason is not None and ended is None:
        return replace(base, verdict="error", reason=f"`{trial.end_reason}` is no known end reason")
    results = _results(task, evidence)
    verdict, reason = _combine(task, results)
    if ended is None:
        if verdict != "error":
            verdict, reason = "unknown", _NO_END
    elif ended in (task.failing_end_reasons or ()):
        verdict, reason = "fail", f"ended by {ended}"
    if task.impossible:
        verdict, reason = _impossible(verdict, reason)
    outcome = replace(base, verdict=verdict, reason=reason, graders=tuple(results), score=_score(task, results))
    outcome = replace(outcome, progress=_progress(task, evidence, results))
    if verdict == "fail":
        outcome = replace(outcome, root_causes=root_causes(outcome, evidence), near_miss=near_miss(outcome))
    return outcome


_NO_END: Final = (
    "it is not known how the trial ended: no `end_reason` was recorded, and no root span that ended; "
    "write `end_reason: completed` in the trial if it did"
)


def _end_reason(task: Task, trial: Trial, trajectory: Trajectory | None) -> str | None:
    if trial.end_reason is not None:
        return known_end_reason(trial.end_reason, task)
    return "completed" if trajectory is not None and trajectory.root_ended is True else None


def _results(task: Task, evidence: Evidence) -> list[GraderResult]:
    if task.benchmark != "osworld":
        return [run(g, evidence) for g in task.graders]
    # OSWorld: saying FAIL is right for an infeasible task, and only for one
    said_fail = _said_fail(evidence)
    last = GraderResult(
        "last_action",
        verdict_of(said_fail if task.infeasible else None if said_fail is None else not said_fail),
        {True: "the last action is FAIL", False: "the last action is not FAIL"}.get(bool(said_fail), "")
        if said_fail is not None
        else "the last action is not known",
    )
    if task.infeasible:
        return [last]
    results = [run(g, evidence) for g in task.graders]
    return [*results, last] if said_fail else results


def _said_fail(evidence: Evidence) -> Tri:
    """Whether the last action says FAIL: the label `last_action`, else the last call's tool or a text argument."""
    label = evidence.trial.labels.get("last_action")
    if label is not None:
        return str(label).strip().upper() == "FAIL"
    calls = evidence.calls()
    if evidence.trajectory is None or not evidence.trajectory.complete:
        return None
    if not calls:
        return False
    last = calls[-1]
    texts: list[JSON] = [last.tool]
    if isinstance(last.arguments, dict):
        texts += last.arguments.values()
    if any(isinstance(t, str) and t.strip().upper() == "FAIL" for t in texts):
        return True
    return False if last.arguments_state == "captured" else None


def _combine(task: Task, results: Sequence[GraderResult]) -> tuple[OutcomeVerdict, str]:
    applicable = [r for r in results if r.verdict != "not_applicable"]
    if not results:
        return "unknown", "the task has no grader"
    if not applicable:
        return "unknown", "no grader applies"
    order: tuple[OutcomeVerdict, ...] = ("error", "fail", "unknown", "pass")
    applicable = [r for r in applicable if r.kind == "last_action"] or applicable
    if task.combine == "any":
        order = ("pass", "error", "unknown", "fail")
    for verdict in order:
        found = [r for r in applicable if r.verdict == verdict]
        if found:
            reasons = [f"{r.kind}: {_because(r)}" for r in found if _because(r)]
            return verdict, "" if verdict == "pass" else "; ".join(reasons)
    raise AssertionError("a grader gave an unknown verdict")


def _because(result: GraderResult) -> str:
    if result.reason:
        return result.reason
    counts = {k: sum(d.kind == k for d in result.differences) for k in ("missing_change", "wrong_value", "side_effect")}
    return ", ".join(f"{n} {kind}" for kind, n in counts.items() if n)


def _impossible(verdict: OutcomeVerdict, reason: str) -> tuple[OutcomeVerdict, str]:
    if verdict == "pass":
        return "fail", CHEAT
    if verdict == "fail":
        return "not_applicable", "the task is impossible, and was not passed"
    return verdict, reason


def _score(task: Task, results: Sequence[GraderResult]) -> float | None:
    """The product of the graders' scores, or the largest with `combine: any`; None where one is not known."""
    scores: list[float] = []
    for result in results:
        if result.verdict == "not_applicable":
            continue
        if result.kind in _WITH_SHARE and result.score is not None:
            scores.append(result.score)
        elif result.verdict in ("pass", "fail"):
            scores.append(float(result.verdict == "pass"))
        else:
            return None
    if not scores:
        return None
    return max(scores) if task.combine == "any" else math.prod(scores)


def _progress(task: Task, evidence: Evidence, final: Sequence[GraderResult]) -> tuple[float, ...]:
    """The running maximum over the recorded snapshots, and the final state, of the share of goals that hold.

    Source: AgentBoard, progress rate: the largest match score of any state so far.
    """
    if not evidence.trial.snapshots:
        return ()
    graders = [g for g in task.graders if g.kind in ("state", "requirements")]
    curve: list[float] = []
    for snapshot in evidence.trial.snapshots:
        then = evidence.trial.model_copy(
            update={"final": snapshot.state, "final_patch": snapshot.patch, "snapshots": []}
        )
        curve += _mean_share([run(g, replace(evidence, trial=then)) for g in graders])
    curve += _mean_share([r for r in final if r.kind in ("state", "requirements")])
    return tuple(max(curve[: i + 1]) for i in range(len(curve)))


def _mean_share(results: Sequence[GraderResult]) -> list[float]:
    shares = [r.score for r in results if r.score is not None and r.verdict in ("pass", "fail")]
    return [math.fsum(shares) / len(shares)] if shares else []

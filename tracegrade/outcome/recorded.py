"""Graders of what something else measured: exit codes, scores, medals, judges' verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from tracegrade.model.outcome import GraderResult
from tracegrade.model.task import RecordedGrader, ScriptGrader
from tracegrade.model.values import JSON, MISSING, Tri, json_equal
from tracegrade.outcome.evidence import Evidence, verdict_of

OFFICIAL_EPSILON: Final = 1e-6
"""A recorded reward this close to 1 is a success (τ-bench's own rule)."""

_PASSED: Final = frozenset({"pass", "passed", "true", "yes", "correct", "success", "resolved", "1", "1.0"})
_FAILED: Final = frozenset({"fail", "failed", "false", "no", "incorrect", "failure", "unresolved", "0", "0.0"})


def script(grader: ScriptGrader, evidence: Evidence) -> GraderResult:
    """A recorded exit code is 0, or a recorded score reaches a threshold or a medal."""
    label = grader.exit_code or grader.score or ""
    value = evidence.trial.labels.get(label)
    if value is None or value == "":
        return GraderResult("script", "unknown", f"the label `{label}` was not recorded")
    measured = _as_float(value)
    if measured is None:
        return GraderResult("script", "error", f"the label `{label}` is {value!r}; expected a number")
    if grader.exit_code is not None:
        return GraderResult("script", verdict_of(measured == 0), f"exit code {value}", details={"exit_code": value})
    if grader.leaderboard is not None:
        medal = medal_of(measured, grader.leaderboard, lower_is_better=grader.lower_is_better)
        details: dict[str, JSON] = {"recorded_score": measured, "medal": medal}
        return GraderResult("script", verdict_of(medal is not None), medal or "no medal", details=details)
    threshold = grader.threshold or 0.0
    reached = measured <= threshold if grader.lower_is_better else measured >= threshold
    word = "at most" if grader.lower_is_better else "at least"
    reason = f"score {measured:g}, {word} {threshold:g} needed"
    return GraderResult("script", verdict_of(reached), reason, details={"recorded_score": measured})


def medal_of(score: float, leaderboard: Sequence[float], *, lower_is_better: bool = False) -> str | None:
    """The medal that a score would have won, or None.

    Args:
        score: rounded to 5 decimals before it is compared.
        leaderboard: every team's score, in any order; the number of teams sets the thresholds.
        lower_is_better: whether smaller scores rank higher.

    Source: MLE-bench `grade_helpers.py`, after the platform's progression rules.

    >>> medal_of(0.9, [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0])
    'gold'
    """
    ranked = sorted(leaderboard, reverse=not lower_is_better)
    n = len(ranked)
    few, some = max(1, int(n * 0.1)), max(1, int(n * 0.2))
    if n < 100:
        places = few, some, max(1, int(n * 0.4))
    elif n < 250:
        places = 10, some, max(1, int(n * 0.4))
    elif n < 1000:
        places = 10 + int(n * 0.002), 50, 100
    else:
        places = 10 + int(n * 0.002), int(n * 0.05), int(n * 0.1)
    score = round(score, 5)
    for medal, place in zip(("gold", "silver", "bronze"), places, strict=True):
        bar = ranked[place - 1]
        if score <= bar if lower_is_better else score >= bar:
            return medal
    return None


def recorded(grader: RecordedGrader, evidence: Evidence) -> GraderResult:
    """What something else recorded: a label, an attribute, or an evaluation."""
    name, value = _recorded_value(grader, evidence)
    details: dict[str, JSON] = {"recorded": None if value is MISSING else value}
    if value is MISSING or value is None or value == "":
        return GraderResult("recorded", "unknown", f"{name} was not recorded", details=details)
    if isinstance(value, str) and "⟦" in value:
        return GraderResult("recorded", "unknown", f"{name} was redacted", details=details)
    if grader.equals is not None or grader.not_equals is not None:
        wanted = grader.equals if grader.equals is not None else grader.not_equals
        right = _equal_recorded(value, wanted) == (grader.equals is not None)
        return GraderResult("recorded", verdict_of(right), f"{name} is {value!r}", details=details)
    passed = _recorded_pass(value, grader.threshold)
    if passed is None:
        expected = (
            "a number" if grader.threshold is not None else "0, 1, true, false, pass or fail, or give a `threshold`"
        )
        return GraderResult("recorded", "error", f"{name} is {value!r}; expected {expected}", details=details)
    return GraderResult("recorded", verdict_of(passed), f"{name} is {value!r}", score=_unit(value), details=details)


def evaluation_passes(score: JSON, threshold: float | None = None) -> Tri:
    """What the score of a recorded evaluation says: its label where that says pass or fail, else its value.

    Args:
        score: `{value, label}`, or the value itself.
        threshold: a number passes at or above it; without it only 0 and 1 say anything.

    Returns:
        None where it says neither.
    """
    return _recorded_pass(_evaluated(score), threshold)


def _recorded_value(grader: RecordedGrader, evidence: Evidence) -> tuple[str, JSON]:
    if grader.column is not None:
        return f"the label `{grader.column}`", evidence.trial.labels.get(grader.column, MISSING)
    trajectory = evidence.trajectory
    if grader.attribute is not None:
        value = MISSING if trajectory is None else trajectory.attributes.get(grader.attribute, MISSING)
        return f"the attribute `{grader.attribute}`", value
    name = f"the evaluation `{grader.evaluation}`"
    steps = [] if trajectory is None else [s for s in trajectory.steps if s.kind == "evaluation"]
    scores = [_evaluated(s.score) for s in steps if s.name == grader.evaluation]
    agree = all(json_equal(scores[0], s) for s in scores)
    return (name, scores[0]) if scores and agree else (f"{name} (one result for it)", MISSING)


def _evaluated(score: JSON) -> JSON:
    """The label of a recorded evaluation where it says pass or fail, else its value."""
    if not isinstance(score, dict):
        return score
    label, value = score.get("label"), score.get("value")
    says = isinstance(label, str) and label.lower() in _PASSED | _FAILED
    return label if says or value is None else value


def _recorded_pass(value: JSON, threshold: float | None) -> Tri:
    """What a recorded value says; None where it says neither."""
    measured = _as_float(value)
    if isinstance(value, bool):
        return value
    if threshold is not None and measured is not None:
        return measured >= threshold
    if isinstance(value, str) and value.strip().lower() in _PASSED | _FAILED:
        return value.strip().lower() in _PASSED
    if measured is not None and abs(measured - 1) <= OFFICIAL_EPSILON:
        return True
    return False if measured is not None and abs(measured) <= OFFICIAL_EPSILON else None


def _equal_recorded(value: JSON, wanted: JSON) -> bool:
    return json_equal(value, wanted) or (isinstance(value, str) and value == str(wanted))


def _as_float(value: JSON) -> float | None:
    try:
        measured = float(value)
    except (TypeError, ValueError):
        return None
    return measured if math.isfinite(measured) else None


def _unit(value: JSON) -> float | None:
    measured = _as_float(value)
    return measured if measured is not None and 0 <= measured <= 1 else None

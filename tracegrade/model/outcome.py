"""What grading a trial gives: the outcome, its parts, and every difference by path."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tracegrade.model.values import JSON, MISSING
from tracegrade.model.verdict import Verdict

DifferenceKind: TypeAlias = Literal["missing_change", "wrong_value", "side_effect"]
OutcomeVerdict: TypeAlias = Literal["pass", "fail", "unknown", "not_applicable", "excluded", "error"]


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where the final state is not what it should be.

    `expected` and `observed` are `MISSING` where there should be, or is, nothing: null is a value. `at` is the first
    differing place inside a list that is compared as a whole; `note` says what is the matter there.
    """

    kind: DifferenceKind
    path: tuple[str, ...]
    expected: JSON = MISSING
    observed: JSON = MISSING
    at: tuple[str, ...] = ()
    note: str = ""

    def to_json(self) -> dict[str, JSON]:
        """The difference as it stands in reports; `absent` names the side that has no value at all."""
        record: dict[str, JSON] = {
            "kind": self.kind,
            "path": list(self.path),
            "expected": None if self.expected is MISSING else self.expected,
            "observed": None if self.observed is MISSING else self.observed,
        }
        if self.expected is MISSING or self.observed is MISSING:
            record["absent"] = "expected" if self.expected is MISSING else "observed"
        if self.at:
            record["at"] = list(self.at)
        if self.note:
            record["note"] = self.note
        return record


@dataclass(frozen=True, slots=True)
class GraderResult:
    """The verdict of one grader, with its evidence.

    `score` is a share in 0..1 where the grader has one. `n_differences` counts those left out of `differences` too.
    """

    kind: str
    verdict: Verdict
    reason: str = ""
    differences: tuple[Difference, ...] = ()
    score: float | None = None
    n_differences: int = 0
    details: dict[str, JSON] = field(default_factory=dict)

    def to_json(self) -> dict[str, JSON]:
        """The result as it stands in the JSON of `check`."""
        return {
            "kind": self.kind,
            "verdict": self.verdict,
            "reason": self.reason,
            "score": self.score,
            "n_differences": self.n_differences,
            "differences": [d.to_json() for d in self.differences],
            **self.details,
        }


@dataclass(frozen=True, slots=True)
class RootCause:
    """Why a trial failed, by the first stated rule that applies, with what it rests on."""

    category: str
    evidence: str
    span_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The graded end of one trial.

    `end_reason` is None where it is not known. `score` combines the graders' shares (product, or the largest with
    `combine: any`). `root_causes` is empty unless the verdict is `fail`. `near_miss` is one line of evidence where a
    failed trial was one difference away from a pass.
    """

    task_id: str
    trial: int | str
    verdict: OutcomeVerdict
    reason: str = ""
    attempt: int | None = None
    end_reason: str | None = None
    graders: tuple[GraderResult, ...] = ()
    score: float | None = None
    progress: tuple[float, ...] = ()
    root_causes: tuple[RootCause, ...] = ()
    near_miss: str | None = None

    def to_json(self) -> dict[str, JSON]:
        """The outcome as it stands in the JSON of `check`."""
        return {
            "verdict": self.verdict,
            "reason": self.reason,
            "end_reason": self.end_reason,
            "score": self.score,
            "progress": list(self.progress),
            "near_miss": self.near_miss,
            "root_causes": [
                {"category": c.category, "evidence": c.evidence, "span_ids": list(c.span_ids)} for c in self.root_causes
            ],
            "graders": [g.to_json() for g in self.graders],
        }

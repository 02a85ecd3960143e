"""Verdicts and findings: shared by checks, outcomes and audit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tracegrade.model.values import JSON

Verdict: TypeAlias = Literal["pass", "fail", "unknown", "not_applicable", "error"]
VERDICT_ORDER: tuple[Verdict, ...] = ("error", "fail", "unknown", "pass", "not_applicable")
"""Worst first (DESIGN §11, Roll-up)."""
Level: TypeAlias = Literal["error", "warning", "info"]


def worst(verdicts: list[Verdict]) -> Verdict:
    """The worst of some verdicts; `not_applicable` of none.

    >>> worst(["pass", "unknown", "not_applicable"])
    'unknown'
    """
    return min(verdicts, key=VERDICT_ORDER.index, default="not_applicable")


@dataclass(frozen=True, slots=True)
class StepRef:
    """A step as a finding cites it: enough to find it again and to read without the trace."""

    seq: int
    kind: str
    name: str
    arguments: JSON = None
    arguments_state: str | None = None
    status: str | None = None
    text: str | None = None
    start_ns: int | None = None
    end_ns: int | None = None
    span_ids: tuple[str, ...] = ()
    role: str | None = None
    """What the step is to the rule: `then`, `first`, `action`, …"""


@dataclass(frozen=True, slots=True)
class Finding:
    """One cited piece of evidence.

    `message` is one sentence for a person; every variable part of it stands in `context` too, so that no report has
    to parse prose. `missing` names, for `unknown`, exactly which evidence would decide it. `count` > 1 is a folded
    repeat.
    """

    rule: str
    level: Level
    message: str
    trace_id: str | None = None
    span_ids: tuple[str, ...] = ()
    steps: tuple[StepRef, ...] = ()
    expected: str | None = None
    observed: str | None = None
    missing: tuple[str, ...] = ()
    next_action: str | None = None
    count: int = 1
    context: dict[str, JSON] = field(default_factory=dict)


@dataclass(slots=True)  # treated as frozen, but made by the million: frozen ones take four times as long to make
class CheckResult:
    """What a check says of one trajectory.

    `scope` is `seen` where the trajectory is incomplete and only the steps that were seen are judged; `n_seen` is
    their number. `measure` is a number in 0..1, or {"low", "high"} where undecided. `missing_keys` are short codes of
    missing evidence (`arguments`, `messages`, `order`, `complete`, `turns`, `result`, `status`) for audit.
    """

    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    measure: float | dict[str, float] | None = None
    scope: Literal["all", "seen"] = "all"
    n_seen: int | None = None
    missing_keys: tuple[str, ...] = ()


@dataclass(slots=True)  # treated as frozen, as `CheckResult` is
class InvariantResult:
    """A check's result under the name of the invariant that asked for it."""

    id: str
    kind: str
    level: Level
    tags: tuple[str, ...]
    result: CheckResult
    waived: str | None = None
    """The reason of the waiver that covers this result, where one does."""

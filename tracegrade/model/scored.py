"""One graded trial, as scores and gates read it."""

from __future__ import annotations

from dataclasses import dataclass

INFRASTRUCTURE: str = "infrastructure_error"
"""The end reason that takes an attempt out of numerator and denominator."""


@dataclass(frozen=True, slots=True)
class ScoredTrial:
    """One attempt at one trial of one task.

    Attributes:
        task_id, trial: the key; several attempts may share it.
        attempt: which try of the trial this is; None where it is not recorded.
        passed: None where the trial is not scored; `reason` then says why.
        end_reason: how the trial ended; `infrastructure_error` is a crash.
        cluster: tasks with one label are not independent (one repository, one template).
        tags: what the task is about.
        cost_usd, tokens, calls, seconds: spend; None where it is not recorded.
        human_minutes: how long the task takes a person.
        human: a person's verdict on this trial.
        judge: a judge's verdict, where it stands beside the graded one.
        position, length, family: what judges are known to be swayed by: place of the answer shown first or second,
            length of the answer, the model family that wrote it.
        judge_family: the model family of the judge.
        fingerprint: hash of texts and arguments; equal ones are copies.
        seed: as recorded.
        trace_ids: of its spans.
        task_sha256: hash of what decides the grade of the task.
        where: file and line, or a pointer into a JSON document, for messages.
    """

    task_id: str
    trial: str
    attempt: int | None = None
    passed: bool | None = None
    reason: str | None = None
    end_reason: str | None = None
    cluster: str | None = None
    tags: tuple[str, ...] = ()
    cost_usd: float | None = None
    tokens: float | None = None
    calls: float | None = None
    seconds: float | None = None
    human_minutes: float | None = None
    human: bool | None = None
    judge: bool | None = None
    position: str | None = None
    length: float | None = None
    family: str | None = None
    judge_family: str | None = None
    fingerprint: str | None = None
    seed: str | None = None
    trace_ids: tuple[str, ...] = ()
    task_sha256: str | None = None
    where: str = ""

    @property
    def crashed(self) -> bool:
        """Whether the attempt was lost to infrastructure."""
        return self.end_reason == INFRASTRUCTURE

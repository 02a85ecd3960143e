"""Benchmarks' own rules as defaults: what a task that names a benchmark need not say.

A preset fills only what the task file leaves out. Where a rule is known to be lenient or odd it is kept, and
docs/outcomes.md says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tracegrade.model.task import (
    END_REASONS,
    EXCLUDED_END_REASONS,
    FAILING_END_REASONS,
    Benchmark,
    Grader,
    RequirementsGrader,
    Task,
)


@dataclass(frozen=True, slots=True)
class Preset:
    """The defaults of one benchmark.

    Attributes:
        graders: kind of grader → fields it has unless the task says otherwise.
        end_reasons: the benchmark's word for how a trial ended → ours.
        failing: end reasons that fail whatever the graders say.
        impossible: a pass is a cheat.
    """

    graders: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    end_reasons: Mapping[str, str] = field(default_factory=dict)
    failing: tuple[str, ...] = FAILING_END_REASONS
    impossible: bool = False


NO_PRESET: Final = Preset()

PRESETS: Final[dict[Benchmark, Preset]] = {
    # the database is hashed as Python prints it: list order matters, 5 and 5.0 differ
    "tau-bench": Preset(
        graders={"state": {"strict_numbers": True}, "outputs": {"normal_form": "tau-bench"}},
    ),
    "tau2-bench": Preset(
        graders={"state": {"strict_numbers": True}, "outputs": {"normal_form": "tau2-bench"}},
        end_reasons={
            "user_stop": "completed",
            "agent_stop": "completed",
            "max_steps": "budget",
            "timeout": "budget",
            "too_many_errors": "agent_error",
        },
    ),
    # a patch is tested however the agent stopped; a patch that could not be tested is not resolved
    "swe-bench": Preset(
        end_reasons={
            "patch_not_applied": "agent_error",
            "reset_failed": "agent_error",
            "tests_timeout": "agent_error",
            "no_test_output": "agent_error",
        },
        failing=("agent_error", "user_error"),
    ),
    "gaia": Preset(graders={"answer": {"normal_form": "gaia"}}),
    "webarena": Preset(graders={"answer": {"normal_form": "webarena"}, "outputs": {"normal_form": "webarena"}}),
    # the state is scored however the agent stopped; a fractional score passes only when it is whole
    "osworld": Preset(
        graders={"recorded": {"threshold": 1.0}},
        end_reasons={"max_steps": "budget"},
        failing=("agent_error", "user_error"),
    ),
    "agentboard": Preset(graders={"state": {"scope": "goal"}}),
    "devai": Preset(graders={"requirements": {"mode": "dependent", "threshold": 1.0}}),
    "impossiblebench": Preset(impossible=True),
    "terminal-bench": Preset(
        graders={"tests": {"require": "all"}},
        end_reasons={"timeout": "budget", "agent_timeout": "budget", "test_timeout": "budget"},
    ),
    "mle-bench": Preset(end_reasons={"timeout": "budget"}, failing=("agent_error", "user_error")),
    "browsecomp": Preset(),
}


def preset_of(task: Task) -> Preset:
    """The preset that a task names, or one without any defaults."""
    return PRESETS[task.benchmark] if task.benchmark is not None else NO_PRESET


def resolve(task: Task) -> Task:
    """The task with its benchmark's defaults filled in; a task that is resolved comes back as it is."""
    preset = preset_of(task)
    update: dict[str, Any] = {}
    if task.failing_end_reasons is None:
        update["failing_end_reasons"] = list(preset.failing)
    if task.excluded_end_reasons is None:
        update["excluded_end_reasons"] = list(EXCLUDED_END_REASONS)
    if task.impossible is None:
        update["impossible"] = preset.impossible
    if not update:
        return task
    update["graders"] = [_with_defaults(g, preset) for g in task.graders]
    return task.model_copy(update=update)


def _with_defaults(grader: Grader, preset: Preset) -> Grader:
    defaults = preset.graders.get(grader.kind, {})
    update: dict[str, Any] = {k: v for k, v in defaults.items() if k not in grader.model_fields_set}
    if isinstance(grader, RequirementsGrader):
        update["requirements"] = [
            r.model_copy(update={"grader": _with_defaults(r.grader, preset)}) for r in grader.requirements
        ]
    return grader.model_copy(update=update) if update else grader


def known_end_reason(word: str, task: Task) -> str | None:
    """Our word for how a trial ended, from ours or the benchmark's; None where it is neither."""
    return word if word in END_REASONS else preset_of(task).end_reasons.get(word)

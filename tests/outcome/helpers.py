"""Small trajectories for tests of outcomes."""

from __future__ import annotations

from typing import Any

from tracegrade.model.trajectory import Step, StepOrder, Trajectory


def said(*texts: str | None, beside: bool = False) -> list[Step]:
    """Messages of the agent; None stands for one that was not captured."""
    return [
        Step(
            0,
            "message",
            "assistant",
            role="assistant",
            text=text,
            text_state="not_captured" if text is None else "captured",
            beside_call=beside,
        )
        for text in texts
    ]


def called(tool: str, arguments: Any = None, **fields: Any) -> Step:
    """A call that ran."""
    fields = {"executed": True, "status": "ok", "arguments_state": "captured", "span_ids": ("ab" * 8,), **fields}
    return Step(0, "tool_call", tool, tool=tool, arguments=arguments or {}, **fields)


def trajectory(*steps: Step, **fields: Any) -> Trajectory:
    """A complete trajectory whose root ended."""
    fields = {"root_ended": True, "trace_ids": ("1" * 32,), **fields}
    identity = fields.pop("trajectory_id", "t")
    model_call = Step(0, "model_call", "m")
    return Trajectory(identity, steps=(model_call, *steps), order=StepOrder(), **fields)

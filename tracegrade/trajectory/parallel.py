"""Which steps of a trajectory stand beside each other: for display, and so that their order is not mistaken for one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from tracegrade.model.trajectory import Step, StepOrder

ACTS: Final = frozenset({"tool_call", "model_call", "retrieval", "guardrail", "handoff"})
_LOOK_BACK: Final = 64

GroupOrder: TypeAlias = Literal["concurrent", "unknown"]
"""Whether steps of a group are known to overlap, or whether only their order is not known."""


def parallel_groups(steps: Sequence[Step], order: StepOrder) -> dict[int, tuple[int, GroupOrder]]:
    """The groups of steps that run beside each other, by step index: the number of the group, and what is known.

    A group grows in display order while the next step is not certainly after every step of it (of the last 64: a
    display bound, not a verdict). Agents and messages are left out: an agent encloses its steps, a message is no act.
    """
    groups: dict[int, tuple[int, GroupOrder]] = {}
    block: list[int] = []
    known = False
    number = 0

    def close() -> None:
        nonlocal number
        if len(block) > 1:
            number += 1
            what: GroupOrder = "concurrent" if known else "unknown"
            groups.update(dict.fromkeys(block, (number, what)))

    for step in steps:
        if step.kind not in ACTS or step.prior:
            continue
        orders = {order.compare(other, step.index) for other in block[-_LOOK_BACK:]}
        if not orders & {"concurrent", "unknown"}:
            close()
            block, known = [], False
        block.append(step.index)
        known = known or "concurrent" in orders
    close()
    return groups

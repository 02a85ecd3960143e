"""Environments for replaying the desk's calls: right, drifted, noisy, and not one at all."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from typing import Any

_COUNTER = itertools.count()


class Shop:
    """An environment as an object: tools, and a state of its own."""

    def __init__(self, state: dict[str, Any]) -> None:
        self._orders = {k: dict(v) for k, v in state["orders"].items()}
        self.tools: dict[str, Callable[..., Any]] = {
            "verify_identity": lambda email: {"verified": email == state["email"]},
            "get_order": lambda order_id: dict(self._orders[order_id]),
            "cancel_order": self._cancel,
        }

    def _cancel(self, order_id: str) -> dict[str, Any]:
        self._orders[order_id]["status"] = "cancelled"
        return {"order_id": order_id, "status": "cancelled"}

    @property
    def state(self) -> dict[str, Any]:
        """The state now."""
        return {"email": "user@example.com", "orders": self._orders}


def drifted(state: dict[str, Any]) -> dict[str, Callable[..., Any]]:
    """`get_order` tells another total now, and cancelling says nothing and does something else."""

    def cancel_order(order_id: str) -> str:
        state["orders"][order_id]["status"] = "void"
        return "done"

    return {
        "verify_identity": lambda email: {"verified": True},
        "get_order": lambda order_id: {**state["orders"][order_id], "total": 99},
        "cancel_order": cancel_order,
    }


def noisy(state: dict[str, Any]) -> dict[str, Callable[..., Any]]:
    """Writes something else at every run."""
    tools = Shop(state).tools

    def cancel_order(order_id: str) -> dict[str, Any]:
        state["orders"][order_id]["status"] = f"cancelled-{next(_COUNTER)}"
        return {"order_id": order_id, "status": state["orders"][order_id]["status"]}

    return {**tools, "cancel_order": cancel_order}


def incomplete(state: dict[str, Any]) -> dict[str, Callable[..., Any]]:
    """Has no way to cancel."""
    tools = dict(Shop(state).tools)
    del tools["cancel_order"]
    return tools


def crashing(state: dict[str, Any]) -> dict[str, Callable[..., Any]]:
    """Takes its process down."""
    os._exit(3)


def hanging(state: dict[str, Any]) -> dict[str, Callable[..., Any]]:
    """Never ends."""
    threading.Event().wait()
    return {}


def nothing(state: dict[str, Any]) -> int:
    """No environment."""
    return 7

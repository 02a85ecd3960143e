"""What an agent under replay gets in place of its tools, its user and its model.

def agent(session):
    for text in session.turns():
        order = session.call("get_order", {"order_id": "W1"})
        session.say(f"It costs {order['total']}.")
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from tracegrade.model.replay import FaultReport
from tracegrade.model.values import JSON
from tracegrade.replay.faults import SLOW_S, FaultPlan, RateLimited, emptied, malformed
from tracegrade.replay.tape import ModelResponse, RecordedFailure, Tape


class Watch(Protocol):
    """Writes down what a session does: spans, or nothing."""

    def turn(self, text: str) -> AbstractContextManager[None]:
        """One turn of the user."""

    def call(self, tool: str, arguments: JSON) -> AbstractContextManager[Callable[[JSON, bool], None]]:
        """One call; the function takes its result and whether that is a failure. So is an exception that leaves it."""

    def said(self, text: str) -> None:
        """A text of the agent's."""

    def model(self, messages: Sequence[JSON], response: ModelResponse) -> None:
        """One model call: what it was told, and what it answered."""


class Session:
    """One replay of one trajectory.

    Args:
        tape: the recordings.
        plan: the faults.
        watch: where spans come from.
    """

    def __init__(self, tape: Tape, plan: FaultPlan, watch: Watch) -> None:
        self._tape = tape
        self._plan = plan
        self._watch = watch
        self.faults: list[FaultReport] = []

    def turns(self) -> Iterator[str]:
        """What the user said when it was recorded; what is done before the next text belongs to this one."""
        for text in self._tape.turns:
            with self._watch.turn(text):
                yield text

    def call(self, tool: str, arguments: JSON = None, **named: JSON) -> JSON:
        """The recorded result of a call.

        Args:
            tool: its name.
            arguments: its arguments; or give them by name.

        Raises:
            ReplayMiss: no recording answers it. The replay has failed, also if this is caught.
            RecordedFailure: the call failed when it was recorded, without a result.
            TimeoutError, RateLimited: injected faults.
        """
        given = {**(arguments or {}), **named} if arguments is None or isinstance(arguments, dict) else arguments
        with self._watch.call(tool, given) as ended:
            result, failed = self._result(tool, given)
            ended(result, failed)
        return result

    def _result(self, tool: str, arguments: JSON) -> tuple[JSON, bool]:
        fault, number = self._plan.next(tool)
        kind = fault.kind if fault is not None else None
        if kind is not None:
            self.faults.append(FaultReport(kind=kind, tool=tool, call=number))
        if kind == "timeout":
            raise TimeoutError(f"`{tool}` did not answer in time")
        if kind == "429":
            raise RateLimited(f"`{tool}`: 429 too many requests")
        answer = self._tape.answer(tool, arguments)
        if answer.failed and answer.result is None:
            raise RecordedFailure(f"`{tool}` failed when it was recorded")
        if kind == "slow":
            time.sleep(SLOW_S)
        if kind == "empty":
            return emptied(answer.result), False
        return (malformed(answer.result), False) if kind == "malformed" else (answer.result, answer.failed)

    @property
    def tools(self) -> Mapping[str, Callable[..., JSON]]:
        """A function for each tool on the tape."""

        def bound(name: str) -> Callable[..., JSON]:
            return lambda **arguments: self.call(name, arguments)

        return {name: bound(name) for name in dict.fromkeys(a.tool for a in self._tape.answers)}

    def say(self, text: str) -> None:
        """Write down what the agent says to the user."""
        self._watch.said(text)

    def respond(self, messages: Sequence[JSON]) -> ModelResponse:
        """The recorded model response to chat messages, for agents whose prompt did not change.

        Raises:
            ReplayMiss: nothing recorded follows them.
        """
        response = self._tape.respond(messages)
        self._watch.model(messages, response)
        return response


Agent = Callable[[Session], Any]

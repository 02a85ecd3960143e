"""Recorded tool results and model responses, handed out to a new agent in place of real ones.

`strict` gives a result only to a call of the same tool with equal canonical arguments, each recording once; `fifo`
gives the n-th call of a tool its n-th recording, whatever the arguments. A call without a recording is a miss, with the
recording that comes nearest: an error of the replay, never a score.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from tracegrade.model.replay import Leftover, MissReport
from tracegrade.model.trajectory import Step, Trajectory
from tracegrade.model.values import JSON, MISSING, canonical
from tracegrade.replay.environment import as_json
from tracegrade.trajectory.diff import changed_fields

Matching: TypeAlias = Literal["strict", "fifo"]
_SHOWN: Final = 5


class ReplayMiss(Exception):
    """A call or prompt that nothing recorded answers. It fails the replay even if the agent catches it."""


class RecordedFailure(Exception):
    """A call that failed when it was recorded, and of which no result was recorded."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a recorded call gave; `known` is False where the result was not captured."""

    tool: str
    arguments: JSON
    arguments_known: bool
    result: JSON
    known: bool
    failed: bool


@dataclass(frozen=True, slots=True)
class ModelResponse:
    """What a recorded model call gave, and what it had been told before: user texts, and results of tools."""

    text: str | None
    calls: tuple[tuple[str | None, str, JSON], ...]
    users: tuple[str, ...]
    results: tuple[str, ...]
    input_tokens: int | None = None
    output_tokens: int | None = None
    model: str | None = None


@dataclass(slots=True)
class Tape:
    """The recordings of one trajectory, used up as they are asked for.

    Attributes:
        turns: what the user said, in order.
        answers: recorded calls that were executed, in order.
        responses: recorded model calls, in order.
        misses: what was asked for and not there.
    """

    turns: tuple[str, ...]
    answers: tuple[Answer, ...]
    responses: tuple[ModelResponse, ...] = ()
    matching: Matching = "strict"
    misses: list[MissReport] = field(default_factory=list)
    _used: set[int] = field(default_factory=set)
    _used_responses: set[int] = field(default_factory=set)

    def answer(self, tool: str, arguments: JSON) -> Answer:
        """The recording for a call.

        Raises:
            ReplayMiss: there is none, or its result was not captured; it is noted in `misses`.
        """
        number = self._find(tool, canonical(arguments))
        if number is None:
            raise self._missed(tool, arguments)
        self._used.add(number)
        found = self.answers[number]
        if not found.known:
            self.misses.append(MissReport(what=f"the recorded result of `{tool}` was not captured", asked=arguments))
            raise ReplayMiss(f"the recorded result of `{tool}` was not captured")
        return found

    def _find(self, tool: str, key: str) -> int | None:
        for number, answer in enumerate(self.answers):
            if number in self._used or answer.tool != tool:
                continue
            if self.matching == "fifo" or (answer.arguments_known and canonical(answer.arguments) == key):
                return number
        return None

    def _missed(self, tool: str, arguments: JSON) -> ReplayMiss:
        same = [a for a in self.answers if a.tool == tool and a.arguments_known]
        nearest = min(same, key=lambda a: len(list(changed_fields(a.arguments, arguments))), default=None)
        what = (
            f"no recording of `{tool}` is left" if nearest is None else f"no recording of `{tool}` with these arguments"
        )
        if nearest is not None and canonical(nearest.arguments) == canonical(arguments):
            what = f"`{tool}` was called more often with these arguments than recorded"
        differs = [] if nearest is None else list(changed_fields(nearest.arguments, arguments))
        lines = tuple(
            f"{'.'.join(c.path)}: recorded {_shown(c.left)}, asked {_shown(c.right)}" for c in differs[:_SHOWN]
        )
        self.misses.append(
            MissReport(
                what=what, asked={"tool": tool, "arguments": arguments},
                nearest=None if nearest is None else nearest.arguments, differs=lines,
            )
        )  # fmt: skip
        return ReplayMiss(what + (f" ({'; '.join(lines)})" if lines else ""))

    def respond(self, messages: Sequence[JSON]) -> ModelResponse:
        """The recorded model response for a list of chat messages.

        `strict` looks for one that had been told the same: the same user texts and the same tool results; `fifo` takes
        the next.

        Raises:
            ReplayMiss: there is none; it is noted in `misses`.
        """
        users, results = told(messages)
        for number, response in enumerate(self.responses):
            if number in self._used_responses:
                continue
            same = response.users == users and sorted(response.results) == sorted(results)
            if self.matching == "fifo" or same:
                self._used_responses.add(number)
                return response
        left = [r for i, r in enumerate(self.responses) if i not in self._used_responses]
        nearest = min(left, key=lambda r: _distance(r, users, results), default=None)
        what = "no recorded model response follows this prompt" if left else "no recorded model response is left"
        self.misses.append(
            MissReport(
                what=what,
                asked=_prompt(users, results, nearest.results if nearest else results),
                nearest=None if nearest is None else _prompt(nearest.users, nearest.results, results),
            )
        )
        raise ReplayMiss(what)

    def leftovers(self) -> tuple[Leftover, ...]:
        """The recorded calls that nothing asked for, equal ones folded."""
        counts: dict[tuple[str, str], int] = {}
        shown: dict[tuple[str, str], Answer] = {}
        for number, answer in enumerate(self.answers):
            if number not in self._used:
                key = answer.tool, canonical(answer.arguments)
                counts[key] = counts.get(key, 0) + 1
                shown[key] = answer
        return tuple(Leftover(tool=a.tool, arguments=a.arguments, count=counts[k]) for k, a in shown.items())


def told(messages: Sequence[JSON]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The user texts and the tool results (canonical) in chat messages."""
    users, results = [], []
    for message in messages:
        if not isinstance(message, dict):
            continue
        if message.get("role") == "user":
            users.append(_plain_text(message.get("content")))
        elif message.get("role") in ("tool", "function"):
            results.append(canonical(as_json(_plain_text(message.get("content")))))
    return tuple(users), tuple(results)


def _plain_text(content: JSON) -> str:
    if isinstance(content, list):
        return "".join(str(p.get("text", "")) for p in content if isinstance(p, dict))
    return content if isinstance(content, str) else canonical(content)


def _prompt(users: Sequence[str], results: Sequence[str], others: Sequence[str]) -> JSON:
    """A prompt in a report of a miss: what users said, how many results there were, and those the other lacks."""
    shown: dict[str, JSON] = {"users": list(users), "results": len(results)}
    if own := sorted((Counter(results) - Counter(others)).elements()):
        shown["other_results"] = list(own)
    return shown


def _distance(response: ModelResponse, users: Sequence[str], results: Sequence[str]) -> tuple[int, int]:
    """How many messages apart two prompts are, then how many results differ."""
    apart = abs(len(response.users) - len(users)) + abs(len(response.results) - len(results))
    return apart, len(set(response.results) ^ set(results))


def _shown(value: JSON) -> str:
    text = "nothing" if value is MISSING else canonical(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def record(trajectory: Trajectory, matching: Matching = "strict") -> Tape:
    """The tape of a trajectory. What happened before it (`prior`) is known to its model, and on the tape for nobody."""
    steps = trajectory.steps
    answers = [
        Answer(
            tool=s.tool or s.name,
            arguments={} if s.arguments is None else s.arguments,
            arguments_known=s.arguments_state == "captured",
            result=s.result,
            known=s.result_state == "captured" or s.status == "error",
            failed=s.status == "error",
        )
        for s in trajectory.calls()
        if s.executed and not s.prior
    ]
    turns = [s.text for s in steps if s.kind == "message" and s.role == "user" and s.text is not None and not s.prior]
    return Tape(tuple(turns), tuple(answers), tuple(_responses(steps)), matching)


def _responses(steps: Sequence[Step]) -> list[ModelResponse]:
    models = [s for s in steps if s.kind == "model_call" and not s.prior]
    found = []
    for place, model in enumerate(models):
        end = models[place + 1].seq if place + 1 < len(models) else len(steps)
        calls = [
            s for s in steps if s.kind == "tool_call" and s.turn is not None and s.turn == model.turn and not s.prior
        ]
        said = [s.text for s in steps if s.kind == "message" and s.role == "assistant" and model.seq < s.seq < end]
        before = [s for s in steps if s.seq < model.seq]
        usage = model.usage
        found.append(
            ModelResponse(
                text="\n".join(t for t in said if t) or None,
                calls=tuple((s.call_id, s.tool or s.name, s.arguments) for s in calls),
                users=tuple(s.text or "" for s in before if s.kind == "message" and s.role == "user"),
                results=tuple(canonical(s.result) for s in before if s.kind == "tool_call" and s.executed),
                input_tokens=usage.input_tokens if usage else None,
                output_tokens=usage.output_tokens if usage else None,
                model=model.model,
            )
        )
    return found

"""Conversations as models saw them: every message and call once, with its place in the history.

Each model call repeats the whole history, so its input is aligned with what the thread already holds; what is new was
said since. A thread is a clock: positions in it say what came before what, without any clock's word (`order.py`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tracegrade.dialects.content import Content
from tracegrade.dialects.messages import CallPart, Message, ResultPart, TextPart
from tracegrade.model.values import canonical, is_redacted
from tracegrade.trajectory.drafts import CallDraft, Draft, MessageDraft, ModelDraft
from tracegrade.trajectory.order import Interval

Key = tuple[Any, ...]
Item = tuple[Key, str, Any]


@dataclass(slots=True, eq=False)
class Thread:
    """One message history and the drafts that stand in it."""

    clock: tuple[str, int]
    agent_key: Any
    keys: list[Key] = field(default_factory=list)
    places: dict[Key, list[int]] = field(default_factory=dict)
    drafts: list[Draft | None] = field(default_factory=list)
    position: int = 0
    last_end: int = 0
    last_output: Key | None = None
    last_model: ModelDraft | None = None
    calls_seen: bool = False
    uncovered: list[ModelDraft] = field(default_factory=list)
    with_id: int = 0
    half_named: int = 0


@dataclass(slots=True)
class Talk:
    """Everything that the model calls of a trajectory show: messages and calls, in threads."""

    threads: list[Thread] = field(default_factory=list)
    calls: list[CallDraft] = field(default_factory=list)
    messages: list[MessageDraft] = field(default_factory=list)
    by_id: dict[str, list[CallDraft]] = field(default_factory=dict)
    n_turns: int = 0
    joined_by_order: int = 0
    undated: list[CallDraft] = field(default_factory=list)

    def hear(self, model: ModelDraft) -> None:
        """Takes one model call: aligns its input, then adds its output. Call in order of start."""
        items = list(items_of(model.input)) if model.input is not None else []
        thread, matches = self._thread(model, items)
        if model.input is not None and self._repeats_answer(thread, items, matches):
            thread.uncovered.clear()
        if model.input is None or model.output is None:
            thread.uncovered.append(model)
        self._take_input(thread, model, items, matches)
        thread.position += 1
        model.talk[thread.clock] = Interval(thread.position, thread.position + 2)
        if model.output is not None:
            self._take_output(thread, model)
        thread.position += 3
        thread.last_model = model
        thread.last_end = max(thread.last_end, model.end)

    def uncovered(self) -> list[ModelDraft]:
        """Model calls of which something said is recorded nowhere: not with them, nor in a later history."""
        return [m for t in self.threads for m in t.uncovered]

    @staticmethod
    def _repeats_answer(thread: Thread, items: list[Item], matches: list[int | None]) -> bool:
        """Whether an input holds the answer of the model call before it: then it holds all that came before, too."""
        if thread.last_model is None:
            return False
        if thread.last_model.output:
            return any(key == thread.last_output for key, _, _ in items)
        return any(match is None and role == "assistant" for (_, role, _), match in zip(items, matches, strict=True))

    # Input ------------------------------------------------------------------------------------------------------

    def _thread(self, model: ModelDraft, items: list[Item]) -> tuple[Thread, list[int | None]]:
        """The thread that a model call continues, and where its input stands in it already."""
        keys = [key for key, _, _ in items]
        chosen: Thread | None = None
        matches: list[int | None] = []
        top = 0
        for thread in reversed(self.threads):
            found = _align(items, thread)
            # A system prompt alone is shared by runs that have nothing to do with each other.
            shared = sum(m is not None and key[1] != "system" for key, m in zip(keys, found, strict=True))
            same = thread.agent_key == model.agent_key
            score = shared * 2 + same
            continues = same or shared >= 2 or (shared == 1 and len(thread.keys) <= 2)
            if continues and score > top:
                chosen, matches, top = thread, found, score
        if chosen is None:
            chosen = Thread(("talk", len(self.threads)), model.agent_key)
            self.threads.append(chosen)
            return chosen, [None] * len(keys)
        answered = chosen.last_output is None or chosen.last_output in keys
        if keys and model.start < chosen.last_end and not answered:
            return self._fork(chosen, model, matches)
        return chosen, matches

    def _fork(self, parent: Thread, model: ModelDraft, matches: list[int | None]) -> tuple[Thread, list[int | None]]:
        """A thread of its own for a model call that ran beside another on the same history."""
        fork = Thread(("talk", len(self.threads)), model.agent_key)
        self.threads.append(fork)
        renumbered: list[int | None] = []
        for match in matches:
            if match is None:
                renumbered.append(None)
                continue
            renumbered.append(len(fork.keys))
            draft = parent.drafts[match]
            self._append(fork, parent.keys[match], draft)
            fork.position += 1
            if draft is not None:
                old = draft.talk.get(fork.clock)
                draft.talk[fork.clock] = Interval(old.start if old else fork.position, fork.position)
        return fork, renumbered

    def _take_input(self, thread: Thread, model: ModelDraft, items: list[Item], matches: list[int | None]) -> None:
        first = not thread.calls_seen and not thread.keys
        after_user = False
        group: object = object()
        open_calls: list[CallDraft] = []
        strays: list[ResultPart] = []
        previous = ""
        for (key, role, part), match in zip(items, matches, strict=True):
            if isinstance(part, TextPart):
                after_user = after_user or role == "user"
                if match is None:
                    self._message(thread, key, role, part, model, said=False)
            elif isinstance(part, CallPart):
                if previous != "call":
                    group = object()
                if match is None:
                    call = self._asked_before(thread, key, part, model, group, early=first, after_user=after_user)
                else:
                    call = thread.drafts[match]  # type: ignore[assignment]
                if isinstance(call, CallDraft):
                    self._learn(call, part)
                    open_calls.append(call)
            elif not self._response(thread, key, part, open_calls, match) and match is None:
                strays.append(part)
            previous = "call" if isinstance(part, CallPart) else "other"
        if not _cut(model):
            for call in open_calls:
                if not call.responded:
                    call.repeated = True
        self._take_strays(thread, strays)

    def _take_strays(self, thread: Thread, strays: list[ResultPart]) -> None:
        """Results whose ids match no request, where as many calls of the last answer wait: the ids are made up."""
        waiting = [
            d for d in thread.drafts if isinstance(d, CallDraft) and d.asked_by is thread.last_model and not d.responded
        ]
        if strays and thread.last_model is not None and len(strays) == len(waiting):
            for part, call in zip(strays, waiting, strict=True):
                self._respond(thread, call, part)
            self.joined_by_order += len(strays)

    def _message(
        self, thread: Thread, key: Key, role: str, part: TextPart, model: ModelDraft, *, said: bool
    ) -> MessageDraft:
        thread.position += 1
        draft = MessageDraft(
            role=role,
            text=part.text,
            agent=model.agent,
            agent_key=model.agent_key,
            seen_by=None if said else model,
            said_by=model if said else None,
            source="output" if said else "input",
        )
        draft.talk[thread.clock] = Interval(thread.position, thread.position)
        self._append(thread, key, draft)
        self.messages.append(draft)
        return draft

    def _asked_before(
        self,
        thread: Thread,
        key: Key,
        part: CallPart,
        model: ModelDraft,
        group: object,
        *,
        early: bool,
        after_user: bool,
    ) -> CallDraft:
        """A request that stands in an input and in no recorded output: handed over, unrecorded, or from before."""
        thread.position += 1
        known = [c for c in self.by_id.get(part.id, ()) if c.may_be(part.name)] if part.id else []
        if not known and part.id is None and early:
            name_and_arguments = canonical(part.arguments.value)
            known = [
                c
                for c in self.calls
                if c.clock != thread.clock and c.tool == part.name and c.arguments_key() == name_and_arguments
            ]
        if known:
            call = known[-1]
            call.talk.setdefault(thread.clock, Interval(thread.position, None))
            self._append(thread, key, call)
            return call
        call = self._new_call(part, model, "input message")
        call.early = early
        if early and thread.last_model is not None:
            self.undated.append(call)
        call.seen_by = model
        call.after_user = after_user
        call.group = group
        call.clock = thread.clock
        call.talk[thread.clock] = Interval(thread.position, None)
        self._append(thread, key, call)
        return call

    def _response(
        self,
        thread: Thread,
        key: Key,
        part: ResultPart,
        open_calls: list[CallDraft],
        match: int | None,
    ) -> bool:
        """Gives a result to the call that it answers; False where none is known."""
        call: CallDraft | None = None
        if part.id is not None:
            call = _of_id(open_calls, part.id)
            if call is None and match is None:
                known = [c for c in self.by_id.get(part.id, ()) if not c.responded]
                call = known[0] if known else None
        if call is None and (part.id is None or not any(c.call_id for c in open_calls)):
            waiting = [c for c in open_calls if not c.responded and c.may_be(part.name)]
            call = waiting[0] if waiting else _answered_so(open_calls, part)
        elif call is None:
            # The only request without an id, beside others with theirs, is the one whose id was lost.
            waiting = [c for c in open_calls if not c.responded and c.call_id is None and c.may_be(part.name)]
            call = waiting[0] if len(waiting) == 1 else None
        if call is not None and call.responded and (match is not None or part.id is None):
            return True
        if match is None:
            thread.position += 1
            self._append(thread, key, None)
        if call is None:
            return False
        if not call.tool and part.name and not is_redacted(part.name):
            call.tool = part.name
        self._respond(thread, call, part)
        return True

    def _learn(self, call: CallDraft, part: CallPart) -> None:
        """Takes the id and the name from a copy of a request that still has them."""
        if not call.tool and not is_redacted(part.name):
            call.tool = part.name
        if call.call_id is None and part.id is not None:
            call.call_id = part.id
            self.by_id.setdefault(part.id, []).append(call)

    def _respond(self, thread: Thread, call: CallDraft, part: ResultPart) -> None:
        call.responded = True
        call.repeated = False
        call.results.append((part.content, "tool message in the next input"))
        if part.is_error:
            call.failed = "the tool message is marked as an error"
        old = call.talk.get(thread.clock)
        call.talk[thread.clock] = Interval(old.start if old else thread.position, thread.position)

    # Output -----------------------------------------------------------------------------------------------------

    def _take_output(self, thread: Thread, model: ModelDraft) -> None:
        items = list(items_of(model.output))
        has_calls = any(isinstance(part, CallPart) for _, _, part in items)
        if has_calls and model.turn is None:
            model.turn = self.n_turns
            self.n_turns += 1
        text_position = thread.position + 1
        call_position = thread.position + 2
        asked: list[CallDraft] = []
        for key, role, part in items:
            if isinstance(part, TextPart):
                draft = self._message(thread, key, role if role != "user" else "assistant", part, model, said=True)
                draft.beside_call = has_calls
                draft.talk[thread.clock] = Interval(text_position, text_position)
                thread.position = text_position - 1
            elif isinstance(part, CallPart):
                call = self._new_call(part, model, "model output")
                call.asked_by = model
                call.clock = thread.clock
                call.talk[thread.clock] = Interval(call_position, None)
                self._append(thread, key, call)
                asked.append(call)
            elif isinstance(part, ResultPart):
                self._response(thread, key, part, asked, None)
            thread.last_output = key
        thread.position = text_position - 1
        if items:
            thread.calls_seen = True

    def _new_call(self, part: CallPart, model: ModelDraft, source: str) -> CallDraft:
        call = CallDraft(
            tool="" if is_redacted(part.name) else part.name,
            call_id=part.id,
            agent=model.agent,
            agent_key=model.agent_key,
            requested=True,
            trace_id=model.facts.span.trace_id,
        )
        call.by_provider = part.provider_executed
        call.arguments.append((part.arguments, source))
        self.calls.append(call)
        if part.id is not None:
            self.by_id.setdefault(part.id, []).append(call)
        return call

    def _append(self, thread: Thread, key: Key, draft: Draft | None) -> None:
        thread.places.setdefault(key, []).append(len(thread.keys))
        thread.keys.append(key)
        thread.drafts.append(draft)
        if isinstance(draft, CallDraft):
            thread.with_id += draft.call_id is not None
            thread.half_named += draft.call_id is None or not draft.tool


def _cut(model: ModelDraft) -> bool:
    """Whether a limit may have cut the model call's history, so that what is absent from it shows nothing."""
    return any(
        f.span.dropped_events > 0 or (f.span.dropped_attributes > 0 and f.flattened())
        for f in (model.facts, *model.layers)
    )


def _of_id(calls: list[CallDraft], call_id: str) -> CallDraft | None:
    """The latest request with an id; of several in one turn, the first that still waits for its answer."""
    last = next((c for c in reversed(calls) if c.call_id == call_id), None)
    if last is None:
        return None
    turn = [c for c in calls if c.call_id == call_id and c.asked_by is last.asked_by and c.group is last.group]
    return next((c for c in turn if not c.responded), last)


def _answered_so(calls: list[CallDraft], part: ResultPart) -> CallDraft | None:
    """The call that an answer without an id repeats the answer of."""
    if part.id is not None:
        return None
    key = _content_key(part.content)
    return next(
        (c for c in calls if c.may_be(part.name) and any(_content_key(content) == key for content, _ in c.results)),
        None,
    )


def items_of(messages: list[Message] | None) -> Iterator[Item]:
    """The parts of messages, each with a key that is equal wherever the same part is repeated."""
    for message in messages or ():
        for part in message.parts:
            if isinstance(part, TextPart):
                yield ("t", message.role, part.text), message.role, part
            elif isinstance(part, CallPart):
                # The position of a call without an id is told by what it asks for.
                key: Key = ("c", part.id) if part.id else ("c", None, part.name, _content_key(part.arguments))
                yield key, message.role, part
            else:
                key = ("r", part.id) if part.id else ("r", None, part.name, _content_key(part.content))
                yield key, message.role, part


def _content_key(content: Content) -> str:
    return canonical(content.value) if content.state == "captured" else content.raw or ""


def _align(items: list[Item], thread: Thread) -> list[int | None]:
    """For each part of an input, its place in the thread: the nearest equal one after the one before it."""
    known = thread.keys
    n = min(len(items), len(known))
    at = 0
    while at < n and items[at][0] == known[at]:
        at += 1
    matches: list[int | None] = list(range(at))
    for key, _, part in items[at:]:
        found: int | None = None
        places = thread.places.get(key)
        if places is not None and places[-1] >= at:
            found = places[bisect_left(places, at)]
        elif isinstance(part, CallPart):
            found = _half_named(part, thread, at)
        if found is not None:
            at = found + 1
        matches.append(found)
    return matches


def _half_named(part: CallPart, thread: Thread, at: int) -> int | None:
    """The place of an equal request of which one copy lost its id or its name; two ids are two calls."""
    if not ((part.id is None and thread.with_id) or thread.half_named or not part.name):
        return None
    key = _content_key(part.arguments)
    for i in range(at, len(thread.drafts)):
        draft = thread.drafts[i]
        if not isinstance(draft, CallDraft) or not draft.may_be(part.name):
            continue
        if draft.call_id and part.id and draft.call_id != part.id:
            continue
        if draft.call_id is None and part.id is None and draft.tool and part.name:
            continue
        if any(_content_key(content) == key for content, _ in draft.arguments):
            return i
    return None

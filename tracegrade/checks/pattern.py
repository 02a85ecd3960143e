"""What an action pattern says of a step, in Kleene's three values.

A pattern is compiled once, in two readings. As **proof** (a look-up before a change) a call counts only when it ended
`ok`, since a failed check has checked nothing; as an **attempt** (what a rule restrains) every executed call counts,
unfinished ones too. Naming a `status` overrides both. Equal patterns share one compiled node, so that a trajectory
evaluates each once, however many rules use it.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Literal

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from tracegrade.checks.match import ValueTest, compile_matcher, compile_path
from tracegrade.model.invariant import Pattern, resolve_pattern
from tracegrade.model.trajectory import STEP_KINDS, Step
from tracegrade.model.values import Tri, is_redacted, tri_and, tri_not, tri_or

StepTest = Callable[[Step], Tri]
Reading = Literal["proof", "attempt"]
CALLS = frozenset({"tool_call"})
MESSAGES = frozenset({"message"})
_CALL_FIELDS = ("tool", "args", "result", "status", "executed")


@lru_cache(maxsize=8192)
def _glob(pattern: str) -> Callable[[str], object]:
    # `[` is a plain sign here: tool names hold brackets more often than people write classes.
    return re.compile(fnmatch.translate(pattern.replace("[", "[[]"))).match


@lru_cache(maxsize=65536)
def name_matches(names: tuple[str, ...], name: str) -> bool:
    """Whether a name is one of `names`, which may hold the globs `*` and `?`; case matters.

    >>> name_matches(("find_user_id_by_*",), "find_user_id_by_email"), name_matches(("a?",), "a")
    (True, False)
    """
    return any(n == name or (("*" in n or "?" in n) and _glob(n)(name) is not None) for n in names)


class Node:
    """One compiled pattern.

    Attributes:
        kinds: the step kinds that it ranges over.
        names: tool names and globs when only they can match, so that a trajectory's index by tool can be used.
        parts: the tests of its own fields, cheapest first, each with the code of the evidence it needs.
        plain: the reading of a pattern that names tools or nothing at all, None for any other.
    """

    __slots__ = ("all_of", "any_of", "kinds", "names", "negated", "parts", "plain", "test")

    def __init__(
        self,
        kinds: frozenset[str],
        parts: list[tuple[str, StepTest]],
        names: tuple[str, ...] | None,
        any_of: tuple[Node, ...],
        all_of: tuple[Node, ...],
        negated: Node | None,
        plain: Reading | None = None,
    ) -> None:
        self.kinds, self.parts, self.names, self.plain = kinds, parts, names, plain
        self.any_of, self.all_of, self.negated = any_of, all_of, negated
        self.test = self._compose()

    def _compose(self) -> StepTest:
        tests: list[StepTest] = [t for _, t in self.parts]
        if self.any_of:
            branches = self.any_of
            tests.append(lambda step: tri_or(b.in_domain(step) for b in branches))
        tests.extend(part.in_domain for part in self.all_of)
        if self.negated is not None:
            negated = self.negated
            tests.append(lambda step: tri_not(negated.in_domain(step)))
        if not tests:
            return lambda step: True
        if len(tests) == 1:
            return tests[0]

        def conjunction(step: Step) -> Tri:
            result: Tri = True
            for test in tests:
                value = test(step)
                if value is False:
                    return False
                if value is None:
                    result = None
            return result

        return conjunction

    def in_domain(self, step: Step) -> Tri:
        """The pattern's value on any step: false on steps that it does not range over."""
        return self.test(step) if step.kind in self.kinds else False

    def missing(self, step: Step) -> list[str]:
        """Codes of the evidence that leaves this pattern undecided on a step; empty where it is decided."""
        if self.in_domain(step) is not None:
            return []
        codes = [code for code, test in self.parts if test(step) is None]
        inner = [*self.any_of, *self.all_of, *([self.negated] if self.negated else [])]
        codes.extend(code for node in inner for code in node.missing(step))
        return list(dict.fromkeys(codes))


def _domain(pattern: Pattern) -> frozenset[str]:
    if pattern.step is not None:
        return frozenset(pattern.step)
    if pattern.message is not None or pattern.text is not None:
        return MESSAGES
    kinds: frozenset[str] = CALLS
    inner: frozenset[str] | None = None
    if pattern.any:
        inner = frozenset().union(*(_domain(p) for p in pattern.any))
    for part in [*(pattern.all or ()), *([pattern.not_] if pattern.not_ else [])]:
        inner = _domain(part) if inner is None else inner & _domain(part)
    if inner is not None:
        kinds = inner & CALLS if any(getattr(pattern, f) is not None for f in _CALL_FIELDS) else inner
    return kinds


def _names(pattern: Pattern, field: str) -> bool:
    """Whether a pattern names a field, itself or inside."""
    if getattr(pattern, field) is not None:
        return True
    inner = [*(pattern.any or ()), *(pattern.all or ()), *([pattern.not_] if pattern.not_ else [])]
    return any(_names(p, field) for p in inner)


def _named_here(pattern: Pattern, field: str) -> bool:
    """Whether a default for the field is overridden for the whole pattern; branches of `any` decide on their own."""
    inner = [*(pattern.all or ()), *([pattern.not_] if pattern.not_ else [])]
    return getattr(pattern, field) is not None or any(_names(p, field) for p in inner)


def _build(pattern: Pattern, default_status: bool, default_executed: bool) -> Node:
    status_named = _named_here(pattern, "status")
    executed_named = _named_here(pattern, "executed") or (
        pattern.status is not None and "not_executed" in pattern.status
    )
    below_status = default_status and not status_named and pattern.executed is not False
    below_executed = default_executed and not executed_named
    parts: list[tuple[str, StepTest]] = []
    if pattern.tool is not None:
        parts.append(("tool", _tool_test(pattern.tool)))
    if pattern.message is not None:
        parts.append(("messages", _role_test(pattern.message)))
    if pattern.executed is not None and pattern.executed != "any":
        parts.append(("executed", _executed_test(pattern.executed)))
    elif below_executed and not pattern.any:
        parts.append(("executed", _executed_test(True)))
    if pattern.agent is not None:
        parts.append(("agent", _agent_test(pattern.agent)))
    if pattern.name is not None:
        names = pattern.name
        parts.append(("name", lambda step: name_matches(names, step.name)))
    if pattern.status is not None and pattern.executed is not False:
        parts.append(("status", _status_test(frozenset(pattern.status), True)))
    elif below_status and not pattern.any:
        parts.append(("status", _status_test(frozenset({"ok"}), False)))
    parts += _content_parts(pattern)
    kinds = _domain(pattern)
    return Node(
        kinds,
        parts,
        _tools_meant(pattern) if kinds == CALLS else None,
        tuple(_build(p, below_status, below_executed) for p in pattern.any or ()),
        tuple(_build(p, False, False) for p in pattern.all or ()),
        _build(pattern.not_, False, False) if pattern.not_ else None,
    )


def _tools_meant(pattern: Pattern) -> tuple[str, ...] | None:
    """The tool names and globs outside which nothing matches; None where any tool may."""
    if pattern.tool is not None:
        return pattern.tool
    inner = [_tools_meant(p) for p in pattern.any or ()]
    return None if not inner or None in inner else tuple(name for names in inner for name in names or ())


def _is_plain(pattern: Pattern) -> bool:
    """Whether a pattern says nothing but which tools are meant, itself or as one of several such patterns."""
    if pattern.model_fields_set == {"any"}:
        return all(_is_plain(p) for p in pattern.any or ())
    return pattern.model_fields_set <= {"tool"}


def _tool_test(names: tuple[str, ...]) -> StepTest:
    if not any("*" in n or "?" in n for n in names):
        exact = frozenset(names)
        return lambda step: None if step.tool is None and step.kind == "tool_call" else step.tool in exact
    return lambda step: None if step.tool is None and step.kind == "tool_call" else _named(names, step.tool)


def _named(names: tuple[str, ...], name: str | None) -> bool:
    return name is not None and name_matches(names, name)


def _agent_test(names: tuple[str, ...]) -> StepTest:
    def test(step: Step) -> Tri:
        agent = step.name if step.kind == "agent" else step.agent
        return None if agent is None else name_matches(names, agent)

    return test


def _role_test(roles: tuple[str, ...]) -> StepTest:
    return lambda step: None if step.role is None else step.role in roles


def _executed_test(wanted: bool) -> StepTest:
    if wanted:
        return lambda step: step.executed if step.kind == "tool_call" else True
    return lambda step: tri_and((step.requested, tri_not(step.executed))) if step.kind == "tool_call" else True


def _status_test(wanted: frozenset[str], named: bool) -> StepTest:
    ended = wanted & {"ok", "error"}

    def test(step: Step) -> Tri:
        if step.kind == "message":
            return True
        status = step.status
        if status is None:
            return None if named or step.kind == "tool_call" else True
        if status == "unfinished":
            return True if status in wanted else None
        if step.status_suspect:
            return len(ended) == 2 or (None if ended else False)
        return status in wanted

    return test


def _content_parts(pattern: Pattern) -> list[tuple[str, StepTest]]:
    parts: list[tuple[str, StepTest]] = []
    if pattern.text is not None:
        text_test = compile_matcher(pattern.text)
        parts.append(("messages", lambda s: text_test(s.text) if s.text_state == "captured" else None))
    if pattern.args is not None:
        parts.append(("arguments", _arguments_test(_object_test(pattern.args))))
    if pattern.result is not None:
        result_test = _object_test(pattern.result)
        parts.append(("result", lambda s: result_test(s.result) if s.result_state == "captured" else None))
    if pattern.duration_ms is not None:
        duration_test = compile_matcher(pattern.duration_ms)

        def duration(step: Step) -> Tri:
            if step.start_ns is None or step.end_ns is None:
                return None
            return duration_test((step.end_ns - step.start_ns) / 1e6)

        parts.append(("duration", duration))
    return parts


def _arguments_test(test: ValueTest) -> StepTest:
    return lambda step: test(step.arguments) if step.arguments_state == "captured" else None


def _object_test(fields: dict[tuple[str, ...], Any]) -> ValueTest:
    if not fields:  # `{}` means none
        return lambda value: None if is_redacted(value) else value is None or value == {}
    tests = [compile_path(path, matcher) for path, matcher in fields.items()]
    return tests[0] if len(tests) == 1 else lambda value: tri_and(t(value) for t in tests)


_NODES: dict[tuple[str, Reading], Node] = {}


def compile_pattern(pattern: Pattern, reading: Reading) -> Node:
    """The compiled pattern; one node for equal patterns, whatever they are called."""
    key = (repr(pattern.model_dump(exclude_unset=True)), reading)
    if key not in _NODES:
        node = _NODES[key] = _build(pattern, reading == "proof", True)
        node.plain = reading if _is_plain(pattern) else None
    return _NODES[key]


class Action:
    """A pattern as a rule uses it: its name for people, and its two compiled readings."""

    __slots__ = ("attempt", "label", "pattern", "proof")

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.label = pattern.label or describe(pattern)
        self.proof = compile_pattern(pattern, "proof")
        self.attempt = compile_pattern(pattern, "attempt")

    def __repr__(self) -> str:
        return f"Action({self.label})"

    def tools(self) -> Iterable[str]:
        """Every tool name or glob that the pattern names, inside too."""
        return _tools(self.pattern)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        pattern = core_schema.no_info_after_validator_function(_action_of, handler(Pattern))
        return core_schema.with_info_before_validator_function(_pattern_of, pattern)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"type": "string", "description": "The name of an action."}, handler(schema)]}


def _action_of(pattern: Pattern) -> Action:
    return Action(pattern)


def _pattern_of(value: Any, info: core_schema.ValidationInfo) -> Any:
    return value.pattern if isinstance(value, Action) else resolve_pattern(value, info)


def _tools(pattern: Pattern) -> list[str]:
    inner = [*(pattern.any or ()), *(pattern.all or ()), *([pattern.not_] if pattern.not_ else [])]
    return [*(pattern.tool or ()), *(name for p in inner for name in _tools(p))]


def describe(pattern: Pattern) -> str:
    """A pattern in words, for one that has no name.

    >>> describe(Pattern(tool=("refund",), args={"amount": {"gt": 0}}))
    'refund with amount gt 0'
    """
    if pattern.label:
        return pattern.label
    words: list[str] = []
    if pattern.message is not None:
        words.append(f"{' or '.join(pattern.message)} message")
    elif pattern.step is not None:
        words.append(" or ".join(pattern.step))
    if pattern.tool is not None:
        words.append(" or ".join(pattern.tool))
    if pattern.any:
        words.append(" or ".join(describe(p) for p in pattern.any))
    if pattern.all:
        words.append(" and ".join(describe(p) for p in pattern.all))
    if not words:
        words.append("message" if pattern.text is not None else "a call")
    if pattern.name is not None:
        words.append(f"named {' or '.join(pattern.name)}")
    if pattern.not_:
        words.append(f"other than {describe(pattern.not_)}")
    if pattern.agent is not None:
        words.append(f"by {' or '.join(pattern.agent)}")
    if pattern.executed is not None:
        words.append({True: "that ran", False: "that did not run"}.get(pattern.executed, "run or not"))  # type: ignore[arg-type]
    if pattern.status is not None:
        words.append(f"with status {' or '.join(pattern.status)}")
    for field, fields in (("", pattern.args), ("result ", pattern.result)):
        if fields is not None:
            told = [f"{field}{'.'.join(path)} {_describe_matcher(m)}" for path, m in fields.items()]
            words.append("with " + (" and ".join(told) if told else f"no {field or 'arguments'}".strip()))
    if pattern.text is not None:
        words.append(f"whose text {_describe_matcher(pattern.text)}")
    if pattern.duration_ms is not None:
        words.append(f"whose duration in ms {_describe_matcher(pattern.duration_ms)}")
    return " ".join(words)


def _describe_matcher(matcher: Any) -> str:
    told = []
    for name in sorted(matcher.model_fields_set):
        value = getattr(matcher, name)
        if name == "exists":
            told.append("is there" if value else "is not there")
            continue
        shown = _describe_matcher(value) if name == "length" else value
        told.append(f"{'= ' if name == 'eq' else name.rstrip('_') + ' '}{shown}")
    return " and ".join(told)


ALL_KINDS = frozenset(STEP_KINDS)

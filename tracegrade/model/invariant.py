"""What a person writes in a pack of invariants: action patterns, matchers, rules, examples (DESIGN §5).

These are the shapes of the file. What a pattern means for a step, and what a kind of rule means for a trajectory, is in
`tracegrade.checks`. A name of an action is resolved while the file is validated, through the `RuleContext` that the
loader passes as pydantic's validation context.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from tracegrade.errors import did_you_mean
from tracegrade.model.trajectory import CallStatus, StepKind
from tracegrade.model.values import JSON
from tracegrade.model.verdict import Level, Verdict

KEBAB = r"^[a-z0-9]+(-[a-z0-9]+)*$"
JsonType: TypeAlias = Literal["null", "boolean", "integer", "number", "string", "array", "object"]
Role: TypeAlias = Literal["user", "assistant", "system", "tool"]


class Strict(BaseModel):
    """Base of everything read from a rule file: immutable, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


@lru_cache(maxsize=1024)
def linear_search(pattern: str) -> Callable[[str], bool]:
    """Whether an RE2 pattern is found in a text: in time linear in the text, whatever the pattern.

    Raises:
        ValueError: the pattern is not RE2's (no look-around, no back references).
    """
    import re2  # compiled on first use: most packs name few patterns

    options = re2.Options()
    options.log_errors = False
    try:
        search = re2.compile(pattern, options=options).search
    except re2.error as error:
        reason = error.args[0] if error.args else "malformed"
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise ValueError(
            f"not a valid regular expression: {text} (RE2 syntax: no look-around, no back references)"
        ) from error
    # Bytes spare the library a map of every character's place; a lone surrogate becomes `?`.
    return lambda text: search(text.encode("utf-8", "replace")) is not None


class RuleContext:
    """What a rule file's own names mean while it is validated.

    Args:
        actions: the named patterns as written, by name.
        tools: tool names to be replaced, each with the names that stand in for it.
        folder: where files named in rules are looked up; None where there is no folder (built-in text).
    """

    def __init__(
        self,
        actions: Mapping[str, Any] | None = None,
        tools: Mapping[str, tuple[str, ...]] | None = None,
        folder: Path | None = None,
    ) -> None:
        self.actions = dict(actions or {})
        self.tools = dict(tools or {})
        self.folder = folder
        self.tools_seen: set[str] = set()
        self._known: dict[str, Pattern] = {}
        self._resolving: list[str] = []

    def action(self, name: str) -> Pattern:
        """The pattern called `name`.

        Raises:
            ValueError: no such action, actions that name each other in a circle, or a malformed one.
        """
        if name in self._known:
            return self._known[name]
        if name not in self.actions:
            raise ValueError(f"no action is called `{name}`.{did_you_mean(name, self.actions)}")
        if name in self._resolving:
            circle = " -> ".join([*self._resolving[self._resolving.index(name) :], name])
            raise ValueError(f"actions name each other in a circle: {circle}")
        self._resolving.append(name)
        try:
            pattern = Pattern.model_validate(self.actions[name], context=self)
        except ValidationError as error:
            first = error.errors()[0]
            reason = str(first["ctx"]["error"]) if "error" in first.get("ctx", {}) else first["msg"]
            raise ValueError(f"action `{name}` is malformed: {reason}") from error
        finally:
            self._resolving.pop()
        self._known[name] = pattern.named(name)
        return self._known[name]


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, (str, bool)) else tuple(value) if isinstance(value, list) else value


def _nonempty(value: tuple[Any, ...]) -> tuple[Any, ...]:
    if not value:
        raise ValueError("an empty list matches nothing; expected at least one entry")
    return value


def one_or_many(inner: dict[str, Any]) -> WithJsonSchema:
    """The JSON Schema of a value that may be written alone or as a list."""
    return WithJsonSchema({"anyOf": [inner, {"type": "array", "items": inner, "minItems": 1}]})


def _mapped_tools(value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
    context = info.context
    if not isinstance(context, RuleContext):
        return value
    context.tools_seen.update(value)
    names = [new for old in value for new in context.tools.get(old, (old,))]
    return tuple(dict.fromkeys(names))


_TEXT = {"type": "string"}
Names = Annotated[tuple[str, ...], BeforeValidator(_as_tuple), AfterValidator(_nonempty), one_or_many(_TEXT)]
"""One name or a list of them; globs (`*`, `?`) allowed."""
ToolNames = Annotated[Names, AfterValidator(_mapped_tools)]
"""Names of tools, to which the pack's `tools:` mapping applies."""
Ids = Annotated[tuple[str, ...], BeforeValidator(_as_tuple), one_or_many(_TEXT)]


def parse_path(value: Any) -> tuple[str, ...]:
    """A path into a JSON value: `a.0.b`, `a.*.b`, or a list where keys hold dots; `.` is the value itself.

    >>> parse_path("items.*.id"), parse_path(["a.b", 0]), parse_path(".")
    (('items', '*', 'id'), ('a.b', '0'), ())
    """
    if value == ".":
        return ()
    if isinstance(value, (list, tuple)):
        return tuple(str(part) for part in value)
    if not isinstance(value, str) or not value or "" in value.split("."):
        raise ValueError(f"expected a dotted path such as `items.0.id`, got {value!r}")
    return tuple(value.split("."))


_PATH_SCHEMA = WithJsonSchema({"anyOf": [_TEXT, {"type": "array", "items": {"type": ["string", "integer"]}}]})
Path_ = Annotated[tuple[str, ...], BeforeValidator(parse_path), _PATH_SCHEMA]

VALUE_ROOTS = ("args", "result", "text", "tool", "agent")


def parse_value_path(value: Any) -> tuple[str, ...]:
    """A path to a value of a step, its root first; without a root it is an argument.

    >>> parse_value_path("order_id"), parse_value_path("result.id")
    (('args', 'order_id'), ('result', 'id'))
    """
    path = parse_path(value)
    return path if path and path[0] in VALUE_ROOTS else ("args", *path)


ValuePath = Annotated[tuple[str, ...], BeforeValidator(parse_value_path), _PATH_SCHEMA]


Bound: TypeAlias = StrictInt | StrictFloat | StrictStr


class Matcher(Strict):
    """Conditions on one value; all that are given must hold. A scalar stands for `{eq: scalar}`."""

    eq: JSON = Field(default=None, description="Equal: 1 = 1.0, but “1” ≠ 1, true ≠ 1, null ≠ missing.")
    ne: JSON = Field(default=None, description="Present and not equal.")
    gt: Bound | None = Field(default=None, description="Greater; numbers with numbers, text with text.")
    ge: Bound | None = None
    lt: Bound | None = None
    le: Bound | None = None
    in_: tuple[JSON, ...] | None = Field(default=None, alias="in", description="Equal to one of these.")
    not_in: tuple[JSON, ...] | None = None
    matches: str | None = Field(
        default=None, description="An RE2 pattern is found in the text; anchor it for the whole."
    )
    contains: JSON = Field(default=None, description="Part of a text, an element of a list, or a key of an object.")
    starts_with: str | None = None
    exists: StrictBool | None = Field(default=None, description="The path is (true) or is not (false) there.")
    type: Annotated[
        tuple[JsonType, ...] | None,
        BeforeValidator(_as_tuple),
        one_or_many({"enum": ["null", "boolean", "integer", "number", "string", "array", "object"]}),
    ] = None
    length: MatcherRef | None = Field(
        default=None, description="Length of a text, list or object: a number or a matcher."
    )

    @model_validator(mode="after")
    def _sound(self) -> Matcher:
        if not self.model_fields_set:
            raise ValueError("an empty matcher says nothing; use `{exists: true}` for “is there”")
        for name in self.model_fields_set - {"eq", "ne", "contains"}:
            if getattr(self, name) is None:
                raise ValueError(f"`{name.rstrip('_')}` needs a value")
        if self.matches is not None:
            linear_search(self.matches)
        return self


def _matcher_from(value: Any) -> Any:
    if isinstance(value, list):
        raise ValueError("a list is ambiguous here; write `{in: [...]}` for any of, `{eq: [...]}` for this list")
    return value if isinstance(value, (dict, Matcher)) else {"eq": value}


_SCALAR_SCHEMA: dict[str, Any] = {"type": ["string", "number", "boolean", "null"]}
MatcherRef: TypeAlias = Annotated[Matcher, BeforeValidator(_matcher_from, json_schema_input_type=Any)]


def resolve_pattern(value: Any, info: ValidationInfo) -> Any:
    """The pattern that a name stands for; anything but a name is left to the model."""
    if not isinstance(value, str):
        return value
    if not isinstance(info.context, RuleContext):
        raise ValueError(f"no action is called `{value}`: the pack has no actions")
    return info.context.action(value)


PatternRef: TypeAlias = Annotated["Pattern", BeforeValidator(resolve_pattern, json_schema_input_type=Any)]


class Pattern(Strict):
    """Which steps are meant. Names take globs, lists mean any of, and all that is given must hold.

    Without `message`, `step` or `text` a pattern ranges over tool calls.
    """

    tool: ToolNames | None = Field(default=None, description="Name of the tool; globs `*` and `?`.")
    agent: Names | None = Field(default=None, description="Name of the nearest agent above.")
    name: Names | None = Field(default=None, description="Name of the step: the tool, the agent, the model, the role.")
    message: Annotated[
        tuple[Role, ...] | None,
        BeforeValidator(_as_tuple),
        one_or_many({"enum": ["user", "assistant", "system", "tool"]}),
    ] = Field(default=None, description="A message of this role.")
    step: Annotated[
        tuple[StepKind, ...] | None,
        BeforeValidator(_as_tuple),
        one_or_many(
            {
                "enum": [
                    "tool_call",
                    "model_call",
                    "message",
                    "agent",
                    "handoff",
                    "retrieval",
                    "guardrail",
                    "evaluation",
                ]
            }
        ),
    ] = Field(default=None, description="A kind of step other than tool calls.")
    status: Annotated[
        tuple[CallStatus, ...] | None,
        BeforeValidator(_as_tuple),
        one_or_many({"enum": ["ok", "error", "unfinished", "not_executed"]}),
    ] = Field(default=None, description="How the call ended; where a step is proof, `ok` unless said otherwise.")
    executed: Literal["any"] | StrictBool | None = Field(
        default=None, description="true (the default): calls that ran; false: asked for and not run; any."
    )
    args: dict[Path_, MatcherRef] | None = Field(default=None, description="Path to matcher; `{}` means no arguments.")
    result: dict[Path_, MatcherRef] | None = Field(
        default=None, description="Path to matcher; `.` is the whole result."
    )
    text: MatcherRef | None = Field(default=None, description="A matcher on what a message says.")
    duration_ms: MatcherRef | None = None
    any: tuple[PatternRef, ...] | None = Field(default=None, min_length=1, description="One of these patterns matches.")
    all: tuple[PatternRef, ...] | None = Field(default=None, min_length=1, description="All of these patterns match.")
    not_: PatternRef | None = Field(default=None, alias="not", description="This pattern does not match.")

    _name: str = PrivateAttr(default="")

    @property
    def label(self) -> str:
        """The name that the pack gives to this pattern, empty for one written in place."""
        return self._name

    def named(self, name: str) -> Pattern:
        """The same pattern under a name of the pack."""
        copy = self.model_copy()
        copy._name = name
        return copy

    @model_validator(mode="after")
    def _possible(self) -> Pattern:
        calls = [f for f in ("tool", "args", "result") if getattr(self, f) is not None]
        if self.message is not None and (calls or self.step is not None):
            raise ValueError(f"a message has no `{(calls or ['step'])[0]}`: this could never match")
        if self.text is not None and calls:
            raise ValueError(f"`text` is what a message says; with `{calls[0]}` this could never match")
        return self


Matcher.model_rebuild()
Pattern.model_rebuild()


class AppliesTo(Strict):
    """Which trajectories a rule is about; all that is given must hold."""

    tasks: Names | None = Field(default=None, description="Task ids; globs allowed.")
    tags: Names | None = Field(default=None, description="Tags of the task, any of.")
    agents: Names | None = Field(default=None, description="Names of agents that took part, any of.")
    services: Names | None = Field(default=None, description="Names of services that took part, any of.")
    attributes: dict[str, MatcherRef] | None = Field(
        default=None, description="Attribute of the trajectory to matcher."
    )


class Waiver(Strict):
    """A violation that somebody answers for, until a date."""

    rule: str = Field(description="Id of the rule.")
    owner: str = Field(min_length=1)
    reason: str = Field(min_length=1)
    expires: date = Field(description="The last day on which it counts, YYYY-MM-DD.")
    trajectories: Names | None = Field(default=None, description="Ids of trajectories or traces; globs allowed.")
    applies_to: AppliesTo | None = None


class Params(Strict):
    """Base of the fields that a kind of rule takes."""


class Invariant(BaseModel):
    """The fields that every rule has; the kind's own fields stand beside them and are validated by the kind."""

    model_config = ConfigDict(frozen=True, extra="allow")

    id: str = Field(pattern=KEBAB, description="Stable and unique, kebab-case.")
    kind: str
    why: str | None = Field(default=None, description="One sentence that a manager understands.")
    source: str | None = Field(default=None, description="Where the rule comes from: a policy, a report, a standard.")
    level: Level = "error"
    tags: Ids = ()
    applies_to: AppliesTo | None = None
    allow_unseen: StrictBool = Field(default=False, description="No warning for tool names that no trace holds.")


_EXAMPLE_KINDS = ("tool", "message", "step", "parallel", "turn", "unordered")
Uncaptured: TypeAlias = Literal["args", "result", "text", "status", "executed", "turn", "agent"]


class ExampleStep(Strict):
    """One step of an example, or a group of steps."""

    tool: str | None = None
    args: JSON = Field(default_factory=dict)
    result: JSON = None
    status: CallStatus = "ok"
    suspect: bool = Field(default=False, description="The result only looks like a failure.")
    executed: bool = True
    agent: str | None = None
    message: Role | None = None
    text: str = ""
    step: StepKind | None = None
    name: str = ""
    parallel: tuple[ExampleStep, ...] | None = Field(
        default=None, description="Asked for in one turn, overlapping in time."
    )
    turn: tuple[ExampleStep, ...] | None = Field(
        default=None, description="Asked for in one turn, run one after another."
    )
    unordered: tuple[ExampleStep, ...] | None = Field(default=None, description="No record of which came first.")
    not_captured: tuple[Uncaptured, ...] = ()
    truncated: tuple[Literal["args", "result", "text"], ...] = ()
    times: int = Field(default=1, ge=1, le=1000, description="The same step so many times.")
    prior: bool = Field(default=False, description="Stands only in the history of the first model call.")
    start_s: float | None = Field(default=None, description="Seconds from the start of the example.")
    duration_s: float | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _one_kind(self) -> ExampleStep:
        given = [k for k in _EXAMPLE_KINDS if getattr(self, k) is not None]
        if len(given) != 1:
            raise ValueError(f"expected exactly one of {', '.join(_EXAMPLE_KINDS)}, got {', '.join(given) or 'none'}")
        return self


class ExampleUsage(Strict):
    """Totals of an example for rules on budgets; what is left out is not recorded."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    complete: bool = True


class ExampleTrajectory(Strict):
    """A trajectory in short: steps one after another, executed, ok, captured, each in its own turn."""

    steps: tuple[ExampleStep, ...] = ()
    complete: bool = True
    messages_recorded: bool = True
    definitions: dict[str, JSON] = Field(default_factory=dict, description="Tool to the JSON Schema of its arguments.")
    usage: ExampleUsage | None = None
    duration_s: float | None = None
    task: str | None = None
    task_tags: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    attributes: dict[str, JSON] = Field(default_factory=dict)


EXAMPLE_VERDICTS: dict[str, Verdict] = {
    "holds": "pass",
    "violated": "fail",
    "unknown": "unknown",
    "not_applicable": "not_applicable",
}


class Example(Strict):
    """A trajectory and the verdict that the named rules must give on it."""

    holds: ExampleTrajectory | None = None
    violated: ExampleTrajectory | None = None
    unknown: ExampleTrajectory | None = None
    not_applicable: ExampleTrajectory | None = None
    for_: Ids = Field(alias="for", min_length=1, description="Ids of the rules that this shows.")
    name: str = ""

    @model_validator(mode="after")
    def _one_verdict(self) -> Example:
        given = [k for k in EXAMPLE_VERDICTS if getattr(self, k) is not None]
        if len(given) != 1:
            raise ValueError(f"expected exactly one of {', '.join(EXAMPLE_VERDICTS)}, got {', '.join(given) or 'none'}")
        return self

    @property
    def expected(self) -> Verdict:
        """The verdict that the rules must give."""
        return next(v for k, v in EXAMPLE_VERDICTS.items() if getattr(self, k) is not None)

    @property
    def trajectory(self) -> ExampleTrajectory:
        """What happened."""
        found = self.holds or self.violated or self.unknown or self.not_applicable
        assert found is not None  # noqa: S101 - the validator saw to it
        return found


class PackFile(Strict):
    """A file of invariants."""

    version: Literal[1]
    pack: str = Field(pattern=KEBAB, description="Name of the pack, kebab-case.")
    description: str = ""
    extends: Ids = Field(default=(), description="Bundled packs by name, or files below this one's folder.")
    without: Ids = Field(default=(), description="Ids of inherited rules to leave out.")
    tools: dict[str, Names] = Field(
        default_factory=dict, description="Tool name as the rules write it, to the names that your agent uses."
    )
    actions: dict[str, Any] = Field(default_factory=dict, description="Named patterns.")
    invariants: tuple[dict[str, Any], ...] = ()
    waivers: tuple[Waiver, ...] = ()
    examples: tuple[Example, ...] = ()


ACTION_NAME = re.compile(r"\A[A-Za-z_][A-Za-z0-9_-]*\Z")

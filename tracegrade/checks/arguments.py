"""`arguments`: every call's arguments validate against a JSON Schema (2020-12)."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import orjson
from pydantic import Field, ValidationInfo, field_validator

from tracegrade.checks.base import define_check
from tracegrade.checks.each_step import prior_finding
from tracegrade.checks.finding import NOT_APPLICABLE, Findings, make_finding, name_of, seen, unseen, why_unsure
from tracegrade.checks.pattern import Action
from tracegrade.checks.schemas import Judge, Verdict, judge_for, schema_problem
from tracegrade.checks.view import View
from tracegrade.model.invariant import Params, Pattern, RuleContext
from tracegrade.model.values import JSON
from tracegrade.model.verdict import CheckResult

MAX_SCHEMA_BYTES = 4 * 1024 * 1024


class Arguments(Params):
    """Every call's arguments validate against a schema."""

    action: Action = Field(
        default_factory=lambda: Action(Pattern()), description="The calls meant; every call unless given."
    )
    schema_: Literal["recorded"] | dict[str, Any] = Field(
        alias="schema",
        description="A JSON Schema, the path of one beside the pack, or `recorded`: the tool definitions in the spans.",
    )

    @field_validator("schema_", mode="before")
    @classmethod
    def _usable(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, str) and value != "recorded":
            value = _read_schema(value, info.context)
        if isinstance(value, dict):
            problem = schema_problem(value)
            if problem is not None:
                raise ValueError(problem)
        return value

    @cached_property
    def judge(self) -> Judge | None:
        """The validation by a given schema; None for recorded ones."""
        return judge_for(self.schema_) if isinstance(self.schema_, dict) else None


def _read_schema(name: str, context: Any) -> JSON:
    folder = context.folder if isinstance(context, RuleContext) else None
    if folder is None:
        raise ValueError(f"no folder to look for `{name}` in: write the schema in place")
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise ValueError(f"`{name}` lies outside the folder of the pack")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ValueError(f"`{name}` cannot be read: {error.strerror}; expected `recorded` or a file") from error
    if len(content) > MAX_SCHEMA_BYTES:
        raise ValueError(f"`{name}` is larger than {MAX_SCHEMA_BYTES} bytes")
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"`{name}` is not JSON: {error}") from error


def check_arguments(view: View, params: Arguments) -> CheckResult:
    """Judge one trajectory."""
    found = view.match(params.action, "attempt")
    expected = f"arguments of `{params.action.label}` that fit the {_told(params)} schema"
    if not found.yes and not found.maybe and not found.has_prior:
        if found.open:
            return unseen(view, params.action.attempt, f"`{params.action.label}`", expected)
        return NOT_APPLICABLE
    findings = Findings(view)
    certain = set(found.yes)
    for index in (*found.yes, *found.maybe):
        _judge_call(view, params, index, index in certain, expected, findings)
    for index in (*found.prior_yes, *found.prior_maybe):
        if _verdict(view, params, index)[0].valid is not True:
            findings.unknown("prior", ["prior"], prior_finding(view, params.action, index, "call", expected))
    if not found.yes and not findings.failed and not findings.undecided:
        if not found.maybe:
            return unseen(view, params.action.attempt, "call", expected) if found.open else NOT_APPLICABLE
        codes = why_unsure(view, [params.action.attempt], found.maybe)
        _unsure(view, found.maybe[0], codes, expected, "it may not be meant by this rule", findings)
    return findings.verdict(seen(found.open, len(found.yes)))


def _verdict(view: View, params: Arguments, index: int) -> tuple[Verdict, list[str]]:
    step = view.steps[index]
    judge = params.judge
    if judge is None:
        judge = _recorded(view, step.tool)
        if judge is None:
            return Verdict(None, problem="the definition of the tool is not recorded"), ["definitions"]
    if step.arguments_state != "captured":
        return Verdict(None, problem=f"the arguments are {step.arguments_state.replace('_', ' ')}"), ["arguments"]
    verdict = judge(step.arguments if step.arguments is not None else {})
    return verdict, [] if verdict.valid is not None else ["definitions" if verdict.problem else "arguments"]


def _recorded(view: View, tool: str | None) -> Judge | None:
    key = ("recorded", tool)
    if key not in view.cache:
        definition = view.trajectory.definitions.get(tool) if tool is not None else None
        view.cache[key] = None if definition is None else judge_for(definition)
    return view.cache[key]  # type: ignore[return-value]


def _judge_call(view: View, params: Arguments, index: int, certain: bool, expected: str, findings: Findings) -> None:
    verdict, codes = _verdict(view, params, index)
    if verdict.valid is True:
        return
    step = view.steps[index]
    if verdict.valid is None or not certain:
        codes = codes + ([] if certain else why_unsure(view, [params.action.attempt], [index]))
        _unsure(view, index, codes, expected, verdict.problem or "part of the arguments was taken out", findings)
        return
    first = verdict.violations[0]
    where = "" if first.path == "." else f"{first.path}: "
    findings.fail(
        (step.tool, first.path, "violation"),
        make_finding(
            view,
            f"the arguments of {name_of(step)} do not fit the {_told(params)} schema: {where}{first.message}",
            [(index, "call")],
            expected=expected,
            observed="; ".join(f"{v.path}: {v.message}" for v in verdict.violations),
            context={"tool": step.tool, "step": step.seq, "violations": [v._asdict() for v in verdict.violations]},
            next_action="Fix the call, or the tool's schema if it asks for too much.",
        ),
    )


def _unsure(view: View, index: int, codes: list[str], expected: str, why: str, findings: Findings) -> None:
    step = view.steps[index]
    findings.unknown(
        (step.tool, tuple(codes)),
        codes,
        make_finding(
            view,
            f"cannot tell whether the arguments of {name_of(step)} are right: {why}",
            [(index, "call")],
            expected=expected,
            observed=why,
            missing=codes,
            context={"tool": step.tool, "step": step.seq},
        ),
    )


def _told(params: Arguments) -> str:
    return "recorded" if params.judge is None else "given"


ARGUMENTS = define_check(
    "arguments",
    Arguments,
    check_arguments,
    explain=lambda p: f"The arguments of every `{p.action.label}` must fit the {_told(p)} JSON Schema.",
    needs=("arguments",),
    example="""\
- id: refund-arguments
  kind: arguments
  action: {tool: refund}
  schema:
    type: object
    required: [order_id, amount]
    properties: {amount: {type: number, exclusiveMinimum: 0}}
""",
)

"""Drift of the contract between an agent and its tools: recorded definitions, calls and results against new schemas.

Comes in: trajectories and the new tools' definitions. Goes out: what changed, and which recorded calls or results the
new schemas refuse. Nothing is executed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tracegrade.checks.schemas import judge_for, schema_problem
from tracegrade.errors import InputError
from tracegrade.model.replay import ContractChange, InvalidCall
from tracegrade.model.trajectory import Trajectory
from tracegrade.model.values import JSON, json_equal

_ARGUMENT_KEYS = ("parameters", "inputSchema", "input_schema", "parameters_json_schema", "json_schema")
_RESULT_KEYS = ("outputSchema", "output_schema")
_DESCRIBING = frozenset({"description", "title", "examples", "default", "$comment"})


@dataclass(frozen=True, slots=True)
class ToolContract:
    """The schemas of one tool; None where it has none."""

    arguments: JSON = None
    result: JSON = None


def parse_contract(document: JSON, where: str) -> dict[str, ToolContract]:
    """Tool definitions as OpenAI, Anthropic and MCP write them, in a list, below `tools`, or by name.

    Args:
        document: parsed JSON.
        where: what to call it in messages.

    Raises:
        InputError: there is no definition in it, or a schema is none.
    """
    if isinstance(document, dict) and isinstance(document.get("result"), dict):
        document = document["result"]  # the answer to MCP's tools/list
    if isinstance(document, dict) and isinstance(document.get("tools"), list):
        document = document["tools"]
    if isinstance(document, dict) and "name" not in document and "function" not in document:
        document = [{"name": name, "parameters": schema} for name, schema in document.items()]
    found: dict[str, ToolContract] = {}
    for item in document if isinstance(document, list) else [document]:
        inner = item.get("function") if isinstance(item, dict) and isinstance(item.get("function"), dict) else item
        if not isinstance(inner, dict) or not isinstance(inner.get("name"), str):
            raise InputError(f"{where}: expected tool definitions with `name` and a schema (OpenAI, Anthropic or MCP)")
        arguments, result = (
            next((inner[k] for k in keys if k in inner), None) for keys in (_ARGUMENT_KEYS, _RESULT_KEYS)
        )
        for schema in (arguments, result):
            if schema is not None and (problem := schema_problem(schema)) is not None:
                raise InputError(f"{where}: tool `{inner['name']}`: {problem}")
        found[inner["name"]] = ToolContract(arguments, result)
    if not found:
        raise InputError(f"{where}: no tool is defined in it")
    return found


def contract_changes(
    recorded: Mapping[str, JSON], new: Mapping[str, ToolContract], called: frozenset[str]
) -> Iterator[ContractChange]:
    """What changed between recorded definitions and new ones. A tool that was called and is gone is breaking.

    Args:
        recorded: tool → JSON Schema of its arguments, as recorded in spans.
        new: the new tools.
        called: tools that the recorded trajectories call.
    """
    for tool in sorted({*recorded, *called} - set(new)):
        yield ContractChange(tool=tool, kind="tool_removed", breaking=tool in called)
    for tool in sorted(set(new) - {*recorded, *called}):
        yield ContractChange(tool=tool, kind="tool_added")
    for tool in sorted(set(new) & set(recorded)):
        before, after = recorded[tool], new[tool].arguments
        if isinstance(before, dict) and isinstance(after, dict):
            yield from _schema_changes(tool, before, after)


def _schema_changes(tool: str, before: dict[str, JSON], after: dict[str, JSON]) -> Iterator[ContractChange]:
    old, new = before.get("properties") or {}, after.get("properties") or {}
    old_required, new_required = set(before.get("required") or ()), set(after.get("required") or ())
    for name in [n for n in old if n not in new]:
        breaking = after.get("additionalProperties") is False
        yield ContractChange(tool=tool, kind="parameter_removed", parameter=name, before=old[name], breaking=breaking)
    for name in [n for n in new if n not in old]:
        required = name in new_required
        yield ContractChange(tool=tool, kind="parameter_added", parameter=name, after=new[name], breaking=required)
    for name in sorted((new_required - old_required) & set(old)):
        yield ContractChange(tool=tool, kind="required_added", parameter=name, breaking=True)
    for name in sorted((old_required - new_required) & set(new)):
        yield ContractChange(tool=tool, kind="required_removed", parameter=name)
    for name in [n for n in old if n in new]:
        if not json_equal(_bare(old[name]), _bare(new[name])):
            yield ContractChange(tool=tool, kind="schema_changed", parameter=name, before=old[name], after=new[name])
    rest = [{k: v for k, v in _bare(s).items() if k not in ("properties", "required")} for s in (before, after)]
    if not json_equal(rest[0], rest[1]):
        yield ContractChange(tool=tool, kind="schema_changed", before=rest[0], after=rest[1])


def _bare(schema: JSON) -> JSON:
    """A schema without what only describes."""
    if isinstance(schema, dict):
        return {k: _bare(v) for k, v in schema.items() if k not in _DESCRIBING}
    return [_bare(s) for s in schema] if isinstance(schema, list) else schema


def invalid_calls(trajectory: Trajectory, new: Mapping[str, ToolContract]) -> tuple[list[InvalidCall], int]:
    """Recorded calls whose arguments or results the new schemas certainly refuse.

    Returns:
        Those calls, and how many calls could be looked at.
    """
    found: list[InvalidCall] = []
    checked = 0
    for step in trajectory.calls():
        contract = new.get(step.tool or step.name)
        if contract is None:
            continue
        sides: Sequence[tuple[str, JSON, JSON, bool]] = (
            ("arguments", contract.arguments, step.arguments, step.arguments_state == "captured"),
            ("result", contract.result, step.result, step.result_state == "captured" and step.status == "ok"),
        )
        checked += contract.arguments is not None and step.arguments_state == "captured"
        for what, schema, value, known in sides:
            if schema is None or not known:
                continue
            verdict = judge_for(schema)(value)
            if verdict.valid is False:
                message = "; ".join(f"{v.path + ': ' if v.path else ''}{v.message}" for v in verdict.violations)
                found.append(
                    InvalidCall(
                        tool=step.tool or step.name,
                        what=what,  # type: ignore[arg-type]
                        trajectory_id=trajectory.trajectory_id,
                        seq=step.seq,
                        message=message,
                        span_ids=step.span_ids,
                    )
                )
    return found, checked

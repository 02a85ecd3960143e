"""From what pydantic objects to, to what a person can mend: file, line, field, closest known name."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from tracegrade.checks.pattern import Action
from tracegrade.checks.yaml_file import YamlFile
from tracegrade.errors import Problem, did_you_mean
from tracegrade.model.invariant import Pattern

_QUOTED = re.compile(r"'([^']*)'")


def problems_of(
    error: ValidationError, file: YamlFile, prefix: Sequence[str | int], model: type[BaseModel]
) -> list[Problem]:
    """The problems of one validation, each with its line.

    Args:
        error: what pydantic raised.
        file: where the data stands.
        prefix: the place of the validated data in the file.
        model: what it was validated as.
    """
    details = error.errors(include_url=False)
    deepest = {d["loc"]: d for d in details}
    found: list[Problem] = []
    for detail in deepest.values():
        if detail["type"] in ("literal_error", "none_required") and _other_branch(detail, details):
            continue
        # A part that names a branch of a union, in pydantic's own words, is no place in the file.
        real = tuple(p for p in detail["loc"] if not (isinstance(p, str) and ("[" in p or ("-" in p and "(" in p))))
        place = (*prefix, *real)
        message = _message(detail, model)
        problem = Problem(file.where(place), ".".join(str(p) for p in place), message)
        if problem not in found:
            found.append(problem)
    return found


def _other_branch(detail: Any, details: Sequence[Any]) -> bool:
    """Whether another branch of the same union came further."""
    parent = detail["loc"][:-1]
    return any(d is not detail and d["loc"][: len(parent)] == parent and len(d["loc"]) > len(parent) for d in details)


def _message(detail: Any, model: type[BaseModel]) -> str:
    kind = detail["type"]
    if kind == "extra_forbidden":
        key = str(detail["loc"][-1])
        known = sorted(fields_at(model, detail["loc"][:-1]))
        hint = did_you_mean(key, known) or f" Known: {', '.join(known)}."
        return f"unknown field `{key}`.{hint}"
    if kind == "missing":
        return "this field is required"
    context = detail.get("ctx") or {}
    if kind == "value_error" and "error" in context:
        return str(context["error"])
    message = str(detail["msg"])
    if kind in ("literal_error", "enum"):
        value = detail.get("input")
        hint = did_you_mean(str(value), _QUOTED.findall(str(context.get("expected", "")))) if value is not None else ""
        return f"expected {context.get('expected', '')}, got {value!r}.{hint}"
    return message[0].lower() + message[1:] if message[:1].isupper() and message[1:2].islower() else message


def fields_at(model: type[BaseModel], location: Sequence[str | int]) -> set[str]:
    """The names of the fields that may stand at a place inside a model."""
    models: set[type[BaseModel]] = {model}
    for part in location:
        below: set[type[BaseModel]] = set()
        for one in models:
            for name, field in one.model_fields.items():
                if part in (name, field.alias):
                    below |= _models_in(field.annotation, field.metadata)
        # An index or the key of a mapping stays with the models of the list or mapping.
        if below:
            models = below
    return {field.alias or name for one in models for name, field in one.model_fields.items()}


def _models_in(annotation: Any, metadata: Sequence[Any] = ()) -> set[type[BaseModel]]:
    if annotation is Action:
        return {Pattern}
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {annotation}
    if isinstance(annotation, typing.ForwardRef):
        return {Pattern} if "Pattern" in annotation.__forward_arg__ else set()
    found: set[type[BaseModel]] = set()
    if typing.get_origin(annotation) is not None or isinstance(annotation, types.UnionType):
        for inner in typing.get_args(annotation):
            if not isinstance(inner, (str, int)):
                found |= _models_in(inner)
    return found

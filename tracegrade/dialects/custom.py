"""A user's own dialects: a YAML file with the same fields as a table, or an entry point `tracegrade.dialects`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from tracegrade.dialects.base import FIELDS, Dialect, Role
from tracegrade.errors import Problem, RuleFileError


def load_dialects(paths: Iterable[Path]) -> list[Dialect]:
    """Dialects of YAML files, then those that installed packages offer.

    Raises:
        RuleFileError: a file is malformed; all problems of it at once.
    """
    return [_from_file(p) for p in paths] + [e.load() for e in entry_points(group="tracegrade.dialects")]


def dialect_schema() -> dict[str, Any]:
    """The JSON Schema of a dialect file."""
    schema: dict[str, Any] = _model().model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:tracegrade:dialect:1", **schema}


def _model() -> Any:
    from pydantic import BaseModel, ConfigDict, Field, field_validator

    class DialectFile(BaseModel):
        """A dialect: which spans are of it, what their roles are, and which keys hold each field."""

        model_config = ConfigDict(extra="forbid", frozen=True)
        name: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", description="kebab-case, unique")
        source: str = Field(default="", description="document or package that the facts come from")
        version: str = Field(default="", description="its version")
        checked: str = Field(default="", description="date on which the facts were checked (ISO)")
        marks: list[str] = Field(min_length=1, description="any of `attr:KEY`, `scope:PREFIX`, `name:GLOB`")
        roles: list[dict[str, dict[str, Role]]] = Field(
            default=[], description="in order: attribute key (or @name) → value or glob → role"
        )
        fields: dict[str, list[str]] = Field(
            default={}, description="field → keys in order of preference: `key`, `key|converter` or `@reader`"
        )
        tool_spans: bool | None = Field(default=None, description="whether each tool call has a span")
        flattened: bool = Field(default=False, description="whether messages are spread over many attributes")
        notes: str = ""

        @field_validator("version", "checked", mode="before")
        @classmethod
        def _as_text(cls, value: object) -> object:
            """A date or a number, which YAML makes of text without quotes, as its text."""
            return str(value) if isinstance(value, (date, int, float)) else value

    return DialectFile


def _from_file(path: Path) -> Dialect:
    import yaml
    from pydantic import ValidationError

    from tracegrade.dialects.readers import CONVERTERS, READERS

    where = str(path)
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RuleFileError([Problem(where, "", f"cannot be read: {error.strerror}")]) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RuleFileError([Problem(where, "", f"is no YAML: {error}")]) from None
    try:
        found = _model().model_validate(raw)
    except ValidationError as error:
        problems = [Problem(where, ".".join(str(x) for x in e["loc"]), e["msg"]) for e in error.errors()]
        raise RuleFileError(problems) from None
    problems = []
    for mark in found.marks:
        if mark.partition(":")[0] not in ("attr", "scope", "name"):
            problems.append(Problem(where, "marks", f"`{mark}`: expected attr:KEY, scope:PREFIX or name:GLOB"))
    for name, specs in found.fields.items():
        if name not in FIELDS:
            problems.append(Problem(where, f"fields.{name}", f"unknown field; known: {', '.join(FIELDS)}"))
        problems += [Problem(where, f"fields.{name}", p) for s in specs if (p := _wrong(s, CONVERTERS, READERS))]
    if problems:
        raise RuleFileError(problems)
    return Dialect(
        name=found.name,
        source=found.source,
        version=found.version,
        checked=found.checked,
        marks=tuple(found.marks),
        roles=tuple((key, values) for entry in found.roles for key, values in entry.items()),
        fields={k: tuple(v) for k, v in found.fields.items()},
        tool_spans=found.tool_spans,
        flattened=found.flattened,
        notes=found.notes,
    )


def _wrong(spec: str, converters: Mapping[str, object], readers: Mapping[str, object]) -> str | None:
    if spec.startswith("@"):
        return None if spec[1:] in readers else f"unknown reader `{spec}`; known: {', '.join(sorted(readers))}"
    _, _, name = spec.partition("|")
    return (
        None
        if not name or name in converters
        else f"unknown converter `{name}`; known: {', '.join(sorted(converters))}"
    )

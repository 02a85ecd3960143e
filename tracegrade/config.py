"""The config of a project: `tracegrade.toml`, or `[tool.tracegrade]` in `pyproject.toml`. Flags win over it.

Comes in: a folder to start from, or a file. Goes out: a `Config`. An unknown key is an error with its line, never
ignored: a misspelt setting that does nothing is a false green.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError

from tracegrade.errors import Problem, RuleFileError, UsageError, did_you_mean
from tracegrade.model.gate import GateConfig

T = TypeVar("T")

CONFIG_NAME = "tracegrade.toml"


class Limits(BaseModel):
    """Limits of the readers, by the names of `tracegrade.ingest.ReadOptions`; what is not set keeps its default."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_unpacked_bytes: PositiveInt | None = Field(default=None, description="Most bytes one input may unpack to.")
    max_ratio: PositiveInt | None = Field(default=None, description="Most unpacked bytes per packed byte.")
    ratio_floor_bytes: PositiveInt | None = Field(default=None, description="Below this no ratio is judged.")
    max_depth: PositiveInt | None = Field(default=None, description="Deepest nesting of one attribute value.")
    max_value_bytes: PositiveInt | None = Field(default=None, description="Longest text; a longer one is cut.")
    max_line_bytes: PositiveInt | None = Field(default=None, description="Longest line or message held at once.")
    max_spans_per_trace: PositiveInt | None = Field(default=None, description="Spans kept of one trace.")


class Config(BaseModel):
    """What a project sets once. Every field is the default of the option with the same name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    invariants: tuple[str, ...] | None = Field(
        default=None, description="Rule files (with a slash, or ending in .yaml or .yml) and names of bundled packs."
    )
    tasks: str | None = Field(default=None, description="File of tasks.")
    trials: str | None = Field(default=None, description="File of trials.")
    task_key: str | None = Field(default=None, description="Span or resource attribute that holds the task id.")
    trial_key: str | None = Field(default=None, description="Span or resource attribute that holds the trial.")
    group_by: str | None = Field(default=None, description="What makes spans one trajectory.")
    result_errors: str | None = Field(default=None, description="`off`, `strict` or an expression over a result.")
    dialects: tuple[str, ...] = Field(default=(), description="Files of your own dialects.")
    limits: Limits = Field(default=Limits(), description="Limits of the readers.")
    price_file: str | None = Field(default=None, description="Prices of models, where the bundled table does not do.")
    strict: bool = Field(default=False, description="Stop at the first span that cannot be read.")
    fail_on: Literal["fail", "unknown", "never"] = Field(default="fail", description="Mildest verdict that exits 1.")
    min_coverage: float = Field(default=0.9, ge=0, le=1, description="Least share of decided pairs that is not exit 3.")
    allow_empty: bool = Field(default=False, description="Exit 0, not 3, when no rule applied.")
    gate: GateConfig = Field(default=GateConfig(), description="Settings of `gate`, and its tiers.")


def config_schema() -> dict[str, Any]:
    """The JSON Schema of `tracegrade.toml`."""
    schema = Config.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:tracegrade:config:1", **schema}


PATH_FIELDS = ("tasks", "trials", "price_file")
"""Fields that are files, relative to the config's folder."""


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """A config and the file it came from; paths in it are already relative to where the program runs."""

    config: Config
    path: Path | None


def find_config(start: Path) -> Path | None:
    """The nearest config, walking up from a folder.

    Args:
        start: the folder to begin in.

    Returns:
        `tracegrade.toml`, or a `pyproject.toml` that has `[tool.tracegrade]`; None where no folder has either.
    """
    for folder in (start.resolve(), *start.resolve().parents):
        if (folder / CONFIG_NAME).is_file():
            return folder / CONFIG_NAME
        project = folder / "pyproject.toml"
        if project.is_file() and "tracegrade" in _parse(project).get("tool", {}):
            return project
    return None


def load_config(path: Path | None = None, *, start: Path | None = None) -> LoadedConfig:
    """The config in force.

    Args:
        path: the file named with `--config`; None looks for one.
        start: the folder to begin in; the current one if None.

    Raises:
        UsageError: the named file is not there or cannot be read.
        RuleFileError: it is not TOML, or a key or value is wrong; all problems at once.
    """
    found = path if path is not None else find_config(start or Path.cwd())
    if found is None:
        return LoadedConfig(Config(), None)
    table = _parse(found)
    if found.name == "pyproject.toml":
        table = table.get("tool", {}).get("tracegrade", {})
    try:
        config = Config.model_validate(table)
    except ValidationError as error:
        raise RuleFileError(_problems(found, error)) from error
    return LoadedConfig(_relative_to(config, found.parent), found)


def pick(flag: T | None, setting: T) -> T:
    """The value in force: a flag that was given wins over the config's setting."""
    return setting if flag is None else flag


def _parse(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        line = re.search(r"at line (\d+)", str(error))
        where = f"{path}:{line.group(1)}" if line else str(path)
        raise RuleFileError([Problem(where, "", f"not valid TOML: {error}")]) from error


def _problems(path: Path, error: ValidationError) -> list[Problem]:
    lines = path.read_text(encoding="utf-8").splitlines()
    problems = []
    for item in error.errors():
        field = ".".join(map(str, item["loc"]))
        key = next(str(part) for part in reversed(item["loc"]) if isinstance(part, str))
        if item["type"] == "extra_forbidden":
            parts: dict[str, type[BaseModel]] = {"limits": Limits, "gate": GateConfig}
            model = parts.get(str(item["loc"][0]), Config)
            message = f"unknown key.{did_you_mean(key, model.model_fields)}"
        else:
            message = f"{item['msg']}, got {item['input']!r}"
        problems.append(Problem(f"{path}:{_line_of(lines, key)}", field, message))
    return problems


def _line_of(lines: list[str], key: str) -> int:
    pattern = re.compile(rf"""\s*(\[.*\b)?["']?{re.escape(key)}["']?\s*[=\].]""")
    return next((number for number, line in enumerate(lines, 1) if pattern.match(line)), 1)


def _relative_to(config: Config, folder: Path) -> Config:
    changes: dict[str, Any] = {
        name: str(folder / value) for name in PATH_FIELDS if (value := getattr(config, name)) is not None
    }
    changes["dialects"] = tuple(str(folder / name) for name in config.dialects)
    if config.invariants is not None:
        changes["invariants"] = tuple(
            str(folder / name) if "/" in name or name.endswith((".yaml", ".yml")) else name
            for name in config.invariants
        )
    return config.model_copy(update=changes)

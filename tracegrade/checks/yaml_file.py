"""YAML as people write it, with the line of everything: safe, without YAML 1.1's traps, duplicate keys refused.

`yes`, `on`, `12:30` and `2026-01-01` stay text, as in YAML 1.2 and in JSON; only `true`, `false`, `null` and numbers
are anything else. Keys may be lists, for paths whose parts hold dots.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeAlias

import yaml

from tracegrade.errors import Problem, RuleFileError

MAX_BYTES = 4 * 1024 * 1024
MAX_NODES = 200_000
"""Values in one file, aliases counted each time: a few lines of aliases could otherwise stand for billions."""

Location: TypeAlias = tuple[str | int, ...]


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with the core schema of YAML 1.2."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _regex, _first in (
    ("tag:yaml.org,2002:bool", r"\A(?:true|True|TRUE|false|False|FALSE)\Z", "tTfF"),
    ("tag:yaml.org,2002:null", r"\A(?:~|null|Null|NULL|)\Z", ["~", "n", "N", ""]),
    ("tag:yaml.org,2002:int", r"\A[-+]?[0-9]+\Z", "-+0123456789"),
    ("tag:yaml.org,2002:float", r"\A[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z", "-+.0123456789"),
    ("tag:yaml.org,2002:merge", r"\A<<\Z", "<"),
):
    _Loader.add_implicit_resolver(_tag, re.compile(_regex), list(_first))


class YamlFile:
    """A parsed file and where everything in it stands.

    Attributes:
        name: the file as the person called it.
        data: its content.
        problems: duplicate keys and the like, found while reading.
    """

    def __init__(self, text: str, name: str) -> None:
        """Parse a text.

        Raises:
            RuleFileError: it is no YAML, too large, or holds more than one document.
        """
        self.name = name
        self.problems: list[Problem] = []
        self._lines: dict[Location, int] = {}
        self._nodes = 0
        if len(text) > MAX_BYTES:
            raise RuleFileError([Problem(name, "", f"larger than {MAX_BYTES} bytes")])
        try:
            loader = _Loader(text)
            node = loader.get_single_node()
            self.data: Any = None if node is None else self._value(loader, node, (), ())
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            where = f"{name}:{mark.line + 1}" if mark else name
            raise RuleFileError([Problem(where, "", f"not valid YAML: {error.problem or error.context}")]) from error
        except yaml.YAMLError as error:
            raise RuleFileError([Problem(name, "", f"not valid YAML: {error}")]) from error
        except RecursionError as error:
            raise RuleFileError([Problem(name, "", "nested too deeply")]) from error

    def line(self, location: Sequence[str | int]) -> int:
        """The line of a place in the file, of the nearest known place around it otherwise."""
        place = tuple(location)
        while place and place not in self._lines:
            place = place[:-1]
        return self._lines.get(place, 1)

    def where(self, location: Sequence[str | int]) -> str:
        """`file:line` of a place."""
        return f"{self.name}:{self.line(location)}"

    def _value(self, loader: _Loader, node: yaml.Node, place: Location, inside: tuple[int, ...]) -> Any:
        self._nodes += 1
        line = node.start_mark.line + 1
        self._lines.setdefault(place, line)
        if self._nodes > MAX_NODES:
            raise RuleFileError([Problem(f"{self.name}:{line}", "", f"more than {MAX_NODES} values")])
        if id(node) in inside:
            raise RuleFileError([Problem(f"{self.name}:{line}", "", "an alias that holds itself")])
        inside = (*inside, id(node))
        if isinstance(node, yaml.SequenceNode):
            return [self._value(loader, n, (*place, i), inside) for i, n in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode):
            return self._mapping(loader, node, place, inside)
        return self._scalar(loader, node, line)

    def _mapping(
        self, loader: _Loader, node: yaml.MappingNode, place: Location, inside: tuple[int, ...]
    ) -> dict[Any, Any]:
        merged: dict[Any, Any] = {}
        own: dict[Any, Any] = {}
        first_line: dict[Any, int] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if key_node.tag == "tag:yaml.org,2002:merge":
                parts = value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
                for part in parts:
                    content = self._value(loader, part, (*place, "<<"), inside)
                    if isinstance(content, dict):
                        merged = {**content, **merged}
                continue
            key = self._key(loader, key_node, place, inside)
            shown = ".".join(str(k) for k in key) if isinstance(key, tuple) else str(key)
            if key in own:
                message = f"the key `{shown}` is there twice, first on line {first_line[key]}"
                self.problems.append(Problem(f"{self.name}:{line}", ".".join(map(str, place)), message))
            first_line.setdefault(key, line)
            self._lines.setdefault((*place, shown), line)
            own[key] = self._value(loader, value_node, (*place, shown), inside)
        return {**merged, **own}

    def _key(self, loader: _Loader, node: yaml.Node, place: Location, inside: tuple[int, ...]) -> Any:
        key = self._value(loader, node, (*place, "?"), inside)
        if isinstance(key, list):
            return tuple(str(k) for k in key)
        return str(node.value) if isinstance(node, yaml.ScalarNode) else str(key)

    def _scalar(self, loader: _Loader, node: yaml.Node, line: int) -> Any:
        tag = node.tag.removeprefix("tag:yaml.org,2002:")
        text = str(node.value)
        if tag == "null":
            return None
        if tag == "bool":
            return text.lower() == "true"
        try:
            if tag == "int":
                return int(text)
            if tag == "float":
                return float(text)
        except ValueError as error:
            raise RuleFileError([Problem(f"{self.name}:{line}", "", f"not a number: {text[:40]}")]) from error
        if tag != "str":
            raise RuleFileError([Problem(f"{self.name}:{line}", "", f"the tag `{node.tag}` is not supported")])
        return text

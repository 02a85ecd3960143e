"""The environment a user supplies to replay calls in: tools over a state.

A factory takes the initial state and returns either a mapping of tool name to function, whose functions change the
state in place, or an object with such a mapping as `tools` and the state as `state`. `definitions` on the object may
hold the tools' schemas.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from tracegrade.errors import UsageError
from tracegrade.model.values import JSON

Tool = Callable[..., Any]
Factory = Callable[[Any], Any]
MISSING_TOOL: Final = "the environment has no tool `{}`"


class Environment:
    """One environment in one state.

    Args:
        made: what a factory returned.
        state: the state that the factory was given; the final one unless the object has its own.

    Raises:
        UsageError: it is neither a mapping of functions nor an object with one.
    """

    def __init__(self, made: Any, state: JSON) -> None:
        tools = made if isinstance(made, Mapping) else getattr(made, "tools", None)
        if not isinstance(tools, Mapping) or not all(callable(t) for t in tools.values()):
            raise UsageError(
                "the environment's factory must return a mapping of tool name to function, or an object with such a "
                f"mapping as `tools`; it returned {type(made).__name__}"
            )
        self.tools: Mapping[str, Tool] = tools
        self._made = made
        self._state = state

    @property
    def state(self) -> JSON:
        """The state as it is now."""
        own = None if isinstance(self._made, Mapping) else getattr(self._made, "state", None)
        return self._state if own is None else own() if callable(own) else own

    def call(self, tool: str, arguments: JSON) -> JSON:
        """Call a tool; its result as JSON, a text that holds an object or array parsed.

        Raises:
            KeyError: there is no such tool.
            Exception: whatever the tool raises.
        """
        function = self.tools[tool]
        result = function(**arguments) if isinstance(arguments, dict) else function(arguments)
        return as_json(result)


def make_environment(factory: Factory, state: bytes) -> Environment:
    """An environment over a state of its own, so that repeats start from the same.

    Args:
        factory: the user's.
        state: the state as JSON text; reading it makes the copy.

    Raises:
        UsageError: the factory returned something else.
    """
    own = json.loads(state)
    return Environment(factory(own), own)


def as_json(value: Any) -> JSON:
    """A result as the trajectory holds it: objects and arrays as JSON, also where a text holds one.

    >>> as_json('{"a": 1}'), as_json("ok"), as_json((1, 2))
    ({'a': 1}, 'ok', [1, 2])
    """
    if isinstance(value, str):
        if value.lstrip()[:1] in ("{", "["):
            try:
                return json.loads(value)
            except (ValueError, RecursionError):
                return value
        return value
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if hasattr(value, "model_dump"):
        value = value.model_dump(mode="json")
    try:
        return orjson.loads(orjson.dumps(value))
    except (TypeError, orjson.JSONEncodeError):
        pass
    try:  # integers beyond 64 bits, and whatever is no JSON as text
        return json.loads(json.dumps(value, default=str))
    except (TypeError, ValueError):
        return str(value)


def load_object(spec: str, option: str) -> Any:
    """What `module:name` names, imported from the working folder too.

    Args:
        spec: dotted module and attribute.
        option: the option it was given with, for the message.

    Raises:
        UsageError: it is malformed, or cannot be imported.
    """
    import os
    import sys

    module, _, name = spec.partition(":")
    if not module or not name:
        raise UsageError(f"{option} {spec}: expected module:name, such as `shop.replay:environment`")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except ImportError as error:
        raise UsageError(f"{option} {spec}: cannot be imported: {error}") from None
    except AttributeError:
        raise UsageError(f"{option} {spec}: `{module}` has no `{name}`") from None
    return found

"""Patches over a state: RFC 6902, with the path as a JSON Pointer or as a list.

The state is never changed: containers along a path are copied, everything else is shared. Two states made from one
initial state therefore share every part that no patch touched, and a comparison skips what is the same object, so
that grading many trials over one large initial state costs only what they touched.
"""

from __future__ import annotations

from collections.abc import Iterable

from tracegrade.model.task import Op
from tracegrade.model.values import JSON, MISSING, json_equal
from tracegrade.outcome.paths import Path, parse_path, show


class PatchError(Exception):
    """An operation that does not fit the state it is applied to."""


def child(node: JSON, part: str) -> JSON:
    """What stands under one part of a path, or `MISSING`."""
    if isinstance(node, dict):
        return node.get(part, MISSING)
    if isinstance(node, list) and part.isdecimal() and (part == "0" or part[0] != "0") and int(part) < len(node):
        return node[int(part)]
    return MISSING


def get(state: JSON, path: Path) -> JSON:
    """The value at a path, or `MISSING`.

    >>> get({"orders": {"#W1": [7]}}, ("orders", "#W1", "0"))
    7
    """
    node = state
    for part in path:
        node = child(node, part)
        if node is MISSING:
            return MISSING
    return node


class _Editor:
    """One state under edit; `owned` are the containers made here, which may be changed in place."""

    def __init__(self, state: JSON) -> None:
        self.root = state
        self._owned: dict[int, JSON] = {}

    def _own(self, node: JSON) -> JSON:
        if id(node) in self._owned:
            return node
        copy = dict(node) if isinstance(node, dict) else list(node)
        self._owned[id(copy)] = copy
        return copy

    def _parent(self, path: Path) -> JSON:
        """The container above the last part, with every container down to it owned."""
        if not isinstance(self.root, (dict, list)):
            raise PatchError(f"{show(path)}: the state is no object or list")
        node = self.root = self._own(self.root)
        for depth, part in enumerate(path[:-1]):
            below = child(node, part)
            if not isinstance(below, (dict, list)):
                raise PatchError(f"{show(path)}: there is no object or list at {show(path[: depth + 1])}")
            below = self._own(below)
            node[part if isinstance(node, dict) else int(part)] = below
            node = below
        return node

    def add(self, path: Path, value: JSON) -> None:
        if not path:
            self.root = value
            return
        node, last = self._parent(path), path[-1]
        if isinstance(node, dict):
            node[last] = value
        elif last == "-":
            node.append(value)
        elif last.isdecimal() and int(last) <= len(node):
            node.insert(int(last), value)
        else:
            raise PatchError(f"{show(path)}: the list has {len(node)} elements")

    def remove(self, path: Path) -> JSON:
        value = self._present(path)
        if not path:
            raise PatchError("the whole state cannot be removed")
        node, last = self._parent(path), path[-1]
        del node[last if isinstance(node, dict) else int(last)]
        return value

    def replace(self, path: Path, value: JSON) -> None:
        self._present(path)
        if not path:
            self.root = value
            return
        node, last = self._parent(path), path[-1]
        node[last if isinstance(node, dict) else int(last)] = value

    def _present(self, path: Path) -> JSON:
        value = get(self.root, path)
        if value is MISSING:
            raise PatchError(f"{show(path)}: nothing stands there")
        return value

    def run(self, op: Op) -> None:
        path = parse_path(op.path)
        source = parse_path(op.source) if op.source is not None else ()
        if op.op == "add":
            self.add(path, op.value)
        elif op.op == "remove":
            self.remove(path)
        elif op.op == "replace":
            self.replace(path, op.value)
        elif op.op == "copy":
            self.add(path, self._present(source))
        elif op.op == "move":
            if path[: len(source)] == source and path != source:
                raise PatchError(f"{show(source)} cannot be moved into itself")
            self.add(path, self.remove(source))
        elif not json_equal(self._present(path), op.value):
            raise PatchError(f"{show(path)}: the tested value is another")


def apply(state: JSON, patch: Iterable[Op]) -> JSON:
    """The state after a patch; the given state is unchanged and shared where nothing was touched.

    Args:
        state: any JSON.
        patch: operations, run in order (RFC 6902 §4).

    Raises:
        PatchError: an operation names a place that is not there, or a `test` does not hold.

    >>> apply({"a": {"b": 1}}, [Op(op="replace", path=["a", "b"], value=2)])
    {'a': {'b': 2}}
    """
    editor = _Editor(state)
    for number, op in enumerate(patch):
        try:
            editor.run(op)
        except PatchError as error:
            raise PatchError(f"operation {number} ({op.op}): {error}") from None
    return editor.root

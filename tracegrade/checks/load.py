"""Reads packs of invariants and makes them ready to run.

A pack is named by the path of a file or by the name of a bundled one. All problems of all files are gathered and raised
together, each with file, line and field.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from tracegrade import resources
from tracegrade.checks.base import Kind, find_kind, kind_names
from tracegrade.checks.pattern import Action
from tracegrade.checks.problems import problems_of
from tracegrade.checks.within import Distance
from tracegrade.checks.yaml_file import YamlFile
from tracegrade.errors import Problem, RuleFileError, UsageError, did_you_mean
from tracegrade.model.invariant import (
    ACTION_NAME,
    Example,
    Invariant,
    PackFile,
    Params,
    Pattern,
    RuleContext,
    Waiver,
)
from tracegrade.model.values import JSON, canonical
from tracegrade.model.verdict import Level

_ENDINGS = (".yaml", ".yml", ".json")
_COMMON = tuple(Invariant.model_fields)


@dataclass(frozen=True, slots=True)
class CompiledInvariant:
    """A rule ready to run.

    Attributes:
        head: the fields that every rule has.
        kind: its kind.
        params: the fields of its kind.
        pack: name of the pack that it comes from.
        where: `file:line`.
        sha256: hash of what the rule means; it changes when the meaning does, not with comments or names.
        waivers: the waivers that name it.
    """

    head: Invariant
    kind: Kind[Any]
    params: Params
    pack: str
    where: str
    sha256: str
    waivers: tuple[Waiver, ...] = ()

    @property
    def id(self) -> str:
        """The rule's id."""
        return self.head.id

    @property
    def level(self) -> Level:
        """The rule's level."""
        return self.head.level

    @property
    def tags(self) -> tuple[str, ...]:
        """The rule's tags."""
        return self.head.tags

    @property
    def measures_only(self) -> bool:
        """Whether the rule is a measurement that decides nothing: a `progress` without `at_least`."""
        return self.kind.name == "progress" and getattr(self.params, "at_least", None) is None

    def explain(self) -> str:
        """What the rule demands, in words."""
        return self.kind.explain(self.params)

    def actions(self) -> list[Action]:
        """Every action that the rule names."""
        return actions_in(self.params)

    def tools(self) -> list[tuple[str, ...]]:
        """The lists of tool names in its patterns."""
        return [names for action in self.actions() for names in _tool_lists(action.pattern)]


@dataclass(frozen=True, slots=True)
class Pack:
    """A pack ready to run, with what it inherits.

    Attributes:
        name: its own name.
        file: the file as the person called it.
        invariants: inherited rules first.
        examples: its own examples, with the line of each.
        own: ids of the rules that stand in this file itself.
    """

    name: str
    file: str
    description: str
    invariants: tuple[CompiledInvariant, ...]
    examples: tuple[tuple[Example, str], ...]
    waivers: tuple[Waiver, ...]
    own: tuple[str, ...]


@dataclass(slots=True)
class _Raw:
    """A file that was read and validated in its outline."""

    pack: PackFile
    file: YamlFile
    folder: Path | None
    bases: list[_Raw] = field(default_factory=list)

    def lineage(self) -> list[_Raw]:
        """This file and those it extends, the furthest first, each once."""
        found: list[_Raw] = []
        for base in self.bases:
            found += [raw for raw in base.lineage() if raw not in found]
        return [*found, self]


def bundled_packs() -> list[str]:
    """The names of the packs that ship with tracegrade."""
    return resources.names("invariants", ".yaml")


def load_pack(reference: str) -> Pack:
    """The pack in a file, or the bundled pack of that name.

    Raises:
        RuleFileError: the file, or one that it extends, cannot be read or is malformed; holds every problem.
        UsageError: there is neither such a file nor such a pack.
    """
    problems: list[Problem] = []
    raw = _read(reference, problems)
    pack = _compile(raw, problems) if raw is not None else None
    if problems or pack is None:
        raise RuleFileError(problems)
    return pack


def parse_pack(text: str, name: str = "<text>", folder: Path | None = None) -> Pack:
    """The pack written in a text.

    Args:
        text: YAML.
        name: what to call it in messages.
        folder: where files that it names are looked up; none are when it is None.

    Raises:
        RuleFileError: it is malformed.
    """
    problems: list[Problem] = []
    raw = _outline(text, name, folder, problems)
    if raw is not None:
        _extend(raw, raw.folder, [name], problems)
    pack = _compile(raw, problems) if raw is not None else None
    if problems or pack is None:
        raise RuleFileError(problems)
    return pack


def load_packs(references: Iterable[str]) -> list[Pack]:
    """Several packs together; a rule id may be theirs jointly only where the rules are the same.

    Raises:
        RuleFileError: any of them is malformed, or two differ on one id.
        UsageError: there is no such file or pack.
    """
    packs: list[Pack] = []
    problems: list[Problem] = []
    for reference in dict.fromkeys(references):
        try:
            packs.append(load_pack(reference))
        except RuleFileError as error:
            problems += [p for p in error.problems if p not in problems]
    known: dict[str, CompiledInvariant] = {}
    for pack in packs:
        for invariant in pack.invariants:
            other = known.setdefault(invariant.id, invariant)
            if other.sha256 != invariant.sha256:
                message = f"the rule `{invariant.id}` is also at {other.where}, and differs; ids are unique"
                problems.append(Problem(invariant.where, "invariants", message))
    if problems:
        raise RuleFileError(problems)
    return packs


def rules_of(packs: Sequence[Pack]) -> list[CompiledInvariant]:
    """The rules of some packs, each id once, with the waivers of all packs."""
    waivers = list(dict.fromkeys(w for pack in packs for w in pack.waivers))
    rules: dict[str, CompiledInvariant] = {}
    for pack in packs:
        for rule in pack.invariants:
            rules.setdefault(rule.id, replace(rule, waivers=tuple(w for w in waivers if w.rule == rule.id)))
    return list(rules.values())


def _read(reference: str, problems: list[Problem]) -> _Raw | None:
    if reference in bundled_packs() and not Path(reference).is_file():
        text = resources.read("invariants", f"{reference}.yaml") or ""
        raw = _outline(text, f"invariants/{reference}.yaml", None, problems)
        folder = None
    else:
        path = Path(reference)
        if not path.exists():
            known = [*bundled_packs(), *(str(p) for p in _neighbours(path))]
            raise UsageError(
                f"{reference}: no such rule file, and no bundled pack has this name.{did_you_mean(reference, known)} "
                f"Bundled: {', '.join(bundled_packs()) or 'none'}."
            )
        raw = _open(path, problems)
        folder = path.resolve().parent
    if raw is not None:
        _extend(raw, folder, [_identity(raw)], problems)
    return raw


def _neighbours(path: Path) -> list[Path]:
    try:
        return [p for p in path.parent.iterdir() if p.suffix in _ENDINGS][:200]
    except OSError:
        return []


def _open(path: Path, problems: list[Problem], shown: str | None = None) -> _Raw | None:
    name = shown or str(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        problems.append(Problem(name, "", "not UTF-8 text; expected a YAML file of invariants"))
        return None
    except OSError as error:
        problems.append(Problem(name, "", f"cannot be read: {error.strerror or error}"))
        return None
    return _outline(text, name, path.resolve().parent, problems)


def _outline(text: str, name: str, folder: Path | None, problems: list[Problem]) -> _Raw | None:
    try:
        file = YamlFile(text, name)
    except RuleFileError as error:
        problems += error.problems
        return None
    problems += file.problems
    if not isinstance(file.data, dict):
        found = "nothing" if file.data is None else f"a {type(file.data).__name__}"
        problems.append(Problem(name, "", f"expected a mapping with `version`, `pack` and `invariants`, found {found}"))
        return None
    try:
        pack = PackFile.model_validate(file.data)
    except ValidationError as error:
        problems += problems_of(error, file, (), PackFile)
        # What can be read is looked at all the same, so that every problem of the file is told at once.
        pack = _salvage(file.data)
    return _Raw(pack, file, folder)


def _salvage(data: dict[str, Any]) -> PackFile:
    kept: dict[str, Any] = {}
    for name in ("extends", "without", "tools", "actions", "invariants"):
        try:
            PackFile.model_validate(
                {
                    "version": 1,
                    "pack": "x",
                    name: data.get(name, PackFile.model_fields[name].get_default(call_default_factory=True)),
                }
            )
        except ValidationError:
            continue
        if name in data:
            kept[name] = data[name]
    return PackFile.model_validate({"version": 1, "pack": "malformed", **kept})


def _identity(raw: _Raw) -> str:
    if raw.folder is None:
        return raw.file.name
    return str(raw.folder / Path(raw.file.name).name)


def _extend(raw: _Raw, root: Path | None, stack: list[str], problems: list[Problem]) -> None:
    """Read what a file extends: bundled packs, or files that do not lie outside the first file's folder."""
    for i, reference in enumerate(raw.pack.extends):
        where = raw.file.where(("extends", i))
        base = _base(raw, reference, root, where, problems)
        if base is None:
            continue
        identity = _identity(base)
        if identity in stack:
            circle = " -> ".join([*(Path(s).name for s in stack[stack.index(identity) :]), Path(identity).name])
            problems.append(Problem(where, "extends", f"packs extend each other in a circle: {circle}"))
            continue
        raw.bases.append(base)
        _extend(base, root if base.folder is not None else None, [*stack, identity], problems)


def _base(raw: _Raw, reference: str, root: Path | None, where: str, problems: list[Problem]) -> _Raw | None:
    is_file = reference.endswith(_ENDINGS) or "/" in reference or "\\" in reference
    if not is_file:
        text = resources.read("invariants", f"{reference}.yaml")
        if text is not None:
            return _outline(text, f"invariants/{reference}.yaml", None, problems)
        hint = did_you_mean(reference, bundled_packs())
        message = f"no bundled pack is called `{reference}`.{hint} A file is named by its path, such as `./base.yaml`."
        problems.append(Problem(where, "extends", message))
        return None
    if raw.folder is None or root is None:
        problems.append(Problem(where, "extends", f"`{reference}`: only bundled packs can be extended from here"))
        return None
    path = (raw.folder / reference).resolve()
    if Path(reference).is_absolute() or not path.is_relative_to(root):
        message = f"`{reference}` lies outside the folder of the rule file; expected a path below it"
        problems.append(Problem(where, "extends", message))
        return None
    return _open(path, problems, shown=str(Path(raw.file.name).parent / reference))


def _compile(raw: _Raw, problems: list[Problem]) -> Pack:
    lineage = raw.lineage()
    actions: dict[str, Any] = {}
    tools: dict[str, tuple[str, ...]] = {}
    for one in lineage:
        actions.update(one.pack.actions)
        tools.update(one.pack.tools)
    seen_tools: set[str] = set()
    rules: dict[str, CompiledInvariant] = {}
    for one in lineage:
        context = RuleContext(actions, tools, one.folder)
        _check_actions(one, context, problems)
        _drop(one, rules, problems)
        own: set[str] = set()
        for i, written in enumerate(one.pack.invariants):
            rule = _rule(one, i, written, context, problems)
            if rule is None:
                continue
            if rule.id in own:
                message = f"the id `{rule.id}` is used twice in this file"
                problems.append(Problem(rule.where, f"invariants.{i}.id", message))
            own.add(rule.id)
            rules[rule.id] = rule
        seen_tools |= context.tools_seen
    if not problems:
        _check_references(raw, rules, seen_tools, problems)
    examples = tuple((e, raw.file.where(("examples", i))) for i, e in enumerate(raw.pack.examples))
    waivers = tuple(w for one in lineage for w in one.pack.waivers)
    return Pack(
        name=raw.pack.pack,
        file=raw.file.name,
        description=raw.pack.description,
        invariants=tuple(replace(r, waivers=tuple(w for w in waivers if w.rule == r.id)) for r in rules.values()),
        examples=examples,
        waivers=waivers,
        own=tuple(str(r.get("id")) for r in raw.pack.invariants),
    )


def _check_actions(raw: _Raw, context: RuleContext, problems: list[Problem]) -> None:
    for name, written in raw.pack.actions.items():
        place = ("actions", name)
        if not ACTION_NAME.match(name):
            message = f"`{name}` is no name for an action: letters, digits, `_` and `-`"
            problems.append(Problem(raw.file.where(place), f"actions.{name}", message))
        try:
            if isinstance(written, str):
                context.action(name)
            else:
                Pattern.model_validate(written, context=context)
        except ValidationError as error:
            problems += problems_of(error, raw.file, place, Pattern)
        except ValueError as error:
            problems.append(Problem(raw.file.where(place), f"actions.{name}", str(error)))


def _drop(raw: _Raw, rules: dict[str, CompiledInvariant], problems: list[Problem]) -> None:
    for i, name in enumerate(raw.pack.without):
        if rules.pop(name, None) is None:
            message = f"no inherited rule is called `{name}`.{did_you_mean(name, rules)}"
            problems.append(Problem(raw.file.where(("without", i)), "without", message))


def _rule(
    raw: _Raw, i: int, written: dict[str, Any], context: RuleContext, problems: list[Problem]
) -> CompiledInvariant | None:
    place: tuple[str | int, ...] = ("invariants", i)
    own = {k: v for k, v in written.items() if k not in _COMMON}
    before = len(problems)
    head: Invariant | None = None
    try:
        head = Invariant.model_validate({k: v for k, v in written.items() if k in _COMMON})
    except ValidationError as error:
        problems += problems_of(error, raw.file, place, Invariant)
    name = written.get("kind")
    if not isinstance(name, str):
        return None
    try:
        kind = find_kind(name)
    except UsageError as error:
        known = f" Kinds: {', '.join(kind_names())}." if "called" in str(error) and "Did you" not in str(error) else ""
        problems.append(Problem(raw.file.where((*place, "kind")), f"invariants.{i}.kind", f"{error}{known}"))
        return None
    try:
        params = kind.params.model_validate(own, context=context)
    except ValidationError as error:
        problems += problems_of(error, raw.file, place, kind.params)
        return None
    if head is None or len(problems) > before:
        return None
    meaning = {
        "kind": kind.name,
        "level": head.level,
        "applies_to": plain(head.applies_to),
        "params": plain(params),
    }
    digest = hashlib.sha256(canonical(meaning).encode("utf-8", "surrogatepass")).hexdigest()
    return CompiledInvariant(head, kind, params, raw.pack.pack, raw.file.where(place), digest)


def _check_references(
    raw: _Raw, rules: dict[str, CompiledInvariant], seen_tools: set[str], problems: list[Problem]
) -> None:
    for i, example in enumerate(raw.pack.examples):
        for name in example.for_:
            if name not in rules:
                message = f"no rule is called `{name}`.{did_you_mean(name, rules)}"
                problems.append(Problem(raw.file.where(("examples", i, "for")), f"examples.{i}.for", message))
    for i, waiver in enumerate(raw.pack.waivers):
        if waiver.rule not in rules:
            message = f"no rule is called `{waiver.rule}`.{did_you_mean(waiver.rule, rules)}"
            problems.append(Problem(raw.file.where(("waivers", i)), f"waivers.{i}.rule", message))
    for name in raw.pack.tools:
        if name not in seen_tools:
            message = f"no rule names the tool `{name}`, so nothing is replaced.{did_you_mean(name, seen_tools)}"
            problems.append(Problem(raw.file.where(("tools", name)), f"tools.{name}", message))


def plain(value: Any) -> JSON:
    """A validated value as JSON, with named actions replaced by what they stand for."""
    if isinstance(value, Action):
        return plain(value.pattern)
    if isinstance(value, Distance):
        return value.written
    if isinstance(value, BaseModel):
        named = {n: (f.alias or n) for n, f in type(value).model_fields.items()}
        return {named[n]: plain(getattr(value, n)) for n in sorted(value.model_fields_set)}
    if isinstance(value, dict):
        return {".".join(k) if isinstance(k, tuple) else str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def actions_in(value: Any) -> list[Action]:
    """Every action inside a validated value."""
    if isinstance(value, Action):
        return [value]
    if isinstance(value, BaseModel):
        return [a for n in type(value).model_fields for a in actions_in(getattr(value, n))]
    if isinstance(value, (list, tuple)):
        return [a for v in value for a in actions_in(v)]
    return []


def _tool_lists(pattern: Pattern) -> list[tuple[str, ...]]:
    inner = [*(pattern.any or ()), *(pattern.all or ()), *([pattern.not_] if pattern.not_ else [])]
    own = [pattern.tool] if pattern.tool else []
    return [*own, *(names for p in inner for names in _tool_lists(p))]

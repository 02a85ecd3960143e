"""The `state` grader: final = initial ⊕ goal, everywhere but where the task says otherwise.

Three kinds of difference, each by path, from the one comparison that also makes the verdict:

- `missing_change`: the goal wanted a change here, and nothing changed;
- `wrong_value`: the goal wanted a change here, and something else was done;
- `side_effect`: the goal wanted nothing here, and something was done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tracegrade.model.outcome import Difference, DifferenceKind, GraderResult
from tracegrade.model.task import Patch, StateGrader
from tracegrade.model.values import JSON, MISSING, canonical
from tracegrade.outcome.compare import Options, Place, Undecidable, differing, matched, same, walk
from tracegrade.outcome.keyed import KeysError, keyed
from tracegrade.outcome.patch import PatchError, apply, get
from tracegrade.outcome.paths import Globs, Path, parse_path, show
from tracegrade.outcome.renaming import align, texts

MAX_DIFFERENCES = 1_000
"""Differences that one grader lists; all are counted."""

MAX_DETAIL = 2_000
"""Elements of a list up to which the note on a differing list says which elements differ."""


def differences(
    expected: JSON, final: JSON, initial: JSON, options: Options, *, named: list[Path] | None = None
) -> list[Difference]:
    """Every place where the final state is not the expected one: empty if and only if the state is right.

    Args:
        expected: initial ⊕ goal, or the whole expected state.
        final: the state after the trial.
        initial: the state before it, `MISSING` where not recorded: a side effect cannot then be told from a wrong
            value, and is called one only where something stands that should not.
        options: what is not compared, or compared otherwise.
        named: only these places, and of objects only the members that the expected state has.

    Returns:
        The differences, sorted by path.
    """
    if named is None:
        found = differing(expected, final, options)
    else:
        found = [d for path in sorted(set(named)) for d in _named(expected, final, path, options)]
    return [_difference(place, e, f, initial) for place, e, f in found]


def _named(expected: JSON, final: JSON, path: Path, options: Options) -> list[tuple[Place, JSON, JSON]]:
    place = Place.root(options)
    for part in path:
        place = place.down(part)
    e, f = get(expected, path), get(final, path)
    found = sorted(walk(e, f, place), key=lambda d: d[0].path)
    return [d for d in found if d[1] is not MISSING or d[0].path == path]


def _difference(place: Place, e: JSON, f: JSON, initial: JSON) -> Difference:
    at, note = _detail(place, e, f)
    return Difference(_kind(place, e, f, initial), place.path, e, f, at, note)


def _kind(place: Place, e: JSON, f: JSON, initial: JSON) -> DifferenceKind:
    if initial is MISSING:
        return "missing_change" if f is MISSING else "side_effect" if e is MISSING else "wrong_value"
    before = get(initial, place.path)
    if _same_or_missing(e, before, place):
        return "side_effect"
    return "missing_change" if _same_or_missing(f, before, place) else "wrong_value"


def _same_or_missing(a: JSON, b: JSON, place: Place) -> bool:
    if a is MISSING or b is MISSING:
        return a is b
    return same(a, b, place)


def _detail(place: Place, e: JSON, f: JSON) -> tuple[Path, str]:
    """The first differing place inside two lists, and what is the matter."""
    if not isinstance(e, list) or not isinstance(f, list) or max(len(e), len(f)) > MAX_DETAIL:
        return (), ""
    pairs = matched(e, f, place)
    if len(pairs) == len(e) == len(f):
        return (), "the same elements in another order"
    if place.any_order:
        missing = [i for i in range(len(e)) if i not in pairs]
        extra = sorted(set(range(len(f))) - set(pairs.values()))
        note = f"of {len(e)} expected elements {len(missing)} have no equal, of {len(f)} observed {len(extra)}"
        return (*place.path, str((extra or missing)[0])), note
    for i in range(max(len(e), len(f))):
        if i >= len(e) or i >= len(f):
            return (*place.path, str(i)), f"{len(e)} elements expected, {len(f)} observed"
        inner = min(walk(e[i], f[i], place.down(str(i))), key=lambda d: d[0].path, default=None)
        if inner is not None:
            return inner[0].path, "the first element that differs"
    return (), ""


@dataclass(frozen=True, slots=True)
class Alternative:
    """One state that would be right, and the places its patch names."""

    expected: JSON
    named: list[Path]


def grade_state(
    grader: StateGrader,
    initial: JSON,
    final: JSON,
    *,
    expected: JSON = MISSING,
    known: Callable[[JSON], frozenset[str]] = texts,
    of_tables: bool = False,
) -> GraderResult:
    """Grade a final state.

    Args:
        grader: the goal and the options.
        initial: the state before the trial, or `MISSING`.
        final: the state after it, or `MISSING`.
        expected: the loaded `grader.expected`, where the grader has one.
        known: gives the texts of the initial state; pass one that remembers where many trials share it.
        of_tables: the states are excerpts of tables, so that only keys of new records are generated ids.

    Returns:
        `unknown` where a state was not recorded or the comparison is undecided, `error` where the goal does not fit
        the initial state, else `pass` or `fail` with the differences from the nearest alternative.
    """
    whole = grader.expected is not None
    if final is MISSING:
        return GraderResult("state", "unknown", "the final state was not recorded")
    if initial is MISSING and (not whole or grader.ids):
        return GraderResult("state", "unknown", "the initial state was not recorded")
    if whole and expected is MISSING:
        return GraderResult("state", "unknown", "the expected state could not be had")
    try:
        initial = initial if initial is MISSING else keyed(initial, grader.keys)
        final = keyed(final, grader.keys)
        alternatives = _alternatives(grader, initial, keyed(expected, grader.keys) if whole else MISSING)
    except (PatchError, KeysError) as error:
        return GraderResult("state", "error", f"the goal does not fit the state: {error}")
    try:
        results = [_grade_one(grader, a, initial, final, known, of_tables=of_tables) for a in alternatives]
    except Undecidable as error:
        return GraderResult("state", "unknown", str(error))
    except RecursionError:
        return GraderResult("state", "unknown", "the state is nested too deeply to be compared")
    best = min(range(len(results)), key=lambda i: (_RANK[results[i].verdict], results[i].n_differences))
    result = results[best]
    if grader.any_of is not None:
        result.details["alternative"] = best
    return result


_RANK = {"pass": 0, "unknown": 1, "fail": 2}


def _alternatives(grader: StateGrader, initial: JSON, expected: JSON) -> list[Alternative]:
    if grader.expected is not None:
        return [Alternative(expected, [])]
    patches = grader.any_of if grader.any_of is not None else [grader.goal or []]
    return [Alternative(apply(initial, patch), named_paths(patch)) for patch in patches]


def named_paths(patch: Patch) -> list[Path]:
    """The places that a patch names; an element appended to a list names the list."""
    paths = [parse_path(op.path) for op in patch if op.op != "test"]
    paths += [parse_path(op.source) for op in patch if op.op == "move" and op.source is not None]
    return [path[:-1] if path and path[-1] == "-" else path for path in paths]


def _grade_one(
    grader: StateGrader,
    goal: Alternative,
    initial: JSON,
    final: JSON,
    known: Callable[[JSON], frozenset[str]],
    *,
    of_tables: bool,
) -> GraderResult:
    options = Options.of(grader)
    if grader.ids:
        globs = Globs(grader.ids)
        final = align(goal.expected, final, known(initial), globs, options, records_only=of_tables)
    named = goal.named if grader.scope == "goal" else None
    found = differences(goal.expected, final, initial, options, named=named)
    decided = [d for d in found if not _undecided(d)]
    verdict = "fail" if decided else "unknown" if found else "pass"
    reason = "" if verdict != "unknown" else f"{show(found[0].path)}: the value was redacted"
    shown = (decided or found)[:MAX_DIFFERENCES]
    share = _share(goal, final, options) if grader.expected is None else None
    details: dict[str, JSON] = {"scope": grader.scope, "strict_numbers": options.strict_numbers}
    return GraderResult("state", verdict, reason, tuple(shown), share, len(decided or found), details)  # type: ignore[arg-type]


def _share(goal: Alternative, final: JSON, options: Options) -> float:
    """The share of the fields that the goal names which hold; 1 where it names none."""
    total = failing = 0
    for path in sorted(set(goal.named)):
        total += _fields(get(goal.expected, path))
        failing += len(_named(goal.expected, final, path, options))
    return 1.0 if total == 0 else max(0.0, 1.0 - failing / total)


def _fields(value: JSON) -> int:
    return sum(_fields(v) for v in value.values()) if isinstance(value, dict) and value else 1


def _undecided(found: Difference) -> bool:
    """Whether a value was replaced by a placeholder on one side only: it may have been the other side's."""
    return _holds_pseudonym(found.expected) != _holds_pseudonym(found.observed)


def _holds_pseudonym(value: JSON) -> bool:
    return value is not MISSING and "⟦" in canonical(value)

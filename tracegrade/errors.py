"""Every exception that tracegrade raises on purpose, and the exit code each ends in.

    TracegradeError                  2
    ├── InputError                   2   a file cannot be read or is no trace
    │   └── LimitError               2   a stated limit was met
    ├── RuleFileError                2   an invariants, tasks, trials or config file is malformed
    ├── StoreError                   2   the database cannot be used
    ├── UsageError                   2   options that do not go together, unknown names
    └── NothingToGrade               3   nothing could be concluded

A message says what happened, where (file:line, or trace and span id), what was expected and what to do next.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

EXIT_PASS = 0
EXIT_FAIL = 1
EXIT_USAGE = 2
EXIT_NOTHING = 3


class TracegradeError(Exception):
    """A user's mistake or a limit of the input; printed without a traceback."""

    exit_code = EXIT_USAGE


class InputError(TracegradeError):
    """A file that cannot be read, or that is of no known format."""


class LimitError(InputError):
    """A stated, configurable limit on the input was met."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in a file that a person wrote.

    Attributes:
        where: ``file:line`` (line 1-based), or the file alone.
        field: dotted path of the field, empty for the file itself.
        message: what is wrong and what was expected.
    """

    where: str
    field: str
    message: str

    def __str__(self) -> str:
        field = f"{self.field}: " if self.field else ""
        return f"{self.where}: {field}{self.message}"


class RuleFileError(TracegradeError):
    """A file that a person wrote (rules, tasks, trials, config, dialect) is malformed.

    All problems of the file are gathered and shown together.
    """

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        super().__init__("\n".join(str(p) for p in problems))


class StoreError(TracegradeError):
    """The database cannot be opened, is newer than this version, or is not ours."""


class UsageError(TracegradeError):
    """Options that do not go together, or a name that is not known."""


class NothingToGrade(TracegradeError):
    """Nothing could be concluded: never green."""

    exit_code = EXIT_NOTHING


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the closest known one, or nothing where none is close.

    >>> did_you_mean("isue_refund", ["issue_refund", "get_order"])
    ' Did you mean `issue_refund`?'
    """
    matches = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean `{matches[0]}`?" if matches else ""

"""What `redact` reports: counts by kind and place, and no value."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from tracegrade import __version__
from tracegrade.errors import EXIT_FAIL, EXIT_NOTHING, EXIT_PASS, EXIT_USAGE
from tracegrade.model.report import Record
from tracegrade.model.values import JSON

REDACT_SCHEMA: Final = "tracegrade/redact/1"


class Replaced(Record):
    """How many values of a kind were taken out at a kind of place."""

    place: str
    kind: str
    count: int


class Left(Record):
    """Values that look like secrets and are still there: `where` names up to a few of the places, never a value."""

    place: str
    kind: str
    count: int
    where: tuple[str, ...] = ()


class Changed(Record):
    """A rule or outcome whose verdict on a trajectory is another after redaction."""

    trajectory: str
    what: str
    before: str
    after: str


class RedactReport(Record):
    """Everything that `redact` did.

    Attributes:
        inputs: files that were read.
        outputs: files that were written.
        spans, logs, documents: how many of each were looked at.
        replaced: what was taken out; empty where the run only checked.
        left: what still looks like a secret; None where that was not asked for.
        changed: verdicts that are another after redaction; None where that was not asked for.
        unread: items of the inputs that could not be read, and so stand in no output.
        errors: inputs that could not be read at all.
        warnings: what a person should know.
    """

    schema_: str = Field(default=REDACT_SCHEMA, alias="schema")
    tracegrade_version: str = __version__
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    spans: int = 0
    logs: int = 0
    documents: int = 0
    replaced: tuple[Replaced, ...] = ()
    left: tuple[Left, ...] | None = None
    changed: tuple[Changed, ...] | None = None
    unread: int = 0
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """2 for an unreadable input, 1 for a secret left or a verdict changed, 3 where nothing was looked at."""
        if self.errors:
            return EXIT_USAGE
        if self.left or self.changed:
            return EXIT_FAIL
        return EXIT_PASS if self.spans or self.logs or self.documents else EXIT_NOTHING


def redact_schema() -> dict[str, JSON]:
    """The JSON Schema of `redact --format json`."""
    schema = RedactReport.model_json_schema(mode="serialization")
    identity = f"urn:{REDACT_SCHEMA.replace('/', ':')}"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": identity, **schema}

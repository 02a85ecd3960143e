"""Takes secrets and people's data out of spans, log records and documents."""

from tracegrade.replay.redact.detect import find_secrets
from tracegrade.replay.redact.policy import Policy
from tracegrade.replay.redact.redactor import Redactor, redact_span

__all__ = ["Policy", "Redactor", "find_secrets", "redact_span"]

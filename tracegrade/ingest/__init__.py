"""Files → rows: `expand` finds the inputs, `read_input` reads one of them."""

from tracegrade.ingest.options import ReadOptions
from tracegrade.ingest.reader import read_input
from tracegrade.ingest.sources import expand

__all__ = ["ReadOptions", "expand", "read_input"]

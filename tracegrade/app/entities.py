"""Names of people, places and organisations in texts, found by a spaCy pipeline that the user has installed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from tracegrade.errors import UsageError
from tracegrade.replay.redact.detect import Detector, Hit

KIND_OF_LABEL: Final = {
    **dict.fromkeys(("PERSON", "PER"), "person"),
    **dict.fromkeys(("GPE", "LOC", "FAC"), "place"),
    **dict.fromkeys(("ORG", "NORP"), "organisation"),
}
"""Labels of the OntoNotes and WikiNER schemes → kinds of placeholder; others are left alone."""


@dataclass(frozen=True, slots=True)
class _EntityDetector(Detector):
    """A detector whose pattern is a pipeline."""

    def find(self, text: str) -> Iterable[Hit]:
        """The entities of a text that name somebody or some place."""
        if " " not in text.strip() or len(text) > self.pattern.max_length:
            return  # a word alone (a key, an id, a tool's name) says too little to be judged
        for entity in self.pattern(text).ents:
            kind = KIND_OF_LABEL.get(entity.label_)
            if kind is not None:
                yield Hit(entity.start_char, entity.end_char, kind)


def entity_detectors(name: str) -> tuple[Detector, ...]:
    """The detector of a spaCy pipeline.

    Args:
        name: an installed pipeline such as `en_core_web_sm`, or a folder that holds one.

    Raises:
        UsageError: spaCy is not installed, or has no such pipeline.
    """
    try:
        import spacy  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise UsageError("--entities needs spaCy: pip install 'tracegrade[entities]'") from None
    try:
        pipeline: Any = spacy.load(name)
    except OSError:
        raise UsageError(
            f"--entities {name}: no such spaCy pipeline is installed, and no folder of that name holds one"
        ) from None
    return (_EntityDetector("person", pipeline),)

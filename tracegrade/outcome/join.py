"""Which trial a trajectory belongs to: by trace id, by conversation id, by attributes, or by task and trial keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tracegrade.model.task import Trial
from tracegrade.model.trajectory import Trajectory
from tracegrade.model.values import JSON


def join_keys(trial: Trial) -> list[tuple[str, ...]]:
    """What a trial is joined by, in order of precedence; its (task, trial) where it names nothing else."""
    keys: list[tuple[str, ...]] = []
    if trial.trace_id is not None:
        keys.append(("trace_id", trial.trace_id.strip().lower()))
    if trial.conversation_id is not None:
        keys.append(("conversation_id", trial.conversation_id))
    if trial.match is not None:
        keys.append(("match", *(part for item in sorted(trial.match.items()) for part in (item[0], _text(item[1])))))
    return keys or [("key", *trial.key)]


def _text(value: JSON) -> str:
    """A value of an attribute as ids are compared: 3 and "3" name the same thing."""
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(slots=True)
class Joiner:
    """Finds the trial of each trajectory.

    Build it with `Joiner.of(trials)`; the trials must not share a join key (`tracegrade.outcome.trials` checks that).
    """

    trials: Sequence[Trial]
    by_key: dict[tuple[str, ...], list[int]] = field(default_factory=dict)
    attributes: list[tuple[str, ...]] = field(default_factory=list)

    @staticmethod
    def of(trials: Sequence[Trial]) -> Joiner:
        """An index over trials."""
        joiner = Joiner(trials)
        names: dict[tuple[str, ...], None] = {}
        for index, trial in enumerate(trials):
            for key in join_keys(trial):
                joiner.by_key.setdefault(key, []).append(index)
            if trial.match is not None:
                names.setdefault(tuple(sorted(trial.match)))
        joiner.attributes = list(names)
        return joiner

    def find(self, trajectory: Trajectory) -> list[int]:
        """The indices of the trials that a trajectory belongs to: none, one, or several where that is not clear."""
        for keys in self._keys_of(trajectory):
            found = sorted({i for key in keys for i in self.by_key.get(key, ())})
            if len(found) > 1 and trajectory.attempt is not None:
                found = [i for i in found if self.trials[i].attempt == trajectory.attempt] or found
            if found:
                return found
        return []

    def _keys_of(self, trajectory: Trajectory) -> Iterable[list[tuple[str, ...]]]:
        yield [("trace_id", trace_id) for trace_id in trajectory.trace_ids]
        if trajectory.conversation_id is not None:
            yield [("conversation_id", trajectory.conversation_id)]
        yield [self._match_key(names, trajectory) for names in self.attributes]
        if trajectory.task_id is not None:
            yield [("key", str(trajectory.task_id), str(trajectory.trial if trajectory.trial is not None else 0))]

    @staticmethod
    def _match_key(names: Sequence[str], trajectory: Trajectory) -> tuple[str, ...]:
        values = [(n, _text(trajectory.attributes[n])) for n in names if n in trajectory.attributes]
        return ("match", *(part for pair in values for part in pair))

"""A bounded run of the fuzzer; `python -m tests.hostile.fuzz --inputs N` runs it longer."""

from __future__ import annotations

import pytest

from tests.hostile.fuzz import fuzz, mutated, seeds


@pytest.mark.parametrize("seed", [1, 2])
def test_mutated_files_never_fail_in_a_way_that_was_not_meant(seed: int) -> None:
    ends, failures = fuzz(400, seed)
    assert not failures, "\n".join(
        f"input {n} of seed {seed}, from {name}:\n{trace}" for n, name, trace in failures[:3]
    )
    assert sum(ends.values()) == 400
    assert len(ends) > 6  # the mutations leave something of every format to read


def test_an_input_is_always_the_same_bytes() -> None:
    found = seeds()
    assert [mutated(n, 3, found) for n in range(20)] == [mutated(n, 3, found) for n in range(20)]
    assert mutated(1, 3, found) != mutated(1, 4, found)

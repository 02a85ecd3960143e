"""A reader of bytes."""

from __future__ import annotations

import pytest

from tests.ingest.spans import Reader


@pytest.fixture(scope="session")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """Loads bytes; shared by the examples of a property, since it keeps nothing between two calls."""
    return Reader(tmp_path_factory.mktemp("inputs"))

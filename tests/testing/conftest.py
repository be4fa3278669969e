from __future__ import annotations

from collections.abc import Iterator

import pytest

from ctrlruntime.testing import Environment


@pytest.fixture(scope="session")
def embedded() -> Iterator[Environment]:
    """An embedded server of this folder alone: tests reset it."""
    with Environment(backend="embedded") as environment:
        yield environment


@pytest.fixture(params=["embedded", "real"], scope="session")
def environment(request) -> Environment:
    return request.getfixturevalue({"embedded": "embedded", "real": "real_server"}[request.param])

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from ctrlruntime.errors import ConfigError
from ctrlruntime.testing import Environment
from ctrlruntime.testing.controlplane import find_programs


@pytest.fixture(scope="session")
def embedded() -> Iterator[Environment]:
    with Environment(backend="embedded") as environment:
        yield environment


@pytest.fixture(scope="session")
def real_programs() -> None:
    try:
        find_programs(os.environ)
    except ConfigError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"the real server is not built: run tests/controlplane/build ({error})")


@pytest.fixture(scope="session")
def real(real_programs) -> Iterator[Environment]:
    with Environment(backend="real") as environment:
        yield environment


@pytest.fixture(params=["embedded", "real"], scope="session")
def environment(request) -> Environment:
    return request.getfixturevalue(request.param)

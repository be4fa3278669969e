"""The two servers, one pair for each test process, and the fixtures of folders whose tests run on both."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from ctrlruntime.errors import ConfigError
from ctrlruntime.testing import Environment
from ctrlruntime.testing.controlplane import Programs, find_programs

__all__ = ["embedded_server", "namespace", "real_programs", "real_server", "server"]


def real_programs() -> Programs:
    """Return the programs of the real server. Without them the test is skipped; in CI it fails."""
    try:
        return find_programs(os.environ)
    except ConfigError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI runs on both servers: {error}")
        pytest.skip("needs the real server: run tests/controlplane/build (needs Go), then again")


@pytest.fixture(scope="session")
def embedded_server() -> Iterator[Environment]:
    with Environment(backend="embedded") as environment:
        yield environment


@pytest.fixture(scope="session")
def real_server() -> Iterator[Environment]:
    programs = real_programs()
    with Environment(backend="real", controller_manager=programs.kube_controller_manager is not None) as environment:
        yield environment


@pytest.fixture(params=["embedded", "real"], scope="session")
def server(request: pytest.FixtureRequest) -> Environment:
    """Each of the two servers in turn."""
    return request.getfixturevalue(f"{request.param}_server")


@pytest.fixture
def namespace(server: Environment) -> Iterator[str]:
    name = server.create_namespace()
    yield name
    server.delete_namespace(name)

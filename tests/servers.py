"""The two servers, one pair for each test process, and the fixtures of folders whose tests run on both."""

from __future__ import annotations

import functools
import os
import socket
from collections.abc import Callable, Iterator

import pytest

from ctrlruntime.errors import ConfigError
from ctrlruntime.testing import Environment
from ctrlruntime.testing.controlplane import Programs, find_programs

__all__ = [
    "LONGEST_WAIT",
    "embedded_server",
    "free_port",
    "namespace",
    "new_namespace",
    "own_real_server",
    "real_programs",
    "real_server",
    "server",
]

LONGEST_WAIT = 120.0
"""Seconds for whatever comes for certain: a process, a server, an event. A wait that succeeds costs nothing, however loaded the machine is."""


def free_port() -> int:
    """Return a port of 127.0.0.1 on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@pytest.fixture(scope="session")
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
def real_server(real_programs: Programs) -> Iterator[Environment]:
    """The real server of this process. `scheduling` gives the tests that use one to two processes of a run."""
    has_manager = real_programs.kube_controller_manager is not None
    with Environment(backend="real", controller_manager=has_manager, start_timeout=LONGEST_WAIT) as environment:
        yield environment


@pytest.fixture(scope="session")
def own_real_server(real_programs: Programs) -> Callable[..., Environment]:
    """Make a real server for tests that need one to themselves, without controllers: `with own_real_server() as server`.

    It takes what `Environment` takes: its definitions, or flags of kube-apiserver.
    """
    return functools.partial(Environment, backend="real", controller_manager=False, start_timeout=LONGEST_WAIT)


@pytest.fixture(params=["embedded", "real"], scope="session")
def server(request: pytest.FixtureRequest) -> Environment:
    """Each of the two servers in turn."""
    return request.getfixturevalue(f"{request.param}_server")


@pytest.fixture
def new_namespace(server: Environment) -> Iterator[Callable[[], str]]:
    """Make a namespace and return its name.

    On the real server it stays until that stops: to delete one, kube-controller-manager sends 54 requests, which was two thirds of all that
    the server did in a run.
    """
    made: list[str] = []

    def make() -> str:
        made.append(server.create_namespace())
        return made[-1]

    yield make
    if server.backend == "embedded":
        for name in made:
            server.delete_namespace(name)


@pytest.fixture
def namespace(new_namespace: Callable[[], str]) -> str:
    return new_namespace()

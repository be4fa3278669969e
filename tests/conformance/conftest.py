"""The two servers. A test that takes `server` runs on both, with the same body; that is what keeps the embedded one
honest.

| fixture | what it is |
|---|---|
| ``server`` | the running `Environment`, once as ``embedded`` and once as ``real`` |
| ``namespace`` | a fresh namespace on it |
| ``nodes`` | Pods run: by the simulator of `tests/controlplane/nodes.py` on the real server, by the embedded one itself |
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctrlruntime.errors import ConfigError
from ctrlruntime.testing import Environment
from ctrlruntime.testing.controlplane import find_programs

sys.path.append(str(Path(__file__).parent.parent / "controlplane"))

from nodes import NodeSimulator


@pytest.fixture(scope="session")
def embedded_server() -> Iterator[Environment]:
    with Environment(backend="embedded") as environment:
        yield environment


@pytest.fixture(scope="session")
def real_server() -> Iterator[Environment]:
    try:
        programs = find_programs(os.environ)
    except ConfigError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI runs on both servers: {error}")
        pytest.skip("needs the real server: run tests/controlplane/build (needs Go), then again")
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


@pytest.fixture(scope="session")
def _real_nodes(real_server: Environment) -> Iterator[None]:
    with NodeSimulator(real_server.kubeconfig):
        yield


@pytest.fixture
def nodes(server: Environment, request: pytest.FixtureRequest) -> None:
    """Pods of this test become Ready."""
    if server.backend == "real":
        request.getfixturevalue("_real_nodes")

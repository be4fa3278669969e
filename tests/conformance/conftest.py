"""The two servers. A test that takes `server` runs on both, with the same body; that is what keeps the embedded one
honest.

| fixture | what it is |
|---|---|
| ``server`` | the running `Environment`, once as ``embedded`` and once as ``real`` |
| ``namespace`` | a fresh namespace on it; ``new_namespace()`` makes more |
| ``client`` | a client of it that reads no cache |
| ``nodes`` | Pods run: by the simulator of `tests/controlplane/nodes.py` on the real server, by the embedded one itself |
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from ctrlruntime.client import APIClient
from ctrlruntime.rest import RESTMapper, get_config
from ctrlruntime.rest.transport import Transport
from ctrlruntime.scheme import Scheme
from ctrlruntime.testing import Environment

sys.path.append(str(Path(__file__).parent.parent / "controlplane"))
sys.path.append(str(Path(__file__).parent.parent / "olm"))  # bundles, and what OLM makes of them

from example_process import example_forks
from nodes import NodeSimulator
from servers import namespace, new_namespace, server

__all__ = ["example_forks", "namespace", "new_namespace", "server"]


@pytest.fixture
async def client(server: Environment) -> AsyncIterator[APIClient]:
    transport = Transport(get_config(str(server.kubeconfig_path)))
    yield APIClient(transport, RESTMapper(transport.fetch), Scheme())
    await transport.close()


@pytest.fixture(scope="session")
def _real_nodes(real_server: Environment) -> Iterator[None]:
    with NodeSimulator(real_server.kubeconfig):
        yield


@pytest.fixture
def nodes(server: Environment, request: pytest.FixtureRequest) -> None:
    """Pods of this test become Ready."""
    if server.backend == "real":
        request.getfixturevalue("_real_nodes")

"""One embedded server for the tests of the manager."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator

import pytest

import ctrlruntime as ctrl
import ctrlruntime.builder
from ctrlruntime.testing import Environment


@pytest.fixture(scope="package")
def server() -> Iterator[Environment]:
    with Environment(backend="embedded") as environment:
        yield environment


@pytest.fixture
def namespace(server: Environment) -> Iterator[str]:
    name = server.create_namespace()
    yield name
    server.delete_namespace(name)


@pytest.fixture
def config(server: Environment) -> ctrl.Config:
    return ctrl.get_config(str(server.kubeconfig_path))


@pytest.fixture
def make(config):
    """Makes a manager for the server, without a metrics server unless it is asked for."""
    return lambda **options: ctrl.new_manager(config, **{"metrics_bind_address": "0", **options})


@pytest.fixture
async def nothing_left() -> AsyncIterator[None]:
    """Fails when a test leaves a task or a thread behind."""
    threads = set(threading.enumerate())
    yield
    for _ in range(3):
        await asyncio.sleep(0)
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert not left
    # The event loop's own pool ends with the loop.
    started = [t for t in threading.enumerate() if t not in threads and not t.name.startswith(("asyncio_", "uvloop_"))]
    for thread in started:
        await asyncio.to_thread(thread.join, 2.0)
    assert not [thread for thread in started if thread.is_alive()]

"""A provider of a fleet for tests: each cluster is an embedded API server of this process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ctrlruntime.testing.environment import Environment

if TYPE_CHECKING:
    from ctrlruntime.fleet import Inventory
    from ctrlruntime.testing.definitions import Source

__all__ = ["EmbeddedServers"]


class EmbeddedServers:
    """Clusters that are embedded API servers.

    They start with the manager, and stop with it. The clusters are `embedded/0`, `embedded/1` and so on. `mgr.fleet.client("embedded/0")` is
    a client of the first one.

    Args:
        number: the number of servers.
        crds: installed in each server: documents, files, or folders with their subfolders.
        name: the first part of the names of the clusters.

    """

    def __init__(self, number: int, *, crds: Source | Iterable[Source] = (), name: str = "embedded") -> None:
        self.name = name
        self.environments: Mapping[str, Environment] = {
            str(each): Environment(backend="embedded", crds=crds) for each in range(number)
        }
        """The servers, by the second part of their names, to stop and start single ones."""

    async def run(self, inventory: Inventory, /) -> None:
        from ctrlruntime.fleet import ClusterSource
        from ctrlruntime.rest.config import get_config

        async with contextlib.AsyncExitStack() as stack:
            for name, environment in self.environments.items():
                await stack.enter_async_context(environment)
                config = get_config(str(environment.kubeconfig_path))
                inventory.set(name, ClusterSource(config=config, fingerprint=environment.url))
            inventory.synced()
            await asyncio.get_running_loop().create_future()

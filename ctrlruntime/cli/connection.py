"""The options of commands that talk to a cluster, and the connection they make."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from ctrlruntime.client.interfaces import Client

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def cluster_options(command: F) -> F:
    """Add --kubeconfig and --context to a command."""
    command = click.option("--context", metavar="NAME", help="Context of the kubeconfig.  [default: its current one]")(
        command
    )
    return click.option(
        "--kubeconfig", metavar="PATH", help="Kubeconfig file.  [default: KUBECONFIG, the pod's, ~/.kube/config]"
    )(command)


def with_client(kubeconfig: str | None, context: str | None, work: Callable[[Client], Awaitable[T]]) -> T:
    """Run `work` with a client of the cluster and return its result. Raises: ConfigError, and what `work` raises."""
    from ctrlruntime.cluster import Cluster
    from ctrlruntime.rest.config import get_config

    async def run() -> T:
        cluster = Cluster(get_config(kubeconfig, context))
        try:
            return await work(cluster.unfenced_client())
        finally:
            await cluster.close()

    return asyncio.run(run())

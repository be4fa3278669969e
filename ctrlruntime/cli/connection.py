"""The options of commands that talk to a cluster, the connection they make, and the project they are about."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from ctrlruntime.client.interfaces import Client
    from ctrlruntime.cluster import Cluster
    from ctrlruntime.project.settings import Settings
    from ctrlruntime.rest.config import Config

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def cluster_options(command: F) -> F:
    """Add --kubeconfig and --context to a command."""
    command = click.option(
        "--context", metavar="NAME", help="Context of the kubeconfig.  [default: its current context]"
    )(command)
    return click.option(
        "--kubeconfig",
        metavar="PATH",
        help="Kubeconfig file.  [default: KUBECONFIG, the in-cluster config, ~/.kube/config]",
    )(command)


def configuration(kubeconfig: str | None, context: str | None) -> Config:
    """Return the cluster to use, as the program `ctrl`: field managers get their name from that. Raises: ConfigError."""
    from dataclasses import replace

    from ctrlruntime.rest.config import get_config

    found = get_config(kubeconfig, context)
    return replace(found, user_agent=f"ctrl/{found.user_agent.partition('/')[2]}")


def with_cluster(kubeconfig: str | None, context: str | None, work: Callable[[Cluster], Awaitable[T]]) -> T:
    """Run `work` with a cluster and return its result. Raises: ConfigError, and what `work` raises."""
    from ctrlruntime.cluster import Cluster

    async def run() -> T:
        cluster = Cluster(configuration(kubeconfig, context))
        try:
            return await work(cluster)
        finally:
            await cluster.close()

    return asyncio.run(run())


def with_client(kubeconfig: str | None, context: str | None, work: Callable[[Client], Awaitable[T]]) -> T:
    """Run `work` with a client of the cluster and return its result. Raises: ConfigError, and what `work` raises."""
    return with_cluster(kubeconfig, context, lambda cluster: work(cluster.unfenced_client()))


def package_here() -> str | None:
    """Return the package of the project this is called in, which can be imported from then on; None outside a project.

    Raises: ConfigError for settings that cannot be read.
    """
    from ctrlruntime.project.settings import NoProjectError

    try:
        return project_here()[1].package
    except NoProjectError:
        return None


def project_here() -> tuple[Path, Settings]:
    """Return the folder of the project this is called in, as a person would name it from here, and its settings.

    Its package can be imported from then on. Raises: ConfigError outside a project.
    """
    from ctrlruntime.project.package import make_importable
    from ctrlruntime.project.settings import find_project, read_settings

    folder = Path(os.path.relpath(find_project(Path.cwd())))
    settings = read_settings(folder)
    make_importable(folder, settings)
    return folder, settings

"""The checks in an order in which the first failure explains the next ones."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from ctrlruntime.cluster import Cluster
from ctrlruntime.errors import ConfigError, CtrlError
from ctrlruntime.project.doctor.check import Check, Subject, failed, fine, warned
from ctrlruntime.project.doctor.cluster import account_check, reach_check, user_check
from ctrlruntime.project.doctor.definitions import definition_checks
from ctrlruntime.project.doctor.webhooks import webhook_checks
from ctrlruntime.project.doctor.workload import deployed, workload_checks
from ctrlruntime.project.kustomize import render
from ctrlruntime.project.settings import Settings

__all__ = ["cluster_checks", "rendered"]

_DEFAULT = "config/default"


def rendered(folder: Path, settings: Settings) -> tuple[Subject, Check]:
    """Return the project with what its config/default renders to, and how that went."""
    try:
        documents = tuple(render(folder / _DEFAULT))
    except ConfigError as error:
        return Subject(folder, settings), failed("config/default", str(error), "Run `ctrl manifests`")
    return Subject(folder, settings, documents), fine("config/default", f"renders to {len(documents)} objects")


async def cluster_checks(cluster: Cluster, subject: Subject) -> AsyncIterator[Check]:
    """Yield the checks of the cluster, each as soon as it is done. A rejected check fails, and the others continue."""
    reached = await reach_check(cluster)
    yield reached
    if reached.status == "fail":
        return
    yield await _or_failed("permissions", lambda: user_check(cluster, subject))
    client = cluster.unfenced_client()
    try:
        deployment = await deployed(cluster, subject)
    except CtrlError as error:
        yield failed("deployment", str(error), "Ask for permission to read Deployments")
        return
    async for check in _all("crd", definition_checks(client, subject, is_deployed=deployment is not None)):
        yield check
    if deployment is None:
        yield warned("deployment", "the operator is not deployed in this cluster", "Run `ctrl deploy` or `ctrl run`")
        return
    async for check in _all("deployment", workload_checks(cluster, subject, deployment)):
        yield check
    account = subject.account
    if account is not None:
        yield await _or_failed("account", lambda: account_check(cluster, subject, account))
    async for check in _all("webhook", webhook_checks(client, subject)):
        yield check


async def _or_failed(name: str, check: Callable[[], Awaitable[Check]]) -> Check:
    try:
        return await check()
    except CtrlError as error:
        return failed(name, str(error), "Check your permissions and the API server")


async def _all(name: str, checks: AsyncIterator[Check]) -> AsyncIterator[Check]:
    try:
        async for check in checks:
            yield check
    except CtrlError as error:
        yield failed(name, str(error), "Check your permissions and the API server")

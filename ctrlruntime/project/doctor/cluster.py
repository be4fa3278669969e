"""Whether the cluster responds, and whether the user and the operator have the permissions of the operator's roles."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any, Final

from ctrlruntime.cluster import Cluster
from ctrlruntime.errors import APIStatusError, CtrlError
from ctrlruntime.project.deployment.access import Access, Account, refused, told
from ctrlruntime.project.deployment.objects import Document
from ctrlruntime.project.doctor.check import Check, Subject, failed, fine, warned
from ctrlruntime.rest.redaction import shown_url

__all__ = ["accesses", "account_check", "reach_check", "user_check"]

_OLDEST: Final = (1, 30)
_PATIENCE: Final = 10.0  # seconds for the first answer
_SHOWN: Final = 300  # characters of a list in one line


async def reach_check(cluster: Cluster) -> Check:
    """Get the version, which requires no permission."""
    host = shown_url(cluster.config.host)
    try:
        async with asyncio.timeout(_PATIENCE):
            answer = await cluster.transport.request("GET", "/version")
    except TimeoutError:
        return failed("cluster", f"no response from {host} within {_PATIENCE:g} s", "Check the address and the network")
    except APIStatusError as error:
        return failed("cluster", f"{host}: {error}", "Check the user in the kubeconfig")
    except CtrlError as error:
        return failed("cluster", str(error), "")  # the error has its advice
    told_version: dict[str, Any] = json.loads(answer.body)
    text = str(told_version.get("gitVersion") or "of unknown version")
    numbers = re.match(r"v(\d+)\.(\d+)", text)
    if numbers and (int(numbers[1]), int(numbers[2])) < _OLDEST:
        return failed("cluster", f"{host} runs Kubernetes {text}", f"Use {_OLDEST[0]}.{_OLDEST[1]} or later")
    return fine("cluster", f"{host} runs Kubernetes {text}")


async def user_check(cluster: Cluster, subject: Subject) -> Check:
    """Check whether this user has the permissions in the operator's roles: `ctrl run` uses them, and only a user with them can grant them."""
    wanted = accesses(subject)
    if not wanted:
        return fine("permissions", "the operator's roles grant no permissions")
    missing = await refused(cluster.unfenced_client(), wanted)
    if missing:
        return failed(
            "permissions",
            f"you lack permissions that the operator's roles grant: {_cut(told(missing))}",
            "Ask an administrator for them: `ctrl deploy` and `ctrl run` require them",
        )
    return fine("permissions", f"you have all {len(wanted)} permissions that the operator's roles grant")


async def account_check(cluster: Cluster, subject: Subject, account: Account) -> Check:
    """Check whether the operator in the cluster has the permissions in its current roles."""
    wanted = accesses(subject)
    try:
        missing = await refused(cluster.unfenced_client(), wanted, account)
    except APIStatusError as error:
        return warned(
            "account",
            f"cannot check the permissions of the operator: {error}",
            "Run this as a user who can create SubjectAccessReviews",
        )
    who = f"ServiceAccount {account.namespace}/{account.name}"
    if missing:
        return failed("account", f"{who} lacks permissions: {_cut(told(missing))}", "Run `ctrl deploy`")
    return fine("account", f"{who} has all permissions that its roles grant")


def accesses(subject: Subject) -> set[Access]:
    """Return what the rendered roles grant to the operator's ServiceAccount."""
    account = subject.account
    if account is None:
        return set()
    roles = {
        (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each
        for each in subject.documents
        if each["kind"] in {"Role", "ClusterRole"}
    }
    found: set[Access] = set()
    for binding in subject.documents:
        if binding["kind"] not in {"RoleBinding", "ClusterRoleBinding"} or not _is_for(binding, account):
            continue
        namespace = str(binding["metadata"].get("namespace") or "") if binding["kind"] == "RoleBinding" else ""
        reference = binding["roleRef"]
        home = namespace if reference["kind"] == "Role" else ""
        role = roles.get((reference["kind"], home, reference["name"]))
        for rule in (role or {}).get("rules") or ():
            found.update(_expanded(rule, namespace))
    return found


def _is_for(binding: Document, account: Account) -> bool:
    subjects: list[dict[str, Any]] = binding.get("subjects") or []
    return any(
        each.get("kind") == "ServiceAccount"
        and (each.get("name"), each.get("namespace")) == (account.name, account.namespace)
        for each in subjects
    )


def _expanded(rule: Document, namespace: str) -> Iterator[Access]:
    for verb in rule.get("verbs") or ():
        for path in rule.get("nonResourceURLs") or ():
            yield Access(verb, path=path)
        for group in rule.get("apiGroups") or ():
            for resource in rule.get("resources") or ():
                for name in rule.get("resourceNames") or ("",):
                    yield Access(verb, group, resource, namespace, name)


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN].rpartition(';')[0]}; and more"

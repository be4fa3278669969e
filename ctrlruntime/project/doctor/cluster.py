"""Whether the cluster answers, and whether those who need to may do what the operator does."""

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
    """Ask for the version: the one thing everybody may."""
    host = shown_url(cluster.config.host)
    try:
        async with asyncio.timeout(_PATIENCE):
            answer = await cluster.transport.request("GET", "/version")
    except TimeoutError:
        return failed("cluster", f"{host} does not answer within {_PATIENCE:g} s", "check the address and the network")
    except APIStatusError as error:
        return failed("cluster", f"{host}: {error}", "check the user in the kubeconfig")
    except CtrlError as error:
        return failed("cluster", str(error), "")  # the error has its advice
    told_version: dict[str, Any] = json.loads(answer.body)
    text = str(told_version.get("gitVersion") or "unknown")
    numbers = re.match(r"v(\d+)\.(\d+)", text)
    if numbers and (int(numbers[1]), int(numbers[2])) < _OLDEST:
        return failed("cluster", f"{host} is {text}", f"Kubernetes {_OLDEST[0]}.{_OLDEST[1]} or later is supported")
    return fine("cluster", f"{host} is {text}")


async def user_check(cluster: Cluster, subject: Subject) -> Check:
    """Ask whether this user holds what the operator's roles grant: `ctrl run` uses it, and who grants it must have it."""
    wanted = accesses(subject)
    if not wanted:
        return fine("permissions", "the operator's roles grant nothing")
    missing = await refused(cluster.unfenced_client(), wanted)
    if missing:
        return failed(
            "permissions",
            f"you may not: {_cut(told(missing))}",
            "the operator's roles grant this, and who deploys or runs it needs it, too",
        )
    return fine("permissions", f"you may do all {len(wanted)} things the operator's roles grant")


async def account_check(cluster: Cluster, subject: Subject, account: Account) -> Check:
    """Ask whether the operator in the cluster may do what its roles grant as they are now."""
    wanted = accesses(subject)
    try:
        missing = await refused(cluster.unfenced_client(), wanted, account)
    except APIStatusError as error:
        return warned(
            "account", f"what it may do is not known: {error}", "ask a user who may create SubjectAccessReviews"
        )
    who = f"ServiceAccount {account.namespace}/{account.name}"
    if missing:
        return failed("account", f"{who} may not: {_cut(told(missing))}", "run `ctrl deploy`")
    return fine("account", f"{who} may do all that its roles grant")


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

"""Checks permissions in a cluster before they are used."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ctrlruntime.api.authorization.v1 import SelfSubjectAccessReview, SubjectAccessReview
from ctrlruntime.client.interfaces import Client

__all__ = ["Access", "Account", "refused", "told"]

_AT_ONCE = 10  # questions under way together


@dataclass(frozen=True, slots=True, order=True)
class Access:
    """One verb on one resource; `namespace` empty: in all of them. With `path`, a URL that is not a resource."""

    verb: str
    group: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def target(self) -> str:
        """What the verb is for: `deployments.apps in namespace shop-system`."""
        if self.path:
            return self.path
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        named = f" {self.name!r}" if self.name else ""
        return f"{resource}{named}{f' in namespace {self.namespace}' if self.namespace else ''}"

    def _attributes(self) -> dict[str, Any]:
        if self.path:
            return {"nonResourceAttributes": {"verb": self.verb, "path": self.path}}
        resource, _, subresource = self.resource.partition("/")
        said = {
            "verb": self.verb,
            "group": self.group,
            "resource": resource,
            "subresource": subresource,
            "namespace": self.namespace,
            "name": self.name,
        }
        return {"resourceAttributes": {key: value for key, value in said.items() if value}}

    def review(self, account: Account | None) -> dict[str, Any]:
        """Return the spec of the review that asks for this."""
        return self._attributes() | (account.subject() if account is not None else {})


@dataclass(frozen=True, slots=True)
class Account:
    """A ServiceAccount."""

    namespace: str
    name: str

    def subject(self) -> dict[str, Any]:
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{self.namespace}", "system:authenticated"]
        return {"user": f"system:serviceaccount:{self.namespace}:{self.name}", "groups": groups}


async def refused(client: Client, wanted: Iterable[Access], account: Account | None = None) -> list[Access]:
    """Return the permissions of `wanted` that the client, or a ServiceAccount, lacks. Raises: APIStatusError, TransportError."""
    slots = asyncio.Semaphore(_AT_ONCE)
    wanted = sorted(set(wanted))

    async def ask(access: Access) -> bool:
        async with slots:
            return await _is_allowed(client, access, account)

    answers = await asyncio.gather(*(ask(access) for access in wanted))
    return [access for access, is_allowed in zip(wanted, answers, strict=True) if not is_allowed]


async def _is_allowed(client: Client, access: Access, account: Account | None) -> bool:
    tree = {"spec": access.review(account)}
    if account is None:
        own = await client.create(SelfSubjectAccessReview.from_dict(tree))
        return bool(own.status.allowed)
    return bool((await client.create(SubjectAccessReview.from_dict(tree))).status.allowed)


def told(wanted: Iterable[Access]) -> str:
    """Return one line for permissions: `create, patch deployments.apps in namespace shop-system; get secrets`."""
    verbs: dict[str, list[str]] = {}
    for access in sorted(set(wanted)):
        verbs.setdefault(access.target, []).append(access.verb)
    return "; ".join(f"{', '.join(each)} {target}" for target, each in verbs.items())

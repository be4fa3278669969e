"""Checks before the first write: missing kinds, objects of other deployments, missing permissions, webhooks that no Pod can serve."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.object import Object, Unstructured
from ctrlruntime.client.interfaces import Client
from ctrlruntime.cluster import Cluster
from ctrlruntime.errors import ConfigError, Forbidden, NoMatchError
from ctrlruntime.project.deployment.access import Access, refused, told
from ctrlruntime.project.deployment.applyset import PART_OF, ApplySet
from ctrlruntime.project.deployment.objects import Document, Named, custom_kinds
from ctrlruntime.project.deployment.ownership import EXTERNAL, other_managers

__all__ = [
    "Found",
    "check_access",
    "check_authorities",
    "check_certificates",
    "check_owners",
    "find",
    "is_embedded",
    "is_trusted",
    "settled",
]

Found: TypeAlias = dict[Named, Object]
"""What is in the cluster already."""

_AT_ONCE = 10  # requests under way together
_INJECT = "cert-manager.io/inject-ca-from"
_CERT_MANAGER = "cert-manager.io"
_ADVICE = {
    _CERT_MANAGER: "Install cert-manager, or disable it with `ctrl edit --no-cert-manager`",
    "monitoring.coreos.com": "Install the Prometheus operator, or disable it with `ctrl edit --no-prometheus`",
}
_NO_PODS = (
    "The embedded API server runs no Pods, so neither cert-manager nor the operator can set the CA bundle of webhooks there. "
    "Run the operator on this machine: `ctrl run --webhooks development`"
)
"""The advice for webhooks on the embedded server."""


@dataclass(frozen=True, slots=True)
class _Kind:
    is_namespaced: bool
    plural: str
    """Empty for a kind whose CRD is part of the deployment."""


async def is_embedded(cluster: Cluster) -> bool:
    """Return whether the cluster is an embedded API server, which simulates Pods. Raises: APIStatusError, TransportError."""
    answer = await cluster.transport.request("GET", "/version")
    return bool(json.loads(answer.body).get("compiler") == "ctrlruntime")


async def settled(
    client: Client, documents: Sequence[Document], namespace: str, *, lacks_pods: Callable[[], Awaitable[bool]]
) -> list[dict[str, Any]]:
    """Return copies of the documents with the namespaces they will have; `namespace` is for those without one.

    `lacks_pods` returns whether the cluster runs no Pods.

    Raises: ConfigError for kinds that the cluster does not serve and that have no CRD among the documents.
    """
    kinds = await _kinds(client, documents, lacks_pods)
    made: list[dict[str, Any]] = []
    for document in documents:
        tree = copy.deepcopy(dict(document))
        if not kinds[Named.of(document).kind].is_namespaced:
            tree["metadata"].pop("namespace", None)
        elif not tree["metadata"].get("namespace"):
            tree["metadata"]["namespace"] = namespace
        made.append(tree)
    return made


async def _kinds(
    client: Client, documents: Sequence[Document], lacks_pods: Callable[[], Awaitable[bool]]
) -> dict[GroupVersionKind, _Kind]:
    custom = custom_kinds(documents)
    found: dict[GroupVersionKind, _Kind] = {}
    missing: list[GroupVersionKind] = []
    for kind in dict.fromkeys(Named.of(each).kind for each in documents):
        if (kind.group, kind.kind) in custom:
            found[kind] = _Kind(custom[kind.group, kind.kind], "")
            continue
        try:
            resource = await client.mapper.resource_for(kind)
        except NoMatchError:
            missing.append(kind)
        else:
            found[kind] = _Kind(resource.namespaced, resource.plural)
    if missing:
        names = ", ".join(f"{kind.kind} of {kind.api_version}" for kind in missing)
        groups = {kind.group for kind in missing}
        known = dict(_ADVICE)
        if _CERT_MANAGER in groups and await lacks_pods():
            known[_CERT_MANAGER] = _NO_PODS
        advice = {known[group] for group in groups if group in known} or {
            "Install the CRDs or API servers of these kinds"
        }
        raise ConfigError(f"cannot deploy: the cluster does not serve {names}. {'. '.join(sorted(advice))}")
    return found


async def find(client: Client, names: Iterable[Named], *, whole: bool = False) -> Found:
    """Return which of the objects exist, their metadata alone or `whole`."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(named: Named) -> tuple[Named, Object | None]:
        kind: type[Object] = Unstructured.of(named.kind.api_version, named.kind.kind) if whole else named.metadata_class
        async with slots:
            try:
                return named, await client.api_reader.get_or_none(kind, named.key)
            except NoMatchError:  # its definition comes with the deployment
                return named, None

    pairs = await asyncio.gather(*(one(named) for named in names))
    return {named: found for named, found in pairs if found is not None}


def check_certificates(documents: Iterable[Document]) -> None:
    """Reject webhooks that would never get their CA, because an overlay changed names that kustomize does not follow.

    Raises: ConfigError if `cert-manager.io/inject-ca-from` names a Certificate that is not deployed, and another one is.
    """
    documents = list(documents)
    certificates = {str(Named.of(each).key) for each in documents if each["kind"] == "Certificate"}
    for each in documents:
        source = str((each["metadata"].get("annotations") or {}).get(_INJECT, ""))
        if source and certificates and source not in certificates:
            raise ConfigError(
                f"cannot deploy {Named.of(each)}: annotation {_INJECT} is {source}, but the deployment has "
                f"{', '.join(sorted(certificates))}. Add `transformers: [../../replacements]` to the kustomization of the overlay"
            )


async def check_authorities(client: Client, webhooks: Iterable[Document]) -> None:
    """Reject webhooks in a cluster without Pods, unless the configurations there already have their CA bundle. Raises: ConfigError."""
    for document in webhooks:
        named = Named.of(document)
        configs = [each["clientConfig"] for each in document.get("webhooks") or ()]
        if all(config.get("caBundle") for config in configs if "service" in config):
            continue
        kind = Unstructured.of(named.kind.api_version, named.kind.kind)
        present = await client.api_reader.get_or_none(kind, named.key)
        if present is None or not is_trusted(present):
            raise ConfigError(f"cannot deploy {named}: its calls would fail. {_NO_PODS}, or deploy with --no-wait")


def is_trusted(configuration: Unstructured) -> bool:
    """Return whether each webhook that names a Service has a CA bundle."""
    configs: list[dict[str, Any]] = [each["clientConfig"] for each in configuration.get_path("webhooks", default=[])]
    return all(config.get("caBundle") for config in configs if "service" in config)


def check_owners(found: Found, ours: ApplySet) -> None:
    """Refuse objects that belong to another deployment. Raises: ConfigError, which names them."""
    foreign = {
        named: found[named].metadata.labels[PART_OF]
        for named in found
        if found[named].metadata.labels.get(PART_OF, ours.id) != ours.id
    }
    if foreign:
        names = ", ".join(str(named) for named in sorted(foreign))
        raise ConfigError(
            f"cannot deploy {names}: part of another deployment ({min(foreign.values())}). Undeploy that one, or take them over with "
            "--force-conflicts"
        )
    crds = {
        named: other_managers(found[named]) for named in sorted(found) if named.kind.kind == "CustomResourceDefinition"
    }
    applied = [f"{named.name} was applied by {' and '.join(managers)}" for named, managers in crds.items() if managers]
    if applied:
        raise ConfigError(
            f"cannot deploy CRDs of others: {'; '.join(applied)}. {EXTERNAL}, or take them over with --force-conflicts"
        )


async def check_access(client: Client, names: Iterable[Named]) -> None:
    """Check the permissions before the first write. Raises: Forbidden, which names the missing verbs and resources."""
    wanted: set[Access] = set()
    for named in names:
        try:
            resource = await client.mapper.resource_for(named.kind)
        except NoMatchError:  # its definition comes with the deployment
            continue
        for verb in ("get", "create", "patch"):
            wanted.add(Access(verb, resource.group, resource.plural, named.namespace))
    missing = await refused(client, wanted)
    if missing:
        raise Forbidden(f"nothing was changed: this user has no permission to {told(missing)}")

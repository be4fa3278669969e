"""Discovery, aggregated and legacy: the recorded documents of built-in groups, with the custom kinds of the moment added."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ctrlruntime.api.kind import version_priority
from ctrlruntime.apiserver.http.negotiation import media_ranges
from ctrlruntime.apiserver.registry import Registry, Resource
from ctrlruntime.apiserver.registry.resources import recorded_discovery
from ctrlruntime.errors import NotAcceptable
from ctrlruntime.schema.trees import Document, encode

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class Discovery:
    """Discovery documents as bytes, made again when a definition changes."""

    def __init__(self, registry: Registry, address: str) -> None:
        self._registry = registry
        self._address = address
        self._cache: dict[str, tuple[int, bytes]] = {}

    def aggregated(self, path: str) -> tuple[bytes, str]:
        """Return (body, ETag) of `/api` or `/apis`."""
        body = self._cached(f"aggregated {path}", lambda: encode(self._aggregated(path)))
        return body, f'"{hashlib.sha512(body).hexdigest().upper()}"'

    def legacy(self, path: str) -> bytes | None:
        """Return the legacy document at a path, or None if it does not exist."""
        if path == "/apis":
            return self._cached(path, lambda: encode(self._group_list()))
        recorded = recorded_discovery()["legacy"]
        if path in recorded:
            return self._cached(path, lambda: encode(self._addressed(recorded[path])))
        return self._custom(path)

    def _cached(self, key: str, make: Callable[[], bytes]) -> bytes:
        found = self._cache.get(key)
        if found is None or found[0] != self._registry.generation:
            found = (self._registry.generation, make())
            self._cache[key] = found
        return found[1]

    def _addressed(self, document: Document) -> Document:
        if "serverAddressByClientCIDRs" not in document:
            return document
        return {**document, "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": self._address}]}

    def _groups(self) -> dict[str, dict[str, list[Resource]]]:
        """Return custom resources by group and version, groups by name, versions best first."""
        groups: dict[str, dict[str, list[Resource]]] = {}
        for resource in sorted(
            self._registry.custom_resources(), key=lambda r: (r.group, version_priority(r.version), r.plural)
        ):
            groups.setdefault(resource.group, {}).setdefault(resource.version, []).append(resource)
        return groups

    def _aggregated(self, path: str) -> Document:
        document: Document = recorded_discovery()["aggregated"][path]
        if path != "/apis":
            return document
        custom = [
            {
                "metadata": {"name": group},
                "versions": [
                    {
                        "version": version,
                        "resources": [_aggregated_resource(resource) for resource in resources],
                        "freshness": "Current",
                    }
                    for version, resources in versions.items()
                ],
            }
            for group, versions in self._groups().items()
        ]
        return {**document, "items": [*document["items"], *custom]}

    def _group_list(self) -> Document:
        document: Document = recorded_discovery()["legacy"]["/apis"]
        custom = [_group(group, list(versions)) for group, versions in self._groups().items()]
        return {**document, "groups": [*document["groups"], *custom]}

    def _custom(self, path: str) -> bytes | None:
        parts = path.removeprefix("/apis/").split("/")
        versions = self._groups().get(parts[0])
        if versions is None:
            return None
        if len(parts) == 1:
            return encode({"kind": "APIGroup", "apiVersion": "v1", **_group(parts[0], list(versions))})
        if len(parts) == 2 and parts[1] in versions:
            resources = [entry for resource in versions[parts[1]] for entry in _legacy_resources(resource)]
            head = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "/".join(parts)}
            return encode({**head, "resources": resources})
        return None


@dataclass(frozen=True, slots=True)
class Wanted:
    """How a caller wants discovery: the documents of all versions in one, or one at a time; as JSON or YAML."""

    is_aggregated: bool = False
    is_yaml: bool = False


@lru_cache(maxsize=64)
def wanted(accept: str, *, has_aggregated: bool) -> Wanted:
    """Read an Accept header; aggregated documents win wherever it lists them. Raises: NotAcceptable when nothing fits."""
    single: Wanted | None = None
    for entry in media_ranges(accept or "*/*"):
        if entry.type not in {"application/json", "application/yaml", "*/*", "application/*"}:
            continue
        is_yaml = entry.type == "application/yaml"
        parameters = entry.parameters
        if not parameters.get("as"):
            single = single or Wanted(is_yaml=is_yaml)
            continue
        asked = (parameters.get("g"), parameters.get("v"), parameters.get("as"))
        if has_aggregated and asked == ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList"):
            return Wanted(is_aggregated=True, is_yaml=is_yaml)
    if single is not None:
        return single
    raise NotAcceptable(
        "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )


def _group(name: str, versions: list[str]) -> Document:
    entries = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": entries, "preferredVersion": entries[0]}


def _aggregated_resource(resource: Resource) -> Document:
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    entry: Document = {
        "resource": resource.plural,
        "responseKind": kind,
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.subresources:
        entry["subresources"] = [
            {
                "subresource": sub.name,
                "responseKind": {"group": sub.group, "version": sub.version, "kind": sub.kind},
                "verbs": list(sub.verbs),
            }
            for sub in resource.subresources.values()
        ]
    return entry


def _legacy_resources(resource: Resource) -> list[Document]:
    digest = hashlib.sha256(f"{resource.group}/{resource.version}/{resource.kind}".encode()).digest()
    entry: dict[str, Any] = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.computed is None:
        entry["storageVersionHash"] = base64.b64encode(digest[:8]).decode()
    entries = [entry]
    for sub in resource.subresources.values():
        below: Document = {
            "name": f"{resource.plural}/{sub.name}",
            "singularName": "",
            "namespaced": resource.namespaced,
        }
        if (sub.group, sub.version) != (resource.group, resource.version):
            below.update({"group": sub.group, "version": sub.version})
        entries.append({**below, "kind": sub.kind, "verbs": list(sub.verbs)})
    return entries

"""The ConfigMaps and Secrets that a Pod cannot start without: in its volumes, and in the environments of its containers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ctrlruntime.apiserver.controllers.objects import metadata
from ctrlruntime.apiserver.interfaces import API
from ctrlruntime.schema.trees import Document

_VOLUMES: Final = (("configMap", "configmaps", "name"), ("secret", "secrets", "secretName"))
_PROJECTED: Final = (("configMap", "configmaps", "name"), ("secret", "secrets", "name"))
_SOURCES: Final = (("configMapRef", "configmaps"), ("secretRef", "secrets"))
_KEYS: Final = (("configMapKeyRef", "configmaps"), ("secretKeyRef", "secrets"))
_KINDS: Final = {"configmaps": "ConfigMap", "secrets": "Secret"}
_NO_KEY: Final = {
    "configmaps": "configmap references non-existent config key",
    "secrets": "references non-existent secret key",
}
"""The kubelet's texts for a key that a volume asks for (pkg/volume/configmap, pkg/volume/secret)."""


@dataclass(frozen=True, slots=True)
class Missing:
    """An object, or a key of it, that is not there."""

    resource: str
    name: str
    text: str
    """What the kubelet says."""


def missing_in_volumes(api: API, pod: Document) -> Iterator[Missing]:
    """Yield what keeps volumes from being mounted; no container starts before."""
    for volume in pod["spec"].get("volumes") or ():
        sources = [(volume.get(field), resource, name) for field, resource, name in _VOLUMES]
        for source in (volume.get("projected") or {}).get("sources") or ():
            sources += [(source.get(field), resource, name) for field, resource, name in _PROJECTED]
        for source, resource, name in sources:
            if source is None:
                continue
            keys = [item.get("key", "") for item in source.get("items") or ()]
            found = _missing(api, pod, resource, source, name, keys, _NO_KEY[resource] + ": {key}")
            if found is not None:
                head = f'MountVolume.SetUp failed for volume "{volume.get("name", "")}"'
                yield Missing(found.resource, found.name, f"{head} : {found.text}")


def missing_in_environment(api: API, pod: Document, container: Document) -> Missing | None:
    """Return what keeps a container from being created (makeEnvironmentVariables in pkg/kubelet/kubelet_pods.go)."""
    wanted: list[tuple[Document | None, str, list[str]]] = []
    for source in container.get("envFrom") or ():
        wanted += [(source.get(field), resource, []) for field, resource in _SOURCES]
    for variable in container.get("env") or ():
        given = variable.get("valueFrom") or {}
        for field, resource in _KEYS:
            reference = given.get(field)
            wanted.append((reference, resource, [reference.get("key", "")] if reference else []))
    for reference, resource, keys in wanted:
        if reference is not None:
            text = f"couldn't find key {{key}} in {_KINDS[resource]} {metadata(pod)['namespace']}/{{name}}"
            found = _missing(api, pod, resource, reference, "name", keys, text)
            if found is not None:
                return found
    return None


def _missing(
    api: API, pod: Document, resource: str, reference: Document, field: str, keys: list[str], no_key: str
) -> Missing | None:
    if reference.get("optional"):
        return None
    name = str(reference.get(field, ""))
    found = api.get("", resource, str(metadata(pod)["namespace"]), name)
    if found is None:
        return Missing(resource, name, f'{_KINDS[resource].lower()} "{name}" not found')
    present = {*(found.get("data") or ()), *(found.get("binaryData") or ())}
    absent = next((key for key in keys if key not in present), None)
    return None if absent is None else Missing(resource, name, no_key.format(key=absent, name=name))


__all__ = ["Missing", "missing_in_environment", "missing_in_volumes"]

"""Deployments in the form of the install strategy of a ClusterServiceVersion: name, labels, spec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ctrlruntime.errors import GenerateError
from ctrlruntime.generate.options import Document
from ctrlruntime.olm.csv.objects import Objects, labels_of, name_of, pod_of
from ctrlruntime.olm.trees import maps

__all__ = ["account_of", "containers_of", "deployments", "manager_of"]

_TARGETS: Final = "metadata.annotations['olm.targetNamespaces']"
_DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"


def deployments(objects: Objects) -> list[Document]:
    """Remove the Deployments and return their entries. WATCH_NAMESPACE becomes the target namespaces of the OperatorGroup.

    Raises: GenerateError without a Deployment: the Operator Lifecycle Manager installs Deployments and no other workloads.
    """
    found = objects.deployments
    if not found:
        raise GenerateError(
            "cannot create the bundle: no Deployment among the objects. Add config/manager, or pass the whole tree"
        )
    objects.take(found)
    return [_entry(each) for each in found]


def containers_of(deployment: Mapping[str, Any]) -> Iterator[Document]:
    """Yield the init containers and the containers of a Deployment."""
    pod = pod_of(deployment)
    yield from maps(pod.get("initContainers"))
    yield from maps(pod.get("containers"))


def manager_of(found: Sequence[Mapping[str, Any]]) -> Document:
    """Return the operator's container in the first Deployment: the one named manager, kubectl's default one, or the first."""
    first = found[0]
    template = first["spec"].get("template") or {}
    said = ((template.get("metadata") or {}).get("annotations") or {}).get(_DEFAULT_CONTAINER)
    containers = maps(pod_of(first).get("containers"))
    by_name = {each.get("name"): each for each in reversed(containers)}
    return by_name.get("manager") or by_name.get(said) or (containers[0] if containers else {})


def account_of(deployment: Mapping[str, Any]) -> str:
    """Return the name of the ServiceAccount its Pods run as."""
    pod = pod_of(deployment)
    return str(pod.get("serviceAccountName") or pod.get("serviceAccount") or "default")


def _entry(deployment: Document) -> Document:
    for container in containers_of(deployment):
        for variable in maps(container.get("env")):
            if variable.get("name") == "WATCH_NAMESPACE":
                variable.pop("value", None)
                variable["valueFrom"] = {"fieldRef": {"fieldPath": _TARGETS}}
    labels = dict(labels_of(deployment))
    return {
        "name": name_of(deployment),
        **({"label": labels} if labels else {}),
        "spec": deployment.get("spec") or {},
    }

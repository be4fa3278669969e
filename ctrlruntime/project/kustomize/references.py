"""Names that objects know each other by: when an object is renamed or moved, who refers to it follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ctrlruntime.errors import ConfigError
from ctrlruntime.project.kustomize.fields import Field, change
from ctrlruntime.project.kustomize.resources import Id, Kind, Resource, Resources

__all__ = ["REFERENCES", "Reference", "follow_references"]


@dataclass(frozen=True, slots=True)
class Reference:
    """A field that holds the name of an object of a kind, or a map (a list of maps) of its name and namespace."""

    to: Kind
    place: Field


def follow_references(resources: Resources, references: Sequence[Reference]) -> None:
    """Write the names of now into every field that holds a name of before. Raises: ConfigError when two objects may be meant."""
    for referrer in resources:
        reachable = _reachable(referrer, resources)
        for reference in references:
            if reference.place.kind.selects(referrer.original.kind):
                place = Field(reference.place.path, referrer.kind)
                change(referrer, place, _Follow(referrer, reference, reachable))


def _reachable(referrer: Resource, resources: Resources) -> list[Resource]:
    """The objects that one may refer to: those of its namespace, those of none, and any account that its subjects name."""
    here = referrer.id.effective_namespace
    if not here:
        return list(resources)
    subjects = referrer.tree.get("subjects") if "RoleBinding" in referrer.kind.kind else None
    wanted = {str(each.get("namespace") or "") for each in subjects or () if isinstance(each, dict)}
    return [
        each
        for each in resources
        if each.id.effective_namespace in {"", here}
        or (each.kind.kind == "ServiceAccount" and each.namespace in wanted)
    ]


class _Follow:
    """Gives the value of one field of one object after the renaming."""

    def __init__(self, referrer: Resource, reference: Reference, reachable: Sequence[Resource]) -> None:
        self._referrer = referrer
        self._reference = reference
        self._reachable = reachable

    def __call__(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self(item) for item in value]
        if isinstance(value, dict):
            return self._map(value)
        found = self._referral(str(value), self._reachable, lambda each: (each.name,)) if value is not None else None
        return value if found is None else found.name

    def _map(self, value: dict[str, Any]) -> dict[str, Any]:
        if "name" not in value:
            raise ConfigError(f"{self._referrer.origin}: {self._referrer.id}: {self._reference.place.path} has no name")
        candidates = self._reachable
        if "namespace" in value:
            candidates = _of_namespace(candidates, str(value["namespace"]))
        found = self._referral(str(value["name"]), candidates, lambda each: (each.name, each.namespace))
        if found is None:
            return value
        return {**value, "name": found.name, **({"namespace": found.namespace} if found.namespace else {})}

    def _referral(
        self, name: str, candidates: Sequence[Resource], what: Callable[[Resource], tuple[str, ...]]
    ) -> Resource | None:
        """The object of that name; several are one when what is taken of them is the same."""
        found = [each for each in candidates if any(self._named(one, name) for one in _before(each))]
        found = [each for each in found if self._same_namespace(each)]
        if len(found) > 1:
            found = [each for each in found if _alike(each, self._referrer)]
        if len({what(each) for each in found}) > 1:
            names = ", ".join(str(each.id) for each in found)
            raise ConfigError(
                f"{self._referrer.id}: {self._reference.place.path} is {name!r}, which matches several objects: {names}. Rename them"
            )
        return found[0] if found else None

    def _named(self, one: Id, name: str) -> bool:
        return one.name == name and self._reference.to.selects(one.kind) and self._role(one.kind)

    def _role(self, kind: Kind) -> bool:
        if not self._reference.place.path.endswith("roleRef/name"):
            return True
        said = self._referrer.tree.get("roleRef") or {}
        return "kind" not in said or Kind(str(said.get("apiGroup") or ""), "", str(said["kind"])).selects(kind)

    def _same_namespace(self, each: Resource) -> bool:
        here, there = self._referrer.id.effective_namespace, each.id.effective_namespace
        return not here or not there or each.kind.kind == "ServiceAccount" or here == there


def _before(each: Resource) -> list[Id]:
    return each.previous


def _of_namespace(candidates: Sequence[Resource], namespace: str) -> list[Resource]:
    """The objects that were in this namespace at first, else those that are there now."""
    first = [each for each in candidates if each.original.effective_namespace == namespace]
    return first or [each for each in candidates if each.id.effective_namespace == namespace]


def _alike(one: Resource, other: Resource) -> bool:
    """Tell whether two objects were renamed by the same kustomizations, as far as both were."""
    pairs = ((one.prefixes, other.prefixes), (one.suffixes, other.suffixes))
    return all(_same_ending(left, right) for left, right in pairs)


def _same_ending(left: list[str], right: list[str]) -> bool:
    common = min(len(left), len(right))
    return left[len(left) - common :] == right[len(right) - common :]


_RBAC: Final = "rbac.authorization.k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"
_TEMPLATE: Final = "spec/template/spec"
_POD_SPECS: Final = (
    (Kind(version="v1", kind="Pod"), "spec"),
    (Kind(kind="PodTemplate"), "template/spec"),
    *((Kind(kind=kind), _TEMPLATE) for kind in ("Deployment", "ReplicaSet", "DaemonSet", "StatefulSet", "Job")),
    (Kind(kind="CronJob"), f"spec/jobTemplate/{_TEMPLATE}"),
)
_RUNNING: Final = (  # the Pod specs in which kustomize follows accounts, claims and priorities
    (Kind(kind="Pod"), "spec"),
    *(
        (Kind(kind=kind), _TEMPLATE)
        for kind in ("StatefulSet", "Deployment", "ReplicationController", "Job", "DaemonSet")
    ),
    (Kind(kind="CronJob"), f"spec/jobTemplate/{_TEMPLATE}"),
)


def _everywhere(to: Kind, specs: Sequence[tuple[Kind, str]], *paths: str) -> Iterator[Reference]:
    for kind, spec in specs:
        yield from (Reference(to, Field(f"{spec}/{path}", kind)) for path in paths)


def _in(to: Kind, kind: str, *paths: str, group: str = "") -> Iterator[Reference]:
    yield from (Reference(to, Field(path, Kind(group, kind=kind))) for path in paths)


def _settings(to: Kind, word: str, volume: str) -> Iterator[Reference]:
    """Where Pods name a ConfigMap or a Secret."""
    paths = [f"volumes/{volume}", f"volumes/projected/sources/{word}/name"]
    for containers in ("containers", "initContainers"):
        paths += [f"{containers}/env/valueFrom/{word}KeyRef/name", f"{containers}/envFrom/{word}Ref/name"]
    yield from _everywhere(to, _POD_SPECS, *paths)
    yield from _in(to, "Role", "rules/resourceNames")
    yield from _in(to, "ClusterRole", "rules/resourceNames")


def _known() -> Iterator[Reference]:
    for kind in ("Deployment", "ReplicationController", "ReplicaSet", "StatefulSet"):
        yield from _in(Kind(kind=kind), "HorizontalPodAutoscaler", "spec/scaleTargetRef/name")
    to = Kind(version="v1", kind="ConfigMap")
    yield from _settings(to, "configMap", "configMap/name")
    yield from _in(to, "Node", "spec/configSource/configMap")
    yield from _in(to, "Ingress", r"metadata/annotations/nginx.ingress.kubernetes.io\/fastcgi-params-configmap")
    yield from _secrets(Kind(version="v1", kind="Secret"))
    yield from _services(Kind(version="v1", kind="Service"))
    to = Kind(_RBAC, kind="Role")
    yield from _in(to, "RoleBinding", "roleRef/name", group=_RBAC)
    to = Kind(_RBAC, kind="ClusterRole")
    for kind in ("RoleBinding", "ClusterRoleBinding"):
        yield from _in(to, kind, "roleRef/name", group=_RBAC)
    to = Kind(version="v1", kind="ServiceAccount")
    for kind in ("RoleBinding", "ClusterRoleBinding"):
        yield from _in(to, kind, "subjects", group=_RBAC)
    yield from _everywhere(to, _RUNNING, "serviceAccountName")
    to = Kind(version="v1", kind="PersistentVolumeClaim")
    yield from _everywhere(to, _RUNNING, "volumes/persistentVolumeClaim/claimName")
    to = Kind(version="v1", kind="PersistentVolume")
    yield from _in(to, "PersistentVolumeClaim", "spec/volumeName")
    yield from _in(to, "ClusterRole", "rules/resourceNames")
    to = Kind("storage.k8s.io", "v1", "StorageClass")
    yield from _in(to, "PersistentVolume", "spec/storageClassName")
    yield from _in(to, "PersistentVolumeClaim", "spec/storageClassName")
    yield from _in(to, "StatefulSet", "spec/volumeClaimTemplates/spec/storageClassName")
    yield from _everywhere(Kind("scheduling.k8s.io", "v1", "PriorityClass"), _RUNNING, "priorityClassName")


def _secrets(to: Kind) -> Iterator[Reference]:
    yield from _settings(to, "secret", "secret/secretName")
    yield from _everywhere(to, _POD_SPECS, "imagePullSecrets/name")
    yield from _in(to, "Ingress", "spec/tls/secretName", r"metadata/annotations/ingress.kubernetes.io\/auth-secret")
    for name in ("auth-secret", "auth-tls-secret"):
        yield from _in(to, "Ingress", rf"metadata/annotations/nginx.ingress.kubernetes.io\/{name}")
    yield from _in(to, "ServiceAccount", "imagePullSecrets/name")
    names = ("secretName", "adminSecretName", "userSecretName", "secretRef")
    yield from _in(to, "StorageClass", *(f"parameters/{name}" for name in names))
    yield from _in(to, "PersistentVolume", "spec/azureFile/secretName")


def _services(to: Kind) -> Iterator[Reference]:
    yield from _in(to, "StatefulSet", "spec/serviceName", group="apps")
    yield from _in(to, "Ingress", "spec/rules/http/paths/backend/serviceName", "spec/backend/serviceName")
    yield from _in(to, "Ingress", "spec/rules/http/paths/backend/service/name", "spec/defaultBackend/service/name")
    yield from _in(to, "APIService", "spec/service/name", group="apiregistration.k8s.io")
    for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"):
        yield from _in(to, kind, "webhooks/clientConfig/service", group=_ADMISSION)
    to = Kind(_ADMISSION, kind="ValidatingAdmissionPolicy")
    yield from _in(to, "ValidatingAdmissionPolicyBinding", "spec/policyName", group=_ADMISSION)


REFERENCES: Final = tuple(_known())
"""The references that kustomize follows by itself."""

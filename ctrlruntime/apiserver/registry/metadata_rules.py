"""How often kube-apiserver looks at metadata: a mistake in it is a cause each time.

Before an update every kind's metadata goes through apimachinery's ValidateObjectMetaAccessor and ValidateObjectMetaAccessorUpdate
(apiserver's pkg/registry/rest/update.go), then through what the kind's own strategy calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ctrlruntime.apiserver.registry.resources import Resource
from ctrlruntime.errors import StatusCause
from ctrlruntime.schema.metadata import change_causes, finalizer_causes, validate_metadata
from ctrlruntime.schema.trees import Document

_USUAL: Final = "U"
_CALLS: Final[Mapping[str, str]] = {
    "": "events poddisruptionbudgets.policy",
    "u": "customresourcedefinitions.apiextensions.k8s.io leases.coordination.k8s.io",
    "m": "mutatingadmissionpolicies.admissionregistration.k8s.io mutatingadmissionpolicybindings.admissionregistration.k8s.io"
    " mutatingwebhookconfigurations.admissionregistration.k8s.io validatingadmissionpolicies.admissionregistration.k8s.io"
    " validatingadmissionpolicybindings.admissionregistration.k8s.io"
    " validatingwebhookconfigurations.admissionregistration.k8s.io",
    "mu": "runtimeclasses.node.k8s.io",
    "um": "apiservices.apiregistration.k8s.io",
    "M": "csinodes.storage.k8s.io endpointslices.discovery.k8s.io flowschemas.flowcontrol.apiserver.k8s.io limitranges"
    " prioritylevelconfigurations.flowcontrol.apiserver.k8s.io volumeattachments.storage.k8s.io",
    "MM": "persistentvolumes",
    "MU": "certificatesigningrequests.certificates.k8s.io clusterrolebindings.rbac.authorization.k8s.io"
    " clusterroles.rbac.authorization.k8s.io csistoragecapacities.storage.k8s.io deviceclasses.resource.k8s.io"
    " ipaddresses.networking.k8s.io jobs.batch namespaces nodes resourceclaims.resource.k8s.io"
    " resourceclaimtemplates.resource.k8s.io rolebindings.rbac.authorization.k8s.io roles.rbac.authorization.k8s.io"
    " storageclasses.storage.k8s.io",
    "UM": "configmaps controllerrevisions.apps endpoints ingressclasses.networking.k8s.io ingresses.networking.k8s.io"
    " persistentvolumeclaims pods secrets serviceaccounts volumeattributesclasses.storage.k8s.io",
}
"""By what the strategy calls: M for ValidateObjectMeta, U for ValidateObjectMetaUpdate. Small letters are those of apimachinery;
the others are those of Kubernetes' core group, which refuse a finalizer without a domain, too.
"""
_OF: Final = {resource: calls for calls, resources in _CALLS.items() for resource in resources.split()}
_OF_PARTS: Final[Mapping[str, str]] = {
    "certificatesigningrequests.certificates.k8s.io": "MU",
    "cronjobs.batch": "",
    "customresourcedefinitions.apiextensions.k8s.io": "u",
    "poddisruptionbudgets.policy": "",
}
"""The same for the status and other parts of a kind."""


def metadata_causes(resource: Resource, document: Document, old: Document | None, part: str) -> Iterator[StatusCause]:
    """Yield what is wrong with the metadata of an object that is about to be stored, as often as kube-apiserver says it."""
    metadata: Document = document["metadata"]
    calls = calls_of(resource, part)
    calls = ("M" if calls.isupper() else "m") if old is None else f"mu{calls}"
    for call in calls:
        if call in "mM":
            yield from validate_metadata(resource.group, resource.kind, metadata)
        elif old is not None:
            yield from change_causes(metadata, old["metadata"])
        if call.isupper():
            yield from finalizer_causes(metadata)


def is_judged_late(resource: Resource) -> bool:
    """Tell whether nothing is said of the metadata of a new object that has other mistakes: its strategy does not look at it."""
    return not resource.is_custom and not calls_of(resource, "")


def repeated_identity(resource: Resource, part: str) -> int:
    """Return how often a changed uid or deletion time is said."""
    return 1 + calls_of(resource, part).upper().count("U")


def calls_of(resource: Resource, part: str) -> str:
    """Return the letters of what the strategy of a kind, or of a part of it, calls before an update."""
    if resource.is_custom:
        return "u"
    name = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
    return (_OF_PARTS if part else _OF).get(name, _USUAL)

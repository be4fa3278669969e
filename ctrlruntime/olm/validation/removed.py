"""Where a bundle uses an API that Kubernetes no longer serves.

A use is an error if the bundle must run on a version without the API. The versions are the value `k8s-version`, the newest Kubernetes it must
run on, and `spec.minKubeVersion`. Otherwise it is a warning: the bundle does not work from that version on.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final, NamedTuple

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.errors import ConfigError
from ctrlruntime.olm import semver
from ctrlruntime.olm.finding import Finding
from ctrlruntime.olm.validation.rules import csv_rules, role_rules
from ctrlruntime.olm.validation.subject import Subject, about

__all__ = ["REMOVED", "Removal", "run"]

_VALUE: Final = "k8s-version"


class Removal(NamedTuple):
    """The removal of an API: `since` is the first minor version of Kubernetes 1 without it."""

    since: int
    instead: str
    """The apiVersion that replaces it; empty without one."""

    def __str__(self) -> str:
        advice = f". Use {self.instead}" if self.instead else ", and has no replacement"
        return f"is not served since Kubernetes 1.{self.since}{advice}"


# The first minor version without them, the apiVersion, its kinds, and the apiVersion that replaces them, without a group that is the same.
_TABLE: Final = (
    (16, "extensions/v1beta1", "NetworkPolicy", "networking.k8s.io/v1"),
    (16, "extensions/v1beta1", "DaemonSet Deployment ReplicaSet", "apps/v1"),
    (16, "extensions/v1beta1", "PodSecurityPolicy", ""),
    (16, "apps/v1beta1", "Deployment StatefulSet", "apps/v1"),
    (16, "apps/v1beta2", "DaemonSet Deployment ReplicaSet StatefulSet", "apps/v1"),
    (22, "admissionregistration.k8s.io/v1beta1", "MutatingWebhookConfiguration ValidatingWebhookConfiguration", "v1"),
    (22, "apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", "v1"),
    (22, "apiregistration.k8s.io/v1beta1", "APIService", "v1"),
    (22, "authentication.k8s.io/v1beta1", "TokenReview", "v1"),
    (22, "authorization.k8s.io/v1beta1", "LocalSubjectAccessReview SelfSubjectAccessReview", "v1"),
    (22, "authorization.k8s.io/v1beta1", "SelfSubjectRulesReview SubjectAccessReview", "v1"),
    (22, "certificates.k8s.io/v1beta1", "CertificateSigningRequest", "v1"),
    (22, "coordination.k8s.io/v1beta1", "Lease", "v1"),
    (22, "extensions/v1beta1", "Ingress", "networking.k8s.io/v1"),
    (22, "networking.k8s.io/v1beta1", "Ingress IngressClass", "v1"),
    (22, "rbac.authorization.k8s.io/v1beta1", "ClusterRole ClusterRoleBinding Role RoleBinding", "v1"),
    (22, "scheduling.k8s.io/v1beta1", "PriorityClass", "v1"),
    (22, "storage.k8s.io/v1beta1", "CSIDriver CSINode StorageClass VolumeAttachment", "v1"),
    (25, "autoscaling/v2beta1", "HorizontalPodAutoscaler", "v2"),
    (25, "batch/v1beta1", "CronJob", "v1"),
    (25, "discovery.k8s.io/v1beta1", "EndpointSlice", "v1"),
    (25, "events.k8s.io/v1beta1", "Event", "v1"),
    (25, "node.k8s.io/v1beta1", "RuntimeClass", "v1"),
    (25, "policy/v1beta1", "PodDisruptionBudget", "v1"),
    (25, "policy/v1beta1", "PodSecurityPolicy", ""),
    (26, "autoscaling/v2beta2", "HorizontalPodAutoscaler", "v2"),
    (26, "flowcontrol.apiserver.k8s.io/v1beta1", "FlowSchema PriorityLevelConfiguration", "v1"),
    (27, "storage.k8s.io/v1beta1", "CSIStorageCapacity", "v1"),
    (29, "flowcontrol.apiserver.k8s.io/v1beta2", "FlowSchema PriorityLevelConfiguration", "v1"),
    (32, "flowcontrol.apiserver.k8s.io/v1beta3", "FlowSchema PriorityLevelConfiguration", "v1"),
)


def _replacement(removed: str, instead: str) -> str:
    return instead if "/" in instead or not instead else f"{removed.partition('/')[0]}/{instead}"


REMOVED: Final = {
    GroupVersionKind.parse(api_version, kind): Removal(since, _replacement(api_version, instead))
    for since, api_version, kinds, instead in _TABLE
    for kind in kinds.split()
}
"""Every kind that Kubernetes has stopped serving in a version of its API, since 1.16."""


def run(subject: Subject) -> Iterator[Finding]:
    """Yield each use of such an API. Raises: ConfigError if `k8s-version` is not a version."""
    newest = _newest(subject)
    for each in subject.bundle.objects:
        if removal := REMOVED.get(each.gvk):
            yield about(_code(removal, newest), each, f"{each.gvk.api_version} {removal}", "apiVersion")
    for path, gvk in _fields(subject):
        if removal := REMOVED.get(gvk):
            text = f"{gvk.kind} of {gvk.api_version} {removal}"
            yield about(_code(removal, newest), subject.bundle.csv, text, path)
    # Only a rule that names the resource counts; one with * does not.
    for placed in chain(csv_rules(subject), role_rules(subject)):
        groups, resources = placed.rule.api_groups, placed.rule.resources
        if "podsecuritypolicies" in resources and not {"policy", "extensions"}.isdisjoint(groups):
            text = "Kubernetes 1.25 removed PodSecurityPolicies. Remove podsecuritypolicies"
            yield about("api-removed-permission", placed.found, text, placed.path)


def _code(removal: Removal, newest: int) -> str:
    return "api-removed" if newest >= removal.since else "api-removed-later"


def _fields(subject: Subject) -> Iterator[tuple[str, GroupVersionKind]]:
    """Yield the kinds in the ClusterServiceVersion: resources that it lists, and native APIs that it requires."""
    if subject.csv is None:
        return
    definitions = subject.csv.spec.customresourcedefinitions
    for name, descriptions in (("owned", definitions.owned), ("required", definitions.required)):
        for index, description in enumerate(descriptions):
            for number, resource in enumerate(description.resources):
                path = f"spec.customresourcedefinitions.{name}[{index}].resources[{number}]"
                yield path, GroupVersionKind.parse(resource.version, resource.kind)
    for index, api in enumerate(subject.csv.spec.native_apis):
        yield f"spec.nativeAPIs[{index}]", GroupVersionKind(api.group, api.version, api.kind)


def _newest(subject: Subject) -> int:
    """Return the newest minor version of Kubernetes that the bundle is known to be for; -1 if none is known."""
    value = subject.values.get(_VALUE, "")
    asked = _minor(value)
    if value and asked is None:
        raise ConfigError(f"invalid {_VALUE} {value!r}. Write a Kubernetes version such as 1.32 or 1.32.0")
    least = _minor(subject.csv.spec.min_kube_version if subject.csv else "")
    return max(-1 if each is None else each for each in (asked, least))


def _minor(text: str) -> int | None:
    """Return the minor version of `1.32`, `v1.32` or `1.32.0`; None for what is not a version of Kubernetes 1."""
    numbers = text.strip().removeprefix("v")
    found = semver.parse(f"{numbers}.0" if numbers.count(".") == 1 else numbers)
    return found.numbers[1] if found is not None and found.numbers[0] == 1 else None

"""Good practices, and objects and permissions that can disturb the whole cluster."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

from ctrlruntime.olm import semver
from ctrlruntime.olm.api import ClusterServiceVersion
from ctrlruntime.olm.bundle import CHANNELS, DEFAULT_CHANNEL, Bundle
from ctrlruntime.olm.finding import Finding
from ctrlruntime.olm.release import package_of
from ctrlruntime.olm.validation.platforms import DEPLOYMENTS, deployments
from ctrlruntime.olm.validation.rules import PlacedRule, csv_rules, role_rules
from ctrlruntime.olm.validation.subject import Problem, Subject, about, of_csv

__all__ = ["objects", "run"]

_CHANNELS: Final = ("candidate", "fast", "stable")
_REQUESTED: Final = ("cpu", "memory")

# Those of OpenShift 4; for a cluster without one of them, the check does no harm.
_DEFAULT_SCCS: Final = frozenset((
    "anyuid", "hostaccess", "hostmount-anyuid", "hostnetwork", "hostnetwork-v2", "node-exporter", "nonroot", "nonroot-v2",
    "privileged", "restricted", "restricted-v2",
))  # fmt: skip


@of_csv
def run(csv: ClusterServiceVersion, subject: Subject) -> Iterator[Problem | Finding]:
    """Yield where the operator does not follow good practices."""
    yield from _deployments(csv)
    definitions = csv.spec.customresourcedefinitions
    for name, descriptions in (("owned", definitions.owned), ("required", definitions.required)):
        for index, each in enumerate(descriptions):
            if not each.description:
                path = f"spec.customresourcedefinitions.{name}[{index}].description"
                text = f"is missing. Describe {each.kind}; for an owned kind, in the docstring of its class"
                yield "practice-crd-description-missing", path, text
    yield from _channels(subject.bundle)
    for rule in csv_rules(subject):
        if rule.covers("apiextensions.k8s.io", "customresourcedefinitions", ("create", "patch")):
            text = "OLM installs and upgrades CRDs. Remove create and patch, and add the CRDs to the bundle"
            yield "practice-crd-permission", rule.path, text
    if not _names_version(csv):
        text = f"{csv.metadata.name!r} has no version. Name it like kettle.v1.2.0"
        yield "practice-csv-name", "metadata.name", text


def _deployments(csv: ClusterServiceVersion) -> Iterator[Problem]:
    made = deployments(csv)
    if not made:
        text = "has no Deployment, so OLM would install nothing that runs. Add one"
        yield "practice-deployment-missing", DEPLOYMENTS, text
    for index, deployment in enumerate(made):
        for number, container in enumerate(deployment.spec.template.spec.containers):
            lacking = [name for name in _REQUESTED if name not in container.resources.requests]
            if lacking:
                text = f"container {container.name} requests no {' and no '.join(lacking)}, so a quota can reject its pods. Set requests"
                path = f"{DEPLOYMENTS}[{index}].spec.template.spec.containers[{number}].resources.requests"
                yield "practice-requests-missing", path, text


def _channels(bundle: Bundle) -> Iterator[Finding]:
    for name in dict.fromkeys((*bundle.channels, bundle.default_channel)):
        if name and not name.startswith(_CHANNELS):
            text = f"the name of the channel {name} does not show its maturity. Start it with {' or '.join(_CHANNELS)}"
            path = f"annotations.{CHANNELS if name in bundle.channels else DEFAULT_CHANNEL}"
            yield about("practice-channel-name", bundle.annotations_file, text, path)


def _names_version(csv: ClusterServiceVersion) -> bool:
    """Tell whether a name is PACKAGE.vVERSION, or the required name of a release. Another check compares the version."""
    name, release = csv.metadata.name, csv.spec.release
    package = package_of(name)
    version = name.removeprefix(package)
    if release and version == f"-v{csv.spec.version}-{release}":
        return True
    return bool(package) and version.startswith(".v") and semver.parse(version.removeprefix(".v")) is not None


def objects(subject: Subject) -> Iterator[Finding]:
    """Yield the objects and permissions that can disturb the whole cluster."""
    for each in subject.bundle.of_kind("policy", "PodDisruptionBudget"):
        if each.spec.get("maxUnavailable") in (0, "0", "0%"):
            text = "no node can be drained while its pods run. Allow at least 1"
            yield about("pdb-max-unavailable-zero", each, text, "spec.maxUnavailable")
        if each.spec.get("minAvailable") == "100%":
            text = "no node can be drained while its pods run. Set less than 100%"
            yield about("pdb-min-available-all", each, text, "spec.minAvailable")
    for each in subject.bundle.of_kind("scheduling.k8s.io", "PriorityClass"):
        if each.document.get("globalDefault") is True:
            text = "pods of other operators would get this priority. Remove globalDefault"
            yield about("priority-class-global-default", each, text, "globalDefault")
    for rule in chain(csv_rules(subject), role_rules(subject)):
        yield from _rule(rule)


def _rule(each: PlacedRule) -> Iterator[Finding]:
    if each.covers("policy", "poddisruptionbudgets", ("create", "update", "patch")):
        text = "the operator can write PodDisruptionBudgets, which can block the draining of nodes. Allow at least 1 unavailable pod in each"
        yield about("rbac-writes-pdbs", each.found, text, each.path)
    if each.covers("security.openshift.io", "securitycontextconstraints", ("update", "patch", "delete")):
        # A rule without names is for each of them.
        named = _DEFAULT_SCCS.intersection(each.rule.resource_names) if each.rule.resource_names else _DEFAULT_SCCS
        if named:
            text = f"{', '.join(sorted(named))} belong to OpenShift. List in resourceNames only those that the operator creates"
            yield about("rbac-modifies-default-sccs", each.found, text, each.path)

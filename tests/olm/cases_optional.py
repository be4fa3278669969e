"""The table of the optional checks: one change of the good bundle for each, and the validator under which exactly it fails.

`{folder}` in a value stands for the bundle's folder.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from bundles import (
    ANNOTATIONS,
    IMAGE,
    PREFIX,
    ROLE,
    SIDE_IMAGE,
    Case,
    Change,
    Files,
    add,
    annotation,
    csv,
    csv_annotation,
    error,
    put,
    several,
    warning,
)

PLATFORMS = "platforms.json"
PNG = "iVBORw0KGgoAAAANSUhEUg=="
OWNED = "spec.customresourcedefinitions.owned.0"
RULES = "spec.install.spec.clusterPermissions.0.rules.0"
CONTAINER = "spec.install.spec.deployments.0.spec.template.spec.containers.0"
TERM = (
    "spec.install.spec.deployments.0.spec.template.spec.affinity.nodeAffinity"
    ".requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms.0.matchExpressions"
)


def _under(name: str, *cases: Case) -> tuple[Case, ...]:
    """Select a validator in each case, beside the values it has."""
    return tuple(replace(each, select=(f"name={name}",)) for each in cases)


def _rule(group: str, resource: str, *verbs: str, **more: Any) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs), **more}


def _object(api_version: str, kind: str, **rest: Any) -> Change:
    """Add an object of another kind."""
    return add("manifests/other.yaml", {"apiVersion": api_version, "kind": kind, "metadata": {"name": "other"}, **rest})


# operatorhubv2: what is shown.

HUB = _under(
    "operatorhubv2",
    error("hub-provider-missing", csv("spec.provider.name"), "name", path="spec.provider.name"),
    error("hub-provider-missing", csv("spec.provider"), "provider", path="spec.provider.name"),
    error("hub-maintainer-incomplete", csv("spec.maintainers.0.name"), "name", path="spec.maintainers[0]"),
    error("hub-maintainer-incomplete", csv("spec.maintainers.0.email", ""), "email", path="spec.maintainers[0]"),
    error(
        "hub-maintainer-email",
        csv("spec.maintainers.0.email", "kitchen"),
        "no-domain",
        path="spec.maintainers[0].email",
    ),
    error(
        "hub-maintainer-email",
        csv("spec.maintainers.0.email", "kitchen@"),
        "empty-domain",
        path="spec.maintainers[0].email",
    ),
    error(
        "hub-maintainer-email",
        csv("spec.maintainers.0.email", "the kitchen@example.com"),
        "space",
        path="spec.maintainers[0].email",
    ),
    error("hub-link-incomplete", csv("spec.links.0.name"), "name", path="spec.links[0]"),
    error("hub-link-incomplete", csv("spec.links.0.url", ""), "url", path="spec.links[0]"),
    error("hub-link-url", csv("spec.links.0.url", "example.com/kettle"), "no-scheme", path="spec.links[0].url"),
    error("hub-link-url", csv("spec.links.0.url", "https:///kettle"), "no-host", path="spec.links[0].url"),
    error("hub-link-url", csv("spec.links.0.url", "https://example.com/my kettle"), "space", path="spec.links[0].url"),
    error("hub-link-url", csv("spec.links.0.url", "https://[::1/kettle"), "broken-host", path="spec.links[0].url"),
    error("hub-version-zero", csv("spec.version"), "missing", path="spec.version"),
    error(
        "hub-version-zero",
        several(csv("spec.version", "0.0.0"), csv("metadata.name", "kettle.v0.0.0")),
        "zero",
        path="spec.version",
        object="ClusterServiceVersion/kettle.v0.0.0",
    ),
    warning("hub-icon-missing", csv("spec.icon"), "missing", path="spec.icon"),
    warning("hub-icon-missing", csv("spec.icon", []), "empty", path="spec.icon"),
    error(
        "hub-icon-several",
        lambda files: files.csv["spec"]["icon"].append(files.csv["spec"]["icon"][0]),
        path="spec.icon",
    ),
    error("hub-icon-incomplete", csv("spec.icon.0.base64data", ""), "data", path="spec.icon[0]"),
    error("hub-icon-incomplete", csv("spec.icon.0.mediatype"), "mediatype", path="spec.icon[0]"),
    error("hub-icon-media-type", csv("spec.icon.0.mediatype", "image/webp"), path="spec.icon[0].mediatype"),
    error("hub-icon-not-base64", csv("spec.icon.0.base64data", "<svg/>"), path="spec.icon[0].base64data"),
    warning("hub-icon-content", csv("spec.icon.0.base64data", PNG), path="spec.icon[0].base64data"),
)

SHOWN = (
    *_under(
        "capabilities",
        error(
            "capability-level",
            csv_annotation("capabilities", "Full lifecycle"),
            "case",
            path="metadata.annotations.capabilities",
        ),
        error(
            "capability-level", csv_annotation("capabilities", ""), "empty", path="metadata.annotations.capabilities"
        ),
    ),
    *_under(
        "categories",
        error("category-unknown", csv_annotation("categories", "Kitchen"), path="metadata.annotations.categories"),
        error(
            "category-unknown",
            csv_annotation("categories", "Database, Kitchen"),
            "one-of-two",
            path="metadata.annotations.categories",
        ),
    ),
)


# alpha-deprecated-apis: what Kubernetes no longer serves.


def _before(version: str, *changes: Change) -> Change:
    return several(csv("spec.minKubeVersion", version), *changes)


_OLD_BUDGET = _object("policy/v1beta1", "PodDisruptionBudget", spec={"minAvailable": 1})
_OLD_CRON_JOB = csv(f"{OWNED}.resources", [{"kind": "CronJob", "name": "", "version": "batch/v1beta1"}])
_OLD_NATIVE = csv("spec.nativeAPIs", [{"group": "storage.k8s.io", "version": "v1beta1", "kind": "CSIStorageCapacity"}])
_PSP = _rule("policy", "podsecuritypolicies", "use")

REMOVED = _under(
    "alpha-deprecated-apis",
    error(
        "api-removed",
        _OLD_BUDGET,
        "minKubeVersion",
        path="apiVersion",
        file="manifests/other.yaml",
        object="PodDisruptionBudget/other",
    ),
    error(
        "api-removed",
        _before("1.20.0", _OLD_BUDGET),
        "value",
        values={"k8s-version": "1.25"},
        path="apiVersion",
        file="manifests/other.yaml",
        object="PodDisruptionBudget/other",
    ),
    error(
        "api-removed",
        _before("1.20.0", _OLD_BUDGET),
        "whole-value",
        values={"k8s-version": "v1.25.3"},
        path="apiVersion",
        file="manifests/other.yaml",
        object="PodDisruptionBudget/other",
    ),
    error("api-removed", _OLD_CRON_JOB, "resource", path="spec.customresourcedefinitions.owned[0].resources[0]"),
    error("api-removed", _OLD_NATIVE, "native", path="spec.nativeAPIs[0]"),
    error(
        "api-removed",
        put(ROLE, "apiVersion", "rbac.authorization.k8s.io/v1beta1"),
        "role",
        path="apiVersion",
        file=ROLE,
        object="ClusterRole/kettle-viewer",
    ),
    warning(
        "api-removed-later",
        _before("1.24.9", _OLD_BUDGET),
        "minKubeVersion",
        path="apiVersion",
        file="manifests/other.yaml",
        object="PodDisruptionBudget/other",
    ),
    warning(
        "api-removed-later",
        _before("1.20.0", _OLD_BUDGET),
        "value",
        values={"k8s-version": "1.24"},
        path="apiVersion",
        file="manifests/other.yaml",
        object="PodDisruptionBudget/other",
    ),
    warning(
        "api-removed-later",
        _before("1.24.0", _OLD_CRON_JOB),
        "resource",
        path="spec.customresourcedefinitions.owned[0].resources[0]",
    ),
    warning(
        "api-removed-later", several(csv("spec.minKubeVersion"), _OLD_NATIVE), "no-version", path="spec.nativeAPIs[0]"
    ),
    warning(
        "api-removed-later",
        _object("flowcontrol.apiserver.k8s.io/v1beta3", "FlowSchema"),
        "flow-schema",
        values={"k8s-version": "1.31"},
        path="apiVersion",
        file="manifests/other.yaml",
        object="FlowSchema/other",
    ),
    warning("api-removed-permission", csv(RULES, _PSP), "csv", path="spec.install.spec.clusterPermissions[0].rules[0]"),
    warning(
        "api-removed-permission",
        put(ROLE, "rules.0", _PSP),
        "role",
        path="rules[0]",
        file=ROLE,
        object="ClusterRole/kettle-viewer",
    ),
)

PRACTICES = _under(
    "good-practices",
    error(
        "practice-deployment-missing",
        csv("spec.install.spec.deployments", []),
        "empty",
        path="spec.install.spec.deployments",
    ),
    error("practice-deployment-missing", csv("spec.install.spec"), "no-strategy", path="spec.install.spec.deployments"),
    warning(
        "practice-requests-missing",
        csv(f"{CONTAINER}.resources"),
        "both",
        path="spec.install.spec.deployments[0].spec.template.spec.containers[0].resources.requests",
    ),
    warning(
        "practice-requests-missing",
        csv(f"{CONTAINER}.resources.requests.memory"),
        "memory",
        path="spec.install.spec.deployments[0].spec.template.spec.containers[0].resources.requests",
    ),
    warning(
        "practice-crd-description-missing",
        csv(f"{OWNED}.description"),
        "owned",
        path="spec.customresourcedefinitions.owned[0].description",
    ),
    warning(
        "practice-crd-description-missing",
        csv(
            "spec.customresourcedefinitions.required",
            [{"name": "taps.water.example.com", "version": "v1", "kind": "Tap"}],
        ),
        "required",
        path="spec.customresourcedefinitions.required[0].description",
    ),
    warning(
        "practice-channel-name",
        annotation("channels.v1", "stable,alpha"),
        "channel",
        path=f"annotations.{PREFIX}.channels.v1",
        file=ANNOTATIONS,
    ),
    warning(
        "practice-channel-name",
        lambda files: files.annotations.update({f"{PREFIX}.channel.default.v1": "beta"}),
        "default",
        path=f"annotations.{PREFIX}.channel.default.v1",
        file=ANNOTATIONS,
    ),
    warning(
        "practice-crd-permission",
        csv(RULES, _rule("apiextensions.k8s.io", "customresourcedefinitions", "create")),
        path="spec.install.spec.clusterPermissions[0].rules[0]",
    ),
    warning(
        "practice-crd-permission",
        csv(RULES, _rule("apiextensions.k8s.io", "*", "patch")),
        "patch-any",
        path="spec.install.spec.clusterPermissions[0].rules[0]",
    ),
    warning(
        "practice-crd-permission",
        csv(RULES, _rule("*", "*", "*")),
        "everything",
        path="spec.install.spec.clusterPermissions[0].rules[0]",
    ),
    warning(
        "practice-csv-name",
        csv("metadata.name", "kettle"),
        "no-version",
        path="metadata.name",
        object="ClusterServiceVersion/kettle",
    ),
    warning(
        "practice-csv-name",
        csv("metadata.name", "kettle.v1.2"),
        "short",
        path="metadata.name",
        object="ClusterServiceVersion/kettle.v1.2",
    ),
    warning(
        "practice-csv-name",
        csv("metadata.name", "kettle-1.2.0"),
        "hyphen",
        path="metadata.name",
        object="ClusterServiceVersion/kettle-1.2.0",
    ),
    warning(
        "practice-csv-name",
        csv("metadata.name", "kettle-v1.2.0-1"),
        "no-release",
        path="metadata.name",
        object="ClusterServiceVersion/kettle-v1.2.0-1",
    ),
    warning(
        "practice-csv-name",
        csv("metadata.name", "cool.vault"),
        "part-of-a-name",
        path="metadata.name",
        object="ClusterServiceVersion/cool.vault",
    ),
)


# multiarch: a file says what the images offer.


def _offer(manager: list[str], side: list[str], *changes: Change) -> Change:
    return several(add(PLATFORMS, json.dumps({IMAGE: manager, SIDE_IMAGE: side})), *changes)


_AMD, _ARM, _WINDOWS = "linux/amd64", "linux/arm64", "windows/amd64"
_LABEL_ARM = several(
    lambda files: files.csv["metadata"]["labels"].update({"operatorframework.io/arch.arm64": "supported"}),
    csv(f"{TERM}.0.values", ["amd64", "arm64"]),
)


def _drop_labels(files: Files) -> None:
    del files.csv["metadata"]["labels"]


MULTIARCH = tuple(
    replace(each, values={"image-platforms": f"{{folder}}/{PLATFORMS}"})
    for each in _under(
        "multiarch",
        error("multiarch-platform-not-offered", _offer([_AMD], [_ARM]), "related", path="spec.relatedImages[1].image"),
        error(
            "multiarch-platform-not-offered",
            _offer([_AMD], [_AMD, f"{_ARM}/v8"], _LABEL_ARM),
            "manager",
            path="spec.install.spec.deployments[0].spec.template.spec.containers[0].image",
        ),
        warning("multiarch-labels-missing", _offer([_AMD], [_AMD], _drop_labels), "amd64", path="metadata.labels"),
        warning(
            "multiarch-labels-missing", _offer([_AMD, _ARM], [_AMD, _ARM], _drop_labels), "more", path="metadata.labels"
        ),
        warning("multiarch-arch-label-missing", _offer([_AMD, f"{_ARM}/v8"], [_AMD, _ARM]), path="metadata.labels"),
        warning("multiarch-os-label-missing", _offer([_AMD, _WINDOWS], [_AMD, _WINDOWS]), path="metadata.labels"),
        warning("multiarch-image-behind", _offer([_AMD, _ARM], [_AMD]), path="spec.relatedImages[1].image"),
        warning(
            "multiarch-image-unknown", add(PLATFORMS, json.dumps({IMAGE: [_AMD]})), path="spec.relatedImages[1].image"
        ),
        warning(
            "multiarch-affinity-missing",
            _offer([_AMD], [_AMD], csv(f"{TERM}.0")),
            "no-expression",
            path="spec.install.spec.deployments[0].spec.template.spec.affinity",
        ),
        warning(
            "multiarch-affinity-missing",
            _offer([_AMD], [_AMD], csv(f"{TERM}.0.operator", "Exists")),
            "exists",
            path="spec.install.spec.deployments[0].spec.template.spec.affinity",
        ),
        warning(
            "multiarch-affinity-differs",
            _offer([_AMD], [_AMD], csv(f"{TERM}.0.values", ["amd64", "arm64"])),
            "arch",
            path="spec.install.spec.deployments[0].spec.template.spec.affinity",
        ),
        warning(
            "multiarch-affinity-differs",
            _offer([_AMD], [_AMD], csv(f"{TERM}.1.values", ["windows"])),
            "os",
            path="spec.install.spec.deployments[0].spec.template.spec.affinity",
        ),
    )
)


# object: what disturbs a cluster.


def _budget(**spec: Any) -> Change:
    return _object("policy/v1", "PodDisruptionBudget", spec={"selector": {}, **spec})


_SCC = ("security.openshift.io", "securitycontextconstraints")

OBJECTS = _under(
    "object",
    error(
        "pdb-max-unavailable-zero",
        _budget(maxUnavailable=0),
        "number",
        path="spec.maxUnavailable",
        file="manifests/other.yaml",
        object="PodDisruptionBudget/other",
    ),
    error(
        "pdb-max-unavailable-zero",
        _budget(maxUnavailable="0%"),
        "share",
        path="spec.maxUnavailable",
        file="manifests/other.yaml",
        object="PodDisruptionBudget/other",
    ),
    error(
        "pdb-min-available-all",
        _budget(minAvailable="100%"),
        path="spec.minAvailable",
        file="manifests/other.yaml",
        object="PodDisruptionBudget/other",
    ),
    error(
        "priority-class-global-default",
        _object("scheduling.k8s.io/v1", "PriorityClass", value=1, globalDefault=True),
        path="globalDefault",
        file="manifests/other.yaml",
        object="PriorityClass/other",
    ),
    warning(
        "rbac-writes-pdbs",
        put(ROLE, "rules.0", _rule("policy", "poddisruptionbudgets", "create")),
        "role",
        path="rules[0]",
        file=ROLE,
        object="ClusterRole/kettle-viewer",
    ),
    warning(
        "rbac-writes-pdbs",
        csv(RULES, _rule("policy", "poddisruptionbudgets", "*")),
        "csv",
        path="spec.install.spec.clusterPermissions[0].rules[0]",
    ),
    error(
        "rbac-modifies-default-sccs",
        put(ROLE, "rules.0", _rule(*_SCC, "patch", resourceNames=["mine", "restricted"])),
        "role",
        path="rules[0]",
        file=ROLE,
        object="ClusterRole/kettle-viewer",
    ),
    error(
        "rbac-modifies-default-sccs",
        csv(RULES, _rule(*_SCC, "update")),
        "csv-all",
        path="spec.install.spec.clusterPermissions[0].rules[0]",
    ),
    *(
        error(
            "rbac-modifies-default-sccs",
            put(ROLE, "rules.0", _rule(*_SCC, "patch", resourceNames=[name])),
            name,
            path="rules[0]",
            file=ROLE,
            object="ClusterRole/kettle-viewer",
        )
        for name in ("restricted-v2", "nonroot-v2", "hostnetwork-v2")
    ),
)

CASES: tuple[Case, ...] = (*HUB, *SHOWN, *REMOVED, *PRACTICES, *MULTIARCH, *OBJECTS)

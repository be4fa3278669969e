"""A bundle with nothing wrong, as data, and what makes one thing wrong in it: the tables of the checks are made of these.

`write(folder)` writes the good bundle; `write(folder, change)` calls `change` with its files first. A file is a document, a list of
documents, or the text it shall have.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from ctrlruntime.generate.text import dump
from ctrlruntime.olm.finding import Level

CSV = "manifests/kettle.clusterserviceversion.yaml"
THE_CSV = "ClusterServiceVersion/kettle.v1.2.0"
CRD = "manifests/kitchen.example.com_kettles.yaml"
SERVICE = "manifests/kettle-webhook-service_v1_service.yaml"
ROLE = "manifests/kettle-viewer_rbac.authorization.k8s.io_v1_clusterrole.yaml"
CONFIG_MAP = "manifests/kettle-recipes_v1_configmap.yaml"
ANNOTATIONS = "metadata/annotations.yaml"
DEPENDENCIES = "metadata/dependencies.yaml"
SCORECARD = "tests/scorecard/config.yaml"

PREFIX = "operators.operatorframework.io.bundle"
IMAGE = "registry.example.com/kitchen/kettle@sha256:" + "0123456789abcdef" * 4
SIDE_IMAGE = "registry.example.com/kitchen/steam@sha256:" + "fedcba9876543210" * 4
PICTURE = base64.b64encode(b"<svg xmlns='http://www.w3.org/2000/svg'/>").decode()

_MISSING: Any = object()


class Files(dict[str, Any]):
    """The files of a bundle by their path below its folder."""

    @property
    def csv(self) -> dict[str, Any]:
        return self[CSV]

    @property
    def crd(self) -> dict[str, Any]:
        return self[CRD]

    @property
    def annotations(self) -> dict[str, Any]:
        return self[ANNOTATIONS]["annotations"]

    @property
    def dependencies(self) -> list[Any]:
        return self[DEPENDENCIES]["dependencies"]

    @property
    def strategy(self) -> dict[str, Any]:
        """`spec.install.spec`."""
        return self.csv["spec"]["install"]["spec"]

    @property
    def pod(self) -> dict[str, Any]:
        """The spec of the pods of the only Deployment."""
        return self.strategy["deployments"][0]["spec"]["template"]["spec"]


Change: TypeAlias = Callable[[Files], object]


@dataclass(frozen=True)
class Case:
    """A change of the good bundle after which exactly one check fails."""

    code: str
    level: Level
    change: Change
    name: str = ""
    """What tells it from other cases of its code."""

    select: tuple[str, ...] = ()
    """Optional validators to run: `name=…`, `suite=…`."""

    values: Mapping[str, str] = field(default_factory=dict[str, str])
    path: str | tuple[str, ...] = ""
    """The field that is told of; several, when as many are."""

    file: str = CSV
    object: str | None = None
    """Kind and name. None is the ClusterServiceVersion, if the file is its, and no object for another."""

    @property
    def places(self) -> set[tuple[str, str, str]]:
        """File, object and field of each finding."""
        owner = self.object if self.object is not None else THE_CSV if self.file == CSV else ""
        paths = (self.path,) if isinstance(self.path, str) else self.path
        return {(self.file, owner, path) for path in paths}

    def __str__(self) -> str:
        return f"{self.code}-{self.name}" if self.name else self.code


def error(code: str, change: Change, name: str = "", **more: Any) -> Case:
    return Case(code, Level.ERROR, change, name, **more)


def warning(code: str, change: Change, name: str = "", **more: Any) -> Case:
    return Case(code, Level.WARNING, change, name, **more)


def write(folder: Path, change: Change | None = None) -> Path:
    """Write the good bundle, changed, and return its folder. A file that is None is left out; a path that ends in / is a folder."""
    files = good()
    if change is not None:
        change(files)
    for name, content in files.items():
        if content is None:
            continue
        path = folder / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_text(content), encoding="utf-8")
    return folder


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(map(dump, content)) if isinstance(content, list) else dump(content)


# Changes.


def put(file: str, path: str, value: Any) -> Change:
    """Set what stands at a path of a file: `put(CSV, "spec.installModes.0.supported", False)`."""

    def change(files: Files) -> None:
        *steps, last = _steps(path)
        place = files[file]
        for step in steps:
            place = place[step]
        place[last] = value

    return change


def drop(file: str, path: str) -> Change:
    """Take away what stands at a path of a file."""

    def change(files: Files) -> None:
        *steps, last = _steps(path)
        place = files[file]
        for step in steps:
            place = place[step]
        del place[last]

    return change


def csv(path: str, value: Any = _MISSING) -> Change:
    """Set a field of the ClusterServiceVersion; without a value, take it away."""
    return drop(CSV, path) if value is _MISSING else put(CSV, path, value)


def crd(path: str, value: Any = _MISSING) -> Change:
    """The same, in the definition."""
    return drop(CRD, path) if value is _MISSING else put(CRD, path, value)


def csv_annotation(name: str, value: Any = _MISSING) -> Change:
    """Set an annotation of the ClusterServiceVersion; without a value, take it away."""

    def change(files: Files) -> None:
        annotations = files.csv["metadata"]["annotations"]
        annotations.pop(name, None)
        if value is not _MISSING:
            annotations[name] = value

    return change


def annotation(name: str, value: Any = _MISSING) -> Change:
    """Set an annotation of the bundle (`package.v1`); without a value, take it away."""

    def change(files: Files) -> None:
        files.annotations.pop(f"{PREFIX}.{name}", None)
        if value is not _MISSING:
            files.annotations[f"{PREFIX}.{name}"] = value

    return change


def dependency(kind: str, value: Any) -> Change:
    """Add a dependency."""
    return lambda files: files.dependencies.append({"type": kind, "value": value})


def add(file: str, content: Any) -> Change:
    """Add a file."""
    return lambda files: files.update({file: content})


def remove(file: str) -> Change:
    """Leave a file out."""
    return lambda files: files.pop(file)


def several(*changes: Change) -> Change:
    """Make one change after the other."""

    def change(files: Files) -> None:
        for each in changes:
            each(files)

    return change


def _steps(path: str) -> list[str | int]:
    return [int(step) if step.isdigit() else step for step in path.split(".")]


# The good bundle.


def good() -> Files:
    """Return the files of a bundle that every check passes, the optional ones too."""
    return Files(
        {
            CSV: _csv(),
            CRD: _crd(),
            SERVICE: _object(
                "v1",
                "Service",
                "kettle-webhook-service",
                spec={
                    "ports": [{"port": 443, "protocol": "TCP", "targetPort": 9443}],
                    "selector": {"control-plane": "controller-manager"},
                },
            ),
            ROLE: _object(
                "rbac.authorization.k8s.io/v1",
                "ClusterRole",
                "kettle-viewer",
                rules=[
                    {"apiGroups": ["kitchen.example.com"], "resources": ["kettles"], "verbs": ["get", "list", "watch"]}
                ],
            ),
            CONFIG_MAP: _object("v1", "ConfigMap", "kettle-recipes", data={"green": "80", "black": "98"}),
            ANNOTATIONS: {
                "annotations": {
                    f"{PREFIX}.mediatype.v1": "registry+v1",
                    f"{PREFIX}.manifests.v1": "manifests/",
                    f"{PREFIX}.metadata.v1": "metadata/",
                    f"{PREFIX}.package.v1": "kettle",
                    f"{PREFIX}.channels.v1": "stable,candidate",
                    f"{PREFIX}.channel.default.v1": "stable",
                }
            },
            DEPENDENCIES: {
                "dependencies": [
                    {"type": "olm.package", "value": {"packageName": "stove", "version": ">=1.0.0 <2.0.0"}},
                    {"type": "olm.gvk", "value": {"group": "water.example.com", "version": "v1", "kind": "Tap"}},
                ]
            },
            SCORECARD: _scorecard(),
        }
    )


def _object(api_version: str, kind: str, name: str, **rest: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **rest}


def _csv() -> dict[str, Any]:
    example = _object("kitchen.example.com/v1", "Kettle", "breakfast", spec={"litres": 2, "cups": [{"name": "blue"}]})
    annotations = {
        "alm-examples": json.dumps([example]),
        "capabilities": "Full Lifecycle",
        "categories": "Developer Tools",
        "containerImage": IMAGE,
        "createdAt": "2026-01-01T00:00:00Z",
        "description": "Boils water.",
        "repository": "https://example.com/kitchen/kettle",
        "support": "Kitchen",
    }
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": "kettle.v1.2.0",
            "annotations": annotations,
            "labels": {"operatorframework.io/arch.amd64": "supported", "operatorframework.io/os.linux": "supported"},
        },
        "spec": {
            "displayName": "Kettle",
            "description": "Keeps water hot for every cup that is ordered.",
            "version": "1.2.0",
            "replaces": "kettle.v1.1.0",
            "maturity": "stable",
            "minKubeVersion": "1.30.0",
            "keywords": ["water", "tea"],
            "maintainers": [{"name": "Kitchen", "email": "kitchen@example.com"}],
            "provider": {"name": "Kitchen", "url": "https://example.com"},
            "links": [{"name": "Kettle", "url": "https://example.com/kettle"}],
            "icon": [{"base64data": PICTURE, "mediatype": "image/svg+xml"}],
            "installModes": [
                {"type": "OwnNamespace", "supported": False},
                {"type": "SingleNamespace", "supported": False},
                {"type": "MultiNamespace", "supported": False},
                {"type": "AllNamespaces", "supported": True},
            ],
            "install": {"strategy": "deployment", "spec": _strategy()},
            "customresourcedefinitions": {"owned": [_owned()]},
            "webhookdefinitions": [_webhook()],
            "relatedImages": [{"name": "kettle", "image": IMAGE}, {"name": "steam", "image": SIDE_IMAGE}],
        },
    }


def _owned() -> dict[str, Any]:
    return {
        "name": "kettles.kitchen.example.com",
        "version": "v1",
        "kind": "Kettle",
        "displayName": "Kettle",
        "description": "Water of one temperature.",
        "resources": [{"kind": "Deployment", "name": "", "version": "apps/v1"}],
        "specDescriptors": [
            {"path": "litres", "displayName": "Litres", "description": "How much water."},
            {"path": "cups", "displayName": "Cups", "description": "Who drinks."},
            {"path": "cups[0].name", "displayName": "Name", "description": "Of a cup."},
        ],
        "statusDescriptors": [{"path": "degrees", "displayName": "Degrees", "description": "How hot it is."}],
    }


def _strategy() -> dict[str, Any]:
    labels = {"control-plane": "controller-manager"}
    container = {
        "name": "manager",
        "image": IMAGE,
        "env": [{"name": "RELATED_IMAGE_STEAM", "value": SIDE_IMAGE}],
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
    }
    terms = [
        {
            "matchExpressions": [
                {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
            ]
        }
    ]
    pod = {
        "serviceAccountName": "kettle-manager",
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}},
        "containers": [container],
    }
    verbs = ["get", "list", "watch", "create", "update", "patch", "delete"]
    return {
        "deployments": [
            {
                "name": "kettle-manager",
                "label": labels,
                "spec": {
                    "replicas": 1,
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": pod},
                },
            }
        ],
        "permissions": [
            {
                "serviceAccountName": "kettle-manager",
                "rules": [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": verbs}],
            }
        ],
        "clusterPermissions": [
            {
                "serviceAccountName": "kettle-manager",
                "rules": [
                    {"apiGroups": ["kitchen.example.com"], "resources": ["kettles", "kettles/status"], "verbs": verbs},
                    {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": verbs},
                ],
            }
        ],
    }


def _webhook() -> dict[str, Any]:
    return {
        "type": "ValidatingAdmissionWebhook",
        "generateName": "vkettle.kb.io",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "containerPort": 443,
        "targetPort": 9443,
        "deploymentName": "kettle-manager",
        "webhookPath": "/validate-kitchen-example-com-v1-kettle",
        "rules": [
            {
                "apiGroups": ["kitchen.example.com"],
                "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"],
                "resources": ["kettles"],
            }
        ],
    }


def _crd() -> dict[str, Any]:
    cup = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}
    properties = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": {
            "type": "object",
            "properties": {"litres": {"type": "integer", "minimum": 1}, "cups": {"type": "array", "items": cup}},
        },
        "status": {"type": "object", "properties": {"degrees": {"type": "integer"}}},
    }
    return _object(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "kettles.kitchen.example.com",
        spec={
            "group": "kitchen.example.com",
            "names": {"kind": "Kettle", "listKind": "KettleList", "plural": "kettles", "singular": "kettle"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
                }
            ],
        },
    )


def _scorecard() -> dict[str, Any]:
    names = ("basic-check-spec", "olm-bundle-validation", "olm-crds-have-validation", "olm-crds-have-resources",
             "olm-spec-descriptors", "olm-status-descriptors")  # fmt: skip
    tests = [
        {
            "image": "registry.example.com/scorecard:v1",
            "entrypoint": ["scorecard-test", name],
            "labels": {"suite": "basic" if name.startswith("basic") else "olm", "test": f"{name}-test"},
        }
        for name in names
    ]
    return _object(
        "scorecard.operatorframework.io/v1alpha3",
        "Configuration",
        "config",
        stages=[{"parallel": True, "tests": tests}],
    )

"""Cases of objects, definitions and the bundle as a whole."""

from __future__ import annotations

import base64
import copy
import random
from typing import Any

from bundles import (
    CONFIG_MAP,
    CRD,
    CSV,
    ROLE,
    SERVICE,
    Files,
    add,
    crd,
    csv,
    drop,
    error,
    put,
    remove,
    several,
    warning,
)

OTHER = "manifests/other.yaml"


def _object(kind: str, name: str, api_version: str = "v1", **rest: Any):
    return add(OTHER, {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **rest})


def _again(file: str):
    """Add the object of a file once more."""
    return lambda files: files.update({OTHER: copy.deepcopy(files[file])})


def _filled(size: int):
    """Add two ConfigMaps of so many bytes each, which nothing compresses."""

    def change(files: Files) -> None:
        for index in range(2):
            noise = base64.b64encode(random.Random(index).randbytes(size)).decode()
            metadata = {"name": f"noise-{index}"}
            files[f"manifests/noise-{index}.yaml"] = {
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"noise": noise}
            }  # fmt: skip

    return change


def _second_csv(files: Files) -> None:
    files[OTHER] = copy.deepcopy(files.csv)
    files[OTHER]["metadata"]["name"] = "kettle.v1.3.0"


def _second_version(files: Files) -> None:
    """Own a version the definition has, but does not serve."""
    version = copy.deepcopy(files.crd["spec"]["versions"][0])
    files.crd["spec"]["versions"].append({**version, "name": "v1alpha1", "served": False, "storage": False})
    owned = files.csv["spec"]["customresourcedefinitions"]["owned"]
    owned.append({**copy.deepcopy(owned[0]), "version": "v1alpha1"})
    files.csv["metadata"]["annotations"]["alm-examples"] = "".join((
        files.csv["metadata"]["annotations"]["alm-examples"][:-1],
        ', {"apiVersion": "kitchen.example.com/v1alpha1", "kind": "Kettle", "metadata": {"name": "a"}}]',
    ))  # fmt: skip


MANIFESTS = (
    error("csv-missing", remove(CSV), file="manifests"),
    error("csv-several", _second_csv, file=""),
    error("csv-api-version", csv("apiVersion", "operators.coreos.com/v1alpha2"), path="apiVersion"),
    error("crd-api-version", several(crd("apiVersion", "apiextensions.k8s.io/v1beta1")), path="apiVersion", file=CRD, object="CustomResourceDefinition/kettles.kitchen.example.com"),
    error("object-no-kind", drop(CONFIG_MAP, "kind"), "kind", file=CONFIG_MAP, object="kettle-recipes"),
    error("object-no-kind", drop(CONFIG_MAP, "apiVersion"), "version", file=CONFIG_MAP, object="ConfigMap/kettle-recipes"),
    error("object-no-kind", csv("kind"), "csv", object="kettle.v1.2.0"),
    error("object-kind", _object("PersistentVolumeClaim", "water", "v1", spec={
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}
    }), path="kind", file=OTHER, object="PersistentVolumeClaim/water"),
    error("object-metadata", put(CONFIG_MAP, "metadata.labels", {"a b": "c"}), "label", path="metadata.labels", file=CONFIG_MAP, object="ConfigMap/kettle-recipes"),
    error("object-metadata", put(SERVICE, "metadata.name", "Kettle_Service"), "name", path="metadata.name", file=SERVICE, object="Service/Kettle_Service"),
    error("object-metadata", put(CONFIG_MAP, "metadata", {}), "no-name", path="metadata.name", file=CONFIG_MAP, object="ConfigMap"),
    error("object-metadata", _object("ServiceMonitor", "Kettle!", "monitoring.coreos.com/v1"), "custom-kind", path="metadata.name", file=OTHER, object="ServiceMonitor/Kettle!"),
    error("object-metadata", csv("metadata.labels", {"a": "b c"}), "csv", path="metadata.labels"),
    error("object-not-valid", put(SERVICE, "spec.ports.0.port", 443_000), path="spec.ports[0].port", file=SERVICE, object="Service/kettle-webhook-service"),
    error("object-not-valid", put(CONFIG_MAP, "data", {"green": 80}), "type", file=CONFIG_MAP, object="ConfigMap/kettle-recipes"),
    warning("object-unknown-field", put(ROLE, "rulez", []), path="rulez", file=ROLE, object="ClusterRole/kettle-viewer"),
    error("object-twice", _again(ROLE), file=OTHER, object="ClusterRole/kettle-viewer"),
)  # fmt: skip

DEFINITIONS = (
    error(
        "crd-not-valid",
        crd("spec.names.plural", "Kettles"),
        path=("metadata.name", "spec.names.plural"),
        file=CRD,
        object="CustomResourceDefinition/kettles.kitchen.example.com",
    ),
    error(
        "crd-not-valid",
        crd("spec.versions.0.schema"),
        "schema",
        path="spec.versions[0].schema.openAPIV3Schema",
        file=CRD,
        object="CustomResourceDefinition/kettles.kitchen.example.com",
    ),
    error(
        "crd-not-valid",
        several(
            crd("metadata.name", "kettle.kitchen.example.com"),
            csv("spec.customresourcedefinitions.owned.0.name", "kettle.kitchen.example.com"),
        ),
        "name",
        path="metadata.name",
        file=CRD,
        object="CustomResourceDefinition/kettle.kitchen.example.com",
    ),
    warning(
        "crd-unknown-field",
        crd("spec.scoope", "Cluster"),
        path="spec.scoope",
        file=CRD,
        object="CustomResourceDefinition/kettles.kitchen.example.com",
    ),
    error("owned-crd-missing", remove(CRD), path="spec.customresourcedefinitions.owned[0]"),
    error(
        "owned-crd-missing",
        crd("spec.versions.0.name", "v2"),
        "version",
        path="spec.customresourcedefinitions.owned[0]",
    ),
    error(
        "crd-not-owned",
        several(csv("spec.customresourcedefinitions"), csv("metadata.annotations.alm-examples", "[]")),
        file=CRD,
        object="CustomResourceDefinition/kettles.kitchen.example.com",
    ),
    error("crd-twice", _again(CRD), file=OTHER, object="CustomResourceDefinition/kettles.kitchen.example.com"),
    error(
        "owned-crd-name",
        csv("spec.customresourcedefinitions.owned.0.name", "kettle.kitchen.example.com"),
        path="spec.customresourcedefinitions.owned[0].name",
    ),
    error("owned-crd-not-served", _second_version, path="spec.customresourcedefinitions.owned[1].version"),
)

CONTENT = (
    error(
        "service-account-in-bundle",
        _object("ServiceAccount", "kettle-manager"),
        file=OTHER,
        object="ServiceAccount/kettle-manager",
    ),
    error("bundle-too-large", _filled(540_000), file="manifests"),
    warning("bundle-large", _filled(460_000), file="manifests"),
    error("release-name", csv("spec.release", "1"), path="metadata.name"),
    error(
        "release-not-valid",
        several(csv("spec.release", "01"), csv("metadata.name", "kettle-v1.2.0-01")),
        path="spec.release",
        object="ClusterServiceVersion/kettle-v1.2.0-01",
    ),
    error(
        "release-not-valid",
        several(
            csv("spec.release", "1.of-many-that-follow"), csv("metadata.name", "kettle-v1.2.0-1.of-many-that-follow")
        ),
        "long",
        path="spec.release",
        object="ClusterServiceVersion/kettle-v1.2.0-1.of-many-that-follow",
    ),
    error("related-image-empty", csv("spec.relatedImages.0.image", ""), path="spec.relatedImages[0].image"),
    error(
        "related-image-not-valid",
        csv("spec.relatedImages.0.image", "Kettle:latest?"),
        path="spec.relatedImages[0].image",
    ),
)

CASES = MANIFESTS + DEFINITIONS + CONTENT

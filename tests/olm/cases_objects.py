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
    error("csv-missing", remove(CSV)),
    error("csv-several", _second_csv),
    error("csv-api-version", csv("apiVersion", "operators.coreos.com/v1alpha2")),
    error("crd-api-version", several(crd("apiVersion", "apiextensions.k8s.io/v1beta1"))),
    error("object-no-kind", drop(CONFIG_MAP, "kind"), "kind"),
    error("object-no-kind", drop(CONFIG_MAP, "apiVersion"), "version"),
    error("object-no-kind", csv("kind"), "csv"),
    error("object-kind", _object("PersistentVolumeClaim", "water", "v1", spec={
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}
    })),
    error("object-metadata", put(CONFIG_MAP, "metadata.labels", {"a b": "c"}), "label"),
    error("object-metadata", put(SERVICE, "metadata.name", "Kettle_Service"), "name"),
    error("object-metadata", put(CONFIG_MAP, "metadata", {}), "no-name"),
    error("object-metadata", _object("ServiceMonitor", "Kettle!", "monitoring.coreos.com/v1"), "custom-kind"),
    error("object-metadata", csv("metadata.labels", {"a": "b c"}), "csv"),
    error("object-not-valid", put(SERVICE, "spec.ports.0.port", 443_000)),
    error("object-not-valid", put(CONFIG_MAP, "data", {"green": 80}), "type"),
    warning("object-unknown-field", put(ROLE, "rulez", [])),
    error("object-twice", _again(ROLE)),
)  # fmt: skip

DEFINITIONS = (
    error("crd-not-valid", crd("spec.names.plural", "Kettles")),
    error("crd-not-valid", crd("spec.versions.0.schema"), "schema"),
    error(
        "crd-not-valid",
        several(
            crd("metadata.name", "kettle.kitchen.example.com"),
            csv("spec.customresourcedefinitions.owned.0.name", "kettle.kitchen.example.com"),
        ),
        "name",
    ),
    warning("crd-unknown-field", crd("spec.scoope", "Cluster")),
    error("owned-crd-missing", remove(CRD)),
    error("owned-crd-missing", crd("spec.versions.0.name", "v2"), "version"),
    error(
        "crd-not-owned", several(csv("spec.customresourcedefinitions"), csv("metadata.annotations.alm-examples", "[]"))
    ),
    error("crd-twice", _again(CRD)),
    error("owned-crd-name", csv("spec.customresourcedefinitions.owned.0.name", "kettle.kitchen.example.com")),
    error("owned-crd-not-served", _second_version),
)

CONTENT = (
    error("service-account-in-bundle", _object("ServiceAccount", "kettle-manager")),
    error("bundle-too-large", _filled(540_000)),
    warning("bundle-large", _filled(460_000)),
    error("release-name", csv("spec.release", "1")),
    error("release-not-valid", several(csv("spec.release", "01"), csv("metadata.name", "kettle-v1.2.0-01"))),
    error("related-image-empty", csv("spec.relatedImages.0.image", "")),
    error("related-image-not-valid", csv("spec.relatedImages.0.image", "Kettle:latest?")),
)

CASES = MANIFESTS + DEFINITIONS + CONTENT

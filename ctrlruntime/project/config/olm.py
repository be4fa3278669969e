"""What an Operator Lifecycle Manager bundle starts from: the base of a ClusterServiceVersion, and the scorecard's configuration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ctrlruntime.generate.options import Document
from ctrlruntime.generate.text import dump
from ctrlruntime.project.config.layout import KUSTOMIZATION, derived, kustomization
from ctrlruntime.project.settings import Settings

__all__ = ["base_file", "base_text", "manifests_kustomization", "scorecard_files"]

_SCORECARD: Final = "scorecard.operatorframework.io/v1alpha3"
_IMAGE: Final = "quay.io/operator-framework/scorecard-test:v1.41.1"
_TESTS: Final = (
    ("basic", "basic-check-spec"),
    ("olm", "olm-bundle-validation"),
    ("olm", "olm-crds-have-validation"),
    ("olm", "olm-crds-have-resources"),
    ("olm", "olm-spec-descriptors"),
    ("olm", "olm-status-descriptors"),
)


def base_file(settings: Settings) -> str:
    """Return the path of the base below the folder `manifests`."""
    return f"bases/{settings.project_name}.clusterserviceversion.yaml"


def base_text(settings: Settings) -> str:
    """Return the base: what a person says of the operator. What follows from classes is added when a bundle is made."""
    name = settings.project_name
    document: Document = {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": f"{name}.v0.0.0",
            "namespace": "placeholder",
            "annotations": {"alm-examples": "[]", "capabilities": "Basic Install"},
        },
        "spec": {
            "apiservicedefinitions": {},
            "customresourcedefinitions": {},
            "description": f"What {name} does, for people who choose an operator.",
            "displayName": name.replace("-", " ").title(),
            "icon": [{"base64data": "", "mediatype": ""}],
            "install": {"spec": {"deployments": None}, "strategy": ""},
            "installModes": [
                {"type": mode, "supported": (mode != "AllNamespaces") == settings.namespaced}
                for mode in ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")
            ],
            "keywords": [name],
            "links": [{"name": name, "url": f"https://{name}.{settings.domain}"}],
            "maintainers": [{"email": "your@email.com", "name": settings.owner or "Maintainer Name"}],
            "maturity": "alpha",
            "provider": {"name": settings.owner or "Provider Name", "url": f"https://{settings.domain}"},
            "version": "0.0.0",
        },
    }
    return dump(document)


def manifests_kustomization(settings: Settings, *, has_samples: bool) -> str:
    """Return the kustomization of all that goes into a bundle."""
    resources = [base_file(settings), "../default", *(["../samples"] if has_samples else []), "../scorecard"]
    return derived(kustomization(resources=resources))


def scorecard_files() -> Iterator[tuple[str, str]]:
    """Yield the files of `scorecard`."""
    tests = [
        {"entrypoint": ["scorecard-test", test], "image": _IMAGE, "labels": {"suite": suite, "test": f"{test}-test"}}
        for suite, test in _TESTS
    ]
    config = {
        "apiVersion": _SCORECARD,
        "kind": "Configuration",
        "metadata": {"name": "config"},
        "stages": [{"parallel": True, "tests": tests}],
    }
    yield "bases/config.yaml", derived(config)
    yield KUSTOMIZATION, derived(kustomization(resources=["bases/config.yaml"]))

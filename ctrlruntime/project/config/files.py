"""All files of the tree, by their path below `config/`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ctrlruntime.generate.options import Document
from ctrlruntime.generate.text import dump, file_name
from ctrlruntime.project.config.access import access_files
from ctrlruntime.project.config.assembly import assembly_files
from ctrlruntime.project.config.deployment import manager_text
from ctrlruntime.project.config.layout import (
    KUSTOMIZATION,
    REPLACEMENTS,
    Parts,
    component,
    derived,
    group_in_names,
    kustomization,
)
from ctrlruntime.project.config.olm import base_file, base_text, manifests_kustomization, scorecard_files
from ctrlruntime.project.config.own_namespace import excluding
from ctrlruntime.project.config.replacements import replacement_files
from ctrlruntime.project.config.serving import certificate_files, monitor_files, network_files, webhook_service
from ctrlruntime.project.config.sharing import disruption_files
from ctrlruntime.project.manifests import CRD_FOLDER, Manifests
from ctrlruntime.project.settings import Resource, Settings

__all__ = ["derived_files", "first_files", "sample_file", "sample_files"]

_SERVICE_OF_CONVERSION: Final[Document] = {
    "nameReference": [
        {
            "kind": "Service",
            "version": "v1",
            "fieldSpecs": [
                {
                    "kind": "CustomResourceDefinition",
                    "group": "apiextensions.k8s.io",
                    "version": "v1",
                    "path": "spec/conversion/webhook/clientConfig/service/name",
                }
            ],
        }
    ]
}
"""kustomize knows the Service of an admission webhook by itself, and that of a conversion not."""


def derived_files(settings: Settings, made: Manifests, *, added_samples: Iterable[str] = ()) -> dict[str, str]:
    """Return the text of each file that follows from the settings and from the package's manifests.

    `made` names the webhook Service as `SERVICE` does, and keeps namespaced rules to `settings.namespace` when the project is
    namespaced. `added_samples` are the names of a person's own files in `samples`.
    """
    parts = Parts(settings, made)
    files = dict(_below("default", assembly_files(parts)))
    files.update(_below("rbac", access_files(parts)))
    files.update(_below(REPLACEMENTS, replacement_files(parts)))
    files.update(_below("scorecard", scorecard_files()))
    files.update(_definitions(parts))
    if parts.webhooks:
        files.update(_below("webhook", _webhook_files(parts)))
    if parts.certificates:
        files.update(_below("certmanager", certificate_files(parts)))
    if parts.prometheus:
        files.update(_below("prometheus", monitor_files(parts)))
    if parts.network_policy:
        files.update(_below("network-policy", network_files(parts)))
    if parts.sharding:
        files.update(_below("sharding", disruption_files(settings)))
    samples = [*sample_files(settings), *added_samples]
    if samples:
        files[f"samples/{KUSTOMIZATION}"] = derived(kustomization(resources=samples))
    files[f"manifests/{KUSTOMIZATION}"] = manifests_kustomization(settings, has_samples=bool(samples))
    return files


def first_files(settings: Settings) -> dict[str, str]:
    """Return the text of each file that is written once and then belongs to a person, for what the settings name."""
    files = {
        "manager/manager.yaml": manager_text(settings),
        f"manager/{KUSTOMIZATION}": dump(kustomization(resources=["manager.yaml"])),
        f"manifests/{base_file(settings)}": base_text(settings),
    }
    return files | {
        f"samples/{sample_file(each, settings)}": _sample(each, settings) for each in settings.own_resources
    }


def sample_files(settings: Settings) -> list[str]:
    """Return the names of the scaffolded samples in `samples`."""
    return [sample_file(each, settings) for each in settings.own_resources]


def sample_file(resource: Resource, settings: Settings) -> str:
    """Return the name of the file with an example of a kind."""
    return f"{group_in_names(resource.group, settings)}_{resource.version}_{resource.kind.lower()}.yaml"


def _below(folder: str, files: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    return ((f"{folder}/{name}", text) for name, text in files)


def _sample(resource: Resource, settings: Settings) -> str:
    version = f"-{resource.version}" if _has_earlier(resource, settings) else ""
    metadata = {"name": f"{resource.kind.lower()}{version}-sample", "labels": component(settings)}
    api_version = f"{resource.group}/{resource.version}"
    return dump({"apiVersion": api_version, "kind": resource.kind, "metadata": metadata, "spec": {}})


def _has_earlier(resource: Resource, settings: Settings) -> bool:
    """Tell whether another version's sample has the plain name: two versions of one name would be one object."""
    return any(
        (each.group, each.kind) == (resource.group, resource.kind) and each.version < resource.version
        for each in settings.own_resources
    )


def _definitions(parts: Parts) -> Iterator[tuple[str, str]]:
    definitions = parts.made.definitions
    if not definitions:
        return
    folder, _, bases = CRD_FOLDER.partition("/")
    for each in definitions:
        yield f"{CRD_FOLDER}/{file_name(each)}", derived(each)
    content = kustomization(resources=[f"{bases}/{file_name(each)}" for each in definitions])
    if parts.converted:
        content["configurations"] = ["kustomizeconfig.yaml"]
        yield f"{folder}/kustomizeconfig.yaml", derived(_SERVICE_OF_CONVERSION)
    yield f"{folder}/{KUSTOMIZATION}", derived(content)


# Webhooks


def _webhook_files(parts: Parts) -> Iterator[tuple[str, str]]:
    resources = ["service.yaml"]
    yield "service.yaml", derived(webhook_service(parts.settings))
    if parts.made.webhooks:
        resources = ["manifests.yaml", *resources]
        yield "manifests.yaml", derived(*(excluding(each, parts.settings.namespace) for each in parts.made.webhooks))
    yield KUSTOMIZATION, derived(kustomization(resources=resources))

"""The kustomization `default`: all parts, in the project's namespace and with its prefix."""

from __future__ import annotations

from collections.abc import Iterator

from ctrlruntime.generate.options import Document
from ctrlruntime.project.config.deployment import (
    IMAGE,
    metrics_patch,
    namespaced_patch,
    own_certificate_patch,
    sharding_patch,
    webhook_patch,
)
from ctrlruntime.project.config.layout import (
    KUSTOMIZATION,
    REPLACEMENTS,
    Parts,
    derived,
    kustomization,
)
from ctrlruntime.project.config.serving import metrics_service
from ctrlruntime.project.settings import Settings

__all__ = ["assembly_files", "image_of"]


def assembly_files(parts: Parts) -> Iterator[tuple[str, str]]:
    """Yield the files of `default`."""
    settings = parts.settings
    patches = dict(_patches(parts))
    for name, patch in patches.items():
        yield name, derived(patch)
    resources = [f"../{folder}" for folder in _folders(parts)]
    if parts.metrics:
        yield "metrics_service.yaml", derived(metrics_service(settings))
        resources.append("metrics_service.yaml")
    whole = kustomization(
        namespace=settings.namespace,
        namePrefix=f"{settings.project_name}-",
        resources=resources,
        images=[{"name": IMAGE, **image_of(settings)}],
        patches=[{"path": name} for name in patches],
        transformers=[f"../{REPLACEMENTS}"],
    )
    yield KUSTOMIZATION, derived(whole)


def image_of(settings: Settings) -> Document:
    """Return what the images of a kustomization say of the operator's: a new name, and a tag or digest."""
    image = settings.image or f"{settings.project_name}:latest"
    name, _, digest = image.partition("@")
    # A colon before the last slash belongs to the registry's port.
    path, slash, last = name.rpartition("/")
    last, _, tag = last.partition(":")
    told = {"digest": digest} if digest else {"newTag": tag or "latest"}
    return {"newName": f"{path}{slash}{last}", **told}


def _folders(parts: Parts) -> Iterator[str]:
    present = {
        "crd": bool(parts.made.definitions),
        "rbac": True,
        "manager": True,
        "webhook": parts.webhooks,
        "certmanager": parts.certificates,
        "prometheus": parts.prometheus,
        "network-policy": parts.network_policy,
        "sharding": parts.sharding,
    }
    return (folder for folder, is_present in present.items() if is_present)


def _patches(parts: Parts) -> Iterator[tuple[str, Document]]:
    if parts.metrics:
        yield "manager_metrics_patch.yaml", metrics_patch(with_certificate=parts.certificates)
    if parts.certificates:
        yield "manager_webhook_patch.yaml", webhook_patch()
    if parts.own_certificate:
        yield "manager_webhook_patch.yaml", own_certificate_patch(parts)
    if parts.settings.namespaced:
        yield "manager_namespaced_patch.yaml", namespaced_patch()
    if parts.sharding:
        yield "manager_sharding_patch.yaml", sharding_patch(parts.settings)

"""The kustomization `default`: all parts in the project's namespace and with its prefix, and the names that only kustomize knows then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ctrlruntime.generate.options import Document
from ctrlruntime.generate.webhooks import MUTATING_NAME, VALIDATING_NAME
from ctrlruntime.project.config.access import ELSEWHERE, binding_name, role_of
from ctrlruntime.project.config.deployment import (
    IMAGE,
    metrics_patch,
    namespaced_patch,
    own_certificate_patch,
    webhook_patch,
)
from ctrlruntime.project.config.layout import (
    ACCOUNT,
    CONTAINER,
    DEPLOYMENT,
    KUSTOMIZATION,
    METRICS_CERTIFICATE,
    METRICS_SERVICE,
    SERVING_CERTIFICATE,
    WEBHOOK_SERVICE,
    Parts,
    derived,
    kustomization,
)
from ctrlruntime.project.config.serving import MONITOR, metrics_service
from ctrlruntime.project.settings import Settings

__all__ = ["assembly_files", "image_of"]

_INJECT: Final = "metadata.annotations.[cert-manager.io/inject-ca-from]"
_HOSTS: Final = ("spec.dnsNames.0", "spec.dnsNames.1")


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
        replacements=list(_replacements(parts)),
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


# Names that stand inside of other values


def _replacements(parts: Parts) -> Iterator[Document]:
    if parts.certificates:
        yield from _host(WEBHOOK_SERVICE, _select("Certificate", SERVING_CERTIFICATE), _HOSTS)
        injected = [_select(each["kind"], each["metadata"]["name"]) for each in parts.made.webhooks]
        injected += [_select("CustomResourceDefinition", each["metadata"]["name"]) for each in parts.converted]
        for index, path in enumerate(("metadata.namespace", "metadata.name")):
            targets = [_target(each, [_INJECT], "/", index) for each in injected]
            yield {"source": {**_select("Certificate", SERVING_CERTIFICATE), "fieldPath": path}, "targets": targets}
    if parts.certificates and parts.metrics:
        yield from _host(METRICS_SERVICE, _select("Certificate", METRICS_CERTIFICATE), _HOSTS)
        if parts.prometheus:
            server = ("spec.endpoints.[port=https].tlsConfig.serverName",)
            yield from _host(METRICS_SERVICE, _select("ServiceMonitor", MONITOR), server)
    if parts.own_certificate:
        yield from _variables(parts)
    yield from _elsewhere(parts)


def _host(service: str, select: Document, paths: tuple[str, ...]) -> Iterator[Document]:
    """Put the name and the namespace of a Service into host names."""
    for index, path in enumerate(("metadata.name", "metadata.namespace")):
        yield {
            "source": {**_select("Service", service), "fieldPath": path},
            "targets": [_target(select, paths, ".", index)],
        }


def _variables(parts: Parts) -> Iterator[Document]:
    """Put the names of what the operator keeps a certificate for into its variables."""
    kinds = {each["kind"] for each in parts.made.webhooks}
    sources = [("WEBHOOK_SERVICE", "Service", WEBHOOK_SERVICE)]
    for variable, kind, name in (
        ("WEBHOOK_MUTATING", "MutatingWebhookConfiguration", MUTATING_NAME),
        ("WEBHOOK_VALIDATING", "ValidatingWebhookConfiguration", VALIDATING_NAME),
    ):
        if kind in kinds:
            sources.append((variable, kind, name))
    for variable, kind, name in sources:
        path = f"spec.template.spec.containers.[name={CONTAINER}].env.[name={variable}].value"
        yield {
            "source": {**_select(kind, name), "fieldPath": "metadata.name"},
            "targets": [{"select": _select("Deployment", DEPLOYMENT), "fieldPaths": [path]}],
        }


def _elsewhere(parts: Parts) -> Iterator[Document]:
    """Put Roles of other namespaces, and their bindings, where they belong; kustomize loses sight of the account from there."""
    for role in (role_of(each, parts) for each in parts.made.roles):
        if ELSEWHERE not in role["metadata"].get("annotations", {}):
            continue
        name = role["metadata"]["name"]
        binding, account = _select("RoleBinding", binding_name(name)), _select("ServiceAccount", ACCOUNT)
        places = [_select("Role", name), binding]
        yield {
            "source": {**_select("Role", name), "fieldPath": f"metadata.annotations.[{ELSEWHERE}]"},
            "targets": [{"select": each, "fieldPaths": ["metadata.namespace"]} for each in places],
        }
        for field in ("name", "namespace"):
            path = f"subjects.[kind=ServiceAccount].{field}"
            yield {
                "source": {**account, "fieldPath": f"metadata.{field}"},
                "targets": [{"select": binding, "fieldPaths": [path]}],
            }


def _select(kind: str, name: str) -> Document:
    return {"kind": kind, "name": name}


def _target(select: Document, paths: tuple[str, ...] | list[str], delimiter: str, index: int) -> Document:
    return {
        "select": select,
        "fieldPaths": list(paths),
        "options": {"delimiter": delimiter, "index": index, "create": True},
    }

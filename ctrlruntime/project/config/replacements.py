"""`config/replacements`: names and namespaces inside other values, such as the host names of a certificate.

kustomize renames objects and the references it knows. It does not change text that contains a name. The replacements do, and they are a
transformer in a folder of their own, because a kustomization applies `replacements` only to its own result: an overlay that sets another
namespace or prefix lists the folder again under `transformers`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ctrlruntime.generate.options import Document
from ctrlruntime.generate.webhooks import MUTATING_NAME, VALIDATING_NAME
from ctrlruntime.project.config.access import ELSEWHERE, binding_name, role_of
from ctrlruntime.project.config.layout import (
    ACCOUNT,
    CONTAINER,
    DEPLOYMENT,
    KUSTOMIZATION,
    METRICS_CERTIFICATE,
    METRICS_SERVICE,
    REPLACEMENTS,
    SERVING_CERTIFICATE,
    WEBHOOK_SERVICE,
    Parts,
    derived,
    kustomization,
)
from ctrlruntime.project.config.own_namespace import NAMESPACE_LABEL, has_exclusion
from ctrlruntime.project.config.serving import MONITOR

__all__ = ["replacement_files"]

_INJECT: Final = "metadata.annotations.[cert-manager.io/inject-ca-from]"
_HOSTS: Final = ("spec.dnsNames.0", "spec.dnsNames.1")


def replacement_files(parts: Parts) -> Iterator[tuple[str, str]]:
    """Yield the files of the folder. Without any name to replace it has a transformer that changes nothing, so overlays can always list it."""
    transformer = {
        "apiVersion": "builtin",
        "kind": "ReplacementTransformer",
        "metadata": {"name": REPLACEMENTS},
        "replacements": list(_replacements(parts)),
    }
    yield f"{REPLACEMENTS}.yaml", derived(transformer)
    yield KUSTOMIZATION, derived(kustomization(resources=[f"{REPLACEMENTS}.yaml"]))


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
    yield from _exclusions(parts)
    yield from _elsewhere(parts)


def _host(service: str, select: Document, paths: tuple[str, ...]) -> Iterator[Document]:
    """Put the name and the namespace of a Service into host names."""
    for index, path in enumerate(("metadata.name", "metadata.namespace")):
        yield {
            "source": {**_select("Service", service), "fieldPath": path},
            "targets": [_target(select, paths, ".", index)],
        }


def _variables(parts: Parts) -> Iterator[Document]:
    """Put the names of the Service and of the webhook configurations into the variables of the operator's certificate."""
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


def _exclusions(parts: Parts) -> Iterator[Document]:
    """Put the operator's namespace into the webhooks for Pods, which exclude it."""
    targets = [
        {
            "select": _select(each["kind"], each["metadata"]["name"]),
            "fieldPaths": [
                f"webhooks.[name={webhook['name']}].namespaceSelector.matchExpressions.[key={NAMESPACE_LABEL}].values.0"
                for webhook in webhooks
            ],
        }
        for each in parts.made.webhooks
        if (webhooks := [webhook for webhook in each["webhooks"] if has_exclusion(webhook)])
    ]
    if targets:
        account = {**_select("ServiceAccount", ACCOUNT), "fieldPath": "metadata.namespace"}
        yield {"source": account, "targets": targets}


def _elsewhere(parts: Parts) -> Iterator[Document]:
    """Put Roles for other namespaces, and their bindings, into these namespaces. kustomize does not update the account of such a binding."""
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

"""The folder `rbac`: who the operator is, what it may do, and roles for those who use its kinds or read its metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ctrlruntime.generate.options import Document
from ctrlruntime.generate.rbac import certificate_rules
from ctrlruntime.generate.rbac import roles as roles_of
from ctrlruntime.project.config.layout import (
    ACCOUNT,
    KUSTOMIZATION,
    OWN_NAMESPACE,
    WEBHOOK_SECRET,
    Parts,
    derived,
    group_in_names,
    kustomization,
    named,
)

__all__ = ["CERTIFICATE_ROLE", "ELSEWHERE", "access_files", "binding_name", "role_of"]

ELSEWHERE: Final = "ctrlruntime.dev/namespace"
"""The annotation of a Role with its namespace, when that is not the operator's."""

CERTIFICATE_ROLE: Final = "webhook-certificate-role"
"""The Role, or ClusterRole, of an operator that keeps the webhooks' certificate itself."""

_GROUP: Final = "rbac.authorization.k8s.io"
_API_VERSION: Final = f"{_GROUP}/v1"
_EDIT: Final = ("create", "delete", "get", "list", "patch", "update", "watch")
_READ: Final = ("get", "list", "watch")


def access_files(parts: Parts) -> Iterator[tuple[str, str]]:
    """Yield the files of the folder."""
    files = dict(_files(parts))
    yield from files.items()
    yield KUSTOMIZATION, derived(kustomization(resources=sorted(files)))


def _files(parts: Parts) -> Iterator[tuple[str, str]]:
    settings = parts.settings
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named(settings, ACCOUNT)}
    yield "service_account.yaml", derived(account)
    if parts.made.roles:
        roles = [role_of(each, parts) for each in parts.made.roles]
        yield "role.yaml", derived(*roles)
        yield "role_binding.yaml", derived(*(_binding(each, parts) for each in roles))
    if parts.own_certificate:
        roles = _certificate_roles(parts)
        yield "webhook_certificate_role.yaml", derived(*roles)
        yield "webhook_certificate_role_binding.yaml", derived(*(_binding(each, parts) for each in roles))
    if parts.metrics:
        auth = _cluster_role(parts, "metrics-auth-role", _reviews())
        yield "metrics_auth_role.yaml", derived(auth)
        yield "metrics_auth_role_binding.yaml", derived(_binding(auth, parts))
        yield (
            "metrics_reader_role.yaml",
            derived(_cluster_role(parts, "metrics-reader", [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}])),
        )
    yield from _roles_of_kinds(parts)


def role_of(role: Mapping[str, Any], parts: Parts) -> Document:
    """Return a generated role with the labels of the tree, in the tree's namespace.

    One for another namespace has that in an annotation and in its name: kustomize moves all to one namespace, where two Roles of
    a name would be one.
    """
    metadata = role["metadata"]
    is_namespaced = role["kind"] == "Role"
    namespace = metadata.get("namespace", OWN_NAMESPACE)
    if namespace in {OWN_NAMESPACE, parts.settings.namespace}:
        return {**role, "metadata": named(parts.settings, metadata["name"], is_namespaced=is_namespaced)}
    moved = named(parts.settings, f"{metadata['name'].removesuffix('-role')}-{namespace}-role")
    return {**role, "metadata": {**moved, "annotations": {ELSEWHERE: namespace}}}


def binding_name(role: str) -> str:
    return f"{role.removesuffix('-role')}-rolebinding"


def _binding(role: Mapping[str, Any], parts: Parts) -> Document:
    name, kind = role["metadata"]["name"], role["kind"]
    return {
        "apiVersion": _API_VERSION,
        "kind": f"{kind}Binding",
        "metadata": named(parts.settings, binding_name(name), is_namespaced=kind == "Role"),
        "roleRef": {"apiGroup": _GROUP, "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": OWN_NAMESPACE}],
    }


def _cluster_role(parts: Parts, name: str, rules: list[Document]) -> Document:
    metadata = named(parts.settings, name, is_namespaced=False)
    return {"apiVersion": _API_VERSION, "kind": "ClusterRole", "metadata": metadata, "rules": rules}


def _certificate_roles(parts: Parts) -> list[Document]:
    """What it takes to keep the webhooks' certificate in a Secret. Kustomize has no eye for the names in rules, so they are final."""
    prefix = f"{parts.settings.project_name}-"
    names: dict[str, list[str]] = {
        kind: [prefix + each["metadata"]["name"] for each in parts.made.webhooks if each["kind"].startswith(kind)]
        for kind in ("Mutating", "Validating")
    }
    rules = certificate_rules(
        WEBHOOK_SECRET,
        OWN_NAMESPACE,
        mutating=names["Mutating"],
        validating=names["Validating"],
        definitions=[each["metadata"]["name"] for each in parts.converted],
    )
    return [role_of(each, parts) for each in roles_of(rules, role_name=CERTIFICATE_ROLE)]


def _reviews() -> list[Document]:
    """What it takes to ask the API server who reads the metrics, and whether they may."""
    return [
        {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
        {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
    ]


def _roles_of_kinds(parts: Parts) -> Iterator[tuple[str, str]]:
    """Roles to give to people: an administrator's, an editor's and a viewer's for each kind."""
    specs = [each["spec"] for each in parts.made.definitions]
    kinds = Counter(spec["names"]["kind"].lower() for spec in specs)
    for spec in specs:
        name = spec["names"]["kind"].lower()
        if kinds[name] > 1 or parts.settings.multigroup:
            name = f"{group_in_names(spec['group'], parts.settings)}-{name}"
        for person, verbs in (("admin", ["*"]), ("editor", _EDIT), ("viewer", _READ)):
            plural = spec["names"]["plural"]
            rules = [
                {"apiGroups": [spec["group"]], "resources": [plural], "verbs": list(verbs)},
                {"apiGroups": [spec["group"]], "resources": [f"{plural}/status"], "verbs": ["get"]},
            ]
            role = _cluster_role(parts, f"{name}-{person}-role", rules)
            yield f"{name.replace('-', '_')}_{person}_role.yaml", derived(role)

"""Small objects of an operator's tree, as builders for tables."""

from __future__ import annotations

from typing import Any

HOME = "shop-system"
ACCOUNT = "shop-controller-manager"
LABELS = {"control-plane": "controller-manager"}
FOLDER = "/tmp/k8s-webhook-server/serving-certs"


def thing(api_version: str, kind: str, name: str, namespace: str = HOME, **rest: Any) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def deployment(
    *containers: dict[str, Any],
    name: str = ACCOUNT,
    account: str = ACCOUNT,
    labels: dict[str, str] | None = None,
    **pod: Any,
) -> dict[str, Any]:
    labels = labels or LABELS
    spec = {"containers": list(containers) or [container()], "serviceAccountName": account, **pod}
    template = {"metadata": {"labels": labels}, "spec": spec}
    return thing("apps/v1", "Deployment", name, spec={"selector": {"matchLabels": labels}, "template": template})


def container(name: str = "manager", image: str = "shop:v1", **rest: Any) -> dict[str, Any]:
    return {"name": name, "image": image, **rest}


def variables(**values: str) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]


def service(name: str = "shop-webhook-service", port: int = 443, target: Any = 9443, **more: int) -> dict[str, Any]:
    ports = [{"port": port, "targetPort": target}, *({"port": each, "targetPort": each} for each in more.values())]
    return thing("v1", "Service", name, spec={"ports": ports, "selector": LABELS})


def webhook(name: str = "mcart.kb.io", path: str = "/mutate", **rest: Any) -> dict[str, Any]:
    client = {"service": {"name": "shop-webhook-service", "namespace": HOME, "path": path}}
    return {"name": name, "clientConfig": client, "rules": [{"resources": ["carts"]}], **rest}


def configuration(*webhooks: dict[str, Any], kind: str = "Mutating") -> dict[str, Any]:
    api_version, kind = "admissionregistration.k8s.io/v1", f"{kind}WebhookConfiguration"
    return thing(api_version, kind, f"shop-{kind.lower()}", "", webhooks=list(webhooks))


def definition(
    kind: str = "Cart", *versions: str, path: str = "", schema: dict[str, Any] | None = None, **rest: Any
) -> dict[str, Any]:
    plural, group = f"{kind.lower()}s", "x.io"
    served = [
        {"name": each, "served": True, "schema": {"openAPIV3Schema": schema or {"type": "object"}}}
        for each in versions or ("v1",)
    ]
    spec: dict[str, Any] = {"group": group, "names": {"kind": kind, "plural": plural}, "versions": served, **rest}
    if path:
        client = {"service": {"name": "shop-webhook-service", "namespace": HOME, "path": path}}
        webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
        spec["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    return thing("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"{plural}.{group}", "", spec=spec)


def certificate(secret: str, host: str = "shop-webhook-service") -> dict[str, Any]:
    return thing(
        "cert-manager.io/v1",
        "Certificate",
        f"{secret}-of",
        spec={"secretName": secret, "dnsNames": [f"{host}.{HOME}.svc"]},
    )


def rule(resource: str, *verbs: str) -> dict[str, Any]:
    return {"apiGroups": [""], "resources": [resource], "verbs": list(verbs) or ["get"]}


def role(name: str, *rules: dict[str, Any], kind: str = "Role", namespace: str = HOME, **rest: Any) -> dict[str, Any]:
    where = namespace if kind == "Role" else ""
    return thing("rbac.authorization.k8s.io/v1", kind, name, where, rules=list(rules), **rest)


def binding(
    to: str,
    *accounts: str,
    kind: str = "RoleBinding",
    role_kind: str = "",
    namespace: str = HOME,
) -> dict[str, Any]:
    where = namespace if kind == "RoleBinding" else ""
    subjects = [{"kind": "ServiceAccount", "name": each, "namespace": HOME} for each in accounts or (ACCOUNT,)]
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind or kind.removesuffix("Binding"), "name": to}
    return thing("rbac.authorization.k8s.io/v1", kind, f"{to}-binding", where, roleRef=reference, subjects=subjects)


def account(name: str = ACCOUNT) -> dict[str, Any]:
    return thing("v1", "ServiceAccount", name)

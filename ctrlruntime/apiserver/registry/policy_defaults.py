"""Defaults of what rules the server itself: roles, priorities of requests, admission, definitions, API services."""

from __future__ import annotations

from typing import Final

from ctrlruntime.apiserver.registry.trees import ensure_spec, inner, items, put, put_absent
from ctrlruntime.schema.trees import Document

RBAC: Final = "rbac.authorization.k8s.io"


def role(document: Document) -> None:
    """Rules that are not given are null; an empty list becomes null when it is stored."""
    document.setdefault("rules", None)


def role_binding(document: Document) -> None:
    ref = inner(document, "roleRef")
    if ref is not None:
        put(ref, "apiGroup", RBAC)
    for subject in items(document, "subjects"):
        if subject.get("kind") in {"User", "Group"}:
            put(subject, "apiGroup", RBAC)


def flow_schema(document: Document) -> None:
    if not ensure_spec(document).get("matchingPrecedence"):
        ensure_spec(document)["matchingPrecedence"] = 1000


def priority_level(document: Document) -> None:
    limited, exempt = inner(document, "spec", "limited"), inner(document, "spec", "exempt")
    if limited is not None:
        put(limited, "nominalConcurrencyShares", 30)
        put(limited, "lendablePercent", 0)
        queuing = inner(limited, "limitResponse", "queuing")
        for name, value in (("queues", 64), ("handSize", 8), ("queueLengthLimit", 50)):
            if queuing is not None and not queuing.get(name):
                queuing[name] = value
    if exempt is not None:
        put(exempt, "nominalConcurrencyShares", 0)
        put(exempt, "lendablePercent", 0)


def webhook_configuration(document: Document) -> None:
    is_mutating = document.get("kind") == "MutatingWebhookConfiguration"
    for webhook in items(document, "webhooks"):
        put_absent(webhook, "failurePolicy", "Fail")
        put_absent(webhook, "matchPolicy", "Equivalent")
        put(webhook, "namespaceSelector", {})
        put(webhook, "objectSelector", {})
        put(webhook, "timeoutSeconds", 10)
        if is_mutating:
            put_absent(webhook, "reinvocationPolicy", "Never")
        for rule in items(webhook, "rules"):
            put_absent(rule, "scope", "*")
        _service_port(inner(webhook, "clientConfig", "service"))


def admission_policy(document: Document) -> None:
    put_absent(ensure_spec(document), "failurePolicy", "Fail")
    _match(inner(document, "spec", "matchConstraints"))


def admission_policy_binding(document: Document) -> None:
    _match(inner(document, "spec", "matchResources"))


def _match(resources: Document | None) -> None:
    if resources is not None:
        put_absent(resources, "matchPolicy", "Equivalent")
        put(resources, "namespaceSelector", {})
        put(resources, "objectSelector", {})
        for name in ("resourceRules", "excludeResourceRules"):
            for rule in items(resources, name):
                put_absent(rule, "scope", "*")


def custom_resource_definition(document: Document) -> None:
    names = inner(document, "spec", "names")
    if names is not None and names.get("kind"):
        put(names, "singular", str(names["kind"]).lower())
        put(names, "listKind", f"{names['kind']}List")
    spec = ensure_spec(document)
    put_absent(spec, "conversion", {"strategy": "None"})
    _service_port(inner(spec, "conversion", "webhook", "clientConfig", "service"))


def api_service(document: Document) -> None:
    _service_port(inner(document, "spec", "service"))


def _service_port(service: Document | None) -> None:
    if service is not None:
        put_absent(service, "port", 443)

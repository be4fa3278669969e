"""Webhooks for Pods exclude the operator's own namespace. Otherwise an operator whose webhook is down could not start again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ctrlruntime.generate.options import Document

__all__ = ["NAMESPACE_LABEL", "excluding", "has_exclusion"]

NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"
"""The label with a namespace's name, which the API server sets."""


def excluding(configuration: Mapping[str, Any], namespace: str) -> Document:
    """Return a webhook configuration whose webhooks for Pods exclude `namespace`, except those that select namespaces by name."""
    webhooks = [_excluding(each, namespace) if has_exclusion(each) else each for each in configuration["webhooks"]]
    return {**configuration, "webhooks": webhooks}


def has_exclusion(webhook: Mapping[str, Any]) -> bool:
    """Tell whether `excluding` changes a webhook: it is called for Pods, and has no condition of its own on the namespace's name."""
    return _is_called_for_pods(webhook) and all(each.get("key") != NAMESPACE_LABEL for each in _conditions(webhook))


def _excluding(webhook: Mapping[str, Any], namespace: str) -> Document:
    conditions = [*_conditions(webhook), {"key": NAMESPACE_LABEL, "operator": "NotIn", "values": [namespace]}]
    return {
        **webhook,
        "namespaceSelector": {**(webhook.get("namespaceSelector") or {}), "matchExpressions": conditions},
    }


def _conditions(webhook: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list((webhook.get("namespaceSelector") or {}).get("matchExpressions") or ())


def _is_called_for_pods(webhook: Mapping[str, Any]) -> bool:
    rules: Iterable[Mapping[str, Any]] = webhook.get("rules") or ()
    return any(
        {"", "*"} & set(rule.get("apiGroups") or ())
        and {"pods", "pods/*", "*", "*/*"} & set(rule.get("resources") or ())
        for rule in rules
    )

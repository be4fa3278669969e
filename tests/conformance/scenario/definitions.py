"""Short forms of CustomResourceDefinitions, made whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def whole(short: Mapping[str, Any], group: str) -> dict[str, Any]:
    """Return the CRD for `{kind, plural?, scope?, names?, schema?, version?, versions?, conversion?, metadata?}`.

    `schema` holds the properties of the object, or the whole schema when it has a `type`; `version` is merged into the one version v1.
    """
    kind = short["kind"]
    plural = short.get("plural", f"{kind.lower()}s")
    spec = {
        "group": group,
        "scope": short.get("scope", "Namespaced"),
        "names": {"kind": kind, "plural": plural, **(short.get("names") or {})},
        "versions": short.get("versions") or [_version(short)],
    }
    if "conversion" in short:
        spec["conversion"] = short["conversion"]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", **(short.get("metadata") or {})},
        "spec": spec,
    }


def _version(short: Mapping[str, Any]) -> dict[str, Any]:
    schema = short.get("schema") or {"spec": _OPEN, "status": _OPEN}
    if not isinstance(schema.get("type"), str):
        schema = {"type": "object", "properties": schema}
    return {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        **(short.get("version") or {}),
    }

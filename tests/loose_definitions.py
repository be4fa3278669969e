"""CustomResourceDefinitions whose schema takes anything: looser than the class, as after a field has changed its type."""

from __future__ import annotations

from typing import Any

from ctrlruntime.api.object import Object


def loose_definition(kind: type[Object]) -> dict[str, Any]:
    info = kind.__kind_info__
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{info.plural}.{info.group}"},
        "spec": {
            "group": info.group,
            "names": {"plural": info.plural, "singular": info.singular, "kind": info.kind, "listKind": info.list_kind},
            "scope": info.scope,
            "versions": [
                {"name": info.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    }

"""The roles and bindings every cluster is born with, as data recorded from kube-apiserver."""

from __future__ import annotations

import copy
import gzip
import json
from typing import Final

from ctrlruntime.data import open_data
from ctrlruntime.schema.trees import Document

GROUP: Final = "rbac.authorization.k8s.io"
_KINDS: Final = {
    "clusterroles": "ClusterRole",
    "clusterrolebindings": "ClusterRoleBinding",
    "roles": "Role",
    "rolebindings": "RoleBinding",
}


def bootstrap() -> list[tuple[str, Document]]:
    """Return the roles and bindings every cluster has, as (plural, object), roles before the bindings that name them.

    Some live in the namespaces kube-system and kube-public.
    """
    data = json.loads(gzip.decompress(open_data("kubernetes-1.36/rbac-bootstrap.json.gz")))
    return [
        (resource, {"apiVersion": f"{GROUP}/v1", "kind": _KINDS[resource], **copy.deepcopy(document)})
        for resource in ("clusterroles", "roles", "clusterrolebindings", "rolebindings")
        for document in data[resource]
    ]

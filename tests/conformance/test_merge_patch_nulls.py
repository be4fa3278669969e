"""Nulls in a merge patch, wherever they stand: both servers store the same, and `apply_merge_patch` says what."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from ctrlruntime.errors import APIStatusError
from ctrlruntime.patch import apply_merge_patch
from ctrlruntime.testing import Environment

GROUP = "nulls.example.com"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
VALUES: tuple[Any, ...] = (
    None,
    1,
    "text",
    {},
    [],
    [None],
    {"a": None},
    {"a": 1},
    {"a": {"b": None, "c": 1}},
    {"a": [None, 1]},
    [1, None, {"a": None, "b": 1}],
    [[None, {"a": None}]],
    [{"a": [None, {"b": None}]}],
)
MERGE = "application/merge-patch+json"


@pytest.fixture
def items(server: Environment) -> Iterator[str]:
    """The path of objects that keep whatever they are given."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names = {"plural": "holders", "singular": "holder", "kind": "Holder", "listKind": "HolderList"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": GROUP, "scope": "Cluster", "names": names, "versions": [version]}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    server.install_crds({**head, "metadata": {"name": f"holders.{GROUP}"}, "spec": spec}, timeout=30)
    yield f"/apis/{GROUP}/v1/holders"
    server.connection.request("DELETE", f"{DEFINITIONS}/holders.{GROUP}")


def test_a_custom_resource_gets_what_the_function_says(server, items):
    pairs = {f"k{number}": pair for number, pair in enumerate(itertools.product(VALUES, VALUES))}
    stored = {"held": {name: before for name, (before, _) in pairs.items()}}
    patch = {"held": {name: after for name, (_, after) in pairs.items()} | {"new": {"a": None, "b": [None]}}}
    head = {"apiVersion": f"{GROUP}/v1", "kind": "Holder", "metadata": {"name": "one"}}
    created = server.connection.request("POST", items, {**head, **stored})

    patched = server.connection.request("PATCH", f"{items}/one", patch, content_type=MERGE)

    assert created["held"] == stored["held"]
    assert patched["held"] == apply_merge_patch(stored, patch)["held"]


TYPED: Mapping[str, tuple[str, dict[str, Any], tuple[dict[str, Any], ...]]] = {
    "configmaps": (
        "/api/v1/namespaces/{}/configmaps",
        {"data": {"a": "1", "b": "2"}},
        (
            {"data": {"a": None, "c": None}},
            {"data": None},
            {"metadata": {"finalizers": ["example.com/a", None]}},
            {"metadata": {"finalizers": [None]}},
            {"metadata": {"labels": {"a": None, "b": "c"}, "ownerReferences": [None]}},
            {"metadata": {"ownerReferences": None, "annotations": {"x": None}}},
        ),
    ),
    "services": (
        "/api/v1/namespaces/{}/services",
        {"spec": {"ports": [{"port": 80, "name": "http"}], "selector": {"a": "b"}}},
        (
            {"spec": {"ports": [{"port": 81, "name": None}]}},
            {"spec": {"ports": [{"port": 81, "protocol": None, "targetPort": None}]}},
            {"spec": {"ports": [None]}},
            {"spec": {"externalIPs": [None, "192.0.2.1"]}},
            {"spec": {"externalIPs": ["192.0.2.1", "192.0.2.2"], "selector": {"a": None, "c": "d"}}},
            {"spec": {"sessionAffinity": None}},
        ),
    ),
    "deployments": (
        "/apis/apps/v1/namespaces/{}/deployments",
        {
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": {"a": "b"}},
                "template": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {"containers": [{"name": "c", "image": "i", "args": ["x"]}]},
                },
            }
        },
        tuple(
            {"spec": {"template": {"spec": {"containers": containers}}}}
            for containers in (
                [{"name": "c", "image": "i", "args": ["a", None, "b"], "command": None}],
                [{"name": "c", "image": "i", "args": [None], "env": [{"name": "A", "value": None}]}],
                [{"name": "c", "image": "i", "env": [{"name": None, "value": "v"}]}],
                [{"name": "c", "image": "i", "env": [None]}],
                [{"name": "c", "image": None}],
                [None, {"name": "c", "image": "i"}],
                None,
                [{"name": "c", "image": "i", "resources": {"limits": {"cpu": None, "memory": "1Gi"}}}],
            )
        ),
    ),
}


@pytest.mark.parametrize("kind", TYPED)
def test_both_servers_read_nulls_of_built_in_kinds_alike(kind, embedded_server, real_server):
    path, stored, patches = TYPED[kind]

    def answers(server: Environment) -> list[Any]:
        namespace = server.create_namespace("nulls")
        where = path.format(namespace)
        found: list[Any] = []
        for number, patch in enumerate(patches):
            name = f"o{number}"
            server.connection.request("POST", where, {"metadata": {"name": name}, **stored})
            try:
                answer = server.connection.request("PATCH", f"{where}/{name}", patch, content_type=MERGE)
            except APIStatusError as error:
                found.append((error.code, str(error)))
            else:
                (answer["metadata"].get("annotations") or {}).pop(
                    "deployment.kubernetes.io/revision", None
                )  # a controller's
                kept = {
                    key: answer["metadata"].get(key) or None
                    for key in ("finalizers", "labels", "annotations", "ownerReferences")
                }
                found.append((kept, answer.get("data"), _without_addresses(answer.get("spec"))))
        return found

    expected = answers(real_server)

    assert answers(embedded_server) == expected


def _without_addresses(spec: Any) -> Any:
    return spec and {key: value for key, value in spec.items() if key not in {"clusterIP", "clusterIPs"}}

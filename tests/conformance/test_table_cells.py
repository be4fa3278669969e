"""What `kubectl get` prints of policies, claims of devices and API services: the cells are those of the real server."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from builtin_objects import binding, exactly, mutating_binding, mutating_policy, named, policy

from ctrlruntime.testing import Environment

_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_SELECTOR = {
    "matchLabels": {"b": "c", "a": "b"},
    "matchExpressions": [{"key": "k", "operator": "In", "values": ["1", "2"]}],
}
_PARAMETER = {"parameterNotFoundAction": "Allow"}
OBJECTS: dict[str, tuple[str, dict[str, Any]]] = {
    "policy": (f"{_ADMISSION}/validatingadmissionpolicies", policy()),
    "policy-of-kind": (
        f"{_ADMISSION}/validatingadmissionpolicies",
        policy(paramKind={"apiVersion": "v1", "kind": "ConfigMap"}),
    ),
    "mutating-policy": (f"{_ADMISSION}/mutatingadmissionpolicies", mutating_policy()),
    "binding": (f"{_ADMISSION}/validatingadmissionpolicybindings", binding()),
    "binding-of-name": (
        f"{_ADMISSION}/validatingadmissionpolicybindings",
        binding(paramRef={"name": "a", **_PARAMETER}),
    ),
    "binding-of-namespace": (
        f"{_ADMISSION}/validatingadmissionpolicybindings",
        binding(paramRef={"name": "a", "namespace": "n", **_PARAMETER}),
    ),
    "binding-of-labels": (
        f"{_ADMISSION}/mutatingadmissionpolicybindings",
        mutating_binding(paramRef={"selector": _SELECTOR, **_PARAMETER}),
    ),
    "claim": ("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims", named(spec=exactly())),
    "slice": (
        "/apis/resource.k8s.io/v1/resourceslices",
        named(
            spec={
                "driver": "d.example.com",
                "allNodes": True,
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            }
        ),
    ),
    "attributes-class": (
        "/apis/storage.k8s.io/v1/volumeattributesclasses",
        named(driverName="d", parameters={"a": "b"}),
    ),
    **{
        f"storage-class-{group}-{value}": (
            "/apis/storage.k8s.io/v1/storageclasses",
            {
                "metadata": {"name": "s", "annotations": {f"{group}/is-default-class": value}},
                "provisioner": "d.example.com",
            },
        )
        for group in ("storageclass.kubernetes.io", "storageclass.beta.kubernetes.io", "other.example.com")
        for value in ("true", "yes")
    },
}


def cells(server: Environment, path: str) -> list[Any]:
    """The cells of one object, except for its age."""
    headers = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
    table = json.loads(server.connection.exchange("GET", path, headers=headers)[2])
    names = [column["name"] for column in table["columnDefinitions"]]
    return [cell for name, cell in zip(names, table["rows"][0]["cells"], strict=True) if name != "Age"]


@pytest.mark.parametrize("name", OBJECTS)
def test_cells(name, embedded_server, real_server):
    path, body = OBJECTS[name]
    found = []
    for server in (embedded_server, real_server):
        metadata = {**body.get("metadata", {}), "name": f"cells-{name}"}
        server.connection.request("POST", path, {**body, "metadata": metadata})
        found.append(cells(server, f"{path}/cells-{name}"))
        server.connection.request("DELETE", f"{path}/cells-{name}")

    assert found[0] == found[1]


def test_cells_of_an_api_service(embedded_server, real_server):
    path = "/apis/apiregistration.k8s.io/v1/apiservices/v1.apps"

    assert cells(embedded_server, path) == cells(real_server, path) == ["v1.apps", "Local", "True"]


def test_a_class_of_volumes_goes_when_nothing_is_of_it(server):
    path, body = OBJECTS["attributes-class"]
    server.connection.request("POST", path, {**body, "metadata": {"name": "unused"}})

    server.connection.request("DELETE", f"{path}/unused")

    deadline = time.monotonic() + 30
    while any(each["metadata"]["name"] == "unused" for each in server.connection.request("GET", path)["items"]):
        assert time.monotonic() < deadline, "the class is still there"
        time.sleep(0.05)

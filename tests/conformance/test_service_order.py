"""In which order the create of a Service is refused: both servers look for its addresses and ports first."""

from __future__ import annotations

import json
from typing import Any

from ctrlruntime.testing import Environment


def created(server: Environment, namespace: str, name: str, metadata: dict[str, Any], **spec: Any) -> tuple[int, str]:
    """Return the code and the message."""
    body = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, **metadata},
        "spec": {"ports": [{"port": 80}], **spec},
    }
    head = {"Content-Type": "application/json", "Accept": "application/json"}
    path = f"/api/v1/namespaces/{namespace}/services"
    code, _, text = server.connection.exchange("POST", path, json.dumps(body).encode(), head)
    return code, json.loads(text).get("message", "")


def test_addresses_and_ports_come_before_the_name_and_the_version(server, namespace: str) -> None:
    assert created(server, namespace, "one", {})[0] == 201
    taken = server.connection.request("GET", f"/api/v1/namespaces/{namespace}/services/one")["spec"]["clusterIP"]
    version = {"resourceVersion": "7"}

    for name, metadata in (("one", {}), ("two", version), ("one", version)):
        code, message = created(server, namespace, name, metadata, clusterIP=taken)
        assert (code, message.endswith("provided IP is already allocated")) == (422, True)
        code, message = created(server, namespace, name, metadata, clusterIP="192.0.2.7")
        assert (code, message.endswith("does not match the current range")) == (422, True)
    assert created(server, namespace, "one", {}) == (409, 'services "one" already exists')
    refused = (500, "resourceVersion should not be set on objects to be created")
    assert created(server, namespace, "two", version) == created(server, namespace, "one", version) == refused


def test_a_refused_service_keeps_no_port(server, namespace: str) -> None:
    node_port: dict[str, Any] = {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30877}]}

    assert created(server, namespace, "one", {"resourceVersion": "7"}, **node_port)[0] == 500
    assert created(server, namespace, "one", {}, **node_port)[0] == 201
    code, message = created(server, namespace, "one", {}, **node_port)
    server.connection.request("DELETE", f"/api/v1/namespaces/{namespace}/services/one")

    assert (code, message.endswith("provided port is already allocated")) == (422, True)

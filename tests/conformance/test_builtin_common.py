"""What all built-in kinds have in common is alike on both servers: field selectors and bookmarks."""

from __future__ import annotations

import http.client
import json
from typing import Any

from test_builtin_kinds import Client, both

from ctrlruntime.testing import Environment

__all__ = ["both"]

LABELS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "name", "spec.nodeName", "spec.restartPolicy", "spec.schedulerName",
    "spec.serviceAccountName", "spec.hostNetwork", "spec.type", "spec.clusterIP", "spec.unschedulable", "spec.signerName", "spec.driver",
    "spec.storageClassName", "spec.replicas", "status.phase", "status.podIP", "status.podIPs", "status.replicas", "status.successful",
    "status.nominatedNodeName", "type", "reason", "source", "reportingComponent", "reportingController", "involvedObject.name",
    "regarding.name", "involvedObject.fieldPath", "regarding.fieldPath", "spec.volumeName", "spec.attacher",
)  # fmt: skip
"""What some kind can be selected by, and what people try."""


def resources(server: Environment) -> list[str]:
    """The path of each built-in resource that can be listed."""
    found: list[str] = []
    groups: Any = server.connection.request("GET", "/apis")
    versions = ["/api/v1", *(f"/apis/{one['groupVersion']}" for group in groups["groups"] for one in group["versions"])]
    for path in versions:
        if not path.endswith(".example.com/v1"):
            listed: Any = server.connection.request("GET", path)
            found += [f"{path}/{one['name']}" for one in listed["resources"] if "list" in one["verbs"]]
    return found


def test_both_servers_take_the_same_field_selectors(both):
    embedded, real, _ = both
    found: dict[str, Any] = {}
    expected: dict[str, Any] = {}

    for path in resources(embedded):
        for label in LABELS:
            for server, answers in ((embedded, found), (real, expected)):
                code, _, body = Client(server).send("GET", f"{path}?fieldSelector={label}%3Dx")
                answers[f"{path} {label}"] = (code, body.get("message"))

    assert found == expected


def test_both_servers_send_the_same_bookmarks(both):
    """A bookmark is an object of the kind with nothing but a version: Go writes its zero values."""
    embedded, real, _ = both
    paths = [path for path in resources(embedded) if "/componentstatuses" not in path]

    assert {path: bookmark(embedded, path) for path in paths} == {path: bookmark(real, path) for path in paths}


def bookmark(server: Environment, path: str) -> Any:
    query = "watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    address = server.connection.url.removeprefix("https://")
    connection = http.client.HTTPSConnection(address, context=server.connection.tls, timeout=60)
    try:
        connection.request("GET", f"{path}?{query}", headers=dict(server.connection.headers))
        frames = (json.loads(line) for line in connection.getresponse())
        found: Any = next(frame["object"] for frame in frames if frame["type"] != "ADDED")
    finally:
        connection.close()
    found["metadata"].pop("resourceVersion", None)
    return found

"""Python's other clients work on the server unmodified: kopf, kr8s, lightkube and kubernetes_asyncio, the same programs on both servers.

Each program is a process of its own: what it warns of, and how it keeps its connections, is not ours to judge.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers import LONGEST_WAIT

from ctrlruntime.testing import Environment, eventually

CLIENTS = Path(__file__).parent / "clients"
WIDGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.clients.example.com"},
    "spec": {
        "group": "clients.example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget", "singular": "widget", "listKind": "WidgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}
WIDGET = "/apis/clients.example.com/v1/namespaces/{}/widgets"


@pytest.fixture(scope="module")
def _installed() -> set[str]:
    return set()


@pytest.fixture
def widgets(server: Environment, _installed: set[str]) -> None:
    """The kind Widget is served."""
    if server.backend not in _installed:
        server.install_crds(WIDGETS)
        _installed.add(server.backend)


def printed(script: str, server: Environment, namespace: str) -> list[str]:
    command = [sys.executable, str(CLIENTS / script), str(server.kubeconfig_path), namespace]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_WAIT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split()


@pytest.mark.usefixtures("widgets")
def test_kubernetes_asyncio(server, namespace):
    expected = ["typed", "watched", "dynamic", "errors", "done"]
    assert printed("kubernetes_asyncio_script.py", server, namespace) == expected


@pytest.mark.usefixtures("widgets", "nodes")
def test_kr8s(server, namespace):
    assert printed("kr8s_script.py", server, namespace) == ["objects", "custom", "workload", "done"]


@pytest.mark.usefixtures("widgets")
def test_lightkube(server, namespace):
    assert printed("lightkube_script.py", server, namespace) == ["typed", "applied", "generic", "paged", "done"]


@pytest.fixture
def kopf_output(server: Environment, namespace: str, widgets: None, tmp_path: Path) -> Iterator[Path]:
    """A kopf operator runs in the namespace; the value is the file it writes to."""
    output = tmp_path / "kopf.log"
    command = [sys.executable, "-m", "kopf", "run", "--standalone", "-n", namespace, str(CLIENTS / "kopf_operator.py")]
    environment = {**os.environ, "KUBECONFIG": str(server.kubeconfig_path)}
    with (
        output.open("wb") as stream,
        subprocess.Popen(command, env=environment, stdout=stream, stderr=subprocess.STDOUT) as process,
    ):
        try:
            yield output
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(LONGEST_WAIT) == 0, output.read_text()


async def test_kopf(server, namespace, kopf_output):
    path = WIDGET.format(namespace)
    body = {"apiVersion": "clients.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}
    server.connection.request("POST", path, body)

    def status() -> dict:
        return server.connection.request("GET", f"{path}/w").get("status", {})

    try:
        await eventually(
            lambda: status().get("created") == {"size": 1} and status().get("ticked"), timeout=LONGEST_WAIT
        )
        child = f"/api/v1/namespaces/{namespace}/configmaps/w"
        assert server.connection.request("GET", child)["data"] == {"size": "1"}
        server.connection.request(
            "PATCH", f"{path}/w", {"spec": {"size": 5}}, content_type="application/merge-patch+json"
        )
        await eventually(
            lambda: status().get("size") == 5 and server.connection.request("GET", child)["data"] == {"size": "5"},
            timeout=LONGEST_WAIT,
        )
        events = f"/api/v1/namespaces/{namespace}/events?fieldSelector=involvedObject.name=w,reason=Made"
        await eventually(lambda: len(server.connection.request("GET", events)["items"]) == 1, timeout=LONGEST_WAIT)
        server.connection.request("DELETE", f"{path}/w")
        await eventually(lambda: not server.connection.request("GET", path)["items"], timeout=LONGEST_WAIT)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{kopf_output.read_text()}") from error

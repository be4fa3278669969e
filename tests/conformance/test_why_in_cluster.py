"""`ctrl why` reads an operator in a cluster: kube-apiserver, and a node whose port forwarding is the kubelet's own library.

The Pods are those of the node simulator. The process of a Pod runs here, so `kubelet-portforward` connects to a port of this machine.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from servers import LONGEST_WAIT, free_port
from shop_project import Shop, shop

from ctrlruntime.apiserver.controllers.nodes import NODE_NAME
from ctrlruntime.cli import ctrl
from ctrlruntime.testing import Environment, eventually
from ctrlruntime.testing.controlplane import Programs

__all__ = ["shop"]

NODE = f"/api/v1/nodes/{NODE_NAME}"
MERGE = "application/merge-patch+json"
FLAG = "--debug-bind-address=127.0.0.1:"

Kubelet = Callable[..., None]


def wait_until(check: Callable[[], bool]) -> None:
    """Wait for what `ctrl` shows, in a thread: it runs an event loop of its own."""
    asyncio.run(eventually(lambda: asyncio.to_thread(check), timeout=LONGEST_WAIT))


@pytest.fixture
def kubelet(real_server: Environment, real_programs: Programs, _real_nodes: None) -> Iterator[Kubelet]:
    """Start the port forwarding of the node; `kubelet(**{pod: port})` for Pods whose process has another port than the Pod."""
    program = real_programs.kube_apiserver.with_name("kubelet-portforward")
    if not program.is_file():
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(
            "needs kubelet-portforward: run tests/controlplane/build"
        )
    request = real_server.connection.request
    before = {name: request("GET", NODE)["status"][name] for name in ("addresses", "daemonEndpoints")}
    started: list[subprocess.Popen[str]] = []

    def start(**ports: int) -> None:
        command = [str(program), *(f"-pod={pod}=127.0.0.1:{port}" for pod, port in ports.items())]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        started.append(process)
        assert process.stdout is not None
        register(int(process.stdout.readline()))

    def register(port: int) -> None:
        addresses = [{"type": kind, "address": "127.0.0.1"} for kind in ("InternalIP", "Hostname")]
        status = {"addresses": addresses, "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}
        request("PATCH", f"{NODE}/status", {"status": status}, content_type=MERGE)

    register(free_port())
    yield start
    request("PATCH", f"{NODE}/status", {"status": before}, content_type=MERGE)
    for process in started:
        process.communicate(timeout=LONGEST_WAIT)  # its standard input is closed


@pytest.fixture
def why(real_server: Environment) -> Callable[..., Any]:
    def command(*arguments: str) -> Any:
        return CliRunner().invoke(ctrl, ["why", *arguments, "--kubeconfig", str(real_server.kubeconfig_path)])

    return command


@pytest.fixture
def deployed(real_server: Environment, shop: Shop, kubelet: Kubelet) -> Iterator[Callable[..., list[str]]]:
    """Deploy the project with debug pages at `port`, and return the names of its Pods."""

    def deploy(*, port: int, replicas: int = 1) -> list[str]:
        shop.write()
        manager = shop.folder / "config/manager/manager.yaml"
        text = manager.read_text().replace("replicas: 1", f"replicas: {replicas}")
        manager.write_text(text.replace(f"{FLAG}8082", f"{FLAG}{port}"))
        done = CliRunner().invoke(ctrl, ["deploy", "--kubeconfig", str(real_server.kubeconfig_path)])
        assert done.exit_code == 0, done.stderr
        found = real_server.connection.request("GET", f"/api/v1/namespaces/{shop.namespace}/pods")["items"]
        return sorted(each["metadata"]["name"] for each in found)

    yield deploy
    real_server.delete_namespace(shop.namespace)
    real_server.uninstall_crds([shop.crd])


@pytest.fixture
def operator(real_server: Environment, shop: Shop) -> Iterator[Callable[[int], None]]:
    """Run the operator of the project, with its debug pages at a port."""
    started: list[subprocess.Popen[bytes]] = []

    def run(port: int) -> None:
        with Path("operator.log").open("wb") as log:
            command = [
                sys.executable,
                "-m",
                shop.package,
                f"{FLAG}{port}",
                f"--kubeconfig={real_server.kubeconfig_path}",
            ]
            started.append(subprocess.Popen(command, env=os.environ, stdout=log, stderr=subprocess.STDOUT))

    yield run
    for process in started:
        process.terminate()
        process.wait(LONGEST_WAIT)


def test_operator_in_a_pod_explains_a_reconcile(real_server, shop, deployed, kubelet, operator, why):
    port = free_port()
    [pod] = deployed(port=port)
    kubelet()
    operator(port)
    real_server.connection.request("POST", shop.carts, shop.cart())

    def explained() -> bool:
        done = why("Cart", "default/mine")
        return done.exit_code == 0 and "last run         success" in done.stdout

    wait_until(explained)
    shown = why("Cart", "default/mine")
    data = why("carts", "default/mine", "--json")
    other = why("Widget", "default/mine")

    assert shown.stderr == f"operator: Pod {shop.namespace}/{pod}\n"
    assert shown.stdout.startswith("Cart default/mine  (controller cart; version ")
    assert json.loads(data.stdout)["answers"][0]["controller"] == "cart"
    assert (other.exit_code, other.stdout) == (1, "")
    assert "error: no controller reconciles or watches the kind 'Widget'" in other.stderr


def test_leader_is_the_pod_that_is_read(real_server, shop, deployed, kubelet, operator, why):
    first, second = deployed(port=free_port(), replicas=2)
    port = free_port()
    kubelet(**{second: port})
    operator(port)
    real_server.connection.request("POST", shop.carts, shop.cart())
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{shop.namespace}/leases"
    real_server.connection.request(
        "POST", leases, {"metadata": {"name": "shop"}, "spec": {"holderIdentity": f"{second}_6f1c"}}
    )

    wait_until(lambda: why("Cart", "default/mine").exit_code == 0)
    shown = why("Cart", "default/mine")
    real_server.connection.request(
        "PATCH", f"{leases}/shop", {"spec": {"holderIdentity": f"{first}_0a77"}}, content_type=MERGE
    )
    refused = why("Cart", "default/mine")

    assert (shown.exit_code, shown.stderr) == (0, f"operator: Pod {shop.namespace}/{second}\n")
    assert refused.exit_code == 1
    told, error = refused.stderr.splitlines()
    assert told == f"operator: Pod {shop.namespace}/{first}"
    assert f"of Pod {shop.namespace}/{first}: error forwarding port " in error
    assert "connection refused. Check that the operator runs: `kubectl -n " in error


def test_node_that_the_api_server_does_not_reach_is_reported(shop, deployed, why):
    [pod] = deployed(port=8082)

    done = why("Cart", "default/mine")

    assert done.exit_code == 1
    told, error = done.stderr.splitlines()
    assert told == f"operator: Pod {shop.namespace}/{pod}"
    assert error.startswith(f"error: the API server cannot forward a port of Pod {shop.namespace}/{pod}: ")
    assert error.endswith(
        f"Check its node, or forward the port with `kubectl -n {shop.namespace} port-forward pod/{pod} 8082`, and pass "
        "--address 127.0.0.1:8082"
    )

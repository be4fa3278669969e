"""What people type, against a whole server with its simulated controllers; skipped where there is no kubectl."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import socket
import subprocess

import pytest

from ctrlruntime.apiserver import Options

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")


@pytest.fixture(scope="module")
def server_options():
    return Options()


@pytest.fixture(params=["true", "false"], ids=["websocket", "spdy"])
def streams(request):
    """How kubectl streams: over WebSocket, or over SPDY as clients before 1.31."""
    return {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": request.param, "KUBECTL_PORT_FORWARD_WEBSOCKETS": request.param}


@pytest.fixture(scope="module")
def environment(thread, tmp_path_factory):
    home = tmp_path_factory.mktemp("kubectl")
    thread.server.write_kubeconfig(home / "config")
    return {**os.environ, "HOME": str(home), "KUBECONFIG": str(home / "config")}


@pytest.fixture
def kubectl(environment, ns):
    namespace = ns.removeprefix("namespaces/")

    def run(command, text=None, code=0):
        done = subprocess.run(
            ["kubectl", "-n", namespace, *command.split()],
            input=text,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    return run


@pytest.fixture(scope="module")
def gizmos(thread, make):
    client = make.client(thread)
    columns = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]
    paths = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas"}
    extra = {"additionalPrinterColumns": columns, "subresources": {"status": {}, "scale": paths}}
    client.made(make.definitions, make.definition("gizmos", "Gizmo", names={"shortNames": ["gz"]}, **extra))
    client.close()


def gizmo(make, name, **spec):
    return json.dumps({"apiVersion": f"{make.group}/v1", "kind": "Gizmo", "metadata": {"name": name}, "spec": spec})


def test_a_deployment_from_apply_to_delete(kubectl, make):
    web = json.dumps(make.deployment("web", 2))

    assert "deployment.apps/web created" in kubectl("apply -f -", web)
    assert "successfully rolled out" in kubectl("rollout status deploy/web --timeout=20s")
    assert "deployment.apps/web unchanged" in kubectl("apply -f -", web)
    assert "2/2" in kubectl("get deploy web")
    kubectl("scale deploy web --replicas 3")
    kubectl("rollout status deploy/web --timeout=20s")
    assert kubectl("get pods --no-headers").count("Running") == 3
    described = kubectl("describe deploy web")
    assert "Scaled up replica set" in described
    assert "NewReplicaSetAvailable" in described
    kubectl("set image deploy/web c=nginx:2")
    kubectl("rollout status deploy/web --timeout=20s")
    assert "nginx:2" in kubectl("get deploy web -o yaml")
    kubectl("delete deploy web --timeout=20s")
    kubectl("wait --for=delete pods --all --timeout=20s")
    assert "No resources found" in kubectl("get pods")


def test_annotations_say_what_a_container_logs_and_answers(kubectl, environment, monkeypatch, streams):
    for name, value in streams.items():
        monkeypatch.setitem(environment, name, value)
    answers = "[{command: ls -l, stdout: file}, {command: cat .*, stderr: no such file, exitCode: 3}]"
    kubectl("run p --image=busybox --annotations=simulation.ctrlruntime.dev/log=hello")
    kubectl("wait --for=condition=Ready pod/p --timeout=10s")
    patch = {"metadata": {"annotations": {"simulation.ctrlruntime.dev/exec": answers}}}
    kubectl("patch pod p --patch-file /dev/stdin", json.dumps(patch))

    assert kubectl("logs p").strip() == "hello"
    assert kubectl("exec p -- ls -l") == "file\n"
    assert kubectl("exec p -- cat x", code=3) == "no such file\ncommand terminated with exit code 3\n"
    assert "executable file not found in $PATH" in kubectl("exec p -- ps", code=1)


def test_custom_resources(kubectl, gizmos, make):
    assert "gizmo" in kubectl("apply -f -", gizmo(make, "one", size=2))
    assert kubectl("get gz").splitlines()[0].split() == ["NAME", "SIZE"]
    assert 'unknown field "spec.bogus"' in kubectl("apply -f -", gizmo(make, "two", size=2, bogus=1), code=1)
    kubectl("scale gz one --replicas 5")
    assert kubectl("get gz one -o jsonpath={.spec.size}") == "5"
    assert "spec.mode" in kubectl('patch gz one --type merge -p {"spec":{"mode":"Z"}}', code=1)
    assert "minLength" in kubectl("get crd gizmos.stable.example.com -o yaml")
    explained = kubectl("explain gizmos.spec")
    assert "-required-" in explained
    assert "enum: A, B" in explained
    assert "gizmos" in kubectl("api-resources --api-group=stable.example.com")
    kubectl("delete gz one --timeout=20s")


def test_changes_are_shown_as_they_come(kubectl, environment, ns, api):
    command = [
        "kubectl",
        "-n",
        ns.removeprefix("namespaces/"),
        "get",
        "cm",
        "-w",
        "--no-headers",
        "-o",
        "custom-columns=N:.metadata.name",
    ]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        seen = b""
        api.made(f"/api/v1/{ns}/configmaps", {"metadata": {"name": "later"}})
        while b"later" not in seen and select.select([process.stdout], [], [], 20)[0]:
            seen += os.read(process.stdout.fileno(), 65536)
        process.terminate()

    assert b"later" in seen


def test_typed_creates_speak_protobuf(kubectl):
    kubectl("create configmap c --from-literal=a=b")
    kubectl("create secret generic s --from-literal=a=b")
    kubectl("create deployment d --image=nginx")
    kubectl("create role r --verb=get --resource=pods")
    kubectl("create rolebinding rb --role=r --user=ann")
    kubectl("create job j --image=busybox")
    kubectl("create serviceaccount sa")

    assert kubectl("get cm c -o jsonpath={.data.a}") == "b"
    assert "10.0.0." in kubectl("expose deployment d --port 80") + kubectl("get svc d")
    assert "yes" in kubectl("auth can-i get pods --as ann")
    assert "no" in kubectl("auth can-i delete pods --as ann", code=1)
    assert "kubernetes-admin" in kubectl("auth whoami")


def test_a_namespace_goes_with_all_it_holds(kubectl, ns):
    kubectl("create configmap c --from-literal=a=b")

    kubectl(f"delete ns {ns.removeprefix('namespaces/')} --timeout=20s")

    assert "NotFound" in kubectl(f"get ns {ns.removeprefix('namespaces/')}", code=1)


def test_port_forward_serves_many_connections(environment, kubectl, ns, streams):
    with socket.create_server(("127.0.0.1", 0)) as behind:
        kubectl("apply -f -", POD_WITH_PORT.replace("LOCAL", str(behind.getsockname()[1])))
        kubectl("wait --for=condition=Ready pod/web")
        namespace = ns.removeprefix("namespaces/")
        command = ["kubectl", "-n", namespace, "port-forward", "pod/web", "--address=127.0.0.1", ":80", ":81"]
        with subprocess.Popen(
            command, env={**environment, **streams}, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as forwarding:
            try:
                ports = [int(re.search(rb"127.0.0.1:(\d+) -> ", forwarding.stdout.readline())[1]) for _ in range(2)]
                clients = [socket.create_connection(("127.0.0.1", ports[0])) for _ in range(3)]
                for number, client in enumerate(clients):
                    client.sendall(b"%d" % number)
                    client.shutdown(socket.SHUT_WR)
                for _ in clients:
                    connection, _ = behind.accept()
                    with connection, connection.makefile("rb") as lines:
                        connection.sendall(lines.read() * 100_000)
                for number, client in enumerate(clients):
                    with client, client.makefile("rb") as lines:
                        assert lines.read() == b"%d" % number * 100_000
                with socket.create_connection(("127.0.0.1", ports[1])) as refused:
                    assert refused.recv(1) == b""
            finally:
                forwarding.terminate()
            assert (
                b"name a local port with the annotation simulation.ctrlruntime.dev/port.81" in forwarding.stderr.read()
            )


POD_WITH_PORT = """
apiVersion: v1
kind: Pod
metadata:
  name: web
  annotations: {simulation.ctrlruntime.dev/port.80: "LOCAL"}
spec:
  containers: [{name: c, image: i}]
"""

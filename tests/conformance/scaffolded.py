"""Operators made by `ctrl` in an empty folder, with nothing of the project but its wheel; what a cluster would do for them, the test does."""

from __future__ import annotations

import ast
import base64
import json
import os
import re
import signal
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from forked import CTRL, Forked, Forks
from servers import LONGEST_WAIT, free_port

from ctrlruntime.certificates import make_authority
from ctrlruntime.testing import Environment, eventually

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
SETUP = "\n\ndef setup_with_manager(mgr: ctrl.Manager) -> None:\n    {}\n"


def unpacked_wheel(folder: Path) -> Path:
    """Build the wheel and return the folder it is unpacked in, to be put first on the module path."""
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=LONGEST_WAIT)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def forks_of_wheel(site: Path) -> Forks:
    """Return what starts `ctrl` of an unpacked wheel."""
    return Forks(CTRL, env={**os.environ, "PYTHONPATH": str(site)})


class Shell:
    """Runs commands in a folder, with the wheel and without the checkout."""

    def __init__(self, folder: Path, site: Path, kubeconfig: Path, forks: Forks) -> None:
        self.folder = folder
        self.forks = forks
        self.kubeconfig = kubeconfig
        self.environ = {
            **{name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ},
            "PYTHONPATH": str(site),
            "KUBECONFIG": str(kubeconfig),
        }

    def try_ctrl(self, *words: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "ctrlruntime", *words]
        if stdin is None:
            return self.forks.run(command, cwd=self.folder, env=self.environ)
        return self.try_run(command, stdin=stdin)

    def ctrl(self, *words: str, stdin: str | None = None) -> str:
        """Return what `ctrl` prints. Raises: AssertionError with all it said when it fails."""
        done = self.try_ctrl(*words, stdin=stdin)
        assert done.returncode == 0, f"ctrl {' '.join(words)}\n{done.stdout}{done.stderr}"
        assert "Traceback" not in done.stderr
        return done.stdout

    def kubectl(self, *words: str, stdin: str | None = None) -> str:
        done = self.try_run(["kubectl", *words], stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(words)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def try_run(self, command: Sequence[str], stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.environ,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    def drop_in(self, source: str, target: str, modules: Mapping[str, str], setup: str = "") -> None:
        """Copy a module of the examples in place of a scaffolded one, as a person would: its imports follow the new places, and what the
        project has of its own (the election, the function that builds everything) is left out."""
        text = without((EXAMPLES / source).read_text(), {"setup", "ELECTION", "register_webhooks"} - {setup})
        for old, new in modules.items():
            text = text.replace(f"from {old} import", f"from {new} import")
        if setup:
            call = {"register_webhooks": "register_webhooks(mgr)"}.get(
                setup, f"{setup}(mgr.client).setup_with_manager(mgr)"
            )
            text += SETUP.format(call)
        path = self.folder / target
        assert path.exists(), f"the scaffold has no {target}"
        path.write_text(text)


def without(text: str, names: set[str]) -> str:
    """Return a module's text without the functions, values and imports of these names."""
    lines = text.splitlines(keepends=True)
    for node in reversed(ast.parse(text).body):
        if (isinstance(node, ast.FunctionDef) and node.name in names) or (
            isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in names
        ):
            del lines[node.lineno - 1 : node.end_lineno]
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("examples"):
            kept = [alias.name for alias in node.names if alias.name not in names]
            lines[node.lineno - 1 : node.end_lineno] = (
                [f"from {node.module} import {', '.join(kept)}\n"] if kept else []
            )
    return "".join(lines)


class InCluster:
    """The deployed operator as a process: the Deployment's arguments and variables, and the identity of its ServiceAccount.

    It plays what an API server alone does not have: cert-manager (the Secret and the injected authorities), the kubelet that starts the
    container, and the network from the API server to the Service, which is replaced by the address of the process.
    """

    def __init__(self, server: Environment, shell: Shell, project: str) -> None:
        self.server = server
        self.shell = shell
        self.project = project
        self.namespace = f"{project}-system"
        self.log = shell.folder / "operator.log"
        self.process: Forked | None = None
        self.port = 0
        self.authority = make_authority("the cert-manager of a test")

    def request(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        return self.server.connection.request(method, path, body)

    def start(self) -> None:
        container = self._deployment()["spec"]["template"]["spec"]["containers"][0]
        variables = {each["name"]: self._value(each) for each in container.get("env", [])}
        # Without cert-manager the operator makes its certificate and has it trusted by itself.
        is_own = "WEBHOOK_SECRET" in variables
        if not is_own:
            folder = self.shell.folder / "serving-certs"
            self._write_certificate(folder)
            variables["WEBHOOK_CERT_PATH"] = str(folder)
        variables["METRICS_CERT_PATH"] = ""
        variables["METRICS_BIND_ADDRESS"] = "127.0.0.1:0"
        self.port = free_port()
        args = [re.sub(r"\$\((\w+)\)", lambda found: variables[found[1]], each) for each in container["args"]]
        # Fixed ports are for a Pod; here, other operators have the same ones.
        fixed = ("--health-probe-bind-address", "--debug-bind-address")
        args = [each for each in args if not each.startswith(fixed)]
        args += [f"{flag}=127.0.0.1:0" for flag in fixed] + [f"--webhook-port={self.port}"]
        args += [f"--leader-election-namespace={self.namespace}", f"--kubeconfig={self._identity()}"]
        self.log.write_text("")
        self.process = self.shell.forks.popen(
            f"{self.project}.__main__",
            *args,
            cwd=self.shell.folder,
            env={**self.shell.environ, **variables},
            out=self.log,
        )
        if not is_own:
            self._route(self.port)

    async def says(self, text: str) -> None:
        await eventually(lambda: text in self.log.read_text())

    def stop(self) -> int:
        if self.process is None:
            return 0
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=LONGEST_WAIT)

    def _deployment(self) -> dict[str, Any]:
        return self.request(
            "GET", f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{self.project}-controller-manager"
        )

    def _value(self, variable: dict[str, Any]) -> str:
        field = variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
        return self.namespace if field == "metadata.namespace" else variable.get("value", "")

    def _write_certificate(self, folder: Path) -> None:
        pair = self.authority.server(["127.0.0.1"])
        folder.mkdir()
        (folder / "tls.crt").write_bytes(pair.certificate)
        (folder / "tls.key").write_bytes(pair.key)

    def _identity(self) -> Path:
        """Return a kubeconfig of the ServiceAccount: what the generated roles do not allow, the operator may not do."""
        account = self._deployment()["spec"]["template"]["spec"]["serviceAccountName"]
        path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{account}/token"
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        config = yaml.safe_load(self.server.kubeconfig)
        for user in config["users"]:
            user["user"] = {"token": self.request("POST", path, asked)["status"]["token"]}
        kubeconfig = self.shell.folder / "operator.kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(config))
        return kubeconfig

    def _route(self, port: int) -> None:
        bundle = base64.b64encode(self.authority.pem).decode()
        for kind in ("mutating", "validating"):
            path = f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations/{self.project}-{kind}-webhook-configuration"
            found = self.request("GET", path)
            injected = found["metadata"]["annotations"]["cert-manager.io/inject-ca-from"]
            assert injected == f"{self.namespace}/{self.project}-serving-cert"
            for webhook in found["webhooks"]:
                service = webhook["clientConfig"].pop("service")
                assert service["name"] == f"{self.project}-webhook-service"
                webhook["clientConfig"] |= {"url": f"https://127.0.0.1:{port}{service['path']}", "caBundle": bundle}
            self.request("PUT", path, found)


def everything_of(shell: Shell, project: str, domain: str) -> list[str]:
    """Return what a cluster has of a project, by its names, its label and the domain of its kinds."""
    kinds = "namespaces,customresourcedefinitions,clusterroles,clusterrolebindings,mutatingwebhookconfigurations,validatingwebhookconfigurations"
    found = json.loads(shell.kubectl("get", kinds, "-o", "json"))["items"]

    def mine(each: dict[str, Any]) -> bool:
        return (
            each["metadata"]["name"].startswith(f"{project}-")
            or each["metadata"].get("labels", {}).get("app.kubernetes.io/name") == project
            or each["metadata"]["name"].endswith(f".{domain}")
        )

    return [f"{each['kind']}/{each['metadata']['name']}" for each in found if mine(each)]

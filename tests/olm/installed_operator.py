"""An operator that is installed from its bundle on a server without OLM, and runs as a process.

It has the arguments and variables of its Deployment and the token of its ServiceAccount. What a machine lacks is replaced: mounted certificates
by a folder, Services by addresses, ports by free ones.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from forked import Forked, Forks
from installing import CERTIFICATES, Document, Installation, arguments, environment, kubeconfig_of
from scaffolded import ROOT
from servers import LONGEST_WAIT, free_port

import ctrlruntime as ctrl
from ctrlruntime.api import meta
from ctrlruntime.certificates import make_authority
from ctrlruntime.olm.bundle import Bundle
from ctrlruntime.testing import Environment


class InstalledOperator:
    """A bundle that is installed, and its operator."""

    def __init__(
        self, server: Environment, admin: ctrl.Client, bundle: Bundle, folder: Path, forks: Forks, **options: Any
    ) -> None:
        assert bundle.csv is not None
        self.forks = forks
        self.server = server
        self.admin = admin
        self.bundle = bundle
        self.folder = folder
        self.authority = make_authority("the OLM of a test")
        self.installation = Installation(csv=bundle.csv.document, authority=self.authority.pem, **options)
        self.port, self.metrics_port = free_port(), free_port()
        self.log = folder / "operator.log"
        self.definitions: list[str] = []
        self.made: list[ctrl.Object] = []
        """What is in no namespace goes with `remove`."""

        self.process: Forked | None = None

    # What OLM does

    async def install(self) -> None:
        definitions = [each.document for each in self.bundle.definitions]
        self.definitions = self.server.install_crds(definitions)
        others = [each.document for each in self.bundle.objects if each.gvk.kind != "CustomResourceDefinition"]
        for document in (*others, *self.installation.objects()):
            await self._create(self._reachable(document))
        for name, patch in self.installation.conversions():
            config = patch["spec"]["conversion"]["webhook"]["clientConfig"]
            self._route(config)
            config["service"] = None  # the bundle's definition names it, too
            definition = ctrl.Unstructured.of("apiextensions.k8s.io/v1", "CustomResourceDefinition")
            await self.admin.patch(definition(metadata=meta.ObjectMeta(name=name)), ctrl.merge_patch(patch))

    async def _create(self, document: Document) -> None:
        kind = ctrl.Unstructured.of(document["apiVersion"], document["kind"])
        metadata = document["metadata"]
        if await self.admin.mapper.is_namespaced(ctrl.gvk_for(kind)):
            in_bundle = document in [each.document for each in self.bundle.objects]
            place = self.installation.namespace if in_bundle else metadata["namespace"]
            metadata = {**metadata, "namespace": place}
        self.made.append(await self.admin.create(kind.from_dict({**document, "metadata": metadata})))

    def _reachable(self, document: Document) -> Document:
        for webhook in document.get("webhooks", []):
            self._route(webhook["clientConfig"])
        return document

    def _route(self, config: Document) -> None:
        """Put the operator's address in the place of its Service: no network leads from here to that."""
        service = config.pop("service")
        assert (service["namespace"], service["port"]) == (self.installation.namespace, 443)
        config["url"] = f"https://127.0.0.1:{self.port}{service['path']}"

    async def remove(self) -> None:
        self.stop(signal.SIGKILL)
        if self.log.exists():
            print(self.log.read_text())  # shown with a test that fails
        for each in self.made:
            if not each.metadata.namespace:
                await self.admin.delete(each)
        self.server.uninstall_crds(self.definitions)

    # What a kubelet does

    @property
    def deployment(self) -> Document:
        (found,) = [each for each in self.installation.objects() if each["kind"] == "Deployment"]
        return found

    @property
    def variables(self) -> dict[str, str]:
        return environment(self.deployment)

    @property
    def kubeconfig(self) -> Path:
        """That of the operator's ServiceAccount."""
        path = self.folder / "operator.kubeconfig"
        account = self.deployment["spec"]["template"]["spec"]["serviceAccountName"]
        path.write_text(kubeconfig_of(self.server, self.installation.namespace, account))
        return path

    def start(self, module: str, root: Path = ROOT) -> None:
        """Run `python -m module`, which is imported from `root`, as the container would."""
        variables = self.variables | {"METRICS_BIND_ADDRESS": f"127.0.0.1:{self.metrics_port}"}
        if self.installation.webhooks:
            variables["WEBHOOK_CERT_PATH"] = str(self._certificates())
        flags = [
            *arguments(self.deployment, variables),
            # Later flags win. Fixed ports are for a Pod; here, other operators have the same ones.
            "--health-probe-bind-address=127.0.0.1:0",
            "--debug-bind-address=127.0.0.1:0",
            f"--webhook-port={self.port}",
            f"--leader-election-namespace={self.installation.namespace}",
            f"--kubeconfig={self.kubeconfig}",
        ]
        self.log.write_text("")
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(ROOT)]), **variables}
        self.process = self.forks.popen(f"{module}.__main__", *flags, cwd=self.folder, env=env, out=self.log)

    def _certificates(self) -> Path:
        """Write what OLM mounts."""
        assert self.variables["WEBHOOK_CERT_PATH"] == CERTIFICATES
        pair = self.authority.server(["127.0.0.1"])
        folder = self.folder / "serving-certs"
        folder.mkdir()
        (folder / "tls.crt").write_bytes(pair.certificate)
        (folder / "tls.key").write_bytes(pair.key)
        return folder

    def stop(self, number: int = signal.SIGTERM) -> int:
        if self.process is None:
            return 0
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(timeout=LONGEST_WAIT)

    def assert_all_was_allowed(self) -> None:
        """Stop it: it ended well, and no request was refused for want of a permission."""
        assert self.stop() == 0, self.log.read_text()
        said = self.log.read_text()
        assert "forbidden" not in said.lower(), said
        assert "Traceback" not in said, said

"""The real control plane: etcd, kube-apiserver and, if found, kube-controller-manager, on loopback, for a test run.

`find_programs` finds the binaries (with envtest's variables). `ControlPlane` runs them in its own folder, which is deleted at the end. Each
program runs under `_supervisor.py`, so that none outlives this process, even if it is killed.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ctrlruntime.certificates import Authority, KeyPair, make_authority
from ctrlruntime.data import KUBERNETES_VERSION
from ctrlruntime.errors import APIStatusError, ConfigError, TransportError
from ctrlruntime.testing.connection import Connection

__all__ = ["KUBERNETES_VERSION", "ControlPlane", "Programs", "credential", "find_programs"]

_DEFAULT_FOLDER = Path("/usr/local/kubebuilder/bin")  # where Kubernetes' own tools put them
_HOW_TO_GET = (
    "build them with tests/controlplane/build of the ctrlruntime repository (needs Go), "
    "or set KUBEBUILDER_ASSETS to a folder that has them"
)
_ATTEMPTS = 5  # a free port may be taken by another process before the program binds it
_STEP = 0.02  # seconds between two looks at a program that starts
_STANDARD_ERROR = 2  # the descriptor: under pytest `sys.stderr` may be no file
_LOG_TAIL = 12  # lines of a program's log shown in an error


@dataclass(frozen=True, slots=True)
class Programs:
    """The paths of the binaries; `kube_controller_manager` is None if it was not found."""

    etcd: Path
    kube_apiserver: Path
    kube_controller_manager: Path | None


def find_programs(environ: Mapping[str, str], folder: Path | None = None) -> Programs:
    """Return the paths of the binaries.

    A program's own variable comes first (``TEST_ASSET_ETCD``, ``TEST_ASSET_KUBE_APISERVER``, ``TEST_ASSET_KUBE_CONTROLLER_MANAGER``), then
    the folder in ``KUBEBUILDER_ASSETS``. Without that variable it is `folder`, the cache folder of ``tests/controlplane/build``, and
    ``/usr/local/kubebuilder/bin``. kube-controller-manager is optional, and only searched next to kube-apiserver.

    Raises: ConfigError with the missing binaries, the searched folders, and a fix.
    """
    if assets := environ.get("KUBEBUILDER_ASSETS"):
        folders = [Path(assets)]
    else:
        folders = [*([folder] if folder else []), cache_folder(environ), _DEFAULT_FOLDER]
    apiserver = _find("kube-apiserver", folders, environ)
    beside = apiserver.with_name("kube-controller-manager")
    if environ.get(_variable("kube-controller-manager")) or beside.is_file():
        manager = _find("kube-controller-manager", [apiserver.parent], environ)
    else:
        manager = None
    return Programs(_find("etcd", folders, environ), apiserver, manager)


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return the output folder of `tests/controlplane/build`."""
    cache = environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "ctrlruntime" / "controlplane" / KUBERNETES_VERSION


def credential(pair: KeyPair) -> dict[str, str]:
    """Return a client key pair as the fields of a kubeconfig's user."""
    return {
        "client-certificate-data": base64.b64encode(pair.certificate).decode(),
        "client-key-data": base64.b64encode(pair.key).decode(),
    }


def _variable(name: str) -> str:
    return "TEST_ASSET_" + name.upper().replace("-", "_")


def _find(name: str, folders: Sequence[Path], environ: Mapping[str, str]) -> Path:
    own = environ.get(_variable(name))
    candidates = [Path(own)] if own else [folder / name for folder in folders]
    for path in candidates:
        if path.is_file() and os.access(path, os.X_OK):
            return path
    places = ", ".join(str(path) for path in candidates)
    raise ConfigError(f"the real control plane needs {name}, looked for at {places}; {_HOW_TO_GET}")


class ControlPlane:
    """One etcd, kube-apiserver and kube-controller-manager.

    RBAC is on, ServiceAccount admission off, and etcd does not sync to disk.

    Args:
        programs: the binaries; without a controller manager there is neither garbage collection nor namespace deletion.
        start_timeout: seconds until everything must be ready.
        stop_timeout: seconds for a program to end before it is killed.
        apiserver_args: more flags of kube-apiserver; the last of two equal flags counts.
        attach_output: programs write to standard error instead of log files.

    """

    def __init__(
        self,
        programs: Programs,
        *,
        start_timeout: float = 20.0,
        stop_timeout: float = 20.0,
        apiserver_args: Sequence[str] = (),
        attach_output: bool = False,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._programs = programs
        self._start_timeout, self._stop_timeout = start_timeout, stop_timeout
        self._apiserver_args = tuple(apiserver_args)
        self._attach_output = attach_output
        self._clock, self._sleep = clock, sleep
        self._authority: Authority = make_authority("test control plane")
        self._token = secrets.token_urlsafe(24)
        self._running: list[_Program] = []
        self._folder: Path | None = None
        self._deadline = 0.0
        self.url = ""

    @property
    def folder(self) -> Path:
        """The folder with data, keys and logs, while it runs."""
        if self._folder is None:
            raise ConfigError("the control plane is not running; call start() first")
        return self._folder

    def start(self) -> None:
        """Start everything.

        Returns when the API server is ready, has its `default` namespace, and the controllers are healthy.

        Raises: TransportError with the end of the log of the program that failed.
        """
        self._folder = Path(tempfile.mkdtemp(prefix="ctrlruntime-controlplane-"))
        self._deadline = self._clock() + self._start_timeout
        try:
            self._write_keys()
            etcd = self._serve(self._programs.etcd, self._etcd_flags, "http", ["/health"])
            apiserver_ready = ["/readyz", "/api/v1/namespaces/default"]
            self.url = self._serve(
                self._programs.kube_apiserver, lambda port: self._apiserver_flags(etcd, port), "https", apiserver_ready
            )
            if self._programs.kube_controller_manager is not None:
                self._write("kubeconfig", json.dumps(self.kubeconfig()).encode())
                self._serve(
                    self._programs.kube_controller_manager, self._controller_manager_flags, "https", ["/healthz"]
                )
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop every program, the last started first, and delete the folder.

        Does nothing if nothing runs.
        """
        while self._running:
            self._running.pop().stop(self._stop_timeout)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def kubeconfig(self, user: Mapping[str, Any] | None = None, *, server: str = "") -> dict[str, Any]:
        """Return a kubeconfig as a dictionary: the administrator's, or that of the credential `user`."""
        authority = base64.b64encode(self._authority.pem).decode()
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "test", "cluster": {"server": server or self.url, "certificate-authority-data": authority}}
            ],
            "users": [{"name": "test", "user": dict(user or {"token": self._token})}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "current-context": "test",
        }

    def add_user(self, name: str, groups: Sequence[str]) -> dict[str, Any]:
        """Return a kubeconfig for a new user, with a client certificate."""
        return self.kubeconfig(credential(self._authority.client(name, groups)))

    def _write_keys(self) -> None:
        serving = self._authority.server(["127.0.0.1", "localhost", "kubernetes.default.svc"])
        self._write("ca.crt", self._authority.pem)
        self._write("ca.key", self._authority.pair.key)
        self._write("serving.crt", serving.certificate)
        self._write("serving.key", serving.key)
        signing = self._authority.server(["service-accounts"])
        self._write("service-account.crt", signing.certificate)
        self._write("service-account.key", signing.key)
        self._write("tokens.csv", f'{self._token},admin,admin,"system:masters"\n'.encode())

    def _write(self, name: str, content: bytes) -> None:
        path = self.folder / name
        path.touch(mode=0o600)
        path.write_bytes(content)

    def _serve(self, path: Path, flags: Callable[[int], list[str]], scheme: str, ready: Sequence[str]) -> str:
        """Start a program on a free port, wait until the paths in `ready` answer, and return its URL."""
        story = ""
        for _ in range(_ATTEMPTS):
            port = _free_port()
            url = f"{scheme}://127.0.0.1:{port}"
            log = None if self._attach_output else self.folder / f"{path.name}.log"
            program = _Program([str(path), *flags(port)], self.folder, log, self._stop_timeout)
            self._running.append(program)
            connection = Connection(self.kubeconfig(server=url))
            if all(self._answers(program, connection, page) for page in ready):
                return url
            self._running.remove(program)
            program.stop(0)
            story = program.story()
            if "address already in use" not in program.log():
                break
        raise TransportError(f"{path} ended before it was ready; {story}")

    def _answers(self, program: _Program, connection: Connection, page: str) -> bool:
        """Wait until `page` answers; False when the program ended instead."""
        while program.runs():
            try:
                connection.request("GET", page)
            except (TransportError, APIStatusError) as error:
                if self._clock() >= self._deadline:
                    raise TransportError(
                        f"{program.name} was not ready after {self._start_timeout:g} s ({error}); set "
                        f"KUBEBUILDER_CONTROLPLANE_START_TIMEOUT if the machine is slow; {program.story()}"
                    ) from error
                self._sleep(_STEP)
            else:
                return True
        return False

    def _etcd_flags(self, port: int) -> list[str]:
        url, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{_free_port()}"
        return [
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def _apiserver_flags(self, etcd: str, port: int) -> list[str]:
        folder = self.folder
        return [
            f"--etcd-servers={etcd}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--tls-cert-file={folder / 'serving.crt'}",
            f"--tls-private-key-file={folder / 'serving.key'}",
            f"--client-ca-file={folder / 'ca.crt'}",
            f"--token-auth-file={folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={folder / 'service-account.crt'}",
            f"--service-account-signing-key-file={folder / 'service-account.key'}",
            "--disable-admission-plugins=ServiceAccount",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--endpoint-reconciler-type=none",
            "--allow-privileged=true",
            "--profiling=false",
            *self._apiserver_args,
        ]

    def _controller_manager_flags(self, port: int) -> list[str]:
        folder = self.folder
        config = folder / "kubeconfig"
        return [
            f"--kubeconfig={config}",
            f"--authentication-kubeconfig={config}",
            f"--authorization-kubeconfig={config}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--tls-cert-file={folder / 'serving.crt'}",
            f"--tls-private-key-file={folder / 'serving.key'}",
            "--leader-elect=false",
            "--use-service-account-credentials=false",
            f"--service-account-private-key-file={folder / 'service-account.key'}",
            f"--root-ca-file={folder / 'ca.crt'}",
            f"--cluster-signing-cert-file={folder / 'ca.crt'}",
            f"--cluster-signing-key-file={folder / 'ca.key'}",
            "--kube-api-qps=500",  # its own limit of 20 requests a second is for shared clusters
            "--kube-api-burst=1000",
        ]


class _Program:
    """A program under its supervisor, which ends it with this process."""

    def __init__(self, command: Sequence[str], folder: Path, log: Path | None, grace: float) -> None:
        self.name = Path(command[0]).name
        self._log = log
        supervisor = Path(__file__).with_name("_supervisor.py")
        output = log.open("wb") if log else None
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the user's own binaries
                [sys.executable, "-I", "-S", str(supervisor), str(folder), str(grace), *command],
                stdin=subprocess.PIPE,
                stdout=output or _STANDARD_ERROR,
                stderr=output or _STANDARD_ERROR,
                start_new_session=True,  # Ctrl-C reaches this process alone, and the group can be killed as one
            )
        finally:
            if output:
                output.close()

    def runs(self) -> bool:
        return self._process.poll() is None

    def stop(self, grace: float) -> None:
        """Let the supervisor stop the program; kill both after `grace` seconds."""
        pipe = self._process.stdin
        if pipe is not None and not pipe.closed:
            try:
                pipe.write(b"\n")
                pipe.close()
            except OSError:
                pass  # it ended already
        try:
            self._process.wait(grace + 2)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def log(self) -> str:
        """The output of the program; empty if it is attached, or its folder was deleted."""
        try:
            return self._log.read_text("utf-8", "replace") if self._log else ""
        except OSError:
            return ""

    def story(self) -> str:
        """The end of the log, for an error message."""
        lines = self.log().strip().splitlines()[-_LOG_TAIL:]
        return "it wrote:\n" + "\n".join(lines) if lines else "it wrote nothing"


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])

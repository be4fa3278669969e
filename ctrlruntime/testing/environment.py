"""An API server for tests: the embedded one, the real binaries, or an existing cluster.

`Environment` chooses by argument or by envtest's variables, starts it, and returns a kubeconfig. It also installs CRDs and creates users
and namespaces, with plain HTTP. `ctrlruntime.apiserver` and `controlplane` are imported when they are started.

| variable | meaning |
|---|---|
| ``USE_EXISTING_CLUSTER`` | true: the cluster of ``KUBECONFIG`` or ``~/.kube/config`` |
| ``KUBEBUILDER_ASSETS`` | folder with etcd, kube-apiserver and, optionally, kube-controller-manager |
| ``TEST_ASSET_ETCD``, ``…_KUBE_APISERVER``, ``…_KUBE_CONTROLLER_MANAGER`` | one binary each; before the folder |
| ``KUBEBUILDER_CONTROLPLANE_START_TIMEOUT``, ``…_STOP_TIMEOUT`` | seconds, or a duration such as ``1m30s``; 20 s |
| ``KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT`` | true: the binaries write to standard error |
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeAlias, get_args

from ctrlruntime.errors import ConfigError

if TYPE_CHECKING:  # these are imported when they are used, so that the pytest plugin costs nothing
    from ctrlruntime.apiserver import Options, ServerThread
    from ctrlruntime.testing.connection import Connection
    from ctrlruntime.testing.controlplane import ControlPlane
    from ctrlruntime.testing.definitions import Source

__all__ = ["Backend", "Environment", "choose_backend"]

Backend: TypeAlias = Literal["embedded", "real", "existing"]

_TRUE = {"1", "t", "true"}
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def choose_backend(environ: Mapping[str, str]) -> Backend:
    """Return the backend in the variables; without any, the embedded server."""
    if environ.get("USE_EXISTING_CLUSTER", "").lower() in _TRUE:
        return "existing"
    assets = ("KUBEBUILDER_ASSETS", "TEST_ASSET_ETCD", "TEST_ASSET_KUBE_APISERVER")
    return "real" if any(environ.get(name) for name in assets) else "embedded"


class Environment:
    """One API server for a test run.

    Use it as a context manager (``with`` or ``async with``), or call `start` and `stop`.

    Args:
        backend: the server; None reads the environment variables, as envtest does.
        crds: installed at the start: documents, files, or folders with their subfolders.
        embedded: options of the embedded server.
        assets: a folder with the real binaries, after the variables and before the cache folder.
        controller_manager: whether the real server has kube-controller-manager (garbage collection, workloads,
            namespace deletion); None: if the binary is found.
        apiserver_args: more flags of the real kube-apiserver.
        start_timeout: seconds until the real server must be ready; None reads the variable.
        stop_timeout: seconds for its programs to end; None reads the variable.
        environ: the environment variables.

    """

    def __init__(
        self,
        *,
        backend: Backend | None = None,
        crds: Source | Iterable[Source] = (),
        embedded: Options | None = None,
        assets: Path | None = None,
        controller_manager: bool | None = None,
        apiserver_args: Sequence[str] = (),
        start_timeout: float | None = None,
        stop_timeout: float | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.backend: Backend = backend or choose_backend(environ)
        if self.backend not in get_args(Backend):
            raise ConfigError(f"unknown backend {self.backend!r}; take one of {', '.join(get_args(Backend))}")
        self._crds = crds
        self._embedded = embedded
        self._assets = assets
        self._controller_manager = controller_manager
        self._apiserver_args = tuple(apiserver_args)
        self.start_timeout = start_timeout or _seconds(environ, "KUBEBUILDER_CONTROLPLANE_START_TIMEOUT", 20.0)
        self.stop_timeout = stop_timeout or _seconds(environ, "KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT", 20.0)
        self._environ = environ
        self._server: _Server | None = None
        self._connection: Connection | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._kubeconfig = ""
        self._definitions: list[dict[str, Any]] = []

    def start(self) -> Self:
        """Start the server, install the CRDs, and return self.

        Blocks until the server responds.

        Raises: ConfigError if the backend is not available (the message has a fix), TransportError if it does not start.
        """
        if self._server is not None:
            raise ConfigError("the environment is running; stop() it before another start()")
        from ctrlruntime.api.yaml_nodes import load
        from ctrlruntime.testing import definitions
        from ctrlruntime.testing.connection import Connection

        self._definitions = definitions.read(self._crds)
        server = self._make_server()
        server.start()
        self._server = server
        try:
            self._kubeconfig = server.kubeconfig()
            self._connection = Connection(load(self._kubeconfig))
            self._connection.request("GET", "/version")  # an existing cluster must answer now, not in the first test
            self._folder = tempfile.TemporaryDirectory(prefix="ctrlruntime-environment-")
            self.kubeconfig_path.touch(mode=0o600)
            self.kubeconfig_path.write_text(self._kubeconfig)
            self.install_crds(self._definitions)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop the server and delete its data.

        An existing cluster is not changed. Does nothing if nothing runs.
        """
        server, self._server = self._server, None
        folder, self._folder = self._folder, None
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        try:
            if server is not None:
                server.stop()
        finally:
            if folder is not None:
                folder.cleanup()

    def reset(self) -> None:
        """Restore the state right after `start`, in some milliseconds.

        All objects are deleted, the CRDs of the constructor are installed again, watches end, and faults are cleared. Kubeconfigs stay
        valid.

        Raises: ConfigError on another backend than the embedded one; use a new namespace there.
        """
        self.embedded.reset()
        self.install_crds(self._definitions)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)

    @property
    def kubeconfig(self) -> str:
        """The administrator's kubeconfig, as text."""
        self._running()
        return self._kubeconfig

    @property
    def kubeconfig_path(self) -> Path:
        """A file with the administrator's kubeconfig, readable only by this user.

        `stop` deletes it.
        """
        if self._folder is None:
            raise _not_running()
        return Path(self._folder.name, "kubeconfig")

    @property
    def url(self) -> str:
        """The address of the API server."""
        return self.connection.url

    @property
    def connection(self) -> Connection:
        """Plain requests as the administrator.

        It blocks; in a coroutine use ``asyncio.to_thread``.
        """
        if self._connection is None:
            raise _not_running()
        return self._connection

    @property
    def embedded(self) -> ServerThread:
        """The embedded server, with its faults. Raises: ConfigError on another backend."""
        server = self._running()
        if not isinstance(server, _Embedded):
            raise ConfigError(
                f"the {self.backend} backend has no embedded server; use backend='embedded' for this test"
            )
        return server.thread

    def add_user(self, name: str, groups: Sequence[str] = ()) -> str:
        """Return the text of a kubeconfig for the user `name` in `groups`.

        RBAC grants almost nothing at first.

        On an existing cluster, which issues no certificates here, the administrator's credential impersonates the user.
        """
        return self._running().add_user(name, groups)

    def install_crds(self, crds: Source | Iterable[Source], *, timeout: float = 10.0) -> list[str]:
        """Create or update CRDs, and wait until each is served.

        They are documents, files or folders. Returns their names.

        Documents of other kinds are skipped. `timeout`: seconds.

        Raises: ConfigError for a missing path, Invalid if the server rejects one, TransportError if one is not served in time.
        """
        from ctrlruntime.testing import definitions

        return definitions.install(self.connection, crds, timeout=timeout)

    def uninstall_crds(self, names: Iterable[str]) -> None:
        """Delete CRDs with all their objects."""
        from ctrlruntime.testing import definitions

        definitions.uninstall(self.connection, names)

    def create_namespace(self, prefix: str = "test") -> str:
        """Create a namespace with a new name and return the name."""
        name = f"{prefix}-{secrets.token_hex(4)}"
        self.connection.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        return name

    def delete_namespace(self, name: str) -> None:
        """Start to delete a namespace; its controller deletes its objects.

        A missing one is not an error.
        """
        from ctrlruntime.errors import Conflict, NotFound

        try:
            self.connection.request("DELETE", f"/api/v1/namespaces/{name}")
        except (NotFound, Conflict):  # gone, or going
            return

    def _running(self) -> _Server:
        if self._server is None:
            raise _not_running()
        return self._server

    def _make_server(self) -> _Server:
        match self.backend:
            case "embedded":
                return _Embedded(self._embedded)
            case "existing":
                return _Existing(self._environ)
            case "real":
                return self._make_real()

    def _make_real(self) -> _Server:
        from dataclasses import replace

        from ctrlruntime.testing.controlplane import ControlPlane, find_programs

        programs = find_programs(self._environ, self._assets)
        if self._controller_manager is False:
            programs = replace(programs, kube_controller_manager=None)
        elif self._controller_manager and programs.kube_controller_manager is None:
            raise ConfigError(
                f"no kube-controller-manager next to {programs.kube_apiserver}; set TEST_ASSET_KUBE_CONTROLLER_MANAGER "
                "to its path, or build it with tests/controlplane/build of the ctrlruntime repository"
            )
        attach = self._environ.get("KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT", "").lower() in _TRUE
        return _Real(
            ControlPlane(
                programs,
                start_timeout=self.start_timeout,
                stop_timeout=self.stop_timeout,
                apiserver_args=self._apiserver_args,
                attach_output=attach,
            )
        )


class _Server(Protocol):
    """The common interface of the three backends."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def kubeconfig(self) -> str: ...

    def add_user(self, name: str, groups: Sequence[str]) -> str: ...


class _Embedded:
    """The embedded server, in a thread."""

    def __init__(self, options: Options | None) -> None:
        from ctrlruntime.apiserver import Options, ServerThread

        self.thread = ServerThread(options or Options())

    def start(self) -> None:
        self.thread.start()

    def stop(self) -> None:
        self.thread.stop()

    def kubeconfig(self) -> str:
        return self.thread.server.kubeconfig()

    def add_user(self, name: str, groups: Sequence[str]) -> str:
        return self.thread.server.kubeconfig(name, tuple(groups))


class _Real:
    """The real binaries."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self.start, self.stop = plane.start, plane.stop

    def kubeconfig(self) -> str:
        return _to_text(self._plane.kubeconfig())

    def add_user(self, name: str, groups: Sequence[str]) -> str:
        return _to_text(self._plane.add_user(name, groups))


class _Existing:
    """An existing cluster."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        from ctrlruntime.testing.kubeconfig import load_default

        self._config = load_default(environ)

    def start(self) -> None:
        """Do nothing: it already runs."""

    def stop(self) -> None:
        """Do nothing: it keeps running."""

    def kubeconfig(self) -> str:
        return _to_text(self._config)

    def add_user(self, name: str, groups: Sequence[str]) -> str:
        config = self._config
        users = [
            {**entry, "user": {**(entry.get("user") or {}), "as": name, "as-groups": list(groups)}}
            for entry in config.get("users") or []
        ]
        return _to_text({**config, "users": users})


def _to_text(config: Mapping[str, Any]) -> str:
    from ctrlruntime.testing.kubeconfig import to_text

    return to_text(config)


def _not_running() -> ConfigError:
    return ConfigError("the environment is not running; call start() first, or use it in a with statement")


def _seconds(environ: Mapping[str, str], name: str, default: float) -> float:
    """Read seconds (``30``) or a Go duration (``1m30s``)."""
    text = environ.get(name, "").strip()
    if not text:
        return default
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h)", text)
    if parts and "".join(number + unit for number, unit in parts) == text:
        return sum(float(number) * _UNITS[unit] for number, unit in parts)
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"{name}={text!r} is not a time; write seconds (30) or a duration (1m30s)") from None

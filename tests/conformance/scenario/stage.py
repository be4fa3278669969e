"""The servers scenarios run on: the embedded one and the real one, each bare (no controllers) or full, started when first needed.

A bare server is what most scenarios want: nobody else writes, so what is answered is determined. Handed up: `Stage`, with one HTTP
session for each identity that a scenario takes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import aiohttp
import yaml
from nodes import NodeSimulator

from ctrlruntime.testing.connection import Connection
from ctrlruntime.testing.controlplane import ControlPlane, Programs, find_programs

if TYPE_CHECKING:
    from ctrlruntime.apiserver import ServerThread

Backend = Literal["embedded", "real"]
_SCENARIOS_A_SERVER = 300
AGENT = "scenario/1 (conformance)"
_ADMIN_TOKEN = "administrator-of-scenarios"
_QUIET = ("Accept-Encoding", "Accept", "Content-Type", "User-Agent")  # headers that aiohttp must not make up


class Stage:
    """One running server. `config` is the administrator's kubeconfig as a tree."""

    def __init__(self, backend: Backend, server: ServerThread | _RecordingPlane, config: Mapping[str, Any]) -> None:
        self.backend = backend
        self.server = server
        self.config = config
        self.connection = Connection(config)
        self.folder = tempfile.TemporaryDirectory(prefix="scenario-stage-")
        self._sessions: dict[tuple[str, tuple[str, ...]], aiohttp.ClientSession] = {}

    @property
    def url(self) -> str:
        return self.connection.url

    @property
    def kubeconfig(self) -> Path:
        path = Path(self.folder.name, "kubeconfig")
        if not path.exists():
            path.write_text(json.dumps(self.config))
        return path

    def credential(self) -> dict[str, str]:
        """Return the headers that make a request the administrator's."""
        return {name: value for name, value in self.connection.headers if name == "Authorization"}

    def session(self, user: str = "", groups: tuple[str, ...] = ()) -> aiohttp.ClientSession:
        """Return the session without a certificate, or with one of `user`."""
        key = (user, groups)
        if key not in self._sessions:
            connector = aiohttp.TCPConnector(ssl=self._tls(user, groups), limit=0, keepalive_timeout=120)
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=10)
            self._sessions[key] = aiohttp.ClientSession(
                connector=connector, timeout=timeout, skip_auto_headers=_QUIET, auto_decompress=False
            )
        return self._sessions[key]

    def _tls(self, user: str, groups: tuple[str, ...]) -> Any:
        if not user:
            return self.connection.tls
        if isinstance(self.server, _RecordingPlane):
            return Connection(self.server.add_user(user, groups)).tls
        text = self.server.server.kubeconfig(user, groups)
        return Connection(yaml.safe_load(text)).tls

    async def expire(self) -> None:
        """Forget the history, so that earlier resource versions are too old."""
        if isinstance(self.server, _RecordingPlane):
            await self.server.expire(self.session())
        else:
            await asyncio.to_thread(self.server.call, self.server.server.faults.expire_history)

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()
        self.folder.cleanup()


class _RecordingPlane(ControlPlane):
    """The real control plane that remembers where its etcd listens."""

    etcd_url = ""

    def _apiserver_flags(self, etcd: str, port: int) -> list[str]:
        self.etcd_url = etcd
        return super()._apiserver_flags(etcd, port)

    async def expire(self, session: aiohttp.ClientSession) -> None:
        """Compact etcd at its present revision."""
        async with session.post(f"{self.etcd_url}/v3/kv/range", json={"key": "AA=="}) as answer:
            revision = (await answer.json())["header"]["revision"]
        async with session.post(f"{self.etcd_url}/v3/kv/compaction", json={"revision": revision}) as answer:
            answer.raise_for_status()


class Stages:
    """The stages of one backend; a context manager. `get` starts what is asked for."""

    def __init__(self, backend: Backend) -> None:
        self.backend: Backend = backend
        self._programs: Programs | None = find_programs(os.environ) if backend == "real" else None
        self._stages: dict[str, Stage] = {}
        self._taken: Counter[str] = Counter()
        self._lock = asyncio.Lock()
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def get(self, needs: frozenset[str]) -> Stage:
        """Return the stage that has what a scenario needs."""
        name = "nodes" if "nodes" in needs else "full" if "controllers" in needs else "bare"
        async with self._lock:
            self._taken[name] += 1
            # kube-apiserver becomes slow with its definitions: every one of them makes the whole of OpenAPI anew.
            is_worn = self.backend == "real" and self._taken[name] % _SCENARIOS_A_SERVER == 0
            if name not in self._stages or is_worn:
                self._stages[name] = await self._stack.enter_async_context(self._start(name))
            return self._stages[name]

    @contextlib.asynccontextmanager
    async def _start(self, name: str) -> AsyncIterator[Stage]:
        if self.backend == "embedded":
            from ctrlruntime.apiserver import Options, ServerThread
            from ctrlruntime.apiserver.options import TokenUser

            # What webhooks are told about the administrator is his name on the real server.
            common: dict[str, Any] = {
                "tokens": {_ADMIN_TOKEN: TokenUser("admin", "admin", ("system:masters",))},
                "service_account_issuer": "https://kubernetes.default.svc",  # as the real one's flag says
            }
            more = {"bare": {"controllers": ()}, "full": {"nodes": False}, "nodes": {}}[name]
            server: Any = ServerThread(Options(**common, **more))
        else:
            assert self._programs is not None
            programs = replace(self._programs, kube_controller_manager=None) if name == "bare" else self._programs
            server = _RecordingPlane(programs, start_timeout=120)
        await asyncio.to_thread(server.start)
        try:
            config = (
                _administrator(json.loads(server.server.kubeconfig()))
                if self.backend == "embedded"
                else server.kubeconfig()
            )
            stage = Stage(self.backend, server, config)
            with contextlib.ExitStack() as stack:
                if name == "nodes" and self.backend == "real":
                    simulator = NodeSimulator(json.dumps(config))
                    await asyncio.to_thread(simulator.start)
                    stack.callback(simulator.stop)
                try:
                    yield stage
                finally:
                    await stage.close()
        finally:
            await asyncio.to_thread(server.stop)


def _administrator(config: dict[str, Any]) -> dict[str, Any]:
    config["users"][0]["user"] = {"token": _ADMIN_TOKEN}
    return config


__all__ = ["AGENT", "Backend", "Stage", "Stages"]

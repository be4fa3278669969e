"""One node for the real control plane: registers it, binds Pods to it, and reports them Running and Ready.

kube-controller-manager makes Pods, but without a scheduler and a kubelet nobody runs them. Here the embedded server's
own node, scheduler and kubelet do it, so that Pods take the same stages on both servers: those controllers ask for an
`API`, and `RemoteAPI` is that over HTTP.

    with NodeSimulator(environment.kubeconfig):
        ...                                     # Pods of default-scheduler become Ready

It runs in a thread with a loop of its own. `python tests/controlplane/nodes.py KUBECONFIG` runs it until interrupted.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import threading
from collections.abc import AsyncIterator, Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import aiohttp
import yaml
from unfinished import abort

from ctrlruntime.apiserver.controllers import NODES, build
from ctrlruntime.apiserver.controllers.nodes import NODE_NAME
from ctrlruntime.apiserver.interfaces import Change
from ctrlruntime.errors import AlreadyExists, APIStatusError, CtrlError, TransportError
from ctrlruntime.schema.trees import Document
from ctrlruntime.testing.connection import Connection

HEARTBEAT = 10.0  # seconds; the node lifecycle controller gives up after 50
WATCH_LENGTH = 300  # seconds
START_TIMEOUT = 20.0  # seconds


class NodeSimulator:
    """Runs Pods on the server of `kubeconfig` (its text), each Ready `ready_delay` seconds after it is bound."""

    def __init__(self, kubeconfig: str, *, ready_delay: float = 0.0) -> None:
        self._connection = Connection(yaml.safe_load(kubeconfig))
        self._ready_delay = ready_delay
        self._thread = threading.Thread(target=self._run, name="node-simulator", daemon=True)
        self._is_ready = threading.Event()
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start, and return when the node is Ready. Raises: TransportError when it is not within START_TIMEOUT
        seconds.
        """
        self._thread.start()
        if not self._is_ready.wait(START_TIMEOUT) or self._failure is not None:
            self.stop()
            raise TransportError(f"the simulated node is not ready: {self._failure or 'no answer in time'}")

    def stop(self) -> None:
        """Stop; the node and its Pods stay as they are."""
        if self._loop is not None and self._task is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended by itself
                self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(10)
        if self._failure is not None and self._is_ready.is_set():
            raise self._failure

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except asyncio.CancelledError:
            pass
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
            self._failure = error
        finally:
            self._is_ready.set()

    async def _main(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        await self.run()

    async def run(self) -> None:
        """Run until cancelled."""
        async with RemoteAPI(self._connection) as api, asyncio.TaskGroup() as tasks:
            for controller in build(NODES, pod_ready_delay=self._ready_delay):
                tasks.create_task(controller.run(api))
            tasks.create_task(_beat(api))
            async for change in api.watch("", "nodes"):
                if change.object["metadata"]["name"] == NODE_NAME and is_ready(change.object):
                    self._is_ready.set()
                    break
            await asyncio.Event().wait()


def is_ready(node: Document) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    return {"Ready": "True"} in [{c["type"]: c["status"]} for c in conditions] and not node["spec"].get("taints")


async def _beat(api: RemoteAPI) -> None:
    """Renew the node's Lease, as a kubelet does."""
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    while True:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": NODE_NAME, "leaseDurationSeconds": 40, "renewTime": now}
        with contextlib.suppress(CtrlError):  # a beat may be missed
            try:
                await api.request("POST", path, {"metadata": {"name": NODE_NAME}, "spec": spec})
            except AlreadyExists:
                await api.request("PATCH", f"{path}/{NODE_NAME}", {"spec": spec}, content_type=MERGE_PATCH)
        await asyncio.sleep(HEARTBEAT)


MERGE_PATCH = "application/merge-patch+json"


class RemoteAPI:
    """The embedded server's `API` for the resources of nodes on any server: reads come from a mirror that a watch keeps,
    writes are requests.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._mirrors: dict[tuple[str, str], _Mirror] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(ssl=self._connection.tls or True)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10)
        self._session = aiohttp.ClientSession(connector=connector, timeout=timeout)
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        assert self._session is not None
        await self._session.close()

    def get(self, group: str, resource: str, namespace: str, name: str) -> Document | None:
        return self._mirror(group, resource).objects.get((namespace, name))

    def list(self, group: str, resource: str, namespace: str = "", **_: Any) -> list[Document]:
        objects = self._mirror(group, resource).objects
        return [objects[key] for key in sorted(objects) if not namespace or key[0] == namespace]

    def watch(self, group: str, resource: str) -> AsyncIterator[Change]:
        return self._mirror(group, resource).changes()

    async def create(self, group: str, resource: str, namespace: str, document: Document) -> Document:
        return await self.request("POST", _path(group, resource, namespace), document)

    async def update(self, group: str, resource: str, document: Document, *, subresource: str = "") -> Document:
        meta = document["metadata"]
        return await self.request(
            "PUT", _path(group, resource, meta.get("namespace", ""), meta["name"], subresource), document
        )

    async def merge_patch(
        self, group: str, resource: str, namespace: str, name: str, patch: Document, *, subresource: str = ""
    ) -> Document:
        path = _path(group, resource, namespace, name, subresource)
        return await self.request("PATCH", path, patch, content_type=MERGE_PATCH)

    async def bind(self, pod: Document, node: str) -> None:
        metadata = pod["metadata"]
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        path = _path("", "pods", metadata["namespace"], metadata["name"], "binding")
        await self.request("POST", path, {"metadata": {"name": metadata["name"]}, "target": target})

    async def delete(
        self,
        group: str,
        resource: str,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        grace_period_seconds: int | None = None,
        propagation_policy: str | None = None,
    ) -> Document:
        options: Document = {
            "preconditions": {"uid": uid} if uid else None,
            "gracePeriodSeconds": grace_period_seconds,
            "propagationPolicy": propagation_policy,
        }
        options = {field: value for field, value in options.items() if value is not None}
        return await self.request("DELETE", _path(group, resource, namespace, name), options)

    async def request(
        self, method: str, path: str, body: Any = None, *, content_type: str = "application/json"
    ) -> Document:
        data = None if body is None else json.dumps(body).encode()
        headers = [*self._connection.headers, ("Content-Type", content_type)]
        try:
            async with self._open().request(method, self._connection.url + path, data=data, headers=headers) as answer:
                text = await answer.read()
        except (aiohttp.ClientError, OSError) as error:
            raise TransportError(f"{method} {path}: {error}") from error
        if answer.status >= 400:
            raise APIStatusError.from_response(answer.status, text)
        return json.loads(text)

    async def lines(self, path: str) -> AsyncIterator[bytes]:
        """Yield the complete lines of a watch until it ends."""
        rest = b""
        async with self._open().get(self._connection.url + path, headers=self._connection.headers) as answer:
            if answer.status >= 400:
                raise APIStatusError.from_response(answer.status, await answer.read())
            try:
                async for chunk in answer.content.iter_any():
                    *whole, rest = (rest + chunk).split(b"\n")
                    for line in whole:
                        yield line
            finally:
                abort(answer)

    def _open(self) -> aiohttp.ClientSession:
        assert self._session is not None, "use `async with`"
        return self._session

    def _mirror(self, group: str, resource: str) -> _Mirror:
        if (group, resource) not in self._mirrors:
            mirror = self._mirrors[group, resource] = _Mirror(self, _path(group, resource))
            self._spawn(mirror.run())
        return self._mirrors[group, resource]

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Mirror:
    """The objects of one resource as the server has them, and those who want to hear of changes."""

    def __init__(self, api: RemoteAPI, path: str) -> None:
        self._api, self._path = api, path
        self._listeners: set[asyncio.Queue[Change]] = set()
        self.objects: dict[tuple[str, str], Document] = {}

    async def changes(self) -> AsyncIterator[Change]:
        queue: asyncio.Queue[Change] = asyncio.Queue()
        for obj in self.objects.values():
            queue.put_nowait(Change("ADDED", obj, None, 0))
        self._listeners.add(queue)
        try:
            while True:
                yield await queue.get()
        finally:
            self._listeners.discard(queue)

    async def run(self) -> None:
        """List, watch, and begin again whenever the watch ends or fails."""
        while True:
            try:
                version = await self._list()
                await self._watch(version)
            except (CtrlError, aiohttp.ClientError, OSError):
                await asyncio.sleep(0.2)

    async def _list(self) -> str:
        answer = await self._api.request("GET", self._path)
        kind = answer["kind"].removesuffix("List")
        present = {}
        for obj in answer["items"]:
            obj.setdefault("apiVersion", answer["apiVersion"])
            obj.setdefault("kind", kind)
            present[_key(obj)] = obj
        for key in self.objects.keys() - present.keys():
            self._take("DELETED", self.objects[key])
        for obj in present.values():
            self._take("MODIFIED" if _key(obj) in self.objects else "ADDED", obj)
        return answer["metadata"]["resourceVersion"]

    async def _watch(self, version: str) -> None:
        query = f"?watch=1&resourceVersion={version}&timeoutSeconds={WATCH_LENGTH}"
        async with contextlib.aclosing(self._api.lines(self._path + query)) as lines:
            async for line in lines:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise APIStatusError.from_status(event["object"])
                if event["type"] in {"ADDED", "MODIFIED", "DELETED"}:
                    self._take(event["type"], event["object"])

    def _take(self, kind: Any, obj: Document) -> None:
        key = _key(obj)
        old = self.objects.get(key)
        if kind == "DELETED":
            self.objects.pop(key, None)
        else:
            self.objects[key] = obj
        for queue in self._listeners:
            queue.put_nowait(Change(kind, obj, old, int(obj["metadata"]["resourceVersion"])))


def _key(obj: Document) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


_ROOTS = {
    "": "/api/v1",
    "coordination.k8s.io": "/apis/coordination.k8s.io/v1",
    "storage.k8s.io": "/apis/storage.k8s.io/v1",
}


def _path(group: str, resource: str, namespace: str = "", name: str = "", subresource: str = "") -> str:
    root = _ROOTS[group]
    parts = [root, *(["namespaces", namespace] if namespace else []), resource, name, subresource]
    return "/".join(part for part in parts if part)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(NodeSimulator(Path(sys.argv[1]).read_text()).run())

"""Many simulated clusters in one process: a minimal API stand-in for the benchmark of fleets.

Each cluster has its own port of 127.0.0.1 and its own certificate authority, as real clusters do. It serves HTTPS (HTTP/1.1): /version,
/api and /apis (aggregated and not), GET of the Namespace kube-system, lists and watches of five kinds. A watch stays open until its
timeoutSeconds, sends a bookmark each minute and one at its end, and can begin with a streaming list.

It is not an API server: no writes, authentication, selectors, pages, old versions, compression, protobuf or HTTP/2, and JSON only.
Each list has all objects of its kind.

It prints one line of JSON with the addresses, then answers each line of standard input, a JSON document, with one line, and ends with its
input. `Standin` is the other side.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import subprocess
import sys
import time
import urllib.parse
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, cast

import httptools

from ctrlruntime.certificates import Authority, make_authority
from ctrlruntime.tls import load_pair, server_context

KINDS: Final = {
    "configmaps": ("ConfigMap", True),
    "secrets": ("Secret", True),
    "services": ("Service", True),
    "events": ("Event", True),
    "namespaces": ("Namespace", False),
}
MODES: Final = ("ok", "refuse", "black hole", "401", "slow TLS")
"""refuse: no process listens. black hole: the system drops new connections, and open ones are silent. slow TLS: the handshake of a new
connection begins after 5 s."""

_SLOW: Final = 5.0
_LONGEST_WATCH: Final = 1800.0
_BOOKMARK: Final = 60.0
_VERBS: Final = ["create", "delete", "get", "list", "patch", "update", "watch"]
_AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class Address(NamedTuple):
    """Where a cluster is."""

    url: str
    ca: str


# --- the process ------------------------------------------------------------------------------------------------------


class Counts:
    """What all clusters were asked."""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self.watches: Counter[int] = Counter()
        """The watches that started, by second."""

    def forget(self) -> None:
        self.requests.clear()
        self.watches.clear()


class Watch:
    """One open watch."""

    def __init__(self, connection: Connection, kind: str, *, seconds: float, has_bookmarks: bool) -> None:
        self._connection = connection
        self._kind = kind
        self._loop = asyncio.get_running_loop()
        self._end = self._loop.call_later(seconds, self._finish)
        self._has_bookmarks = has_bookmarks
        self._bookmark = self._loop.call_later(_BOOKMARK, self._mark) if has_bookmarks else None

    def send(self, kind: str, document: object) -> None:
        line = json.dumps({"type": kind, "object": document}).encode() + b"\n"
        self._connection.write(b"%x\r\n%s\r\n" % (len(line), line))

    def mark(self, **metadata: object) -> None:
        version = str(self._connection.cluster.version)
        found = {"kind": KINDS[self._kind][0], "apiVersion": "v1"}
        self.send("BOOKMARK", {**found, "metadata": {"resourceVersion": version, **metadata}})

    def close(self) -> None:
        self._end.cancel()
        if self._bookmark is not None:
            self._bookmark.cancel()
        self._connection.cluster.watches[self._kind].discard(self)

    def _mark(self) -> None:
        self.mark()
        self._bookmark = self._loop.call_later(_BOOKMARK, self._mark)

    def _finish(self) -> None:
        self.close()
        if self._has_bookmarks:
            self.mark()
        self._connection.write(b"0\r\n\r\n")
        self._connection.watch = None


class Connection(asyncio.Protocol):
    """One connection of a client."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.watch: Watch | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._url = ""
        self._accept = ""
        self._early = b""
        """What came with the end of a TLS handshake, before this connection knew its transport."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.cluster.connections.add(self)
        if self._early:
            self.data_received(self._early)

    def connection_lost(self, _error: Exception | None) -> None:
        self.cluster.connections.discard(self)
        if self.watch is not None:
            self.watch.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._transport is None:
            self._early += data
            return
        if self.cluster.mode == "black hole":
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.abort()

    def write(self, data: bytes) -> None:
        if self._transport is not None and self.cluster.mode != "black hole":
            self._transport.write(data)

    # --- what the parser finds ---

    def on_url(self, url: bytes) -> None:
        self._url, self._accept = url.decode(), ""

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"accept":
            self._accept = value.decode()

    def on_message_complete(self) -> None:
        path, _, query = self._url.partition("?")
        found = self.cluster
        if found.mode == "401":
            found.counts.requests["401"] += 1
            self._answer(
                {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 401}, status="401 Unauthorized"
            )
            return
        params = dict(urllib.parse.parse_qsl(query))
        plural = path.rpartition("/")[2]
        match path:
            case "/version":
                self._answer({"major": "1", "minor": "36", "gitVersion": "v1.36.0"}, what="version")
            case "/api" | "/apis":
                self._discover(path)
            case "/api/v1":
                self._answer(
                    {"kind": "APIResourceList", "groupVersion": "v1", "resources": _resources()}, what="discovery"
                )
            case "/api/v1/namespaces/kube-system":
                kind = (
                    ("PartialObjectMetadata", "meta.k8s.io/v1") if "as=Partial" in self._accept else ("Namespace", "v1")
                )
                metadata = {"name": "kube-system", "uid": found.uid, "resourceVersion": "1"}
                self._answer({"kind": kind[0], "apiVersion": kind[1], "metadata": metadata}, what="kube-system")
            case _ if plural in KINDS and params.get("watch") in {"1", "true"}:
                self._watch(plural, params)
            case _ if plural in KINDS:
                items = list(found.objects[plural].values())
                metadata = {"resourceVersion": str(found.version)}
                listed = {"kind": f"{KINDS[plural][0]}List", "apiVersion": "v1", "metadata": metadata, "items": items}
                self._answer(listed, what="list")
            case _:
                self._answer(
                    {"kind": "Status", "apiVersion": "v1", "code": 404}, status="404 Not Found", what="unknown"
                )

    def _discover(self, path: str) -> None:
        if "as=APIGroupDiscoveryList" in self._accept:
            group = {"metadata": {"name": ""}, "versions": [{"version": "v1", "resources": _aggregated()}]}
            listed = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2"}
            items = [group] if path == "/api" else []
            self._answer({**listed, "items": items}, content=_AGGREGATED, what="discovery")
        elif path == "/api":
            self._answer({"kind": "APIVersions", "versions": ["v1"]}, what="discovery")
        else:
            self._answer({"kind": "APIGroupList", "apiVersion": "v1", "groups": []}, what="discovery")

    def _watch(self, plural: str, params: dict[str, str]) -> None:
        self.cluster.counts.requests["watch"] += 1
        self.cluster.counts.watches[int(time.monotonic())] += 1
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        self.write(head)
        seconds = float(params.get("timeoutSeconds") or _LONGEST_WATCH)
        self.watch = watch = Watch(self, plural, seconds=seconds, has_bookmarks="allowWatchBookmarks" in params)
        if params.get("sendInitialEvents") == "true":
            for each in self.cluster.objects[plural].values():
                watch.send("ADDED", each)
            watch.mark(annotations={"k8s.io/initial-events-end": "true"})
        self.cluster.watches[plural].add(watch)

    def _answer(
        self, document: object, *, status: str = "200 OK", content: str = "application/json", what: str = ""
    ) -> None:
        if what:
            self.cluster.counts.requests[what] += 1
        body = json.dumps(document).encode()
        head = f"HTTP/1.1 {status}\r\nContent-Type: {content}\r\nContent-Length: {len(body)}\r\n\r\n"
        self.write(head.encode() + body)


class Slow(asyncio.Protocol):
    """A connection whose TLS handshake begins late."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        plain = cast("asyncio.Transport", transport)
        plain.pause_reading()
        self._task = asyncio.create_task(self._secure(plain))

    async def _secure(self, plain: asyncio.Transport) -> None:
        await asyncio.sleep(_SLOW)
        connection = Connection(self._cluster)
        with contextlib.suppress(OSError):
            made = await asyncio.get_running_loop().start_tls(
                plain, connection, self._cluster.context, server_side=True
            )
            if made is not None:
                connection.connection_made(made)


class Cluster:
    """One simulated cluster."""

    def __init__(self, number: int, authority: Authority, counts: Counts, objects: int) -> None:
        self.uid = f"00000000-0000-4000-8000-{number:012}"
        self.authority = authority
        self.counts = counts
        self.context: ssl.SSLContext = server_context()
        pair = authority.server(["127.0.0.1"])
        load_pair(self.context, pair.certificate, pair.key)
        self.mode = "ok"
        self.version = 1
        self.objects: dict[str, dict[str, object]] = {plural: {} for plural in KINDS}
        self.watches: dict[str, set[Watch]] = {plural: set() for plural in KINDS}
        self.connections: set[Connection] = set()
        self.port = 0
        self._server: asyncio.Server | None = None
        self._hole: list[socket.socket] = []
        for place in range(objects):
            self.create(f"object-{place}")

    def create(self, name: str) -> None:
        """Create a ConfigMap."""
        self.version += 1
        version = str(self.version)
        metadata = {"name": name, "namespace": "default", "uid": f"{self.uid}-{version}", "resourceVersion": version}
        made = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": {"text": "x" * 200}}
        self.objects["configmaps"][name] = made
        for watch in self.watches["configmaps"]:
            watch.send("ADDED", made)

    async def listen(self) -> None:
        loop, is_slow = asyncio.get_running_loop(), self.mode == "slow TLS"
        self._server = await loop.create_server(
            lambda: Slow(self) if is_slow else Connection(self),
            "127.0.0.1",
            self.port,
            ssl=None if is_slow else self.context,
            backlog=1000,
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def change(self, mode: str) -> None:
        """Enter a mode. Connections that are open end, except in a black hole, where they are silent."""
        self.mode = mode
        if self._server is not None:
            self._server.close()
            self._server = None
        for each in self._hole:
            each.close()
        self._hole.clear()
        if mode == "black hole":
            self._dig()
            return
        for connection in list(self.connections):
            connection.abort()
        if mode != "refuse":
            await self.listen()

    def _dig(self) -> None:
        """Listen with a queue that is full: the system drops what comes next."""
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", self.port))
        listening.listen(0)
        self._hole.append(listening)
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", self.port))
            self._hole.append(filler)


def _resources() -> list[dict[str, object]]:
    return [
        {"name": plural, "singularName": kind.lower(), "namespaced": namespaced, "kind": kind, "verbs": _VERBS}
        for plural, (kind, namespaced) in KINDS.items()
    ]


def _aggregated() -> list[dict[str, object]]:
    return [
        {
            "resource": plural,
            "responseKind": {"group": "", "version": "v1", "kind": kind},
            "scope": "Namespaced" if namespaced else "Cluster",
            "singularResource": kind.lower(),
            "verbs": _VERBS,
        }
        for plural, (kind, namespaced) in KINDS.items()
    ]


class Clusters:
    """All clusters of the process, and what the other side asks for."""

    def __init__(self, number: int, objects: int, *, has_one_authority: bool) -> None:
        self.counts = Counts()
        authority = make_authority()
        self.clusters = [
            Cluster(each, authority if has_one_authority else make_authority(), self.counts, objects)
            for each in range(number)
        ]

    async def run(self) -> None:
        for cluster in self.clusters:
            await cluster.listen()
        found = [Address(f"https://127.0.0.1:{each.port}", each.authority.pem.decode()) for each in self.clusters]
        _say(found)
        async for line in _lines():
            _say(await self._do(json.loads(line)))

    async def _do(self, asked: dict[str, Any]) -> object:
        match asked["do"]:
            case "counts":
                return {
                    "requests": dict(self.counts.requests),
                    "watches": sorted(self.counts.watches.items()),
                    "connections": sum(len(each.connections) for each in self.clusters),
                }
            case "forget":
                self.counts.forget()
            case "mode":
                await self.clusters[asked["cluster"]].change(asked["mode"])
            case "load":
                await self._load(asked["clusters"], asked["count"], asked["every"])
            case unknown:
                raise ValueError(unknown)
        return None

    async def _load(self, clusters: Sequence[int], count: int, every: float) -> None:
        """Create ConfigMaps in turns. The name of each is its time."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        for each in range(count):
            await asyncio.sleep(begun + each * every - loop.time())
            self.clusters[clusters[each % len(clusters)]].create(f"t-{time.time_ns()}")


async def _lines() -> AsyncIterator[bytes]:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        yield line


def _say(document: object) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


# --- the other side ---------------------------------------------------------------------------------------------------


class Standin:
    """The process with the clusters, seen from a benchmark."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.addresses = [Address(*each) for each in self._read()]
        self.pid = process.pid

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process with the clusters ended")
        return json.loads(line)

    def _ask(self, **asked: object) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return self._read()

    def forget(self) -> None:
        """Count from here on."""
        self._ask(do="forget")

    def counts(self) -> tuple[dict[str, int], list[int]]:
        """Return the number of requests by what they ask for, and of watches that started in each second."""
        found = self._ask(do="counts")
        return found["requests"], [number for _, number in found["watches"]]

    def enter(self, cluster: int, mode: str) -> None:
        self._ask(do="mode", cluster=cluster, mode=mode)

    def load(self, clusters: Iterable[int], *, count: int, every: float) -> None:
        """Create ConfigMaps in the clusters, one each `every` seconds; returns after the last."""
        self._ask(do="load", clusters=list(clusters), count=count, every=every)


@contextmanager
def standin(number: int, *, objects: int = 0, has_one_authority: bool = False) -> Iterator[Standin]:
    """Run so many clusters, with so many ConfigMaps each."""
    command = [sys.executable, "-m", "benchmarks._clusters", str(number), str(objects), str(int(has_one_authority))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Standin(process)
        finally:
            process.kill()


if __name__ == "__main__":
    asyncio.run(Clusters(int(sys.argv[1]), int(sys.argv[2]), has_one_authority=sys.argv[3] == "1").run())

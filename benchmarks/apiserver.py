"""The embedded API server beside the real one, in one run: start, creates, gets, lists, watches, memory.

    python -m benchmarks.apiserver [--objects 1000] [--parallel 20] [--runs 3] [--only embedded|real]

Each server is a process of its own, without controllers. The latencies of requests "alone" are taken by a blocking client that does next
to nothing (one kept-alive TLS connection, one write a request), so that the figures are the servers'; what many clients do at once is done
by aiohttp. The runs alternate and the median is shown. Without the real binaries (`tests/controlplane/build`) their column is left out.

Bars of the embedded server: ready in a thread within 150 ms, 1,500 creates/s, a get in 0.4 ms (median), a list of 1,000 in 15 ms, 1,000
events to 10 watchers within 1 s, 90 MB with 1,000 objects.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import msgspec
import psutil
import yaml

from ctrlruntime.apiserver import Options, ServerThread
from ctrlruntime.errors import ConfigError
from ctrlruntime.testing import Environment

_CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
_ROWS = {
    "ready": "process start to ready, s",
    "creates": "creates a second, {parallel} at a time",
    "create": "create alone, median, ms",
    "get": "get alone, median, ms",
    "list": "list of {objects}, median, ms",
    "patch": "merge patch alone, median, ms",
    "apply": "apply of a Deployment, median, ms",
    "events": "{objects} events to 10 watchers, s",
    "memory": "resident with {objects} objects, MB",
}


class Target:
    """Where a server is, and what it takes to be let in."""

    def __init__(self, kubeconfig: str) -> None:
        config = yaml.safe_load(kubeconfig)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.url: str = cluster["server"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self.context = ssl.create_default_context(cadata=authority)
        self.headers = {"Authorization": f"Bearer {user['token']}", "User-Agent": "benchmark/1"}


class Connection:
    """One kept-alive connection that blocks: a request is one write, and of the answer only the length is understood."""

    def __init__(self, target: Target) -> None:
        place = urlsplit(target.url)
        host, port = place.hostname or "", place.port or 443
        plain = socket.create_connection((host, port))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = target.context.wrap_socket(plain, server_hostname=host)
        self._answers = self._socket.makefile("rb")
        headers = {"Host": place.netloc, "Accept": "application/json", **target.headers}
        self._head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())

    def ask(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> bytes:
        data = b"" if body is None else msgspec.json.encode(body)
        more = f"Content-Type: {content_type}\r\nContent-Length: {len(data)}\r\n" if data else ""
        self._socket.sendall(f"{method} {path} HTTP/1.1\r\n{self._head}{more}\r\n".encode() + data)
        status = int(self._answers.readline().split(b" ", 2)[1])
        length, is_chunked = 0, False
        while (line := self._answers.readline().lower()) != b"\r\n":
            name, _, value = line.partition(b":")
            if name == b"content-length":
                length = int(value)
            elif name == b"transfer-encoding":
                is_chunked = b"chunked" in value
        raw = b"".join(self._chunks()) if is_chunked else self._answers.read(length)
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {raw[:300]!r}")
        return raw

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self._answers.readline(), 16):
            yield self._answers.read(size)
            self._answers.readline()
        self._answers.readline()

    def close(self) -> None:
        self._answers.close()
        self._socket.close()


class Client:
    """One session on one server, for many requests at once."""

    def __init__(self, target: Target) -> None:
        self._url = target.url
        connector = aiohttp.TCPConnector(ssl=target.context, limit=0)
        self.session = aiohttp.ClientSession(connector=connector, headers=target.headers)

    async def ask(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> bytes:
        data = None if body is None else msgspec.json.encode(body)
        headers = {"Content-Type": content_type}
        async with self.session.request(method, self._url + path, data=data, headers=headers) as response:
            raw = await response.read()
            if response.status >= 300:
                raise RuntimeError(f"{method} {path}: {response.status} {raw[:300]!r}")
            return raw

    def watch(self, path: str) -> Any:
        return self.session.get(self._url + path)


def config_map(name: str) -> dict[str, Any]:
    labels = {"app": name, "tier": "benchmark"}
    return {"metadata": {"name": name, "labels": labels}, "data": {"key": "value", "other": "x" * 200}}


def deployment(image: str) -> dict[str, Any]:
    labels = {"app": "applied"}
    container = {"name": "main", "image": image, "ports": [{"containerPort": 80, "protocol": "TCP"}]}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "applied"}, "spec": spec}


def timed(do: Callable[[int], Any], count: int) -> float:
    """Return the median of `count` sequential calls, in milliseconds."""
    taken: list[float] = []
    for number in range(count):
        begin = time.perf_counter()
        do(number)
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken) * 1000


async def measure(kubeconfig: str, objects: int, parallel: int, memory: Callable[[], float]) -> dict[str, float]:
    target = Target(kubeconfig)
    client = Client(target)
    found: dict[str, float] = {}
    try:
        for i in range(50):  # connections and first uses
            await client.ask("POST", _CONFIG_MAPS, config_map(f"warm-{i}"))
        pending = iter(range(objects))

        async def worker() -> None:
            for i in pending:
                await client.ask("POST", _CONFIG_MAPS, config_map(f"many-{i}"))

        begin = time.perf_counter()
        await asyncio.gather(*(worker() for _ in range(parallel)))
        found["creates"] = objects / (time.perf_counter() - begin)
        found["memory"] = memory()
        found |= measure_alone(target, objects)
        found["events"] = await _fan_out(client, objects, parallel)
    finally:
        await client.session.close()
    return found


def measure_alone(target: Target, objects: int) -> dict[str, float]:
    """Return the medians of requests of which each waits for the one before, in milliseconds."""
    selected = f"{_CONFIG_MAPS}?limit={objects}"
    applied = "/apis/apps/v1/namespaces/default/deployments/applied?fieldManager=benchmark"
    merge, apply = "application/merge-patch+json", "application/apply-patch+yaml"
    with contextlib.closing(Connection(target)) as connection:
        ask = connection.ask
        for _ in range(20):
            ask("GET", f"{_CONFIG_MAPS}/many-0")
        return {
            "create": timed(lambda i: ask("POST", _CONFIG_MAPS, config_map(f"one-{i}")), 300),
            "get": timed(lambda i: ask("GET", f"{_CONFIG_MAPS}/many-{i % objects}"), 500),
            "list": timed(lambda _: ask("GET", selected), 30),
            "patch": timed(
                lambda i: ask("PATCH", f"{_CONFIG_MAPS}/many-{i % objects}", {"data": {"new": str(i)}}, merge), 300
            ),
            "apply": timed(lambda i: ask("PATCH", applied, deployment(f"web:{i}"), apply), 200),
        }


async def _fan_out(client: Client, objects: int, parallel: int) -> float:
    """Return the seconds from the first of `objects` writes to the last event at the last of ten watchers."""
    version = msgspec.json.decode(await client.ask("GET", f"{_CONFIG_MAPS}?limit=1"))["metadata"]["resourceVersion"]
    path = f"{_CONFIG_MAPS}?watch=1&resourceVersion={version}"

    async def watcher() -> None:
        seen = 0
        async with client.watch(path) as response:
            async for chunk in response.content.iter_any():
                seen += chunk.count(b"\n")
                if seen >= objects:
                    return

    watchers = [asyncio.create_task(watcher()) for _ in range(10)]
    await asyncio.sleep(0.2)  # let the watches begin; not part of the time
    pending = iter(range(objects))

    async def worker() -> None:
        for i in pending:
            await client.ask("POST", _CONFIG_MAPS, config_map(f"event-{i}"))

    begin = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(parallel)), *watchers)
    return time.perf_counter() - begin


def resident(*processes: psutil.Process) -> float:
    return float(sum(process.memory_info().rss for process in processes)) / 1e6


@contextmanager
def embedded() -> Any:
    """Start the embedded server's command; yields (kubeconfig, processes)."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kubeconfig")
        command = [sys.executable, "-m", "ctrlruntime.apiserver", "--kubeconfig", str(path), "--controllers", "none"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            try:
                yield path.read_text(), [psutil.Process(process.pid)]
            finally:
                process.terminate()


@contextmanager
def real() -> Any:
    me = psutil.Process()
    before = {child.pid for child in me.children(recursive=True)}
    with Environment(backend="real", controller_manager=False) as environment:
        children = [child for child in me.children(recursive=True) if child.pid not in before]
        yield environment.kubeconfig, children


def run(server: Callable[[], AbstractContextManager[Any]], objects: int, parallel: int) -> dict[str, float]:
    begin = time.perf_counter()
    with server() as (kubeconfig, processes):
        ready = time.perf_counter() - begin
        found = asyncio.run(measure(kubeconfig, objects, parallel, lambda: resident(*processes)))
    return {"ready": ready, **found}


def thread_ready() -> float:
    """Return the seconds from `start()` of a server in a thread to its being ready; the first start imports it."""
    server = ServerThread(Options())
    begin = time.perf_counter()
    server.start()
    taken = time.perf_counter() - begin
    server.stop()
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--objects", type=int, default=1000)
    parser.add_argument("--parallel", type=int, default=20)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", choices=["embedded", "real"])
    options = parser.parse_args()
    servers: dict[str, Callable[[], AbstractContextManager[Any]]] = {"embedded": embedded, "real": real}
    if options.only:
        servers = {options.only: servers[options.only]}
    results: dict[str, list[dict[str, float]]] = {name: [] for name in servers}
    for _ in range(options.runs):
        for name in list(results):
            try:
                results[name].append(run(servers[name], options.objects, options.parallel))
            except ConfigError as error:
                print(f"left out: {name}: {error}", file=sys.stderr)
                del results[name]
    starts = [thread_ready() for _ in range(5)]
    print(
        f"in a thread, first start {starts[0] * 1000:.0f} ms, later ones {statistics.median(starts[1:]) * 1000:.0f} ms"
    )
    medians = {
        name: {row: statistics.median(run[row] for run in runs) for row in _ROWS} for name, runs in results.items()
    }
    print(f"{'':<42}" + "".join(f"{name:>12}" for name in medians) + ("   embedded/real" if len(medians) == 2 else ""))
    for row, title in _ROWS.items():
        figures = [medians[name][row] for name in medians]
        line = f"{title.format(objects=options.objects, parallel=options.parallel):<42}"
        line += "".join(f"{figure:12.2f}" for figure in figures)
        print(line + (f"{figures[0] / figures[1]:16.2f}" if len(figures) == 2 else ""))


if __name__ == "__main__":
    main()

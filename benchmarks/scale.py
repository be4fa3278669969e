"""The embedded API server beside the real one where there is much of something: pages, watches, large definitions, a data file.

    python -m benchmarks.scale [--objects 100000] [--watches 1500] [--only embedded|real]

| row | how it is measured |
|---|---|
| pages | the first 20 pages of 500 of all ConfigMaps of the server, one client |
| watch | resident memory that each more watch takes, on a connection of its own |
| definition | create of a definition with 10,000 fields, one client |
| held up | the longest that a get by another client took meanwhile |
| creates | ConfigMaps a second, 20 clients at a time; the embedded server also with a data file |

Bars of the embedded server: pages as fast as the real server's, 60 KB a watch, 50 ms held up, 2,000 creates a second with a data file.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import http.client
import json
import os
import resource
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import yaml

from ctrlruntime.errors import ConfigError
from ctrlruntime.testing import Environment

_MAPS = "/api/v1/namespaces/default/configmaps"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_ROWS = {
    "pages": "20 pages of 500 of {objects}, s",
    "watch": "a watch, KB",
    "definition": "a definition with 10,000 fields, s",
    "held": "another request held up by it, ms",
    "creates": "creates a second",
    "saved": "creates a second, with a data file",
}


class Target:
    """A running server: its process and what a client needs."""

    def __init__(self, kubeconfig: str, process: psutil.Process) -> None:
        config = yaml.safe_load(kubeconfig)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.process = process
        self.address = urlsplit(cluster["server"])
        self.context = ssl.create_default_context(
            cadata=base64.b64decode(cluster["certificate-authority-data"]).decode()
        )
        self.headers = {"Authorization": f"Bearer {user['token']}", "Content-Type": "application/json"}

    def connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self.address.netloc, context=self.context, timeout=300)

    def send(self, connection: http.client.HTTPSConnection, method: str, path: str, body: Any = None) -> Any:
        connection.request(method, path, None if body is None else json.dumps(body), self.headers)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status >= 400:
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:200]!r}")
        return json.loads(text)


@contextlib.contextmanager
def embedded(*, data: bool = False) -> Generator[Target]:
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder, "kubeconfig")
        command = [
            sys.executable,
            "-m",
            "ctrlruntime.apiserver",
            "--controllers",
            "none",
            "--kubeconfig",
            str(kubeconfig),
        ]
        command += ["--data", str(Path(folder, "data"))] if data else []
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            try:
                yield Target(kubeconfig.read_text(), psutil.Process(process.pid))
            finally:
                process.terminate()


@contextlib.contextmanager
def real() -> Generator[Target]:
    with Environment(backend="real", controller_manager=False) as environment:
        children = psutil.Process().children(recursive=True)
        (server,) = [child for child in children if child.name() == "kube-apiserver"]
        yield Target(environment.kubeconfig, server)


def creates(target: Target, count: int, *, clients: int = 20) -> float:
    """Create ConfigMaps; return how many a second."""

    def run(number: int) -> None:
        connection = target.connect()
        for at in range(number, count, clients):
            target.send(connection, "POST", _MAPS, {"metadata": {"generateName": f"n{at}-"}, "data": {"a": "b"}})

    threads = [threading.Thread(target=run, args=(number,)) for number in range(clients)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return count / (time.perf_counter() - begin)


def pages(target: Target) -> float:
    connection, token = target.connect(), ""
    target.send(connection, "GET", "/api/v1/configmaps?limit=1")
    begin = time.perf_counter()
    for _ in range(20):
        found = target.send(connection, "GET", f"/api/v1/configmaps?limit=500&continue={token}")
        token = found["metadata"].get("continue", "")
        if not token:
            break
    return time.perf_counter() - begin


def watch(target: Target, count: int) -> float:
    """Return the KB that a watch takes."""
    request = (
        f"GET {_MAPS.replace('default', 'kube-public')}?watch=1&resourceVersion=0 HTTP/1.1\r\nHost: {target.address.netloc}\r\n"
        f"Authorization: {target.headers['Authorization']}\r\n\r\n"
    ).encode()

    def opened() -> ssl.SSLSocket:
        plain = socket.create_connection((str(target.address.hostname), int(target.address.port or 443)))
        found = target.context.wrap_socket(plain, server_hostname=target.address.hostname)
        found.sendall(request)
        found.recv(64)
        return found

    with contextlib.ExitStack() as stack:
        for _ in range(50):
            stack.enter_context(opened())
        before = target.process.memory_info().rss
        for _ in range(count):
            stack.enter_context(opened())
        return float(target.process.memory_info().rss - before) / count / 1000


def definition(target: Target) -> tuple[float, float]:
    """Return the seconds that a large definition takes, and the longest that another request took meanwhile."""
    text = {"type": "string", "maxLength": 63}
    fields = {f"f{number}": text for number in range(100)}
    parts = {f"p{number}": {"type": "object", "properties": fields} for number in range(100)}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": parts}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Large", "plural": "larges"}
    spec = {"group": "scale.example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    longest, is_over = 0.0, threading.Event()

    def ask() -> None:
        nonlocal longest
        connection = target.connect()
        while not is_over.is_set():
            begin = time.perf_counter()
            target.send(connection, "GET", "/api/v1/namespaces/default")
            longest = max(longest, time.perf_counter() - begin)

    other = threading.Thread(target=ask)
    other.start()
    time.sleep(0.5)
    longest = 0.0
    begin = time.perf_counter()
    target.send(
        target.connect(), "POST", _DEFINITIONS, {"metadata": {"name": "larges.scale.example.com"}, "spec": spec}
    )
    taken = time.perf_counter() - begin
    is_over.set()
    other.join()
    return taken, longest * 1000


def measure(target: Target, objects: int, watches: int) -> dict[str, float]:
    found = {"creates": creates(target, objects)}
    found["pages"] = pages(target)
    found["watch"] = watch(target, watches)
    found["definition"], found["held"] = definition(target)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--objects", type=int, default=100_000)
    parser.add_argument("--watches", type=int, default=1500)
    parser.add_argument("--only", choices=("embedded", "real"))
    options = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 16_384), most))
    columns: dict[str, dict[str, float]] = {}
    if options.only != "real":
        with embedded() as target:
            columns["embedded"] = measure(target, options.objects, options.watches)
        with embedded(data=True) as target:
            columns["embedded"]["saved"] = creates(target, min(options.objects, 10_000))
    if options.only != "embedded":
        try:
            with real() as target:
                columns["real"] = measure(target, options.objects, options.watches)
        except ConfigError as error:
            print(f"without the real server: {error}", file=sys.stderr)
    print(f"{'':40}" + "".join(f"{name:>12}" for name in columns))
    for row, shown in _ROWS.items():
        values = (f"{column[row]:12.2f}" if row in column else f"{'':12}" for column in columns.values())
        print(f"{shown.format(objects=options.objects):40}" + "".join(values))
    return 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())

"""What a list costs on its way in: CPU of this process for 10,000 Pods in pages of 500, from a socket to objects.

    python -m benchmarks.lists [--rounds 7]

The server is a process of its own and answers from memory, as the API server does: with a length, in chunks, or packed. No cluster is needed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gzip
import json
import multiprocessing
import statistics
import time
from multiprocessing.connection import Connection

from ctrlruntime.api import core
from ctrlruntime.rest.collection import Collection
from ctrlruntime.rest.config import Config
from ctrlruntime.rest.mapper import APIResource
from ctrlruntime.rest.transport import Transport

OBJECTS = 10_000
PAGE = 500
CHUNK = 32 * 1024
PODS = APIResource(group="", version="v1", plural="pods", kind="Pod", namespaced=True)
FORMS = ("length", "chunks", "gzip")


def pod(number: int) -> dict[str, object]:
    labels = {"app": f"app-{number % 50}", "pod-template-hash": "5d8f6c7b9"}
    container = {
        "name": "main",
        "image": "registry.example.com/team/app:1.2.3",
        "args": [f"--flag-{n}=value" for n in range(8)],
        "env": [{"name": f"SETTING_{n}", "value": f"value {n} of {number}"} for n in range(12)],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"app-{number:05}",
            "namespace": f"ns-{number % 20}",
            "uid": f"6f0bd5b2-0000-4000-8000-{number:012}",
            "resourceVersion": str(number + 1),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": labels,
        },
        "spec": {"containers": [container], "nodeName": f"node-{number % 100}", "serviceAccountName": "default"},
        "status": {"phase": "Running", "podIP": f"10.0.{number // 250}.{number % 250}"},
    }


def page(start: int, form: str) -> bytes:
    token = str(start + PAGE) if start + PAGE < OBJECTS else ""
    tree = {
        "kind": "PodList",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": "20000", "continue": token},
        "items": [pod(number) for number in range(start, start + PAGE)],
    }
    body = json.dumps(tree, separators=(",", ":")).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    if form == "chunks":
        cuts = [body[at : at + CHUNK] for at in range(0, len(body), CHUNK)]
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(cut), cut) for cut in cuts)
        return head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
    if form == "gzip":
        body, head = gzip.compress(body, 1), head + b"Content-Encoding: gzip\r\n"
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


def serve(ready: Connection, form: str) -> None:
    pages = {start: page(start, form) for start in range(0, OBJECTS, PAGE)}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                request = (await reader.readuntil(b"\r\n\r\n")).decode()
                _, found, rest = request.partition("continue=")
                start = int(rest.replace(" ", "&").partition("&")[0]) if found else 0
                writer.write(pages[start])
                await writer.drain()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


async def measure(form: str, port: int, rounds: int) -> None:
    transport = Transport(Config(host=f"http://127.0.0.1:{port}"))
    collection = Collection(transport, PODS)
    read: list[float] = []
    decoded: list[float] = []
    for _ in range(rounds + 1):
        began = time.process_time()
        items, _ = await collection.all(limit=PAGE)
        between = time.process_time()
        pods = [core.Pod.from_json(item) for item in items]
        ended = time.process_time()
        assert len(pods) == OBJECTS
        read.append(between - began)
        decoded.append(ended - began)
    await transport.close()
    # The least of several rounds: everything else that runs on the machine only adds to it.
    shown = [
        f"{min(times[1:]) * 1000:7.1f} ms (median {statistics.median(times[1:]) * 1000:.1f})"
        for times in (read, decoded)
    ]
    print(f"{form:<8} read {shown[0]}   read and decoded {shown[1]}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="What a list of 10,000 Pods costs on its way in.")
    parser.add_argument("--rounds", type=int, default=7)
    rounds: int = parser.parse_args().rounds
    for form in FORMS:
        ours, theirs = multiprocessing.Pipe()
        server = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs, form), daemon=True)
        server.start()
        asyncio.run(measure(form, ours.recv(), rounds))
        server.terminate()
        server.join()


if __name__ == "__main__":
    main()

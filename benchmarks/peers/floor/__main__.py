"""The lower bound of each workload: a bare client that reads the bytes and drops them, or sends what was encoded before.

What a peer needs beyond this is its own.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from aiohttp import web

from benchmarks.peers.bare import Bare, connected, encoded
from benchmarks.peers.objects import CONFIG_MAPS, NAMESPACE, WIDGETS
from benchmarks.peers.protocol import Asked, Figures, Tally, asked, obey, ready, say

ALL_WIDGETS = "/apis/bench.example.com/v1/widgets"
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


async def drained(given: Asked, path: str, accept: str = "application/json") -> Figures:
    """One list as the server has it in memory, whole."""
    ready()
    size = 0
    async with connected(given.kubeconfig) as server:
        async for chunk in server.stream(f"{path}?resourceVersion=0", accept):
            size += len(chunk)
    return {"bytes": size}


async def synced(given: Asked) -> Figures:
    return await drained(given, ALL_WIDGETS)


async def pods(given: Asked) -> Figures:
    return await drained(given, "/api/v1/pods")


async def metadata(given: Asked) -> Figures:
    return await drained(given, ALL_WIDGETS, METADATA)


async def latency(given: Asked) -> Figures:
    """A watch of which only the names are looked at."""
    tally = Tally(0)
    ready()
    async with connected(given.kubeconfig) as server:
        head = json.loads(await server.ask("GET", f"{ALL_WIDGETS}?limit=1"))
        watching = asyncio.create_task(watch(server, head["metadata"]["resourceVersion"], tally))
        await asyncio.sleep(0.5)  # the watch is open by then; not part of a figure
        figures = await tally.updates(given.updates)
        watching.cancel()
    return figures


async def watch(server: Bare, version: str, tally: Tally) -> None:
    async for chunk in server.stream(f"{ALL_WIDGETS}?watch=1&resourceVersion={version}"):
        for name in re.findall(rb'"name":"(widget-\d+)"', chunk):
            if name.decode() not in tally.begins:
                tally.begin(name.decode())


async def children(given: Asked) -> Figures:
    """The same two writes an object, from one list."""
    ready()
    async with connected(given.kubeconfig) as server:
        pending = iter(json.loads(await server.ask("GET", WIDGETS))["items"])

        async def work() -> None:
            for widget in pending:
                name = widget["metadata"]["name"]
                await server.ask("POST", CONFIG_MAPS, child(widget))
                widget["status"] = {"nodes": ["one"]}
                await server.ask("PUT", f"{WIDGETS}/{name}/status", encoded(widget))

        await asyncio.gather(*(work() for _ in range(given.concurrency)))
    return {"objects": given.objects}


async def applied(given: Asked) -> Figures:
    """The same write an object, from one list."""
    ready()
    async with connected(given.kubeconfig) as server:
        pending = iter(json.loads(await server.ask("GET", WIDGETS))["items"])

        async def work() -> None:
            for widget in pending:
                name = f"{widget['metadata']['name']}-child"
                body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
                body |= {"data": {"size": str(widget["spec"]["size"])}}
                path = f"{CONFIG_MAPS}/{name}?fieldManager=bench&force=true"
                await server.ask("PATCH", path, encoded(body), "application/apply-patch+yaml")

        await asyncio.gather(*(work() for _ in range(given.concurrency)))
    return {"objects": given.objects}


async def events(given: Asked) -> Figures:
    """A watch of which only the lines are counted: what one subscriber costs at least."""
    ready()
    async with connected(given.kubeconfig) as server:
        head = json.loads(await server.ask("GET", f"{ALL_WIDGETS}?limit=1"))
        frames = server.stream(f"{ALL_WIDGETS}?watch=1&resourceVersion={head['metadata']['resourceVersion']}")
        counting = asyncio.create_task(count(frames, given.updates))
        await asyncio.sleep(0.5)  # the watch is open by then; not part of a figure
        say("synced")
        await counting
    return {"objects": given.objects}


async def count(frames: AsyncIterator[bytes], wanted: int) -> None:
    seen = 0
    async for chunk in frames:
        seen += chunk.count(b"\n")
        if seen >= wanted:
            return


async def webhook(given: Asked) -> Figures:
    """A server that reads reviews and gives each the same answer."""
    body = encoded({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": {"allowed": True}})
    done, seen = asyncio.Event(), 0

    async def answer(request: web.BaseRequest) -> web.Response:
        nonlocal seen
        await request.read()
        seen += 1
        if seen == given.objects:
            done.set()
        return web.Response(body=body, content_type="application/json")

    ready()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(Path(given.certs) / "tls.crt", Path(given.certs) / "tls.key")
    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", given.port, ssl_context=context).start()
    say("synced")
    await done.wait()
    await asyncio.sleep(0.1)  # the last answer is on its way
    return {"objects": seen}


def child(widget: dict[str, Any]) -> bytes:
    metadata = widget["metadata"]
    owner = {"apiVersion": "bench.example.com/v1", "kind": "Widget", "name": metadata["name"], "uid": metadata["uid"]}
    owner |= {"controller": True, "blockOwnerDeletion": True}
    named = {"name": f"{metadata['name']}-child", "namespace": NAMESPACE, "ownerReferences": [owner]}
    return encoded({"metadata": named, "data": {"size": str(widget["spec"]["size"])}})


WORKLOADS = {
    "synced": synced,
    "pods": pods,
    "metadata": metadata,
    "reconciled": synced,
    "latency": latency,
    "children": children,
    "applied": applied,
    "events": events,
    "webhook": webhook,
}


async def main() -> None:
    given = asked(WORKLOADS)
    await obey(WORKLOADS[given.workload](given))


if __name__ == "__main__":
    asyncio.run(main())

"""What the harness sends while a program runs: updates of objects and reviews, by the same bare clients for every program."""

from __future__ import annotations

import asyncio
import ssl
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp

from benchmarks.peers import objects
from benchmarks.peers.bare import Bare, connected, encoded
from benchmarks.peers.process import Figures, PeerFailed

PACE = 0.03
"""Seconds between two updates whose latency is taken."""

WARM_UP = 50
"""Reviews before those that count."""

PARALLEL = 20
BACKLOG = 200
"""Updates on their way at most. A server that is slower than the rate does not get more."""

MERGE = "application/merge-patch+json"


def on(kubeconfig: str, do: Callable[[Bare], Awaitable[Any]]) -> Any:
    """Run one coroutine on a connection of its own."""

    async def connect() -> Any:
        async with connected(kubeconfig) as server:
            return await do(server)

    return asyncio.run(connect())


def percentiles(seconds: list[float]) -> Figures:
    """Return p50 and p99, in milliseconds."""
    taken = sorted(seconds)
    return {"p50": statistics.median(taken) * 1e3, "p99": taken[int(len(taken) * 0.99)] * 1e3}


class Updates:
    """Changes one object after the other while a program watches, and takes the time until the program's reconcile begins."""

    def __init__(self, kubeconfig: str, count: int) -> None:
        self._kubeconfig = kubeconfig
        self._count = count
        self._value = 100

    def around(self, measure: Callable[..., Figures]) -> Figures:
        calls: dict[str, int] = {}
        self._value += 1  # another one for each program, or nothing would change

        def update() -> None:
            calls.update(on(self._kubeconfig, self._update))

        figures = measure(update)
        begins = figures.pop("begins")
        return {**figures, **percentiles([(begin - calls[name]) / 1e9 for name, begin in begins.items()])}

    async def _update(self, server: Bare) -> dict[str, int]:
        calls: dict[str, int] = {}
        body = encoded({"spec": {"size": self._value}})
        await server.ask("GET", f"{objects.WIDGETS}?limit=1")  # the connection stands before the clock runs
        for number in range(self._count):
            await asyncio.sleep(PACE)
            name = f"widget-{number:06}"
            calls[name] = time.time_ns()
            await server.ask("PATCH", f"{objects.WIDGETS}/{name}", body, MERGE)
        return calls


class Load:
    """Updates objects at a steady rate, and takes the time from the call until the program's reconcile begins.

    Each update writes a size that no other has, by which the program tells which one it has seen.
    """

    def __init__(self, kubeconfig: str, objects: int, rate: int, seconds: int) -> None:
        self._kubeconfig = kubeconfig
        self._objects = objects
        self._rate = rate
        self.updates = rate * seconds
        self._first = 1_000_000

    def around(self, measure: Callable[..., Figures]) -> Figures:
        calls: dict[str, int] = {}
        self._first += self.updates

        def update() -> None:
            calls.update(on(self._kubeconfig, self._update))

        figures = measure(update)
        begins = figures.pop("begins")
        if missing := len(calls.keys() - begins.keys()):
            raise PeerFailed(f"it did not see {missing} of {len(calls)} updates")
        return {
            **figures,
            **percentiles([(begins[size] - call) / 1e9 for size, call in calls.items()]),
            "update_us": figures["cpu"] / self.updates * 1e6,
        }

    async def _update(self, server: Bare) -> dict[str, int]:
        calls: dict[str, int] = {}
        room = asyncio.Semaphore(BACKLOG)

        async def one(number: int) -> None:
            size = self._first + number
            calls[str(size)] = time.time_ns()
            path = f"{objects.WIDGETS}/widget-{number % self._objects:06}"
            try:
                await server.ask("PATCH", path, encoded({"spec": {"size": size}}), MERGE)
            finally:
                room.release()

        await server.ask("GET", f"{objects.WIDGETS}?limit=1")
        begin = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for number in range(self.updates):
                if (early := begin + number / self._rate - time.perf_counter()) > 0:
                    await asyncio.sleep(early)
                await room.acquire()
                group.create_task(one(number))
        return calls


class Changes:
    """Changes each object once, as fast as the server takes it, while a program watches."""

    def __init__(self, kubeconfig: str, updates: int) -> None:
        self._kubeconfig = kubeconfig
        self._updates = updates
        self._value = 10_000

    def around(self, figure: str) -> Callable[[Callable[..., Figures]], Figures]:
        """Return what measures a program and names the CPU time of each update: microseconds."""

        def around(measure: Callable[..., Figures]) -> Figures:
            figures = measure(lambda: on(self._kubeconfig, self._change))
            return {**figures, figure: figures["cpu"] / self._updates * 1e6}

        return around

    async def _change(self, server: Bare) -> None:
        self._value += 1
        pending = iter(range(self._updates))
        await asyncio.gather(*(self._some(server, pending) for _ in range(PARALLEL)))

    async def _some(self, server: Bare, pending: Any) -> None:
        body = encoded({"spec": {"size": self._value}})
        for number in pending:
            await server.ask("PATCH", f"{objects.WIDGETS}/widget-{number:06}", body, MERGE)


class Reviews:
    """Posts reviews to a webhook at a steady rate, whether or not the ones before were answered, and takes the time of each."""

    def __init__(self, port: int, authority: Path, rate: int, count: int) -> None:
        self._url = f"https://127.0.0.1:{port}/mutate-bench-example-com-v1-widget?timeout=10s"
        self._context = ssl.create_default_context(cafile=authority)
        self._rate = rate
        self._count = count

    def around(self, measure: Callable[..., Figures]) -> Figures:
        taken: list[float] = []

        def post() -> None:
            try:
                taken.extend(asyncio.run(self._post()))
            except (aiohttp.ClientError, OSError) as error:
                raise PeerFailed(f"a review was lost: {error!r}") from error

        figures = measure(post)
        per_review = figures["cpu"] / (self._count + WARM_UP) * 1e6
        return {**figures, **percentiles(taken), "review_us": per_review, "count": self._rate}

    async def _post(self) -> list[float]:
        body = self._review()
        connector = aiohttp.TCPConnector(ssl=self._context, limit=0)
        headers = {"Content-Type": "application/json"}
        async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

            async def one() -> float:
                began = time.perf_counter()
                async with session.post(self._url, data=body) as answer:
                    raw = await answer.read()
                    if answer.status != 200 or b'"allowed":true' not in raw.replace(b" ", b""):
                        raise PeerFailed(f"its webhook answered {answer.status} {raw[:300]!r}")
                return time.perf_counter() - began

            await asyncio.gather(*(one() for _ in range(WARM_UP // 10)))  # some connections
            for _ in range(WARM_UP - WARM_UP // 10):
                await one()
            posts, begin = list[asyncio.Task[float]](), time.perf_counter()
            for number in range(self._count):
                await asyncio.sleep(begin + number / self._rate - time.perf_counter())
                posts.append(asyncio.create_task(one()))
            return await asyncio.gather(*posts)

    @staticmethod
    def _review() -> bytes:
        widget = objects.widget(1)
        named = {"namespace": objects.NAMESPACE, "name": widget["metadata"]["name"]}
        kind = {"group": "bench.example.com", "version": "v1", "kind": "Widget"}
        resource = {"group": "bench.example.com", "version": "v1", "resource": "widgets"}
        request = {"uid": "00000000-0000-4000-8000-000000000000", "kind": kind, "resource": resource, **named}
        request |= {"operation": "CREATE", "userInfo": {"username": "bench"}, "object": widget, "dryRun": False}
        return encoded({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request})

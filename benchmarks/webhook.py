"""Admission through our webhook server: reviews a second, latency, and what a renewed certificate costs.

    python -m benchmarks.webhook [--requests 2000] [--parallel 20] [--renewals 10]

Two measurements. "server" posts reviews straight to the webhook server, every fifth over a new connection; "cluster" creates objects (dry
run) on the embedded API server, which asks a defaulter and a validator about each. The certificate is renewed all the while. Client and API
server share the processors with the webhooks. The bar: no request is lost, 200 a second.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import ssl
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
from pydantic import Field

import ctrlruntime as ctrl
from ctrlruntime.api import meta
from ctrlruntime.generate.crd import crds
from ctrlruntime.manager.manager import running
from ctrlruntime.testing import Environment
from ctrlruntime.webhook.development import DevelopmentCertificates

_KIND = ("games.bench.example.com", "v1", "games")


class GameSpec(ctrl.Model):
    replicas: int = 1
    image: str = ""
    host: str = ""


class Game(ctrl.Object, group=_KIND[0], version=_KIND[1]):
    spec: GameSpec = Field(default_factory=GameSpec)


class Defaulter:
    async def default(self, game: Game) -> None:
        game.spec.image = game.spec.image or "image"
        game.spec.host = game.spec.host or f"{game.metadata.name}.example.com"


class Validator:
    async def validate_create(self, game: Game) -> None:
        if "*" in game.spec.host:
            raise ctrl.webhook.invalid(
                Game, game.metadata.name, [ctrl.webhook.FieldError.invalid("spec.host", game.spec.host, "no *")]
            )


class Load:
    """Sends `requests` of them, `parallel` at a time, and keeps how long each took and what was lost."""

    def __init__(self, requests: int, parallel: int) -> None:
        self.requests, self.parallel = requests, parallel
        self.seconds: list[float] = []
        self.lost: list[str] = []
        self.took = 0.0

    async def run(self, send: Callable[[int], Awaitable[None]]) -> None:
        numbers = itertools.islice(itertools.count(), self.requests)

        async def worker() -> None:
            for number in numbers:
                start = time.perf_counter()
                try:
                    await send(number)
                except (aiohttp.ClientError, ctrl.errors.CtrlError, OSError) as error:
                    self.lost.append(repr(error))
                self.seconds.append(time.perf_counter() - start)

        start = time.perf_counter()
        await asyncio.gather(*(worker() for _ in range(self.parallel)))
        self.took = time.perf_counter() - start

    def show(self, name: str, renewals: int) -> None:
        quantiles = statistics.quantiles(self.seconds, n=100)
        print(
            f"{name:8}  {self.requests / self.took:7.0f}/s   median {1000 * quantiles[49]:6.2f} ms   "
            f"p99 {1000 * quantiles[98]:6.2f} ms   lost {len(self.lost)}   renewals {renewals}"
        )
        for error in self.lost[:3]:
            print(f"          {error}")


def development_certificates(server: ctrl.webhook.WebhookServer) -> DevelopmentCertificates:
    assert isinstance(server._certificates, DevelopmentCertificates)  # noqa: SLF001
    return server._certificates  # noqa: SLF001


@contextlib.asynccontextmanager
async def renewing(server: ctrl.webhook.WebhookServer, every: float) -> AsyncIterator[list[float]]:
    """Renew the certificate all the while."""
    moments: list[float] = []
    certificates = development_certificates(server)

    async def renew() -> None:
        while True:
            server._shown.show(certificates._issue())  # noqa: SLF001 - renewals are a week apart otherwise
            moments.append(time.perf_counter())
            await asyncio.sleep(every)

    task = asyncio.ensure_future(renew())
    try:
        yield moments
    finally:
        task.cancel()
        await asyncio.wait({task})


async def straight(mgr: ctrl.Manager, load: Load) -> None:
    """Post reviews to the webhook server itself; every fifth over a connection of its own."""
    server = mgr.webhook_server
    context = ssl.create_default_context(cadata=development_certificates(server)._ca().pem.decode())  # noqa: SLF001
    kind = {"group": _KIND[0], "version": "v1", "kind": "Game"}
    game = Game(metadata=meta.ObjectMeta(name="g", namespace="default"), spec=GameSpec(replicas=2)).to_dict()
    request = {"uid": "u", "kind": kind, "operation": "CREATE", "object": game, "namespace": "default", "name": "g"}
    review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    body = json.dumps(review).encode()
    url = f"https://127.0.0.1:{server.port}/mutate-games-bench-example-com-v1-game?timeout=10s"
    connector = aiohttp.TCPConnector(ssl=context, limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def send(number: int) -> None:
            headers = {"Content-Type": "application/json"} | ({"Connection": "close"} if number % 5 == 0 else {})
            async with session.post(url, data=body, headers=headers) as answer:
                if answer.status != 200 or not json.loads(await answer.read())["response"]["allowed"]:
                    raise OSError(f"answered {answer.status}")

        await load.run(send)


async def through(mgr: ctrl.Manager, load: Load) -> None:
    """Create objects on the API server, which asks the webhooks."""

    async def send(number: int) -> None:
        game = Game(metadata=meta.ObjectMeta(name=f"g-{number}", namespace="default"))
        await mgr.client.create(game, dry_run=True)
        if game.spec.image:
            raise OSError("a dry run changed the object")

    await load.run(send)


async def measure(environment: Environment, requests: int, parallel: int, renewals: int) -> bool:
    mgr = ctrl.new_manager(
        ctrl.get_config(str(environment.kubeconfig_path)),
        scheme=ctrl.Scheme(Game),
        metrics_bind_address="0",
        webhook=ctrl.webhook.WebhookOptions(port=0, development=ctrl.webhook.DevelopmentMode()),
    )
    (ctrl.new_webhook_managed_by(mgr).for_(Game).with_defaulter(Defaulter()).with_validator(Validator()).complete())
    good = True
    async with running(mgr):
        for name, run in (("server", straight), ("cluster", through)):
            await run(mgr, Load(min(100, requests), parallel))
            load = Load(requests, parallel)
            async with renewing(mgr.webhook_server, 1 / renewals) as moments:
                await run(mgr, load)
            load.show(name, len(moments))
            good &= bool(moments) and not load.lost and requests / load.took >= 200
    return good


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.webhook", description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--parallel", type=int, default=20)
    parser.add_argument("--renewals", type=int, default=10, help="renewals of the certificate a second")
    args = parser.parse_args()
    ctrl.log.setup(ctrl.log.Options(log_level="error"))
    with Environment(backend="embedded", crds=crds([Game])) as environment:
        good = asyncio.run(measure(environment, args.requests, args.parallel, args.renewals))
    print("bars met" if good else "a bar was missed")
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())

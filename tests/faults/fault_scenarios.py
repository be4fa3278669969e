"""What a scenario of the fault suite is, and the world it happens in.

A scenario has a name, a class, a bound and a body. The bound is in seconds, counted with default options from the end of the fault (or
from its begin, when it is over at once) to the moment when cache and reconciler have caught up with the server. The body makes the fault
and ends with `await world.recovered(...)`. ::

    @scenario("a watch is cut", kind="watch", bound=5)
    async def _(world):
        with world.proxy.reset(world.watches()):
            began = await world.change()
        await world.recovered(began)
        world.assert_no_list(since=began)

What holds for every scenario is checked here: the manager goes on, nothing is lost, no object goes back in time, each deletion is told once,
nothing unexpected is logged.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import core
from ctrlruntime.errors import CtrlError, RequestTimeoutError
from ctrlruntime.event import DeleteEvent
from ctrlruntime.manager.manager import Manager, running
from ctrlruntime.testing import Environment
from ctrlruntime.testing.faults import FaultProxy, Match

OWN_TIME = 1.0
"""Seconds that a scaled bound has besides: handshakes and turns of the event loop are not scaled. `scripts/faults` measures with it. In the suite it is `LONGEST_WAIT`: a loaded machine must not fail a test."""


@dataclass(frozen=True)
class Times:
    """The default times, multiplied by `scale`. A scaled bound has `own` seconds besides."""

    scale: float = 1.0
    own: float = OWN_TIME

    @property
    def watch(self) -> ctrl.cache.WatchOptions:
        default = ctrl.cache.WatchOptions()
        low, high = default.timeout
        first, longest = default.backoff
        return ctrl.cache.WatchOptions(
            timeout=(max(1.5, low * self.scale), max(2.25, high * self.scale)),
            timeout_grace=default.timeout_grace * self.scale,
            stream_idle_timeout=default.stream_idle_timeout * self.scale,
            backoff=(first * self.scale, longest * self.scale),
            backoff_reset_after=default.backoff_reset_after * self.scale,
            missing_kind_retry_interval=default.missing_kind_retry_interval * self.scale,
        )

    @property
    def stale_after(self) -> float:
        return (ctrl.CacheOptions().stale_after or 0.0) * self.scale

    def config(self, config: ctrl.Config) -> ctrl.Config:
        return replace(config, connect_timeout=config.connect_timeout * self.scale, timeout=config.timeout * self.scale)

    def bound(self, seconds: float, unscaled: float = 0.0) -> float:
        return seconds if self.scale == 1.0 else seconds * self.scale + unscaled + self.own

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds * self.scale)


@dataclass(frozen=True)
class Scenario:
    """A fault and what has to come of it."""

    name: str
    kind: str
    bound: float
    body: Callable[[World], Awaitable[None]]
    kinds: tuple[type[Any], ...] = (core.ConfigMap,)
    may_log: tuple[str, ...] = ()
    """Events that may be logged as errors."""

    unscaled: float = 0.0
    """Seconds of the bound that come from constants and are not scaled. `scripts/faults` measures with it. In the suite it is `LONGEST_WAIT`: a loaded machine must not fail a test."""

    options: dict[str, Any] = field(default_factory=dict)
    """Fields of WatchOptions that differ from the (scaled) defaults."""

    def __str__(self) -> str:
        return self.name.replace(" ", "-")


@dataclass(frozen=True)
class Outcome:
    """How a scenario went on one server."""

    scenario: Scenario
    server: str
    bound: float
    measured: float


def scenario(
    name: str, *, kind: str, bound: float, into: list[Scenario], **more: Any
) -> Callable[[Callable[[World], Awaitable[None]]], Scenario]:
    """Make a function the body of a scenario and put it in the list."""

    def take(body: Callable[[World], Awaitable[None]]) -> Scenario:
        made = Scenario(name, kind, bound, body, **more)
        into.append(made)
        return made

    return take


class Follower:
    """What a manager knows of one kind: by its cache, by the events of a subscription, and by its reconciler."""

    def __init__(self, world: World, kind: type[Any]) -> None:
        info = kind.__kind_info__
        self.kind = kind
        self.plural, self.group = info.plural, info.group
        self.api_version = f"{info.group}/{info.version}" if info.group else info.version
        prefix = "/apis" if info.group else "/api"
        self.path = f"{prefix}/{self.api_version}/namespaces/{world.namespace}/{self.plural}"
        self.reconciled: dict[str, str | None] = {}
        self.heard: dict[str, str] = {}
        self.deletions: dict[str, int] = {}
        self.faults: list[str] = []
        self._world = world

    # --- the manager's side ------------------------------------------------------------------------------------------

    async def reconcile(self, request: ctrl.Request) -> None:
        found = await self._world.manager.client.get_or_none(self.kind, request)
        self.reconciled[request.name] = None if found is None else found.metadata.resource_version

    async def listen(self) -> None:
        subscription = await self._world.manager.cache.subscribe(self.kind, name="observer")
        while await subscription.ready():
            while (event := subscription.pop()) is not None:
                self._hear(event)

    def _hear(self, event: Any) -> None:
        meta = event.meta
        if isinstance(event, DeleteEvent):
            self.deletions[meta.uid] = self.deletions.get(meta.uid, 0) + 1
            if self.deletions[meta.uid] > 1:
                self.faults.append(f"{meta.name} was deleted twice")
            return
        before = self.heard.get(meta.uid, "0")
        if int(before) > int(meta.resource_version):
            self.faults.append(f"{meta.name} went back from {before} to {meta.resource_version}")
        if self.deletions.get(meta.uid):
            self.faults.append(f"{meta.name} came back after its deletion")
        self.heard[meta.uid] = meta.resource_version

    # --- the server's side -------------------------------------------------------------------------------------------

    def create(self, name: str, content: dict[str, Any] | None = None) -> None:
        body = {"apiVersion": self.api_version, "kind": self.kind.__name__, "metadata": {"name": name}}
        self._world.server.connection.request("POST", self.path, body | (content or {}))

    def update(self, name: str) -> None:
        patch = {"metadata": {"labels": {"changed": f"at-{time.monotonic_ns()}"}}}
        self._world.server.connection.request(
            "PATCH", f"{self.path}/{name}", patch, content_type="application/merge-patch+json"
        )

    def delete(self, name: str) -> None:
        self._world.server.connection.request("DELETE", f"{self.path}/{name}")

    def truth(self) -> dict[str, str]:
        items = self._world.server.connection.request("GET", self.path)["items"]
        return {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in items}

    async def difference(self) -> str:
        """Return what the manager does not know (yet); empty when it knows all."""
        truth = await asyncio.to_thread(self.truth)
        try:
            cached = await self._world.manager.cache.list(self.kind, namespace=self._world.namespace)
        except CtrlError as error:
            return f"{self.plural} cannot be read: {error}"
        held = {meta.name: meta.resource_version for meta in cached.metadata}
        if held != truth:
            return f"the cache of {self.plural} holds {held}, the server {truth}"
        reconciled = {name: version for name, version in self.reconciled.items() if version is not None}
        if reconciled != truth:
            return f"the reconciler of {self.plural} saw {reconciled}, the server has {truth}"
        return ""


class World:
    """A server behind a proxy, a manager that follows some kinds on it, and the hands of the others who write."""

    def __init__(self, made: Scenario, server: Environment, proxy: FaultProxy, namespace: str, times: Times) -> None:
        self.scenario = made
        self.server = server
        self.proxy = proxy
        self.namespace = namespace
        self.times = times
        self.measured = 0.0
        self.manager: Manager
        self._followers = {kind: Follower(self, kind) for kind in made.kinds}
        self._changes = 0
        self.config = times.config(proxy.config)

    def __getitem__(self, kind: type[Any]) -> Follower:
        return self._followers[kind]

    @property
    def first(self) -> Follower:
        return next(iter(self._followers.values()))

    # --- matches -----------------------------------------------------------------------------------------------------

    def requests(self, *verbs: str, kind: type[Any] | None = None) -> Match:
        follower = self.first if kind is None else self[kind]
        return Match(verb=verbs or None, resource=follower.plural, group=follower.group, namespace=self.namespace)

    def watches(self, kind: type[Any] | None = None) -> Match:
        return self.requests("watch", kind=kind)

    def lists(self, kind: type[Any] | None = None) -> Match:
        return self.requests("list", kind=kind)

    async def unready(self) -> str:
        """Return why the manager is not ready; empty when it is."""
        answer = await self.manager.readiness.answer()
        return "; ".join(f"{name}: {error}" for name, error in answer.failures.items())

    def restarts(self, reason: str, kind: type[Any] | None = None) -> int:
        """Return how many watches of the kind ended for this reason, as the metrics tell it."""
        follower = self.first if kind is None else self[kind]
        text = self.manager.metrics.render("")[0].decode()
        label = rf'kind="{follower.kind.__name__}\.[^"]*",reason="{reason}"'
        found = re.search(
            rf"^ctrlruntime_cache_watch_restarts_total\{{[^}}]*{label}[^}}]*\}} (\S+)$", text, re.MULTILINE
        )
        return 0 if found is None else int(float(found[1]))

    # --- what happens ------------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def running(self, *, synced: Iterable[type[Any]] | None = None, **options: Any) -> AsyncIterator[None]:
        """Run the manager inside the block; begin when it has caught up with the kinds in `synced` (default: all)."""
        watch = replace(self.times.watch, **self.scenario.options)
        self.manager = ctrl.new_manager(
            self.config,
            scheme=ctrl.Scheme(*(kind for kind in self._followers if kind.__kind_info__.group.endswith("example.com"))),
            cache=ctrl.CacheOptions(namespaces=[self.namespace], watch=watch, stale_after=self.times.stale_after),
            metrics_bind_address="0",
            **options,
        )
        for follower in self._followers.values():
            ctrl.new_controller_managed_by(self.manager).for_(follower.kind).complete(follower)
        async with running(self.manager):
            listeners = [asyncio.create_task(follower.listen()) for follower in self._followers.values()]
            try:
                for kind in self._followers if synced is None else synced:
                    await self._caught_up(self[kind], 15.0)
                    if synced is None:
                        await self.proxy.wait_for(self.watches(kind), answered=True)
                yield
            finally:
                for listener in listeners:
                    listener.cancel()
                await asyncio.gather(*listeners, return_exceptions=True)

    async def open_connections(self, count: int) -> None:
        """Let the manager's pool have so many connections. The scaled limit of a request is short for a loaded machine, so it may take several tries."""
        reader = self.manager.api_reader
        async with asyncio.timeout(LONGEST_WAIT):
            while True:
                with contextlib.suppress(RequestTimeoutError):
                    await asyncio.gather(*(reader.list(core.ConfigMap, namespace=self.namespace) for _ in range(count)))
                    return

    async def prepare(self, kind: type[Any] | None = None) -> None:
        """Make the objects that are there before the fault."""
        follower = self.first if kind is None else self[kind]
        for name in ("kept", "gone-1", "gone-2", "gone-3"):
            await asyncio.to_thread(follower.create, name)

    async def change(self, kind: type[Any] | None = None) -> float:
        """Let somebody else create, update and delete an object, at the server itself; return when it began."""
        follower = self.first if kind is None else self[kind]
        began = time.monotonic()
        self._changes += 1
        await asyncio.to_thread(follower.create, f"new-{self._changes}")
        await asyncio.to_thread(follower.update, "kept")
        await asyncio.to_thread(follower.delete, f"gone-{self._changes}")
        return began

    async def recovered(self, since: float, *, kind: type[Any] | None = None, within: float | None = None) -> float:
        """Wait until the manager knows all of the kinds (of one); what it took from `since` is the measure.

        Raises: AssertionError when it took longer than the scenario's bound.
        """
        bound = self.times.bound(self.scenario.bound if within is None else within, self.scenario.unscaled)
        followers = self._followers.values() if kind is None else [self[kind]]
        for follower in followers:
            await self._caught_up(follower, since + bound - time.monotonic())
        took = time.monotonic() - since
        assert took <= bound, f"it took {took:.2f} s, not {bound:.2f} s at most"
        if within is None:
            self.measured = max(self.measured, took)
        return took

    async def _caught_up(self, follower: Follower, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while difference := await follower.difference():
            assert time.monotonic() < deadline, f"not within {seconds:.2f} s: {difference}"
            await asyncio.sleep(0.02)

    def assert_no_list(self, *, since: float, kind: type[Any] | None = None) -> None:
        self.assert_lists(0, since=since, kind=kind)

    def assert_lists(self, count: int, *, since: float, kind: type[Any] | None = None) -> None:
        """First pages count; a list in pages is one list."""
        found = [r for r in self.proxy.matching(self.lists(kind), since=since) if "continue" not in r.query]
        assert len(found) == count, f"{len(found)} lists instead of {count}"


async def run(made: Scenario, server: Environment, times: Times, log_lines: list[dict[str, Any]]) -> Outcome:
    """Run a scenario on one server. Raises: AssertionError when it does not end as it has to."""
    namespace = await asyncio.to_thread(server.create_namespace, "faults")
    proxy = FaultProxy(server)
    await asyncio.to_thread(proxy.start)
    try:
        world = World(made, server, proxy, namespace, times)
        with ctrl.log.bound(scenario=made.name):
            await made.body(world)
    finally:
        await asyncio.to_thread(proxy.stop)
        await asyncio.to_thread(server.delete_namespace, namespace)
    for follower in world._followers.values():
        assert not follower.faults, "; ".join(follower.faults)
    _check_log(made, log_lines)
    return Outcome(made, server.backend, times.bound(made.bound, made.unscaled), world.measured)


def _check_log(made: Scenario, lines: list[dict[str, Any]]) -> None:
    mine = [line for line in lines if line.get("scenario") == made.name]
    shown = [line for line in mine if line["level"] == "error" or line.get("exc_info")]
    unexpected = [line for line in shown if line["event"] not in made.may_log]
    assert not unexpected, f"{len(unexpected)} errors were logged, the first: {unexpected[0]}"

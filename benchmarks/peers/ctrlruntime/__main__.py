"""The peer that all this is about: `python -m benchmarks.peers.ctrlruntime WORKLOAD …` (the protocol says the rest)."""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

from pydantic import Field

import ctrlruntime as ctrl
from benchmarks.peers import objects
from benchmarks.peers.protocol import Asked, Figures, Tally, asked, obey, ready, say
from ctrlruntime.api import apps, core, meta
from ctrlruntime.cache.subscription import Subscription
from ctrlruntime.metrics import Metrics
from ctrlruntime.predicate import Predicate
from ctrlruntime.workqueue import PriorityQueue


class Variable(ctrl.Model):
    name: str = ""
    value: str = ""


class WidgetSpec(ctrl.Model):
    size: int = 0
    image: str = ""
    args: list[str] = Field(default_factory=list)
    env: list[Variable] = Field(default_factory=list)
    selector: dict[str, str] = Field(default_factory=dict)


class WidgetStatus(ctrl.Model):
    nodes: list[str] = Field(default_factory=list)


class Widget(ctrl.Object, group="bench.example.com", version="v1"):
    spec: WidgetSpec = Field(default_factory=WidgetSpec)
    status: WidgetStatus = Field(default_factory=WidgetStatus)


WORKLOADS = {
    "synced", "pods", "metadata", "idle", "reads", "queue", "reconciled", "latency", "children", "owns", "load", "applied",
    "events", "namespaces", "controllers", "webhook",
}  # fmt: skip

Do = Callable[[ctrl.Request], Awaitable[None]]


class Reconciler:
    """Counts, and does what the workload wants done."""

    def __init__(self, do: Do) -> None:
        self.do = do

    async def reconcile(self, request: ctrl.Request) -> ctrl.Result | None:
        await self.do(request)
        return None


class Nothing(Predicate[Widget]):
    """Counts what it is asked about, by a look at the metadata, and lets nothing pass."""

    def __init__(self, created: Tally, updated: Tally) -> None:
        self.created, self.updated = created, updated

    def create(self, _event: ctrl.event.CreateEvent[Widget]) -> bool:
        self.created.finish()
        return False

    def update(self, event: ctrl.event.UpdateEvent[Widget]) -> bool:
        if (event.meta.labels or {})["app"]:
            self.updated.finish()
        return False


class Defaulter:
    """Fills in a field of each object that is reviewed."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally

    async def default(self, widget: Widget) -> None:
        widget.spec.image = "registry.example.com/team/default:1"
        self.tally.finish()


class Workloads:
    """Each method is one workload on a manager that has not been started."""

    def __init__(self, asked: Asked, mgr: ctrl.Manager) -> None:
        self.asked = asked
        self.mgr = mgr
        self.task: asyncio.Future[None] | None = None

    def start(self) -> None:
        ready()
        self.task = asyncio.ensure_future(self.mgr.start())
        self.task.add_done_callback(ended)

    async def cached(self, kind: type[ctrl.Object]) -> int:
        self.start()
        await self.mgr.cache.wait_running()
        return len(await self.mgr.client.list(kind))

    async def synced(self) -> Figures:
        return {"objects": await self.cached(Widget)}

    async def pods(self) -> Figures:
        return {"objects": await self.cached(core.Pod)}

    async def metadata(self) -> Figures:
        return {"objects": await self.cached(ctrl.PartialObjectMetadata.of(Widget))}

    async def namespaces(self) -> Figures:
        return await self.synced()  # the manager was made for them

    def controlled(self, do: Do, *, owns: Sequence[type[ctrl.Object]] = ()) -> None:
        """Run a controller of Widgets, and of what they own."""
        builder = ctrl.new_controller_managed_by(self.mgr).for_(Widget)
        for owned in owns:
            builder = builder.owns(owned)
        builder.with_options(max_concurrent_reconciles=self.asked.concurrency).complete(Reconciler(do))
        self.start()

    async def counted(self, *, owns: Sequence[type[ctrl.Object]] = ()) -> Tally:
        """Reconcile every object once, by a typed read."""
        tally = Tally(self.asked.objects)

        async def do(request: ctrl.Request) -> None:
            tally.begin(request.name)
            await self.mgr.client.get(Widget, request)
            tally.finish()

        self.controlled(do, owns=owns)
        await tally.done.wait()
        return tally

    async def reconciled(self) -> Figures:
        return {"objects": (await self.counted()).finished}

    async def idle(self) -> Figures:
        return {"objects": (await self.counted(owns=[core.ConfigMap, apps.Deployment])).finished}

    async def latency(self) -> Figures:
        return await (await self.counted()).updates(self.asked.updates)

    async def load(self) -> Figures:
        """Take when the reconcile of each update begins; an update is known by the size it wrote."""
        tally = Tally(self.asked.objects)

        async def do(request: ctrl.Request) -> None:
            began = time.time_ns()
            widget = await self.mgr.client.get(Widget, request)
            tally.begins.setdefault(str(widget.spec.size), began)
            tally.finish()

        self.controlled(do)
        return await tally.updates(self.asked.updates)

    async def children(self) -> Figures:
        tally = Tally(self.asked.objects)
        client = self.mgr.client

        async def do(request: ctrl.Request) -> None:
            widget = await client.get(Widget, request)
            if widget.status.nodes:
                return
            await self.create_child(widget)
            widget.status.nodes = ["one"]
            await client.status.update(widget)
            tally.finish()

        self.controlled(do)
        await tally.done.wait()
        return {"objects": tally.finished}

    async def create_child(self, widget: Widget) -> None:
        child = core.ConfigMap(
            metadata=meta.ObjectMeta(name=f"{widget.metadata.name}-child", namespace=widget.metadata.namespace),
            data={"size": str(widget.spec.size)},
        )
        ctrl.set_controller_reference(widget, child)
        await self.mgr.client.create(child)

    async def owns(self) -> Figures:
        """Create the objects in this process, and end when each has a child and a status that a reconcile has read from the cache."""
        tally, finished = Tally(self.asked.objects), set[str]()
        client = self.mgr.client

        async def do(request: ctrl.Request) -> None:
            widget = await client.get(Widget, request)
            key = ctrl.NamespacedName(request.namespace, f"{request.name}-child")
            child = await client.get_or_none(core.ConfigMap, key)
            if child is None:
                with contextlib.suppress(ctrl.AlreadyExists):
                    await self.create_child(widget)
            if not widget.status.nodes:
                widget.status.nodes = ["one"]
                await client.status.update(widget)
            elif child is not None and request.name not in finished:
                finished.add(request.name)
                tally.finish()

        self.controlled(do, owns=[core.ConfigMap])
        await self.mgr.cache.wait_running()
        await self.mgr.cache.wait_for_cache_sync()
        numbers = iter(range(self.asked.objects))
        await asyncio.gather(*(self.create_some(numbers) for _ in range(self.asked.concurrency)))
        await tally.done.wait()
        return {"objects": tally.finished}

    async def create_some(self, numbers: Iterator[int]) -> None:
        for number in numbers:
            await self.mgr.client.create(Widget.from_dict(objects.widget(number)))

    async def applied(self) -> Figures:
        tally = Tally(self.asked.objects)
        client = self.mgr.client

        async def do(request: ctrl.Request) -> None:
            widget = await client.get(Widget, request)
            child = core.ConfigMap(
                metadata=meta.ObjectMeta(name=f"{request.name}-child", namespace=request.namespace),
                data={"size": str(widget.spec.size)},
            )
            await client.apply(child, field_owner="bench", force=True)
            tally.finish()

        self.controlled(do)
        await tally.done.wait()
        return {"objects": tally.finished}

    async def events(self) -> Figures:
        """Let so many subscribers see each update; without any, a controller whose predicate rejects everything."""
        updated = Tally(self.asked.updates * max(1, self.asked.width))
        if self.asked.width:
            self.start()
            await self.mgr.cache.wait_running()
            names = [f"subscriber-{number}" for number in range(self.asked.width)]
            subscriptions = [await self.mgr.cache.subscribe(Widget, name=name) for name in names]
            takers = [asyncio.create_task(take(subscription, updated)) for subscription in subscriptions]
            await asyncio.gather(*(subscription.wait_for_sync() for subscription in subscriptions))
        else:
            takers, created = [], Tally(self.asked.objects)
            builder = ctrl.new_controller_managed_by(self.mgr).for_(Widget)
            builder.with_event_filter(Nothing(created, updated)).complete(Reconciler(unexpected))
            self.start()
            await created.done.wait()
        say("synced")
        await updated.done.wait()
        for taker in takers:
            taker.cancel()
        return {"objects": self.asked.objects}

    async def controllers(self) -> Figures:
        """So many controllers of one kind, each of which reads each object once."""
        tally = Tally(self.asked.objects)

        async def do(request: ctrl.Request) -> None:
            await self.mgr.client.get(Widget, request)
            tally.finish()

        for number in range(self.asked.width):
            builder = ctrl.new_controller_managed_by(self.mgr).named(f"controller-{number}").for_(Widget)
            builder.with_options(max_concurrent_reconciles=self.asked.concurrency).complete(Reconciler(do))
        self.start()
        await tally.done.wait()
        return {"objects": tally.finished}

    async def webhook(self) -> Figures:
        tally = Tally(self.asked.objects)
        ctrl.new_webhook_managed_by(self.mgr).for_(Widget).with_defaulter(Defaulter(tally)).complete()
        self.start()
        while True:
            with contextlib.suppress(Exception):  # it says what is not there yet
                await self.mgr.webhook_server.started_checker()
                break
            await asyncio.sleep(0.02)
        say("synced")
        await tally.done.wait()
        await asyncio.sleep(0.1)  # the last answer is on its way
        return {"objects": tally.finished}

    async def reads(self) -> Figures:
        self.mgr.cache.index_field(Widget, "spec.selector.instance")
        count = await self.cached(Widget)
        client = self.mgr.client
        keys = [ctrl.NamespacedName(found.namespace, found.name) for found in (await client.list(Widget)).metadata]
        rate = Rate()
        while rate.goes_on():
            for key in keys:
                await client.get(Widget, key)
            rate.done += count
        found_by_index = await self.lookups([key.name for key in keys[:1000]])

        async def names() -> None:
            assert all(found.name for found in (await client.list(Widget, labels={"tier": "t3"})).metadata)

        async def tenth() -> None:
            assert sum([widget.spec.size for widget in await client.list(Widget, labels={"tier": "t3"})]) >= 0

        async def everything() -> None:
            assert sum([widget.spec.size async for widget in await client.list(Widget)]) >= 0

        async with longest_turn() as turn:
            figures = {"list_all_ms": await milliseconds(everything, 5)}
        figures |= {"list_ms": await milliseconds(names, 20), "list_typed_ms": await milliseconds(tenth, 20)}
        figures |= {"objects": count, "held_ms": turn.seconds * 1e3}
        return figures | rate.figures("gets") | found_by_index.figures("lookups")

    async def lookups(self, names: list[str]) -> Rate:
        """Find objects by an index, one after the other, and read each."""
        rate = Rate()
        while rate.goes_on():
            for name in names:
                for widget in await self.mgr.client.list(Widget, fields={"spec.selector.instance": name}):
                    rate.done += bool(widget.metadata.name)
        return rate

    async def queue(self) -> Figures:
        ready()
        keys = [ctrl.Request("default", f"object-{number}") for number in range(self.asked.objects)]
        filled, by_one = operations(keys), operations_by_one(keys)
        return {"objects": len(keys)} | filled.figures("operations") | by_one.figures("operations_by_one")


async def milliseconds(do: Callable[[], Awaitable[None]], rounds: int) -> float:
    """Return how long it takes, the median of so many rounds."""
    times = list[float]()
    for _ in range(rounds):
        start = time.perf_counter()
        await do()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


@dataclass
class Turn:
    seconds: float = 0.0


@contextlib.asynccontextmanager
async def longest_turn() -> AsyncGenerator[Turn]:
    """Yield the longest time for which another task did not get its turn."""
    turn = Turn()

    async def look() -> None:
        while True:
            begin = time.perf_counter()
            await asyncio.sleep(0)
            turn.seconds = max(turn.seconds, time.perf_counter() - begin)

    task = asyncio.create_task(look())
    await asyncio.sleep(0)
    yield turn
    task.cancel()


class Rate:
    """How much is done in a second."""

    def __init__(self) -> None:
        self.done = 0
        self._began = self._ends = time.perf_counter()
        self._cpu_began = self._cpu_ends = time.process_time()

    def goes_on(self) -> bool:
        self._ends, self._cpu_ends = time.perf_counter(), time.process_time()
        return self._ends - self._began < 1

    def figures(self, name: str) -> Figures:
        """What was done in a second, and in a second of CPU: the two are equal on a machine that does nothing else."""
        return {
            name: self.done / (self._ends - self._began),
            f"{name}_cpu": self.done / (self._cpu_ends - self._cpu_began),
        }


def operations(keys: list[ctrl.Request]) -> Rate:
    """All keys are added, then taken one by one."""
    queue: PriorityQueue = PriorityQueue(metrics=Metrics().workqueue("bench"))
    rate = Rate()
    while rate.goes_on():
        for key in keys:
            queue.add(key)
        while (item := queue.get_nowait()) is not None:
            queue.forget(item.key)
            queue.done(item.key)
        rate.done += len(keys)
    return rate


def operations_by_one(keys: list[ctrl.Request]) -> Rate:
    """Each key is taken as soon as it is added."""
    queue: PriorityQueue = PriorityQueue(metrics=Metrics().workqueue("bench"))
    rate = Rate()
    while rate.goes_on():
        for key in keys:
            queue.add(key)
            item = queue.get_nowait()
            assert item is not None
            queue.forget(item.key)
            queue.done(item.key)
        rate.done += len(keys)
    return rate


async def take(subscription: Subscription[Widget], updated: Tally) -> None:
    """Look at the metadata of what comes, and count the updates: those, too, that a backlog had merged with others."""
    merged = 0
    while await subscription.ready():
        while (event := subscription.pop()) is not None:
            if isinstance(event, ctrl.event.UpdateEvent) and (event.meta.labels or {})["app"]:
                updated.finish()
        for _ in range(subscription.coalesced - merged):
            updated.finish()
        merged = subscription.coalesced


async def unexpected(request: ctrl.Request) -> None:
    raise AssertionError(f"{request} should have been rejected")


def manager_for(given: Asked) -> ctrl.Manager:
    config = ctrl.get_config(given.kubeconfig) if given.kubeconfig else ctrl.Config(host="https://127.0.0.1:1")
    scheme = ctrl.Scheme(Widget)
    match given.workload:
        case "namespaces":
            cache = ctrl.CacheOptions(namespaces=[f"bench-{number:04}" for number in range(given.width)])
            return ctrl.new_manager(config, scheme=scheme, metrics_bind_address="0", cache=cache)
        case "webhook":
            webhook = ctrl.webhook.WebhookOptions(host="127.0.0.1", port=given.port, cert_dir=given.certs)
            return ctrl.new_manager(config, scheme=scheme, metrics_bind_address="0", webhook=webhook)
        case _:
            return ctrl.new_manager(config, scheme=scheme, metrics_bind_address="0")


def ended(task: asyncio.Future[None]) -> None:
    """The manager runs until the process ends; an error is the end of the measurement."""
    if not task.cancelled() and (error := task.exception()) is not None:
        print(f"peer: {error!r}", file=sys.stderr)
        sys.exit(1)


async def main() -> None:
    ctrl.manager.tune_gc()  # as ctrl.run does
    ctrl.log.setup(ctrl.log.Options(log_level="error"))
    given = asked(WORKLOADS)
    await obey(getattr(Workloads(given, manager_for(given)), given.workload)())


if __name__ == "__main__":
    asyncio.run(main())

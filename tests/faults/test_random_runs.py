"""Randomised runs: whatever the network does, a reconciler that creates what is missing creates neither too much nor too little.

Each parent (a ConfigMap) wants N children (Secrets with generated names), and has a script of its own: it is created, scaled up, changed by
others, and loses children to others, at random moments. The reconciler is the simplest there is: it lists the children in the cache and
creates one for each that is missing. Around it: watches are late, cut and expired, writes conflict, answers are lost, the server is busy, and the
leader changes, planned and not. One parent's script is one run. A run is good when exactly N children are there at the end, and never more were
created than were missing, by the server's record.

`CTRLRUNTIME_RUNS` says how many runs (250 on the embedded server, 1,000 with `--all`; a tenth of it on the real one), `CTRLRUNTIME_SEED` with
which seed to begin.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from operators.history import History
from operators.writer import scaled
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import coordination, core, meta
from ctrlruntime.cache.reflector import WatchOptions
from ctrlruntime.errors import Conflict, CtrlError, LeaderElectionLostError, NotFound
from ctrlruntime.testing import eventually
from ctrlruntime.testing.faults import FaultProxy, Match
from ctrlruntime.workqueue import ItemExponentialFailureRateLimiter

SEED = int(os.environ.get("CTRLRUNTIME_SEED", "1"))
AT_ONCE = 250
"""Parents that live at the same time, under one weather."""

SCRIPT = 3.0
"""Seconds in which the scripts play."""

SETTLED = 60.0
PARENT = "example.com/parent"

pytestmark = pytest.mark.slow


@dataclass
class Parent:
    """What somebody wants, and what others did to it."""

    name: str
    seed: str
    wanted: int = 0
    taken_away: int = 0
    steps: list[str] = field(default_factory=list)


class Reconciler:
    def __init__(self, client: ctrl.Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace

    async def reconcile(self, request: ctrl.Request) -> ctrl.Result | None:
        parent = await self.client.get_or_none(core.ConfigMap, request)
        if parent is None or "replicas" not in parent.data:
            return None
        children = await self.client.list(core.Secret, namespace=self.namespace, labels={PARENT: parent.metadata.name})
        there = sum(child.deletion_timestamp is None for child in children.metadata)
        for _ in range(int(parent.data["replicas"]) - there):
            child = core.Secret(
                metadata=meta.ObjectMeta(
                    generate_name=f"{parent.metadata.name}-",
                    namespace=self.namespace,
                    labels={PARENT: parent.metadata.name},
                )
            )
            ctrl.set_controller_reference(parent, child)
            await self.client.create(child)
        if parent.metadata.annotations.get("example.com/seen") != parent.data["replicas"]:
            parent.metadata.annotations["example.com/seen"] = parent.data["replicas"]
            await self.client.update(parent)  # conflicts whenever somebody else was faster
        return None


# --- what happens to them ----------------------------------------------------------------------------------------------


class Scripts:
    """The users: they change parents and take children away, through a way of their own that does not fail."""

    def __init__(self, client: ctrl.Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace

    async def play(self, parent: Parent) -> None:
        rng = random.Random(parent.seed)
        await asyncio.sleep(rng.uniform(0, SCRIPT / 4))
        parent.wanted = rng.randint(1, 3)
        data = {"replicas": str(parent.wanted)}
        await self.client.create(
            core.ConfigMap(metadata=meta.ObjectMeta(name=parent.name, namespace=self.namespace), data=data)
        )
        for _ in range(rng.randint(1, 3)):
            await asyncio.sleep(rng.uniform(0, SCRIPT / 4))
            step = rng.choice((self._scale, self._touch, self._take_away))
            parent.steps.append(step.__name__)
            await step(parent, rng)

    async def _scale(self, parent: Parent, rng: random.Random) -> None:
        parent.wanted += rng.randint(1, 2)
        await self._patch(parent, {"data": {"replicas": str(parent.wanted)}})

    async def _touch(self, parent: Parent, rng: random.Random) -> None:
        await self._patch(parent, {"metadata": {"annotations": {"example.com/touched": str(rng.random())}}})

    async def _patch(self, parent: Parent, change: dict) -> None:
        target = core.ConfigMap(metadata=meta.ObjectMeta(name=parent.name, namespace=self.namespace))
        await self.client.patch(target, ctrl.merge_patch(change))

    async def _take_away(self, parent: Parent, rng: random.Random) -> None:
        children = await self.client.list(core.Secret, namespace=self.namespace, labels={PARENT: parent.name})
        if not len(children):
            return
        child = rng.choice(list(children))
        with suppress(NotFound):
            await self.client.delete(child)
            parent.taken_away += 1


class Weather:
    """Draws one fault after the other, until it is cancelled. `counts` says which there were."""

    def __init__(self, proxy: FaultProxy, rng: random.Random) -> None:
        self.proxy = proxy
        self.rng = rng
        self.counts: Counter[str] = Counter()

    async def blow(self) -> None:
        await asyncio.gather(self._draw(), self._draw(), self._draw())

    async def _draw(self) -> None:
        proxy, rng = self.proxy, self.rng
        secrets, parents = Match(verb="watch", resource="secrets"), Match(verb="watch", resource="configmaps")
        creates = Match(verb="create", resource="secrets")
        writes = Match(verb=("create", "update"), resource=("secrets", "configmaps"))
        while True:
            faults = {
                "children are seen late": lambda: proxy.delay(secrets, rng.uniform(0.1, 1.5)),
                "parents are seen late": lambda: proxy.delay(parents, rng.uniform(0.1, 1.0)),
                "the answer of a create is lost": lambda: proxy.drop_response(creates, rng.randint(1, 5)),
                "a create is late": lambda: proxy.delay(creates, rng.uniform(0.05, 0.5)),
                "conflicts": lambda: proxy.respond(Match(verb="update", resource="configmaps"), 409, count=3),
                "busy": lambda: proxy.throttle(writes, retry_after=0.1, count=5),
                "failing": lambda: proxy.respond(writes, rng.choice((500, 503, 504)), count=5),
                "watches are cut": lambda: proxy.reset(Match(verb="watch"), count=4),
                "history is lost": lambda: proxy.expire(Match(verb="watch"), how=rng.choice(("http", "event"))),
                "lists fail": lambda: proxy.respond(Match(verb="list"), 503, count=2),
            }
            name = rng.choice(list(faults))
            self.counts[name] += 1
            with faults[name]():
                await asyncio.sleep(rng.uniform(0.1, 0.6))


# --- who leads ----------------------------------------------------------------------------------------------------------


class Leaders:
    """Two managers of one operator; they are stopped, robbed of the lease and started again."""

    def __init__(self, proxy: FaultProxy, namespace: str, rng: random.Random) -> None:
        self.proxy = proxy
        self.namespace = namespace
        self.rng = rng
        self.count = 0
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.managers: dict[str, ctrl.Manager] = {}

    def start(self) -> None:
        identity = f"manager-{self.count}"
        self.count += 1
        election = ctrl.LeaderElection("random", namespace=self.namespace, identity=identity)
        mgr = ctrl.new_manager(
            self.proxy.config,
            cache=ctrl.CacheOptions(
                namespaces=[self.namespace], watch=WatchOptions(timeout=(2.0, 3.0), timeout_grace=1.0, page_size=50)
            ),
            leader_election=scaled(election, 2.0, 1.4, 0.2),
            read_your_writes_timeout=self.rng.choice((0.3, 5.0)),
            graceful_shutdown_timeout=2.0,
            metrics_bind_address="0",
        )
        reconciler = Reconciler(mgr.client, self.namespace)
        (
            ctrl.new_controller_managed_by(mgr)
            .for_(core.ConfigMap)
            .owns(core.Secret)
            .with_options(
                max_concurrent_reconciles=8,
                rate_limiter=ItemExponentialFailureRateLimiter(0.005, 0.5),
                enable_warmup=self.rng.random() < 0.5,
            )
            .complete(reconciler)
        )
        self.managers[identity] = mgr
        self.tasks[identity] = asyncio.create_task(mgr.start(), name=identity)

    async def change(self, client: ctrl.Client) -> None:
        """Let somebody else lead: the leader stops as planned, or loses the lease to nobody."""
        leader = await self.leader(client)
        if self.rng.random() < 0.5:
            self.managers[leader].stop()
        else:
            await self._rob(client)
        task = self.tasks.pop(leader)
        with suppress(LeaderElectionLostError):
            await asyncio.wait_for(task, LONGEST_WAIT)
        self.start()

    async def leader(self, client: ctrl.Client) -> str:
        while True:
            for identity, task in list(self.tasks.items()):
                if task.done():
                    with suppress(LeaderElectionLostError):
                        await task
                    del self.tasks[identity]
                    self.start()
            key = ctrl.NamespacedName(self.namespace, "random")
            lease = await client.get_or_none(coordination.Lease, key)
            holder = lease.spec.holder_identity if lease else None
            if holder in self.tasks:
                return str(holder)
            await asyncio.sleep(0.05)

    async def _rob(self, client: ctrl.Client) -> None:
        """Write somebody into the lease who does nothing with it, as a restored backup would; it runs out."""
        while True:
            lease = await client.get(coordination.Lease, ctrl.NamespacedName(self.namespace, "random"))
            lease.spec.holder_identity = "somebody else"
            with suppress(Conflict):
                await client.update(lease)
                return

    async def stop(self) -> None:
        for mgr in self.managers.values():
            mgr.stop()
        for task in self.tasks.values():
            with suppress(LeaderElectionLostError):
                await asyncio.wait_for(task, LONGEST_WAIT)


# --- the runs ------------------------------------------------------------------------------------------------------------


async def play(server, seed: int, count: int) -> Counter[str]:
    """Play `count` runs at once. Raises: AssertionError that names what went wrong and how to repeat it."""
    rng = random.Random(seed)
    namespace = await asyncio.to_thread(server.create_namespace, "random")
    parents = [Parent(f"parent-{number}", f"{seed}-{number}") for number in range(count)]
    paths = {"Secret": "/api/v1/namespaces/{}/secrets"}
    users = ctrl.new_manager(ctrl.get_config(str(server.kubeconfig_path)), metrics_bind_address="0").cluster
    client = users.unfenced_client()
    try:
        with FaultProxy(server) as proxy, History(server, namespace, paths) as history:
            leaders, weather = Leaders(proxy, namespace, rng), Weather(proxy, rng)
            leaders.start()
            leaders.start()
            await leaders.leader(client)
            blowing = asyncio.create_task(weather.blow())
            scripts = Scripts(client, namespace)
            try:
                changes = asyncio.create_task(_change_leaders(leaders, client, rng))
                await asyncio.gather(*(scripts.play(parent) for parent in parents))
                await changes
            finally:
                blowing.cancel()
                await asyncio.wait({blowing})
            wrong = await _settled(client, namespace, parents, history)
            await leaders.stop()
            assert not wrong, _report(seed, count, wrong, weather)
            return weather.counts
    finally:
        await users.close()
        await asyncio.to_thread(server.delete_namespace, namespace)


async def _change_leaders(leaders: Leaders, client: ctrl.Client, rng: random.Random) -> None:
    for _ in range(2):
        await asyncio.sleep(rng.uniform(0.2, SCRIPT / 3))
        await leaders.change(client)


async def _settled(client: ctrl.Client, namespace: str, parents: list[Parent], history: History) -> list[str]:
    """Wait until every parent has what it wants, and return what is wrong with those that have not, or had more."""
    limit = time.monotonic() + SETTLED
    while True:
        children = (await client.list(core.Secret, namespace=namespace)).metadata
        found = Counter(child.labels[PARENT] for child in children)
        missing = [parent for parent in parents if found[parent.name] != parent.wanted]
        if not missing or time.monotonic() > limit or any(found[p.name] > p.wanted for p in parents):
            break
        await asyncio.sleep(0.1)
    newest = max((int(child.resource_version) for child in children), default=0)
    await eventually(lambda: history.mark() >= newest)  # the watch that records may be behind the list
    created = Counter(
        version.object["metadata"]["labels"][PARENT] for version in history.versions if version.type == "ADDED"
    )
    return [
        f"{p.name} ({', '.join(p.steps)}): {found[p.name]} children for {p.wanted}, {created[p.name]} were created "
        f"and {p.taken_away} taken away"
        for p in parents
        if found[p.name] != p.wanted or created[p.name] != p.wanted + p.taken_away
    ]


def _report(seed: int, count: int, wrong: list[str], weather: Weather) -> str:
    again = f"repeat with CTRLRUNTIME_SEED={seed} CTRLRUNTIME_RUNS={count} pytest {os.path.relpath(__file__)}"
    return "\n".join((f"{len(wrong)} of {count} runs of seed {seed}; {again}", *wrong[:20], str(dict(weather.counts))))


async def play_all(server, runs: int, print_line) -> None:
    seeds = range(SEED, SEED + -(-runs // AT_ONCE))
    faults: Counter[str] = Counter()
    failed: list[str] = []
    for seed in seeds:
        try:
            faults += await play(server, seed, min(AT_ONCE, runs))
        except (AssertionError, CtrlError) as error:
            failed.append(f"seed {seed}: {error}")
    assert not failed, "\n\n".join(failed)
    print_line(f"{len(seeds)} seeds, faults: {dict(faults)}")


@pytest.fixture
def runs(request: pytest.FixtureRequest) -> int:
    return int(os.environ.get("CTRLRUNTIME_RUNS", "1000" if request.config.getoption("--all") else "250"))


async def test_exactly_as_many_children_as_wanted(embedded_server, runs):
    await play_all(embedded_server, runs, print)


async def test_exactly_as_many_children_as_wanted_on_the_real_server(real_server, runs):
    await play_all(real_server, max(runs // 10, 1), print)


async def test_a_new_leader_whose_watch_is_late_creates_nothing_twice(server):
    """The lease changes hands in a moment, and the new leader's cache has not seen what the old one made last."""
    namespace = await asyncio.to_thread(server.create_namespace, "late")
    users = ctrl.new_manager(ctrl.get_config(str(server.kubeconfig_path)), metrics_bind_address="0").cluster
    client = users.unfenced_client()
    parents = [Parent(f"parent-{number}", "") for number in range(20)]
    try:
        with (
            FaultProxy(server) as proxy,
            History(server, namespace, {"Secret": "/api/v1/namespaces/{}/secrets"}) as history,
        ):
            leaders = Leaders(proxy, namespace, random.Random(0))
            try:
                leaders.start()
                leaders.start()
                first = await leaders.leader(client)
                await asyncio.gather(*(mgr.cache.list(core.Secret, limit=1) for mgr in leaders.managers.values()))
                with proxy.delay(Match(verb="watch", resource="secrets"), 3.0):
                    for parent in parents:
                        parent.wanted = 2
                        metadata = meta.ObjectMeta(name=parent.name, namespace=namespace)
                        await client.create(core.ConfigMap(metadata=metadata, data={"replicas": "2"}))
                    await eventually(lambda: len(history.versions) >= 2 * len(parents))
                    leaders.managers[first].stop()
                    with suppress(LeaderElectionLostError):  # lost before it stopped: the next one leads all the same
                        await leaders.tasks.pop(first)
                    await eventually(
                        lambda: any(mgr.elected.is_set() for mgr in leaders.managers.values() if not mgr.is_stopping),
                    )
                    await asyncio.sleep(1.0)  # time to do it wrong, with a cache that shows no child
                wrong = await _settled(client, namespace, parents, history)
            finally:
                await leaders.stop()
    finally:
        await users.close()
        await asyncio.to_thread(server.delete_namespace, namespace)
    assert wrong == []

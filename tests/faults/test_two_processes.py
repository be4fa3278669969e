"""Two processes, one lease: whatever happens to the one that leads, there are never two writers.

The judge is the server: the order of its own versions of the Lease and of the object both processes write (see `operators.history`). The times
of the lease are scaled down; with `CTRLRUNTIME_FAILOVER=defaults` they are the real ones, there are 5,000 objects to take over, and how long
that takes has a bound. With scaled times it has none but the two minutes of every wait: a loaded machine is not what is tested.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest
from cases import on_both_servers
from operators.history import History, Version
from operators.process import Operators, Process
from servers import LONGEST_WAIT

from ctrlruntime.testing import eventually
from ctrlruntime.testing.faults import FaultProxy, Match, freeze, thaw

IS_FULL = os.environ.get("CTRLRUNTIME_FAILOVER") == "defaults"
LEASE, RENEW, RETRY = (15.0, 10.0, 2.0) if IS_FULL else (2.0, 1.4, 0.2)
MARGIN = 3.0 if IS_FULL else LONGEST_WAIT  # seconds a hand-over may take besides the times of the lease
SECRETS = 5000 if IS_FULL else 100  # a multiple of 100: `writer` says so at each

pytestmark = pytest.mark.slow


@pytest.fixture
def history(server, namespace):
    with History(server, namespace) as history:
        server.connection.request(
            "POST", f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "written"}}
        )
        yield history


@pytest.fixture(scope="module")
def operators():
    with Operators() as operators:
        yield operators


@pytest.fixture
def times():
    """Seconds of a lease, of the deadline of its renewal, and between two tries."""
    return LEASE, RENEW, RETRY


patient = pytest.mark.parametrize(
    "times", [(LEASE, RENEW, RETRY) if IS_FULL else (LEASE * 10, RENEW * 10, RETRY)], ids=["patient"]
)
"""For a test in which the leader has to stay: with the scaled times, a machine that stops it for a second ends its leadership."""


@pytest.fixture
def start(server, namespace, history, tmp_path, operators, times):
    """Starts a writer; none outlives the test, and then there must not have been two."""
    started: list[Process] = []

    def start(identity: str, *flags: str, kubeconfig: object = None) -> Process:
        process = operators.start(
            "writer", tmp_path, "--kubeconfig", str(kubeconfig or server.kubeconfig_path), "--namespace", namespace,
            "--identity", identity, "--times", *map(str, times), *flags,
        )  # fmt: skip
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
    intruders = history.intruders()
    assert not intruders, "\n".join(intruders[:10])
    assert history.writes()


class Pair:
    """Two writers of which one leads."""

    def __init__(self, history: History, one: Process, other: Process) -> None:
        self.history = history
        self.processes = {"a": one, "b": other}
        self.leader = ""
        self.standby = ""

    async def settle(self) -> None:
        """Wait until one of them writes and the other one is ready to."""
        mark = self.history.mark()

        def writing() -> str:
            writes = self.history.writes(after=mark)
            return writes[-1].writer if writes and writes[-1].writer == self.history.holder() else ""

        self.leader = await eventually(writing)
        self.standby = "b" if self.leader == "a" else "a"
        for process in self.processes.values():
            await process.says("synced", within=LONGEST_WAIT)

    @property
    def leading(self) -> Process:
        return self.processes[self.leader]

    async def handed_over(self, since: float, *, within: float) -> float:
        """Wait until the standby writes; return how many seconds after `since` its first write was seen."""
        writes = await eventually(lambda: self.history.writes(by=self.standby), timeout=within + 5.0)
        took = writes[0].seen_at - since
        assert took <= within
        return took


@pytest.fixture
async def pair(start, history, request):
    mode = getattr(request, "param", "plain")
    pair = Pair(history, start("a", "--mode", mode), start("b", "--mode", "plain" if mode == "blocking" else mode))
    await pair.settle()
    return pair


async def test_after_sigterm_the_other_one_writes_at_once(pair):
    since = pair.leading.send(signal.SIGTERM)

    await pair.handed_over(since, within=MARGIN)

    assert await pair.leading.ends(within=120) == 0
    assert pair.history.terms() == [pair.leader, pair.standby]


async def test_after_sigkill_the_other_one_writes_when_the_lease_has_run_out(pair):
    since = pair.leading.send(signal.SIGKILL)

    took = await pair.handed_over(since, within=LEASE + MARGIN)

    assert took > RENEW - RETRY  # nobody takes over before


async def test_a_frozen_leader_writes_nothing_when_it_wakes_up(pair):
    since = time.monotonic()
    freeze(pair.leading)
    await pair.handed_over(since, within=LEASE + MARGIN)
    before = len(pair.history.writes(by=pair.standby))
    await eventually(lambda: len(pair.history.writes(by=pair.standby)) > before + 20)

    thaw(pair.leading)

    assert await pair.leading.ends(within=120) == 1
    assert "is lost" in pair.leading.text()


@patient
async def test_a_short_freeze_costs_nothing(pair):
    freeze(pair.leading)
    await asyncio.sleep(RENEW - RETRY)
    thaw(pair.leading)
    before = len(pair.history.writes())

    await eventually(lambda: len(pair.history.writes(by=pair.leader)) > before + 20)

    assert pair.history.terms() == [pair.leader]


@pytest.mark.parametrize("server", ["embedded", pytest.param("real", marks=pytest.mark.thorough)], indirect=True)
async def test_freezes_of_any_length_again_and_again(start, history):
    """Each time the leader wakes up around the moment at which its lease runs out."""
    pair = Pair(history, start("a"), start("b"))
    for length in (RENEW - RETRY, RENEW, LEASE - RETRY, LEASE, LEASE + RETRY):
        await pair.settle()
        woken, mark = pair.leading, history.mark()
        freeze(woken)
        await asyncio.sleep(length)
        thaw(woken)

        def goes_on(woken=woken, mark=mark) -> bool:
            """Who woke up has ended, or leads on; in both cases somebody writes."""
            writes = history.writes(after=mark)
            return woken.exit_code is not None or (len(writes) > 60 and writes[-1].writer == pair.leader)

        await eventually(goes_on)
        if woken.exit_code is not None:
            pair.processes[pair.leader] = start(pair.leader)


def written_anew(leases: list[Version]) -> bool:
    return leases[-1].type != "DELETED" and any(version.type == "DELETED" for version in leases)


async def test_a_lease_deleted_by_hand_makes_no_second_leader(pair, server, namespace):
    """A candidate that saw who led leaves it the time; one that comes later knows nothing, and cannot."""
    await pair.processes[pair.standby].prints("another candidate leads", within=LONGEST_WAIT)
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/writer"
    for _ in range(5):
        mark = pair.history.mark()
        await asyncio.to_thread(server.connection.request, "DELETE", path)
        await eventually(lambda mark=mark: written_anew(pair.history.leases(after=mark)))
        await eventually(lambda mark=mark: len(pair.history.writes(after=mark)) > 20)


@pytest.mark.parametrize(
    ("server", "pair"),
    on_both_servers(["stubborn", "thread", "blocking"], real=["stubborn"]),
    indirect=["server", "pair"],
)
async def test_what_ignores_the_end_of_its_leadership_writes_nothing_after_it(pair):
    """Frozen until the lease is somebody else's; then it goes on as if nothing had happened."""
    since = time.monotonic()
    freeze(pair.leading)
    await pair.handed_over(since, within=LEASE + MARGIN)
    thaw(pair.leading)
    before = len(pair.history.writes(by=pair.standby))

    await eventually(lambda: len(pair.history.writes(by=pair.standby)) > before + 30)

    assert await pair.leading.ends(within=120) == 1


@pytest.mark.parametrize("server", ["embedded", pytest.param("real", marks=pytest.mark.thorough)], indirect=True)
async def test_a_leader_that_blocks_its_loop_for_longer_than_the_lease(start, history):
    """It may stay the leader, or lose the lease meanwhile: then its process ends, blocked or not, or does not start its next write."""
    blocking = start("a", "--mode", "blocking")
    while await blocking.says_or_ends("blocked", within=LONGEST_WAIT) is None:
        blocking = start("a", "--mode", "blocking")  # on a loaded machine it may lose the lease before it blocks
    start("b")

    woke = await blocking.says_or_ends("unblocked", within=LONGEST_WAIT) or time.monotonic()

    await eventually(lambda: history.writes()[-1].seen_at > woke + 1.0)


# --- the network fails ------------------------------------------------------------------------------------------------

RENEWALS = Match(verb=("get", "update", "patch", "create"), resource="leases")


@pytest.fixture
def proxies(server):
    with FaultProxy(server) as one, FaultProxy(server) as other:
        yield {"a": one, "b": other}


@pytest.fixture
async def far_pair(start, history, proxies, request):
    """Each process has a way to the server of its own, which can fail without the other one's."""
    mode = getattr(request, "param", "stubborn")
    one, other = (start(name, "--mode", mode, kubeconfig=proxy.kubeconfig_path) for name, proxy in proxies.items())
    pair = Pair(history, one, other)
    await pair.settle()
    return pair


FAULTS = {
    "delayed": lambda proxy: proxy.delay(RENEWALS, RENEW + 1.0),
    "denied": lambda proxy: proxy.deny(RENEWALS),
    "failing": lambda proxy: proxy.respond(RENEWALS, 500),
    "throttled": lambda proxy: proxy.throttle(RENEWALS, retry_after=1.0),
    "stalled": lambda proxy: proxy.stall(RENEWALS),
    "answers-lost": lambda proxy: proxy.drop_response(RENEWALS, None),
    "refused": lambda proxy: proxy.refuse(),
    "black-hole": lambda proxy: proxy.black_hole(),
}


@pytest.mark.parametrize(
    ("server", "fault"), on_both_servers(FAULTS, real=["answers-lost", "black-hole"]), indirect=["server"]
)
async def test_who_cannot_renew_stops_writing_before_the_other_one_begins(far_pair, proxies, fault):
    """Its reconciler ignores cancellation and errors, and its writes would reach the server all the time."""
    pair, since = far_pair, time.monotonic()

    with fault(proxies[pair.leader]):
        took = await pair.handed_over(since, within=RENEW + LEASE + MARGIN)
        before = len(pair.history.writes(by=pair.standby))
        await eventually(lambda: len(pair.history.writes(by=pair.standby)) > before + 20)
        assert await pair.leading.ends(within=120) == 1

    assert took > RENEW - RETRY
    assert pair.history.terms() == [pair.leader, pair.standby]


@patient
async def test_renewals_that_are_late_but_in_time_cost_nothing(far_pair, proxies):
    pair, mark = far_pair, far_pair.history.mark()

    with proxies[pair.leader].delay(RENEWALS, RENEW / 3):
        await eventually(lambda: len(pair.history.leases(after=mark)) > 5)

    assert pair.history.terms() == [pair.leader]


@patient
async def test_single_refusals_and_lost_answers_cost_nothing(far_pair, proxies):
    """A renewal whose answer is lost has changed the Lease: the next one meets a version it does not know."""
    pair, proxy = far_pair, proxies[far_pair.leader]
    writes = Match(verb="update", resource="leases")

    faults = (
        lambda: proxy.respond(writes, 500, count=1),
        lambda: proxy.drop_response(writes, 1),
        lambda: proxy.reset(writes, count=1),
    )
    for fault in faults * 3:
        with fault() as struck:
            await eventually(lambda struck=struck: struck.hits)
        mark = pair.history.mark()
        await eventually(lambda mark=mark: len(pair.history.leases(after=mark)) > 1)

    assert pair.history.terms() == [pair.leader]


# --- how long it takes with many objects ------------------------------------------------------------------------------


@pytest.fixture
def many(server, namespace):
    """What a new leader has to look at."""
    for number in range(SECRETS):
        body = {"metadata": {"name": f"item-{number:05d}"}, "stringData": {"number": str(number)}}
        server.connection.request("POST", f"/api/v1/namespaces/{namespace}/secrets", body)


@pytest.mark.parametrize(("number", "within"), [(signal.SIGTERM, MARGIN), (signal.SIGKILL, LEASE + MARGIN)])
async def test_the_first_reconcile_of_a_new_leader_comes_soon(many, pair, number, within):
    since = pair.leading.send(number)

    began = await pair.processes[pair.standby].says("first-reconcile", within=within + 10.0)
    done = await pair.processes[pair.standby].says(f"reconciled-{SECRETS}", within=within + 20.0)
    print(f"{number.name}: first reconcile {began - since:.2f} s later, all {SECRETS} {done - since:.2f} s")

    assert began - since <= within
    assert done - since <= within + 5.0

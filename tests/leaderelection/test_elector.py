"""Elections on a loop whose time jumps to the next timer, so that minutes of waiting cost nothing."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime, timedelta

import pytest

from ctrlruntime.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    LeaderElectionLostError,
    NotFound,
    TransportError,
)
from ctrlruntime.leaderelection import Elector, LeaderElection, LeaseRecord
from ctrlruntime.metrics import LeaderMetrics
from ctrlruntime.testing.virtual_time import VirtualTimeLoop

OPTIONS = LeaderElection(id="lock", identity="me")


@pytest.fixture
def loop():
    loop = VirtualTimeLoop(now=100.0)
    yield loop
    loop.close()


class Server:
    """The record all locks share, with a version, and a switch that makes requests fail or hang."""

    def __init__(self) -> None:
        self.record: LeaseRecord | None = None
        self.version = 0
        self.trouble: Exception | None = None
        self.is_hanging = False
        self.loses_answers = False
        self.calls: list[str] = []

    def write(self, record: LeaseRecord | None) -> None:
        self.record = record
        self.version += 1


class FakeLock:
    name = "default/lock"

    def __init__(self, server: Server) -> None:
        self.server = server
        self.version = -1

    async def _reach(self, call: str) -> None:
        self.server.calls.append(call)
        await asyncio.sleep(0.01)
        if self.server.is_hanging:
            await asyncio.Event().wait()
        if self.server.trouble is not None:
            raise self.server.trouble

    async def get(self) -> LeaseRecord | None:
        await self._reach("get")
        self.version = self.server.version
        return self.server.record

    async def create(self, record: LeaseRecord) -> None:
        await self._reach("create")
        if self.server.record is not None:
            raise AlreadyExists
        self._store(record)

    async def update(self, record: LeaseRecord) -> None:
        await self._reach("update")
        if self.server.record is None:
            raise NotFound
        if self.version != self.server.version:
            raise Conflict
        self._store(record)

    def _store(self, record: LeaseRecord) -> None:
        self.server.write(record)
        if self.server.loses_answers:
            raise TransportError("connection reset")
        self.version = self.server.version


def make(server: Server, loop: VirtualTimeLoop, options: LeaderElection = OPTIONS, **more) -> Elector:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    more = {"rng": lambda: 0.0, **more}
    return Elector(
        FakeLock(server), options, clock=loop.time, wall=lambda: start + timedelta(seconds=loop.time()), **more
    )


@contextlib.asynccontextmanager
async def running(*electors: Elector):
    tasks = [asyncio.create_task(elector.run()) for elector in electors]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def until(condition, seconds: float = 120.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - the loop's time jumps
            await asyncio.sleep(0.05)


def other(**more) -> LeaseRecord:
    return LeaseRecord(**{"holder": "other", "lease_duration": 15, "transitions": 3, **more})


# --- acquiring -----------------------------------------------------------------------------------------------------


def test_the_first_candidate_creates_the_lease(loop):
    server = Server()
    started = []

    async def scenario():
        elector = make(server, loop, on_started=lambda: started.append(loop.time()))
        assert elector.deadline() is None
        async with running(elector):
            await until(lambda: elector.is_leader)
            assert started
            assert server.record.holder == "me"
            assert server.record.lease_duration == 15
            assert server.record.transitions == 0
            assert server.record.acquire_time == server.record.renew_time

    loop.run_until_complete(scenario())


def test_only_one_of_many_candidates_leads(loop):
    server = Server()

    async def scenario():
        electors = [make(server, loop, LeaderElection(id="lock", identity=f"c{n}")) for n in range(5)]
        async with running(*electors):
            await until(lambda: any(e.is_leader for e in electors))
            for _ in range(600):
                await asyncio.sleep(0.1)
                assert sum(e.is_leader for e in electors) == 1
            assert {e.leader for e in electors} == {server.record.holder}

    loop.run_until_complete(scenario())


def test_a_candidate_waits_the_lease_out_from_when_it_saw_it_change(loop):
    server = Server()
    # Renewed long ago by the holder's clock: that clock may be wrong and proves nothing.
    server.write(other(renew_time=datetime(2001, 1, 1, tzinfo=UTC)))

    async def scenario():
        elector = make(server, loop)
        began = loop.time()
        async with running(elector):
            await until(lambda: loop.time() > began + 14.5)
            assert not elector.is_leader
            await until(lambda: elector.is_leader)
            assert 15 <= loop.time() - began < 18
            assert server.record.transitions == 4
            assert server.record.acquire_time == server.record.renew_time

    loop.run_until_complete(scenario())


def test_a_lease_that_is_renewed_is_not_taken(loop):
    server = Server()
    server.write(other())

    async def scenario():
        elector = make(server, loop)
        async with running(elector):
            for number in range(20):
                await asyncio.sleep(5)
                assert not elector.is_leader
                server.write(other(renew_time=datetime(2026, 1, 1, 0, number, tzinfo=UTC)))
            assert elector.leader == "other"

    loop.run_until_complete(scenario())


def test_a_released_lease_is_taken_at_once(loop):
    server = Server()
    server.write(other(holder="", lease_duration=1))

    async def scenario():
        elector = make(server, loop)
        began = loop.time()
        async with running(elector):
            await until(lambda: elector.is_leader)
            assert loop.time() - began < 1
            assert server.record.transitions == 4

    loop.run_until_complete(scenario())


@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0])
def test_a_candidate_asks_when_the_lease_it_saw_runs_out(loop, chance):
    server = Server()
    server.write(other())

    async def scenario():
        elector = make(server, loop, rng=lambda: chance)
        began = loop.time()
        async with running(elector):
            await until(lambda: elector.is_leader)
            assert 15 <= loop.time() - began < 15.6

    loop.run_until_complete(scenario())


def test_a_lease_of_our_own_identity_keeps_its_acquire_time(loop):
    server = Server()
    acquired = datetime(2025, 1, 1, tzinfo=UTC)
    server.write(other(holder="me", acquire_time=acquired))

    async def scenario():
        elector = make(server, loop)
        async with running(elector):
            await until(lambda: elector.is_leader)
            assert server.record.acquire_time == acquired
            assert server.record.transitions == 3

    loop.run_until_complete(scenario())


@pytest.mark.parametrize(("chance", "period"), [(0.0, 2.0), (0.5, 2.2), (1.0, 2.4)])
def test_candidates_ask_with_jitter(loop, chance, period):
    server = Server()
    server.trouble = TransportError("refused")

    async def scenario():
        elector = make(server, loop, rng=lambda: chance)
        async with running(elector):
            await asyncio.sleep(10 * period)
            assert len(server.calls) in {10, 11}

    loop.run_until_complete(scenario())


def test_candidates_survive_any_trouble(loop):
    server = Server()

    async def scenario():
        elector = make(server, loop)
        async with running(elector) as (task,):
            for trouble in (Forbidden("leases is forbidden"), TransportError("refused"), RuntimeError("a bug")):
                server.trouble = trouble
                await asyncio.sleep(10)
            server.trouble, server.is_hanging = None, True
            await asyncio.sleep(20)
            assert not task.done()
            server.is_hanging = False
            await until(lambda: elector.is_leader)

    loop.run_until_complete(scenario())


def test_a_denied_election_says_which_right_is_missing(loop, capsys):
    server = Server()
    server.trouble = Forbidden("leases is forbidden")

    async def scenario():
        async with running(make(server, loop)):
            await asyncio.sleep(30)

    loop.run_until_complete(scenario())
    lines = [line for line in capsys.readouterr().err.splitlines() if "cannot acquire the lease" in line]
    assert len(lines) == 1
    assert "get, create and update of leases in the group coordination.k8s.io" in lines[0]


# --- holding -------------------------------------------------------------------------------------------------------


def test_renewals_do_not_read(loop):
    server = Server()

    async def scenario():
        metrics = LeaderMetrics("lock")
        elector = make(server, loop, metrics=metrics)
        async with running(elector):
            await until(lambda: elector.is_leader)
            first = server.record
            server.calls.clear()
            await asyncio.sleep(60)
            assert set(server.calls) == {"update"}
            assert 28 <= len(server.calls) <= 31
            assert server.record.renew_time > first.renew_time
            assert server.record.acquire_time == first.acquire_time
            assert server.record.transitions == 0
            assert metrics.slow_paths == 0
            assert metrics.is_leader

    loop.run_until_complete(scenario())


def test_a_conflict_is_read_and_renewed_in_the_same_attempt(loop):
    server = Server()

    async def scenario():
        metrics = LeaderMetrics("lock")
        elector = make(server, loop, metrics=metrics)
        async with running(elector):
            await until(lambda: elector.is_leader)
            # Somebody labelled the lease: same record, other version.
            server.write(server.record)
            server.calls.clear()
            await asyncio.sleep(2.5)
            assert server.calls == ["update", "get", "update"]
            assert metrics.slow_paths == 1
            assert elector.is_leader

    loop.run_until_complete(scenario())


def test_a_deleted_lease_is_created_again(loop):
    server = Server()

    async def scenario():
        elector = make(server, loop)
        async with running(elector) as (task,):
            await until(lambda: elector.is_leader)
            server.write(None)
            await asyncio.sleep(3)
            assert server.record.holder == "me"
            assert not task.done()

    loop.run_until_complete(scenario())


@pytest.mark.parametrize("trouble", ["error", "hang"])
def test_leadership_is_lost_at_the_renew_deadline(loop, trouble):
    server = Server()

    async def scenario():
        metrics = LeaderMetrics("lock")
        elector = make(server, loop, metrics=metrics)
        async with running(elector) as (task,):
            await until(lambda: elector.is_leader)
            if trouble == "error":
                server.trouble = TransportError("refused")
            else:
                server.is_hanging = True
            deadline = elector.deadline()
            with pytest.raises(LeaderElectionLostError, match=r"not renewed within 10 s .*must stop"):
                await task
            assert loop.time() == pytest.approx(deadline, abs=0.01)
            assert not elector.is_leader
            assert elector.deadline() is None
            assert not metrics.is_leader

    loop.run_until_complete(scenario())


def test_a_short_trouble_is_survived(loop):
    server = Server()

    async def scenario():
        elector = make(server, loop)
        async with running(elector) as (task,):
            await until(lambda: elector.is_leader)
            for _ in range(10):
                server.trouble = TransportError("refused")
                await asyncio.sleep(5)
                server.trouble = None
                await asyncio.sleep(5)
            assert elector.is_leader
            assert not task.done()

    loop.run_until_complete(scenario())


def test_a_lost_answer_is_settled_by_a_read(loop):
    server = Server()

    async def scenario():
        elector = make(server, loop)
        async with running(elector):
            await until(lambda: elector.is_leader)
            server.loses_answers = True
            await asyncio.sleep(2.1)
            server.loses_answers = False
            server.calls.clear()
            await asyncio.sleep(2.1)
            assert server.calls == ["update", "get", "update"]
            assert elector.is_leader

    loop.run_until_complete(scenario())


def test_another_holder_ends_leadership_at_once(loop):
    server = Server()

    async def scenario():
        elector = make(server, loop)
        async with running(elector) as (task,):
            await until(lambda: elector.is_leader)
            server.write(other())
            began = loop.time()
            with pytest.raises(LeaderElectionLostError, match="other holds it"):
                await task
            assert loop.time() - began < 3
            assert server.record.holder == "other"

    loop.run_until_complete(scenario())


def test_a_freeze_past_the_deadline_ends_leadership_without_a_request(loop):
    server = Server()

    async def scenario():
        elector = make(server, loop)
        async with running(elector) as (task,):
            await until(lambda: elector.is_leader)
            server.calls.clear()
            loop.advance(60)
            assert not elector.is_leader
            with pytest.raises(LeaderElectionLostError, match="no attempt was made in time"):
                await task
            assert server.calls == []

    loop.run_until_complete(scenario())


def test_leadership_counts_from_before_the_request_was_sent(loop):
    server = Server()

    async def scenario():
        elector = make(server, loop)
        began = loop.time()
        async with running(elector):
            await until(lambda: elector.is_leader)
            assert elector.deadline() == pytest.approx(began + 10, abs=0.015)
            assert elector.deadline() - began < 10.02

    loop.run_until_complete(scenario())


def test_no_two_lead_while_the_leader_is_cut_off(loop):
    server = Server()

    async def scenario():
        first = make(server, loop, LeaderElection(id="lock", identity="first"))
        cut_off = Server()
        async with running(first) as (task,):
            await until(lambda: first.is_leader)
            second = make(server, loop, LeaderElection(id="lock", identity="second"))
            async with running(second):
                await asyncio.sleep(30)
                cut_off.is_hanging = True
                first._lock.server = cut_off
                overlap = False
                while not second.is_leader:
                    await asyncio.sleep(0.05)
                    overlap = overlap or (first.is_leader and second.is_leader)
                assert not overlap
                assert task.done()
                assert isinstance(task.exception(), LeaderElectionLostError)

    loop.run_until_complete(scenario())


# --- giving back ---------------------------------------------------------------------------------------------------


def test_a_planned_stop_gives_the_lease_back(loop):
    server = Server()

    async def scenario():
        metrics = LeaderMetrics("lock")
        elector = make(server, loop, metrics=metrics)
        async with running(elector) as (task,):
            await until(lambda: elector.is_leader)
            seen = []
            server.write = lambda record: (seen.append(elector.is_leader), Server.write(server, record))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert (server.record.holder, server.record.lease_duration, server.record.transitions) == ("", 1, 0)
        assert seen == [False]
        assert not metrics.is_leader

    loop.run_until_complete(scenario())


def test_a_standby_takes_over_within_seconds_of_a_planned_stop(loop):
    server = Server()

    async def scenario():
        first, second = (make(server, loop, LeaderElection(id="lock", identity=name)) for name in ("first", "second"))
        async with running(first) as (task,):
            await until(lambda: first.is_leader)
            async with running(second):
                await asyncio.sleep(10)
                task.cancel()
                began = loop.time()
                await until(lambda: second.is_leader)
                assert loop.time() - began < 4.5

    loop.run_until_complete(scenario())


def test_giving_back_is_repeated_after_a_conflict(loop):
    server = Server()

    async def scenario():
        elector = make(server, loop)
        async with running(elector):
            await until(lambda: elector.is_leader)
            server.write(server.record)
        assert server.record.holder == ""

    loop.run_until_complete(scenario())


def test_a_lease_that_went_to_another_is_not_given_back(loop):
    server = Server()

    async def scenario():
        elector = make(server, loop)
        async with running(elector):
            await until(lambda: elector.is_leader)
            server.write(other())
        assert server.record.holder == "other"

    loop.run_until_complete(scenario())


def test_a_lease_won_without_an_answer_is_given_back(loop):
    server = Server()
    server.loses_answers = True

    async def scenario():
        elector = make(server, loop)
        async with running(elector):
            await until(lambda: server.record is not None)
            assert not elector.is_leader
            server.loses_answers = False
            await asyncio.sleep(0)
        assert server.record.holder == ""

    loop.run_until_complete(scenario())


def test_a_candidate_has_nothing_to_give_back(loop):
    server = Server()
    server.write(other())

    async def scenario():
        async with running(make(server, loop)):
            await asyncio.sleep(5)
            server.calls.clear()
        assert server.calls == []

    loop.run_until_complete(scenario())


def test_release_can_be_turned_off(loop):
    server = Server()

    async def scenario():
        elector = make(server, loop, LeaderElection(id="lock", identity="me", release_on_cancel=False))
        async with running(elector):
            await until(lambda: elector.is_leader)
        assert server.record.holder == "me"

    loop.run_until_complete(scenario())


def test_a_stop_does_not_wait_for_a_server_that_hangs(loop):
    server = Server()

    async def scenario():
        elector = make(server, loop)
        async with running(elector):
            await until(lambda: elector.is_leader)
            server.is_hanging = True
            began = loop.time()
        assert loop.time() - began <= 5.1

    loop.run_until_complete(scenario())


def test_a_lost_lease_is_not_given_back(loop):
    server = Server()

    async def scenario():
        elector = make(server, loop)
        async with running(elector) as (task,):
            await until(lambda: elector.is_leader)
            server.trouble = TransportError("refused")
            with pytest.raises(LeaderElectionLostError):
                await task
        assert server.record.holder == "me"

    loop.run_until_complete(scenario())


def test_identities_are_made_up_and_differ(loop):
    server = Server()
    options = LeaderElection(id="lock")
    first, second = make(server, loop, options), make(server, loop, options)

    assert first.identity != second.identity
    assert "_" in first.identity


def test_a_leader_whose_work_hangs_lets_the_lease_run_out(loop):
    server = Server()

    async def scenario():
        blocked_reason = ""
        elector = make(server, loop, blocked_reason=lambda: blocked_reason)
        async with running(elector) as (task,):
            await until(lambda: elector.is_leader)
            await asyncio.sleep(5)
            server.calls.clear()
            blocked_reason = "the loop hangs"
            with pytest.raises(LeaderElectionLostError, match="the loop hangs"):
                await task
        assert server.calls == []
        assert server.record.holder == "me"

    loop.run_until_complete(scenario())


def test_a_stop_while_the_work_hangs_gives_nothing_back(loop):
    server = Server()

    async def scenario():
        blocked_reason = ""
        elector = make(server, loop, blocked_reason=lambda: blocked_reason)
        async with running(elector):
            await until(lambda: elector.is_leader)
            server.calls.clear()
            blocked_reason = "the loop hangs"
        assert elector.deadline() is None
        assert server.calls == []
        assert server.record.holder == "me"

    loop.run_until_complete(scenario())


def test_work_that_goes_on_in_time_keeps_the_lease(loop):
    server = Server()

    async def scenario():
        blocked_reason = ""
        elector = make(server, loop, blocked_reason=lambda: blocked_reason)
        async with running(elector):
            await until(lambda: elector.is_leader)
            blocked_reason = "the loop hangs"
            await asyncio.sleep(7)
            blocked_reason = ""
            await asyncio.sleep(30)
            assert elector.is_leader

    loop.run_until_complete(scenario())


def test_a_candidate_whose_work_hangs_takes_no_lease(loop):
    server = Server()

    async def scenario():
        blocked_reason = "the loop hangs"
        elector = make(server, loop, blocked_reason=lambda: blocked_reason)
        async with running(elector):
            await asyncio.sleep(30)
            assert server.calls == []
            blocked_reason = ""
            await until(lambda: elector.is_leader)

    loop.run_until_complete(scenario())


def test_a_leader_that_cannot_begin_gives_the_lease_back(loop):
    server = Server()

    def begin():
        raise LookupError("nothing to lead")

    async def scenario():
        elector = make(server, loop, on_started=begin)
        with pytest.raises(LookupError):
            await elector.run()
        assert server.record.holder == ""
        assert elector.deadline() is None

    loop.run_until_complete(scenario())


def test_a_lease_that_is_deleted_by_hand_is_not_taken_before_its_leader_would_have_lost_it(loop):
    server = Server()

    async def scenario():
        first, second = make(server, loop), make(server, loop, LeaderElection(id="lock", identity="second"))
        async with running(first):
            await until(lambda: first.is_leader)
            async with running(second):
                await asyncio.sleep(5)
                for _ in range(5):
                    server.write(None)
                    await asyncio.sleep(7)
                    assert first.is_leader
                    assert not second.is_leader
                    assert server.record.holder == "me"

    loop.run_until_complete(scenario())


def test_a_lease_that_was_deleted_with_its_leader_is_taken_when_it_would_have_run_out(loop):
    server = Server()

    async def scenario():
        first, second = make(server, loop), make(server, loop, LeaderElection(id="lock", identity="second"))
        async with running(second):
            async with running(first) as (task,):
                server.write(other(lease_duration=15))
                await asyncio.sleep(5)
                task.cancel()
            server.write(None)
            began = loop.time()
            await until(lambda: second.is_leader)
            assert 9 < loop.time() - began < 20

    loop.run_until_complete(scenario())

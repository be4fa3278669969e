"""Random histories of the ring: no slot ever has two writers, and after the faults each slot is served, in equal shares.

To replay one: `python tests/ownership/member_histories.py SEED`. It prints what happened. With two numbers it runs all seeds between them.
"""

from __future__ import annotations

import math

import pytest
from member_histories import SLOTS, BrokenError, History

from ctrlruntime.ownership.machine import Machine, Timing
from ctrlruntime.ownership.messages import RING


def test_no_slot_has_two_writers():
    run_all(range(10))


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(10, 500, 10))
def test_no_slot_has_two_writers_in_many_histories(first):
    run_all(range(first, first + 10))


def run_all(seeds):
    for seed in seeds:
        History(seed).run()


def without_faults(**options) -> History:
    history = History(1, **options)
    history.fault = lambda: None
    history._queue = [each for each in history._queue if each[2].__name__ != "fault"]
    return history


def test_a_long_outage_moves_no_slot():
    history = without_faults(processes=4)
    history._run_until(60)
    before = history.server.ring
    for process in history.processes:
        process.is_cut_off = True
    history._run_until(600)
    for process in history.processes:
        process.is_cut_off = False
    history._run_until(640)

    after = history.server.ring
    assert before is not None
    assert after is not None
    assert before.ring is not None
    assert before.ring.owners == after.ring.owners
    history.check_shares()


def test_slots_of_a_killed_member_are_served_after_its_lease_ran_out():
    worst = 0.0
    for seed in range(10):
        history = without_faults(processes=3)
        history.random.seed(seed)
        history._run_until(60 + seed / 3)
        history.processes[seed % 3].is_dead = True
        killed = history.now
        while any(not history.writers(slot) for slot in range(SLOTS + 1)):
            history._run_until(history.now + 0.1)
            assert history.now < killed + 60
        worst = max(worst, history.now - killed)

    assert worst < 15 + 3 + 4  # the model warms for up to 3 s, and catches up for up to 1 s


def test_a_member_that_stops_leaves_no_lease():
    history = without_faults(processes=3)
    history._run_until(60)
    leaving = history.processes[0]
    leaving.machine.stop(leaving.clock())
    history._run_until(100)

    assert leaving.machine.is_done
    assert len(history.server.members) == 2
    assert history.server.ring is not None
    assert history.server.ring.holder == RING
    history.check_shares()


def test_the_last_member_that_stops_gives_the_ring_back():
    history = without_faults(processes=3)
    history._run_until(60)
    for process in history.processes:
        process.machine.stop(process.clock())
    history._run_until(100)

    assert all(process.machine.is_done for process in history.processes)
    assert not history.server.members
    assert history.server.ring is not None
    assert history.server.ring.holder == ""

    history.start()
    started = history.now
    while not all(history.writers(slot) for slot in range(SLOTS + 1)):
        history._run_until(history.now + 0.1)
        assert history.now < started + 8  # it does not wait a Lease duration, as for the first ring


# The model finds what would be wrong: each of these changes breaks an invariant within a few histories.


def forget_own_writes(monkeypatch):
    original = Machine._see

    def see(self, response, started, now):
        self._ring_stored_at = -math.inf
        original(self, response, started, now)

    monkeypatch.setattr(Machine, "_see", see)


def with_timing(**times):
    def change(monkeypatch):
        original = Machine.__init__

        def init(self, *arguments, **options):
            original(self, *arguments, **{**options, "timing": Timing(**times)})

        monkeypatch.setattr(Machine, "__init__", init)

    return change


@pytest.mark.thorough
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(forget_own_writes, id="a list from before an own write counts"),
        pytest.param(with_timing(lease_duration=6.0), id="a Lease expires before its owner stops"),
        pytest.param(with_timing(ring_duration=15.0), id="an elector takes the ring before the slots close"),
    ],
)
def test_histories_find_a_planted_error(change, monkeypatch):
    change(monkeypatch)

    with pytest.raises(BrokenError):
        run_all(range(200))

"""How long a write that changed nothing is left out, and who is told."""

from __future__ import annotations

import pytest

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.client.unchanged import FIRST_AGE, LONGEST_AGE, MAX_OBJECTS, LeftOut, UnchangedWrites

THING = GroupVersionKind("example.com", "v1", "Thing")


def thing(name="a", version="1", uid="u", **spec):
    return {"metadata": {"namespace": "ns", "name": name, "uid": uid, "resourceVersion": version}, "spec": spec}


STORED, WANTED = thing(size=1, filled_in=True), thing(size=1)


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def told():
    return []


@pytest.fixture
def writes(clock, told):
    return UnchangedWrites(told.append, clock=clock)


def leaves_out(writes, before=STORED, wanted=WANTED):
    return writes.leaves_out("update", THING, before, wanted)


def test_a_write_is_left_out_after_it_changed_nothing_and_observers_are_told_until_when(writes, clock, told):
    assert not leaves_out(writes)
    writes.note(THING, STORED, WANTED, STORED)
    clock.now += 20

    assert leaves_out(writes)
    assert told == [LeftOut("update", THING, "ns", "a", FIRST_AGE - 20)]


def revised(tree, revision):
    return {**tree, "metadata": {**tree["metadata"], "annotations": {"deployment.kubernetes.io/revision": revision}}}


def test_same_write_is_left_out_in_state_that_it_made(writes):
    size_2 = thing(size=2, filled_in=True, version="2")

    assert not writes.note(THING, STORED, thing(size=2), size_2)

    assert leaves_out(writes, thing(size=2, filled_in=True, version="3"), thing(size=2))
    assert leaves_out(writes, revised(size_2, "2"), revised(thing(size=2), "2"))
    assert not leaves_out(writes, size_2, thing(size=1))
    assert not leaves_out(writes, STORED, thing(size=2))


def test_dry_run_is_no_change_to_remember(writes):
    answer = thing(size=2, filled_in=True)  # with the version before

    assert not writes.note(THING, STORED, thing(size=2), answer)
    assert not leaves_out(writes, STORED, thing(size=2))


@pytest.mark.parametrize(
    ("before", "wanted", "left_out"),
    [
        (thing(size=1, filled_in=True, version="2"), WANTED, True),  # a status was written: not what the write is about
        (thing(size=2, filled_in=True), WANTED, False),
        (STORED, thing(size=2), False),
        (thing(size=1, filled_in=True, uid="v"), thing(size=1, uid="v"), False),
        (thing("b", size=1, filled_in=True), thing("b", size=1), False),
    ],
    ids=["the same", "another state", "another write", "another life", "another object"],
)
def test_only_the_same_write_to_the_same_state_is_left_out(writes, before, wanted, left_out):
    writes.note(THING, STORED, WANTED, STORED)

    assert leaves_out(writes, before, wanted) is left_out


def test_it_is_sent_again_after_a_minute_which_doubles_up_to_ten(writes, clock):
    ages = []
    for _ in range(6):
        writes.note(THING, STORED, WANTED, STORED)
        noted = clock.now
        while leaves_out(writes):
            clock.now += 30
        ages.append(clock.now - noted)

    assert ages == [60, 120, 240, 480, LONGEST_AGE, LONGEST_AGE]


@pytest.mark.parametrize(
    "end",
    [
        lambda writes: writes.forget(),
        lambda writes: writes.note(THING, STORED, WANTED, thing(size=1)),
        lambda writes: writes.note(THING, STORED, thing(size=3), STORED),
    ],
    ids=["forget", "the server stored it as sent", "another write changed nothing"],
)
def test_what_is_remembered_ends_and_its_age_begins_anew(writes, clock, end):
    writes.note(THING, STORED, WANTED, STORED)
    writes.note(THING, STORED, WANTED, STORED)
    end(writes)
    assert not leaves_out(writes)

    writes.note(THING, STORED, WANTED, STORED)
    clock.now += FIRST_AGE
    assert not leaves_out(writes)


def test_the_objects_written_longest_ago_are_forgotten_first(writes):
    for number in range(MAX_OBJECTS + 1):
        stored = thing(f"t{number}", x=1)
        writes.note(THING, stored, thing(f"t{number}"), stored)

    assert not leaves_out(writes, thing("t0", x=1), thing("t0"))
    assert leaves_out(writes, thing("t1", x=1), thing("t1"))

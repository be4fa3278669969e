"""The ring: shares, moves and transitions."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlruntime.ownership.ring import Ring, evicted, planned, ranges_of, released, shares, slot_of, slot_of_uid
from ctrlruntime.shard_selectors import fnv64a

MEMBERS = [f"operator-{letter}" for letter in "abcdefghij"]
weights = st.dictionaries(st.sampled_from(MEMBERS), st.integers(1, 4), max_size=6)


def settled(ring: Ring, weights: dict[str, int], **options) -> Ring:
    """Plan, and let every owner release what it must, until nothing moves."""
    for _ in range(10):
        after = planned(ring, weights, **options)
        for owner in sorted(after.members()):
            moving = [slot for slot in after.owned_by(owner) if after.nexts[slot]]
            after = released(after, owner, moving)
        if after.owners == ring.owners and after.nexts == ring.nexts:
            return ring
        ring = after
    pytest.fail("the plan does not settle")


def test_shares_are_in_proportion_to_weights():
    assert shares({"a": 1, "b": 1, "c": 2}, 64, {}) == {"a": 16, "b": 16, "c": 32}
    assert shares({}, 64, {}) == {}


def test_remainder_goes_to_members_that_hold_more():
    assert shares({"a": 1, "b": 1, "c": 1}, 64, {"c": 22, "a": 21, "b": 21}) == {"a": 21, "b": 21, "c": 22}


@given(weights)
def test_each_slot_has_an_owner_and_each_member_its_share(weights):
    ring = settled(Ring.empty(64, "v1"), weights)

    if not weights:
        assert set(ring.owners) == {""}
        return
    counts = Counter(ring.owners[:-1])
    exact = {member: 64 * weight / sum(weights.values()) for member, weight in weights.items()}
    assert all(abs(counts[member] - exact[member]) < 1 for member in weights)
    assert ring.owners[ring.leader] in weights


@given(weights, weights)
def test_only_needed_slots_move(before, after):
    first = settled(Ring.empty(64, "v1"), before)
    second = settled(first, after, leaving=before.keys() - after.keys())

    if not before or not after:
        return
    held = Counter(first.owners[:-1])
    kept = sum(min(held[member], count) for member, count in Counter(second.owners[:-1]).items())
    moved = sum(a != b for a, b in zip(first.owners[:-1], second.owners[:-1], strict=True))
    assert moved == 64 - kept
    if first.owners[first.leader] in after:
        assert second.owners[second.leader] == first.owners[first.leader]


@given(st.lists(weights, max_size=5))
def test_a_plan_never_takes_a_slot_from_its_owner(steps):
    ring = Ring.empty(64, "v1")
    for weights in steps:
        after = planned(ring, weights, leaving=ring.members() - weights.keys())
        assert all(before in {"", owner} for before, owner in zip(ring.owners, after.owners, strict=True))
        assert after.epoch == ring.epoch + (after.owners != ring.owners or after.nexts != ring.nexts)
        ring = after


def test_released_slot_goes_to_its_next_owner():
    ring = planned(planned(Ring.empty(64, "v1"), {"a": 1}), {"a": 1, "b": 1})
    moving = [slot for slot in range(64) if ring.nexts[slot] == "b"]

    after = released(ring, "a", moving)

    assert len(moving) == 32
    assert after.owned_by("b") == moving
    assert not any(after.nexts)
    assert released(ring, "b", moving) == ring  # it owns none of them


def test_evicted_member_loses_its_slots_and_successions():
    ring = planned(planned(Ring.empty(64, "v1"), {"a": 1}), {"a": 1, "b": 1})

    assert set(evicted(ring, ["b"]).nexts) == {""}
    after = evicted(ring, ["a"])
    assert Counter(after.owners) == {"b": 32, "": 33}


def test_slots_of_a_member_stay_neighbours():
    ring = Ring.empty(256, "v1")
    for count in range(1, 11):
        ring = settled(ring, dict.fromkeys(MEMBERS[:count], 1))

    runs = Counter(owner for owner, _ in itertools.groupby(ring.owners[:-1]))
    assert max(runs.values()) <= 16  # a list by ranges has at most 32 of them


def test_without_balance_only_free_slots_move():
    ring = settled(Ring.empty(64, "v1"), {"a": 1})

    after = planned(ring, {"a": 1, "b": 1}, balance=False)

    assert after == ring


def test_keys_are_spread_evenly():
    counts = Counter(slot_of(f"apps/Deployment/shop/web-{number}", 64) for number in range(64_000))

    assert set(counts) == set(range(64))
    assert max(counts.values()) < 1_150


def test_slot_of_a_key_never_changes():
    keys = ["", "a", "cache.example.com/Memcached/default/web"]

    assert [slot_of(key, 256) for key in keys] == [228, 64, 151]


@pytest.mark.parametrize(
    ("slots", "most", "expected"),
    [
        ([], 4, []),
        ([0], 4, [(0, 1)]),
        ([7], 4, [(7, 8)]),
        (range(8), 4, [(0, 8)]),
        ([3, 0, 1], 4, [(0, 2), (3, 4)]),
        ([0, 2, 7], 2, [(0, 3), (7, 8)]),
        ([0, 4, 6], 2, [(0, 1), (4, 7)]),
        ([0, 4, 6], 1, [(0, 7)]),
    ],
)
def test_the_ranges_of_slots(slots, most, expected):
    width = 2**64 // 8
    assert ranges_of(slots, 8, most=most) == [(start * width, end * width) for start, end in expected]


@given(st.sets(st.integers(0, 63)), st.integers(1, 32), st.uuids())
def test_the_ranges_have_every_object_of_the_slots(slots, most, uid):
    ranges = ranges_of(slots, 64, most=most)
    assert len(ranges) <= most
    if slot_of_uid(str(uid), 64) in slots:
        assert any(start <= fnv64a(str(uid)) < end for start, end in ranges)

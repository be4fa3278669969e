"""`mgr.shards`: which replica has an object. The controllers are their names and shares."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ctrlruntime.errors import ConfigError, FencedError
from ctrlruntime.manager.shards import SharedObjects
from ctrlruntime.ownership.state import SlotOwner
from ctrlruntime.reconcile import Request
from ctrlruntime.rest.fence import Actor, Fence, Grant, acting

MINE, OTHERS = Request("shop", "mine"), Request("shop", "other")


class Shard:
    """The share of a controller: one request."""

    is_divided = True
    has_lanes = False

    def __init__(self, request: Request, owner: str = "pod-2") -> None:
        self.request = request
        self.pod = owner

    def grant(self, request):
        return Grant(lambda: None) if request == self.request else None

    def owner(self, request):
        pod = "pod-1" if request == self.request else self.pod
        member = f"lease-of-{pod}" if pod else ""
        return SlotOwner(slot=1, of=64, owner=pod, member=member, following="", is_here=False, state="")


def shared(**shards: Shard | None) -> SharedObjects:
    controllers = [SimpleNamespace(name=name, shard=shard) for name, shard in shards.items()]
    return SharedObjects(lambda: controllers, Fence(clock=lambda: 100.0))


def test_without_sharding_this_process_owns_everything():
    shards = shared(web=None)

    assert shards.owns(MINE)
    assert shards.owner_of(MINE) == ""
    assert shards.time_left() is None


def test_a_replica_owns_its_share():
    shards = shared(web=Shard(MINE), leader_only=None)

    assert [shards.owns(request) for request in (MINE, OTHERS)] == [True, False]
    assert shards.owner_of(MINE) == "pod-1/lease-of-pod-1"
    assert shards.owner_of(OTHERS) == "pod-2/lease-of-pod-2"
    assert shared(web=Shard(MINE, owner="")).owner_of(OTHERS) == ""


def test_the_controller_that_calls_is_meant_or_the_named_one():
    shards = shared(web=Shard(MINE), database=Shard(OTHERS), leader_only=None)

    with acting(Actor("database")):
        assert shards.owns(OTHERS)
        assert not shards.owns(OTHERS, controller="web")
    assert shards.owns(OTHERS, controller="leader_only")
    with pytest.raises(ConfigError, match="give the name of a controller"):
        shards.owns(OTHERS)
    with pytest.raises(ConfigError, match="no controller mail"):
        shards.owner_of(OTHERS, controller="mail")


def test_the_time_left_is_that_of_the_grant():
    shards = shared(web=Shard(MINE))
    with acting(Actor("web", MINE, grant=Grant(lambda: 107.0))):
        assert shards.time_left() == 7.0
    with acting(Actor("web", MINE, grant=Grant(lambda: None))), pytest.raises(FencedError):
        shards.time_left()

"""Observers: what they learn of calls and answered writes, and that they only look."""

from __future__ import annotations

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.client.observers import Call, CallObservers, Write
from ctrlruntime.rest.fence import Actor, acting

THING = GroupVersionKind("example.com", "v1", "Thing")
OTHER = GroupVersionKind("example.com", "v1", "Other")


async def test_a_call_is_observed_with_its_actor():
    seen = []
    observers = CallObservers()
    observers.add_observer(seen.append)
    actor = Actor("memcached")

    with acting(actor):
        observers.record("create", "apps", "deployments", "", "ns", "a")
    observers.record("list", "", "pods", "", "", "")

    assert seen == [
        Call("create", "apps", "deployments", "", "ns", "a", actor),
        Call("list", "", "pods", "", "", "", None),
    ]


async def test_several_observers_get_the_same_call_and_its_end():
    first, second, ends = [], [], []

    def observe(calls):
        def begins(call):
            calls.append(call)
            return ends.append

        return begins

    observers = CallObservers()
    observers.add_observer(observe(first))
    observers.add_observer(observe(second))

    error = KeyError("x")
    observers.record("list", "", "pods")(error)

    assert len(first) == 1
    assert first == second
    assert ends == [error, error]


async def test_a_failing_write_observer_does_not_fail_the_write_or_other_observers():
    def fail(write):
        raise RuntimeError("no")

    seen = []
    observers = CallObservers()
    objects = {(THING, "ns", "a"): b"{}"}
    observers.use_cache(lambda *key: objects.get(key))
    assert observers.cached(THING, "ns", "a") == b""  # no observer needs it
    observers.add_write_observer(fail)
    observers.add_write_observer(seen.append)
    before = observers.cached(THING, "ns", "a")
    write = Write("update", THING, "ns", "a", "", "me", False, before, b"sent", b"after")

    observers.wrote(write)

    assert seen == [write]
    assert write.before == b"{}"
    assert observers.cached(OTHER, "ns", "a") == b""

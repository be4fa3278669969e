"""Leader for life on a client that is a dict; on servers in tests/conformance."""

from __future__ import annotations

import pytest

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from ctrlruntime.errors import (
    AlreadyExists,
    ConfigError,
    Conflict,
    Forbidden,
    NotFound,
    ServiceUnavailable,
    TransportError,
)
from ctrlruntime.leaderelection.for_life import become

LOCK = ctrl.NamespacedName("ns", "lock")


class Fake:
    """Objects by kind and key, and errors to raise first."""

    def __init__(self, *objects):
        self.objects = {}
        self.errors = []
        self.calls = []
        for obj in objects:
            self.put(obj)

    def put(self, obj):
        self.objects[self.place(obj)] = obj

    def place(self, obj):
        return type(obj), obj.metadata.namespace, obj.metadata.name

    def remove(self, kind, key):
        del self.objects[kind, key.namespace, key.name]

    def called(self, verb, kind):
        self.calls.append((verb, kind.__name__))
        if self.errors and self.errors[0][0] == (verb, kind):
            raise self.errors.pop(0)[1]

    async def get(self, kind, key):
        self.called("get", kind)
        try:
            return self.objects[kind, key.namespace, key.name]
        except KeyError:
            raise NotFound(f"{kind.__name__} {key}") from None

    async def create(self, obj):
        self.called("create", type(obj))
        if self.place(obj) in self.objects:
            raise AlreadyExists
        self.put(obj)

    async def delete(self, obj, *, uid=""):
        self.called("delete", type(obj))
        there = self.objects.get(self.place(obj))
        if there is None:
            raise NotFound
        if uid != there.metadata.uid:
            raise Conflict
        del self.objects[self.place(obj)]


def pod(name, uid="", *, phase="Running", reason="", node=""):
    return core.Pod(
        metadata=meta.ObjectMeta(name=name, namespace="ns", uid=uid or f"uid-{name}"),
        spec=core.PodSpec(node_name=node),
        status=core.PodStatus(phase=phase, reason=reason),
    )


def lock(*owners):
    references = [
        meta.OwnerReference(api_version="v1", kind="Pod", name=owner.metadata.name, uid=owner.metadata.uid)
        for owner in owners
    ]
    return core.ConfigMap(
        metadata=meta.ObjectMeta(name="lock", namespace="ns", uid="uid-lock", owner_references=references)
    )


def node(name, ready):
    conditions = [core.NodeCondition(type="Ready", status=ready)]
    return core.Node(metadata=meta.ObjectMeta(name=name), status=core.NodeStatus(conditions=conditions))


class Waits:
    """A sleep that notes how long, and does what comes next."""

    def __init__(self, *steps):
        self.steps = list(steps)
        self.seconds = []

    async def __call__(self, seconds):
        self.seconds.append(seconds)
        if not self.steps:
            raise StopAsyncIteration("it waits")
        self.steps.pop(0)()


def run(client, sleep=None, **options):
    options = {"namespace": "ns", "pod": "me", "environ": {}, "rng": lambda: 0.0, **options}
    return become(client, "lock", sleep=sleep or Waits(), **options)


def nothing():
    return None


async def test_the_first_pod_creates_a_lock_that_it_owns():
    client = Fake(pod("me"))

    await run(client)

    (owner,) = client.objects[core.ConfigMap, "ns", "lock"].metadata.owner_references
    assert (owner.api_version, owner.kind, owner.name, owner.uid) == ("v1", "Pod", "me", "uid-me")


async def test_a_restarted_container_leads_on():
    client = Fake(pod("me"), lock(pod("me")))

    await run(client)

    assert ("create", "ConfigMap") not in client.calls


async def test_a_new_pod_of_the_same_name_waits_for_its_predecessors_lock_to_be_collected():
    client = Fake(pod("me", "new"), lock(pod("me", "old")))

    await run(client, Waits(nothing, lambda: client.remove(core.ConfigMap, LOCK)))

    assert client.objects[core.ConfigMap, "ns", "lock"].metadata.owner_references[0].uid == "new"


async def test_while_the_leader_lives_it_is_waited_for_with_growing_pauses():
    leader = pod("leader")
    client = Fake(pod("me"), leader, lock(leader))
    waits = Waits(*[nothing] * 6, lambda: client.remove(core.ConfigMap, LOCK))

    await run(client, waits)

    assert waits.seconds == [1, 2, 4, 8, 16, 16, 16]
    assert ("delete", "Pod") not in client.calls


async def test_the_pauses_have_jitter():
    leader = pod("leader")
    client = Fake(pod("me"), leader, lock(leader))
    waits = Waits(nothing, lambda: client.remove(core.ConfigMap, LOCK))

    await run(client, waits, rng=lambda: 1.0)

    assert waits.seconds == pytest.approx([1.2, 2.4])


@pytest.mark.parametrize("reason", ["Evicted", "Preempting"])
async def test_a_pod_that_was_ended_by_its_node_is_deleted(reason):
    leader = pod("leader", phase="Failed", reason=reason)
    client = Fake(pod("me"), leader, lock(leader))

    await run(client, Waits(lambda: client.remove(core.ConfigMap, LOCK)))

    assert (core.Pod, "ns", "leader") not in client.objects
    assert client.calls.count(("delete", "Pod")) == 1


async def test_a_pod_that_is_being_deleted_is_left_alone():
    leader = pod("leader", phase="Failed", reason="Evicted")
    leader.metadata.deletion_timestamp = ctrl.Time.now()
    client = Fake(pod("me"), leader, lock(leader))

    await run(client, Waits(lambda: client.remove(core.ConfigMap, LOCK)))

    assert ("delete", "Pod") not in client.calls


@pytest.mark.parametrize("reason", ["", "Error"])
async def test_a_pod_that_failed_for_another_reason_still_leads(reason):
    leader = pod("leader", phase="Failed", reason=reason)
    client = Fake(pod("me"), leader, lock(leader))

    with pytest.raises(StopAsyncIteration):
        await run(client, Waits(nothing))
    assert ("delete", "Pod") not in client.calls


@pytest.mark.parametrize("ready", ["False", "Unknown"])
async def test_the_leader_on_a_lost_node_is_deleted_with_its_lock(ready):
    leader = pod("leader", node="lost")
    client = Fake(pod("me"), leader, lock(leader), node("lost", ready))

    await run(client, Waits(nothing))

    assert (core.Pod, "ns", "leader") not in client.objects
    assert client.objects[core.ConfigMap, "ns", "lock"].metadata.owner_references[0].name == "me"


@pytest.mark.parametrize("there", [[], [node("n", "True")]])
async def test_a_node_that_is_ready_or_unknown_is_no_reason(there):
    leader = pod("leader", node="n")
    client = Fake(pod("me"), leader, lock(leader), *there)

    with pytest.raises(StopAsyncIteration):
        await run(client, Waits(nothing))
    assert ("delete", "Pod") not in client.calls


async def test_without_the_right_to_see_nodes_the_leader_counts():
    leader = pod("leader", node="n")
    client = Fake(pod("me"), leader, lock(leader), node("n", "False"))
    client.errors = [(("get", core.Node), Forbidden("no"))]

    with pytest.raises(StopAsyncIteration):
        await run(client)
    assert ("delete", "Pod") not in client.calls


@pytest.mark.parametrize("owners", [(), (pod("a"), pod("b"))])
async def test_a_lock_without_exactly_one_owner_is_waited_for(owners):
    client = Fake(pod("me"), lock(*owners))

    await run(client, Waits(nothing, lambda: client.remove(core.ConfigMap, LOCK)))


async def test_a_lock_that_comes_and_goes_between_two_calls_is_not_spun_on():
    client = Fake(pod("me"))
    client.errors = [(("create", core.ConfigMap), AlreadyExists("faster"))]
    waits = Waits(nothing)

    await run(client, waits)

    assert waits.seconds == [1]


@pytest.mark.parametrize("error", [TransportError("down"), ServiceUnavailable("busy")])
async def test_a_server_in_trouble_is_asked_again(error):
    client = Fake(pod("me"))
    client.errors = [(("get", core.ConfigMap), error)]
    waits = Waits(nothing)

    await run(client, waits)

    assert waits.seconds == [1]


async def test_a_missing_right_names_what_is_needed():
    client = Fake(pod("me"))
    client.errors = [(("get", core.ConfigMap), Forbidden("configmaps is forbidden"))]

    with pytest.raises(Forbidden, match=r"configmaps is forbidden; leader\.become needs get and create of configmaps"):
        await run(client)


async def test_outside_a_cluster_it_returns_at_once(tmp_path):
    client = Fake()

    await become(client, "lock", environ={}, namespace_file=tmp_path / "none")

    assert client.calls == []


async def test_in_a_pod_without_its_name_the_error_says_how_to_give_it(tmp_path):
    file = tmp_path / "namespace"
    file.write_text("ns\n")

    with pytest.raises(ConfigError, match=r"set POD_NAME in the Deployment .*fieldPath metadata\.name"):
        await become(Fake(), "lock", environ={}, namespace_file=file)


async def test_without_a_namespace_the_error_says_how_to_give_it(tmp_path):
    with pytest.raises(ConfigError, match=r"needs the namespace of the Pod me: set POD_NAMESPACE"):
        await become(Fake(), "lock", environ={"POD_NAME": "me"}, namespace_file=tmp_path / "none")


async def test_a_pod_that_is_not_there_is_an_error():
    with pytest.raises(ConfigError, match="Pod ns/me of this process does not exist"):
        await run(Fake())


async def test_a_lock_needs_a_name():
    with pytest.raises(ConfigError, match="needs a name of the lock"):
        await become(Fake(), "", environ={"POD_NAME": "me", "POD_NAMESPACE": "ns"})


async def test_the_environment_says_where_and_who(tmp_path):
    client = Fake(pod("me"))

    await become(client, "lock", environ={"POD_NAME": "me", "POD_NAMESPACE": "ns"}, namespace_file=tmp_path / "none")

    assert (core.ConfigMap, "ns", "lock") in client.objects

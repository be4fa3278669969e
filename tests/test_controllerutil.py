"""Owner references, finalizers, and create-or-update."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import pytest
from pydantic import Field

from ctrlruntime.api import Model, NamespacedName, Object, PartialObjectMetadata, Unstructured, core, gvk_for, rbac
from ctrlruntime.api.meta import ObjectMeta
from ctrlruntime.controllerutil import (
    OperationResult,
    add_finalizer,
    contains_finalizer,
    controller_of,
    create_or_patch,
    create_or_update,
    delete_tracked_dependents,
    has_controller,
    has_owner,
    remove_controller_reference,
    remove_finalizer,
    remove_owner_reference,
    set_controller_reference,
    set_owner_reference,
)
from ctrlruntime.errors import AlreadyExists, AlreadyOwnedError, Conflict, NotFound, RequeueAfter, TerminalError
from ctrlruntime.field import Time
from ctrlruntime.finalizer import Finalizers
from ctrlruntime.patch import apply_merge_patch
from ctrlruntime.reconcile import Request, is_terminal


class Spec(Model):
    size: int


class Status(Model):
    nodes: list[str] = Field(default_factory=list)


class Memcached(Object, group="cache.example.com", version="v1alpha1"):
    spec: Spec
    status: Status = Field(default_factory=Status)


class Zone(Object, group="cache.example.com", version="v1alpha1", scope="Cluster"):
    pass


def owner(name="parent", *, uid="u1", namespace="ns", kind=Memcached, **content):
    if kind is Memcached:
        content.setdefault("spec", Spec(size=1))
    return kind(metadata=ObjectMeta(name=name, namespace=namespace, uid=uid), **content)


def child(namespace="ns", **metadata):
    return core.ConfigMap(metadata=ObjectMeta(name="child", namespace=namespace, **metadata))


# --- owners --------------------------------------------------------------------------------------------------------------


def test_controller_reference_names_the_owner_and_marks_it():
    obj = child()
    set_controller_reference(owner(), obj)

    assert obj.to_dict()["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "cache.example.com/v1alpha1",
            "kind": "Memcached",
            "name": "parent",
            "uid": "u1",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert has_controller(obj)
    assert controller_of(obj) is obj.metadata.owner_references[0]


def test_another_controller_is_refused_by_name():
    obj = child()
    set_controller_reference(owner(), obj)
    with pytest.raises(AlreadyOwnedError, match="has the controller Memcached parent"):
        set_controller_reference(owner("second", uid="u2"), obj)
    assert len(obj.metadata.owner_references) == 1


def test_the_same_owner_through_another_version_is_replaced():
    obj = child()
    set_controller_reference(owner(), obj)
    newer = Unstructured.of("cache.example.com/v2", "Memcached")(
        metadata=ObjectMeta(name="parent", namespace="ns", uid="u1")
    )
    set_controller_reference(newer, obj)

    assert [reference.api_version for reference in obj.metadata.owner_references] == ["cache.example.com/v2"]


def test_owners_may_be_several_and_leave_the_controller_alone():
    obj = child()
    set_controller_reference(owner(), obj)
    set_owner_reference(owner("second", uid="u2"), obj)
    set_owner_reference(owner(), obj)

    assert [(r.name, r.controller) for r in obj.metadata.owner_references] == [("parent", True), ("second", None)]


def test_owners_are_removed_and_asked_for():
    obj = child()
    set_controller_reference(owner(), obj)
    set_owner_reference(owner("second", uid="u2"), obj)

    assert has_owner(owner("second", uid="u2"), obj)
    assert not has_owner(owner("second", uid="re-created"), obj)
    assert not remove_controller_reference(owner("second", uid="u2"), obj)
    assert remove_owner_reference(owner("second", uid="u2"), obj)
    assert not remove_owner_reference(owner("second", uid="u2"), obj)
    assert remove_controller_reference(owner(), obj)
    assert not has_controller(obj)
    assert controller_of(obj) is None


@pytest.mark.parametrize("set_reference", [set_controller_reference, set_owner_reference])
def test_owners_in_another_namespace_are_refused_and_the_alternative_named(set_reference):
    with pytest.raises(ValueError, match=r"is in namespace other.*set_tracked_owner.*finalizer"):
        set_reference(owner(), child("other"))
    with pytest.raises(ValueError, match="cluster-scoped"):
        set_reference(owner(), rbac.ClusterRole(metadata=ObjectMeta(name="role")))
    with pytest.raises(ValueError, match=r"set metadata\.namespace to ns"):
        set_reference(owner(), child(""))


def test_cluster_scoped_owners_own_everywhere():
    zone = owner("zone", namespace="", kind=Zone)
    for obj in (child(), rbac.ClusterRole(metadata=ObjectMeta(name="role"))):
        set_controller_reference(zone, obj)
        assert has_owner(zone, obj)


def test_an_owner_without_a_uid_is_refused():
    with pytest.raises(ValueError, match="no uid"):
        set_owner_reference(owner(uid=""), child())


# --- finalizers ----------------------------------------------------------------------------------------------------------


def test_finalizers_say_whether_the_list_changed():
    obj = child(finalizers=["other.io/x"])

    assert add_finalizer(obj, "example.com/a")
    assert not add_finalizer(obj, "example.com/a")
    assert contains_finalizer(obj, "example.com/a")
    assert remove_finalizer(obj, "example.com/a")
    assert not remove_finalizer(obj, "example.com/a")
    assert obj.metadata.finalizers == ["other.io/x"]


def test_no_finalizer_is_added_to_an_object_that_is_being_deleted():
    obj = child(deletion_timestamp=Time.now())
    assert not add_finalizer(obj, "example.com/a")
    assert obj.metadata.finalizers == []


def test_a_finalizer_needs_a_domain():
    with pytest.raises(ValueError, match=r"example\.com/a"):
        add_finalizer(child(), "a")


# --- tracked children ----------------------------------------------------------------------------------------------------


class Children:
    """A client that lists the metadata of these children, and answers deletes as it is told."""

    def __init__(self, *children, answers=()):
        self.children = children
        self.answers = dict(answers)
        self.listed = []
        self.deleted = []

    @property
    def api_reader(self):
        return self

    async def list(self, kind, *, labels):
        self.listed.append((gvk_for(kind).kind, labels))
        return [each for each in self.children if gvk_for(each) == gvk_for(kind)]

    async def delete(self, obj, *, uid, propagation_policy):
        self.deleted.append((obj.metadata.name, uid, propagation_policy))
        if (error := self.answers.get(obj.metadata.name)) is not None:
            raise error


def partial(kind, name, **metadata):
    return PartialObjectMetadata.of(kind)(
        metadata=ObjectMeta(name=name, namespace="far", uid=f"uid-{name}", **metadata)
    )


async def test_tracked_children_are_deleted_by_uid_and_those_still_there_are_counted():
    leaving = partial(core.Secret, "leaving", deletion_timestamp=Time.parse("2026-01-01T00:00:00Z"))
    children = [partial(core.Secret, name) for name in ("there", "gone", "replaced")]
    client = Children(
        *children,
        leaving,
        partial(core.ConfigMap, "other"),
        answers={"gone": NotFound("gone"), "replaced": Conflict("uid")},
    )

    remaining = await delete_tracked_dependents(client, owner(), core.Secret, core.ConfigMap)

    assert remaining == 4  # all but the one that was gone; asked again, they are found or not
    assert [kind for kind, _ in client.listed] == ["Secret", "ConfigMap"]
    assert {tuple(labels.values()) for _, labels in client.listed} == {("u1",)}
    assert client.deleted == [(name, f"uid-{name}", "Background") for name in ("there", "gone", "replaced", "other")]


async def test_without_tracked_children_nothing_remains():
    assert await delete_tracked_dependents(Children(), owner(), core.Secret) == 0


# --- a client in memory --------------------------------------------------------------------------------------------------


class Scopes:
    """A mapper that knows the scope of a kind from its class."""

    async def resource_for(self, gvk):
        return SimpleNamespace(namespaced=gvk.kind != "ClusterRole")


class Memory:
    """A client on a dict of wire forms; `hidden` keys are not seen by cached reads yet."""

    scheme = None
    mapper = Scopes()

    def __init__(self, *objects):
        self.stored = {}
        self.hidden = set()
        self.calls = []
        for obj in objects:
            self._store(obj)

    def _id(self, obj):
        return type(obj), NamespacedName(obj.metadata.namespace, obj.metadata.name)

    def _store(self, obj):
        obj.metadata.uid = obj.metadata.uid or "uid"
        obj.metadata.resource_version = str(int(obj.metadata.resource_version or "0") + 1)
        self.stored[self._id(obj)] = obj.to_dict()
        return obj

    async def get_or_none(self, kind, key):
        identity = kind, NamespacedName(key.namespace, key.name)
        wire = self.stored.get(identity)
        return None if wire is None or identity in self.hidden else kind.from_dict(wire)

    @property
    def api_reader(self):
        live = Memory()
        live.stored = self.stored
        live.calls = self.calls
        return live

    async def create(self, obj):
        self.calls.append(("create", obj.to_dict()))
        if self._id(obj) in self.stored:
            raise AlreadyExists("exists")
        if "status" in (wire := obj.to_dict()):
            del wire["status"]
            obj._assign_from(type(obj).from_dict(wire))
        return self._store(obj)

    async def update(self, obj):
        self.calls.append(("update", obj.to_dict()))
        return self._store(obj)

    async def patch(self, obj, patch):
        return await self._patch("patch", obj, patch)

    async def _patch(self, verb, obj, patch):
        data = json.loads(patch.data(obj))
        self.calls.append((verb, data))
        wire = apply_merge_patch(self.stored[self._id(obj)], data)
        obj._assign_from(type(obj).from_dict(wire))
        return self._store(obj)

    @property
    def status(self):
        client = self

        class StatusClient:
            async def patch(self, obj, patch):
                return await client._patch("status patch", obj, patch)

            async def update(self, obj):
                client.calls.append(("status update", obj.to_dict()))
                wire = {**client.stored[client._id(obj)], "status": obj.to_dict()["status"]}
                obj._assign_from(type(obj).from_dict(wire))
                return client._store(obj)

        return StatusClient()

    def verbs(self):
        return [verb for verb, _ in self.calls]


KEY = Request("ns", "child")


async def test_create_or_update_creates_what_is_not_there():
    client = Memory()

    def shape(memcached):
        memcached.spec.size = 3

    obj, result = await create_or_update(client, Memcached, KEY, shape)

    assert result is OperationResult.CREATED
    assert (obj.metadata.namespace, obj.metadata.name, obj.spec.size) == ("ns", "child", 3)
    assert client.verbs() == ["create"]


async def test_create_or_update_writes_only_what_changes():
    client = Memory(child())

    async def shape(config_map):
        config_map.data = {"a": "1"}

    obj, result = await create_or_update(client, core.ConfigMap, KEY, shape)
    assert (result, obj.data) == (OperationResult.UPDATED, {"a": "1"})

    _, again = await create_or_update(client, core.ConfigMap, KEY, shape)
    assert again is OperationResult.UNCHANGED
    assert client.verbs() == ["update"]


async def test_another_spelling_of_the_same_content_is_no_change():
    def shape(cpu):
        def mutate(pod):
            pod.spec.containers = [core.Container(name="c", resources=core.ResourceRequirements(limits={"cpu": cpu}))]

        return mutate

    client = Memory()
    await create_or_update(client, core.Pod, KEY, shape("500m"))
    _, result = await create_or_update(client, core.Pod, KEY, shape("0.5"))

    assert result is OperationResult.UNCHANGED


async def test_an_object_the_cache_has_not_seen_is_read_live_and_updated():
    client = Memory(child())
    client.hidden.add((core.ConfigMap, NamespacedName("ns", "child")))

    obj, result = await create_or_update(client, core.ConfigMap, KEY, lambda cm: cm.data.update(a="1"))

    assert (result, obj.metadata.resource_version) == (OperationResult.UPDATED, "2")
    assert client.verbs() == ["create", "update"]


async def test_already_exists_is_raised_when_the_object_is_gone_again():
    class Vanishing(Memory):
        async def create(self, obj):
            raise AlreadyExists("exists")

    with pytest.raises(AlreadyExists):
        await create_or_update(Vanishing(), core.ConfigMap, KEY)


async def test_mutate_may_not_rename():
    client = Memory()
    for attribute in ("name", "namespace"):
        with pytest.raises(ValueError, match="must not change name or namespace"):
            await create_or_update(
                client, core.ConfigMap, KEY, lambda cm, attribute=attribute: setattr(cm.metadata, attribute, "x")
            )
    assert client.calls == []


async def test_an_ownership_that_is_not_allowed_is_refused_before_any_write():
    client = Memory()
    with pytest.raises(ValueError, match="cannot own"):
        await create_or_update(
            client, core.ConfigMap, Request("other", "x"), lambda cm: set_controller_reference(owner(), cm)
        )
    assert client.calls == []


async def test_without_mutate_the_object_is_made_to_exist():
    client = Memory()
    assert (await create_or_update(client, core.ConfigMap, KEY))[1] is OperationResult.CREATED
    assert (await create_or_update(client, core.ConfigMap, KEY))[1] is OperationResult.UNCHANGED


async def test_the_namespace_of_the_key_is_left_out_for_cluster_scoped_kinds():
    obj, _ = await create_or_update(Memory(), rbac.ClusterRole, KEY)
    assert obj.metadata.namespace == ""


async def test_create_or_update_does_not_write_for_a_status_alone():
    client = Memory(owner("child"))
    _, result = await create_or_update(client, Memcached, KEY, lambda m: m.status.nodes.append("n"))
    assert result is OperationResult.UNCHANGED


@pytest.mark.parametrize(
    ("size", "nodes", "expected", "verbs"),
    [
        (1, [], OperationResult.UNCHANGED, []),
        (2, [], OperationResult.UPDATED, ["patch"]),
        (1, ["n"], OperationResult.UPDATED_STATUS_ONLY, ["status patch"]),
        (2, ["n"], OperationResult.UPDATED_STATUS, ["patch", "status patch"]),
    ],
)
async def test_create_or_patch_sends_the_difference_of_object_and_status(size, nodes, expected, verbs):
    client = Memory(owner("child"))

    def shape(memcached):
        memcached.spec.size = size
        memcached.status.nodes = nodes

    obj, result = await create_or_patch(client, Memcached, KEY, shape)

    assert (result, client.verbs()) == (expected, verbs)
    assert (obj.spec.size, obj.status.nodes) == (size, nodes)
    bodies = dict(client.calls)
    assert bodies.get("patch", {"spec": {"size": 2}}) == {"spec": {"size": 2}}
    assert bodies.get("status patch", {"status": {"nodes": ["n"]}}) == {"status": {"nodes": ["n"]}}


async def test_create_or_patch_writes_the_status_of_what_it_creates():
    client = Memory()

    def shape(memcached):
        memcached.spec.size = 1
        memcached.status.nodes = ["n"]

    obj, result = await create_or_patch(client, Memcached, KEY, shape)

    assert (result, obj.status.nodes) == (OperationResult.CREATED, ["n"])
    assert client.verbs() == ["create", "status patch"]


# --- the registry of finalizers ------------------------------------------------------------------------------------------


def deleted(*finalizers):
    return child(deletion_timestamp=Time.now(), finalizers=list(finalizers))


async def test_finalizers_reconcile_adds_what_is_missing_once():
    registry = Finalizers()
    for name in ("example.com/a", "example.com/b"):
        registry.register(name, lambda obj: None)
    client = Memory(child(finalizers=["example.com/b"]))
    obj = await client.get_or_none(core.ConfigMap, KEY)

    await registry.reconcile(client, obj)
    assert (client.verbs(), obj.metadata.finalizers) == (["update"], ["example.com/b", "example.com/a"])
    await registry.reconcile(client, obj)
    assert client.verbs() == ["update"]


async def test_finalizers_run_in_order_and_one_that_fails_stays_while_others_run():
    ran = []

    async def first(obj):
        ran.append("first")
        raise ConnectionError("not now")

    def second(obj):
        ran.append("second")

    registry = Finalizers()
    registry.register("example.com/first", first)
    registry.register("example.com/second", second)
    registry.register("example.com/absent", lambda obj: ran.append("absent"))
    obj = deleted("example.com/second", "other.io/x", "example.com/first")
    client = Memory(obj)

    with pytest.raises(ConnectionError) as raised:
        await registry.reconcile(client, obj)

    assert ran == ["first", "second"]
    assert obj.metadata.finalizers == ["other.io/x", "example.com/first"]
    assert client.verbs() == ["update"]
    assert raised.value.__notes__ == ["in finalizer example.com/first"]


async def test_several_failures_are_raised_together():
    def fails(obj):
        raise ConnectionError("not now")

    registry = Finalizers()
    registry.register("example.com/a", fails)
    registry.register("example.com/b", fails)
    with pytest.raises(ExceptionGroup, match=r"example\.com/a, example\.com/b"):
        await registry.reconcile(Memory(), deleted("example.com/a", "example.com/b"))


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([], "no such zone"),
        ([TerminalError("no such bucket")], "finalizers failed: example.com/0, example.com/1"),
        ([ConnectionError("not now")], "finalizers failed: example.com/1; also finalizer example.com/0: no such zone"),
        (
            [RequeueAfter(30, "the Job runs")],
            "finalizer example.com/0: no such zone; finalizer example.com/1: the Job runs. Retried for example.com/1",
        ),
    ],
)
async def test_terminal_error_of_a_finalizer_does_not_stop_the_retries_of_others(others, expected):
    def raising(error):
        def finalizer(obj):
            raise error

        return finalizer

    errors = [TerminalError("no such zone"), *others]
    registry = Finalizers()
    for number, error in enumerate(errors):
        registry.register(f"example.com/{number}", raising(error))

    with pytest.raises(Exception, match=re.escape(expected)) as raised:
        await registry.reconcile(Memory(), deleted(*(f"example.com/{number}" for number in range(len(errors)))))

    assert not isinstance(raised.value, RequeueAfter)  # which is not logged as an error
    assert is_terminal(raised.value) == all(isinstance(error, TerminalError) for error in errors)


async def test_finalizers_that_wait_stay_without_an_error():
    def waits(seconds, reason):
        def finalizer(obj):
            obj.metadata.annotations["waits-for"] = reason
            raise RequeueAfter(seconds, reason)

        return finalizer

    registry = Finalizers()
    registry.register("example.com/backup", waits(30, "the Job runs"))
    registry.register("example.com/dns", waits(10, "the name is still served"))
    registry.register("example.com/last", lambda obj: None)
    obj = deleted("example.com/backup", "example.com/dns", "example.com/last")
    client = Memory(obj)

    with pytest.raises(RequeueAfter) as raised:
        await registry.reconcile(client, obj)

    assert raised.value.seconds == 10
    assert raised.value.reason == (
        "finalizer example.com/backup: the Job runs; finalizer example.com/dns: the name is still served"
    )
    assert obj.metadata.finalizers == ["example.com/backup", "example.com/dns"]
    assert client.calls[0][1]["metadata"]["annotations"] == {"waits-for": "the name is still served"}


async def test_a_finalizer_that_fails_is_raised_and_not_one_that_waits():
    def waits(obj):
        raise RequeueAfter(30)

    def fails(obj):
        raise ConnectionError("not now")

    registry = Finalizers()
    registry.register("example.com/a", waits)
    registry.register("example.com/b", fails)
    with pytest.raises(ConnectionError):
        await registry.reconcile(Memory(), deleted("example.com/a", "example.com/b"))


async def test_finalizers_reconcile_writes_status_before_finalizers():
    stored = owner("child")
    stored.metadata.finalizers = ["example.com/a"]
    client = Memory(stored)
    obj = await client.get_or_none(Memcached, KEY)
    obj.metadata.deletion_timestamp = Time.now()

    def clean(memcached):
        memcached.status.nodes = ["gone"]
        return True

    registry = Finalizers()
    registry.register("example.com/a", clean)
    await registry.reconcile(client, obj)

    assert client.verbs() == ["status update", "update"]
    assert client.calls[1][1]["metadata"].get("finalizers") is None
    assert client.calls[1][1]["metadata"]["resourceVersion"] == "2"


async def test_nothing_is_written_when_nothing_changed():
    client = Memory(child())
    obj = await client.get_or_none(core.ConfigMap, KEY)
    await Finalizers().reconcile(client, obj)
    assert client.calls == []


def test_finalizer_names_are_unique_and_have_a_domain():
    registry = Finalizers()
    registry.register("example.com/a", lambda obj: None)
    with pytest.raises(ValueError, match="registered already"):
        registry.register("example.com/a", lambda obj: None)
    with pytest.raises(ValueError, match="domain"):
        registry.register("a", lambda obj: None)

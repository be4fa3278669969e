"""Handlers: which requests an event leads to."""

from __future__ import annotations

import json

import pytest

from ctrlruntime.api import Object, Unstructured, apps
from ctrlruntime.errors import TransportError
from ctrlruntime.event import CreateEvent, DeleteEvent, GenericEvent, Snapshot, UpdateEvent
from ctrlruntime.handler import (
    EnqueueRequestForObject,
    Funcs,
    enqueue_request_for_owner,
    enqueue_request_for_tracked_owner,
    enqueue_requests_from_map_func,
)
from ctrlruntime.reconcile import Request


class Cluster(Object, group="example.com", version="v1", scope="Cluster"):
    pass


class Requests(list):
    cluster = ""

    def __call__(self, request, *, priority=None, after=0.0):
        self.append(request)


def undecodable(raw):
    raise ValueError("does not fit")


def snapshot(name="a", *, namespace="ns", owners=(), decode=lambda raw: json.loads(raw)["metadata"]["name"]):
    references = [
        {"apiVersion": version, "kind": kind, "name": owner, "uid": "u", "controller": controller}
        for version, kind, owner, controller in owners
    ]
    metadata = {"name": name, "namespace": namespace, "resourceVersion": "1", "ownerReferences": references}
    return Snapshot.of(json.dumps({"metadata": metadata}).encode(), decode)


def events(**kwargs):
    one = snapshot(**kwargs)
    return [CreateEvent(one), UpdateEvent(one, one), DeleteEvent(one), GenericEvent(one)]


def test_for_object_enqueues_the_object_of_each_sort_of_event_without_a_decode():
    for event in events(decode=undecodable):
        requests = Requests()
        EnqueueRequestForObject().handle(event, requests)
        assert requests == [Request("ns", "a")]


def test_for_object_stamps_the_cluster_of_the_source():
    requests = Requests()
    requests.cluster = "west"

    EnqueueRequestForObject().handle(CreateEvent(snapshot()), requests)

    assert requests == [Request("ns", "a", "west")]


def test_map_function_sees_old_and_new_and_equal_requests_are_enqueued_once():
    handler = enqueue_requests_from_map_func(lambda name: [Request("ns", f"for-{name}"), Request("ns", "both")])
    requests = Requests()

    assert handler.handle(UpdateEvent(snapshot("old"), snapshot("new")), requests) is None

    assert requests == [Request("ns", "for-old"), Request("ns", "both"), Request("ns", "for-new")]


async def test_async_map_function_is_awaited_for_both_states():
    async def function(name):
        return [Request("ns", name)]

    requests = Requests()
    await enqueue_requests_from_map_func(function).handle(UpdateEvent(snapshot("o"), snapshot("n")), requests)

    assert requests == [Request("ns", "o"), Request("ns", "n")]


async def test_plain_function_that_returns_an_awaitable_is_awaited():
    async def inner(name):
        return [Request("ns", name)]

    requests = Requests()
    await enqueue_requests_from_map_func(lambda name: inner(f"of-{name}")).handle(CreateEvent(snapshot()), requests)

    assert requests == [Request("ns", "of-a")]


def test_map_function_that_fails_on_one_state_still_enqueues_the_other():
    def function(name):
        if name == "old":
            raise KeyError(name)
        return [Request("ns", name)]

    requests = Requests()
    with pytest.raises(KeyError):
        enqueue_requests_from_map_func(function).handle(UpdateEvent(snapshot("old"), snapshot("new")), requests)

    assert requests == [Request("ns", "new")]


async def test_async_map_function_that_fails_on_one_state_still_enqueues_the_other():
    async def function(name):
        if name == "old":
            raise KeyError(name)
        return [Request("ns", name)]

    requests = Requests()
    with pytest.raises(KeyError):
        await enqueue_requests_from_map_func(function).handle(UpdateEvent(snapshot("old"), snapshot("new")), requests)

    assert requests == [Request("ns", "new")]


def test_map_function_that_returns_none_enqueues_nothing():
    requests = Requests()
    enqueue_requests_from_map_func(lambda name: None).handle(CreateEvent(snapshot()), requests)
    assert requests == []


@pytest.mark.parametrize("outcome", [Request("ns", "a"), "text", 3])
def test_map_function_that_returns_no_list_is_told_what_to_return(outcome):
    with pytest.raises(TypeError, match="return an iterable of requests"):
        enqueue_requests_from_map_func(lambda name: outcome).handle(CreateEvent(snapshot()), Requests())


def test_requests_may_be_any_hashable_value():
    requests = Requests()
    enqueue_requests_from_map_func(lambda name: [("tenant", 7)]).handle(CreateEvent(snapshot()), requests)
    assert requests == [("tenant", 7)]


def test_owner_is_matched_by_group_and_kind_whatever_the_version():
    handler = enqueue_request_for_owner(apps.Deployment)
    owners = [
        ("apps/v1beta2", "Deployment", "mine", True),
        ("example.com/v1", "Deployment", "foreign", True),
        ("apps/v1", "ReplicaSet", "other-kind", True),
    ]
    for event in events(owners=owners):
        requests = Requests()
        handler.handle(event, requests)
        assert requests == [Request("ns", "mine")]


def test_owners_that_are_not_the_controller_can_be_left_out():
    owners = [("apps/v1", "Deployment", "one", None), ("apps/v1", "Deployment", "two", True)]
    every, only = Requests(), Requests()

    enqueue_request_for_owner(apps.Deployment).handle(CreateEvent(snapshot(owners=owners)), every)
    enqueue_request_for_owner(apps.Deployment, only_controller_owner=True).handle(
        CreateEvent(snapshot(owners=owners)), only
    )

    assert every == [Request("ns", "one"), Request("ns", "two")]
    assert only == [Request("ns", "two")]


def test_the_uid_of_a_reference_is_not_looked_at_so_a_former_owners_child_enqueues_the_present_one():
    former = Snapshot.of(
        json.dumps(
            {
                "metadata": {
                    "name": "child", "namespace": "ns", "resourceVersion": "1",
                    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "of-a-former-life"}],
                }
            }
        ).encode(),
        undecodable,
    )  # fmt: skip
    requests = Requests()

    enqueue_request_for_owner(apps.Deployment).handle(DeleteEvent(former), requests)

    assert requests == [Request("ns", "web")]


def tracked(owner, *, label=True, annotated=True):
    annotations = {"apps/deployment": owner} if annotated else {}
    labels = {"apps/deployment-uid": "u"} if label else {}
    metadata = {
        "name": "child",
        "namespace": "far",
        "resourceVersion": "1",
        "labels": labels,
        "annotations": annotations,
    }
    return Snapshot.of(json.dumps({"metadata": metadata}).encode(), undecodable)


def test_the_owner_that_tracks_an_object_is_enqueued_in_its_own_namespace_without_a_decode():
    handler = enqueue_request_for_tracked_owner(apps.Deployment)
    one, other = tracked("ns/web"), tracked("ns/other")
    for event, names in (
        (CreateEvent(one), ["web"]),
        (DeleteEvent(one), ["web"]),
        (GenericEvent(one), ["web"]),
        (UpdateEvent(one, one), ["web"]),
        (UpdateEvent(other, one), ["other", "web"]),
        (CreateEvent(tracked("ns/web", label=False)), []),
        (CreateEvent(tracked("ns/web", annotated=False)), []),
    ):
        requests = Requests()
        handler.handle(event, requests)
        assert requests == [Request("ns", name) for name in names]


def test_a_cluster_scoped_owner_that_tracks_an_object_has_no_namespace():
    label, annotation = {"example.com/cluster-uid": "u"}, {"example.com/cluster": "c"}
    metadata = {"name": "child", "namespace": "far", "resourceVersion": "1", "labels": label, "annotations": annotation}
    requests = Requests()

    event = CreateEvent(Snapshot.of(json.dumps({"metadata": metadata}).encode(), undecodable))
    enqueue_request_for_tracked_owner(Cluster).handle(event, requests)

    assert requests == [Request("", "c")]


def test_a_child_that_changes_hands_enqueues_both_owners():
    old = snapshot(owners=[("apps/v1", "Deployment", "before", True)])
    new = snapshot(owners=[("apps/v1", "Deployment", "after", True)])
    requests = Requests()

    enqueue_request_for_owner(apps.Deployment).handle(UpdateEvent(old, new), requests)

    assert requests == [Request("ns", "before"), Request("ns", "after")]


def test_cluster_scoped_owner_has_no_namespace():
    requests = Requests()
    owners = [("example.com/v1", "Cluster", "c", True)]

    enqueue_request_for_owner(Cluster).handle(CreateEvent(snapshot(owners=owners)), requests)

    assert requests == [Request("", "c")]


async def test_the_scope_of_an_unknown_kind_is_asked_for_each_event_and_the_last_answer_holds_while_there_is_none():
    answers = iter([TransportError("not now"), False, TransportError("not now"), True])

    async def is_namespaced():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    handler = enqueue_request_for_owner(Unstructured.of("example.com/v1", "Thing"), is_namespaced=is_namespaced)
    event = CreateEvent(snapshot(owners=[("example.com/v1", "Thing", "t", True)]))
    requests = Requests()

    with pytest.raises(TransportError):
        await handler.handle(event, requests)
    for _ in range(3):
        await handler.handle(event, requests)

    assert requests == [Request("", "t"), Request("", "t"), Request("ns", "t")]


def test_funcs_ignore_events_without_a_function():
    requests = Requests()
    handler = Funcs(delete=lambda event, enqueue: enqueue(Request("gone", event.meta.name)))

    for event in events():
        handler.handle(event, requests)

    assert requests == [Request("gone", "a")]

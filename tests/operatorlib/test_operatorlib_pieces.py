"""Predicates, handlers and variables of operatorlib, without a server."""

from __future__ import annotations

import msgspec
import pytest
from prometheus_client import CollectorRegistry

import ctrlruntime as ctrl
from ctrlruntime.api import apps, core, meta
from ctrlruntime.errors import ConfigError
from ctrlruntime.event import CreateEvent, DeleteEvent, GenericEvent, Snapshot, UpdateEvent
from ctrlruntime.handler import EnqueueRequestForObject
from ctrlruntime.operatorlib import (
    DependentPredicate,
    InstrumentedEnqueueRequestForObject,
    NoGenerationPredicate,
    PausePredicate,
    enqueue_request_for_annotation,
    pausable,
    proxy_variables,
    related_image,
    set_owner_annotations,
)

PAUSED = "example.com/paused"


class Enqueued:
    """Keeps the requests it gets."""

    cluster = ""

    def __init__(self):
        self.requests = []

    def __call__(self, request, /, *, priority=None, after=0.0):
        self.requests.append(request)


def snapshot(**metadata):
    rest = {name: metadata.pop(name) for name in ("status", "spec", "data") if name in metadata}
    raw = msgspec.json.encode(
        {"metadata": {"name": "a", "namespace": "ns", "resourceVersion": "1", **metadata}, **rest}
    )
    return Snapshot.of(raw, core.ConfigMap.from_json)


def update(old, new):
    return UpdateEvent(old, new)


@pytest.mark.parametrize("value", ["1", "t", "T", "TRUE", "true", "True"])
def test_an_object_that_is_paused_is_passed_over(value):
    paused = snapshot(annotations={PAUSED: value})

    assert not PausePredicate(PAUSED).passes(CreateEvent(paused))
    assert not PausePredicate(PAUSED).passes(update(snapshot(), paused))
    assert PausePredicate(PAUSED).passes(update(paused, snapshot()))


@pytest.mark.parametrize(("value", "told"), [("false", 0), ("0", 0), ("", 0), ("yes", 1)])
def test_what_is_not_true_does_not_pause_and_what_is_neither_is_told(value, told, capsys):
    assert PausePredicate(PAUSED).passes(CreateEvent(snapshot(annotations={PAUSED: value})))

    assert capsys.readouterr().err.count("neither true nor false") == told


@pytest.mark.parametrize("key", ["", "a b", "/x", "a..b/x", "a/b/x", "x/", "a/" + "x" * 64])
def test_a_key_that_no_annotation_has_is_refused(key):
    with pytest.raises(ValueError, match="is not a key of an annotation"):
        PausePredicate(key)
    with pytest.raises(ValueError, match="is not a key of an annotation"):
        pausable(EnqueueRequestForObject(), key)


def test_a_pausable_handler_hands_on_what_is_not_paused():
    enqueued = Enqueued()
    handler = pausable(EnqueueRequestForObject(), PAUSED)

    handler.handle(CreateEvent(snapshot(annotations={PAUSED: "true"})), enqueued)
    handler.handle(update(snapshot(annotations={PAUSED: "true"}), snapshot()), enqueued)

    assert enqueued.requests == [ctrl.Request("ns", "a")]


@pytest.mark.parametrize(("old", "new", "passes"), [(0, 0, True), (1, 1, False), (1, 2, False)])
def test_updates_of_kinds_without_a_generation_pass(old, new, passes):
    assert NoGenerationPredicate().passes(update(snapshot(generation=old), snapshot(generation=new))) is passes
    assert NoGenerationPredicate().passes(CreateEvent(snapshot(generation=new)))


@pytest.mark.parametrize(
    ("change", "passes"),
    [
        ({"status": {"a": 1}}, False),
        ({"resourceVersion": "2", "generation": 2, "managedFields": [{"time": "2030-01-01T00:00:00Z"}]}, False),
        ({"spec": {"a": 1}}, True),
        ({"labels": {"a": "b"}}, True),
        ({"data": {"a": "b"}}, True),
    ],
)
def test_of_a_dependent_only_what_is_wanted_counts(change, passes):
    assert DependentPredicate().passes(update(snapshot(), snapshot(**change))) is passes


def test_of_a_dependent_creations_are_known_and_deletions_are_news():
    one = snapshot()

    assert not DependentPredicate().passes(CreateEvent(one))
    assert not DependentPredicate().passes(GenericEvent(one))
    assert DependentPredicate().passes(DeleteEvent(one))
    assert not DependentPredicate().passes(update(one, one))


def test_an_owner_in_another_namespace_is_named_by_annotations():
    owner = apps.Deployment(metadata=meta.ObjectMeta(name="owner", namespace="there"))
    child = core.ConfigMap(metadata=meta.ObjectMeta(name="child", namespace="here"))
    set_owner_annotations(owner, child)
    enqueued = Enqueued()

    enqueue_request_for_annotation(apps.Deployment).handle(
        CreateEvent(Snapshot.of(child.to_json(), core.ConfigMap.from_json)), enqueued
    )
    enqueue_request_for_annotation(apps.StatefulSet).handle(
        CreateEvent(Snapshot.of(child.to_json(), core.ConfigMap.from_json)), enqueued
    )

    assert child.metadata.annotations == {
        "operator-sdk/primary-resource": "there/owner",
        "operator-sdk/primary-resource-type": "Deployment.apps",
    }
    assert enqueued.requests == [ctrl.Request("there", "owner")]


def test_a_child_that_changes_hands_concerns_both_owners():
    names = {"operator-sdk/primary-resource-type": "Deployment.apps"}
    old = snapshot(annotations={**names, "operator-sdk/primary-resource": "one"})
    new = snapshot(annotations={**names, "operator-sdk/primary-resource": "ns/two"})
    enqueued = Enqueued()

    enqueue_request_for_annotation(apps.Deployment).handle(update(old, new), enqueued)
    enqueue_request_for_annotation(apps.Deployment).handle(update(new, new), enqueued)

    assert enqueued.requests == [ctrl.Request("", "one"), ctrl.Request("ns", "two"), ctrl.Request("ns", "two")]


@pytest.mark.parametrize("named", ["", "ns/", "a/b/c"])
def test_an_annotation_that_names_nobody_concerns_nobody(named):
    child = snapshot(
        annotations={"operator-sdk/primary-resource": named, "operator-sdk/primary-resource-type": "Deployment.apps"}
    )
    enqueued = Enqueued()

    enqueue_request_for_annotation(apps.Deployment).handle(CreateEvent(child), enqueued)

    assert enqueued.requests == []


def test_an_owner_without_a_name_is_refused():
    with pytest.raises(ValueError, match="without a name"):
        set_owner_annotations(apps.Deployment(), core.ConfigMap())


def test_the_metric_shows_what_there_is():
    registry = CollectorRegistry()
    handlers = [InstrumentedEnqueueRequestForObject(kind, registry) for kind in (core.ConfigMap, apps.Deployment)]
    there = snapshot(creationTimestamp="1970-01-01T00:01:00Z")
    enqueued = Enqueued()
    labels = {"name": "a", "namespace": "ns", "group": "", "version": "v1", "kind": "ConfigMap"}

    def shown():
        return registry.get_sample_value("resource_created_at_seconds", labels)

    handlers[0].handle(CreateEvent(there), enqueued)
    assert shown() == 60.0
    handlers[0].handle(update(there, there), enqueued)
    assert shown() == 60.0
    handlers[0].handle(DeleteEvent(there), enqueued)
    handlers[1].handle(DeleteEvent(there), enqueued)  # it never saw it
    assert shown() is None
    assert enqueued.requests == [ctrl.Request("ns", "a")] * 4


def test_the_proxy_is_handed_on_in_both_cases():
    found = proxy_variables({"HTTPS_PROXY": "http://p:1", "no_proxy": "a,b", "HTTP_PROXY": ""})

    assert [(each.name, each.value) for each in found] == [
        ("HTTPS_PROXY", "http://p:1"),
        ("https_proxy", "http://p:1"),
        ("NO_PROXY", "a,b"),
        ("no_proxy", "a,b"),
    ]


def test_an_image_is_what_its_variable_says():
    environ = {"RELATED_IMAGE_KUBE_RBAC_PROXY": "mirror/proxy@sha256:0"}

    assert related_image("kube-rbac-proxy", "upstream/proxy:1", environ) == "mirror/proxy@sha256:0"
    assert related_image("memcached", "memcached:1.6", environ) == "memcached:1.6"
    with pytest.raises(ConfigError, match="RELATED_IMAGE_MEMCACHED is not set"):
        related_image("memcached", environ=environ)

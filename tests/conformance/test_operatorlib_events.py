"""Handlers and predicates of operatorlib in a running manager, on both servers.

Each test waits for what passes before it does the next thing. What is stopped is shown by what comes after it: events of one kind arrive in
their order, so a request that is missing before a later one was stopped.
"""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import apps, core, meta, networking, rbac
from ctrlruntime.errors import Invalid
from ctrlruntime.handler import EnqueueRequestForObject
from ctrlruntime.operatorlib import (
    DependentPredicate,
    InstrumentedEnqueueRequestForObject,
    NoGenerationPredicate,
    PausePredicate,
    enqueue_request_for_annotation,
    pausable,
    set_owner_annotations,
)
from ctrlruntime.predicate import GenerationChangedPredicate
from ctrlruntime.testing import eventually

PAUSED = "example.com/paused"
METRIC = "resource_created_at_seconds"


@pytest.fixture
def far(new_namespace):
    return new_namespace()


class Seen:
    """Keeps the names it is asked to reconcile."""

    def __init__(self, client, registry):
        self.client = client
        self.registry = registry
        self.names = []

    async def reconcile(self, request):
        self.names.append(request.name)

    async def becomes(self, *names):
        await eventually(lambda: self.names == list(names), timeout=LONGEST_WAIT)


@contextlib.asynccontextmanager
async def watching(server, namespace, *kinds, handler=None, predicates=()):
    """Run a controller that sees the kinds in one namespace, where nothing is yet."""
    config = ctrl.get_config(str(server.kubeconfig_path))
    mgr = ctrl.new_manager(config, cache=ctrl.CacheOptions(namespaces=[namespace]), metrics_bind_address="0")
    seen = Seen(mgr.cluster.unfenced_client(), mgr.metrics.registry)
    builder = ctrl.new_controller_managed_by(mgr).named(f"seen-{namespace}")
    only_ours = ctrl.predicate.Funcs(create=lambda event: event.meta.name != "kube-root-ca.crt")
    for kind in kinds:
        made = handler(kind, mgr) if handler else EnqueueRequestForObject()
        builder.watches(kind, made, predicates=[only_ours, *predicates])
    watches = builder.build(seen).watches
    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT):
        await eventually(lambda: all(watch.is_synced for watch in watches), timeout=LONGEST_WAIT)
        yield seen


def config_map(namespace, name, **annotations):
    metadata = meta.ObjectMeta(name=name, namespace=namespace, annotations=annotations)
    return core.ConfigMap(metadata=metadata)


async def merged(client, obj, tree):
    await client.patch(obj, ctrl.merge_patch(tree))


class Owner:
    """Each ConfigMap with the label has a Secret in another namespace and a ClusterRole, which bear its name in annotations."""

    def __init__(self, client, far):
        self.client = client
        self.far = far
        self.requests = []

    async def reconcile(self, request):
        self.requests.append(request)
        owner = await self.client.get_or_none(core.ConfigMap, request)
        if owner is None or "owns" not in owner.metadata.labels:
            return
        for kind, key in ((core.Secret, ctrl.NamespacedName(self.far, owner.metadata.name)),
                          (rbac.ClusterRole, ctrl.NamespacedName("", f"{self.far}-{owner.metadata.name}"))):  # fmt: skip
            await ctrl.create_or_update(self.client, kind, key, lambda child: set_owner_annotations(owner, child))


async def test_children_elsewhere_are_made_again_by_the_owner_their_annotations_name(server, namespace, far):
    config = ctrl.get_config(str(server.kubeconfig_path))
    mgr = ctrl.new_manager(config, cache=ctrl.CacheOptions(namespaces=[namespace, far]), metrics_bind_address="0")
    reconciler = Owner(mgr.client, far)
    builder = ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap).named(f"annotated-{namespace}")
    for kind in (core.Secret, rbac.ClusterRole):
        builder.watches(kind, enqueue_request_for_annotation(core.ConfigMap))
    builder.complete(reconciler)
    api = mgr.cluster.unfenced_client()
    children = {
        core.Secret: ctrl.NamespacedName(far, "owner"),
        rbac.ClusterRole: ctrl.NamespacedName("", f"{far}-owner"),
    }

    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT):
        owner = config_map(namespace, "owner")
        owner.metadata.labels["owns"] = "yes"
        await api.create(owner)
        try:
            for kind, key in children.items():
                first = await eventually(lambda kind=kind, key=key: api.get_or_none(kind, key), timeout=LONGEST_WAIT)
                assert first.metadata.annotations["operator-sdk/primary-resource"] == f"{namespace}/owner"
                assert first.metadata.annotations["operator-sdk/primary-resource-type"] == "ConfigMap"
                assert not first.metadata.owner_references
                await api.delete(first)

                async def is_made_again(kind=kind, key=key, uid=first.metadata.uid):
                    found = await api.get_or_none(kind, key)
                    return found is not None and found.metadata.uid != uid

                await eventually(is_made_again, timeout=LONGEST_WAIT)
            reconciler.requests.clear()
            await api.create(core.Secret(metadata=meta.ObjectMeta(name="nobodys", namespace=far)))
            other = core.Secret(metadata=meta.ObjectMeta(name="anothers", namespace=far))
            set_owner_annotations(config_map(namespace, "another"), other)
            await api.create(other)
            await eventually(lambda: ctrl.Request(namespace, "another") in reconciler.requests, timeout=LONGEST_WAIT)
        finally:
            await api.delete(await api.get(rbac.ClusterRole, children[rbac.ClusterRole]))

    assert "nobodys" not in {request.name for request in reconciler.requests}


async def test_the_metric_has_what_there_is_until_it_is_deleted(server, namespace):
    def instrumented(kind, mgr):
        return InstrumentedEnqueueRequestForObject(kind, mgr.metrics.registry)

    labels = {"name": "a", "namespace": namespace, "group": "", "version": "v1", "kind": "ConfigMap"}

    async with watching(server, namespace, core.ConfigMap, handler=instrumented) as seen:
        made = await seen.client.create(config_map(namespace, "a"))
        await seen.becomes("a")
        created = seen.registry.get_sample_value(METRIC, labels)
        await merged(seen.client, made, {"data": {"a": "b"}})
        await seen.becomes("a", "a")
        unchanged = seen.registry.get_sample_value(METRIC, labels)
        await seen.client.delete(made)
        await seen.becomes("a", "a", "a")
        left = seen.registry.get_sample_value(METRIC, labels)

    assert created == unchanged == made.metadata.creation_timestamp.timestamp()
    assert left is None


@pytest.mark.parametrize("means", ["handler", "predicate"])
async def test_what_is_paused_is_left_alone_until_it_is_not(server, namespace, means):
    options = {
        "handler": {"handler": lambda *_: pausable(EnqueueRequestForObject(), PAUSED)},
        "predicate": {"predicates": [PausePredicate(PAUSED)]},
    }[means]

    async with watching(server, namespace, core.ConfigMap, **options) as seen:
        paused = await seen.client.create(config_map(namespace, "paused", **{PAUSED: "true"}))
        free = await seen.client.create(config_map(namespace, "free", **{PAUSED: "false"}))
        await seen.becomes("free")
        await merged(seen.client, paused, {"data": {"a": "1"}})
        await merged(seen.client, free, {"data": {"a": "1"}})
        await seen.becomes("free", "free")
        await merged(seen.client, paused, {"metadata": {"annotations": {PAUSED: None}}})
        await seen.becomes("free", "free", "paused")
        await merged(seen.client, free, {"metadata": {"annotations": {PAUSED: "1"}}})
        await seen.client.delete(free)
        await seen.client.delete(paused)
        await seen.becomes("free", "free", "paused", "paused")


@pytest.mark.parametrize(
    "key", ["paused", "Example.com/Paused", "a.b/c_d", "a..b/x", "-a/x", "a/b/x", "a/", "a b", "a/" + "x" * 64]
)
async def test_a_key_is_taken_when_the_server_takes_it(server, namespace, key):
    cluster = ctrl.Cluster(ctrl.get_config(str(server.kubeconfig_path)))

    def is_taken():
        try:
            PausePredicate(key)
        except ValueError:
            return False
        return True

    try:
        await cluster.unfenced_client().create(config_map(namespace, "a", **{key: "true"}))
        is_stored = True
    except Invalid:
        is_stored = False
    finally:
        await cluster.close()

    assert is_taken() == is_stored


def deployment(namespace):
    labels = {"app": "a"}
    template = core.PodTemplateSpec(
        metadata=meta.ObjectMeta(labels=labels), spec=core.PodSpec(containers=[core.Container(name="c", image="i")])
    )
    return apps.Deployment(
        metadata=meta.ObjectMeta(name="counted", namespace=namespace),
        spec=apps.DeploymentSpec(replicas=0, selector=meta.LabelSelector(match_labels=labels), template=template),
    )


async def test_changes_of_the_spec_pass_and_all_changes_of_kinds_that_count_no_generation(server, namespace):
    predicate = GenerationChangedPredicate() | NoGenerationPredicate()

    async with watching(server, namespace, apps.Deployment, core.ConfigMap, predicates=[predicate]) as seen:
        counted = await seen.client.create(deployment(namespace))
        await seen.becomes("counted")
        plain = await seen.client.create(config_map(namespace, "plain"))
        await seen.becomes("counted", "plain")
        await merged(seen.client, counted, {"metadata": {"labels": {"a": "b"}}})
        await merged(seen.client, plain, {"metadata": {"labels": {"a": "b"}}})
        await seen.becomes("counted", "plain", "plain")
        await merged(seen.client, counted, {"spec": {"replicas": 1}})
        await seen.becomes("counted", "plain", "plain", "counted")
        await merged(seen.client, plain, {"data": {"a": "b"}})
        await seen.becomes("counted", "plain", "plain", "counted", "plain")
        generation = (await seen.client.get(core.ConfigMap, ctrl.object_key(plain))).metadata.generation

    assert not generation
    assert counted.metadata.generation == 2


async def test_of_a_dependent_its_status_is_no_news_its_spec_and_its_end_are(server, namespace):
    backend = networking.IngressBackend(
        service=networking.IngressServiceBackend(name="web", port=networking.ServiceBackendPort(number=80))
    )

    def ingress(name):
        return networking.Ingress(
            metadata=meta.ObjectMeta(name=name, namespace=namespace),
            spec=networking.IngressSpec(default_backend=backend),
        )

    async with watching(server, namespace, networking.Ingress, predicates=[DependentPredicate()]) as seen:
        first, second = [await seen.client.create(ingress(name)) for name in ("first", "second")]
        address = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}
        await seen.client.status.patch(first, ctrl.merge_patch(address))
        assert first.status.load_balancer.ingress[0].ip == "192.0.2.1"
        await merged(seen.client, second, {"spec": {"rules": [{"host": "second.example.com"}]}})
        await seen.becomes("second")
        await merged(seen.client, first, {"metadata": {"labels": {"a": "b"}}})
        await seen.becomes("second", "first")
        await seen.client.delete(second)
        await seen.becomes("second", "first", "second")

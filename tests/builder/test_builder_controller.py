"""The controller builder: what it makes, and what it refuses."""

from __future__ import annotations

import asyncio
import json

import pytest
from servers import LONGEST_WAIT

from ctrlruntime.api import Object, PartialObjectMetadata, Unstructured, apps, core
from ctrlruntime.builder import new_controller_managed_by
from ctrlruntime.cache.subscription import Subscription
from ctrlruntime.controller.options import ControllerDefaults
from ctrlruntime.errors import ConfigError, NotRegisteredError
from ctrlruntime.event import CreateEvent, Snapshot, UpdateEvent
from ctrlruntime.handler import EnqueueRequestForObject, Funcs, enqueue_requests_from_map_func
from ctrlruntime.journal import Journal
from ctrlruntime.manager.declarations import Declarations, Watch
from ctrlruntime.metrics import Metrics
from ctrlruntime.predicate import GenerationChangedPredicate
from ctrlruntime.reconcile import Request
from ctrlruntime.scheme import Scheme
from ctrlruntime.source import Channel, EventChannel
from ctrlruntime.testing.eventually import eventually


class Memcached(Object, group="cache.example.com", version="v1alpha1"):
    pass


class Unknown(Object, group="cache.example.com", version="v1alpha1"):
    pass


class Cache:
    def __init__(self):
        self.subscriptions = {}

    async def subscribe(self, kind, *, name):
        subscription = self.subscriptions[kind] = Subscription(name)
        subscription.put_synced()
        return subscription


class Mapper:
    async def is_namespaced(self, gvk):
        return gvk.kind != "ClusterThing"


class FakeManager:
    def __init__(self, **defaults):
        self.scheme = Scheme(Memcached)
        self.mapper = Mapper()
        self.cache = Cache()
        self.metrics = Metrics()
        self.journal = Journal()
        self.tracing = None
        self.controller_defaults = ControllerDefaults(**defaults)
        self.declarations = Declarations()
        self.names = []
        self.runnables = []

    def add(self, runnable):
        self.runnables.append(runnable)


class Reconciler:
    def __init__(self):
        self.calls = asyncio.Queue()

    async def reconcile(self, request):
        self.calls.put_nowait(request)

    async def next(self):
        return await asyncio.wait_for(self.calls.get(), LONGEST_WAIT)


def snapshot(name, *, version="1", generation=1, owners=()):
    references = [
        {"apiVersion": api_version, "kind": kind, "name": owner, "uid": "u", "controller": controller}
        for api_version, kind, owner, controller in owners
    ]
    metadata = {
        "name": name,
        "namespace": "ns",
        "resourceVersion": version,
        "generation": generation,
        "ownerReferences": references,
    }
    return Snapshot.of(json.dumps({"metadata": metadata}).encode(), json.loads)


class Running:
    """The controller a builder makes, running on subscriptions a test feeds."""

    def __init__(self, builder, manager):
        self.reconciler = Reconciler()
        self.controller = builder.build(self.reconciler)
        self.manager = manager

    async def __aenter__(self):
        self.task = asyncio.create_task(self.controller.start())
        await eventually(
            lambda: all(watch.is_synced for watch in self.controller.watches), timeout=LONGEST_WAIT, interval=0.001
        )
        return self

    async def __aexit__(self, *_):
        await self.controller.stop(0)
        await self.task

    def put(self, kind, event):
        self.manager.cache.subscriptions[kind].put(event)

    async def next(self):
        return await self.reconciler.next()


OURS = ("cache.example.com/v1alpha1", "Memcached")


async def test_for_enqueues_the_object_and_owns_its_controller():
    manager = FakeManager()
    async with Running(new_controller_managed_by(manager).for_(Memcached).owns(apps.Deployment), manager) as it:
        it.put(Memcached, CreateEvent(snapshot("own")))
        assert await it.next() == Request("ns", "own")
        assert await eventually(
            lambda: manager.journal.history("memcached", Request("ns", "own")).runs, timeout=LONGEST_WAIT
        )

        it.put(apps.Deployment, CreateEvent(snapshot("other", owners=[(*OURS, "not-controller", None)])))
        it.put(apps.Deployment, CreateEvent(snapshot("child", owners=[(*OURS, "parent", True)])))
        assert await it.next() == Request("ns", "parent")


async def test_owns_may_match_every_owner():
    manager = FakeManager()
    builder = new_controller_managed_by(manager).for_(Memcached).owns(core.ConfigMap, match_every_owner=True)
    async with Running(builder, manager) as it:
        it.put(core.ConfigMap, CreateEvent(snapshot("child", owners=[(*OURS, "parent", None)])))
        assert await it.next() == Request("ns", "parent")


async def test_owner_scope_of_an_unstructured_kind_is_asked_of_the_server():
    manager = FakeManager()
    thing = Unstructured.of("example.com/v1", "ClusterThing")
    async with Running(new_controller_managed_by(manager).for_(thing).owns(core.ConfigMap), manager) as it:
        owner = ("example.com/v1", "ClusterThing", "parent", True)
        it.put(core.ConfigMap, CreateEvent(snapshot("child", owners=[owner])))
        assert await it.next() == Request("", "parent")


async def test_event_filters_apply_to_every_kind_and_predicates_to_their_own():
    manager = FakeManager()
    builder = (
        new_controller_managed_by(manager)
        .for_(Memcached, predicates=[GenerationChangedPredicate()])
        .watches(core.Secret, EnqueueRequestForObject())
        .with_event_filter(lambda event: event.meta.name != "ignored")
    )
    async with Running(builder, manager) as it:
        for kind in (Memcached, core.Secret):
            it.put(kind, CreateEvent(snapshot("ignored")))
        it.put(Memcached, UpdateEvent(snapshot("status", version="1"), snapshot("status", version="2")))
        it.put(core.Secret, UpdateEvent(snapshot("secret", version="1"), snapshot("secret", version="2")))
        assert await it.next() == Request("ns", "secret")


async def test_raw_sources_are_not_filtered():
    manager = FakeManager()
    channel = EventChannel()
    builder = (
        new_controller_managed_by(manager)
        .named("raw")
        .watches_raw_source(Channel(channel, EnqueueRequestForObject()))
        .with_event_filter(lambda event: False)
    )
    async with Running(builder, manager) as it:
        await channel.put(CreateEvent(snapshot("any")))
        assert await it.next() == Request("ns", "any")


async def test_metadata_watches_subscribe_to_the_metadata_of_the_kind():
    manager = FakeManager()
    builder = (
        new_controller_managed_by(manager)
        .for_(Memcached)
        .owns(apps.Deployment, only_metadata=True)
        .watches_metadata(core.Secret, EnqueueRequestForObject())
    )
    async with Running(builder, manager):
        assert set(manager.cache.subscriptions) == {
            Memcached,
            PartialObjectMetadata.of(apps.Deployment),
            PartialObjectMetadata.of(core.Secret),
        }


async def test_requests_of_another_class():
    manager = FakeManager()
    handler = Funcs(create=lambda event, enqueue: enqueue(event.meta.name))
    builder = new_controller_managed_by(manager, request=str).named("texts").watches(core.Secret, handler)
    async with Running(builder, manager) as it:
        it.put(core.Secret, CreateEvent(snapshot("text")))
        assert await it.next() == "text"


def test_the_controller_is_named_after_its_kind_and_added_to_the_manager():
    manager = FakeManager()
    controller = new_controller_managed_by(manager).for_(Memcached).build(Reconciler())

    assert controller.name == "memcached"
    assert (controller.group, controller.kind) == ("cache.example.com", "Memcached")
    assert manager.runnables == [controller]


def test_named_wins_over_the_kind():
    manager = FakeManager()
    new_controller_managed_by(manager).for_(Memcached).named("other").complete(Reconciler())
    assert [controller.name for controller in manager.runnables] == ["other"]


def test_what_the_manager_refuses_to_run_is_not_declared():
    class Full(FakeManager):
        def add(self, runnable):
            raise ConfigError("the name is taken")

    manager = Full()
    with pytest.raises(ConfigError, match="is taken"):
        new_controller_managed_by(manager).for_(Memcached).complete(Reconciler())
    assert manager.declarations.watches == []


def test_the_defaults_of_the_manager_hold_for_what_a_controller_does_not_say():
    manager = FakeManager(cache_sync_timeout=7.0, recover_panic=False, warm_caches=False)
    build = new_controller_managed_by
    plain = build(manager).for_(Memcached).build(Reconciler())
    own = build(manager).for_(Memcached).with_options(cache_sync_timeout=1.0, recover_panic=True).build(Reconciler())

    assert (plain.options.cache_sync_timeout, plain.options.recover_panic, plain.options.warm_caches) == (
        7,
        False,
        False,
    )
    assert (own.options.cache_sync_timeout, own.options.recover_panic, own.options.warm_caches) == (1, True, False)


@pytest.mark.parametrize(
    ("config", "own", "expected"),
    [
        ({}, {}, 1),
        ({"max_concurrent_reconciles": 2}, {}, 2),
        (
            {
                "max_concurrent_reconciles": 2,
                "group_kind_concurrency": {"Memcached.cache.example.com": 3},
            },
            {},
            3,
        ),
        ({"group_kind_concurrency": {"Memcached.cache.example.com": 3}}, {"max_concurrent_reconciles": 4}, 4),
    ],
)
def test_concurrency_is_the_controllers_then_by_kind_then_the_managers_then_one(config, own, expected):
    manager = FakeManager(**config)
    controller = new_controller_managed_by(manager).for_(Memcached).with_options(**own).build(Reconciler())
    assert controller.options.max_concurrent_reconciles == expected


def test_options_of_several_calls_add_up_and_others_stay_the_managers():
    manager = FakeManager(reconciliation_timeout=9.0, enable_warmup=True)
    builder = new_controller_managed_by(manager).for_(Memcached).with_options(enable_warmup=False)
    controller = (
        builder.with_options(max_concurrent_reconciles=2).with_log_constructor(lambda _: {}).build(Reconciler())
    )

    options = controller.options
    assert (options.reconciliation_timeout, options.enable_warmup, options.max_concurrent_reconciles) == (9.0, False, 2)
    assert options.log_constructor is not None


def builder():
    return new_controller_managed_by(FakeManager())


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: new_controller_managed_by(None), ConfigError, "a manager is needed"),
        (lambda: builder().for_(Memcached).for_(core.Pod), ConfigError, "one root kind"),
        (lambda: builder().for_(Memcached()), ConfigError, "class of a kind"),
        (lambda: builder().owns(int), ConfigError, "is not a subclass"),
        (lambda: builder().named("x").build(Reconciler()), ConfigError, "watches nothing"),
        (lambda: builder().named("x").owns(core.Pod).build(Reconciler()), ConfigError, "needs an owner kind"),
        (
            lambda: builder().watches(core.Pod, EnqueueRequestForObject()).build(Reconciler()),
            ConfigError,
            "has no name",
        ),
        (lambda: builder().for_(Memcached).build(None), TypeError, "a reconciler is an object"),
        (lambda: builder().for_(Memcached).build(lambda: None), TypeError, "called with one argument, the request"),
        (lambda: builder().for_(Memcached).build(lambda one, two: None), TypeError, "called with one argument"),
        (lambda: builder().for_(Memcached).watches(core.Pod, None).build(Reconciler()), TypeError, "event handler"),
        (lambda: builder().for_(Unknown).build(Reconciler()), NotRegisteredError, "scheme.register"),
        (lambda: builder().for_(Memcached).owns(Unknown).build(Reconciler()), NotRegisteredError, "scheme.register"),
        (
            lambda: builder().with_options(concurrency=2),
            ConfigError,
            "unknown controller option concurrency; the options are max_concurrent",
        ),
        (
            lambda: builder().for_(Memcached).with_options(max_concurrent_reconciles=0).build(Reconciler()),
            ValueError,
            "1 or more",
        ),
        (lambda: new_controller_managed_by(FakeManager(), request=str).for_(Memcached), ConfigError, "watches"),
        (lambda: new_controller_managed_by(FakeManager(), request=str).owns(core.Pod), ConfigError, "watches"),
    ],
)
def test_what_does_not_go_together_is_refused_with_advice(build, error, message):
    with pytest.raises(error, match=message):
        build()


def test_a_builder_builds_once():
    once = builder().for_(Memcached)
    once.complete(Reconciler())
    with pytest.raises(ConfigError, match="built its controller"):
        once.complete(Reconciler())


def test_a_failed_build_takes_no_name():
    manager = FakeManager()
    with pytest.raises(NotRegisteredError):
        new_controller_managed_by(manager).for_(Unknown).complete(Reconciler())
    assert manager.names == []
    assert manager.runnables == []


def test_map_functions_fit_watches():
    manager = FakeManager()
    handler = enqueue_requests_from_map_func(lambda secret: [Request(secret.metadata.namespace, "all")])
    controller = new_controller_managed_by(manager).for_(Memcached).watches(core.Secret, handler).build(Reconciler())
    assert len(controller.watches) == 2


def test_the_manager_keeps_what_the_builder_was_told():
    manager = FakeManager()
    handler = enqueue_requests_from_map_func(lambda secret: [Request(secret.metadata.namespace, "all")])

    (
        new_controller_managed_by(manager)
        .for_(Memcached)
        .owns(apps.Deployment)
        .watches(core.Secret, handler)
        .complete(Reconciler())
    )

    assert manager.declarations.watches == [
        Watch("memcached", Memcached, "for"),
        Watch("memcached", apps.Deployment, "owns"),
        Watch("memcached", core.Secret, "watches"),
    ]

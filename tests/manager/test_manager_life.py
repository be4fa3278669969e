"""What a manager starts and stops, in which order, and what it says when something fails."""

from __future__ import annotations

import asyncio
import contextlib
import threading

import pytest
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from ctrlruntime.errors import CacheNotStartedError, ConfigError
from ctrlruntime.manager.manager import running
from ctrlruntime.manager.runnables import StopTimeoutError
from ctrlruntime.testing import eventually

pytestmark = pytest.mark.usefixtures("nothing_left")


class Noted:
    """A runnable that notes in `notes` when it starts and ends."""

    def __init__(self, name, notes, *, leader=True, error=None, ends=None):
        self.name = name
        self.notes = notes
        self.needs_leader_election = leader
        self.error = error
        self.ends = ends
        self.started = asyncio.Event()

    async def start(self):
        self.notes.append(f"{self.name} starts")
        self.started.set()
        if self.error is not None:
            raise self.error
        try:
            await asyncio.sleep(3600)
        finally:
            if self.ends is not None:
                await self.ends.wait()
            self.notes.append(f"{self.name} ends")


class Stubborn:
    """A runnable that swallows cancellations until `release` is set."""

    needs_leader_election = False

    def __init__(self):
        self.release = asyncio.Event()
        self.started = asyncio.Event()

    def __repr__(self):
        return "Stubborn"

    async def start(self):
        self.started.set()
        while not self.release.is_set():
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                continue


def config_map(namespace, name, **data):
    return core.ConfigMap(metadata=meta.ObjectMeta(name=name, namespace=namespace), data=data)


# --- order ----------------------------------------------------------------------------------------------------------


async def test_what_needs_no_leader_starts_first_and_stops_first(make):
    notes = []
    mgr = make()
    leader, other = Noted("leader", notes), Noted("other", notes, leader=False)
    mgr.add(leader)
    mgr.add(other)

    async with running(mgr):
        await asyncio.wait_for(leader.started.wait(), LONGEST_WAIT)

    assert notes == ["other starts", "leader starts", "other ends", "leader ends"]


async def test_the_cache_answers_before_runnables_start_and_until_they_have_ended(make, namespace):
    mgr = make()
    seen = []

    async def read():
        seen.append(len(await mgr.client.list(core.ConfigMap, namespace=namespace)))
        try:
            await asyncio.sleep(3600)
        finally:
            seen.append(len(await mgr.client.list(core.ConfigMap, namespace=namespace)))

    mgr.add(read)
    async with running(mgr):
        await eventually(lambda: seen)

    assert len(seen) == 2


async def test_without_election_the_manager_is_elected_at_once(make):
    mgr = make()

    async with running(mgr):
        await asyncio.wait_for(mgr.elected.wait(), LONGEST_WAIT)


async def test_a_runnable_added_late_starts_at_once(make):
    notes = []
    mgr = make()

    async with running(mgr):
        await asyncio.wait_for(mgr.elected.wait(), LONGEST_WAIT)
        late = Noted("late", notes)
        mgr.add(late)
        await asyncio.wait_for(late.started.wait(), LONGEST_WAIT)

    assert notes == ["late starts", "late ends"]


async def test_nothing_is_added_while_the_manager_stops(make):
    mgr = make()
    refused = []

    async def at_the_end():
        try:
            await asyncio.sleep(3600)
        finally:
            try:
                mgr.add(Noted("too late", []))
            except RuntimeError as error:
                refused.append(str(error))

    mgr.add(at_the_end)
    async with running(mgr):
        await asyncio.wait_for(mgr.elected.wait(), LONGEST_WAIT)
        await asyncio.sleep(0)

    assert refused
    assert "the manager is stopping" in refused[0]


@pytest.mark.parametrize("what", [3, Noted, "text"])
def test_what_cannot_be_run_is_refused_when_it_is_added(make, what):
    with pytest.raises(TypeError, match="async def start"):
        make().add(what)


async def test_a_start_that_is_not_async_is_named(make):
    class Plain:
        def __repr__(self):
            return "Plain"

        def start(self):
            return 3

    mgr = make()
    mgr.add(Plain())

    with pytest.raises(TypeError, match=r"cannot run .*Plain.*: its start must be async, but returned 3"):
        await asyncio.wait_for(mgr.start(), LONGEST_WAIT)


async def test_a_second_start_is_refused(make):
    mgr = make()
    async with running(mgr):
        with pytest.raises(RuntimeError, match="the manager: it was started before"):
            await mgr.start()

    with pytest.raises(RuntimeError, match="the manager: it was started before"):
        await mgr.start()


async def test_a_manager_may_be_stopped_before_it_is_started(make):
    mgr = make()
    mgr.stop()

    await asyncio.wait_for(mgr.start(), LONGEST_WAIT)

    assert not mgr.elected.is_set()


async def test_reads_before_the_start_say_what_to_use(make):
    mgr = make()

    with pytest.raises(CacheNotStartedError, match=r"mgr\.api_reader"):
        await mgr.client.get(core.Namespace, ctrl.NamespacedName("", "default"))
    assert (await mgr.api_reader.get(core.Namespace, ctrl.NamespacedName("", "default"))).metadata.name == "default"
    await mgr.cluster.close()


# --- errors ---------------------------------------------------------------------------------------------------------


async def test_the_first_error_ends_the_manager_and_is_raised(make):
    notes = []
    mgr = make()
    good = Noted("good", notes)
    mgr.add(good)
    mgr.add(Noted("bad", notes, error=LookupError("no luck")))

    with pytest.raises(LookupError, match="no luck"):
        await asyncio.wait_for(mgr.start(), LONGEST_WAIT)

    assert notes[-1] == "good ends"


async def test_several_errors_are_raised_as_a_group(make):
    class Breaking(Noted):
        async def start(self):
            try:
                await super().start()
            finally:
                raise ValueError("in the end")

    mgr = make()
    mgr.add(Breaking("breaking", []))
    mgr.add(Noted("bad", [], error=LookupError("no luck")))

    with pytest.raises(ExceptionGroup) as caught:
        await asyncio.wait_for(mgr.start(), LONGEST_WAIT)

    assert [type(error) for error in caught.value.exceptions] == [LookupError, ValueError]


async def test_a_runnable_that_ends_by_itself_ends_nothing_else(make):
    mgr = make()
    done = asyncio.Event()

    async def short():
        done.set()

    mgr.add(short)
    async with running(mgr):
        await asyncio.wait_for(done.wait(), LONGEST_WAIT)
        await asyncio.sleep(0)
        assert not mgr.is_stopping


async def test_a_cancelled_start_stops_everything_and_is_cancelled(make):
    notes = []
    mgr = make()
    runnable = Noted("one", notes)
    mgr.add(runnable)
    task = asyncio.ensure_future(mgr.start())
    await asyncio.wait_for(runnable.started.wait(), LONGEST_WAIT)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert notes == ["one starts", "one ends"]


async def test_a_second_cancellation_cuts_the_grace_short(make):
    mgr = make(graceful_shutdown_timeout=None)
    reconciles = Reconciles()
    controller_of(mgr, reconciles, "hang")
    task = asyncio.ensure_future(mgr.start())
    await asyncio.wait_for(reconciles.entered.wait(), LONGEST_WAIT)

    task.cancel()
    await eventually(lambda: mgr.is_stopping)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, LONGEST_WAIT)
    assert reconciles.was_cancelled


# --- the graceful stop ----------------------------------------------------------------------------------------------


class Reconciles:
    """Hangs in its reconcile until `release`, then calls `work`."""

    def __init__(self, work=None):
        self.entered = asyncio.Event()
        self.release = asyncio.Event()
        self.was_cancelled = False
        self.work = work
        self.result = None

    async def reconcile(self, request):
        self.entered.set()
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        if self.work is not None:
            self.result = await self.work()


def controller_of(mgr, reconciler, name, **options):
    """A controller that reconciles one request from the start."""

    async def fill(queue):
        queue.add(ctrl.Request("ns", "name"))

    builder = ctrl.new_controller_managed_by(mgr).named(name).watches_raw_source(ctrl.source.Func(fill))
    return builder.with_options(**options).build(reconciler)


async def test_a_running_reconcile_finishes_with_a_working_client(make, namespace):
    mgr = make()
    reconciler = Reconciles(lambda: mgr.client.create(config_map(namespace, "last-words")))
    controller_of(mgr, reconciler, "patient")
    task = asyncio.ensure_future(mgr.start())
    await asyncio.wait_for(reconciler.entered.wait(), LONGEST_WAIT)

    mgr.stop()
    await eventually(lambda: mgr.is_stopping)
    reconciler.release.set()
    await asyncio.wait_for(task, LONGEST_WAIT)

    assert not reconciler.was_cancelled
    assert reconciler.result.metadata.uid


async def test_a_reconcile_that_outlasts_the_grace_is_cancelled_and_that_is_a_warning(make, logs):
    mgr = make(graceful_shutdown_timeout=0.05)
    reconciler = Reconciles()
    controller_of(mgr, reconciler, "slow")
    task = asyncio.ensure_future(mgr.start())
    await asyncio.wait_for(reconciler.entered.wait(), LONGEST_WAIT)

    mgr.stop()
    await asyncio.wait_for(task, LONGEST_WAIT)

    assert reconciler.was_cancelled
    (line,) = [line for line in logs if line["event"] == "reconcile cancelled by shutdown"]
    assert (line["level"], line["request"]) == ("warning", "ns/name")


@pytest.mark.parametrize(("grace", "fails"), [(0.05, True), (0, False)])
async def test_a_reconcile_that_ignores_the_end_of_the_grace_fails_the_stop(make, grace, fails):
    async def reconcile(request):
        entered.set()
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()

    entered, release = asyncio.Event(), asyncio.Event()
    mgr = make(graceful_shutdown_timeout=grace)
    controller_of(mgr, reconcile, "stubborn", cancel_interval=0.01)
    task = asyncio.ensure_future(mgr.start())
    await asyncio.wait_for(entered.wait(), LONGEST_WAIT)

    mgr.stop()
    expected = pytest.raises(StopTimeoutError, match=r"reconcile of ns/name did not end within the 0\.05 s")
    with expected if fails else contextlib.nullcontext():
        await asyncio.wait_for(task, LONGEST_WAIT)
    release.set()
    await asyncio.sleep(0)


async def test_one_grace_is_shared_by_all_groups(make):
    mgr = make(graceful_shutdown_timeout=0.3)
    first = Stubborn()
    reconciler = Reconciles()
    mgr.add(first)
    controller_of(mgr, reconciler, "second")
    task = asyncio.ensure_future(mgr.start())
    await asyncio.wait_for(reconciler.entered.wait(), LONGEST_WAIT)
    stopped_at = asyncio.get_running_loop().time()

    mgr.stop()
    with pytest.raises(StopTimeoutError, match=r"Stubborn did not end within the 0\.3 s of graceful_shutdown_timeout"):
        await asyncio.wait_for(task, LONGEST_WAIT)

    assert reconciler.was_cancelled
    assert asyncio.get_running_loop().time() - stopped_at < 2.5
    first.release.set()
    await asyncio.sleep(0)


async def test_without_grace_what_does_not_end_is_left_behind_without_error(make, logs):
    mgr = make(graceful_shutdown_timeout=0)
    stubborn = Stubborn()
    mgr.add(stubborn)
    task = asyncio.ensure_future(mgr.start())
    await asyncio.wait_for(stubborn.started.wait(), LONGEST_WAIT)

    mgr.stop()
    await asyncio.wait_for(task, LONGEST_WAIT)

    assert [line["runnable"] for line in logs if "abandoned" in line["event"]] == ["Stubborn"]
    stubborn.release.set()
    await asyncio.sleep(0)


async def test_a_stop_that_hangs_does_not_hang_the_manager(make, monkeypatch):
    monkeypatch.setattr("ctrlruntime.manager.runnables._MARGIN", 0.1)

    class Hanging:
        needs_leader_election = False
        started = asyncio.Event()

        async def start(self):
            self.started.set()
            await asyncio.sleep(3600)

        async def stop(self, grace):
            await asyncio.sleep(3600)

    mgr = make(graceful_shutdown_timeout=0.05)
    mgr.add(Hanging())
    task = asyncio.ensure_future(mgr.start())
    await asyncio.wait_for(Hanging.started.wait(), LONGEST_WAIT)

    mgr.stop()

    await asyncio.wait_for(task, LONGEST_WAIT)


async def test_a_planned_stop_logs_no_error(make, logs, namespace):
    mgr = make()
    reconciler = Reconciles()
    controller_of(mgr, reconciler, "any")
    async with running(mgr):
        await asyncio.wait_for(reconciler.entered.wait(), LONGEST_WAIT)
        reconciler.release.set()

    assert [line for line in logs if line["level"] in {"warning", "error"}] == []


# --- several in one process -----------------------------------------------------------------------------------------


async def test_two_managers_live_in_one_process(make, namespace):
    seen = {}

    def counting(mgr, name):
        async def reconcile(request):
            seen.setdefault(name, set()).add(request.name)

        ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap).named("same").complete(reconcile)

    one, two = make(), make()
    counting(one, "one")
    counting(two, "two")

    async with running(one), running(two):
        await one.client.create(config_map(namespace, "shared"))
        await eventually(lambda: "shared" in seen.get("one", ()) and "shared" in seen.get("two", ()))

    assert one.metrics is not two.metrics


async def test_controllers_of_a_manager_share_one_list_and_one_watch(make, namespace):
    mgr = make()
    paths = []
    stream, request = mgr.cluster.transport.stream, mgr.cluster.transport.request

    def noting_stream(path, **options):
        paths.append(("stream", path))
        return stream(path, **options)

    async def noting_request(method, path, **options):
        paths.append((method, path))
        return await request(method, path, **options)

    mgr.cluster.transport.stream, mgr.cluster.transport.request = noting_stream, noting_request
    reconciled = {"one": asyncio.Event(), "two": asyncio.Event(), "three": asyncio.Event()}
    for name, event in reconciled.items():

        async def reconcile(request, event=event):
            await mgr.client.list(core.ConfigMap)
            event.set()

        ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap).named(name).complete(reconcile)

    async with running(mgr):
        await mgr.client.create(config_map(namespace, "one"))
        for event in reconciled.values():
            await asyncio.wait_for(event.wait(), LONGEST_WAIT)

    asked = [method for method, path in paths if path == "/api/v1/configmaps"]
    # A streaming list is list and watch in one; a server without it is asked for one of each.
    assert asked in (["stream"], ["GET", "stream"], ["stream", "GET", "stream"])


async def test_another_cluster_starts_and_stops_with_the_manager(make, config, namespace):
    mgr = make()
    other = ctrl.Cluster(config, name="other")
    mgr.add(other)
    recorder = other.event_recorder("somebody")

    async with running(mgr):
        await asyncio.wait_for(mgr.elected.wait(), LONGEST_WAIT)
        assert (await other.client.get(core.Namespace, ctrl.NamespacedName("", namespace))).metadata.name == namespace
        about = config_map(namespace, "subject")
        recorder.event(about, reason="Tested", action="Test", note="it works")

        async def recorded():
            from ctrlruntime.api.events.v1 import Event

            events = await mgr.api_reader.list(Event, namespace=namespace)
            return [event.note for event in events]

        assert await eventually(recorded) == ["it works"]

    assert not other.cache.is_running


def test_a_cluster_is_added_once(make, config):
    mgr = make()
    other = ctrl.Cluster(config, name="other")
    mgr.add(other)

    with pytest.raises(ConfigError, match=r"the manager has a cluster named 'other'\. Add each cluster once"):
        mgr.add(other)


@pytest.mark.parametrize(("name", "named"), [("eu", "a cluster named 'eu'"), ("", "a cluster without a name, its own")])
def test_cluster_names_are_unique_in_a_manager(make, config, name, named):
    mgr = make()
    mgr.add(ctrl.Cluster(config, name="eu"))

    with pytest.raises(ConfigError, match=rf"cannot add the cluster https://.*: the manager has {named}\."):
        mgr.add(ctrl.Cluster(config, name=name))


def test_two_controllers_of_one_name_are_refused(make):
    mgr = make()
    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap).complete(lambda request: None)

    with pytest.raises(ConfigError, match=r"one of this name.* another name with \.named"):
        ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap).complete(lambda request: None)


async def test_events_recorded_at_the_end_are_still_written(make, namespace):
    from ctrlruntime.api.events.v1 import Event

    mgr = make()
    recorder = mgr.event_recorder("late")

    async def last_words():
        try:
            await asyncio.sleep(3600)
        finally:
            recorder.event(config_map(namespace, "subject"), reason="Ended", action="End", note="good bye")

    mgr.add(last_words)
    async with running(mgr):
        await asyncio.wait_for(mgr.elected.wait(), LONGEST_WAIT)
        await asyncio.sleep(0)

    events = await mgr.api_reader.list(Event, namespace=namespace)
    assert [event.note for event in events] == ["good bye"]
    await mgr.cluster.close()


def test_new_manager_needs_a_config():
    with pytest.raises(ConfigError, match=r"ctrl\.get_config"):
        ctrl.new_manager(None)


async def test_no_thread_of_a_plain_reconciler_outlives_the_manager(make):
    mgr = make()
    done = threading.Event()

    def reconcile(request):
        done.set()

    controller_of(mgr, reconcile, "plain")
    async with running(mgr):
        await eventually(done.is_set)

    await eventually(lambda: not [t for t in threading.enumerate() if t.name.startswith("reconcile-plain")])


async def test_a_server_that_is_not_there_is_waited_for(logs):
    mgr = ctrl.new_manager(ctrl.Config(host="http://127.0.0.1:1"), metrics_bind_address="0")
    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap).complete(lambda request: None)

    async with running(mgr):
        line = await eventually(lambda: next((line for line in logs if line["level"] == "warning"), None))
        assert "cannot connect to http://127.0.0.1:1" in line["error"]
        assert not mgr.is_stopping


async def test_a_read_right_after_a_write_is_answered_by_the_cache_in_time(make, namespace):
    # The change arrives about when the read begins to wait: it must not be missed in between.
    mgr = make()

    async with running(mgr):
        await mgr.client.list(core.ConfigMap)
        for number in range(20):
            obj = await mgr.client.create(config_map(namespace, f"object-{number}", step="0"))
            assert (await mgr.client.get(core.ConfigMap, ctrl.object_key(obj))).data == {"step": "0"}
            obj.data["step"] = "1"
            await mgr.client.update(obj)
            assert (await mgr.client.get(core.ConfigMap, ctrl.object_key(obj))).data == {"step": "1"}

    assert mgr.cluster.gate.read_fallbacks == 0


def controller(name, **options):
    return ctrl.Controller(name, lambda request: None, options=ctrl.ControllerOptions(**options))


def test_a_controller_made_by_hand_may_not_have_the_name_of_another_one(make):
    mgr = make()
    mgr.add(controller("one"))

    with pytest.raises(ConfigError, match="cannot add controller one"):
        mgr.add(controller("one"))
    with pytest.raises(ConfigError, match="cannot add controller one"):
        mgr.register_controller_name("one")
    mgr.add(controller("one", skip_name_validation=True))


def test_a_name_that_was_registered_is_for_the_controller_that_is_added_then(make):
    mgr = make()
    mgr.register_controller_name("one")
    mgr.add(controller("one"))

    with pytest.raises(ConfigError, match="cannot add controller one"):
        mgr.add(controller("one"))


async def test_the_name_of_a_controller_that_was_stopped_is_free_again(make):
    mgr = make()
    first, second = controller("one"), controller("one")
    mgr.add(first)
    async with running(mgr):
        await eventually(lambda: first.is_started)
        await first.stop()

        def add():
            with contextlib.suppress(ConfigError):
                mgr.add(second)
                return True
            return False

        await eventually(add)
        await eventually(lambda: second.is_started)


async def test_a_name_has_one_recorder_of_events(make):
    mgr = make()
    recorders = [mgr.event_recorder("one") for _ in range(3)]

    assert recorders[0] is recorders[1] is recorders[2]
    assert mgr.event_recorder("two") is not recorders[0]
    assert mgr.declarations.recorders == ["one", "two"]
    assert b'ctrlruntime_events_dropped_total{cluster="",controller="two"} 0.0' in mgr.metrics.render()[0]
    await mgr.cluster.close()

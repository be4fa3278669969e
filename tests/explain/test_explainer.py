"""The answers: why an object was reconciled, what came out, and when it is due again."""

from __future__ import annotations

import asyncio
import time

import msgspec
import pytest
from explained import A, Cluster, Informer, Setting, changed, running, trigger
from servers import LONGEST_WAIT

from ctrlruntime.api import GroupVersionKind
from ctrlruntime.api.metadata import Metadata
from ctrlruntime.cache.scope import Scope
from ctrlruntime.client.observers import CallObservers, Write
from ctrlruntime.client.unchanged import LeftOut
from ctrlruntime.errors import RequeueAfter, TerminalError
from ctrlruntime.explain import facts, text
from ctrlruntime.explain.calls import call_observer, left_out_observer
from ctrlruntime.explain.explainer import QuestionError
from ctrlruntime.explain.loops import WriteLoops
from ctrlruntime.journal import Journal
from ctrlruntime.ownership.state import ReplicaState, RingState, SlotOwner
from ctrlruntime.reconcile import Request, Result
from ctrlruntime.rest.fence import Actor, acting
from ctrlruntime.selector import equals


class View:
    """A cache of ConfigMaps at a position."""

    seen = 7

    def position(self, namespace):
        return self.seen

    def entry(self, namespace, name):
        return None

    def covers(self, namespace, meta):
        return True


async def nothing(request):
    return None


def answer(setting, *question):
    (only,) = setting.explainer.why(*(question or ("ConfigMap", "ns", "a"))).answers
    # What is answered goes over a wire: it must survive that.
    assert msgspec.json.decode(msgspec.json.encode(only), type=facts.Answer) == only
    return only


# --- why it ran -----------------------------------------------------------------------------------------------------


async def test_a_run_tells_its_triggers_and_the_fields_that_changed():
    async with running(Setting(nothing)) as setting:
        setting.add(A, trigger())
        setting.add(A, changed())
        await setting.ran()
        (run,) = answer(setting).runs

    assert (run.cause, run.outcome, run.omitted) == ("events", "success", 0)
    create, update = run.triggers
    assert (create.event, create.source, create.namespace, create.name) == ("create", "ConfigMap", "ns", "a")
    assert (create.version, create.old_version, create.changed) == ("2", "", None)
    assert (update.event, update.old_version, update.version, update.changed) == ("update", "2", "3", ["data.size"])


async def test_the_latest_run_comes_first_and_says_that_the_one_before_asked_for_it():
    outcomes = [Result(requeue_after=0.001), None]

    async def reconcile(request):
        return outcomes.pop(0)

    async with running(Setting(reconcile)) as setting:
        setting.add(A, trigger())
        await setting.ran(times=2)
        last, first = answer(setting).runs

    assert (first.outcome, first.cause) == ("requeue_after", "events")
    assert (last.outcome, last.cause, last.triggers) == ("success", "requeue_after", [])


async def test_a_source_that_gives_no_reason_is_called_that():
    async with running(Setting(nothing)) as setting:
        setting.add(A)
        await setting.ran()
        (run,) = answer(setting).runs

    assert (run.cause, run.triggers) == ("unknown", [])


async def test_a_trigger_that_is_no_event_is_told_as_text():
    async with running(Setting(nothing)) as setting:
        setting.add(A, "the timer of payments")
        await setting.ran()
        (run,) = answer(setting).runs

    assert run.triggers == [facts.Trigger(text="the timer of payments")]


async def test_the_calls_of_a_run_stand_with_it():
    observers = CallObservers()

    async def reconcile(request):
        observers.record("get", "apps", "deployments", "status", "ns", "web")(None)
        observers.record("update", "", "configmaps", "", "ns", "a")(KeyError("x"))

    async with running(Setting(reconcile)) as setting:
        observers.add_observer(call_observer(setting.journal))
        setting.add(A, trigger())
        await setting.ran()
        setting.add(A, trigger())
        await setting.ran(times=2)
        last, first = answer(setting).runs

    for run in (last, first):
        assert [(call.verb, call.what, call.outcome) for call in run.calls] == [
            ("get", "deployments.apps/status ns/web", "ok"),
            ("update", "configmaps ns/a", "KeyError"),
        ]
    assert all(call.seconds >= 0 for call in first.calls)


def test_a_write_that_was_left_out_stands_with_its_run_and_says_until_when():
    journal, observers = Journal(clock=lambda: 86_400.0), CallObservers()
    observers.add_left_out_observer(left_out_observer(journal, "east"))
    write = LeftOut("update", GroupVersionKind("apps", "v1", "Deployment"), "ns", "web", 90.0)

    observers.left_out(write)  # outside a reconcile it is nobody's
    with acting(Actor("web", A, "run-1")):
        observers.left_out(write)

    (call,) = journal.history("web", A).calls
    assert (call.run, call.verb, call.what) == ("run-1", "update", "Deployment.apps ns/web of east")
    assert call.outcome == "not sent: the server changed nothing the last time; sent again from 00:01:30 UTC on"


async def test_calls_outside_reconciles_are_nobodys():
    observers = CallObservers()
    setting = Setting(nothing)
    observers.add_observer(call_observer(setting.journal))

    assert observers.record("get", "", "configmaps", "", "ns", "a") is None


# --- what is next ---------------------------------------------------------------------------------------------------


async def test_after_a_success_nothing_is_due():
    async with running(Setting(nothing)) as setting:
        setting.add(A, trigger())
        await setting.ran()
        seen = answer(setting)

    assert (seen.next, seen.next_at, seen.queued, seen.failures) == ("when something changes", None, None, 0)
    assert seen.cached_version == "7"


async def test_after_requeue_after_the_next_run_has_a_time():
    async def reconcile(request):
        raise RequeueAfter(50, "the backup Job runs")

    async with running(Setting(reconcile)) as setting:
        setting.add(A, trigger())
        await setting.ran()
        seen = answer(setting)

    assert seen.next_at == pytest.approx(time.time() + 50, abs=5)
    assert seen.next.endswith("s: requeue_after of the last run: the backup Job runs")
    assert seen.queued.state == "waiting"


async def test_after_a_failure_the_back_off_and_the_error_are_named():
    async def reconcile(request):
        raise ValueError("no port")

    async with running(Setting(reconcile)) as setting:
        setting.add(A, trigger())
        await setting.ran()
        seen = answer(setting)

    assert seen.failures == 1
    assert seen.next_at == pytest.approx(time.time() + 60, abs=5)
    assert "backoff after 1 failure (ValueError: no port)" in seen.next
    assert (seen.runs[0].outcome, seen.runs[0].error) == ("error", "ValueError: no port")


async def test_after_a_terminal_error_only_a_change_helps():
    async def reconcile(request):
        raise TerminalError("bad spec")

    async with running(Setting(reconcile)) as setting:
        setting.add(A, trigger())
        await setting.ran()
        seen = answer(setting)

    assert seen.next == "when something changes: the last run failed for good"


async def test_a_running_one_says_where_it_waits_and_that_it_comes_again():
    entered, release = asyncio.Event(), asyncio.Event()

    async def reconcile(request):
        entered.set()
        await release.wait()

    async with running(Setting(reconcile)) as setting:
        setting.add(A, trigger())
        await asyncio.wait_for(entered.wait(), LONGEST_WAIT)
        once = answer(setting)
        setting.add(A, changed())
        again = answer(setting)
        release.set()

    assert once.running.stands_at.endswith(" in reconcile")
    assert [each.text for each in once.running.triggers] == ["create ConfigMap ns/a@2"]
    assert once.queued is None
    assert once.next.startswith("running now")
    assert again.next == "as soon as the present run ends: update ConfigMap ns/a@2→3"
    assert again.queued.state == "in work, and again"
    assert again.queued.triggers[0].changed == ["data.size"]


async def test_one_that_waits_for_a_worker_says_so():
    entered, release = asyncio.Event(), asyncio.Event()

    async def reconcile(request):
        entered.set()
        await release.wait()

    async with running(Setting(reconcile)) as setting:
        for name in "bcda":
            setting.add(Request("ns", name), trigger(name=name))
        await asyncio.wait_for(entered.wait(), LONGEST_WAIT)
        seen = answer(setting)
        release.set()

    assert seen.next.startswith("waits for a free worker since")
    assert seen.queued.state == "ready"


async def test_one_whose_controller_has_not_started_says_so():
    setting = Setting(nothing)
    setting.add(A, trigger())
    seen = answer(setting)

    assert not seen.is_started
    assert "for its controller, which has not started" in seen.next
    assert not setting.explainer.controllers().controllers[0].is_started


async def test_an_object_in_the_cache_that_never_ran_says_that_no_event_has_passed():
    seen = answer(Setting(nothing))

    assert seen.runs == []
    assert "no event of it has passed the predicates" in seen.next


async def test_sources_that_have_not_synced_are_named():
    setting = Setting(nothing)

    assert answer(setting).unsynced == ["Feed"]
    async with running(setting):
        setting.add(A, trigger())
        await setting.ran()
        assert answer(setting).unsynced == []


async def test_a_write_the_cache_has_not_shown_is_named():
    setting = Setting(nothing)
    (cluster,) = setting.clusters
    view = View()
    cluster.gate.watch_views(lambda kind: [view] if kind == ("", "ConfigMap") else [])
    ticket = cluster.gate.open(GroupVersionKind("", "v1", "ConfigMap"), "ns", "a")

    assert answer(setting).unseen == "a write has no response yet"
    ticket.stored(Metadata(name="a", namespace="ns", uid="u", resource_version="8"))
    assert answer(setting).unseen == "the cache does not show version 8 yet"
    lost = cluster.gate.open(GroupVersionKind("", "v1", "ConfigMap"), "ns", "a")
    lost.lost()
    assert (
        answer(setting).unseen
        == "the result of a write, here or in another process, is not known; the next read compares with the server"
    )
    view.seen = 9
    cluster.gate.open(GroupVersionKind("", "v1", "ConfigMap"), "ns", "a").stored(
        Metadata(name="a", namespace="ns", uid="u", resource_version="9")
    )
    assert answer(setting).unseen == ""


async def test_a_loop_is_told_with_the_requests_that_write_it():
    kind = GroupVersionKind("apps", "v1", "Deployment")
    loops = WriteLoops()
    observers = CallObservers()

    async def reconcile(request):
        if request.name == "a":
            observers.record("update", "apps", "deployments", "", "ns", "web")(None)
            same = b'{"metadata":{"name":"web","namespace":"ns","uid":"u","resourceVersion":"5"},"spec":{"size":1}}'
            for _ in range(3):
                loops.wrote(Write("update", kind, "ns", "web", "", "configmap", False, same, same, same))

    async with running(Setting(reconcile)) as setting:
        observers.add_observer(call_observer(setting.journal))
        setting.loops = [loops]
        for name in ("a", "b"):
            setting.add(Request("ns", name), trigger(name=name))
            await setting.ran(Request("ns", name))
        (told,) = answer(setting).loops
        other = answer(setting, "ConfigMap", "ns", "b").loops
        (shown,) = setting.explainer.overview().loops

    assert (told.controller, told.kind, told.object) == ("configmap", "Deployment.apps", "ns/web")
    assert (told.why, told.writes) == ("no_op", 3)
    assert other == []
    assert shown == told


# --- questions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ConfigMap", "configmap", "configmaps", "CONFIGMAPS"])
async def test_a_kind_is_known_by_its_name_and_plural_in_any_case(kind):
    assert answer(Setting(nothing), kind, "ns", "a").kind == "ConfigMap"


async def test_an_unknown_kind_is_refused_with_the_nearest_one():
    with pytest.raises(QuestionError, match=r"'Configmop'; did you mean 'ConfigMap'\?"):
        Setting(nothing).explainer.why("Configmop", "ns", "a")
    with pytest.raises(QuestionError, match=r"'Zebra'\. Use one of ConfigMap, Pod"):
        Setting(nothing).explainer.why("Zebra", "ns", "a")


async def test_a_kind_of_another_group_is_another_kind():
    with pytest.raises(QuestionError, match=r"configmap\.example\.com"):
        Setting(nothing).explainer.why("configmap.example.com", "ns", "a")


async def test_an_unknown_controller_is_refused():
    with pytest.raises(QuestionError, match=r"controller 'confimap' does not exist; did you mean 'configmap'\?"):
        Setting(nothing).explainer.why("ConfigMap", "ns", "a", "confimap")


async def test_an_object_that_was_never_seen_is_refused_with_those_of_its_name():
    async with running(Setting(nothing)) as setting:
        setting.add(A, trigger())
        await setting.ran()

        with pytest.raises(QuestionError, match=r"never seen by the controller configmap.*; there is ns/a"):
            setting.explainer.why("ConfigMap", "", "a")
        with pytest.raises(QuestionError, match=r"not in the cache, not in the queue, not reconciled lately$"):
            setting.explainer.why("ConfigMap", "ns", "nowhere")


class Elsewhere:
    """The share of a controller of which another replica has everything."""

    is_divided = True
    has_lanes = False

    def admits(self, request):
        return False

    def owner(self, request):
        return SlotOwner(slot=3, of=64, owner="pod-2", member="lease-2", following="", is_here=False, state="foreign")


async def test_an_object_of_another_replica_is_not_cached_here_and_has_the_name_of_its_replica():
    setting = Setting(nothing, shard=Elsewhere())

    (found,) = setting.explainer.why("ConfigMap", "ns", "elsewhere").answers

    assert (found.shard.owner, found.cached_version, found.next) == ("pod-2", None, "in the replica that has its slot")
    assert found.elsewhere == ["pod-2"]
    lines = "\n".join(text.lines(setting.explainer.why("ConfigMap", "ns", "elsewhere")))
    assert "ConfigMap ns/elsewhere  (controller configmap, not started; not cached in this replica)" in lines
    assert "pod-2, slot 3 of 64" in lines
    with pytest.raises(QuestionError, match="never seen"):
        setting.explainer.why("Pod", "ns", "elsewhere")  # a kind that is only watched


RING = RingState(
    slots=64,
    layout="64-a",
    epoch=1,
    unowned=0,
    replicas=[
        ReplicaState(
            member=f"lease-{number}", pod=f"pod-{number}", is_here=number == 1, state=state, slots=16, coming=0, leads=False, weight=1,
            layout="64-a", seconds=0.0,
        )
        for number, state in enumerate(("serving", "serving", "leaving", "expired"), 1)
    ],
    trouble="",
)  # fmt: skip


class UnknownShard(Elsewhere):
    """The share of a controller with shard_by="uid", for an object that is not in the cache."""

    def owner(self, request):
        return None


async def test_an_object_without_a_known_uid_may_belong_to_another_replica():
    setting = Setting(nothing, shard=UnknownShard(), ring=RING)

    (found,) = setting.explainer.why("ConfigMap", "ns", "elsewhere").answers

    assert (found.shard, found.cached_version, found.elsewhere) == (None, None, ["pod-2", "pod-3"])
    assert found.next.startswith("in the replica that has the object, if it exists")
    lines = "\n".join(text.lines(setting.explainer.why("ConfigMap", "ns", "elsewhere")))
    assert "not cached in this replica" in lines
    assert "not known here, perhaps pod-2 or pod-3" in lines


async def test_an_object_that_was_never_seen_since_its_watch_does_not_work_says_so():
    informer = Informer(trouble="forbidden")
    informer.is_synced = False

    with pytest.raises(QuestionError, match=r"the watch of ConfigMap is not synced: forbidden$"):
        Setting(nothing, clusters=[Cluster(ConfigMap=informer)]).explainer.why("ConfigMap", "ns", "a")


async def test_a_question_without_a_name_is_refused():
    with pytest.raises(QuestionError, match="name the object"):
        Setting(nothing).explainer.why("ConfigMap", "ns", "")


async def test_a_process_without_controllers_says_so():
    setting = Setting(nothing)
    setting.explainer._controllers = list
    with pytest.raises(QuestionError, match="no controllers"):
        setting.explainer.why("ConfigMap", "ns", "a")


async def test_an_object_that_is_only_watched_says_what_it_led_to():
    async with running(Setting(nothing)) as setting:
        setting.add(A, trigger("delete", source="Pod", name="web-1"))
        await setting.ran()
        seen = setting.explainer.why("Pod", "ns", "web-1")

    assert seen.answers == []
    (led,) = seen.led_to
    assert (led.controller, led.kind, led.request, led.outcome) == ("configmap", "ConfigMap", "ns/a", "success")
    assert led.trigger.text == "delete Pod ns/web-1@2"


async def test_a_request_of_the_users_own_kind_is_found_by_its_text():
    async with running(Setting(nothing, kind="", name="timer")) as setting:
        setting.add("nightly", "midnight")
        await setting.ran("nightly")
        seen = answer(setting, "whatever", "", "nightly", "timer")

    assert (seen.request, seen.namespace, seen.name) == ("nightly", "", "nightly")


async def test_requests_of_other_clusters_are_found():
    clusters = [Cluster(ConfigMap=Informer()), Cluster("west", ConfigMap=Informer("a"))]
    async with running(Setting(nothing, clusters=clusters)) as setting:
        setting.add(Request("ns", "a", "west"), trigger())
        await setting.ran(Request("ns", "a", "west"))
        seen = answer(setting)

    assert (seen.cluster, seen.request, seen.cached_version) == ("west", "west:ns/a", "7")


async def test_one_cluster_can_be_named():
    clusters = [Cluster(ConfigMap=Informer("a")), Cluster("west", ConfigMap=Informer("a"))]
    async with running(Setting(nothing, clusters=clusters)) as setting:
        why = setting.explainer.why
        for cluster, found in (("", ["", "west"]), ("west", ["west"])):
            seen = why("ConfigMap", "ns", "a", cluster=cluster)
            assert [each.cluster for each in seen.answers] == [each.cluster for each in seen.watches] == found
        with pytest.raises(QuestionError, match=r"the fleet has no cluster 'wets'.*west"):
            why("ConfigMap", "ns", "a", cluster="wets")


# --- lists ----------------------------------------------------------------------------------------------------------


async def test_the_overview_shows_everything():
    entered, release = asyncio.Event(), asyncio.Event()

    async def reconcile(request):
        if request.name == "slow":
            entered.set()
            await release.wait()
        elif request.name == "bad":
            raise ValueError("no")

    async with running(Setting(reconcile)) as setting:
        for name in ("slow", "a", "bad"):
            setting.add(Request("ns", name), trigger(name=name))
        await asyncio.wait_for(entered.wait(), LONGEST_WAIT)
        await setting.ran(Request("ns", "bad"))
        seen = setting.explainer.overview()
        release.set()

    (controller,) = seen.controllers
    assert (controller.name, controller.kind, controller.workers, controller.is_started) == (
        "configmap",
        "ConfigMap",
        2,
        True,
    )
    assert controller.sources == [facts.Source(name="Feed", is_synced=True)]
    assert [run.request for run in controller.running] == ["ns/slow"]
    (queue,) = seen.queues
    assert (queue.ready, queue.waiting, queue.in_work) == (0, 1, 1)
    assert [(key.request, key.state, key.attempts) for key in queue.keys] == [
        ("ns/slow", "in work", 0),
        ("ns/bad", "waiting", 1),
    ]
    assert [(run.request, run.outcome, run.error) for run in seen.recent] == [
        ("ns/bad", "error", "ValueError: no"),
        ("ns/a", "success", ""),
    ]
    assert [watch.kind for watch in seen.watches] == ["ConfigMap", "Pod"]
    assert msgspec.json.decode(msgspec.json.encode(seen), type=facts.Overview) == seen


async def test_watches_say_when_they_last_proved_alive_and_what_their_trouble_is():
    scope = Scope(namespace="ns", labels=equals("app", "web"))
    clusters = [Cluster("west", Pod=Informer("a", scope=scope, trouble="forbidden"))]
    (watch,) = Setting(nothing, clusters=clusters).explainer.watches().watches

    assert (watch.kind, watch.cluster, watch.scope, watch.state) == ("Pod", "west", "ns app=web", "watching")
    assert (watch.alive, watch.trouble, watch.objects, watch.watches, watch.lists) == (10.0, "forbidden", 1, 3, 1)
    assert watch.size_bytes > 0


async def test_a_kind_the_server_does_not_know_yet_has_a_watch_that_was_never_alive():
    informer = Informer(trouble="not served")
    informer.reflectors = {}
    (watch,) = Setting(nothing, clusters=[Cluster(Pod=informer)]).explainer.watches().watches

    assert (watch.state, watch.alive, watch.trouble) == ("resolving", None, "not served")

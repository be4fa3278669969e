"""What goes on while user code blocks the main loop: lease, probes, metrics; and what ends when it blocks for too long."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest
from aiohttp import web
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import coordination, core, meta
from ctrlruntime.errors import ConfigError, FencedError, LeaderElectionLostError
from ctrlruntime.leaderelection import Elector
from ctrlruntime.manager.manager import running
from ctrlruntime.manager.watchdog import Watchdog
from ctrlruntime.serving.loops import EventLoopBlockedError

LOCAL = "127.0.0.1:0"

pytestmark = pytest.mark.usefixtures("nothing_left")


@pytest.fixture
def election(namespace):
    return ctrl.LeaderElection(
        "test", namespace=namespace, identity="me", lease_duration=2.0, renew_deadline=1.5, retry_period=1.0
    )


@pytest.fixture
def quick(election):
    """Leads for 0.6 s without a renewal, and renews every 0.1 s."""
    for name, seconds in (("lease_duration", 2.0), ("renew_deadline", 0.6), ("retry_period", 0.1)):
        object.__setattr__(election, name, seconds)
    return election


def ask(address, path):
    """GET from another thread, without an event loop: the status and the text."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{address.port}{path}", timeout=LONGEST_WAIT) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


class InThread:
    """Runs a function in a thread, for as long as the test blocks the loop with `join`."""

    def __init__(self, function):
        self.result = None
        self.error = None
        self._function = function
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        try:
            self.result = self._function()
        except BaseException as error:  # noqa: BLE001 - raised where it is joined
            self.error = error

    def join(self):
        self._thread.join(LONGEST_WAIT)
        assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error
        return self.result


def until(condition):
    end = time.monotonic() + LONGEST_WAIT
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def renewals(mgr):
    return mgr.metrics.rest.counts().get(("200", "PUT", mgr.config.host.removeprefix("https://")), 0)


def config_map(namespace, name):
    return core.ConfigMap(metadata=meta.ObjectMeta(name=name, namespace=namespace))


async def test_the_lease_is_renewed_while_user_code_blocks_for_longer_than_the_deadline(make, quick, namespace):
    mgr = make(leader_election=quick)

    async with running(mgr):
        await asyncio.wait_for(mgr.elected.wait(), LONGEST_WAIT)
        before, began = renewals(mgr), time.monotonic()
        InThread(lambda: until(lambda: renewals(mgr) > before + 5 and time.monotonic() > began + 1.2)).join()
        await mgr.client.create(config_map(namespace, "after"))
        assert not mgr.is_stopping


async def test_probes_and_metrics_answer_while_user_code_blocks(make):
    mgr = make(health_probe_bind_address=LOCAL, metrics_bind_address=LOCAL)
    mgr.add_healthz_check("plain", lambda: None)

    async with running(mgr):
        pages = InThread(
            lambda: [
                ask(mgr.health_probe_address, "/healthz"),
                ask(mgr.health_probe_address, "/readyz"),
                ask(mgr.metrics_address, "/metrics"),
            ]
        )
        answers = pages.join()

    assert [status for status, _ in answers] == [200, 200, 200]


async def test_an_async_check_runs_on_the_main_loop_and_one_that_gets_no_answer_says_so(make, logs, monkeypatch):
    monkeypatch.setattr("ctrlruntime.manager.manager.ANSWER_WITHIN", 0.05)
    mgr = make(health_probe_bind_address=LOCAL)
    ran_on = []

    async def check():
        ran_on.append(asyncio.get_running_loop())

    mgr.add_readyz_check("upstream", check)
    async with running(mgr):
        status, text = InThread(lambda: ask(mgr.health_probe_address, "/readyz")).join()
        assert status == 500
        assert "[-]upstream failed" in text
        assert ran_on == []
        assert (await asyncio.to_thread(ask, mgr.health_probe_address, "/readyz"))[0] == 200
        assert ran_on == [asyncio.get_running_loop()]

    (line,) = [line for line in logs if line["event"] == "health check failed"]
    assert line["check"] == "upstream"
    assert "the main event loop has not answered" in line["error"]
    assert "test_manager_second_loop.py" in line["error"]


async def test_a_metrics_handler_of_yours_runs_on_the_main_loop(make, monkeypatch):
    monkeypatch.setattr("ctrlruntime.manager.manager.ANSWER_WITHIN", 0.05)
    main = asyncio.get_running_loop()

    async def page(request):
        assert asyncio.get_running_loop() is main
        return web.Response(text=f"{request.query['name']} {len(await request.read())}")

    mgr = make(metrics_bind_address=LOCAL)
    mgr.add_metrics_handler("/page", page)
    async with running(mgr):
        assert await asyncio.to_thread(ask, mgr.metrics_address, "/page?name=x") == (200, "x 0")
        status, text = InThread(lambda: ask(mgr.metrics_address, "/page?name=x")).join()

    assert status == 503
    assert "the main event loop has not answered" in text


async def test_a_loop_that_blocks_is_one_warning_with_its_stack_and_a_metric(make, logs):
    mgr = make(watchdog=Watchdog(warn_after=0.1))

    def user_code():
        InThread(lambda: until(lambda: any("is blocked" in line["event"] for line in logs))).join()

    async with running(mgr):
        user_code()
        async with asyncio.timeout(LONGEST_WAIT):
            while not any("responds again" in line["event"] for line in logs):  # noqa: ASYNC110 - written by another thread
                await asyncio.sleep(0.01)
        text = mgr.metrics.render()[0].decode()

    (line,) = [line for line in logs if "is blocked" in line["event"]]
    assert line["level"] == "warning"
    assert any("in user_code" in entry for entry in line["trace"])
    assert "ctrlruntime_event_loop_blocked_total 1.0" in text
    assert "ctrlruntime_event_loop_lag_seconds_count" in text


async def test_a_leader_that_hangs_loses_the_lease_and_its_probe(make, quick, namespace, config):
    """A hung leader must not keep the lease for ever."""
    mgr = make(
        leader_election=quick,
        watchdog=Watchdog(warn_after=0.1, unhealthy_after=0.4),
        health_probe_bind_address=LOCAL,
        graceful_shutdown_timeout=None,
    )
    task = asyncio.ensure_future(mgr.start())
    await asyncio.wait_for(mgr.elected.wait(), LONGEST_WAIT)
    elector = mgr._elector
    seen = []

    def hang():
        until(lambda: elector.deadline() is None)
        seen.append(ask(mgr.health_probe_address, "/healthz"))
        seen.append(ask(mgr.health_probe_address, "/healthz/event-loop"))

    InThread(hang).join()
    with pytest.raises(FencedError):
        await mgr.client.create(config_map(namespace, "late"))
    with pytest.raises(LeaderElectionLostError, match="the main event loop has not answered for"):
        await asyncio.wait_for(task, LONGEST_WAIT)

    assert [status for status, _ in seen] == [500, 500]
    assert "[-]event-loop failed" in seen[0][1]
    api = ctrl.Cluster(config)
    lease = await api.api_reader.get(coordination.Lease, ctrl.NamespacedName(namespace, "test"))
    assert lease.spec.holder_identity == "me"  # it ran out, and was not given back
    await api.close()


async def test_refused_writes_are_counted(make, election, namespace):
    mgr = make(leader_election=dataclasses.replace(election, identity="second"))
    client = mgr.cluster.unfenced_client()
    lease = coordination.Lease(metadata=meta.ObjectMeta(name=election.id, namespace=namespace))
    lease.spec.holder_identity, lease.spec.lease_duration_seconds = "first", 3600
    await client.create(lease)

    async with running(mgr):
        with pytest.raises(FencedError):
            await mgr.client.create(config_map(namespace, "refused"))
        text = mgr.metrics.render()[0].decode()

    assert 'ctrlruntime_fenced_writes_total{controller=""} 1.0' in text


async def test_without_a_watchdog_nobody_watches(make, logs):
    mgr = make(watchdog=None, health_probe_bind_address=LOCAL)

    async with running(mgr):
        assert (await asyncio.to_thread(ask, mgr.health_probe_address, "/healthz"))[0] == 200
        assert (await asyncio.to_thread(ask, mgr.health_probe_address, "/healthz/event-loop"))[0] == 404

    assert mgr.metrics.loop.lag.count == 0


async def test_ask_before_the_start_is_an_error(make):
    async def work():
        pytest.fail("it cannot run")

    with pytest.raises(EventLoopBlockedError, match="has not started"):
        await make().run_on_main_loop(work)


async def test_election_errors_on_the_second_loop_end_the_manager(make, election, monkeypatch):
    async def run(self):
        raise LookupError("the election broke")

    monkeypatch.setattr(Elector, "run", run)
    mgr = make(leader_election=election)

    with pytest.raises(LookupError, match="the election broke"):
        await asyncio.wait_for(mgr.start(), LONGEST_WAIT)


MAIN_LOOP_DIES = """
import asyncio, os, sys, threading
import ctrlruntime as ctrl
from ctrlruntime.manager.watchdog import Watchdog

config, namespace = ctrl.get_config(sys.argv[1]), sys.argv[2]
election = ctrl.LeaderElection("test", namespace=namespace, identity="me")
mgr = ctrl.new_manager(
    config, metrics_bind_address="0", leader_election=election, watchdog=Watchdog(warn_after=0.1, unhealthy_after=600)
)
loop = asyncio.new_event_loop()
task = loop.create_task(mgr.start())
loop.run_until_complete(mgr.elected.wait())
(thread,) = [thread for thread in threading.enumerate() if thread.name == "ctrlruntime"]
loop.close()
thread.join(10)
print("ended" if not thread.is_alive() else "runs", flush=True)
os._exit(0)
"""


async def test_when_the_main_loop_dies_the_lease_is_given_back(make, server, namespace):
    """A user's own loop that is stopped and closed under a running manager; the process goes on."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", MAIN_LOOP_DIES, str(server.kubeconfig_path), namespace, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await asyncio.wait_for(process.communicate(), LONGEST_WAIT)

    assert output.split() == [b"ended"]
    mgr = make()
    lease = await mgr.api_reader.get(coordination.Lease, ctrl.NamespacedName(namespace, "test"))
    assert not lease.spec.holder_identity
    await mgr.cluster.close()


@pytest.mark.parametrize("address", ["metrics_bind_address", "health_probe_bind_address"])
async def test_an_address_that_is_none_is_an_error_and_leaves_nothing(make, address):
    with pytest.raises(ConfigError):
        await make(**{address: "nowhere"}).start()

"""What a manager serves: metrics under controller-runtime's names, probes, and handlers of yours."""

from __future__ import annotations

import asyncio
import http.client
import re
import socket
import ssl

import aiohttp
import pytest
from aiohttp import web
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from ctrlruntime.errors import ConfigError
from ctrlruntime.manager.manager import running

LOCAL = "127.0.0.1:0"

pytestmark = pytest.mark.usefixtures("nothing_left")


async def get(address, path):
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{address.port}{path}") as answer:
        return answer.status, await answer.text()


async def test_metrics_of_all_parts_are_served_under_controller_runtimes_names(make, namespace):
    election = ctrl.LeaderElection("metrics", namespace=namespace)
    mgr = make(metrics_bind_address=LOCAL, leader_election=election)
    done = asyncio.Event()

    async def reconcile(request):
        done.set()

    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap).complete(reconcile)
    async with running(mgr):
        await asyncio.wait_for(mgr.elected.wait(), LONGEST_WAIT)
        await mgr.client.create(core.ConfigMap(metadata=meta.ObjectMeta(name="any", namespace=namespace)))
        await asyncio.wait_for(done.wait(), LONGEST_WAIT)
        status, text = await get(mgr.metrics_address, "/metrics")

    assert status == 200
    for series in (
        r'controller_runtime_reconcile_total\{controller="configmap",result="success"\} [1-9]',
        r'controller_runtime_reconcile_total\{controller="configmap",result="error"\} 0',
        r'controller_runtime_active_workers\{controller="configmap"\}',
        r'controller_runtime_max_concurrent_reconciles\{controller="configmap"\} 1',
        r'controller_runtime_reconcile_time_seconds_count\{controller="configmap"\}',
        r'workqueue_adds_total\{controller="configmap",name="configmap"\} [1-9]',
        r'workqueue_depth\{controller="configmap",name="configmap"',
        r'rest_client_requests_total\{code="20[01]",host="127.0.0.1:\d+",method="GET"\}',
        r'leader_election_master_status\{name="metrics"\} 1',
        r'ctrlruntime_cache_objects\{cluster="",kind="ConfigMap.v1"\}',
    ):
        assert re.search(series, text), series


async def test_secure_metrics_guard_handlers_of_yours_too_and_answer_while_the_main_loop_is_blocked(make):
    async def hello(request):
        return web.Response(text="hello")

    mgr = make(metrics_bind_address=LOCAL, secure_metrics=ctrl.metrics.SecureMetrics())
    mgr.add_metrics_handler("/hello", hello)
    async with running(mgr):
        port = mgr.metrics_address.port

        def statuses():
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            for path in ("/metrics", "/hello"):
                connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=LONGEST_WAIT)
                connection.request("GET", path)
                yield connection.getresponse().status
                connection.close()

        assert list(statuses()) == [401, 401]  # without await: the main loop stands still meanwhile


async def test_servers_stop_with_the_manager(make):
    mgr = make(metrics_bind_address=LOCAL, health_probe_bind_address=LOCAL)
    async with running(mgr):
        addresses = (mgr.metrics_address, mgr.health_probe_address)
        for address, path in zip(addresses, ("/metrics", "/healthz"), strict=True):
            assert (await get(address, path))[0] == 200

    assert (mgr.metrics_address, mgr.health_probe_address) == (None, None)
    for address in addresses:
        with pytest.raises(aiohttp.ClientConnectorError):
            await get(address, "/metrics")


@pytest.mark.parametrize("off", ["0", ""])
async def test_an_address_of_0_or_nothing_turns_a_server_off(make, off):
    mgr = make(metrics_bind_address=off, health_probe_bind_address=off)

    async with running(mgr):
        assert (mgr.metrics_address, mgr.health_probe_address) == (None, None)


async def test_probes_answer_with_the_checks_that_were_added(make):
    mgr = make(health_probe_bind_address=LOCAL)

    def broken():
        raise LookupError("a secret reason")

    mgr.add_healthz_check("disk", lambda: None)
    mgr.add_readyz_check("upstream", broken)
    async with running(mgr):
        assert (await get(mgr.health_probe_address, "/healthz"))[0] == 200
        assert (await get(mgr.health_probe_address, "/healthz/disk"))[0] == 200
        status, text = await get(mgr.health_probe_address, "/readyz")

    assert status == 500
    assert "upstream" in text
    assert "secret" not in text


async def test_readiness_is_off_at_once_when_the_manager_stops(make):
    mgr = make(health_probe_bind_address=LOCAL)
    entered, release = asyncio.Event(), asyncio.Event()

    async def reconcile(request):
        entered.set()
        await release.wait()

    async def fill(queue):
        queue.add(ctrl.Request("ns", "name"))

    ctrl.new_controller_managed_by(mgr).named("any").watches_raw_source(ctrl.source.Func(fill)).complete(reconcile)
    task = asyncio.ensure_future(mgr.start())
    await asyncio.wait_for(entered.wait(), LONGEST_WAIT)
    assert (await get(mgr.health_probe_address, "/readyz"))[0] == 200

    mgr.stop()
    assert (await get(mgr.health_probe_address, "/readyz"))[0] == 500
    assert (await get(mgr.health_probe_address, "/healthz"))[0] == 200

    release.set()
    await asyncio.wait_for(task, LONGEST_WAIT)


async def test_probes_answer_while_the_cache_cannot_sync(make):
    class Missing(ctrl.Object, group="nowhere.example.com", version="v1"):
        pass

    mgr = make(health_probe_bind_address=LOCAL, scheme=ctrl.Scheme(Missing))
    ctrl.new_controller_managed_by(mgr).for_(Missing).complete(lambda request: None)

    async with running(mgr):
        assert (await get(mgr.health_probe_address, "/healthz"))[0] == 200


async def test_a_handler_of_yours_is_served_beside_the_metrics(make):
    async def hello(request):
        return web.Response(text="hello")

    mgr = make(metrics_bind_address=LOCAL)
    mgr.add_metrics_handler("/hello", hello)
    async with running(mgr):
        assert await get(mgr.metrics_address, "/hello") == (200, "hello")


@pytest.mark.parametrize("path", ["/metrics", "/metrics/", "/hello"])
def test_a_path_that_is_taken_is_refused(make, path):
    mgr = make()
    mgr.add_metrics_handler("/hello", None)

    with pytest.raises(ValueError, match="the metrics server has one"):
        mgr.add_metrics_handler(path, None)


async def test_handlers_without_a_metrics_server_are_told_of(make, logs):
    mgr = make(metrics_bind_address="0")
    mgr.add_metrics_handler("/hello", None)

    async with running(mgr):
        assert [line["paths"] for line in logs if "not served" in line["event"]] == [["/hello"]]


async def test_checks_and_handlers_come_before_the_start(make):
    mgr = make()
    async with running(mgr):
        for add in (mgr.add_healthz_check, mgr.add_readyz_check, mgr.add_metrics_handler):
            with pytest.raises(RuntimeError, match="before the manager starts"):
                add("/any", lambda: None)


@pytest.mark.parametrize(
    ("option", "flag"),
    [
        ("metrics_bind_address", "--metrics-bind-address"),
        ("health_probe_bind_address", "--health-probe-bind-address"),
    ],
)
async def test_a_port_in_use_is_an_error_that_names_the_flag(make, option, flag):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        mgr = make(**{option: f"127.0.0.1:{taken.getsockname()[1]}"})

        with pytest.raises(ConfigError, match=rf"Give a free address with {flag}"):
            await asyncio.wait_for(mgr.start(), LONGEST_WAIT)


async def test_the_first_server_is_closed_when_the_second_cannot_listen(make):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        mgr = make(metrics_bind_address=LOCAL, health_probe_bind_address=f"127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(ConfigError):
            await asyncio.wait_for(mgr.start(), LONGEST_WAIT)

    assert mgr.metrics_address is None


async def test_metrics_of_a_registry_of_yours_are_served_too(make):
    from prometheus_client import Counter

    mgr = make(metrics_bind_address=LOCAL)
    Counter("my_things", "Things.", registry=mgr.metrics.registry).inc()

    async with running(mgr):
        _, text = await get(mgr.metrics_address, "/metrics")

    assert "my_things_total 1.0" in text

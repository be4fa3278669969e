"""The debug pages of a manager: off unless asked for, true while it runs, and honest when its event loop is blocked."""

from __future__ import annotations

import asyncio
import functools
import json
import threading
import urllib.error
import urllib.request
from dataclasses import replace

import pytest
from click.testing import CliRunner
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from ctrlruntime.cli import ctrl as program
from ctrlruntime.errors import ConfigError
from ctrlruntime.manager.flags import parse_flags
from ctrlruntime.manager.manager import running
from ctrlruntime.manager.watchdog import Watchdog
from ctrlruntime.testing.eventually import eventually

LOCAL = "127.0.0.1:0"

pytestmark = pytest.mark.usefixtures("nothing_left")


def fetch(address, path):
    url = f"http://{address.host}:{address.port}/debug/ctrlruntime/{path}"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=LONGEST_WAIT) as answer:
            return answer.status, answer.read().decode(), answer.headers["Content-Type"]
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(), error.headers["Content-Type"]


async def get(mgr, path):
    return await asyncio.to_thread(fetch, mgr.debug_address, path)


async def get_json(mgr, path):
    status, text, content_type = await get(mgr, path)
    assert content_type.startswith("application/json")
    return status, json.loads(text)


class Reconciler:
    """Writes a label into the object once; hangs on one named hang."""

    def __init__(self, client):
        self.client = client
        self.entered = asyncio.Event()
        self.release = asyncio.Event()

    async def reconcile(self, request):
        if request.name == "hang":
            self.entered.set()
            await self.release.wait()
        found = await self.client.get_or_none(core.ConfigMap, request)
        if found is not None and request.name == "written" and not found.data:
            found.data = {"seen": "yes"}
            await self.client.update(found)


@pytest.fixture
def operator(make, namespace):
    """A manager with the debug pages, and its reconciler."""
    mgr = make(debug_bind_address=LOCAL, cache=ctrl.CacheOptions(namespaces=[namespace]))
    reconciler = Reconciler(mgr.client)
    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap).with_options(max_concurrent_reconciles=2).complete(
        reconciler
    )
    return mgr, reconciler


async def create(mgr, namespace, name):
    await mgr.client.create(core.ConfigMap(metadata=meta.ObjectMeta(name=name, namespace=namespace)))


async def test_they_are_off_unless_asked_for(make):
    mgr = make()
    async with running(mgr):
        assert mgr.debug_address is None


async def test_they_stop_with_the_manager(operator):
    mgr, _ = operator
    async with running(mgr):
        address = mgr.debug_address
        assert address.host == "127.0.0.1"

    assert mgr.debug_address is None
    with pytest.raises(urllib.error.URLError):
        await asyncio.to_thread(fetch, address, "")


@pytest.mark.usefixtures("sets_up_log")
async def test_the_flag_turns_them_on_and_the_argument_wins(config):
    flags = parse_flags(["--debug-bind-address", "0"], environ={})
    mgr = ctrl.new_manager(config, flags=flags, metrics_bind_address="0", debug_bind_address=LOCAL)
    async with running(mgr):
        assert mgr.debug_address is not None

    flags = parse_flags(["--debug-bind-address", LOCAL, "--metrics-bind-address", "0"], environ={})
    mgr = ctrl.new_manager(config, flags=flags)
    async with running(mgr):
        assert mgr.debug_address is not None
    assert parse_flags([], environ={}).debug_bind_address == ""


@pytest.mark.usefixtures("sets_up_log")
async def test_ctrl_run_turns_them_on_and_finds_their_address_in_a_file(config, tmp_path):
    file = tmp_path / "address"
    environ = {"CTRLRUNTIME_DEBUG_ADDRESS_FILE": str(file)}
    mgr = ctrl.new_manager(config, flags=parse_flags([], environ=environ))
    async with running(mgr):
        assert file.read_text() == f"127.0.0.1:{mgr.debug_address.port}\n"
    assert not file.exists()

    off = ctrl.new_manager(config, flags=parse_flags(["--debug-bind-address", "0"], environ=environ))
    async with running(off):
        assert (off.debug_address, file.exists()) == (None, False)

    environ = {"CTRLRUNTIME_DEBUG_ADDRESS_FILE": str(tmp_path / "missing" / "address")}
    mgr = ctrl.new_manager(config, flags=parse_flags([], environ=environ))
    async with running(mgr):
        assert mgr.debug_address is not None


async def test_an_address_that_is_none_ends_the_start(make):
    with pytest.raises(ConfigError, match="--debug-bind-address"):
        await make(debug_bind_address="nowhere").start()


async def test_why_tells_triggers_calls_and_outcome_of_a_real_object(operator, namespace):
    mgr, _ = operator
    async with running(mgr):
        await create(mgr, namespace, "written")
        key = ctrl.Request(namespace, "written")
        await eventually(lambda: len(mgr.journal.history("configmap", key).runs) >= 2, timeout=LONGEST_WAIT)
        status, why = await get_json(mgr, f"why?kind=configmap&namespace={namespace}&name=written")

    assert status == 200
    (answer,) = why["answers"]
    last, first = answer["runs"][:2]
    assert (first["outcome"], first["cause"], last["outcome"]) == ("success", "events", "success")
    assert [(each["event"], each["source"], each["name"]) for each in first["triggers"]] == [
        ("create", "ConfigMap", "written")
    ]
    (call,) = first["calls"]
    assert (call["verb"], call["what"], call["outcome"]) == ("update", f"configmaps {namespace}/written", "ok")
    assert call["seconds"] > 0
    assert [(each["event"], each["changed"]) for each in last["triggers"]] == [("update", ["data"])]
    assert last["triggers"][0]["old_version"] == first["triggers"][0]["version"]
    assert answer["cached_version"] == last["triggers"][0]["version"]


async def test_a_running_reconcile_shows_the_line_it_waits_at(operator, namespace):
    mgr, reconciler = operator
    async with running(mgr):
        await create(mgr, namespace, "hang")
        await asyncio.wait_for(reconciler.entered.wait(), LONGEST_WAIT)
        _, why = await get_json(mgr, f"why?kind=ConfigMap&namespace={namespace}&name=hang")
        _, controllers = await get_json(mgr, "controllers")
        _, queues = await get_json(mgr, "queues")
        _, page, content_type = await get(mgr, "")
        reconciler.release.set()

    place = why["answers"][0]["running"]["stands_at"]
    assert f"{__file__}:" in place
    assert place.endswith(" in reconcile")
    assert [run["stands_at"] for run in controllers["controllers"][0]["running"]] == [place]
    assert queues["queues"][0]["in_work"] == 1
    assert content_type == "text/html; charset=utf-8"
    assert f"{namespace}/hang" in page
    assert place in page


async def test_watches_have_an_age_of_their_last_activity(operator, namespace):
    mgr, _ = operator
    async with running(mgr):
        await create(mgr, namespace, "any")
        await mgr.client.get(core.ConfigMap, ctrl.Request(namespace, "any"))
        _, seen = await get_json(mgr, "watches")

    (watch,) = seen["watches"]
    assert (watch["kind"], watch["scope"], watch["is_synced"], watch["trouble"]) == ("ConfigMap", namespace, True, "")
    assert 0 <= watch["alive"] < 60
    assert watch["lists"] >= 1


async def test_short_names_and_the_default_namespace_are_as_in_kubectl(config, namespace):
    mgr = ctrl.new_manager(replace(config, namespace=namespace), metrics_bind_address="0", debug_bind_address=LOCAL)

    async def reconcile(request):
        return None

    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap).complete(reconcile)
    async with running(mgr):
        await create(mgr, namespace, "short")
        key = ctrl.Request(namespace, "short")
        await eventually(lambda: mgr.journal.history("configmap", key).runs, timeout=LONGEST_WAIT)
        answers = [await get_json(mgr, f"why?kind={kind}&name=short") for kind in ("cm", "ConfigMap", "configmaps")]

    assert [(status, why["namespace"], why["answers"][0]["request"]) for status, why in answers] == [
        (200, namespace, f"{namespace}/short")
    ] * 3


async def test_questions_that_cannot_be_answered_are_404_with_the_reason(operator):
    mgr, _ = operator
    async with running(mgr):
        status, refusal = await get_json(mgr, "why?kind=Configmop&name=x")
        page_status, page, _ = await get(mgr, "object?kind=Configmop&name=x")

    assert (status, page_status) == (404, 404)
    assert refusal["error"].endswith("did you mean 'ConfigMap'?")
    assert "did you mean &#x27;ConfigMap&#x27;?" in page


async def test_ctrl_why_asks_a_running_operator(operator, namespace):
    mgr, reconciler = operator

    def why(*question):
        address = f"{mgr.debug_address.host}:{mgr.debug_address.port}"
        return CliRunner().invoke(program, ["why", *question, "--address", address])

    async with running(mgr):
        await create(mgr, namespace, "hang")
        await asyncio.wait_for(reconciler.entered.wait(), LONGEST_WAIT)
        answered = await asyncio.to_thread(why, "configmap", f"{namespace}/hang")
        refused = await asyncio.to_thread(why, "configmap", f"{namespace}/nothing")
        reconciler.release.set()

    assert answered.exit_code == 0, answered.stderr
    lines = answered.stdout.splitlines()
    assert lines[0].startswith(f"ConfigMap {namespace}/hang  (controller configmap; version ")
    assert " in reconcile  (reconcile " in lines[1]
    assert lines[2].startswith(f"    triggers       create ConfigMap {namespace}/hang@")
    assert refused.exit_code == 1
    assert refused.stderr.startswith(f"error: configmap {namespace}/nothing was never seen by the controller configmap")


async def test_a_blocked_event_loop_is_shown_with_its_stack(make):
    mgr = make(debug_bind_address=LOCAL, watchdog=Watchdog(warn_after=0.05, unhealthy_after=60))
    mgr.run_on_main_loop = functools.partial(mgr.run_on_main_loop, timeout=0.2)
    seen = []
    async with running(mgr):
        address = mgr.debug_address
        done = threading.Event()

        def look():
            seen.append(fetch(address, "why?kind=Pod&name=x"))
            done.set()

        thread = threading.Thread(target=look)
        thread.start()
        done.wait(LONGEST_WAIT)  # what must not be done on an event loop
        thread.join()

        async def is_answered():
            return (await get(mgr, "watches"))[0] == 200

        await eventually(is_answered, timeout=LONGEST_WAIT)

    ((status, text, _),) = seen
    refusal = json.loads(text)
    assert status == 503
    assert "event loop has not answered" in refusal["error"]
    assert any("done.wait(LONGEST_WAIT)" in line or "test_a_blocked_event_loop" in line for line in refusal["stack"])

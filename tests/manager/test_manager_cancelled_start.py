"""A manager that is cancelled, or asked to stop, at any moment of its start ends and leaves nothing."""

from __future__ import annotations

import asyncio
import gc
import warnings

import pytest
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import core
from ctrlruntime.rest.transport import Transport

LOCAL = "127.0.0.1:0"

pytestmark = pytest.mark.usefixtures("nothing_left")

STEPS = [*range(12), *range(12, 60, 4), 80, 120, 200, 400]


def build(make, namespace):
    election = ctrl.LeaderElection("test", namespace=namespace, identity="me")
    mgr = make(leader_election=election, metrics_bind_address=LOCAL, health_probe_bind_address=LOCAL)

    async def reconcile(request):
        return None

    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap).complete(reconcile)
    return mgr


@pytest.mark.parametrize("steps", STEPS)
async def test_a_start_cancelled_after_any_number_of_steps_ends(make, namespace, logs, steps):
    mgr = build(make, namespace)
    task = asyncio.ensure_future(mgr.start())
    for _ in range(steps):
        await asyncio.sleep(0)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(asyncio.shield(task), LONGEST_WAIT)

    assert not [line for line in logs if line["level"] == "error"]
    assert (mgr.metrics_address, mgr.health_probe_address) == (None, None)


@pytest.mark.parametrize("steps", STEPS)
async def test_a_stop_after_any_number_of_steps_is_a_planned_one(make, namespace, logs, steps):
    mgr = build(make, namespace)
    task = asyncio.ensure_future(mgr.start())
    for _ in range(steps):
        await asyncio.sleep(0)

    mgr.stop()
    await asyncio.wait_for(task, LONGEST_WAIT)

    assert not [line for line in logs if line["level"] == "error"]


def collect_garbage_of_other_tests():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def test_no_socket_is_left_by_any_of_them(make, namespace):
    """With a loop of its own for each, so that what was left behind is found when the loop is gone."""

    async def start_and_cancel(steps):
        task = asyncio.ensure_future(build(make, namespace).start())
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})

    collect_garbage_of_other_tests()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        for steps in (1, 5, 10, 15, 20, 25, 30, 40, 60, 100, 200):
            asyncio.run(start_and_cancel(steps))
        gc.collect()

    assert not [str(warning.message) for warning in caught if issubclass(warning.category, ResourceWarning)]


def test_no_socket_is_left_by_a_request_cancelled_after_any_number_of_steps(config):
    """asyncio forgets a TLS connection whose making is cancelled at the wrong moment; the transport does not."""

    async def ask_and_cancel(steps):
        transport = Transport(config)
        task = asyncio.ensure_future(transport.request("GET", "/version"))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        await transport.close()

    collect_garbage_of_other_tests()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        for steps in range(60):
            asyncio.run(ask_and_cancel(steps))
        gc.collect()

    assert not [str(warning.message) for warning in caught if issubclass(warning.category, ResourceWarning)]

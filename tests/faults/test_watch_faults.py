"""Watches and lists under faults: what a manager does when connections, answers, histories, kinds and permissions fail.

Each scenario has its bound; docs/operate/recovery-times.md lists them and is checked against this file.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
import os
import re
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from cases import on_both_servers
from fault_scenarios import Outcome, Scenario, World, run, scenario
from loose_definitions import loose_definition
from servers import LONGEST_WAIT

from ctrlruntime.api import apps, batch, coordination, core, meta, networking, rbac
from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.api.object import Object
from ctrlruntime.errors import RequestTimeoutError
from ctrlruntime.rest.config import get_config
from ctrlruntime.testing import eventually
from ctrlruntime.testing.faults import Match

SCENARIOS: list[Scenario] = []
fault = functools.partial(scenario, into=SCENARIOS)

PADDING = "äöü€😀" * (3 * 1024 * 1024 // 13)  # 3 MiB of characters of two, three and four bytes


class Gadget(Object, group="faults.example.com", version="v1"):
    pass


class Gizmo(Object, group="faults.example.com", version="v1"):
    pass


# --- connections -----------------------------------------------------------------------------------------------------


@fault("a watch goes silent, but its socket stays open", kind="connection", bound=60)
async def silent_watch(world: World) -> None:
    await world.prepare()
    async with world.running():
        with world.proxy.stall(world.watches(), count=1) as stall:
            began = await world.change()
        await world.recovered(began)
        assert stall.hits == 1
        assert world.restarts("stalled") == 1
        world.assert_no_list(since=began)


@fault("a watch goes silent inside a frame", kind="connection", bound=60)
async def silence_inside_a_frame(world: World) -> None:
    await world.prepare()
    async with world.running():
        with world.proxy.stall(world.watches(), after=40, count=1):
            began = await world.change()
            await world.recovered(began)
        world.assert_no_list(since=began)


@fault("new watches are silent too, for 30 s", kind="connection", bound=60)
async def silence_that_lasts(world: World) -> None:
    await world.prepare()
    async with world.running():
        with world.proxy.stall(world.watches()):
            began = await world.change()
            await world.times.sleep(30)
            ended = await world.change()
        await world.recovered(ended)
        world.assert_no_list(since=began)


@fault(
    "a watch goes silent, and a read misses a write of this process",
    kind="connection",
    bound=15,
    unscaled=11.0,
    options={"timeout": (60.0, 60.0)},
)  # fmt: skip - the read waits 5 s for the write, and a watch is silent from 5 s on
async def silence_that_a_read_notices(world: World) -> None:
    await world.prepare()
    async with world.running():
        client, key = world.manager.client, NamespacedName(world.namespace, "written")
        written = core.ConfigMap(metadata=meta.ObjectMeta(name=key.name, namespace=key.namespace))
        with world.proxy.stall(world.watches(), count=1):
            began = await world.change()
            await client.create(written)
            await client.get(core.ConfigMap, key)
        await world.recovered(began)
        (informer,) = world.manager.cache.informers().values()
        assert [reflector.restarts for reflector in informer.reflectors.values()] == [{"silent": 1}]


@fault("the network drops all bytes for 20 s, also those of pooled connections", kind="connection", bound=60)
async def black_hole(world: World) -> None:
    await world.prepare()
    async with world.running():
        await world.open_connections(4)
        with world.proxy.black_hole():
            began = await world.change()
            await world.times.sleep(20)
        await world.recovered(began)
        world.assert_no_list(since=began)


@fault("a firewall forgets all connections, then a write is sent", kind="connection", bound=60)
async def forgotten_connections(world: World) -> None:
    await world.prepare()
    async with world.running():
        client = world.manager.client
        await world.open_connections(4)
        with world.proxy.black_hole():
            pass
        began = time.monotonic()
        written = core.ConfigMap(metadata=meta.ObjectMeta(name="written", namespace=world.namespace))
        with pytest.raises(RequestTimeoutError):
            await client.create(written)
        await client.create(written)  # the first one met a dead connection, and that is enough to distrust them all
        await world.recovered(began)
        world.assert_no_list(since=began)


@fault("a watch sends single bytes, without a complete frame", kind="connection", bound=60)
async def dripping_watch(world: World) -> None:
    await world.prepare()
    async with world.running():
        with world.proxy.slow_body(world.watches(), 20 * world.times.scale, count=1) as drip:
            began = await world.change()
            await world.recovered(began)
            assert drip.hits == 1
        world.assert_no_list(since=began)


@fault("a watch is reset", kind="connection", bound=5)
async def reset_watch(world: World) -> None:
    await world.prepare()
    async with world.running():
        with world.proxy.reset(world.watches(), count=1):
            began = await world.change()
        await world.recovered(began)
        assert world.restarts("cut") == 1
        world.assert_no_list(since=began)


@fault("a watch breaks inside a frame", kind="connection", bound=5)
async def broken_frame(world: World) -> None:
    await world.prepare()
    async with world.running():
        with world.proxy.reset(world.watches(), after=40, count=1):
            began = await world.change()
            await world.recovered(began)
        world.assert_no_list(since=began)


def _refusing(seconds: float):
    async def body(world: World) -> None:
        await world.prepare()
        async with world.running():
            with world.proxy.refuse():
                began = await world.change()
                await world.times.sleep(seconds)
                ended = time.monotonic()
            await world.recovered(ended)
            # A server keeps the history of a busy kind for 75 s; after that a list is what is needed.
            if seconds < 75:
                world.assert_no_list(since=began)

    return body


fault("connections are refused for 15 s", kind="connection", bound=40)(_refusing(15))
fault("connections are refused for 2 minutes", kind="connection", bound=65)(_refusing(120))


@fault("each watch ends as soon as it starts, for 20 s", kind="connection", bound=40)
async def ended_at_once(world: World) -> None:
    await world.prepare()
    async with world.running():
        with world.proxy.close_watches(world.watches()):
            began = await world.change()
            await world.times.sleep(20)
            ended = time.monotonic()
        assert world.proxy.count(world.watches(), since=began) <= 12
        await world.recovered(ended)
        world.assert_no_list(since=began)


@fault("a watch request gets no response", kind="connection", bound=60)
async def headers_that_never_come(world: World) -> None:
    await world.prepare()
    async with world.running():
        with world.proxy.delay(world.watches(), 90 * world.times.scale, at="request", count=1):
            with world.proxy.reset(world.watches(), count=1):
                pass
            await world.proxy.wait_for(world.watches(), 2)
            began = await world.change()
            await world.recovered(began)
        world.assert_no_list(since=began)


@fault("the first list of one kind hangs, another kind continues", kind="connection", bound=70,
       kinds=(core.ConfigMap, core.Secret))  # fmt: skip
async def one_list_hangs(world: World) -> None:
    await world.prepare()
    await world.prepare(core.Secret)
    with world.proxy.stall(world.lists(core.Secret), count=1):
        began = time.monotonic()
        async with world.running(synced=[core.ConfigMap]):
            changed = await world.change()
            await world.recovered(changed, kind=core.ConfigMap, within=5)
            await world.recovered(began)


@fault("the watch of one kind goes silent, another kind continues", kind="connection", bound=60,
       kinds=(core.ConfigMap, core.Secret))  # fmt: skip
async def one_watch_hangs(world: World) -> None:
    await world.prepare()
    await world.prepare(core.Secret)
    async with world.running():
        with world.proxy.stall(world.watches(core.Secret), count=1):
            began = await world.change(core.Secret)
        changed = await world.change()
        await world.recovered(changed, kind=core.ConfigMap, within=5)
        await world.recovered(began)
        world.assert_no_list(since=began, kind=core.Secret)


@fault("frames arrive 5 s late", kind="connection", bound=10)
async def late_frames(world: World) -> None:
    await world.prepare()
    async with world.running():
        with world.proxy.delay(world.watches(), 5 * world.times.scale):
            began = await world.change()
            await world.change()
            await world.recovered(began)
        world.assert_no_list(since=began)


@fault("frames of 3 MiB arrive in pieces, split inside characters", kind="connection", bound=40)
async def huge_frames(world: World) -> None:
    def pad(item):
        item["metadata"].setdefault("annotations", {})["padding"] = PADDING
        return json.dumps(item, ensure_ascii=False).encode()

    await world.prepare()
    async with world.running():
        with world.proxy.rewrite(world.watches(), pad) as poison, world.proxy.split(world.watches(), 65_537, pause=0):
            began = await world.change()
            await world.recovered(began)
            assert poison.hits >= 3
        world.assert_no_list(since=began)


# --- history ---------------------------------------------------------------------------------------------------------


def _expiry(how: str, reason: str):
    async def body(world: World) -> None:
        await world.prepare()
        async with world.running():
            before = time.monotonic()
            with world.proxy.expire(world.watches(), how, reason=reason) as expiry:
                if how == "http":
                    with world.proxy.reset(world.watches(), count=1):
                        pass
                began = await world.change()
                await world.recovered(began)
            assert expiry.hits == 1
            assert world.restarts("expired") == 1
            world.assert_lists(1, since=before)

    return body


for _how, _words in (("event", "in the watch, as an event"), ("http", "as the response to a watch")):
    for _reason in ("Expired", "Gone"):
        fault(f"410 {_reason} {_words}", kind="history", bound=5)(_expiry(_how, _reason))


@fault("a continue token expires on the second page", kind="history", bound=10, options={"page_size": 2})
async def expired_page(world: World) -> None:
    await world.prepare()
    async with world.running():
        with world.proxy.expire(world.lists(), "page") as page, world.proxy.expire(world.watches(), "event"):
            began = await world.change()
            await world.recovered(began)
        assert page.hits == 1
        lists = world.proxy.matching(world.lists(), since=began)
        assert all("limit" in request.query for request in lists)
        assert max(int(request.query["limit"]) for request in lists) <= 4


@fault("a list is interrupted inside its first page", kind="history", bound=10, options={"page_size": 2})
async def broken_page(world: World) -> None:
    await world.prepare()
    async with world.running():
        with world.proxy.reset(world.lists(), after=100, count=1) as cut, world.proxy.expire(world.watches(), "event"):
            began = await world.change()
            await world.recovered(began)
        assert cut.hits == 1
        world.assert_lists(2, since=began)


@fault("a watch goes silent, and its version is too old to resume", kind="history", bound=60)
async def silence_and_expiry(world: World) -> None:
    await world.prepare()
    async with world.running():
        with world.proxy.stall(world.watches(), count=1):
            began = await world.change()
        with world.proxy.expire(world.watches()):
            await world.recovered(began)
        world.assert_lists(1, since=began)


@fault("every version is too old for 20 s", kind="history", bound=60)
async def storm_of_410(world: World) -> None:
    await world.prepare()
    async with world.running():
        with world.proxy.expire(world.watches(), "event", count=None):
            began = await world.change()
            await world.times.sleep(20)
            ended = await world.change()
        assert world.proxy.count(world.lists(), since=began) <= 12
        await world.recovered(ended)


@fault("a list comes from a server with older data", kind="history", bound=15)
async def list_from_the_past(world: World) -> None:
    await world.prepare()
    async with world.running():
        began = await world.change()
        await world.recovered(began)
        with world.proxy.serve_stale(world.lists()) as rewind, world.proxy.expire(world.watches(), "event"):
            await eventually(lambda: rewind.hits, interval=0.01)
        began = await world.change()
        await world.recovered(began)


# --- answers ---------------------------------------------------------------------------------------------------------


@fault("429 with Retry-After for 30 s", kind="throttling", bound=10)
async def throttled(world: World) -> None:
    wait = 3 * world.times.scale
    await world.prepare()
    async with world.running():
        with world.proxy.throttle(world.requests(), retry_after=wait) as throttle:
            with world.proxy.reset(world.watches(), count=1):
                pass
            began = await world.change()
            await world.times.sleep(30)
            ended = time.monotonic()
        await world.recovered(ended)
        assert throttle.hits
        refused_at = [r.time for r in world.proxy.matching(world.requests(), since=began) if r.status == 429]
        gaps = [later - earlier for earlier, later in itertools.pairwise(refused_at)]
        assert all(gap >= wait for gap in gaps), (
            f"a request came {min(gaps):.3f} s after one that was told {wait:.3f} s"
        )
        world.assert_no_list(since=began)


@fault("429 with Retry-After for the first lists", kind="throttling", bound=10)
async def throttled_at_the_start(world: World) -> None:
    await world.prepare()
    began = time.monotonic()
    with world.proxy.throttle(world.lists(), retry_after=3 * world.times.scale, count=2) as throttle:
        async with world.running():
            await world.recovered(began)
    assert throttle.hits == 2


def _failing(status: int):
    async def body(world: World) -> None:
        await world.prepare()
        async with world.running():
            with world.proxy.respond(Match(), status) as failing:
                with world.proxy.reset(world.watches(), count=1):
                    pass
                began = await world.change()
                await world.times.sleep(30)
                ended = time.monotonic()
            assert 2 <= failing.hits <= 20
            await world.recovered(ended)
            world.assert_no_list(since=began)

    return body


for _status in (500, 503, 504):
    fault(f"every request gets {_status} for 30 s", kind="throttling", bound=60)(_failing(_status))


@fault("a response is not JSON", kind="objects", bound=5)
async def answer_without_sense(world: World) -> None:
    await world.prepare()
    async with world.running():
        with world.proxy.rewrite(world.watches(), lambda _: b"{this is not JSON"):
            began = await world.change()
            await world.proxy.wait_for(world.watches(), 1, since=began)
        ended = time.monotonic()
        await world.recovered(ended)
        world.assert_no_list(since=began)


# --- kinds and permissions ---------------------------------------------------------------------------------------------


@fault(
    "a kind is not served at first, and is added later",
    kind="kinds",
    bound=15,
    kinds=(core.ConfigMap, Gadget),
    unscaled=1.0,
)  # fmt: skip - for a second discovery is not asked again for a kind it did not know
async def late_kind(world: World) -> None:
    await world.prepare()
    names = []
    try:
        async with world.running(synced=[core.ConfigMap]):
            changed = await world.change()
            await world.recovered(changed, kind=core.ConfigMap, within=5)
            names = await asyncio.to_thread(world.server.install_crds, loose_definition(Gadget))
            began = time.monotonic()
            await world.prepare(Gadget)
            await world.recovered(began)
    finally:
        await asyncio.to_thread(world.server.uninstall_crds, names)


@fault("a kind is removed and added again, another kind continues", kind="kinds", bound=15, kinds=(core.ConfigMap, Gizmo),
       unscaled=1.0)  # fmt: skip
async def removed_kind(world: World) -> None:
    await world.prepare()
    names = await asyncio.to_thread(world.server.install_crds, loose_definition(Gizmo))
    try:
        await world.prepare(Gizmo)
        async with world.running():
            removed = time.monotonic()
            await asyncio.to_thread(world.server.uninstall_crds, names)
            await world.proxy.wait_for(Match(resource="gizmos"), timeout=LONGEST_WAIT, since=removed)
            changed = await world.change()
            await world.recovered(changed, kind=core.ConfigMap, within=5)
            world.assert_no_list(since=removed)
            await eventually(lambda: _is_installed_again(world))
            await world.prepare(Gizmo)
            began = time.monotonic()
            await world.recovered(began)
    finally:
        await asyncio.to_thread(world.server.uninstall_crds, names)


async def _is_installed_again(world: World) -> bool:
    await asyncio.to_thread(
        world.server.install_crds, loose_definition(Gizmo)
    )  # refused while the old one is being deleted
    return True


def _role(world: World, name: str, resource: str) -> dict[str, object]:
    return {
        "metadata": {"name": name},
        "rules": [{"apiGroups": [""], "resources": [resource], "verbs": ["get", "list", "watch"]}],
    }


@fault("a permission is removed and added again, another kind continues", kind="kinds", bound=15,
       kinds=(core.ConfigMap, core.Secret),
       may_log=("forbidden to list and watch, waiting for permission",))  # fmt: skip
async def removed_permission(world: World) -> None:
    await world.prepare()
    await world.prepare(core.Secret)
    request = functools.partial(asyncio.to_thread, world.server.connection.request)
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{world.namespace}"
    for resource in ("configmaps", "secrets"):
        await request("POST", f"{rbac}/roles", _role(world, resource, resource))
        await request("POST", f"{rbac}/rolebindings", _binding(resource))
    file = world.proxy.kubeconfig_path.with_name("reader")
    file.write_text(world.proxy.kubeconfig_for(world.server.add_user("reader")))
    world.config = world.times.config(get_config(str(file)))
    async with world.running():
        removed = time.monotonic()
        await request("DELETE", f"{rbac}/roles/secrets")
        await _refused(world, removed)
        changed = await world.change()
        await world.recovered(changed, kind=core.ConfigMap, within=5)
        await world.change(core.Secret)
        await request("POST", f"{rbac}/roles", _role(world, "secrets", "secrets"))
        await world.recovered(time.monotonic())
        world.assert_no_list(since=removed)


def _binding(role: str) -> dict[str, object]:
    group = "rbac.authorization.k8s.io"
    return {
        "metadata": {"name": role},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": role},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "reader"}],
    }


async def _refused(world: World, since: float) -> None:
    async def is_refused() -> bool:
        return any(r.status == 403 for r in world.proxy.matching(world.requests(kind=core.Secret), since=since))

    await eventually(is_refused)


# --- objects ---------------------------------------------------------------------------------------------------------


@fault("an object cannot be decoded, others are not affected", kind="objects", bound=10,
       may_log=("reconcile failed, retrying with backoff",))  # fmt: skip
async def poisoned_object(world: World) -> None:
    def poison(item):
        return item | {"data": ["no", "map"]} if item["metadata"]["name"] == "kept" else item

    await world.prepare()
    reading = world.requests("list", "watch")
    async with world.running():
        with world.proxy.rewrite(reading, poison):
            began = await world.change()
            others = {"new-1", "gone-2", "gone-3"}
            await eventually(lambda: others <= {n for n, v in world.first.reconciled.items() if v})
        began = await world.change()
        await world.recovered(began)
        world.assert_no_list(since=began)


@fault("an object without metadata is skipped", kind="objects", bound=10,
       may_log=("object without readable metadata skipped",))  # fmt: skip
async def object_without_metadata(world: World) -> None:
    def behead(item):
        return {"kind": "ConfigMap"} if item["metadata"]["name"] == "new-1" else item

    await world.prepare()
    async with world.running():
        with world.proxy.rewrite(world.watches(), behead):
            await world.change()
            await eventually(lambda: world.first.reconciled.get("gone-1", "") is None)
        assert "new-1" not in world.first.reconciled
        await asyncio.to_thread(world.first.update, "new-1")
        began = await world.change()
        await world.recovered(began)
        world.assert_no_list(since=began)


@fault("an object of another kind is skipped", kind="objects", bound=10,
       may_log=("object of another kind skipped",))  # fmt: skip
async def object_of_another_kind(world: World) -> None:
    def swap(item):
        return item | {"kind": "Secret"} if item["metadata"]["name"] == "new-1" else item

    await world.prepare()
    async with world.running():
        with world.proxy.rewrite(world.watches(), swap):
            await world.change()
            await eventually(lambda: world.first.reconciled.get("gone-1", "") is None)
        assert "new-1" not in world.first.reconciled
        await asyncio.to_thread(world.first.update, "new-1")
        began = await world.change()
        await world.recovered(began)
        world.assert_no_list(since=began)


# --- clocks ----------------------------------------------------------------------------------------------------------


@fault("the event loop is blocked for 90 s", kind="clock", bound=10,
       may_log=("event loop hangs: lease not renewed, liveness fails",))  # fmt: skip
async def frozen_loop(world: World) -> None:
    await world.prepare()
    async with world.running():
        began = await world.change()
        time.sleep(90 * world.times.scale)  # noqa: ASYNC251 - the loop is what stands still
        await world.recovered(time.monotonic())
        world.assert_no_list(since=began)


@fault("the wall clock jumps by hours", kind="clock", bound=10)
async def jumping_clock(world: World) -> None:
    await world.prepare()
    async with world.running():
        real = time.time
        with ExitStack() as stack:
            patch = stack.enter_context(pytest.MonkeyPatch.context())
            patch.setattr(time, "time", lambda: real() + 7200)
            began = await world.change()
            await world.recovered(began)
            patch.setattr(time, "time", lambda: real() - 7200)
            began = await world.change()
            await world.recovered(began)
        world.assert_no_list(since=began)


# --- readiness -------------------------------------------------------------------------------------------------------


@fault("readiness names a stale kind, and recovers", kind="readiness", bound=60,
       kinds=(core.ConfigMap, core.Secret))  # fmt: skip
async def stale_kind(world: World) -> None:
    await world.prepare()
    await world.prepare(core.Secret)
    async with world.running(health_probe_bind_address="127.0.0.1:0"):
        with world.proxy.stall(world.requests(kind=core.Secret)):
            began = time.monotonic()
            await world.change(core.Secret)
            while not (why := await world.unready()):
                assert time.monotonic() - began < world.times.bound(180)
                await asyncio.sleep(0.02)
            # The last proof of life may be as old as a watch when the silence begins.
            assert time.monotonic() - began >= world.times.stale_after - world.times.watch.timeout[1]
            assert "Secret" in why
            assert "ConfigMap" not in why
        ended = time.monotonic()
        await world.recovered(ended)
        assert not await world.unready()
        world.assert_no_list(since=began, kind=core.Secret)


MANY_KINDS = (
    core.ConfigMap, core.Secret, core.Service, core.ServiceAccount, core.Pod, core.PersistentVolumeClaim,
    core.ReplicationController, core.LimitRange, core.ResourceQuota, core.PodTemplate, apps.Deployment, apps.StatefulSet,
    apps.DaemonSet, apps.ReplicaSet, batch.Job, batch.CronJob, rbac.Role, rbac.RoleBinding, coordination.Lease,
    networking.Ingress,
)  # fmt: skip


@fault("a hundred watches end on time, and readiness stays true", kind="readiness", bound=10,
       options={"timeout": (1.0, 1.0), "timeout_grace": 10.0})  # fmt: skip
async def ordinary_reconnects(world: World) -> None:
    watches = Match(verb="watch", namespace=world.namespace)
    await world.prepare()
    async with world.running(health_probe_bind_address="127.0.0.1:0"):
        await asyncio.gather(*(world.manager.cache.list(kind, namespace=world.namespace) for kind in MANY_KINDS))
        began = time.monotonic()
        while world.proxy.count(watches, since=began) < 100:
            assert not await world.unready()
            assert time.monotonic() - began < LONGEST_WAIT
            await asyncio.sleep(0.05)
        assert not world.proxy.count(Match(verb="list", namespace=world.namespace), since=began)
        await world.recovered(await world.change())


# --- the suite -------------------------------------------------------------------------------------------------------

AT_ONCE = 8


def _chosen() -> list[str]:
    """Return the scenarios in which the server takes part, and the first one of each other class: there the proxy fails."""
    first = {made.kind: made for made in reversed(SCENARIOS)}
    return [str(made) for made in SCENARIOS if made.kind in {"history", "kinds"} or made is first[made.kind]]


def is_scaled() -> bool:
    return os.environ.get("CTRLRUNTIME_FAULT_SCALE", "0.05") != "1"


@pytest.mark.skipif(not is_scaled(), reason="with the default times all run at once, see below")
@pytest.mark.parametrize(
    ("server", "made"),
    on_both_servers({str(made): made for made in SCENARIOS}, real=_chosen()),
    indirect=["server"],
)
async def test_recovers_within_its_bound(made, server, times, outcomes, log_lines):
    outcomes.append(await run(made, server, times, log_lines))


@pytest.mark.skipif(is_scaled(), reason="by hand: scripts/faults --defaults")
async def test_all_recover_within_their_bounds_with_the_default_times(server, times, outcomes, log_lines):
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(made: Scenario) -> Outcome | str:
        async with turns:
            try:
                return await run(made, server, times, log_lines)
            except Exception as error:  # noqa: BLE001 - the others go on
                return f"{made.name}: {error!r}"

    alone = {"the event loop is blocked for 90 s", "the wall clock jumps by hours"}  # they concern the whole process
    results = list(await asyncio.gather(*(one(made) for made in SCENARIOS if made.name not in alone)))
    results += [await one(made) for made in SCENARIOS if made.name in alone]
    outcomes += [result for result in results if isinstance(result, Outcome)]
    failures = [result for result in results if isinstance(result, str)]

    assert not failures, "\n".join(failures)


def test_the_page_of_bounds_lists_these_scenarios():
    page = (Path(__file__).parents[2] / "docs" / "operate" / "recovery-times.md").read_text()
    rows = re.findall(r"^\| (.+?) \| (\w+) \| (\d+) s \|$", page, re.MULTILINE)

    assert sorted(rows) == sorted((made.name, made.kind, str(made.bound)) for made in SCENARIOS)

"""Which Pod `ctrl why` asks in a cluster, at which port, and how a request gets through the forwarded connection."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable

import pytest
from aiohttp import WSMsgType, web

from ctrlruntime.api import core
from ctrlruntime.api.coordination.v1 import Lease
from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.errors import Forbidden, TransportError
from ctrlruntime.project.deployment.debugging import NoDebugPortError, debug_port
from ctrlruntime.project.deployment.pods import PodChoiceError, SeveralPodsError, choose_pod, flag_value
from ctrlruntime.project.deployment.portforward import PROTOCOL, Page, PortForwardError, get_from_pod
from ctrlruntime.rest.config import Config
from ctrlruntime.rest.limits import AnswerLimits
from ctrlruntime.rest.transport import Transport

DEPLOYMENT = NamespacedName("shop-system", "shop-controller-manager")


def pod(name: str, *, ready: bool = True, deleting: bool = False, hostname: str = "") -> core.Pod:
    meta = {"name": name, "namespace": "shop-system"}
    if deleting:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return core.Pod.from_dict({"metadata": meta, "spec": {"hostname": hostname}, "status": {"conditions": conditions}})


def lease(name: str, holder: str | None) -> Lease:
    return Lease.from_dict({"metadata": {"name": name}, "spec": {"holderIdentity": holder}})


def chosen(pods: list[core.Pod], leases: list[Lease] | None = None) -> str:
    return choose_pod(DEPLOYMENT, pods, leases).metadata.name


# --- the Pod ----------------------------------------------------------------------------------------------------------


def test_choose_pod_takes_the_holder_of_the_lease():
    pods = [pod("shop-a"), pod("shop-b"), pod("shop-c")]

    assert chosen(pods, [lease("shop", "shop-b_6f1c"), lease("other", "other-a_1"), lease("free", None)]) == "shop-b"
    assert chosen(pods, [lease("shop", "shop-c")]) == "shop-c"


def test_choose_pod_takes_a_leader_that_is_not_ready_or_is_deleted():
    pods = [pod("shop-a", ready=False), pod("shop-b")]

    assert chosen(pods, [lease("shop", "shop-a_1")]) == "shop-a"
    assert chosen([pod("shop-a", deleting=True), pod("shop-b")], [lease("shop", "shop-a_1")]) == "shop-a"


def test_choose_pod_knows_host_names_that_differ_from_the_name():
    long = "x" * 62 + "-abcde"

    assert chosen([pod(long), pod("shop-b")], [lease("shop", f"{'x' * 62}_1")]) == long
    assert chosen([pod("shop-a", hostname="one"), pod("shop-b")], [lease("shop", "one_1")]) == "shop-a"


def test_choose_pod_takes_the_only_ready_pod_without_a_lease():
    pods = [pod("shop-a", ready=False), pod("shop-b"), pod("shop-c", deleting=True)]

    assert chosen(pods, []) == "shop-b"
    assert chosen(pods, [lease("shop", "gone-x_1")]) == "shop-b"
    assert chosen(pods, None) == "shop-b"


@pytest.mark.parametrize(
    ("pods", "text"),
    [
        ([], "has no Pods"),
        ([pod("a", ready=False)], "has 1 Pod, and none is ready"),
        ([pod("a", ready=False), pod("b", deleting=True)], "has 2 Pods, and none is ready"),
    ],
)
def test_choose_pod_without_a_ready_pod_refers_to_ctrl_doctor(pods, text):
    with pytest.raises(PodChoiceError, match=rf"^Deployment {DEPLOYMENT} {text}. Find the reason with `ctrl doctor`$"):
        chosen(pods, [])


def test_choose_pod_with_several_leaders_names_pods_and_leases():
    leases = [lease("shop", "shop-b_1"), lease("jobs", "shop-a_2"), lease("more", "shop-a_3")]

    with pytest.raises(SeveralPodsError, match="hold a Lease: shop-a holds jobs, more; shop-b holds shop"):
        chosen([pod("shop-a"), pod("shop-b")], leases)


def test_choose_pod_of_replicas_that_share_the_objects_takes_the_first():
    members = [lease(f"shop-{name}", f"shop-{name}_shop-{name}") for name in "ba"]
    for each in members:
        each.metadata.labels["ctrlruntime.dev/ring"] = "shop"

    assert chosen([pod("shop-a"), pod("shop-b")], [lease("shop", "ring"), *members]) == "shop-a"


def test_choose_pod_with_several_ready_pods_and_no_leader_names_them():
    with pytest.raises(SeveralPodsError, match=r"several ready Pods \(a, b\), and none of them holds a Lease"):
        chosen([pod("b"), pod("a"), pod("c", ready=False)], [])
    with pytest.raises(
        SeveralPodsError, match=r"\(a, b, c, d, e and 2 more\).* verb list on leases.coordination.k8s.io"
    ):
        chosen([pod(name) for name in "gfedcba"], None)


# --- the port ---------------------------------------------------------------------------------------------------------


def spec(*args: str, name: str = "manager", command: tuple[str, ...] = (), env: dict[str, str] | None = None):
    variables = [{"name": key, "value": value} for key, value in (env or {}).items()]
    variables.append({"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}})
    container = {"name": name, "args": list(args), "command": list(command), "env": variables}
    return core.PodSpec.from_dict({"containers": [container]})


@pytest.mark.parametrize(
    ("found", "port"),
    [
        (spec("--debug-bind-address=127.0.0.1:8082"), 8082),
        (spec("--leader-elect", "--debug-bind-address", "9000", name="operator"), 9000),
        (spec("--debug-bind-address=:1", "--debug-bind-address=[::1]:2"), 2),
        (spec(command=("python", "-m", "shop", "--debug-bind-address=8082")), 8082),
        (spec("--debug-bind-address=$(HOST):$(PORT)", env={"HOST": "localhost", "PORT": "8083"}), 8083),
    ],
)
def test_debug_port_is_that_of_the_argument(found, port):
    assert debug_port(NamespacedName("ns", "a"), found) == port


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (
            spec(),
            "serves no debug pages. Add the argument --debug-bind-address=127.0.0.1:8082 to the container manager",
        ),
        (spec("--debug-bind-address=0"), "serves no debug pages. Add the argument"),
        (spec("--debug-bind-address"), "serves no debug pages. Add the argument"),
        (spec("--debug-bind-address=127.0.0.1:0"), "at a random port (127.0.0.1:0). Set the argument"),
        (spec("--debug-bind-address=0.0.0.0:8082"), "served on loopback only"),
        (spec("--debug-bind-address=$(SECRET)"), "is '$(SECRET)'"),
        (core.PodSpec.from_dict({"containers": [{"name": "a"}, {"name": "b"}]}), "no container manager but a, b"),
    ],
)
def test_no_debug_port_says_what_to_add_and_where(found, text):
    with pytest.raises(NoDebugPortError, match=re.escape(text)) as raised:
        debug_port(NamespacedName("ns", "a"), found)

    assert str(raised.value).startswith("Pod ns/a ")
    assert str(raised.value).endswith(" config/manager/manager.yaml, and run `ctrl deploy`")


def test_flag_value_is_none_for_a_longer_flag():
    assert flag_value(["--debug-bind-address-file=x", "--debug"], "--debug-bind-address") is None


# --- the forwarded connection -----------------------------------------------------------------------------------------

Kubelet = Callable[[web.WebSocketResponse], object]
HEADS = [b"\x00\x92\x1f", b"\x01\x92\x1f"]  # 8082
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


@contextlib.asynccontextmanager
async def forwarding(handle: Kubelet) -> AsyncIterator[tuple[Transport, list[web.Request]]]:
    """An API server whose kubelet does what `handle` does with the open WebSocket."""
    requests: list[web.Request] = []

    async def serve(request: web.Request) -> web.StreamResponse:
        requests.append(request)
        if handle is None:
            status = {"kind": "Status", "reason": "Forbidden", "code": 403, "message": "no"}
            return web.json_response(status, status=403)
        socket = web.WebSocketResponse(protocols=[PROTOCOL])
        await socket.prepare(request)
        await handle(socket)
        return socket

    runner = web.ServerRunner(web.Server(serve), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    transport = Transport(Config(host=f"http://127.0.0.1:{runner.addresses[0][1]}"))
    try:
        yield transport, requests
    finally:
        await transport.close()
        await runner.cleanup()


def sending(*messages: bytes) -> Kubelet:
    async def send(socket: web.WebSocketResponse) -> None:
        for message in messages:
            await socket.send_bytes(message)
        await socket.close()

    return send


async def get(transport: Transport, *, timeout: float = 30.0, **options) -> Page:
    key = NamespacedName("shop-system", "shop-a")
    return await get_from_pod(transport, key, 8082, "/debug?a=b", timeout=timeout, **options)


async def test_get_from_pod_sends_one_request_and_returns_the_response():
    came: list[bytes] = []

    async def kubelet(socket: web.WebSocketResponse) -> None:
        for head in HEADS:
            await socket.send_bytes(head)
        message = await socket.receive()
        assert message.type == WSMsgType.BINARY
        came.append(message.data)
        for at in range(0, len(RESPONSE), 7):
            await socket.send_bytes(b"\x00" + RESPONSE[at : at + 7])
        await socket.receive()  # the client ends it, the Pod may keep its connection open

    async with forwarding(kubelet) as (transport, requests):
        page = await get(transport)

    assert page == Page(200, b"hello")
    assert requests[0].path_qs == "/api/v1/namespaces/shop-system/pods/shop-a/portforward?ports=8082"
    assert came == [b"\x00GET /debug?a=b HTTP/1.1\r\nHost: localhost:8082\r\nAccept: */*\r\nConnection: close\r\n\r\n"]


async def test_get_from_pod_returns_failures_of_the_operator_as_they_are():
    async with forwarding(sending(*HEADS, b"\x00HTTP/1.1 404 Not Found\r\n\r\n", b"\x00gone")) as (transport, _):
        assert await get(transport) == Page(404, b"gone")


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ([*HEADS, b"\x01connection\nrefused"], "port 8082 of Pod shop-system/shop-a: connection refused$"),
        ([HEADS[1], b"\x01" + b"x" * 600], r"Pod shop-system/shop-a: x{500}…$"),
        (HEADS, "closed the connection without a response"),
        ([*HEADS, b"\x00HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"], "broke off"),
        ([*HEADS, b"\x00SSH-2.0-OpenSSH\r\n"], "not HTTP/1.1"),
        ([b"\x00\x50\x00"], "does not forward ports as v4.channel.k8s.io does"),
        ([*HEADS, b"\x02a"], "does not forward ports as"),
        ([*HEADS, b""], "does not forward ports as"),
    ],
    ids=["error", "long error", "nothing", "half", "no HTTP", "other port", "other channel", "no channel"],
)
async def test_get_from_pod_reports_what_failed(messages, text):
    async with forwarding(sending(*messages)) as (transport, _):
        with pytest.raises(PortForwardError, match=text):
            await get(transport)


async def test_get_from_pod_bounds_time_and_size():
    async def silent(_socket: web.WebSocketResponse) -> None:
        await asyncio.Event().wait()

    async with forwarding(silent) as (transport, _):
        with pytest.raises(
            PortForwardError, match=r"no response from port 8082 of Pod shop-system/shop-a within 0.2 s"
        ):
            await get(transport, timeout=0.2)
    async with forwarding(sending(*HEADS, b"\x00" + RESPONSE)) as (transport, _):
        with pytest.raises(PortForwardError, match="more than 4 bytes"):
            await get(transport, limits=AnswerLimits(head=1000, body=4))
    async with forwarding(sending(b"\x00" * 2_000_000)) as (transport, _):
        with pytest.raises(TransportError, match="longer than 1048576 bytes"):
            await get(transport)


async def test_get_from_pod_without_the_permission_is_forbidden():
    async with forwarding(None) as (transport, _):
        with pytest.raises(Forbidden, match="no"):
            await get(transport)

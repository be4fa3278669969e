from __future__ import annotations

import asyncio
import gc
import json
import socket
import threading

import pytest
from webhook_receiver import Raw, WebhookReceiver

from ctrlruntime.apiserver import Options
from ctrlruntime.apiserver.webhook_client import Endpoint, WebhookCallError, WebhookClient, endpoint_of
from ctrlruntime.errors import ConfigError


@pytest.fixture(scope="module")
def receiver():
    with WebhookReceiver(("127.0.0.1", "svc.ns.svc")) as running:
        yield running


@pytest.fixture
async def client():
    made = WebhookClient()
    yield made
    await made.close()


def endpoint(receiver, path="/x", **changes):
    return Endpoint(**{"url": receiver.url(path), "ca": receiver.authority.pem, **changes})


def open_sockets():
    return {each.fileno() for each in gc.get_objects() if type(each) is socket.socket} - {-1}


BODY = json.dumps({"kind": "K", "apiVersion": "v1", "request": {"uid": "u"}}).encode()


async def test_a_call_says_who_calls_and_how_long_it_waits(receiver, client):
    receiver.received.clear()

    answer = await client.call(endpoint(receiver), BODY, 7)

    (one,) = receiver.received
    assert json.loads(answer)["response"] == {"uid": "u", "allowed": True}
    assert (one.query, one.headers["User-Agent"]) == ({"timeout": "7s"}, "kube-apiserver-admission")
    assert one.headers["Content-Type"] == "application/json"


async def test_connections_are_used_again(receiver, client):
    receiver.received.clear()

    for _ in range(3):
        await client.call(endpoint(receiver), BODY, 5)

    assert len({one.connection for one in receiver.received}) == 1


async def test_an_answer_that_takes_too_long_is_a_deadline(receiver, client):
    receiver.answers["/slow"] = lambda _: Raw(b"", delay=30)

    with pytest.raises(WebhookCallError) as raised:
        await client.call(endpoint(receiver, "/slow"), BODY, 1)

    assert str(raised.value) == f'Post "{receiver.url("/slow")}?timeout=1s": context deadline exceeded'


async def test_connections_to_a_webhook_that_hangs_are_closed_with_the_client(receiver):
    context = receiver.tls()
    client, called, closed = WebhookClient(), asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def hang(listener: socket.socket) -> None:
        with context.wrap_socket(listener.accept()[0], server_side=True) as accepted:
            accepted.recv(1)
            loop.call_soon_threadsafe(called.set)
            closed.wait()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        before = open_sockets()
        webhook = threading.Thread(target=hang, args=(listener,))
        webhook.start()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}/x"
        call = asyncio.create_task(client.call(endpoint(receiver, url=url), BODY, 30))
        await called.wait()
        call.cancel()
        await asyncio.wait([call])
        try:
            await client.close()

            assert open_sockets() == before
        finally:
            closed.set()
            webhook.join()


async def test_a_busy_webhook_is_asked_again(receiver, client):
    answers = [Raw(b"later", 429, headers={"Retry-After": "0"}), Raw(b"{}")]
    receiver.answers["/busy"] = lambda _: answers.pop(0)

    assert await client.call(endpoint(receiver, "/busy"), BODY, 5) == b"{}"


async def test_a_port_nobody_listens_on_is_refused(client):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]

        with pytest.raises(WebhookCallError) as raised:
            await client.call(Endpoint(f"https://127.0.0.1:{port}/x"), BODY, 5)

    assert str(raised.value).endswith(f"dial tcp 127.0.0.1:{port}: connect: connection refused")


async def test_an_unknown_authority_is_not_trusted(receiver, client):
    with pytest.raises(WebhookCallError, match="x509: certificate signed by unknown authority"):
        await client.call(endpoint(receiver, ca=b""), BODY, 5)


async def test_a_certificate_for_another_name_is_not_trusted(receiver, client):
    named = endpoint(receiver, url=receiver.url("/x").replace("127.0.0.1", "localhost"))

    with pytest.raises(WebhookCallError, match=r"x509: certificate is valid for svc\.ns\.svc, not localhost"):
        await client.call(named, BODY, 5)


async def test_a_bundle_without_certificates_is_said_to_be_none(receiver, client):
    with pytest.raises(WebhookCallError, match="unable to parse bytes as PEM block"):
        await client.call(endpoint(receiver, ca=b"hello"), BODY, 5)


async def test_a_service_is_called_where_the_table_says(receiver, client):
    service = {"namespace": "ns", "name": "svc", "port": 8443, "path": "/served"}
    found = endpoint_of({"service": service, "caBundle": receiver.ca_bundle})
    receiver.received.clear()
    client.services["ns/svc:8443"] = f"127.0.0.1:{receiver.port}"

    await client.call(found, BODY, 5)

    (one,) = receiver.received
    assert (one.path, one.headers["Host"]) == ("/served", "svc.ns.svc:8443")


async def test_a_service_that_is_in_no_table_is_not_found(receiver, client):
    found = endpoint_of({"service": {"namespace": "ns", "name": "svc"}, "caBundle": receiver.ca_bundle})

    with pytest.raises(WebhookCallError) as raised:
        await client.call(found, BODY, 5)

    assert str(raised.value) == 'Post "https://svc.ns.svc:443/?timeout=5s": service "svc" not found'


async def test_a_service_that_exists_has_no_pods_behind_it(receiver, client):
    found = endpoint_of({"service": {"namespace": "ns", "name": "svc"}, "caBundle": receiver.ca_bundle})
    services = {("ns", "svc"): {"spec": {"clusterIP": "10.96.0.7"}}}
    client.find_service = lambda namespace, name: services.get((namespace, name))

    with pytest.raises(WebhookCallError) as raised:
        await client.call(found, BODY, 5)

    assert str(raised.value) == (
        'Post "https://svc.ns.svc:443/?timeout=5s": service "svc" exists, but the embedded API server runs no Pods behind it. Run the '
        "operator on this machine with `ctrl run --webhooks development`, or set clientConfig.url"
    )


@pytest.mark.parametrize(
    ("service", "address"),
    [("svc:443", "127.0.0.1:1"), ("ns/svc", "127.0.0.1:1"), ("ns/svc:443", "https://127.0.0.1:1")],
)
def test_a_table_of_services_that_is_not_understood_is_refused(service, address):
    with pytest.raises(ConfigError, match="webhook_services"):
        Options(webhook_services={service: address})

"""The webhook server: TLS from files and by hot reload, bodies, HTTP, readiness, metrics, and a stop that finishes what is under way."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from webhook_reviews import Game, game, review

import ctrlruntime as ctrl
from ctrlruntime.certificates import Authority, KeyPair, make_authority
from ctrlruntime.errors import CacheSyncTimeoutError, ConfigError
from ctrlruntime.metrics import Metrics
from ctrlruntime.testing import eventually
from ctrlruntime.webhook import TokenAuthentication, WebhookServer, unauthenticated
from ctrlruntime.webhook.server import default_cert_dir


@pytest.fixture(scope="module")
def authority() -> Authority:
    return make_authority("test")


@pytest.fixture
def folder(tmp_path, authority) -> Path:
    write(tmp_path, authority.server(["127.0.0.1"]))
    return tmp_path


def write(folder: Path, pair: KeyPair) -> None:
    for name, content in (("tls.key", pair.key), ("tls.crt", pair.certificate)):
        (folder / f".{name}").write_bytes(content)
        (folder / f".{name}").rename(folder / name)


@contextlib.asynccontextmanager
async def serving(folder: Path, *, server_options=None, **options) -> AsyncIterator[WebhookServer]:
    webhooks = WebhookServer(
        ctrl.webhook.WebhookOptions(host="127.0.0.1", port=0, cert_dir=folder, **options), **(server_options or {})
    )
    webhooks.register("/allow", ctrl.webhook.Admission(allow))
    await webhooks.start()
    try:
        yield webhooks
    finally:
        await webhooks.stop()


@contextlib.asynccontextmanager
async def client(authority: Authority, pair: KeyPair | None = None, folder: Path | None = None):
    context = ssl.create_default_context(cadata=authority.pem.decode())
    if pair is not None and folder is not None:
        (folder / "client.pem").write_bytes(pair.certificate + pair.key)
        context.load_cert_chain(folder / "client.pem")
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
        yield session
    await asyncio.sleep(0.01)


async def allow(request):
    return ctrl.webhook.allowed()


def url(webhooks: WebhookServer, path: str) -> str:
    return f"https://127.0.0.1:{webhooks.port}{path}"


async def post(session, webhooks, path="/allow", body=None, **options):
    headers = {"Content-Type": "application/json"}
    async with session.post(
        url(webhooks, path), data=body or review(object=game()), headers=headers, **options
    ) as answer:
        return answer.status, await answer.read()


async def shown_certificate(webhooks: WebhookServer) -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", webhooks.port, ssl=context)
    found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    with contextlib.suppress(ssl.SSLError, ConnectionError):
        await writer.wait_closed()
    return ssl.DER_cert_to_PEM_cert(found).encode()


async def listens_no_more(webhooks: WebhookServer) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", webhooks.port)
    except OSError:
        return True
    writer.close()
    return False


async def is_shown(webhooks: WebhookServer, pair: KeyPair) -> None:
    """Wait until who connects gets this certificate."""

    async def look() -> bool:
        return await shown_certificate(webhooks) == pair.certificate

    await eventually(look)


# TLS


async def test_reviews_are_answered_over_tls(folder, authority):
    async with serving(folder) as webhooks, client(authority) as session:
        status, body = await post(session, webhooks)

        assert status == 200
        assert json.loads(body)["response"]["allowed"]


async def test_new_connections_get_a_new_certificate_and_open_ones_go_on(folder, authority):
    other = authority.server(["127.0.0.1"])
    async with serving(folder) as webhooks, client(authority) as session:
        await post(session, webhooks)
        first = await shown_certificate(webhooks)
        write(folder, other)

        await is_shown(webhooks, other)
        assert first != other.certificate
        assert (await post(session, webhooks))[0] == 200


async def test_a_pair_of_another_sort_of_key_takes_over(folder, authority):
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(65537, 2048)
    known = x509.load_pem_x509_certificate((folder / "tls.crt").read_bytes())
    built = (
        x509.CertificateBuilder()
        .subject_name(known.subject).issuer_name(known.subject).public_key(key.public_key()).serial_number(1)
        .not_valid_before(known.not_valid_before_utc).not_valid_after(known.not_valid_after_utc)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    async with serving(folder) as webhooks:
        for pair in (KeyPair(built.public_bytes(pem), private), authority.server(["127.0.0.1"])):
            write(folder, pair)
            await is_shown(webhooks, pair)


async def test_no_review_of_2000_is_lost_while_the_certificate_is_renewed(folder, authority):
    """20 in flight, every fifth over a connection of its own."""
    numbers = iter(range(2000))
    statuses: list[int] = []

    async def ask(session, webhooks) -> None:
        for number in numbers:
            headers = {"Content-Type": "application/json"} | ({"Connection": "close"} if number % 5 == 0 else {})
            async with session.post(url(webhooks, "/allow"), data=body, headers=headers) as answer:
                assert json.loads(await answer.read())["response"]["allowed"]
                statuses.append(answer.status)

    async def renew(webhooks) -> None:
        while True:
            write(folder, authority.server(["127.0.0.1"]))
            webhooks._certificates._watcher.read()
            await asyncio.sleep(0.02)

    body = review(object=game())
    async with serving(folder) as webhooks, client(authority) as session:
        renewing = asyncio.ensure_future(renew(webhooks))
        await asyncio.gather(*(ask(session, webhooks) for _ in range(20)))
        renewing.cancel()
        await asyncio.wait({renewing})
        renewals, errors = webhooks.certificate_reads()

    assert statuses == [200] * 2000
    assert renewals > 10
    assert errors == 0


async def test_callers_without_a_certificate_of_the_client_ca_are_refused(folder, authority):
    (folder / "ca.crt").write_bytes(authority.pem)
    async with serving(folder, client_ca="ca.crt") as webhooks:
        async with client(authority, authority.client("apiserver"), folder) as session:
            assert (await post(session, webhooks))[0] == 200
        async with client(authority) as session:
            with pytest.raises(aiohttp.ClientError):
                await post(session, webhooks)
        stranger = make_authority("stranger").client("apiserver")
        async with client(authority, stranger, folder) as session:
            with pytest.raises(aiohttp.ClientError):
                await post(session, webhooks)


async def test_a_missing_certificate_ends_the_start_with_advice(tmp_path):
    webhooks = WebhookServer(ctrl.webhook.WebhookOptions(port=0, cert_dir=tmp_path))
    with pytest.raises(ConfigError, match=r"no certificate: cannot read .*tls\.crt.*development=DevelopmentMode\(\)"):
        await webhooks.start()


async def test_a_certificate_with_the_key_of_another_ends_the_start_with_advice(folder, authority):
    (folder / "tls.key").write_bytes(authority.server(["127.0.0.1"]).key)

    webhooks = WebhookServer(ctrl.webhook.WebhookOptions(port=0, cert_dir=folder))
    with pytest.raises(
        ConfigError, match=r"tls\.crt and .*tls\.key cannot be used: .*belong together.*--webhook-cert-path"
    ):
        await webhooks.start()


async def test_a_missing_client_ca_ends_the_start(folder):
    webhooks = WebhookServer(ctrl.webhook.WebhookOptions(port=0, cert_dir=folder, client_ca="ca.crt"))
    with pytest.raises(ConfigError, match=r"cannot read client_ca .*ca\.crt"):
        await webhooks.start()


async def test_a_taken_port_ends_the_start(folder):
    async with serving(folder) as webhooks:
        second = WebhookServer(ctrl.webhook.WebhookOptions(host="127.0.0.1", port=webhooks.port, cert_dir=folder))
        with pytest.raises(ConfigError, match="cannot listen"):
            await second.start()


async def test_a_taken_port_is_said_before_a_certificate_is_looked_for(folder, tmp_path):
    async with serving(folder) as webhooks:
        options = ctrl.webhook.WebhookOptions(host="127.0.0.1", port=webhooks.port, cert_dir=tmp_path / "empty")
        with pytest.raises(ConfigError, match="cannot listen"):
            await WebhookServer(options).start()


# HTTP


async def test_other_paths_and_methods_have_their_codes(folder, authority):
    async with serving(folder) as webhooks, client(authority) as session:
        assert (await post(session, webhooks, "/other"))[0] == 404
        async with session.get(url(webhooks, "/allow")) as answer:
            assert answer.status == 405


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_over_the_limit_is_a_413_in_the_review(folder, authority, chunked):
    async def parts():
        for _ in range(20):
            yield b" " * 1000

    async with serving(folder) as webhooks, client(authority) as session:
        webhooks.register("/small", ctrl.webhook.Admission(allow, body_limit=10_000))
        status, body = await post(session, webhooks, "/small", parts() if chunked else b" " * 20_000)

        response = json.loads(body)["response"]
        assert (status, response["allowed"], response["status"]["code"]) == (200, False, 413)
        assert (await post(session, webhooks, "/small"))[0] == 200


async def test_objects_of_the_largest_size_pass(folder, authority):
    async with serving(folder) as webhooks, client(authority) as session:
        large = game(image="x" * 3_000_000)
        status, body = await post(session, webhooks, body=io.BytesIO(review("UPDATE", large, large)))

        assert status == 200
        assert json.loads(body)["response"]["allowed"]


async def test_endpoints_can_be_added_while_it_runs(folder, authority):
    async def nobody(request):
        return unauthenticated()

    async with serving(folder) as webhooks, client(authority) as session:
        webhooks.register("/authenticate", TokenAuthentication(nobody))
        body = b'{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","spec":{"token":"t"}}'
        _, answer = await post(session, webhooks, "/authenticate", body)

        assert json.loads(answer)["status"] == {"authenticated": False}


async def test_a_handler_gets_the_time_the_api_server_waits(folder, authority):
    async def slow(request):
        await asyncio.Event().wait()

    async with serving(folder) as webhooks, client(authority) as session:
        webhooks.register("/slow", ctrl.webhook.Admission(slow))
        status, body = await post(session, webhooks, "/slow?timeout=100ms")

        assert (status, json.loads(body)["reason"]) == (504, "Timeout")  # no review: the failure policy applies
        assert json.loads(body)["message"].startswith("the webhook did not decide within ")


@pytest.mark.parametrize("is_late", [False, True], ids=["before the start", "after the start"])
async def test_one_body_of_the_largest_limit_always_fits(folder, authority, is_late):
    large = ctrl.webhook.Admission(allow, body_limit=300_000)
    webhooks = WebhookServer(
        ctrl.webhook.WebhookOptions(
            host="127.0.0.1", port=0, cert_dir=folder, limits=ctrl.manager.ServerLimits(body_bytes=1000)
        )
    )
    if not is_late:
        webhooks.register("/large", large)
    await webhooks.start()
    if is_late:
        webhooks.register("/large", large)
    async with client(authority) as session:
        status, body = await post(session, webhooks, "/large", review(object=game(image="x" * 290_000)))
    await webhooks.stop()

    assert status == 200
    assert json.loads(body)["response"]["allowed"]


async def test_a_stop_lets_reviews_finish_and_takes_no_new_ones(folder, authority):
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def slow(request):
        begun.set()
        await may_end.wait()
        return ctrl.webhook.allowed()

    async with serving(folder) as webhooks, client(authority) as session:
        webhooks.register("/slow", ctrl.webhook.Admission(slow))
        asked = asyncio.ensure_future(post(session, webhooks, "/slow"))
        await begun.wait()
        stopping = asyncio.ensure_future(webhooks.stop())
        await eventually(lambda: listens_no_more(webhooks))
        assert not stopping.done()
        may_end.set()

        assert (await asked)[0] == 200
        await stopping


async def test_stop_abandons_reviews_that_take_longer_than_its_caller_allows(folder, authority):
    started = asyncio.Event()

    async def slow(request):
        started.set()
        await asyncio.Event().wait()

    async with serving(folder, shutdown_timeout=3600.0) as webhooks, client(authority) as session:
        webhooks.register("/slow", ctrl.webhook.Admission(slow))
        asked = asyncio.ensure_future(post(session, webhooks, "/slow"))
        await started.wait()

        await webhooks.stop(within=0.01)

        with pytest.raises(Exception):  # noqa: B017 - of the HTTP client: the connection was closed
            await asked


async def test_a_stop_reads_the_review_whose_body_is_on_its_way(folder, authority):
    body = review(object=game())
    head = f"POST /allow HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    context = ssl.create_default_context(cadata=authority.pem.decode())
    async with serving(folder, shutdown_timeout=20.0) as webhooks:
        reader, writer = await asyncio.open_connection("127.0.0.1", webhooks.port, ssl=context)
        writer.write(head.encode() + body[:10])
        await eventually(lambda: webhooks.paths()[0].in_flight == 1)
        stopping = asyncio.ensure_future(webhooks.stop())
        await eventually(lambda: listens_no_more(webhooks))
        writer.write(body[10:])
        answer = await reader.read()
        writer.close()

        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b"connection: close" in answer.lower()
        await stopping


async def test_a_server_runs_once_and_stops_any_number_of_times(folder):
    async with serving(folder) as webhooks:
        with pytest.raises(RuntimeError, match="started before"):
            await webhooks.start()
        await webhooks.stop()
        await webhooks.stop()
        with pytest.raises(RuntimeError, match="not running"):
            _ = webhooks.address
    await WebhookServer(ctrl.webhook.WebhookOptions(cert_dir=folder)).stop()


# Readiness


class Cache:
    """Kinds that arrive when the test says so."""

    def __init__(self) -> None:
        self.arrived = asyncio.Event()
        self.asked: list[type] = []

    async def synced(self, kind: type) -> None:
        self.asked.append(kind)
        await self.arrived.wait()


async def test_reviews_wait_for_what_their_handler_reads(folder, authority):
    cache = Cache()
    async with serving(folder, server_options={"synced": cache.synced}) as webhooks, client(authority) as session:
        webhooks.register("/reads", ctrl.webhook.Admission(allow, cached_kinds=[Game]))
        webhooks.register("/reads-too", ctrl.webhook.Admission(allow, cached_kinds=[Game]))

        status, body = await post(session, webhooks, "/reads?timeout=100ms")
        assert status == 503
        assert json.loads(body)["kind"] == "Status"
        assert "has not synced Game" in json.loads(body)["message"]
        assert (await post(session, webhooks))[0] == 200  # the other one reads nothing
        with pytest.raises(ctrl.webhook.NotReadyError, match="Game has not synced"):
            await webhooks.started_checker()

        waiting = asyncio.ensure_future(post(session, webhooks, "/reads?timeout=10s"))
        cache.arrived.set()
        assert (await waiting)[0] == 200
        await webhooks.started_checker()
        assert cache.asked == [Game]


async def test_a_cache_that_cannot_be_read_is_503(folder, authority):
    async def reads(request):
        raise CacheSyncTimeoutError("games do not sync")

    async with serving(folder) as webhooks, client(authority) as session:
        webhooks.register("/reads", ctrl.webhook.Admission(reads))
        status, body = await post(session, webhooks, "/reads")

        assert (status, json.loads(body)["message"]) == (503, "games do not sync")


async def test_a_server_that_does_not_run_is_not_started(folder):
    with pytest.raises(RuntimeError, match="not running"):
        await WebhookServer(ctrl.webhook.WebhookOptions(cert_dir=folder)).started_checker()


# Registering


def test_registrations_are_facts():
    webhooks = WebhookServer()
    rule = ctrl.webhook.WebhookRule(mutating=True, name="a.b.c", groups=[""], versions=["v1"], resources=["pods"])
    webhooks.register("/pods", ctrl.webhook.Admission(allow), webhook=rule)
    webhooks.register("/other", ctrl.webhook.Admission(allow))

    assert [(one.path, one.kind, one.rule) for one in webhooks.registrations] == [
        ("/pods", "admission", rule),
        ("/other", "admission", None),
    ]


def test_a_path_is_registered_once_and_is_one():
    webhooks = WebhookServer()
    webhooks.register("/a", ctrl.webhook.Admission(allow))
    with pytest.raises(ConfigError, match="a second webhook at /a"):
        webhooks.register("/a", ctrl.webhook.Admission(allow))
    for path in ("a", "", "/a?b"):
        with pytest.raises(ConfigError, match="is not a webhook path"):
            webhooks.register(path, ctrl.webhook.Admission(allow))


def test_options_that_exclude_each_other_are_refused():
    secret = ctrl.webhook.SecretCertificates(name="a", namespace="b", service="c")
    for options in (
        {"port": -1},
        {"development": ctrl.webhook.DevelopmentMode(), "secret": secret},
        {"development": ctrl.webhook.DevelopmentMode(), "cert_dir": "/tmp"},
    ):
        with pytest.raises(ConfigError):
            ctrl.webhook.WebhookOptions(**options)
    with pytest.raises(ConfigError, match="needs a client"):
        WebhookServer(ctrl.webhook.WebhookOptions(development=ctrl.webhook.DevelopmentMode()))
    assert default_cert_dir().parts[-2:] == ("k8s-webhook-server", "serving-certs")


# Metrics


async def test_metrics_have_controller_runtimes_names(folder, authority):
    async def broken(request):
        raise ValueError

    metrics = Metrics()
    async with serving(folder, server_options={"metrics": metrics}) as webhooks, client(authority) as session:
        webhooks.register("/broken", ctrl.webhook.Admission(broken))
        await post(session, webhooks)
        await post(session, webhooks, "/broken")
        text = metrics.render()[0].decode()

    lines = set(text.splitlines())
    assert {
        'controller_runtime_webhook_requests_total{code="200",webhook="/allow"} 1.0',
        'controller_runtime_webhook_requests_total{code="500",webhook="/allow"} 0.0',
        'controller_runtime_webhook_requests_in_flight{webhook="/allow"} 0.0',
        'controller_runtime_webhook_latency_seconds_count{webhook="/allow"} 1.0',
        "controller_runtime_webhook_panics_total 1.0",
        "controller_runtime_conversion_webhook_panics_total 0.0",
        "certwatcher_read_certificate_total 1.0",
        "certwatcher_read_certificate_errors_total 0.0",
    } <= lines

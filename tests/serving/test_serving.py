from __future__ import annotations

import asyncio
import contextlib
import socket

import aiohttp
import pytest
from aiohttp import web

from ctrlruntime.errors import ConfigError
from ctrlruntime.healthz import Checks
from ctrlruntime.metrics import Metrics
from ctrlruntime.serving.endpoints import health_server, metrics_server
from ctrlruntime.serving.server import parse_address


@contextlib.asynccontextmanager
async def running(server):
    await server.start()
    try:
        host, port = server.address
        async with aiohttp.ClientSession(f"http://{host}:{port}") as session:
            yield session
    finally:
        await server.stop()


async def get(session, path, **options):
    async with session.get(path, **options) as answer:
        return answer.status, await answer.text()


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("", None),
        ("0", None),
        (":8080", ("", 8080)),
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("localhost:80", ("localhost", 80)),
        ("[::1]:8443", ("::1", 8443)),
    ],
)
def test_addresses(text, address):
    assert parse_address(text, "--flag") == address


@pytest.mark.parametrize("text", ["8080", "host", "host:", ":http", ":70000", "::1:80", ":-1", ":٣"])
def test_a_malformed_address_names_the_flag(text):
    with pytest.raises(ConfigError, match=r"--metrics-bind-address is .*host:port"):
        metrics_server(text, Metrics())


def test_zero_and_empty_turn_the_servers_off():
    assert metrics_server("0", Metrics()) is None
    assert health_server("", liveness=Checks(), readiness=Checks()) is None


async def test_metrics_are_served():
    metrics = Metrics()
    metrics.controller("memcached").count("success")
    server = metrics_server("127.0.0.1:0", metrics)
    async with running(server) as session:
        assert server.address.port > 0
        for path in ("/metrics", "/metrics/"):
            async with session.get(path) as answer:
                assert answer.status == 200
                assert answer.headers["Content-Type"].startswith("text/plain; version=")
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                assert (
                    'controller_runtime_reconcile_total{controller="memcached",result="success"} 1.0'
                    in await answer.text()
                )
        async with session.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"}) as answer:
            assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
        several = [("Accept", "application/openmetrics-text;version=x"), ("Accept", "application/openmetrics-text")]
        async with session.get("/metrics", headers=several) as answer:
            assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
        assert (await get(session, "/other"))[0] == 404
        async with session.post("/metrics") as answer:
            assert answer.status == 405


async def test_further_handlers_stand_beside_metrics():
    async def hello(_request):
        return web.Response(text="hello")

    async with running(metrics_server("127.0.0.1:0", Metrics(), handlers={"/debug/hello": hello})) as session:
        assert await get(session, "/debug/hello") == (200, "hello")
        assert (await get(session, "/metrics"))[0] == 200


@pytest.mark.parametrize("path", ["/metrics", "/metrics/", "debug"])
def test_a_handler_must_have_a_path_of_its_own(path):
    with pytest.raises(ValueError, match="a handler at"):
        metrics_server("127.0.0.1:0", Metrics(), handlers={path: lambda _: None})


async def test_probes_are_served(capsys):
    liveness, readiness = Checks(), Checks()

    async def not_yet():
        raise RuntimeError("secret")

    readiness.add("synced", not_yet)
    readiness.add("ok", lambda: None)
    async with running(health_server("127.0.0.1:0", liveness=liveness, readiness=readiness)) as session:
        assert await get(session, "/healthz") == (200, "ok")
        assert await get(session, "/healthz/") == (200, "ok")
        assert await get(session, "/healthz?verbose") == (200, "[+]ping ok\nhealthz check passed\n")
        assert await get(session, "/healthz?verbose=false") == (200, "ok")
        assert await get(session, "/healthz/ping") == (200, "ok")
        assert (await get(session, "/healthz/nope"))[0] == 404
        status, text = await get(session, "/readyz")
        assert (status, text) == (500, "[+]ok ok\n[-]synced failed: reason withheld\nreadyz check failed\n")
        assert await get(session, "/readyz?exclude=synced") == (200, "ok")
        assert await get(session, "/readyz/ok/") == (200, "ok")
        assert (await get(session, "/readyz/synced"))[0] == 500
        assert "secret" in capsys.readouterr().err
        async with session.get("/healthz") as answer:
            assert answer.headers["X-Content-Type-Options"] == "nosniff"


async def test_a_port_in_use_is_an_error_that_names_the_flag():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        server = health_server(f"127.0.0.1:{port}", liveness=Checks(), readiness=Checks())
        with pytest.raises(ConfigError, match=rf"127.0.0.1:{port} .*--health-probe-bind-address"):
            await server.start()
        await server.stop()


async def test_a_host_that_is_not_ours_is_an_error():
    server = metrics_server("203.0.113.1:0", Metrics())

    with pytest.raises(ConfigError, match="cannot listen on"):
        await server.start()


async def test_without_a_host_every_interface_is_served():
    server = metrics_server(":0", Metrics())
    await server.start()
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{server.address.port}") as session:
            assert (await get(session, "/metrics"))[0] == 200
    finally:
        await server.stop()


async def test_a_long_header_is_refused():
    async with running(metrics_server("127.0.0.1:0", Metrics())) as session:
        status, _ = await get(session, "/metrics", headers={"X-Long": "x" * 10_000})
        assert status == 400
        assert (await get(session, "/metrics"))[0] == 200


async def test_a_server_stops_listening_and_starts_again():
    server = metrics_server("127.0.0.1:0", Metrics())
    await server.stop()
    with pytest.raises(RuntimeError, match="not running"):
        _ = server.address
    await server.start()
    with pytest.raises(RuntimeError, match="running already"):
        await server.start()
    port = server.address.port
    await server.stop()
    await server.stop()

    with pytest.raises(OSError, match="onnect"):
        await asyncio.open_connection("127.0.0.1", port)
    async with running(server) as session:
        assert (await get(session, "/metrics"))[0] == 200

"""The debug server: what it answers, to whom, and what it says when the main event loop does not answer."""

from __future__ import annotations

import contextlib

import aiohttp
import pytest

from ctrlruntime.errors import ConfigError
from ctrlruntime.serving.debug import Page, Shown, debug_server, parse_debug_address
from ctrlruntime.serving.loops import EventLoopBlockedError


async def ask(make):
    return await make()


async def ask_in_vain(make):
    raise EventLoopBlockedError("the main event loop has not answered for 9.0 s: op.py:7 in reconcile")


def page(look=dict):
    return Page(
        look,
        lambda seen, query: Shown(f"{seen} {sorted(query)}".encode(), "text/plain", 200),
        lambda error, stack: Shown(f"{error} {stack}".encode(), "text/plain", 503),
    )


@contextlib.asynccontextmanager
async def serving(*, ask=ask, look=dict, stack=list):
    server = debug_server("127.0.0.1:0", {"/debug/": page(look)}, ask=ask, stack=stack)
    await server.start()
    try:
        yield server.address
    finally:
        await server.stop()


async def get(address, path="/debug/", **headers):
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{address.port}{path}", headers=headers) as answer,
    ):
        return answer.status, await answer.text(), answer.headers


@pytest.mark.parametrize("text", ["0", "", " "])
async def test_it_is_off_unless_asked_for(text):
    assert debug_server(text, {}, ask=ask) is None


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":8082", ("127.0.0.1", 8082)),
        ("8082", ("127.0.0.1", 8082)),
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("127.9.9.9:8082", ("127.9.9.9", 8082)),
        ("localhost:8082", ("localhost", 8082)),
        ("[::1]:8082", ("::1", 8082)),
    ],
)
def test_a_port_alone_is_on_loopback(text, address):
    assert parse_debug_address(text) == address


@pytest.mark.parametrize("text", ["localhost", "a:b", "host:99999", "http://x:1"])
def test_an_address_that_is_none_is_refused_by_its_flag(text):
    with pytest.raises(ConfigError, match="--debug-bind-address"):
        parse_debug_address(text)


async def test_a_page_is_looked_up_with_its_query_and_shown():
    async with serving(look=lambda query: query["kind"]) as address:
        status, text, headers = await get(address, "/debug/?kind=Pod")

    assert (status, text) == (200, "Pod ['kind']")
    assert headers["Cache-Control"] == "no-store"
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")


async def test_when_the_main_loop_does_not_answer_the_page_says_so_with_its_stack():
    async with serving(ask=ask_in_vain, stack=lambda: ["op.py:7 in reconcile"]) as address:
        status, text, _ = await get(address)

    assert status == 503
    assert text.startswith("the main event loop has not answered for 9.0 s")
    assert "['op.py:7 in reconcile']" in text


async def test_a_page_that_fails_says_what_is_wrong():
    def fail(query):
        raise ValueError("a bug")

    async with serving(look=fail) as address:
        status, text, _ = await get(address)

    assert (status, text) == (500, "this page failed: ValueError('a bug')\n")


@pytest.mark.parametrize("host", ["evil.example.com", "evil.example.com:80", "127.0.0.1.evil.example.com"])
async def test_a_web_page_elsewhere_cannot_read_it_under_its_own_name(host):
    async with serving() as address:
        status, _, _ = await get(address, Host=host)

    assert status == 403


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1", "[::1]:80"])
async def test_it_answers_to_local_names(host):
    async with serving() as address:
        status, _, _ = await get(address, Host=host)

    assert status == 200


@pytest.mark.parametrize(
    "text", ["0.0.0.0:8082", "[::]:8082", "10.0.0.7:8082", "operator.example.com:8082", "0.0.0.0:0"]
)
def test_an_address_off_loopback_is_refused_since_the_pages_have_no_login(text):
    with pytest.raises(ConfigError, match=r"--debug-bind-address is .*no login.*kubectl port-forward"):
        parse_debug_address(text)

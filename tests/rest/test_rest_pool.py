"""Connections on real sockets: kept, cut, given up half-made, and made through proxies."""

import asyncio
import base64
import contextlib
import ssl

import psutil
import pytest

from ctrlruntime.errors import ConfigError
from ctrlruntime.rest.connection import ExchangeError
from ctrlruntime.rest.pool import Address, ConnectTimeoutError, Pool
from ctrlruntime.rest.session import TLSSession
from ctrlruntime.testing import eventually

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Server:
    """Answers each request with `OK`; counts connections."""

    def __init__(self):
        self.connections = 0
        self.writers = []
        self.port = 0

    async def serve(self, reader, writer):
        self.connections += 1
        self.writers.append(writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(OK)
        writer.close()

    @contextlib.asynccontextmanager
    async def running(self, context=None, port=0):
        listener = await asyncio.start_server(self.serve, "127.0.0.1", port, ssl=context)
        self.port = listener.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            listener.close()
            for writer in self.writers:
                with contextlib.suppress(
                    AttributeError
                ):  # Python 3.11.2: a TLS transport that was closed twice has no protocol
                    writer.transport.abort()
            await listener.wait_closed()


class Proxy(Server):
    """Opens a tunnel on CONNECT, if `answer` is None; keeps the heads it was sent."""

    def __init__(self, answer=None):
        super().__init__()
        self.answer = answer
        self.heads = []
        self.tasks = set()

    async def serve(self, reader, writer):
        self.writers.append(writer)
        self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        if self.answer is not None:
            writer.write(self.answer)
            return
        host, _, port = self.heads[-1].split()[1].rpartition(":")
        inner_reader, inner_writer = await asyncio.open_connection(host, int(port))
        self.writers.append(inner_writer)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        for source, target in ((reader, inner_writer), (inner_reader, writer)):
            task = asyncio.create_task(pump(source, target))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)


async def pump(reader, writer):
    with contextlib.suppress(OSError):
        while chunk := await reader.read(65536):
            writer.write(chunk)
    writer.close()


@contextlib.asynccontextmanager
async def pooled(url, **options):
    options.setdefault("context", ssl.create_default_context)
    pool = Pool(Address.parse(url), **options)
    try:
        yield pool
    finally:
        await pool.close()


async def ask(pool):
    """Exchange one request on a connection of the pool, and return the connection."""
    connection = pool.take() or await pool.make()
    assert await connection.send(REQUEST).whole() == b"ok"
    pool.give_back(connection)
    return connection


def connections_of(server):
    """Both halves of this process's connections to the server."""
    found = psutil.Process().net_connections("tcp")
    return [one for one in found if one.raddr and server.port in {one.laddr.port, one.raddr.port}]


@pytest.mark.parametrize(
    ("url", "authority", "tunnel"),
    [
        ("https://cluster.example", "cluster.example", "cluster.example:443"),
        ("http://cluster.example:80/path", "cluster.example", "cluster.example:80"),
        ("https://[::1]:6443", "[::1]:6443", "[::1]:6443"),
    ],
)
def test_an_address_is_named_as_requests_and_tunnels_name_it(url, authority, tunnel):
    address = Address.parse(url)

    assert (address.authority, address.tunnel) == (authority, tunnel)


@pytest.mark.parametrize(
    "url", ["cluster:6443", "ftp://cluster", "https://", "https://cluster:port", "https://cluster:0", "https://[::1"]
)
def test_what_is_no_address_says_how_one_looks(url):
    with pytest.raises(ConfigError, match="https://host:port"):
        Address.parse(url)


async def test_a_connection_is_used_again_until_it_is_distrusted():
    async with Server().running() as server, pooled(f"http://127.0.0.1:{server.port}") as pool:
        first = await ask(pool)
        assert await ask(pool) is first

        pool.distrust()

        assert await ask(pool) is not first
    assert server.connections == 2


async def test_one_in_use_when_it_is_distrusted_ends_its_exchange_and_is_not_kept():
    async with Server().running() as server, pooled(f"http://127.0.0.1:{server.port}") as pool:
        connection = await pool.make()
        answer = connection.send(REQUEST)
        pool.distrust()

        assert await answer.whole() == b"ok"
        pool.give_back(connection)
        assert pool.take() is None


async def test_one_that_is_given_back_inside_an_exchange_is_cut():
    async with Server().running() as server, pooled(f"http://127.0.0.1:{server.port}") as pool:
        connection = await pool.make()
        connection.send(REQUEST)

        pool.give_back(connection)

        assert pool.take() is None


async def test_one_that_the_server_closed_meanwhile_is_not_handed_out():
    async with Server().running() as server, pooled(f"http://127.0.0.1:{server.port}") as pool:
        connection = await ask(pool)
        server.writers[0].transport.abort()
        await eventually(lambda: not connection.is_idle, interval=0.001)

        assert pool.take() is None
        assert await ask(pool) is not connection


async def test_idle_connections_are_closed_after_a_time():
    async with Server().running() as server, pooled(f"http://127.0.0.1:{server.port}", idle_for=0.02) as pool:
        connection = await ask(pool)
        await eventually(lambda: not connection.is_idle, interval=0.001)

        assert pool.take() is None


async def test_one_made_with_another_context_is_not_used_again(authority, context, server_context):
    contexts = [context]
    async with (
        Server().running(server_context) as server,
        pooled(f"https://127.0.0.1:{server.port}", context=lambda: contexts[-1]) as pool,
    ):
        first = await ask(pool)
        assert await ask(pool) is first

        contexts.append(ssl.create_default_context(cadata=authority.pem.decode()))

        assert await ask(pool) is not first


# --- tickets


async def another(pool):
    """Exchange one request on a new connection, and return whether its handshake was a resumption."""
    connection = await pool.make()
    assert await connection.send(REQUEST).whole() == b"ok"
    pool.give_back(connection)
    return connection.session.was_resumed


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_later_connections_resume_the_session_of_an_earlier_one(authority, server_context, version):
    context = ssl.create_default_context(cadata=authority.pem.decode())
    context.maximum_version = version
    async with (
        Server().running(server_context) as server,
        pooled(f"https://127.0.0.1:{server.port}", context=lambda: context, first_ticket_after=1) as pool,
    ):
        assert [await another(pool) for _ in range(4)] == [False, True, True, True]
        assert sorted(await asyncio.gather(another(pool), another(pool))) == [True, True]


async def test_another_context_does_not_resume(authority, context, server_context):
    contexts = [context]
    async with (
        Server().running(server_context) as server,
        pooled(f"https://127.0.0.1:{server.port}", context=lambda: contexts[-1], first_ticket_after=1) as pool,
    ):
        assert [await another(pool), await another(pool)] == [False, True]

        contexts.append(ssl.create_default_context(cadata=authority.pem.decode()))

        assert [await another(pool), await another(pool)] == [False, True]


async def test_a_ticket_that_the_server_does_not_accept_is_replaced(context, server_context, other_server_context):
    server = Server()
    async with server.running(server_context):
        pool = Pool(Address.parse(f"https://127.0.0.1:{server.port}"), context=lambda: context, first_ticket_after=1)
        assert [await another(pool), await another(pool)] == [False, True]
    async with server.running(other_server_context, server.port):  # it has other keys for its tickets
        assert [await another(pool), await another(pool)] == [False, True]
        await pool.close()


async def test_few_tickets_are_taken_because_each_one_leaks(context, server_context, monkeypatch):
    asked = []
    monkeypatch.setattr(TLSSession, "ticket", property(asked.append))
    async with (
        Server().running(server_context) as server,
        pooled(f"https://127.0.0.1:{server.port}", context=lambda: context) as pool,
    ):
        taken = [(await another(pool), len(asked))[1] for _ in range(40)]
        await ask(pool)
    assert taken == [0] * 7 + [1] * 8 + [2] * 16 + [3] * 9


async def test_nothing_is_left_open_whenever_the_making_is_given_up(context, server_context):
    async with Server().running(server_context) as server:
        for rounds in range(40):
            async with pooled(f"https://127.0.0.1:{server.port}", context=lambda: context) as pool:
                making = asyncio.ensure_future(pool.make())
                for _ in range(rounds):
                    await asyncio.sleep(0)
                making.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await making
            # The server's half goes when it has seen the end of ours.
            await eventually(lambda: not connections_of(server), interval=0.001)


async def test_a_pool_that_is_closed_while_a_connection_is_made_hands_none_out(context, server_context):
    async with Server().running(server_context) as server:
        pool = Pool(Address.parse(f"https://127.0.0.1:{server.port}"), context=lambda: context)
        making = asyncio.ensure_future(pool.make())
        await asyncio.sleep(0)
        await pool.close()

        with pytest.raises(ExchangeError):
            await making


async def test_a_server_that_never_speaks_tls_ends_at_the_time_for_connecting(context):
    held = []
    listener = await asyncio.start_server(lambda _, writer: held.append(writer), "127.0.0.1", 0)
    url = f"https://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    async with listener, pooled(url, context=lambda: context, connect_timeout=0.05) as pool:
        with pytest.raises(ConnectTimeoutError, match=r"no connection to https://.*in time .within 0\.05 s"):
            await pool.make()
        for writer in held:
            writer.close()


# --- proxies --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_secure", [False, True], ids=["http proxy", "https proxy"])
async def test_a_tunnel_goes_through_the_proxy(context, server_context, is_secure, monkeypatch):
    # The proxy's own certificate is checked against the system's authorities; the test's is one of them here.
    monkeypatch.setattr("ctrlruntime.rest.pool.client_context", lambda: context)
    scheme = "https" if is_secure else "http"
    async with (
        Server().running(server_context) as server,
        Proxy().running(server_context if is_secure else None) as proxy,
        pooled(
            f"https://127.0.0.1:{server.port}",
            context=lambda: context,
            proxy=Address.parse(f"{scheme}://jane:pass%20word@127.0.0.1:{proxy.port}"),
        ) as pool,
    ):
        first = await ask(pool)
        assert await ask(pool) is first

    authorization = base64.b64encode(b"jane:pass word").decode()
    target = f"127.0.0.1:{server.port}"
    assert proxy.heads == [
        f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nProxy-Authorization: Basic {authorization}\r\n\r\n"
    ]


class SocksProxy(Server):
    """Opens a tunnel as SOCKS 5 says. `said`: what it answers, one after the other, before it closes the connection; None: it works."""

    def __init__(self, said=None):
        super().__init__()
        self.said = said
        self.heard = []
        self.tasks = set()

    async def serve(self, reader, writer):
        self.writers.append(writer)
        if self.said is not None:
            for answer in self.said:
                self.heard.append(await reader.read(1024))
                writer.write(answer)
            writer.close()
            return
        _, count = await reader.readexactly(2)
        methods = await reader.readexactly(count)
        if 2 in methods:
            writer.write(b"\x05\x02")
            name = await reader.readexactly((await reader.readexactly(2))[1])
            password = await reader.readexactly((await reader.readexactly(1))[0])
            self.heard.append((name.decode(), password.decode()))
            writer.write(b"\x01\x00")
        else:
            writer.write(b"\x05\x00")
        *_, kind = await reader.readexactly(4)
        host = await reader.readexactly({1: 4, 4: 16}.get(kind) or (await reader.readexactly(1))[0])
        port = int.from_bytes(await reader.readexactly(2), "big")
        self.heard.append((kind, host if kind != 3 else host.decode(), port))
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        self.writers.append(inner_writer)
        writer.write(b"\x05\x00\x00\x03\x05proxy\x00\x00")
        for source, target in ((reader, inner_writer), (inner_reader, writer)):
            task = asyncio.create_task(pump(source, target))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
@pytest.mark.parametrize("is_secure", [False, True], ids=["http", "https"])
@pytest.mark.parametrize(
    ("host", "credentials", "asked"),
    [
        ("127.0.0.1", "", [(1, b"\x7f\0\0\1")]),
        ("[::1]", "", [(4, bytes(15) + b"\1")]),
        ("localhost", "jane:pass%20word@", [("jane", "pass word"), (3, "localhost")]),
    ],
)
async def test_a_tunnel_goes_through_a_socks_proxy(
    context, server_context, scheme, is_secure, host, credentials, asked
):
    async with (
        Server().running(server_context if is_secure else None) as server,
        SocksProxy().running() as proxy,
        pooled(
            f"http{'s' * is_secure}://{host}:{server.port}",
            context=lambda: context,
            server_hostname="127.0.0.1",
            proxy=Address.parse_proxy(f"{scheme}://{credentials}127.0.0.1:{proxy.port}"),
        ) as pool,
    ):
        first = await ask(pool)
        assert await ask(pool) is first

    assert proxy.heard == [*asked[:-1], (*asked[-1], server.port)]


@pytest.mark.parametrize(
    ("said", "credentials", "message"),
    [
        ([b"HTTP/1.1 400 Bad Request\r\n"], "", "it is not a SOCKS 5 proxy"),
        (
            [b"\x05\xff"],
            "",
            "it accepts no supported authentication method: put a user name and password into its URL",
        ),
        ([b"\x05\xff"], "jane:x@", "it accepts no supported authentication method$"),
        ([b"\x05\x02", b"\x01\x01"], "jane:x@", "it does not accept the user name and password of its URL"),
        ([b"\x05\x00", b"\x05\x05\x00\x01" + bytes(6)], "", "the connection was refused"),
        ([b"\x05\x00", b"\x05\x63\x00\x01" + bytes(6)], "", "failure 99"),
        ([b"\x05\x00", b"\x05\x00"], "", "it closed the connection"),
        ([b"\x05\x02"], f"{'j' * 256}:x@", "longer than 255 bytes"),
    ],
)
async def test_what_a_socks_proxy_refuses_is_told_with_its_name(context, said, credentials, message):
    async with SocksProxy(said).running() as proxy:
        address = Address.parse_proxy(f"socks5://{credentials}127.0.0.1:{proxy.port}")
        async with pooled("https://cluster.invalid:6443", context=lambda: context, proxy=address) as pool:
            with pytest.raises(
                ExchangeError,
                match=rf"the proxy socks5://.*127\.0\.0\.1:{proxy.port} did not connect to https://cluster.invalid:6443: .*{message}",
            ):
                await pool.make()


async def test_socks_rejects_a_host_that_is_not_a_host_name(context):
    async with SocksProxy([b"\x05\x00"]).running() as proxy:
        address = Address.parse_proxy(f"socks5://127.0.0.1:{proxy.port}")
        async with pooled(f"https://{'x' * 64}.invalid:6443", context=lambda: context, proxy=address) as pool:
            with pytest.raises(ExchangeError, match=r"did not connect to .*: 'x+\.invalid' is not a host name"):
                await pool.make()


def test_the_url_of_a_proxy_is_read():
    assert Address.parse_proxy("socks5://proxy").port == 1080
    assert Address.parse_proxy("http://proxy").port == 80
    with pytest.raises(ConfigError, match=r"the proxy socks4://proxy is not supported; write .*socks5://host:port"):
        Address.parse_proxy("socks4://proxy")


async def test_the_certificate_of_a_proxy_is_compared_with_the_systems_authorities_and_errors_name_the_proxy(
    context, server_context
):
    async with Proxy().running(server_context) as proxy:
        address = Address.parse_proxy(f"https://127.0.0.1:{proxy.port}")
        async with pooled("https://cluster.invalid:6443", context=lambda: context, proxy=address) as pool:
            with pytest.raises(ExchangeError, match=rf"the certificate of the proxy {address.url} is not trusted"):
                await pool.make()


async def test_a_proxy_that_refuses_is_named(context):
    refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"
    async with Proxy(refusal).running() as proxy:
        address = Address.parse(f"http://127.0.0.1:{proxy.port}")
        async with pooled("https://cluster.invalid:6443", context=lambda: context, proxy=address) as pool:
            with pytest.raises(
                ExchangeError, match=rf"the proxy {address.url} in front of https://cluster\.invalid:6443 refused .*407"
            ):
                await pool.make()


async def test_a_proxy_that_is_not_there_is_named(context):
    listener = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    listener.close()
    await listener.wait_closed()
    async with pooled(
        "https://cluster.invalid", context=lambda: context, proxy=Address.parse(f"http://127.0.0.1:{port}")
    ) as pool:
        with pytest.raises(
            ExchangeError,
            match=rf"cannot connect to the proxy http://127.0.0.1:{port} in front of https://cluster\.invalid",
        ):
            await pool.make()


async def test_the_pools_of_an_event_loop_share_one_buffer():
    async with (
        Server().running() as server,
        pooled(f"http://127.0.0.1:{server.port}") as eu,
        pooled(f"http://127.0.0.1:{server.port}") as us,
    ):
        first, second = await ask(eu), await ask(us)

        assert first.get_buffer(-1) is second.get_buffer(-1)


def test_event_loops_have_buffers_of_their_own():
    async def buffer():
        async with Server().running() as server, pooled(f"http://127.0.0.1:{server.port}") as pool:
            return (await ask(pool)).get_buffer(-1)

    assert asyncio.run(buffer()) is not asyncio.run(buffer())

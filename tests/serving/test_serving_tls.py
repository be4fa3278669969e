"""The certificate of a server: from files that are followed, or its own."""

from __future__ import annotations

import asyncio
import contextlib
import ssl

import pytest

from ctrlruntime.certificates import make_authority
from ctrlruntime.errors import ConfigError
from ctrlruntime.serving.server import Address, HTTPServer
from ctrlruntime.serving.tls import SecureMetrics, ServingCertificate
from ctrlruntime.testing import eventually


@pytest.fixture(scope="module")
def authority():
    return make_authority("test")


def write(folder, pair):
    for name, content in (("tls.key", pair.key), ("tls.crt", pair.certificate)):
        (folder / f".{name}").write_bytes(content)
        (folder / f".{name}").rename(folder / name)


@contextlib.asynccontextmanager
async def serving(options: SecureMetrics):
    certificate = ServingCertificate(options, name="metrics", flag="--metrics-cert-path", interval=0.01)
    server = HTTPServer(Address("127.0.0.1", 0), {}, name="metrics", flag="--flag", certificate=certificate)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


async def shown(server, context=None) -> bytes:
    if context is None:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", server.address.port, ssl=context)
    found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    with contextlib.suppress(ssl.SSLError, ConnectionError):
        await writer.wait_closed()
    return ssl.DER_cert_to_PEM_cert(found).encode()


async def test_a_certificate_in_files_is_shown_and_replaced_without_a_restart(tmp_path, authority):
    first, second = authority.server(["127.0.0.1"]), authority.server(["127.0.0.1"])
    write(tmp_path, first)
    async with serving(SecureMetrics(cert_dir=tmp_path)) as server:
        assert await shown(server, ssl.create_default_context(cadata=authority.pem.decode())) == first.certificate
        write(tmp_path, second)

        async def is_second():
            return await shown(server) == second.certificate

        await eventually(is_second)
        (tmp_path / "tls.key").write_text("broken")
        assert await shown(server) == second.certificate


async def test_without_files_a_certificate_is_made_for_this_host():
    async with serving(SecureMetrics()) as server:
        first = await shown(server)
        assert await shown(server) == first
        assert b"BEGIN CERTIFICATE" in first


async def test_files_may_have_other_names(tmp_path, authority):
    pair = authority.server(["127.0.0.1"])
    (tmp_path / "a.pem").write_bytes(pair.certificate)
    (tmp_path / "b.pem").write_bytes(pair.key)

    async with serving(SecureMetrics(cert_dir=tmp_path, cert_name="a.pem", key_name="b.pem")) as server:
        assert await shown(server) == pair.certificate


async def test_missing_files_are_an_error_that_names_them_and_the_flag(tmp_path):
    with pytest.raises(ConfigError, match=r"the metrics server has no certificate: .*tls\.crt.*--metrics-cert-path"):
        async with serving(SecureMetrics(cert_dir=tmp_path)):
            pass


async def test_plain_http_gets_no_answer_from_https(authority, tmp_path):
    async with serving(SecureMetrics()) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.address.port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = b""
        with contextlib.suppress(ConnectionError):
            answer = await reader.read()
        assert b"HTTP" not in answer
        writer.close()

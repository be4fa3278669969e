"""A server's certificate, and the client that trusts it."""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path

import pytest

from ctrlruntime.certificates import make_authority


@pytest.fixture(scope="module")
def authority():
    return make_authority("the authority of a test")


@pytest.fixture(scope="module")
def server_context(authority):
    return context_of(authority)


@pytest.fixture(scope="module")
def other_server_context(authority):
    """The same, as after a restart of the server."""
    return context_of(authority)


def context_of(authority):
    pair = authority.server(["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pair.pem"
        path.write_bytes(pair.key + pair.certificate)
        context.load_cert_chain(path)
    return context


@pytest.fixture(scope="module")
def context(authority):
    return ssl.create_default_context(cadata=authority.pem.decode())

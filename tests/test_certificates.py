from __future__ import annotations

import ssl
import sys

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from ctrlruntime.certificates import make_authority
from ctrlruntime.errors import ConfigError


def handshake(server_context: ssl.SSLContext, client_context: ssl.SSLContext, host: str) -> ssl.SSLObject:
    """Run both ends of a TLS handshake in memory and return the server's end."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    client = client_context.wrap_bio(to_client, to_server, server_hostname=host)
    ends = [client, server]
    for _ in range(8):
        for end in list(ends):
            try:
                end.do_handshake()
                ends.remove(end)
            except ssl.SSLWantReadError:
                pass
    assert not ends
    return server


def test_a_server_pair_is_trusted_for_its_names_and_a_client_pair_names_its_user(tmp_path):
    authority = make_authority()
    server_pair, client_pair = authority.server(["127.0.0.1", "localhost"]), authority.client("ann", ["dev", "ops"])
    for name, pair in (("server", server_pair), ("client", client_pair)):
        (tmp_path / f"{name}.pem").write_bytes(pair.certificate + pair.key)
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(tmp_path / "server.pem")
    server_context.load_verify_locations(cadata=authority.pem.decode())
    server_context.verify_mode = ssl.CERT_REQUIRED
    client_context = ssl.create_default_context(cadata=authority.pem.decode())
    client_context.load_cert_chain(tmp_path / "client.pem")

    peer = handshake(server_context, client_context, "127.0.0.1").getpeercert()

    assert peer is not None
    subject = [pair for part in peer["subject"] for pair in part]
    assert ("commonName", "ann") in subject
    assert [value for key, value in subject if key == "organizationName"] == ["dev", "ops"]


def test_another_name_is_refused():
    authority = make_authority()
    certificate = x509.load_pem_x509_certificate(authority.server(["localhost"]).certificate)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value

    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "localhost"


def test_without_cryptography_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)

    with pytest.raises(ConfigError, match=r"pip install 'ctrlruntime\[webhook\]'"):
        make_authority()

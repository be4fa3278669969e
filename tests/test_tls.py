"""What contexts trust, and that nobody makes one elsewhere."""

from __future__ import annotations

import datetime as dt
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ctrlruntime.certificates import make_authority
from ctrlruntime.tls import client_context, load_pair, server_context, trust_clients


def name(text):
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def issued(subject, issuer=None, *, is_authority):
    """Return a certificate without key identifiers, as PEM, and its key. `issuer`: such a pair, or None for one signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = dt.datetime.now(dt.UTC)
    issuer_name, issuer_key = (name(subject), key) if issuer is None else issuer
    builder = (
        x509.CertificateBuilder()
        .subject_name(name(subject))
        .issuer_name(issuer_name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
    )
    if not is_authority:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
    made = builder.sign(issuer_key, hashes.SHA256())
    pem = made.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return pem, private, (name(subject), key)


def shake_hands(client, server):
    """Let two contexts shake hands in memory. Raises: ssl.SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(4):
        for end in list(ends):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            ends.remove(end)
    assert ends == []


@pytest.fixture(scope="module")
def chain():
    """A root, an authority below it and a server, none with key identifiers."""
    root_pem, _, root = issued("root", is_authority=True)
    middle_pem, _, middle = issued("middle", root, is_authority=True)
    leaf_pem, leaf_key, _ = issued("server", middle, is_authority=False)
    return root_pem, middle_pem, leaf_pem, leaf_key


@pytest.mark.parametrize("trusted", ["root", "middle", "leaf"])
def test_a_client_trusts_as_go_does_an_authority_without_key_identifiers_and_any_part_of_the_chain(chain, trusted):
    root, middle, leaf, key = chain
    server = server_context()
    load_pair(server, leaf + middle, key)

    shake_hands(client_context({"root": root, "middle": middle, "leaf": leaf}[trusted]), server)


def test_a_client_refuses_a_server_of_another_authority_unless_it_is_told_not_to_look(chain):
    _, middle, leaf, key = chain
    server = server_context()
    load_pair(server, leaf + middle, key)

    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(client_context(make_authority("other").pem), server)
    shake_hands(client_context(insecure=True), server)


def test_a_server_trusts_any_part_of_a_clients_chain_too(chain):
    _, middle, leaf, key = chain
    authority = make_authority("server")
    pair = authority.server(["localhost"])
    server, client = server_context(), client_context(authority.pem)
    load_pair(server, pair.certificate, pair.key)
    server.verify_mode = ssl.CERT_REQUIRED
    trust_clients(server, middle)
    load_pair(client, leaf, key)

    shake_hands(client, server)


def test_text_around_certificates_is_skipped(chain):
    assert client_context("Größe\n".encode() + chain[0] + b"# the end\n").get_ca_certs()


@pytest.mark.parametrize(
    "use",
    [
        lambda: client_context(b""),
        lambda: client_context(b" \n"),
        lambda: client_context(b"nonsense"),
        lambda: trust_clients(server_context(), b"nonsense"),
        lambda: load_pair(server_context(), b"nonsense", b"nonsense"),
    ],
)
def test_what_is_no_certificate_is_a_value_error(use):
    with pytest.raises(ValueError, match=r"\w"):
        use()


def test_a_key_with_a_password_is_refused_and_nobody_is_asked_for_it(chain):
    key = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"secret")
    )

    with pytest.raises(ValueError, match="encrypted"):
        load_pair(server_context(), chain[2], key)

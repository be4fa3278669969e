"""PEM texts are read as Go's encoding/pem reads them."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, x25519
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from ctrlruntime.apiserver.registry.pem import blocks, certificates_problem, key_pair_problem, read_request
from ctrlruntime.certificates import make_authority

BODY = base64.b64encode(b"content").decode()
TEXTS = {
    "one": (f"-----BEGIN A-----\n{BODY}\n-----END A-----\n", [("A", False)]),
    "without a last line break": (f"-----BEGIN A-----\n{BODY}\n-----END A-----", [("A", False)]),
    "lines of Windows": (f"-----BEGIN A-----\r\n{BODY}\r\n-----END A-----\r\n", [("A", False)]),
    "spaces and breaks": (f"-----BEGIN A-----  \n{BODY[:3]} \t\n{BODY[3:]}\n-----END A-----\t\n", [("A", False)]),
    "headers": (f"-----BEGIN A-----\nx: y\nz:\n\n{BODY}\n-----END A-----\n", [("A", True)]),
    "two": (f"text\n-----BEGIN A-----\n{BODY}\n-----END A-----\n-----BEGIN B C-----\n{BODY}\n-----END B C-----\n",
            [("A", False), ("B C", False)]),
    "a beginning without an end": (f"-----BEGIN A-----\n-----BEGIN B-----\n{BODY}\n-----END B-----\n", [("B", False)]),
    "an end of another": (f"-----BEGIN A-----\n{BODY}\n-----END B-----\n", []),
    "not at the beginning of a line": (f" -----BEGIN A-----\n{BODY}\n-----END A-----\n", []),
    "text after the end": (f"-----BEGIN A-----\n{BODY}\n-----END A----- x\n", []),
    "not base64": (f"-----BEGIN A-----\n!{BODY}\n-----END A-----\n-----BEGIN B-----\n{BODY}\n-----END B-----\n", [("B", False)]),
}  # fmt: skip


@pytest.mark.parametrize("case", TEXTS)
def test_blocks_of_a_text(case):
    text, wanted = TEXTS[case]

    found = list(blocks(text.encode()))

    assert [(block.type, block.has_headers) for block in found] == wanted
    assert all(block.content == b"content" for block in found)


def test_an_empty_block_has_no_content():
    (found,) = blocks(b"-----BEGIN A-----\n-----END A-----\n")

    assert found.content == b""


def test_a_request_with_a_key_that_go_cannot_verify_is_refused():
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    signed = request.sign(dsa.generate_private_key(1024), SHA256()).public_bytes(Encoding.PEM)

    with pytest.raises(ValueError, match=r"^x509: cannot verify signature: algorithm unimplemented$"):
        read_request(signed)


def test_a_certificate_without_a_subject_has_critical_names():
    key, now = ed25519.Ed25519PrivateKey.generate(), datetime.now(UTC)
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    request = request.add_extension(x509.SubjectAlternativeName([x509.DNSName("a")]), critical=False)
    asked = read_request(request.sign(key, None).public_bytes(Encoding.PEM))

    pem = make_authority().sign(asked, ["server auth", "any", "client auth"], lifetime=600, now=now)

    found = x509.load_pem_x509_certificate(pem).extensions
    assert found.get_extension_for_class(x509.SubjectAlternativeName).critical
    purposes = found.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert [purpose.dotted_string for purpose in purposes] == ["2.5.29.37.0", "1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2"]
    assert certificates_problem(pem) == ""


# Pairs of a certificate and a key (the scenarios G10 have the rest)

UNMATCHED = {
    "a key for agreement": (
        x25519.X25519PrivateKey.generate(),
        "tls: found unknown private key type in PKCS#8 wrapping",
    ),
    "a key that Go does not read": (dsa.generate_private_key(1024), "tls: failed to parse private key"),
    "another key": (ed25519.Ed25519PrivateKey.generate(), "tls: private key does not match public key"),
    "another sort": (ec.generate_private_key(ec.SECP256R1()), "tls: private key type does not match public key type"),
}


@pytest.mark.parametrize("case", UNMATCHED)
def test_a_key_that_is_not_of_the_certificate(case):
    key, problem = UNMATCHED[case]
    certificate = signed_by(ed25519.Ed25519PrivateKey.generate())

    assert key_pair_problem(certificate, pem(key)) == problem


@pytest.mark.parametrize("make", [ed25519.Ed25519PrivateKey.generate, lambda: ec.generate_private_key(ec.SECP256R1())])
def test_a_pair(make):
    key = make()

    assert key_pair_problem(signed_by(key), pem(key)) == ""


def test_a_certificate_with_a_key_that_go_does_not_use():
    key = dsa.generate_private_key(1024)

    assert (
        key_pair_problem(signed_by(key), pem(ed25519.Ed25519PrivateKey.generate()))
        == "tls: unknown public key algorithm"
    )


def pem(key):
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def signed_by(key):
    now, name = datetime.now(UTC), x509.Name([])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
    return builder.sign(key, None if isinstance(key, ed25519.Ed25519PrivateKey) else SHA256()).public_bytes(
        Encoding.PEM
    )

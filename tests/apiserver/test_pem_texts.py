"""PEM texts are read as Go's encoding/pem reads them."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import dsa, ed25519
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from ctrlruntime.apiserver.registry.pem import blocks, certificates_problem, read_request
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

"""PEM texts as Go reads them (encoding/pem, crypto/x509), with its messages where they are the same for every text of one kind."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from ctrlruntime.certificates import SigningRequest
from ctrlruntime.field_errors import quoted

_BLOCK: Final = re.compile(
    rb"^-----BEGIN ([^\n]*?)-----[ \t\r]*\n((?:(?!-----(?:BEGIN|END) )[^\n]*\n)*)-----END \1-----[ \t\r]*$",
    re.MULTILINE,
)
_CURVES: Final = frozenset({"secp224r1", "secp256r1", "secp384r1", "secp521r1"})
"""Those that Go knows."""


@dataclass(frozen=True, slots=True)
class Block:
    type: str
    has_headers: bool
    content: bytes


def blocks(data: bytes) -> Iterator[Block]:
    """Yield the PEM blocks of a text. What is not one is passed over."""
    for found in _BLOCK.finditer(data):
        lines = found[2].split(b"\n")
        headers = sum(1 for _ in takewhile(lambda line: b":" in line, lines))
        text = b"".join(lines[headers:]).translate(None, b" \t\r")
        try:
            content = base64.b64decode(text, validate=True)
        except ValueError:
            continue
        yield Block(found[1].decode(errors="replace"), headers > 0, content)


def read_request(data: bytes) -> SigningRequest:
    """Return the request in the first PEM block (ParseCSR in pkg/apis/certificates/helpers.go); its signature is checked.

    Raises: ValueError with kube-apiserver's message; what says why the content cannot be read is not Go's text.
    """
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    block = next(blocks(data), None)
    if block is None or block.type != "CERTIFICATE REQUEST":
        raise ValueError("PEM block type must be CERTIFICATE REQUEST")
    unreadable = (
        ValueError,
        x509.DuplicateExtension,
        x509.InvalidVersion,
        x509.UnsupportedGeneralNameType,
        UnsupportedAlgorithm,
    )
    try:
        request = x509.load_der_x509_csr(block.content)
        key, is_valid = request.public_key(), request.is_signature_valid
        names = tuple(
            name
            for extension in request.extensions
            if isinstance(extension.value, x509.SubjectAlternativeName)
            for name in extension.value
        )
        asked = SigningRequest(request.subject, key, names)
    except unreadable as error:
        raise ValueError(f"x509: malformed certificate request: {error}") from error
    kinds = (
        (x509.DNSName, "dNSName"),
        (x509.RFC822Name, "rfc822Name"),
        (x509.UniformResourceIdentifier, "uniformResourceIdentifier"),
    )
    for name in names:
        bad = next((text for kind, text in kinds if isinstance(name, kind) and not name.value.isascii()), None)
        if bad is not None:
            raise ValueError(f"x509: SAN {bad} is malformed")
    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name not in _CURVES:
        raise ValueError("x509: unsupported elliptic curve")
    failures = (
        (ec.EllipticCurvePublicKey, "x509: ECDSA verification failure"),
        (ed25519.Ed25519PublicKey, "x509: Ed25519 verification failure"),
        (rsa.RSAPublicKey, "crypto/rsa: verification error"),
    )
    failure = next((text for kind, text in failures if isinstance(key, kind)), None)
    if failure is None:
        raise ValueError("x509: cannot verify signature: algorithm unimplemented")
    if not is_valid:
        raise ValueError(failure)
    return asked


def certificates_problem(data: bytes) -> str:
    """Return why a text is not a list of certificates (validateCertificate in pkg/apis/certificates/validation/validation.go), or ""."""
    from cryptography import x509

    found = list(blocks(data))
    for block in found:
        if block.type != "CERTIFICATE":
            return f"only CERTIFICATE PEM blocks are allowed, found {quoted(block.type)}"
        if block.has_headers:
            return "no PEM block headers are permitted"
        if not block.content:
            return "found CERTIFICATE PEM block containing 0 certificates"
        try:
            x509.load_der_x509_certificate(block.content)
        except (ValueError, x509.InvalidVersion):
            return "x509: malformed certificate"
    return "" if found else "must contain at least one CERTIFICATE PEM block"


def key_pair_problem(certificate: bytes, key: bytes) -> str:
    """Return why a certificate and a key are not a pair (X509KeyPair in Go's crypto/tls), or "".

    Of a certificate that cannot be read Go says more.
    """
    found = list(blocks(certificate))
    chosen = next((block for block in found if block.type == "CERTIFICATE"), None)
    if chosen is None:
        return _missing_certificate([block.type for block in found])
    found = list(blocks(key))
    secret = next((block for block in found if f" {block.type}".endswith(" PRIVATE KEY")), None)
    if secret is None:
        return _missing_key([block.type for block in found])
    return _mismatch(chosen.content, secret.content)


def _missing_certificate(others: list[str]) -> str:
    if not others:
        return "tls: failed to find any PEM data in certificate input"
    if len(others) == 1 and others[0].endswith("PRIVATE KEY"):
        return (
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; "
            "PEM inputs may have been switched"
        )
    text = 'tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the following types'
    return f"{text}: [{' '.join(others)}]"


def _missing_key(others: list[str]) -> str:
    if not others:
        return "tls: failed to find any PEM data in key input"
    if others == ["CERTIFICATE"]:
        return "tls: found a certificate rather than a key in the PEM for the private key"
    text = 'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping PEM blocks of the following types'
    return f"{text}: [{' '.join(others)}]"


def _mismatch(certificate: bytes, key: bytes) -> str:
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa, x25519
    from cryptography.hazmat.primitives.serialization import load_der_private_key

    try:
        public = x509.load_der_x509_certificate(certificate).public_key()
    except (ValueError, x509.InvalidVersion, UnsupportedAlgorithm):
        return "x509: malformed certificate"
    try:
        # Whether the numbers of a key are primes takes longer than all the rest of the write; Go does not ask either.
        secret = load_der_private_key(key, None, unsafe_skip_rsa_key_validation=True)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return "tls: failed to parse private key"
    if isinstance(secret, x25519.X25519PrivateKey):
        return "tls: found unknown private key type in PKCS#8 wrapping"
    kinds = (
        (rsa.RSAPublicKey, rsa.RSAPrivateKey),
        (ec.EllipticCurvePublicKey, ec.EllipticCurvePrivateKey),
        (ed25519.Ed25519PublicKey, ed25519.Ed25519PrivateKey),
    )
    if not any(isinstance(secret, kind) for _, kind in kinds):
        return "tls: failed to parse private key"
    expected = next((kind for of_public, kind in kinds if isinstance(public, of_public)), None)
    if expected is None:
        return "tls: unknown public key algorithm"
    if not isinstance(secret, expected):
        return "tls: private key type does not match public key type"
    return "" if secret.public_key() == public else "tls: private key does not match public key"


__all__ = ["Block", "blocks", "certificates_problem", "key_pair_problem", "read_request"]

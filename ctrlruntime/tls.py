"""All TLS contexts: verification, versions and ciphers.

All clients and servers use these contexts (ruff forbids `ssl.create_default_context` elsewhere), so that all parts of the package trust the
same certificates, with every version of Python.
"""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path
from typing import Final

CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""OpenSSL's names of the TLS 1.2 suites of servers: authenticated encryption with forward secrecy, without CBC."""


def client_context(authorities: bytes | None = None, *, insecure: bool = False) -> ssl.SSLContext:
    """Return a context for a client that verifies as Go does.

    authorities: PEM certificates to trust, with any other text between them; None: those of the system.
    insecure: trust any server.

    Raises: ValueError without a certificate in `authorities`.
    """
    # Without authorities of its own it loads the system's, which takes 20 ms.
    try:
        context = (
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            if insecure
            else ssl.create_default_context(cadata=None if authorities is None else _text(authorities))
        )
    except ssl.SSLError as error:
        raise ValueError(str(error)) from error
    # Clusters' own authorities often lack the extensions that strictness asks for (Python 3.13 turns it on), and a trusted intermediate is
    # enough.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    # A name counts only as a subject alternative name: common names are no longer looked at (RFC 9525, section 2), as in Go.
    context.hostname_checks_common_name = False
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def server_context() -> ssl.SSLContext:
    """Return a context for a server of HTTP/1.1, without a certificate yet; clients need none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["http/1.1"])
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(CIPHERS)
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def trust_clients(context: ssl.SSLContext, authorities: bytes) -> None:
    """Make a server trust client certificates of these PEM authorities too.

    Raises: ValueError without a certificate in them.
    """
    try:
        context.load_verify_locations(cadata=_text(authorities))
    except ssl.SSLError as error:
        raise ValueError(str(error)) from error


def load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load a certificate (chain) and key into a context; both are PEM.

    Raises: ValueError if invalid, or if the key has a password.
    """
    # `ssl` reads pairs from files only. The folder is the user's alone (0700) and gone before anybody connects.
    with tempfile.TemporaryDirectory(prefix="ctrlruntime-") as folder:
        path = Path(folder, "pair.pem")
        path.touch(mode=0o600)
        path.write_bytes(key.rstrip() + b"\n" + certificate)
        try:
            context.load_cert_chain(path, password=_no_password)
        except ssl.SSLError as error:
            raise ValueError(error.reason or str(error)) from error


def _no_password() -> str:
    # Without it, OpenSSL would ask on the terminal.
    raise ValueError("the key is encrypted")


def _text(authorities: bytes) -> str:
    if not authorities.strip():
        raise ValueError("it is empty")
    return authorities.decode("ascii", "replace").replace("\ufffd", "?")

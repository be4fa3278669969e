"""TLS for one cluster: trusted authorities, the client certificate, and contexts that follow changed files.

A `TLSConfig` has the certificates. `TLSContexts` creates the `ssl.SSLContext` that all connections of a cluster share, and a new one if a
file or the credential's client certificate has changed.
"""

from __future__ import annotations

import hashlib
import ssl
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ctrlruntime.errors import ConfigError
from ctrlruntime.tls import client_context, load_pair


class ClientCertificate(NamedTuple):
    """A client certificate (chain) and its private key, both PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "ClientCertificate(…)"


class CertificateSource(Protocol):
    """A credential with a client certificate, such as an exec plugin."""

    @property
    def client_certificate(self) -> ClientCertificate | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TLSConfig:
    """Trusted authorities and the client certificate.

    Data is PEM and overrides the corresponding file. Without a CA, those of the system are trusted. Raises: ConfigError for a CA that
    `insecure_skip_verify` would not use (as in client-go, k8s.io/client-go/transport.TLSConfigFor).
    """

    ca_data: bytes | None = field(default=None, repr=False)
    ca_file: str | None = None
    cert_data: bytes | None = field(default=None, repr=False)
    cert_file: str | None = None
    key_data: bytes | None = field(default=None, repr=False)
    key_file: str | None = None
    insecure_skip_verify: bool = False
    """Trust any server. For experiments only."""

    server_name: str | None = None
    """The name in the server's certificate and in SNI, if it differs from the host in the address."""

    def __post_init__(self) -> None:
        if self.insecure_skip_verify and (self.ca_data or self.ca_file):
            raise ConfigError("certificate-authority and insecure-skip-tls-verify are both set; remove one of them")

    @property
    def files(self) -> tuple[str, ...]:
        """The files of a context."""
        pairs = ((self.ca_data, self.ca_file), (self.cert_data, self.cert_file), (self.key_data, self.key_file))
        return tuple(file for data, file in pairs if data is None and file is not None)

    def client_certificate(self) -> ClientCertificate | None:
        """Return the client certificate, read from its files if set. Raises: ConfigError."""
        certificate = _content("client certificate", self.cert_data, self.cert_file)
        key = _content("client key", self.key_data, self.key_file)
        if certificate is None and key is None:
            return None
        if certificate is None or key is None:
            have, lack = ("a key", "certificate") if certificate is None else ("a certificate", "key")
            raise ConfigError(f"the client has {have} but no {lack}; set client-{lack} or client-{lack}-data too")
        return ClientCertificate(certificate, key)


class TLSContexts:
    """The TLS context of one cluster, shared by all event loops and threads.

    Call `current` for each connection: it returns the same object until a file changes. `credential` may have its own client certificate,
    which overrides that of the config. Files are checked once in `check_interval` seconds.
    """

    def __init__(
        self,
        config: TLSConfig,
        credential: object = None,
        *,
        check_interval: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config = config
        self.credential: Any = credential
        self._check_interval = check_interval
        self._clock = clock
        self._lock = threading.Lock()
        self._context: ssl.SSLContext | None = None
        self._made_from: object = None
        self._certificate: ClientCertificate | None = None
        self._checked = float("-inf")

    @property
    def server_hostname(self) -> str | None:
        """The server host name for a connection; None means the host of the address."""
        return self._config.server_name

    def current(self) -> ssl.SSLContext:
        """Return the current context.

        Raises: ConfigError if the certificates cannot be read and never could.
        """
        with self._lock:
            certificate = _certificate_of(self.credential)
            now = self._clock()
            fresh = now - self._checked < self._check_interval and certificate == self._certificate
            if self._context is not None and fresh:
                return self._context
            self._checked, self._certificate = now, certificate
            made_from = (certificate, tuple(_stamp(file) for file in self._config.files))
            if self._context is None or made_from != self._made_from:
                self._remake(certificate, made_from)
            assert self._context is not None
            return self._context

    def replace(self, config: TLSConfig, credential: object) -> None:
        """Use other certificates and another credential from the next connection and request on. The name of the server stays.

        Raises: ConfigError for certificates that cannot be used; then nothing changes.
        """
        certificate = _certificate_of(credential)
        context = make_context(config, certificate)
        with self._lock:
            self._config, self.credential = config, credential
            self._context, self._certificate, self._checked = context, certificate, self._clock()
            self._made_from = (certificate, tuple(_stamp(file) for file in config.files))

    def _remake(self, certificate: ClientCertificate | None, made_from: object) -> None:
        try:
            context = make_context(self._config, certificate)
        except ConfigError:
            # Half a rotation: certificate and key are replaced one after the other. The old pair serves until both
            # are there.
            if self._context is None:
                raise
            return
        self._context, self._made_from = context, made_from


def make_context(config: TLSConfig, certificate: ClientCertificate | None = None) -> ssl.SSLContext:
    """Return a client context for `config`. Equal certificates have the same one: it takes up to a megabyte.

    `certificate` overrides its client certificate. Raises: ConfigError.
    """
    authorities = (
        None if config.insecure_skip_verify else _content("certificate authority", config.ca_data, config.ca_file)
    )
    pair = certificate or config.client_certificate()
    hashes = [None if part is None else hashlib.sha256(part).digest() for part in (authorities, *(pair or ()))]
    content = (config.insecure_skip_verify, *hashes)  # private keys are not kept
    with _lock:
        context = _contexts.get(content)
        if context is None:
            context = _contexts[content] = _new_context(config, authorities, pair)
        return context


_contexts: weakref.WeakValueDictionary[object, ssl.SSLContext] = weakref.WeakValueDictionary()
"""The contexts in use, by hashes of their certificates."""

_lock = threading.Lock()


def _new_context(config: TLSConfig, authorities: bytes | None, pair: ClientCertificate | None) -> ssl.SSLContext:
    try:
        context = client_context(authorities, insecure=config.insecure_skip_verify)
    except ValueError as error:
        where = _where(config.ca_data, config.ca_file)
        raise ConfigError(
            f"the certificate authority {where} is not a PEM certificate ({error}); check the kubeconfig"
        ) from error
    if pair is not None:
        try:
            load_pair(context, pair.certificate, pair.key)
        except ValueError as error:
            where = _where(config.cert_data, config.cert_file)
            raise ConfigError(
                f"the client certificate {where} and its key cannot be used ({error}); they must be PEM, belong "
                "together and the key must not be encrypted"
            ) from error
    return context


def _certificate_of(credential: object) -> ClientCertificate | None:
    certificate = getattr(credential, "client_certificate", None)
    return certificate if isinstance(certificate, ClientCertificate) else None


def _stamp(file: str) -> object:
    # The inode too: a projected volume swaps a symbolic link, and both files may be of one second.
    try:
        status = Path(file).stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size


def _content(what: str, data: bytes | None, file: str | None) -> bytes | None:
    if data is not None:
        return data
    if not file:
        return None
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise ConfigError(
            f"cannot read the {what} {file} ({error.strerror}); check the path and its permissions"
        ) from error


def _where(data: bytes | None, file: str | None) -> str:
    return "in the kubeconfig" if data is not None or file is None else file


class CertificateFacts(NamedTuple):
    """The common name of a certificate, and its validity (UTC)."""

    common_name: str
    not_before: datetime
    not_after: datetime


def certificate_facts(pem: bytes) -> CertificateFacts:
    """Return the facts of the first certificate in `pem`.

    Raises: ConfigError if it is not a certificate.
    """
    try:
        der = ssl.PEM_cert_to_DER_cert(_first_certificate(pem))
        return _walk(der)
    except (ValueError, IndexError, UnicodeDecodeError) as error:
        raise ConfigError(f"not a PEM certificate ({error})") from error


def _first_certificate(pem: bytes) -> str:
    begin, end = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"
    start = pem.index(begin)
    return pem[start : pem.index(end, start) + len(end)].decode("ascii")


_COMMON_NAME = bytes.fromhex("550403")
_EXPLICIT_VERSION = 0xA0
_UTC_TIME = 0x17


class _Node(NamedTuple):
    """One value of DER: its tag and its content."""

    tag: int
    content: bytes


def _children(content: bytes) -> list[_Node]:
    nodes: list[_Node] = []
    at = 0
    while at < len(content):
        tag, length = content[at], content[at + 1]
        at += 2
        if length & 0x80:
            size = length & 0x7F
            length = int.from_bytes(content[at : at + size], "big")
            at += size
        if at + length > len(content):
            raise ValueError("the certificate is truncated")
        nodes.append(_Node(tag, content[at : at + length]))
        at += length
    return nodes


def _walk(der: bytes) -> CertificateFacts:
    # Certificate > tbsCertificate > [version], serialNumber, signature, issuer, validity, subject (RFC 5280 4.1)
    fields = _children(_children(_children(der)[0].content)[0].content)
    if fields[0].tag == _EXPLICIT_VERSION:
        fields = fields[1:]
    not_before, not_after = (_time(node) for node in _children(fields[3].content)[:2])
    return CertificateFacts(_common_name(fields[4].content), not_before, not_after)


def _common_name(subject: bytes) -> str:
    for relative in _children(subject):
        for attribute in _children(relative.content):
            kind, value = _children(attribute.content)[:2]
            if kind.content == _COMMON_NAME:
                return value.content.decode("utf-8", "replace")
    return ""


def _time(node: _Node) -> datetime:
    text = node.content.decode("ascii")
    if node.tag == _UTC_TIME:
        # Two digits of the year: 50 to 99 are of the last century (RFC 5280 4.1.2.5.1).
        text = ("19" if int(text[:2]) >= 50 else "20") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)

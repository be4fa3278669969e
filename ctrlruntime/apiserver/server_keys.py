"""Who the server is: its authority, its admin's token, the key that signs service account tokens, its port.

Without a data file each server creates new ones. With one they are stored in it, so kubeconfigs, client certificates and tokens of
an earlier run stay valid.
"""

from __future__ import annotations

import secrets
from dataclasses import replace

from ctrlruntime.apiserver.authentication.signing import SigningKey
from ctrlruntime.apiserver.options import Options
from ctrlruntime.apiserver.storage.persistence import DataFile
from ctrlruntime.certificates import Authority, KeyPair, make_authority
from ctrlruntime.errors import ConfigError

_NAME = "ctrlruntime-embedded-ca"
_LIFETIME = 10 * 365 * 86400.0
"""Seconds; a data file may be used for years."""


class ServerKeys:
    """The keys of one server. What the options say goes before what the file remembers."""

    def __init__(self, options: Options, file: DataFile | None) -> None:
        self._file = file
        self.admin_token = self._settled("admin-token", options.admin_token) or secrets.token_urlsafe(24)
        self._authority: Authority | None = None
        if file is not None:
            file.remember("admin-token", self.admin_token.encode())

    @property
    def authority(self) -> Authority:
        """The authority that signs the server's and the clients' certificates. Raises: ConfigError without `cryptography`."""
        if self._authority is None:
            self._authority = self._kept_authority() if self._file else make_authority(_NAME)
        return self._authority

    @property
    def port(self) -> int:
        """The port of the last run, 0 when there was none."""
        return int(self._settled("port") or 0)

    def remember_port(self, port: int) -> None:
        if self._file is not None:
            self._file.remember("port", str(port).encode())

    def fill(self, options: Options) -> Options:
        """Return the options with what the file remembers where they leave it open."""
        if self._file is None or options.service_account_signing_key is not None:
            return options
        kept = self._file.recall("service-account-key")
        if kept is None:
            kept = SigningKey().pem
            self._file.remember("service-account-key", kept)
        return replace(options, service_account_signing_key=kept)

    def _settled(self, name: str, given: str = "") -> str:
        if given or self._file is None:
            return given
        return (self._file.recall(name) or b"").decode()

    def _kept_authority(self) -> Authority:
        assert self._file is not None
        certificate, key = self._file.recall("authority-certificate"), self._file.recall("authority-key")
        if certificate is not None and key is not None:
            return _load(KeyPair(certificate, key))
        made = make_authority(_NAME, lifetime=_LIFETIME)
        self._file.remember("authority-certificate", made.pair.certificate)
        self._file.remember("authority-key", made.pair.key)
        return made


def _load(pair: KeyPair) -> Authority:
    from datetime import UTC, datetime, timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        certificate, key = x509.load_pem_x509_certificate(pair.certificate), load_pem_private_key(pair.key, None)
    except ValueError as error:
        raise ConfigError(f"the data file is corrupt: cannot read its CA: {error}") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ConfigError("the data file is corrupt: the key of its CA has another type")
    left = certificate.not_valid_after_utc - datetime.now(UTC)
    if left < timedelta(days=1):
        raise ConfigError(
            f"the CA in the data file expires on {certificate.not_valid_after_utc:%Y-%m-%d}. Start with a new file"
        )
    return Authority(pair, certificate, key, left)

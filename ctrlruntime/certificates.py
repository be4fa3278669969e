"""Key pairs: a certificate authority, server and client certificates, all P-256 and in PEM.

`cryptography` is imported when a pair is created. Webhook servers and the embedded API server use these pairs; nothing is written to disk.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from ctrlruntime.errors import ConfigError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

__all__ = ["BACKDATED", "Authority", "KeyPair", "general_names", "make_authority"]

BACKDATED = timedelta(hours=1)
"""The time by which the validity of a certificate starts earlier, for clocks that are behind."""

_SIGNED_BACKDATED, _LONG = timedelta(minutes=5), 8 * 3600.0

_COMMON_NAME = 64
"""The maximum length of a common name (RFC 5280, ub-common-name)."""

_KEY_USAGES: Final = {
    "digital signature": "digital_signature",
    "signing": "digital_signature",
    "content commitment": "content_commitment",
    "key encipherment": "key_encipherment",
    "data encipherment": "data_encipherment",
    "key agreement": "key_agreement",
    "cert sign": "key_cert_sign",
    "crl sign": "crl_sign",
    "encipher only": "encipher_only",
    "decipher only": "decipher_only",
}
"""Usages of a CertificateSigningRequest, and their names in `cryptography`."""

_PURPOSES: Final = {
    "any": "2.5.29.37.0",
    "server auth": "1.3.6.1.5.5.7.3.1",
    "client auth": "1.3.6.1.5.5.7.3.2",
    "code signing": "1.3.6.1.5.5.7.3.3",
    "email protection": "1.3.6.1.5.5.7.3.4",
    "s/mime": "1.3.6.1.5.5.7.3.4",
    "ipsec end system": "1.3.6.1.5.5.7.3.5",
    "ipsec tunnel": "1.3.6.1.5.5.7.3.6",
    "ipsec user": "1.3.6.1.5.5.7.3.7",
    "timestamping": "1.3.6.1.5.5.7.3.8",
    "ocsp signing": "1.3.6.1.5.5.7.3.9",
    "microsoft sgc": "1.3.6.1.4.1.311.10.3.3",
    "netscape sgc": "2.16.840.1.113730.4.1",
}
"""Usages of a CertificateSigningRequest that are extended key usages (RFC 5280), by their object identifiers."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key (PKCS 8, not encrypted), both PEM."""

    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority in memory.

    `pair.certificate` is the certificate that clients trust.
    """

    pair: KeyPair
    _certificate: x509.Certificate
    _key: ec.EllipticCurvePrivateKey = field(repr=False)
    _lifetime: timedelta

    @property
    def pem(self) -> bytes:
        return self.pair.certificate

    def server(self, names: Iterable[str], *, lifetime: float | None = None, now: datetime | None = None) -> KeyPair:
        """Return a server pair for these DNS names and IP addresses.

        The first is its common name, cut to 64 characters.

        It is valid from an hour before `now` until `lifetime` seconds after, by default as long as those of its authority.
        """
        from cryptography import x509

        hosts = list(names)
        alternatives = x509.SubjectAlternativeName(general_names(hosts))
        validity = self._lifetime if lifetime is None else timedelta(seconds=lifetime)
        return self._issue(hosts[0][:_COMMON_NAME], (), "server", alternatives, validity, now)

    def client(self, user: str, groups: Iterable[str] = ()) -> KeyPair:
        """Return a client pair that authenticates as `user` (common name) in `groups` (organisations)."""
        return self._issue(user, tuple(groups), "client", None, self._lifetime, None)

    def sign(self, request: bytes, usages: Collection[str], *, lifetime: float, now: datetime) -> bytes:
        """Return a certificate for a certificate signing request, both PEM.

        `usages` are those of a CertificateSigningRequest. The certificate is valid for `lifetime` seconds, at most until that of the
        authority ends. It is valid from five minutes before `now`, which a lifetime below eight hours does not include
        (PermissiveSigningPolicy in kube-controller-manager's pkg/controller/certificates/authority).

        Raises: ValueError for a request that cannot be read.
        """
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization

        asked = x509.load_pem_x509_csr(request)
        public_key: Any = asked.public_key()
        begin = now - _SIGNED_BACKDATED
        end = (begin if lifetime >= _LONG else now) + timedelta(seconds=lifetime)
        builder = (
            x509.CertificateBuilder()
            .subject_name(asked.subject)
            .issuer_name(self._certificate.subject)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(min(end, self._certificate.not_valid_after_utc))
        )
        flags = {_KEY_USAGES[usage] for usage in usages if usage in _KEY_USAGES}
        if flags & {"encipher_only", "decipher_only"}:
            flags.add("key_agreement")  # without it they mean nothing (RFC 5280, 4.2.1.3)
        if flags:
            names = dict.fromkeys(_KEY_USAGES.values())
            builder = builder.add_extension(x509.KeyUsage(**{name: name in flags for name in names}), critical=True)
        purposes = dict.fromkeys(_PURPOSES[usage] for usage in usages if usage in _PURPOSES)
        if purposes:
            found = x509.ExtendedKeyUsage([x509.ObjectIdentifier(one) for one in purposes])
            builder = builder.add_extension(found, critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(issuer, critical=False)
        for extension in asked.extensions:
            if isinstance(extension.value, x509.SubjectAlternativeName):
                builder = builder.add_extension(extension.value, critical=extension.critical)
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def _issue(
        self,
        common_name: str,
        organisations: tuple[str, ...],
        usage: str,
        alternatives: x509.SubjectAlternativeName | None,
        validity: timedelta,
        now: datetime | None,
    ) -> KeyPair:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID

        key = ec.generate_private_key(ec.SECP256R1())
        purpose = ExtendedKeyUsageOID.SERVER_AUTH if usage == "server" else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = (
            _builder(_name(common_name, organisations), self._certificate.subject, key.public_key(), validity, now)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        if alternatives is not None:
            builder = builder.add_extension(alternatives, critical=False)
        return _pair(builder.sign(self._key, hashes.SHA256()), key)


def make_authority(
    common_name: str = "ctrlruntime", *, lifetime: float = 365 * 86400.0, now: datetime | None = None
) -> Authority:
    """Return a new self-signed authority.

    It and its certificates are valid from an hour before `now`, for clocks that differ, until `lifetime` seconds after. The name is cut to
    64 characters, as X.509 requires.

    Raises:
        ConfigError: the package `cryptography` is not installed.

    """
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError as error:
        raise ConfigError(
            "cannot create certificates: the package cryptography is not installed. Run pip install 'ctrlruntime[webhook]' (the embedded API "
            "server's extra, 'ctrlruntime[apiserver]', includes it)"
        ) from error

    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(common_name[:_COMMON_NAME], ())
    validity = timedelta(seconds=lifetime)
    certificate = (
        _builder(name, name, key.public_key(), validity, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Authority(_pair(certificate, key), certificate, key, validity)


def _name(common_name: str, organisations: Iterable[str]) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name(
        [
            *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organisation) for organisation in organisations),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )


def general_names(hosts: Iterable[str]) -> list[x509.GeneralName]:
    """Return DNS names and IP addresses for a certificate.

    Raises: ValueError for a name that is not ASCII.
    """
    return [_general_name(host) for host in hosts]


def _general_name(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    lifetime: timedelta,
    now: datetime | None,
) -> x509.CertificateBuilder:
    from cryptography import x509

    moment = datetime.now(UTC) if now is None else now
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(moment - BACKDATED)
        .not_valid_after(moment + lifetime)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=not signs_certificates,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _pair(certificate: x509.Certificate, key: Any) -> KeyPair:
    from cryptography.hazmat.primitives import serialization

    return KeyPair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )

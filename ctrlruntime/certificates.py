"""Key pairs: a certificate authority, server and client certificates, all P-256 and in PEM.

`cryptography` is imported when a pair is created. Webhook servers and the embedded API server use these pairs; nothing is written to disk.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ctrlruntime.errors import ConfigError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes

__all__ = ["BACKDATED", "Authority", "KeyPair", "SigningRequest", "general_names", "make_authority"]

_Validity: TypeAlias = tuple[datetime, datetime]

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
"""Usages of a CertificateSigningRequest that are extended key usages (RFC 5280), by their object identifiers, in Go's order."""

_SINGLE: Final = ("2.5.4.3", "2.5.4.5")
_SUBJECT: Final = ("2.5.4.6", "2.5.4.8", "2.5.4.7", "2.5.4.9", "2.5.4.17", "2.5.4.10", "2.5.4.11", *_SINGLE)
"""Attributes of a subject: country to organizational unit, then those of which there is one, common name and serial number."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key (PKCS 8, not encrypted), both PEM."""

    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class SigningRequest:
    """What a certificate signing request asks for."""

    subject: x509.Name
    public_key: CertificatePublicKeyTypes
    names: tuple[x509.GeneralName, ...] = ()
    """Its subject alternative names."""


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
        hosts = list(names)
        validity = _validity(self._lifetime if lifetime is None else timedelta(seconds=lifetime), now)
        return self._issue(_name(hosts[0][:_COMMON_NAME], ()), "server auth", general_names(hosts), validity)

    def client(self, user: str, groups: Iterable[str] = ()) -> KeyPair:
        """Return a client pair that authenticates as `user` (common name) in `groups` (organisations)."""
        return self._issue(_name(user, groups), "client auth", (), _validity(self._lifetime, None))

    def sign(self, asked: SigningRequest, usages: Collection[str], *, lifetime: float, now: datetime) -> bytes:
        """Return a certificate for a request, in PEM.

        `usages` are those of a CertificateSigningRequest. The certificate is valid for `lifetime` seconds, at most until that of the
        authority ends. It is valid from five minutes before `now`, which a lifetime below eight hours does not include
        (PermissiveSigningPolicy in kube-controller-manager's pkg/controller/certificates/authority).
        """
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization

        begin = now - _SIGNED_BACKDATED
        end = (begin if lifetime >= _LONG else now) + timedelta(seconds=lifetime)
        validity = begin, min(end, self._certificate.not_valid_after_utc)
        kinds = (x509.DNSName, x509.RFC822Name, x509.IPAddress, x509.UniformResourceIdentifier)
        names = [name for kind in kinds for name in asked.names if isinstance(name, kind)]
        certificate = self._certify(_go_name(asked.subject), asked.public_key, usages, names, validity)
        return certificate.public_bytes(serialization.Encoding.PEM)

    def _issue(
        self, subject: x509.Name, purpose: str, names: Sequence[x509.GeneralName], validity: _Validity
    ) -> KeyPair:
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        usages = ("digital signature", "key encipherment", purpose)
        return _pair(self._certify(subject, key.public_key(), usages, names, validity), key)

    def _certify(
        self,
        subject: x509.Name,
        public_key: CertificatePublicKeyTypes,
        usages: Collection[str],
        names: Sequence[x509.GeneralName],
        validity: _Validity,
    ) -> x509.Certificate:
        """Return a certificate with the extensions that Go's crypto/x509 gives to one of these usages and names."""
        from cryptography import x509

        extensions: list[tuple[x509.ExtensionType, bool]] = [
            *_usage_extensions(usages),
            (x509.BasicConstraints(ca=False, path_length=None), True),
            (x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), False),
        ]
        if names:  # they are all that names the subject if that is empty (RFC 5280, 4.2.1.6)
            extensions.append((x509.SubjectAlternativeName(names), not subject.rdns))
        return _signed(subject, self._certificate.subject, public_key, validity, extensions, self._key)


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
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError as error:
        raise ConfigError(
            "cannot create certificates: the package cryptography is not installed. Run pip install 'ctrlruntime[webhook]' (the embedded API "
            "server's extra, 'ctrlruntime[apiserver]', includes it)"
        ) from error

    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(common_name[:_COMMON_NAME], ())
    extensions = [
        (x509.BasicConstraints(ca=True, path_length=None), True),
        *_usage_extensions(("digital signature", "cert sign", "crl sign")),
        (x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False),
    ]
    validity = timedelta(seconds=lifetime)
    certificate = _signed(name, name, key.public_key(), _validity(validity, now), extensions, key)
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


def _go_name(subject: x509.Name) -> x509.Name:
    """Return a subject as Go's crypto/x509/pkix writes it: the attributes that it knows, in its order, those of one type as one set."""
    from cryptography import x509

    sets: list[x509.RelativeDistinguishedName] = []
    for oid in _SUBJECT:
        found = subject.get_attributes_for_oid(x509.ObjectIdentifier(oid))
        if found:
            chosen = found[-1:] if oid in _SINGLE else dict.fromkeys(found)
            sets.append(x509.RelativeDistinguishedName(chosen))
    return x509.Name(sets)


def _validity(lifetime: timedelta, now: datetime | None) -> _Validity:
    moment = datetime.now(UTC) if now is None else now
    return moment - BACKDATED, moment + lifetime


def _usage_extensions(usages: Collection[str]) -> Iterator[tuple[x509.ExtensionType, bool]]:
    """Yield the extensions for usages of a CertificateSigningRequest, and whether they are critical."""
    from cryptography import x509

    flags = {_KEY_USAGES[usage] for usage in usages if usage in _KEY_USAGES}
    if flags & {"encipher_only", "decipher_only"}:
        flags.add("key_agreement")  # without it they mean nothing (RFC 5280, 4.2.1.3)
    if flags:
        yield x509.KeyUsage(**{name: name in flags for name in dict.fromkeys(_KEY_USAGES.values())}), True
    purposes = dict.fromkeys(purpose for usage, purpose in _PURPOSES.items() if usage in usages)
    if purposes:
        yield x509.ExtendedKeyUsage([x509.ObjectIdentifier(purpose) for purpose in purposes]), False


def _signed(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: CertificatePublicKeyTypes,
    validity: _Validity,
    extensions: Iterable[tuple[x509.ExtensionType, bool]],
    key: ec.EllipticCurvePrivateKey,
) -> x509.Certificate:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(validity[0])
        .not_valid_after(validity[1])
    )
    for extension, is_critical in extensions:
        builder = builder.add_extension(extension, critical=is_critical)
    return builder.sign(key, hashes.SHA256())


def _pair(certificate: x509.Certificate, key: Any) -> KeyPair:
    from cryptography.hazmat.primitives import serialization

    return KeyPair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )

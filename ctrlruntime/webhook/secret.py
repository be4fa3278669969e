"""Webhook certificates without cert-manager: a self-signed CA and a pair, in a Secret that all replicas share.

The first replica creates it, and any replica renews it. Writes detect conflicts, so that replicas do not overwrite each other. The CA is
injected into webhook configurations and the conversion of CRDs. A new CA is trusted before it signs a certificate.

The operator needs: get, create, update for this Secret; get, update for the configurations and CRDs.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from ctrlruntime import log
from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.api.object import Unstructured
from ctrlruntime.certificates import BACKDATED, Authority, KeyPair, general_names, make_authority
from ctrlruntime.client.interfaces import Client
from ctrlruntime.errors import AlreadyExists, ConfigError, Conflict, CtrlError, NotFound
from ctrlruntime.webhook.certificates import Announcement
from ctrlruntime.webhook.configurations import CustomResourceDefinition, Mutating, Validating, change, inject_bundle

if TYPE_CHECKING:
    from cryptography import x509

    from ctrlruntime.api.core.v1 import Secret

__all__ = ["SecretCertificates", "SecretStore", "renewed"]

CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
BUNDLE: Final = "ca.crt"
"""The CAs that callers trust: the current one, and the next or previous one."""

SIGNER: Final = ("signer.crt", "signer.key")
NEXT: Final = ("next.crt", "next.key")

_PEM_BLOCK: Final = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)

SOON: Final = 2.0
"""Seconds between two checks while an object that needs the CA is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretCertificates:
    """Stores the certificate in a Secret, and injects its CA."""

    name: str
    """The name of the Secret."""

    namespace: str
    service: str
    """The Service that the API server calls; the certificate has its DNS names."""

    mutating: Sequence[str] = ()
    """Names of MutatingWebhookConfigurations that get the CA."""

    validating: Sequence[str] = ()
    definitions: Sequence[str] = ()
    """Names of CRDs whose conversion gets the CA."""

    dns_names: Sequence[str] = ()
    """More names and IP addresses of the certificate."""

    lifetime: float = 90 * 86400.0
    """Seconds for which a certificate is valid; it is renewed after two thirds."""

    ca_lifetime: float = 3650 * 86400.0
    interval: float = 60.0
    """Seconds between two checks of the Secret and the configurations."""

    def __post_init__(self) -> None:
        if not (self.name and self.namespace and self.service):
            raise ConfigError(
                "SecretCertificates needs the Secret's name, its namespace, and the Service in front of the webhooks"
            )
        if not 0 < 3 * self.interval <= self.lifetime < self.ca_lifetime:
            raise ConfigError(
                f"SecretCertificates: interval ({self.interval:g} s) must be above 0, lifetime ({self.lifetime:g} s) at least three "
                f"times the interval and below ca_lifetime ({self.ca_lifetime:g} s)"
            )
        for option in ("mutating", "validating", "definitions", "dns_names"):
            if isinstance(getattr(self, option), str):
                raise ConfigError(f"SecretCertificates: {option} is a list of names")
        for host in self.hosts:
            if not host.isascii():
                raise ConfigError(f"SecretCertificates: {host!r} is not a valid DNS name; write it in ASCII (xn--…)")

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] = os.environ) -> SecretCertificates | None:
        """Return the options from environment variables, or None.

        `ctrl manifests` sets them if cert-manager is off. None if WEBHOOK_SECRET is not set.

        WEBHOOK_SECRET and POD_NAMESPACE name the Secret, WEBHOOK_SERVICE the Service. WEBHOOK_MUTATING, WEBHOOK_VALIDATING and
        WEBHOOK_DEFINITIONS are comma-separated lists. Raises: ConfigError if only some of the first three are set.
        """
        if not environ.get("WEBHOOK_SECRET"):
            return None
        missing = [name for name in ("POD_NAMESPACE", "WEBHOOK_SERVICE") if not environ.get(name)]
        if missing:
            raise ConfigError(f"WEBHOOK_SECRET is set and {' and '.join(missing)} not: set all three, or none")
        lists = {
            option: [name for name in environ.get(f"WEBHOOK_{option.upper()}", "").split(",") if name]
            for option in ("mutating", "validating", "definitions")
        }
        return cls(
            name=environ["WEBHOOK_SECRET"],
            namespace=environ["POD_NAMESPACE"],
            service=environ["WEBHOOK_SERVICE"],
            mutating=lists["mutating"],
            validating=lists["validating"],
            definitions=lists["definitions"],
        )

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names of the certificate."""
        full = f"{self.service}.{self.namespace}.svc"
        return tuple(
            dict.fromkeys((full, f"{full}.cluster.local", f"{self.service}.{self.namespace}", *self.dns_names))
        )


class SecretStore:
    """The source of certificates for `SecretCertificates`."""

    def __init__(
        self,
        options: SecretCertificates,
        client: Client,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._options = options
        self._client = client
        self._sleep = sleep
        self._now = now
        self._shown: KeyPair | None = None
        self._complaint = ""
        self._missing: set[str] = set()
        """Names of what is to get the CA and is not there (yet): a deployment applies it when the operator is available."""

        self.reads = 0
        self.errors = 0
        self._log = log.get_logger("webhook")

    async def prepare(self) -> KeyPair:
        pair, bundle = await self._settle()
        # Before the first caller: with what was injected, this certificate is trusted.
        await self._inject(bundle)
        self._shown = pair
        return pair

    async def follow(self, use: Callable[[KeyPair], None]) -> None:
        while True:
            soon = SOON if self._missing else self._options.interval
            await self._sleep(min(soon, self._options.interval))
            try:
                await self._look(use)
            except CtrlError as error:
                self.errors += 1
                if str(error) != self._complaint:
                    self._log.warning("cannot update the certificate's Secret, retrying", error=log.describe(error))
                self._complaint = str(error)

    async def announce(self, server: Announcement) -> None:
        """Do nothing: the configurations are in the operator's manifests, and have their CA."""

    async def retire(self) -> None:
        """Do nothing: other replicas, and the next start, use the Secret."""

    async def _look(self, use: Callable[[KeyPair], None]) -> None:
        pair, bundle = await self._settle()
        # What is trusted first: the pair is not shown before the API server was told of its CA.
        await self._inject(bundle)
        self._complaint = ""
        if pair != self._shown:
            self._shown = pair
            use(pair)
            self._log.info("certificate replaced", secret=str(self._key))

    async def _settle(self) -> tuple[KeyPair, bytes]:
        """Return the pair and the bundle in the Secret, made or renewed where that is due."""
        while True:
            self.reads += 1
            present = await self._find()
            data = {} if present is None else present.data
            fresh = renewed(data, self._options, self._now())
            if fresh is None:
                return KeyPair(data[CERTIFICATE], data[KEY]), data[BUNDLE]
            try:
                if present is None:
                    await self._client.create(self._new(fresh))
                else:
                    present.data = fresh
                    await self._update(present)
            except (AlreadyExists, Conflict):
                continue  # another replica was faster: take what it made
            return KeyPair(fresh[CERTIFICATE], fresh[KEY]), fresh[BUNDLE]

    async def _update(self, present: Secret) -> None:
        try:
            await self._client.update(present)
        except NotFound as error:
            raise Conflict("the Secret was deleted by another client") from error

    async def _inject(self, bundle: bytes) -> None:
        targets: list[tuple[type[Unstructured], str]] = [
            *((Mutating, name) for name in self._options.mutating),
            *((Validating, name) for name in self._options.validating),
            *((CustomResourceDefinition, name) for name in self._options.definitions),
        ]
        missing: set[str] = set()
        for kind, name in targets:
            found = await change(self._client, kind, name, lambda obj: inject_bundle(obj, bundle))
            if found is None:
                missing.add(name)
                if name not in self._missing:
                    self._log.warning("no object to inject the CA into", kind=kind.__name__, name=name)
        self._missing = missing

    async def _find(self) -> Secret | None:
        from ctrlruntime.api.core.v1 import Secret

        return await self._client.api_reader.get_or_none(Secret, self._key)

    def _new(self, data: dict[str, bytes]) -> Secret:
        from ctrlruntime.api.core.v1 import Secret
        from ctrlruntime.api.meta.v1 import ObjectMeta

        metadata = ObjectMeta(name=self._key.name, namespace=self._key.namespace)
        return Secret(metadata=metadata, type="kubernetes.io/tls", data=data)

    @property
    def _key(self) -> NamespacedName:
        return NamespacedName(self._options.namespace, self._options.name)


def renewed(data: Mapping[str, bytes], options: SecretCertificates, now: datetime) -> dict[str, bytes] | None:
    """Return the next content of the Secret, or None if it need not change.

    Each call is one step, and a new CA needs two: first it is trusted, and an interval later, when every replica has injected it, it signs.
    Earlier CAs stay in the bundle until they expire. Other keys of the Secret are kept.
    """
    signer, waiting = _authority(data, SIGNER, options, now), _authority(data, NEXT, options, now)
    if waiting is not None and (signer is None or _age(waiting, now) >= timedelta(seconds=options.interval)):
        signer, waiting = waiting, None
    elif signer is None:
        signer = make_authority(options.name, lifetime=options.ca_lifetime, now=now)
    elif waiting is None and _is_due(_certificates(signer.pem)[0], options.ca_lifetime, now):
        waiting = make_authority(options.name, lifetime=options.ca_lifetime, now=now)
    wanted = {**data, SIGNER[0]: signer.pair.certificate, SIGNER[1]: signer.pair.key}
    if waiting is None:
        wanted = {name: value for name, value in wanted.items() if name not in NEXT}
    else:
        wanted |= {NEXT[0]: waiting.pair.certificate, NEXT[1]: waiting.pair.key}
    known = [wanted.get(name, b"") for name in (SIGNER[0], NEXT[0])] + [
        data.get(name, b"") for name in (SIGNER[0], BUNDLE)
    ]
    wanted[BUNDLE] = _bundle(b"\n".join(known), now)
    names = _names_served(data, signer, options, now)
    if not set(general_names(options.hosts)) <= set(names):
        # A replica of another version may need the other names: without them each would replace what the other made.
        others = [str(name.value) for name in names if str(name.value) not in options.hosts]
        pair = signer.server([*options.hosts, *others], lifetime=options.lifetime, now=now)
        wanted |= {CERTIFICATE: pair.certificate, KEY: pair.key}
    return None if wanted == data else wanted


def _names_served(
    data: Mapping[str, bytes], signer: Authority, options: SecretCertificates, now: datetime
) -> list[x509.GeneralName]:
    """Return the names of the certificate that is there; none when it cannot stay."""
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        leaf = _certificates(data.get(CERTIFICATE, b""))[0]
        leaf.verify_directly_issued_by(_certificates(signer.pem)[0])
        key: Any = load_pem_private_key(data.get(KEY, b""), None)
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, TypeError, IndexError, InvalidSignature, UnsupportedAlgorithm, x509.ExtensionNotFound):
        return []
    can_stay = (
        key.public_key() == leaf.public_key()
        and leaf.not_valid_before_utc <= now
        and not _is_due(leaf, options.lifetime, now)
    )
    return list(names) if can_stay else []


def _authority(
    data: Mapping[str, bytes], names: tuple[str, str], options: SecretCertificates, now: datetime
) -> Authority | None:
    """Return the CA kept under two names, None when it is not there, cannot be read, is none or not valid now."""
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    pair = KeyPair(data.get(names[0], b""), data.get(names[1], b""))
    try:
        certificate = _certificates(pair.certificate)[0]
        key = load_pem_private_key(pair.key, None)
        is_authority = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (ValueError, TypeError, IndexError, UnsupportedAlgorithm, x509.ExtensionNotFound):
        return None
    is_valid = certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc
    if not (isinstance(key, ec.EllipticCurvePrivateKey) and is_authority and is_valid):
        return None
    if key.public_key() != certificate.public_key():
        return None
    return Authority(pair, certificate, key, timedelta(seconds=options.ca_lifetime))


def _bundle(pem: bytes, now: datetime) -> bytes:
    """Return the certificates each once, without those that have expired and what is none."""
    from cryptography.hazmat.primitives.serialization import Encoding

    found = {
        certificate.public_bytes(Encoding.PEM): None
        for block in _PEM_BLOCK.findall(pem)
        for certificate in _readable(block)
        if certificate.not_valid_after_utc > now
    }
    return b"".join(found)


def _readable(block: bytes) -> Iterator[x509.Certificate]:
    with contextlib.suppress(ValueError):
        yield from _certificates(block)


def _certificates(pem: bytes) -> list[x509.Certificate]:
    try:
        from cryptography import x509
    except ImportError as error:
        raise ConfigError(
            "certificates in a Secret need the package cryptography: pip install 'ctrlruntime[webhook]'"
        ) from error
    return x509.load_pem_x509_certificates(pem)


def _age(authority: Authority, now: datetime) -> timedelta:
    return now - _certificates(authority.pem)[0].not_valid_before_utc - BACKDATED


def _is_due(certificate: x509.Certificate, lifetime: float, now: datetime) -> bool:
    """Whether less than a third of the time it is given is left."""
    return certificate.not_valid_after_utc - now < timedelta(seconds=lifetime) / 3

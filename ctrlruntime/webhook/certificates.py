"""Where a webhook server's certificate comes from, and who has to be told of it: three ways with one protocol.

Files (cert-manager and OLM mount them) need nobody told. `development` makes its own and registers the webhooks, `secret` keeps a pair in the
cluster and injects the CA.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from ctrlruntime.certificates import KeyPair
from ctrlruntime.certwatcher import CertWatcher
from ctrlruntime.errors import ConfigError
from ctrlruntime.webhook.registration import Registration

__all__ = ["Announcement", "Certificates", "FileCertificates"]


class Announcement(Protocol):
    """What a certificate source may tell the cluster about: the server."""

    @property
    def registrations(self) -> tuple[Registration, ...]: ...

    @property
    def port(self) -> int: ...


class Certificates(Protocol):
    """A source of key pairs. `reads` and `errors` count for metrics."""

    @property
    def reads(self) -> int: ...

    @property
    def errors(self) -> int: ...

    async def prepare(self) -> KeyPair:
        """Return the pair to start with. Raises: ConfigError when there is none, APIStatusError."""
        ...

    async def follow(self, use: Callable[[KeyPair], None]) -> None:
        """Hand over each new pair, until cancelled."""
        ...

    async def announce(self, server: Announcement) -> None:
        """Tell the cluster of the server, which listens now."""
        ...

    async def retire(self) -> None:
        """Take back what `announce` told; the server still answers."""
        ...


class FileCertificates:
    """A pair in two files, read again when they change."""

    def __init__(self, certificate: Path, key: Path, *, interval: float = 1.0) -> None:
        self._watcher = CertWatcher(certificate, key, interval=interval)

    @property
    def reads(self) -> int:
        return self._watcher.reads

    @property
    def errors(self) -> int:
        return self._watcher.errors

    async def prepare(self) -> KeyPair:
        try:
            self._watcher.read()
        except ConfigError as error:
            raise ConfigError(
                f"the webhook server has no certificate: {error}. Mount one (cert-manager, OLM) and name its folder with "
                "--webhook-cert-path or WebhookOptions(cert_dir=…), or have one made: "
                "WebhookOptions(development=DevelopmentMode()) on a laptop, WebhookOptions(secret=SecretCertificates(…)) in a cluster"
            ) from error
        return self._watcher.pair

    async def follow(self, use: Callable[[KeyPair], None]) -> None:
        self._watcher.on_change(use)
        await self._watcher.run()

    async def announce(self, server: Announcement) -> None:
        """Nobody has to be told."""

    async def retire(self) -> None:
        """Nothing was told."""

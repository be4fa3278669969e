"""Sources of a webhook server's certificate: files, development mode, or a Secret, with one protocol.

Files are mounted by cert-manager or OLM. `development` creates a certificate and registers the webhooks. `secret` stores a pair in the
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
    """The data of the server that a certificate source registers in the cluster."""

    @property
    def registrations(self) -> tuple[Registration, ...]: ...

    @property
    def port(self) -> int: ...


class Certificates(Protocol):
    """A source of key pairs. `reads` and `errors` are counters for metrics."""

    @property
    def reads(self) -> int: ...

    @property
    def errors(self) -> int: ...

    async def prepare(self) -> KeyPair:
        """Return the first pair. Raises: ConfigError if it does not exist, APIStatusError."""
        ...

    async def follow(self, use: Callable[[KeyPair], None]) -> None:
        """Call `use` with each new pair, until cancelled."""
        ...

    async def announce(self, server: Announcement) -> None:
        """Register the server in the cluster, after it has started to listen."""
        ...

    async def retire(self) -> None:
        """Undo `announce`; the server still responds."""
        ...


class FileCertificates:
    """A pair in two files, which are read again when they change."""

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
        """Do nothing: files need no registration."""

    async def retire(self) -> None:
        """Do nothing: files need no registration."""

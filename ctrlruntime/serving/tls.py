"""The certificate of an HTTP server: a pair in two files that are watched, or a self-signed pair."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Final

from ctrlruntime import log
from ctrlruntime.certificates import make_authority
from ctrlruntime.certwatcher import CertWatcher, ShownCertificate
from ctrlruntime.errors import ConfigError
from ctrlruntime.metrics.secure import SecureMetrics

__all__ = ["ServingCertificate"]

_NAMES: Final = ("localhost", "127.0.0.1", "::1")
_LIFETIME: Final = 10 * 365 * 86400.0
"""Seconds for which a self-signed pair is valid.

It is not renewed, and clients cannot verify it.
"""


class ServingCertificate:
    """A certificate for one server, from `start` to `stop`, both on the serving event loop."""

    def __init__(self, options: SecureMetrics, *, name: str, flag: str, interval: float = 1.0) -> None:
        self._watcher: CertWatcher | None = None
        if options.cert_dir is not None:
            folder = Path(options.cert_dir)
            self._watcher = CertWatcher(folder / options.cert_name, folder / options.key_name, interval=interval)
        self._name = name
        self._flag = flag
        self._shown = ShownCertificate()
        self._follower: asyncio.Task[None] | None = None

    def start(self) -> ssl.SSLContext:
        """Return the context to listen with, and watch the files.

        Raises: ConfigError without a valid pair.
        """
        if self._watcher is None:
            self._shown.show(make_authority(f"ctrlruntime {self._name}", lifetime=_LIFETIME).server(_NAMES))
        else:
            try:
                self._watcher.read()
            except ConfigError as error:
                raise ConfigError(
                    f"the {self._name} server has no certificate: {error}. Set the folder of a certificate with {self._flag}, or leave out "
                    "the flag for a self-signed certificate"
                ) from error
            self._watcher.on_change(self._shown.show)
            self._follower = asyncio.ensure_future(self._watcher.run())
        return self._shown.context()

    async def stop(self) -> None:
        """Stop watching. Does nothing without a start."""
        follower, self._follower = self._follower, None
        if follower is not None:
            follower.cancel()
            await asyncio.wait({follower})
            if not follower.cancelled() and (error := follower.exception()) is not None:
                log.get_logger("serving").error("certificate watcher failed", error=log.describe(error))

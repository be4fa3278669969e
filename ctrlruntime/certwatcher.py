"""Watches a key pair in files, calls back when it changes, and shows pairs to TLS clients.

The files may be replaced in any way (overwritten, renamed, or with a symbolic link as kubelet does). A new pair is used only if certificate
and key match, so that a half-written pair has no effect. Files are checked by polling, which works with every way of replacing them.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

from ctrlruntime import log
from ctrlruntime.certificates import KeyPair
from ctrlruntime.errors import ConfigError
from ctrlruntime.tls import load_pair, server_context, trust_clients

__all__ = ["CertWatcher", "ShownCertificate", "check_key_pair", "load_key_pair"]

_Marks: TypeAlias = tuple[tuple[int, int, int, int], ...]


class CertWatcher:
    """A certificate file and its key file, watched while `run` runs.

    Every `interval` seconds it checks whether the files changed, and every tenth time it reads them in any case. `reads` and `errors` are
    counters for metrics.
    """

    def __init__(
        self,
        certificate: str | os.PathLike[str],
        key: str | os.PathLike[str],
        *,
        interval: float = 1.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if interval <= 0:
            raise ConfigError(f"interval is {interval}: give the seconds between two checks of the files, above 0")
        self.certificate = Path(certificate)
        self.key = Path(key)
        self.reads = 0
        self.errors = 0
        self._interval = interval
        self._sleep = sleep
        self._pair: KeyPair | None = None
        self._marks: _Marks | None = None
        self._complaint = ""
        self._callbacks: list[Callable[[KeyPair], None]] = []
        self._log = log.get_logger("certwatcher")

    @property
    def pair(self) -> KeyPair:
        """The last valid pair. Raises: ConfigError before the first successful `read`."""
        if self._pair is None:
            raise ConfigError(f"{self.certificate} is not loaded. Call read() first")
        return self._pair

    def on_change(self, callback: Callable[[KeyPair], None]) -> None:
        """Call `callback` with each new pair, and at once if a pair is loaded."""
        self._callbacks.append(callback)
        if self._pair is not None:
            callback(self._pair)

    def read(self) -> bool:
        """Read the files, and return whether the pair changed. If so, call the callbacks.

        Raises: ConfigError with the missing or invalid file; the previous pair stays.
        """
        self.reads += 1
        try:
            marks = self._look()
            pair = KeyPair(_content(self.certificate), _content(self.key))
            if pair != self._pair:
                check_key_pair(pair, f"{self.certificate} and {self.key}")
        except ConfigError:
            self.errors += 1
            raise
        self._marks, self._complaint = marks, ""
        if pair == self._pair:
            return False
        self._pair = pair
        for callback in self._callbacks:
            callback(pair)
        return True

    async def run(self) -> None:
        """Watch the files until cancelled.

        Errors do not end it: an invalid pair is logged once and checked again.
        """
        looks = 0
        while True:
            await self._sleep(self._interval)
            looks += 1
            if looks % 10 and self._marks is not None and await asyncio.to_thread(self._look) == self._marks:
                continue
            try:
                is_new = self.read()
            except ConfigError as error:
                # What was there may come back with the marks it had.
                self._marks = None
                if str(error) != self._complaint:
                    self._complaint = str(error)
                    self._log.warning("cannot load new certificate, keeping the old one", error=self._complaint)
            else:
                if is_new:
                    self._log.info("certificate replaced", certificate=str(self.certificate))

    def _look(self) -> _Marks:
        return _mark(self.certificate) + _mark(self.key)


class ShownCertificate:
    """The pair of an HTTP/1.1 server, which can change while the server listens.

    `client_ca`: a PEM file; clients need a certificate of this CA.
    """

    def __init__(self, *, client_ca: str | os.PathLike[str] | None = None) -> None:
        self._client_ca = client_ca
        self._current: ssl.SSLContext | None = None

    def show(self, pair: KeyPair) -> None:
        """Use this pair for new connections. Raises: ConfigError if it is invalid."""
        context = self._make()
        load_key_pair(context, pair)
        self._current = context

    def context(self) -> ssl.SSLContext:
        """Return the context to listen with. Raises: ConfigError if client_ca cannot be read."""
        context = self._make()
        # What a connection gets is decided when it begins: the context of the moment. One context that takes a second pair would go on
        # showing the first to clients which prefer its sort of key.
        context.sni_callback = self._choose
        return context

    def _make(self) -> ssl.SSLContext:
        context = server_context()
        if self._client_ca is not None:
            try:
                trust_clients(context, Path(self._client_ca).read_bytes())
            except (OSError, ValueError) as error:
                raise ConfigError(f"cannot read client_ca {self._client_ca}: {error}") from error
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def _choose(self, connection: Any, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._current


def check_key_pair(pair: KeyPair, name: str = "the key pair") -> None:
    """Raise ConfigError unless certificate and key are PEM and match."""
    load_key_pair(server_context(), pair, name)


def load_key_pair(context: ssl.SSLContext, pair: KeyPair, name: str = "the key pair") -> None:
    """Load the pair into a context. Raises: ConfigError."""
    try:
        load_pair(context, pair.certificate, pair.key)
    except ValueError as error:
        raise ConfigError(
            f"{name} cannot be used: certificate and key must be PEM and belong together ({error})"
        ) from error


def _mark(path: Path) -> _Marks:
    try:
        found = path.stat()
    except OSError:
        return ()
    return ((found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size),)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from error

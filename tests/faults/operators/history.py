"""What the server stored, in its own order: every version of the Lease and of the written object, recorded by raw watches.

resourceVersions are positions in one log of the server (on the real one: etcd's revisions), so versions of different kinds can be put in
one order. That is the audit: it needs no clock of any process.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import urlsplit

from ctrlruntime.testing import Environment


@dataclass(frozen=True)
class Version:
    """One version of an object as the watch told it. `seen_at`: CLOCK_MONOTONIC."""

    resource_version: int
    kind: str
    type: str
    object: dict[str, Any]
    seen_at: float

    @property
    def holder(self) -> str:
        """Of a Lease: who holds it; empty when nobody does."""
        return "" if self.type == "DELETED" else str(self.object["spec"].get("holderIdentity") or "")

    @property
    def writer(self) -> str:
        return str(self.object.get("data", {}).get("writer", ""))


@dataclass
class History:
    """Records while the block runs; `versions` is what was recorded so far, in the server's order."""

    environment: Environment
    namespace: str
    paths: dict[str, str] = field(
        default_factory=lambda: {
            "Lease": "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
            "ConfigMap": "/api/v1/namespaces/{}/configmaps",
        }
    )
    """What is recorded: kinds, and where the server has them."""

    seconds: int = 600
    """The longest time that it records."""

    slim: Callable[[str, dict[str, Any]], dict[str, Any]] = lambda _kind, found: found
    """Returns what is kept of an object."""

    _versions: list[Version] = field(default_factory=list)
    _failures: list[BaseException] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._changed = threading.Condition()
        self._is_closed = False
        self._sockets: list[Any] = []
        self._threads: list[threading.Thread] = []
        for kind, template in self.paths.items():
            path = template.format(self.namespace)
            version = self.environment.connection.request("GET", f"{path}?limit=1")["metadata"]["resourceVersion"]
            watch = f"{path}?watch=1&timeoutSeconds={self.seconds}&resourceVersion="
            answer = self._open(watch + version)
            args = (kind, watch, version, answer)
            thread = threading.Thread(target=self._read, args=args, daemon=True, name=f"history of {kind}")
            thread.start()
            self._threads.append(thread)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_closed = True
        for sock in self._sockets:
            with_shutdown(sock)
        for thread in self._threads:
            thread.join(5)
        for sock in self._sockets:
            sock.close()
        assert not self._failures, self._failures

    def _open(self, path: str) -> http.client.HTTPResponse:
        parts = urlsplit(self.environment.url)
        connection = http.client.HTTPSConnection(
            parts.hostname or "", parts.port, context=self.environment.connection.tls, timeout=self.seconds
        )
        connection.putrequest("GET", path)
        for name, value in self.environment.connection.headers:
            connection.putheader(name, value)
        connection.endheaders()
        self._sockets.append(connection.sock)
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        return answer

    def _read(self, kind: str, watch: str, version: str, answer: http.client.HTTPResponse) -> None:
        try:
            while not self._is_closed:
                with contextlib.suppress(http.client.HTTPException):
                    while line := answer.readline():
                        version = self._note(kind, json.loads(line), time.monotonic())
                if not self._is_closed:  # the real server ends the watches of clients that were slow for a moment
                    answer = self._open(watch + version)
        except (OSError, ValueError, AssertionError) as error:
            if not self._is_closed:
                self._failures.append(error)

    def _note(self, kind: str, event: dict[str, Any], now: float) -> str:
        found = event["object"]
        assert event["type"] in {"ADDED", "MODIFIED", "DELETED"}, event
        with self._changed:
            kept = self.slim(kind, found)
            self._versions.append(Version(int(found["metadata"]["resourceVersion"]), kind, event["type"], kept, now))
            self._changed.notify_all()
        return str(found["metadata"]["resourceVersion"])

    @property
    def versions(self) -> list[Version]:
        with self._changed:
            return sorted(self._versions, key=lambda version: version.resource_version)

    def recorded(self, after: int) -> list[Version]:
        """Return what was recorded after the first so many versions, as it came."""
        with self._changed:
            return self._versions[after:]

    def mark(self) -> int:
        """Return the latest version that was recorded, to look only at what comes later."""
        return max((version.resource_version for version in self.versions), default=0)

    def writes(self, *, by: str | None = None, after: int = 0) -> list[Version]:
        return [
            version
            for version in self.versions
            if version.kind == "ConfigMap" and version.writer and version.type != "DELETED"
            if version.resource_version > after and (by is None or version.writer == by)
        ]

    def leases(self, *, after: int = 0) -> list[Version]:
        return [version for version in self.versions if version.kind == "Lease" and version.resource_version > after]

    def holder(self) -> str:
        leases = self.leases()
        return leases[-1].holder if leases else ""

    def terms(self) -> list[str]:
        """Return who led, one after the other."""
        holders = [version.holder for version in self.leases() if version.holder]
        return [holder for place, holder in enumerate(holders) if not place or holders[place - 1] != holder]

    def intruders(self) -> list[str]:
        """Return every write by a process that did not hold the lease then, as a line that says so; none is the claim.

        A Lease that was deleted by hand belongs, until it is written again, to whom it belonged before: nobody else has taken it. What a
        frozen process had handed to the kernel before it froze travels on without it and arrives while the lease is still its own (nobody can
        take it before it runs out, seconds later), so no such write needs an exception here.
        """
        holder, found = "", []
        for version in self.versions:
            if version.kind == "Lease":
                holder = holder if version.type == "DELETED" else version.holder
            elif version.writer and version.type != "DELETED" and version.writer != holder:
                found.append(
                    f"version {version.resource_version}: written by {version.writer} while {holder or 'nobody'} leads"
                )
        return found


def with_shutdown(sock: Any) -> None:
    """Wake up the thread that reads from it."""
    import contextlib
    import socket

    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)

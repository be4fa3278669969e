"""Providers without an API: fixed clusters, and kubeconfig files."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from ctrlruntime import log
from ctrlruntime.errors import ConfigError
from ctrlruntime.fleet.provider import ClusterSource, Inventory
from ctrlruntime.rest.config import Config, get_config
from ctrlruntime.rest.kubeconfig import MAX_SIZE, contexts

__all__ = ["KubeconfigFiles", "Static"]

INTERVAL: Final = 5.0
"""Seconds between two looks at kubeconfig files."""

_log = log.get_logger("fleet")


class Static:
    """Clusters that are known at the start.

    Args:
        clusters: names and configurations.
        name: the first part of the names of the clusters.

    """

    def __init__(self, clusters: Mapping[str, Config], *, name: str = "static") -> None:
        self.name = name
        self._clusters = dict(clusters)

    async def run(self, inventory: Inventory, /) -> None:
        for name, config in self._clusters.items():
            inventory.set(name, ClusterSource(config=config))
        inventory.synced()
        await asyncio.get_running_loop().create_future()


class KubeconfigFiles:
    """Clusters in kubeconfig files, which are read again every few seconds.

    A folder has one cluster for each file: its current context, with the name of the file without its ending. A file has one cluster for
    each context, with the name of the context. A file that cannot be used is logged, and its clusters stay as they were.

    Args:
        paths: files and folders.
        name: the first part of the names of the clusters.
        interval: seconds between two looks.

    """

    def __init__(
        self,
        *paths: str | Path,
        name: str = "files",
        interval: float = INTERVAL,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if not paths:
            raise ConfigError("KubeconfigFiles needs a path: a kubeconfig, or a folder of kubeconfigs")
        self.name = name
        self._paths = [Path(path) for path in paths]
        self._interval = interval
        self._sleep = sleep
        self._hashes: dict[Path, str] = {}
        self._named: dict[Path, list[str]] = {}
        """The clusters of each file."""

        self._complaints: dict[Path, str] = {}

    def read(self) -> dict[str, ClusterSource]:
        """Return the clusters that the files have now.

        Raises: ConfigError if they have no cluster, with the reason of the first file that cannot be used.
        """
        found: dict[str, ClusterSource] = {}
        reasons: list[str] = []
        try:
            for file, is_of_folder in self._files():
                try:
                    found |= self._clusters(file, "", is_of_folder=is_of_folder)
                except ConfigError as error:
                    reasons.append(str(error))
        except OSError as error:
            raise ConfigError(f"cannot read {error.filename}: {error.strerror}") from error
        if not found:
            raise ConfigError(reasons[0] if reasons else f"{' and '.join(map(str, self._paths))} has no clusters")
        return found

    async def run(self, inventory: Inventory, /) -> None:
        self._hashes.clear()
        while True:
            found = await asyncio.to_thread(self._look)
            self._refuse_twins(found)
            before = {name for names in self._named.values() for name in names}
            self._named = {file: names for file, names in self._named.items() if file in self._hashes}
            self._named |= {file: list(clusters) for file, clusters in found.items()}
            for name in before.difference(*self._named.values()):
                inventory.remove(name)
            for clusters in found.values():
                for name, source in clusters.items():
                    inventory.set(name, source)
            inventory.synced()
            await self._sleep(self._interval)

    def _look(self) -> dict[Path, dict[str, ClusterSource]]:
        """Return the clusters of each file that has changed."""
        changed: dict[Path, dict[str, ClusterSource]] = {}
        hashes: dict[Path, str] = {}
        for file, is_of_folder in self._files():
            try:
                with file.open("rb") as opened:
                    content = opened.read(MAX_SIZE + 1)
            except OSError as error:
                self._complain(file, f"cannot read it: {error.strerror}")
                if file in self._hashes:
                    hashes[file] = self._hashes[file]
                continue
            hashes[file] = digest = hashlib.sha256(content).hexdigest()
            if self._hashes.get(file) == digest:
                continue
            try:
                changed[file] = self._clusters(file, digest, is_of_folder=is_of_folder)
            except ConfigError as error:
                self._complain(file, str(error))
        self._hashes = hashes
        self._complaints = {file: why for file, why in self._complaints.items() if file in hashes}
        return changed

    def _refuse_twins(self, found: Mapping[Path, dict[str, ClusterSource]]) -> None:
        """Leave out clusters whose name another file has. Their file is read again each time."""
        owners = {name: file for file, names in self._named.items() if file in self._hashes for name in names}
        for file, clusters in found.items():
            for name in [name for name in clusters if owners.setdefault(name, file) != file]:
                del clusters[name]
                self._hashes[file] = ""
                self._complain(file, f"{owners[name]} has a cluster {name!r}, too. Rename one of them")

    def _files(self) -> Iterator[tuple[Path, bool]]:
        for path in self._paths:
            if not path.is_dir():
                yield path, False
                continue
            for file in sorted(path.iterdir()):
                if file.is_file() and not file.name.startswith("."):
                    yield file, True

    def _clusters(self, file: Path, digest: str, *, is_of_folder: bool) -> dict[str, ClusterSource]:
        names = {file.stem: None} if is_of_folder else {name: name for name in contexts(str(file))}
        return {
            name: ClusterSource(config=get_config(str(file), context), fingerprint=digest)
            for name, context in names.items()
        }

    def _complain(self, file: Path, why: str) -> None:
        if self._complaints.get(file) != why:
            self._complaints[file] = why
            _log.error("kubeconfig not usable, its clusters stay as they were", file=str(file), error=why)

"""CRDs for a test: read from files and folders, installed, and waited for.

`install` creates missing CRDs and updates existing ones, and returns when every served version responds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, cast

from ctrlruntime.errors import AlreadyExists, APIStatusError, Conflict, NotFound, TransportError
from ctrlruntime.generate.definitions import DefinitionSource, read_definitions
from ctrlruntime.testing.connection import Connection

__all__ = ["Source", "install", "read", "uninstall"]

Source: TypeAlias = DefinitionSource

_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_STEP = 0.05  # seconds


def read(sources: Source | Iterable[Source]) -> list[dict[str, Any]]:
    """Return the CRDs in `sources`: documents, files (with several documents), or folders with their subfolders.

    Documents of other kinds are skipped. Of two with the same name the last one counts.

    Raises: ConfigError as `read_definitions`.
    """
    definitions = [definition for source in _each(sources) for definition in read_definitions(source)]
    return list({str(definition["metadata"]["name"]): definition for definition in definitions}.values())


def install(
    connection: Connection,
    sources: Source | Iterable[Source],
    *,
    timeout: float = 10.0,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> list[str]:
    """Create or update the CRDs, wait until all served versions respond, and return their names.

    If a CRD of the same name is being deleted, this waits for its deletion.

    Raises: ConfigError as `read`; Invalid if the server rejects one; TransportError if a version does not respond, or an old CRD is not
    deleted, within `timeout` seconds.
    """
    definitions = read(sources)
    deadline = clock() + timeout
    for definition in definitions:
        while (finalizers := _going(connection, definition)) is not None:
            if clock() >= deadline:
                name = definition["metadata"]["name"]
                held = ", ".join(finalizers) or "its objects"
                raise TransportError(f"CRD {name} is still being deleted after {timeout:g} s; it is held by {held}")
            sleep(_STEP)
        _put(connection, definition)
    for definition in definitions:
        for path in _served_paths(definition):
            while (missing := _missing(connection, path)) is not None:
                if clock() >= deadline:
                    name = definition["metadata"]["name"]
                    raise TransportError(f"{path} of CRD {name} is not served after {timeout:g} s: {missing}")
                sleep(_STEP)
    return [str(definition["metadata"]["name"]) for definition in definitions]


def uninstall(connection: Connection, names: Iterable[str]) -> None:
    """Delete CRDs with their objects. A missing CRD is not an error."""
    for name in names:
        try:
            connection.request("DELETE", f"{_PATH}/{name}")
        except NotFound:
            continue


def _each(sources: Source | Iterable[Source]) -> Iterable[Source]:
    if isinstance(sources, Iterable) and not isinstance(sources, (str, Mapping)):
        return sources
    return [cast("Source", sources)]


def _going(connection: Connection, definition: dict[str, Any]) -> list[str] | None:
    """The finalizers of the CRD of that name if it is there and being deleted, otherwise None."""
    try:
        metadata = connection.request("GET", f"{_PATH}/{definition['metadata']['name']}")["metadata"]
    except NotFound:
        return None
    return metadata.get("finalizers", []) if "deletionTimestamp" in metadata else None


def _put(connection: Connection, definition: dict[str, Any]) -> None:
    """Create it, or replace its spec when it is there; another writer in between means once more."""
    name = definition["metadata"]["name"]
    for _ in range(10):
        try:
            connection.request("POST", _PATH, definition)
        except AlreadyExists:
            pass
        else:
            return
        try:
            present = connection.request("GET", f"{_PATH}/{name}")
            present["spec"] = definition["spec"]
            for field in ("labels", "annotations"):
                present["metadata"][field] = {
                    **present["metadata"].get(field, {}),
                    **(definition["metadata"].get(field) or {}),
                }
            connection.request("PUT", f"{_PATH}/{name}", present)
        except (Conflict, NotFound):
            continue
        return
    raise Conflict(f"CRD {name} could not be updated: another writer changed it ten times in a row")


def _served_paths(definition: dict[str, Any]) -> list[str]:
    spec = definition["spec"]
    group, plural = spec["group"], spec["names"]["plural"]
    return [f"/apis/{group}/{version['name']}/{plural}" for version in spec["versions"] if version.get("served")]


def _missing(connection: Connection, path: str) -> str | None:
    """Why `path` does not answer yet, or None when it does and discovery knows it."""
    version, plural = path.rsplit("/", 1)
    try:
        connection.request("GET", f"{path}?limit=1")
        resources = cast("list[dict[str, Any]]", connection.request("GET", version).get("resources") or [])
    except APIStatusError as error:
        return str(error)
    return None if any(r.get("name") == plural for r in resources) else "discovery does not list it"

"""Storage migration: bring every object of a kind into the version that is stored now, and say so in the definition.

A definition lists in `status.storedVersions` every version that objects may still be stored in; none of those can be removed from
it. Writing an object back unchanged stores it in the storage version. When that is done for all of them, the list is cut to that one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.api.object import Unstructured, object_key
from ctrlruntime.client.interfaces import Client, ListResult
from ctrlruntime.errors import APIStatusError, Conflict, CtrlError, Expired, NotFound
from ctrlruntime.install import CustomResourceDefinition
from ctrlruntime.spelling import did_you_mean

__all__ = ["Migration", "MigrationError", "find_definition", "migrate"]

PAGE = 500
AT_ONCE = 16
TOLD = 5
"""The maximum number of rejected objects in an error."""


class MigrationError(CtrlError):
    """The objects of a kind could not all be brought into the storage version; its definition is as it was."""


@dataclass(slots=True)
class Migration:
    """How far the migration of a kind is. `remaining` is what the server says is left; None when it does not say."""

    definition: str
    storage_version: str
    before: tuple[str, ...]
    """`status.storedVersions` at the start."""

    is_dry_run: bool = False
    written: int = 0
    gone: int = 0
    """Objects that were deleted meanwhile."""

    remaining: int | None = None
    after: tuple[str, ...] = ()
    """`status.storedVersions` at the end; empty before it."""

    refused: dict[str, str] = field(default_factory=dict[str, str])
    """Objects that the API server rejected, and why."""


async def migrate(
    client: Client,
    kind: str,
    *,
    dry_run: bool = False,
    page_size: int = PAGE,
    progress: Callable[[Migration], None] = lambda _: None,
) -> Migration:
    """Write every object of a custom kind back unchanged, then drop all but the storage version from `status.storedVersions`.

    `kind` is its name, plural or short name, with the group where that is needed (`memcacheds.cache.example.com`). `client` reads from
    the server. `progress` is called after each page. With `dry_run` the server is asked whether it would take each object, and nothing
    changes. A write that meets another one is done again. Raises: MigrationError when the server refuses an object, or the storage
    version changes meanwhile; NotFound for a kind that is not there; APIStatusError, TransportError.
    """
    definition = await find_definition(client, kind)
    storage = _storage_version(definition)
    migration = Migration(definition.metadata.name, storage, _stored(definition), is_dry_run=dry_run)
    served = _readable_version(definition)
    cls = Unstructured.of(f"{definition['spec']['group']}/{served}", definition["spec"]["names"]["kind"])
    done: set[str] = set()
    async for page in _pages(client, cls, page_size):
        objects = [obj for obj in page if obj.metadata.uid not in done]
        done.update(obj.metadata.uid for obj in objects)
        await _write_all(client, objects, migration)
        migration.remaining = page.remaining_item_count
        progress(migration)
    if migration.refused:
        raise _refusal(migration)
    migration.after = migration.before if dry_run else await _cut(client, migration)
    return migration


async def find_definition(client: Client, kind: str) -> Unstructured:
    """Return the definition of a kind, by its name, plural, singular or short name, alone or with `.GROUP`.

    Raises: NotFound, MigrationError if several match the name.
    """
    definitions = list(await client.api_reader.list(CustomResourceDefinition))
    found = [each for each in definitions if kind.lower() in _names(each)]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(sorted(each.metadata.name for each in found))
        raise MigrationError(f"{kind} matches several kinds ({names}). Add its group")
    hint = did_you_mean(
        kind, [name for each in definitions for name in _names(each)], ". List all with `kubectl get crd`"
    )
    raise NotFound(f"no CRD of the kind {kind!r} (built-in kinds have none){hint}")


def _names(definition: Unstructured) -> set[str]:
    spec: Any = definition["spec"]
    names = spec["names"]
    short = {names["plural"], names.get("singular"), names["kind"].lower(), *names.get("shortNames", ())} - {None, ""}
    return {*short, *(f"{name}.{spec['group']}" for name in short)}


def _versions(definition: Unstructured) -> list[Any]:
    spec: Any = definition["spec"]
    versions: list[Any] = spec["versions"]
    return versions


def _storage_version(definition: Unstructured) -> str:
    return str(next(version["name"] for version in _versions(definition) if version["storage"]))


def _readable_version(definition: Unstructured) -> str:
    """The storage version, or another one where that is not served."""
    served = [version for version in _versions(definition) if version["served"]]
    if not served:
        raise MigrationError(f"{definition.metadata.name} serves no version, so its objects cannot be read")
    return str(max(served, key=lambda version: version["storage"])["name"])


def _stored(definition: Unstructured) -> tuple[str, ...]:
    versions: Any = definition.get_path("status", "storedVersions")
    return tuple(versions or ())


# Objects


async def _pages(client: Client, cls: type[Unstructured], size: int) -> AsyncGenerator[ListResult[Unstructured]]:
    """Yield pages of all objects; when the token of the next one is too old, begin anew: what was seen is known by its uid."""
    token = ""
    while True:
        try:
            page = await client.api_reader.list(cls, limit=size, continue_token=token)
        except Expired:
            if not token:
                raise
            token = ""
            continue
        yield page
        token = page.continue_token
        if not token:
            return


async def _write_all(client: Client, objects: list[Unstructured], migration: Migration) -> None:
    for some in _batches(objects):
        outcomes = await asyncio.gather(*(_write(client, obj, migration) for obj in some), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome


def _batches(objects: list[Unstructured]) -> Iterator[list[Unstructured]]:
    for start in range(0, len(objects), AT_ONCE):
        yield objects[start : start + AT_ONCE]


async def _write(client: Client, obj: Unstructured, migration: Migration) -> None:
    name = object_key(obj)
    while True:
        try:
            await client.update(obj, dry_run=migration.is_dry_run)
        except Conflict:
            fresh = await client.api_reader.get_or_none(type(obj), name)
            if fresh is None:
                migration.gone += 1
                return
            obj = fresh
        except NotFound:
            migration.gone += 1
            return
        except APIStatusError as error:
            # A webhook denies with 403, and so does the server when our own permissions are missing; it then denies all.
            if error.code >= 500 or error.code in {401, 429}:
                raise  # it is not about this object
            migration.refused[str(name)] = str(error)
            return
        else:
            migration.written += 1
            return


def _refusal(migration: Migration) -> MigrationError:
    count = len(migration.refused)
    first = "; ".join(f"{name}: {why}" for name, why in list(migration.refused.items())[:TOLD])
    more = f"; and {count - TOLD} more" if count > TOLD else ""
    return MigrationError(
        f"the API server rejects {count} objects of {migration.definition}, so its storedVersions stay {_list(migration.before)}. "
        f"Fix them and run the command again ({first}{more})"
    )


# The definition


async def _cut(client: Client, migration: Migration) -> tuple[str, ...]:
    name, wanted = NamespacedName("", migration.definition), (migration.storage_version,)
    while True:
        definition = await client.api_reader.get(CustomResourceDefinition, name)
        if _storage_version(definition) != migration.storage_version:
            raise MigrationError(
                f"the storage version of {migration.definition} changed to {_storage_version(definition)} while its objects were written in "
                f"{migration.storage_version}. Run the command again"
            )
        if _stored(definition) == wanted:
            return wanted
        definition["status"]["storedVersions"] = list(wanted)
        try:
            await client.status.update(definition)
        except Conflict:
            continue
        return wanted


def _list(versions: Iterable[str]) -> str:
    return ", ".join(versions)

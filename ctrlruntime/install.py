"""Put CustomResourceDefinitions into a cluster and wait until they are served."""

from __future__ import annotations

import asyncio
import contextlib
import copy
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.api.object import Object, Unstructured
from ctrlruntime.client.interfaces import Client
from ctrlruntime.errors import AlreadyExists, ConfigError, Conflict, CtrlError, NoMatchError, NotFound

CustomResourceDefinition = Unstructured.of("apiextensions.k8s.io/v1", "CustomResourceDefinition")

Source: TypeAlias = str | Path | Mapping[str, Any] | type[Object]
"""The class of a kind; a manifest as a tree; or a file or folder of YAML and JSON manifests, where what is no CustomResourceDefinition is
passed over.
"""


class InstallTimeoutError(CtrlError):
    """A definition was accepted but is not served in time."""


async def install_crds(
    client: Client,
    *sources: Source,
    wait: float = 10.0,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> list[str]:
    """Create or update the definitions and wait until each served version can be used; returns their names.

    `sources` are classes (those of one group and kind are the versions of one definition), manifests, files and folders. `wait`:
    seconds. A definition of the same name that is being deleted is waited out, not written to: it would take the new one with it.
    Raises: GenerateError for a class that cannot become a definition, ConfigError for sources without definitions, APIStatusError
    when the server refuses one, InstallTimeoutError.
    """
    definitions = _definitions(sources)
    if not definitions:
        raise ConfigError(f"no CustomResourceDefinition in {', '.join(str(source) for source in sources) or 'nothing'}")
    held = f"a definition of the same name is still being deleted after {wait:g} s; its finalizers and its objects' hold it"
    async with _within(wait, f"{held}: see kubectl describe crd"):
        for definition in definitions:
            await _gone_if_going(client, definition, sleep)
    for definition in definitions:
        await _put(client, definition)
    unserved = f"the definitions were accepted, but not all are served after {wait:g} s"
    async with _within(wait, f"{unserved}; see kubectl describe crd"):
        for definition in definitions:
            await _served(client, definition, sleep)
    return [definition["metadata"]["name"] for definition in definitions]


@contextlib.asynccontextmanager
async def _within(seconds: float, complaint: str) -> AsyncGenerator[None, None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise InstallTimeoutError(complaint) from error


async def uninstall_crds(client: Client, *sources: Source) -> None:
    """Delete the definitions, and with them every object of their kinds; one that is not there is no error."""
    for definition in _definitions(sources):
        try:
            await client.delete(CustomResourceDefinition.from_wire(dict(definition)))
        except NotFound:
            continue


def _definitions(sources: Iterable[Source]) -> list[Mapping[str, Any]]:
    classes: list[type[Object]] = []
    manifests: list[Mapping[str, Any]] = []
    for source in sources:
        if isinstance(source, type):
            classes.append(source)
        else:
            from ctrlruntime.generate.definitions import read_definitions

            manifests += read_definitions(source)
    if not classes:
        return manifests
    from ctrlruntime.generate.crd import crds

    return [*crds(classes), *manifests]


def served_kinds(manifest: Mapping[str, Any]) -> list[GroupVersionKind]:
    """Return the kind of each version that a definition says is served."""
    spec: Any = manifest["spec"]
    kind = spec["names"]["kind"]
    return [GroupVersionKind(spec["group"], v["name"], kind) for v in spec["versions"] if v.get("served", True)]


async def _gone_if_going(
    client: Client, manifest: Mapping[str, Any], sleep: Callable[[float], Awaitable[None]]
) -> None:
    key = NamespacedName("", manifest["metadata"]["name"])
    while True:
        present = await client.api_reader.find(CustomResourceDefinition, key)
        if present is None or present.metadata.deletion_timestamp is None:
            return
        await sleep(0.1)


async def _put(client: Client, manifest: Mapping[str, Any]) -> None:
    while True:
        wanted = CustomResourceDefinition.from_wire(copy.deepcopy(dict(manifest)))
        present = await client.api_reader.find(CustomResourceDefinition, NamespacedName("", wanted.metadata.name))
        try:
            if present is None:
                await client.create(wanted)
                return
            _keep_conversion(wanted["spec"], present["spec"])
            if present["spec"] != wanted["spec"]:
                wanted.metadata.resource_version = present.metadata.resource_version
                await client.update(wanted)
        except (AlreadyExists, Conflict):
            continue  # somebody installs it at the same time: look again
        return


def _keep_conversion(wanted: dict[str, Any], present: Mapping[str, Any]) -> None:
    """Leave in place what an operator or an injector has put there: the webhook that converts, and the CA that it is trusted by."""
    conversion: dict[str, Any] = present.get("conversion") or {}
    if conversion.get("strategy") != "Webhook" or len(wanted["versions"]) < 2:
        return
    said = wanted.setdefault("conversion", conversion)
    bundle = conversion["webhook"]["clientConfig"].get("caBundle")
    if bundle and said.get("strategy") == "Webhook":
        said["webhook"]["clientConfig"].setdefault("caBundle", bundle)


async def _served(client: Client, manifest: Mapping[str, Any], sleep: Callable[[float], Awaitable[None]]) -> None:
    for kind in served_kinds(manifest):
        while True:
            try:
                await client.mapper.resource_for(kind)
                break
            except NoMatchError:
                await sleep(0.1)

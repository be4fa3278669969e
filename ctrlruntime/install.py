"""Put CustomResourceDefinitions into a cluster and wait until they are served."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.api.object import Unstructured
from ctrlruntime.client.interfaces import Client
from ctrlruntime.errors import AlreadyExists, ConfigError, Conflict, CtrlError, NoMatchError, NotFound

CustomResourceDefinition = Unstructured.of("apiextensions.k8s.io/v1", "CustomResourceDefinition")

Source: TypeAlias = str | Path | Mapping[str, Any]
"""A manifest as a tree, or a file or folder of YAML and JSON manifests; what is no CustomResourceDefinition is passed over."""


class InstallTimeoutError(CtrlError):
    """A definition was accepted but is not served in time."""


async def install_crds(
    client: Client,
    *sources: Source,
    wait: float = 10.0,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> list[str]:
    """Create or update the definitions and wait until each served version can be used; returns their names.

    `wait`: seconds. Raises: ConfigError for a source without definitions, APIStatusError when the server refuses one, InstallTimeoutError.
    """
    definitions = [definition for source in sources for definition in read_crds(source)]
    if not definitions:
        raise ConfigError(f"no CustomResourceDefinition in {', '.join(str(source) for source in sources)}")
    for definition in definitions:
        await _put(client, definition)
    try:
        async with asyncio.timeout(wait):
            for definition in definitions:
                await _served(client, definition, sleep)
    except TimeoutError as error:
        raise InstallTimeoutError(
            f"the definitions were accepted, but not all are served after {wait:g} s; see kubectl describe crd"
        ) from error
    return [definition["metadata"]["name"] for definition in definitions]


async def uninstall_crds(client: Client, *sources: Source) -> None:
    """Delete the definitions, and with them every object of their kinds; one that is not there is no error."""
    for source in sources:
        for definition in read_crds(source):
            try:
                await client.delete(CustomResourceDefinition.from_wire(dict(definition)))
            except NotFound:
                continue


def read_crds(source: Source) -> list[Mapping[str, Any]]:
    """Return the definitions in a source. Raises: ConfigError for a path that is not there or a file that is no YAML."""
    if isinstance(source, Mapping):
        return [source] if source.get("kind") == "CustomResourceDefinition" else []
    import yaml

    path = Path(source)
    if not path.exists():
        raise ConfigError(f"there is no file or folder {path} to install definitions from")
    files: Iterable[Path] = (
        sorted(file for file in path.rglob("*") if file.suffix in {".yaml", ".yml", ".json"})
        if path.is_dir()
        else [path]
    )
    documents: list[Any] = []
    for file in files:
        try:
            documents += yaml.safe_load_all(file.read_text(encoding="utf-8"))
        except yaml.YAMLError as error:
            raise ConfigError(f"{file} is not YAML: {error}") from error
    return [d for d in documents if isinstance(d, Mapping) and d.get("kind") == "CustomResourceDefinition"]


def served_kinds(manifest: Mapping[str, Any]) -> list[GroupVersionKind]:
    """Return the kind of each version that a definition says is served."""
    spec: Any = manifest["spec"]
    kind = spec["names"]["kind"]
    return [GroupVersionKind(spec["group"], v["name"], kind) for v in spec["versions"] if v.get("served", True)]


async def _put(client: Client, manifest: Mapping[str, Any]) -> None:
    while True:
        wanted = CustomResourceDefinition.from_wire(dict(manifest))
        present = await client.api_reader.find(CustomResourceDefinition, NamespacedName("", wanted.metadata.name))
        try:
            if present is None:
                await client.create(wanted)
            elif present["spec"] != wanted["spec"]:
                wanted.metadata.resource_version = present.metadata.resource_version
                await client.update(wanted)
        except (AlreadyExists, Conflict):
            continue  # somebody installs it at the same time: look again
        return


async def _served(client: Client, manifest: Mapping[str, Any], sleep: Callable[[float], Awaitable[None]]) -> None:
    for kind in served_kinds(manifest):
        while True:
            try:
                await client.mapper.resource_for(kind)
                break
            except NoMatchError:
                await sleep(0.1)

"""Install CustomResourceDefinitions, and wait until they are served."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.api.object import Object, Unstructured
from ctrlruntime.client.interfaces import Client
from ctrlruntime.client.patches import merge_patch
from ctrlruntime.errors import AlreadyExists, ConfigError, Conflict, CtrlError, NoMatchError, NotFound

CustomResourceDefinition = Unstructured.of("apiextensions.k8s.io/v1", "CustomResourceDefinition")

Source: TypeAlias = str | Path | Mapping[str, Any] | type[Object]
"""The class of a kind; a manifest as a dictionary; or a file or folder of YAML and JSON manifests.

Manifests in files that are not CRDs are skipped.
"""

INSTALL_OWNER: Final = "ctrl-install"
"""The field manager of the fields of CRDs."""

_EARLIER_OWNERS: Final = ("ctrl", "ctrlruntime")
"""The field managers of earlier versions, which installed with plain updates: the command, and an operator's code."""

_OWN_METADATA: Final = ("name", "labels", "annotations", "finalizers", "ownerReferences")
"""The metadata that a manifest may set.

The rest belongs to the server, and is in manifests read from one.
"""


class InstallTimeoutError(CtrlError):
    """A CRD was accepted, but is not served in time."""


async def install_crds(
    client: Client,
    *sources: Source,
    wait: float = 10.0,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> list[str]:
    """Apply CRDs, and wait until each served version can be used. Return their names.

    They are applied server-side with the field manager `INSTALL_OWNER`, so an unchanged CRD is not written. The apply is forced: fields in
    the CRD override changes by others, and fields that the CRD no longer has are removed. Other fields stay: labels and annotations of
    others, an injected CA bundle, and the conversion if the CRD does not have one.

    Args:
        client: a client for the cluster.
        sources: classes (those of one group and kind are the versions of one CRD), manifests, files and folders.
        wait: seconds. If a CRD of the same name is being deleted, the call waits until it is deleted.
        sleep: waits between two reads of a CRD.

    Raises: GenerateError for a class that cannot become a CRD, ConfigError for sources without CRDs, APIStatusError if the server rejects
    one, InstallTimeoutError.

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
    """Delete CRDs, and with them all objects of their kinds.

    A missing CRD is not an error.
    """
    for definition in _definitions(sources):
        try:
            await client.delete(CustomResourceDefinition.from_dict(dict(definition)))
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
    """Return the kind of each served version of a CRD."""
    spec: Any = manifest["spec"]
    kind = spec["names"]["kind"]
    return [GroupVersionKind(spec["group"], v["name"], kind) for v in spec["versions"] if v.get("served", True)]


async def _gone_if_going(
    client: Client, manifest: Mapping[str, Any], sleep: Callable[[float], Awaitable[None]]
) -> None:
    key = NamespacedName("", manifest["metadata"]["name"])
    while True:
        present = await client.api_reader.get_or_none(CustomResourceDefinition, key)
        if present is None or present.metadata.deletion_timestamp is None:
            return
        await sleep(0.1)


async def _put(client: Client, manifest: Mapping[str, Any]) -> None:
    metadata = {name: value for name, value in manifest["metadata"].items() if name in _OWN_METADATA}
    wanted = {**{name: manifest[name] for name in ("apiVersion", "kind", "spec")}, "metadata": metadata}
    while True:
        await make_room(client, wanted, INSTALL_OWNER)
        try:
            await client.apply(CustomResourceDefinition.from_dict(wanted), field_owner=INSTALL_OWNER, force=True)
        except (AlreadyExists, Conflict):
            continue  # somebody installs it at the same time: look again
        return


async def make_room(
    client: Client, manifest: Mapping[str, Any], owner: str, *, take_from: Collection[str] | None = None
) -> None:
    """Prepare an installed CRD for an apply of `manifest` by the field manager `owner`.

    It removes fields that conflict with the conversion of the manifest: a URL if the manifest has a Service (`take_from`: only if set by
    these managers), and fields that others added to the webhook of a conversion that the manifest no longer has. Fields that earlier
    versions of this package wrote with plain updates become owned by the manager, so that the apply can remove them.
    """
    key = NamespacedName("", manifest["metadata"]["name"])
    said = manifest["spec"].get("conversion")

    async def change(present: Unstructured, **changes: Any) -> Unstructured:
        metadata = {"resourceVersion": present.metadata.resource_version, **changes.pop("metadata", {})}
        return await client.patch(present, merge_patch({"metadata": metadata, **changes}), field_owner=owner)

    while (present := await client.api_reader.get_or_none(CustomResourceDefinition, key)) is not None:
        try:
            if conversion := _conversion_change(said, present, owner, take_from):
                present = await change(present, spec={"conversion": conversion})
            entries = _adopted(_entries(present), owner)
            if entries != _entries(present):
                await change(present, metadata={"managedFields": entries})
        except (Conflict, NotFound):
            continue  # somebody writes it at the same time: look again
        return


def _conversion_change(
    said: Mapping[str, Any] | None, present: Unstructured, owner: str, take_from: Collection[str] | None
) -> dict[str, Any] | None:
    """Return the merge patch of a definition's conversion that lets an apply of `said` succeed; None when there is none to make.

    An apply removes no field that another manager has, and with that the result may be no valid conversion.
    """
    webhook = present.get_path("spec", "conversion", "webhook", default=None)
    if webhook is None:
        return None
    if said is None:
        said = {"strategy": "None"} if owner in _owners(present, "f:strategy") else {}
    strategy = said.get("strategy")
    if strategy != "Webhook":
        return {"strategy": strategy, "webhook": None} if strategy else None
    config: Mapping[str, Any] = said.get("webhook", {}).get("clientConfig", {})
    for one, other in (("url", "service"), ("service", "url")):
        if one in config and other in webhook.get("clientConfig", {}):
            others = _owners(present, "f:webhook", "f:clientConfig", f"f:{other}")
            if take_from is None or others <= {owner, *take_from}:
                return {"webhook": {"clientConfig": {one: config[one], other: None}}}
    return None


def _owners(present: Unstructured, *path: str) -> set[str]:
    """Return the managers that have a field of the conversion."""
    found: set[str] = set()
    for entry in _entries(present):
        fields: Mapping[str, Any] | None = entry["fieldsV1"]
        for step in ("f:spec", "f:conversion", *path):
            fields = (fields or {}).get(step)
        if fields is not None:
            found.add(entry["manager"])
    return found


def _adopted(entries: Sequence[Mapping[str, Any]], owner: str) -> list[Mapping[str, Any]]:
    """Return the managed fields with what is the owner's in one entry: that of its apply.

    Its updates are those of `make_room`. Earlier versions installed with updates; operators write the conversion under the same names
    when they run, so that stays theirs. (`kubectl apply --server-side` treats the fields of a client-side apply in the same way.)
    """
    kept: list[Mapping[str, Any]] = [entry for entry in entries if not _is_applied(entry, owner)]
    applied = [entry for entry in entries if _is_applied(entry, owner)]
    taken: list[Mapping[str, Any]] = []
    for entry in [entry for entry in kept if entry["operation"] == "Update" and not entry.get("subresource")]:
        fields: Mapping[str, Any] = entry["fieldsV1"]
        spec: Mapping[str, Any] = fields.get("f:spec", {})
        if entry["manager"] == owner:
            rest = {}
        elif not applied and entry["manager"] in _EARLIER_OWNERS and "f:versions" in spec:
            rest = {"f:spec": {"f:conversion": spec["f:conversion"]}} if "f:conversion" in spec else {}
            fields = {**fields, "f:spec": {name: value for name, value in spec.items() if name != "f:conversion"}}
        else:
            continue
        kept.remove(entry)
        kept += [{**entry, "fieldsV1": rest}] if rest else []
        taken.append({**entry, "manager": owner, "operation": "Apply", "fieldsV1": fields})
    if not taken:
        return list(entries)
    fields = functools.reduce(_united, (entry["fieldsV1"] for entry in (*applied, *taken)))
    return [*kept, {**taken[-1], "fieldsV1": fields}]


def _united(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return the union of two sets of fields, as `fieldsV1` has them."""
    return {name: _united(one.get(name, {}), other.get(name, {})) for name in {**one, **other}}


def _entries(present: Unstructured) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = present.metadata.to_dict().get("managedFields", [])
    return entries


def _is_applied(entry: Mapping[str, Any], owner: str) -> bool:
    return (entry["manager"], entry["operation"]) == (owner, "Apply") and not entry.get("subresource")


async def _served(client: Client, manifest: Mapping[str, Any], sleep: Callable[[float], Awaitable[None]]) -> None:
    for kind in served_kinds(manifest):
        while True:
            try:
                await client.mapper.resource_for(kind)
                break
            except NoMatchError:
                await sleep(0.1)

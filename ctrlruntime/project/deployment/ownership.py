"""CRDs of others in a cluster: `ctrl install`, `ctrl deploy` and `ctrl uninstall` do not touch them unasked.

A CRD belongs to the field managers that applied its versions. It belongs to a deployment if it has the label of its ApplySet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.api.object import Object
from ctrlruntime.client.interfaces import Client
from ctrlruntime.errors import ConfigError
from ctrlruntime.install import INSTALL_OWNER
from ctrlruntime.project.deployment.applyset import OWNER, PART_OF, Member
from ctrlruntime.project.deployment.objects import Document, Named
from ctrlruntime.project.deployment.pruning import CustomResourceDefinition, custom_objects

__all__ = ["EXTERNAL", "OWN_MANAGERS", "check_install", "check_uninstall", "other_managers"]

OWN_MANAGERS: Final = frozenset((OWNER, INSTALL_OWNER, "ctrlruntime"))
"""The field managers of this package: `ctrl deploy`, `ctrl install` and operators that install their CRDs."""

EXTERNAL: Final = "Set external=True in the classes of kinds that other projects own"


def other_managers(definition: Object) -> list[str]:
    """Return the field managers that applied the versions of a CRD; none if this package did."""
    managers: set[str] = set()
    for entry in definition.metadata.managed_fields:
        fields: Mapping[str, Any] = entry.fields_v1 or {}
        if not entry.subresource and "f:versions" in (fields.get("f:spec") or {}):
            managers.add(entry.manager)
    return [] if managers & OWN_MANAGERS else sorted(managers)


async def check_install(
    client: Client, definitions: Iterable[Document], *, deployment: str = "", take_over: Collection[str] = ()
) -> None:
    """Reject an install over CRDs of others. `deployment` is the ApplySet ID of the project, `take_over` has names of CRDs to allow.

    Raises: ConfigError, which names them.
    """
    found = await _present(client, definitions)
    _refuse("install", {name: _owners(each, {deployment}) for name, each in found.items()}, take_over)


async def check_uninstall(
    client: Client, definitions: Iterable[Document], *, take_over: Collection[str] = ()
) -> dict[str, Sequence[Member]]:
    """Return the objects that an uninstall of these CRDs deletes, by CRD; CRDs without objects are left out.

    Raises: ConfigError for CRDs of others and of deployments, except those that `take_over` names.
    """
    found = await _present(client, definitions)
    _refuse("uninstall", {name: _owners(each, ()) for name, each in found.items()}, take_over)
    objects = {name: await custom_objects(client, Named.of(each.to_dict())) for name, each in found.items()}
    return {name: members for name, members in objects.items() if members}


async def _present(client: Client, definitions: Iterable[Document]) -> dict[str, Object]:
    names = [str(each["metadata"]["name"]) for each in definitions]
    found = {
        name: await client.api_reader.get_or_none(CustomResourceDefinition, NamespacedName("", name)) for name in names
    }
    return {name: each for name, each in found.items() if each is not None}


def _owners(definition: Object, deployments: Collection[str]) -> str:
    label = definition.metadata.labels.get(PART_OF, "")
    if label and label not in deployments:
        return f"is part of the deployment {label}"
    managers = other_managers(definition)
    return f"was applied by {' and '.join(managers)}" if managers else ""


def _refuse(action: str, owners: Mapping[str, str], take_over: Collection[str]) -> None:
    foreign = {name: text for name, text in owners.items() if text and name not in take_over}
    if foreign:
        texts = "; ".join(f"{name} {text}" for name, text in foreign.items())
        flags = " ".join(f"--force-conflicts {name}" for name in foreign)
        raise ConfigError(f"cannot {action} CRDs of others: {texts}. {EXTERNAL}, or take them over with {flags}")

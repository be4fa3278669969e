"""Deletes objects of an earlier deployment that are not in this one, except those whose deletion loses users' data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.object import PartialObjectMetadata, Unstructured
from ctrlruntime.client.interfaces import Client
from ctrlruntime.errors import CtrlError, NoMatchError, NotFound
from ctrlruntime.project.deployment.applyset import ApplySet, Member, Scope
from ctrlruntime.project.deployment.objects import Named, Step, Tell

__all__ = ["CustomResourceDefinition", "custom_objects", "in_removal_order", "prune", "removal_rank"]

CustomResourceDefinition = Unstructured.of("apiextensions.k8s.io/v1", "CustomResourceDefinition")

_FIRST: Final = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "APIService", "Deployment")
_LAST: Final = ("CustomResourceDefinition", "Namespace")


def removal_rank(named: Named) -> int:
    """Return the place in a removal: webhooks first, which would be asked about the rest; then workloads; definitions and Namespaces last."""
    kind = named.kind.kind
    if kind in _FIRST:
        return _FIRST.index(kind)
    return len(_FIRST) + (_LAST.index(kind) + 1 if kind in _LAST else 0)


def in_removal_order(members: Iterable[Member]) -> list[Member]:
    """Return members sorted by their place, then by name."""
    return sorted(members, key=lambda member: (removal_rank(member.named), member.named))


async def prune(
    client: Client, ours: ApplySet, before: Scope, wanted: Sequence[Named], *, dry_run: bool, tell: Tell
) -> list[Named]:
    """Delete the members of the set that are not `wanted`, and return those that were kept."""
    # By group, not version: a version may be new.
    keep = {(each.kind.group, each.kind.kind, each.namespace, each.name) for each in wanted}
    kept: list[Named] = []
    for member in in_removal_order(await ours.members(before | Scope.of(wanted))):
        named = member.named
        if (named.kind.group, named.kind.kind, named.namespace, named.name) in keep or member.is_going:
            continue
        reason = await _reason_to_keep(client, named)
        if reason:
            kept.append(named)
            tell(Step("kept", named, reason))
            continue
        try:
            await client.delete(named.metadata_only(), uid=member.uid, propagation_policy="Background", dry_run=dry_run)
        except NotFound:
            continue
        tell(Step("pruned", named))
    return kept


async def _reason_to_keep(client: Client, named: Named) -> str:
    match named.kind.kind:
        case "Namespace":
            return f"its contents would be deleted too. To delete it, run `kubectl delete namespace {named.name}`"
        case "CustomResourceDefinition":
            count = await _count(client, named)
            if count == "0":
                return ""
            return f"it has {count} object{'' if count == '1' else 's'}. To delete it and them, run `kubectl delete crd {named.name}`"
        case _:
            return ""


async def _count(client: Client, named: Named) -> str:
    try:
        return str(len(await custom_objects(client, named)))
    except NoMatchError:
        return "0"
    except CtrlError:  # a conversion that does not answer
        return "an unknown number of"


async def custom_objects(client: Client, definition: Named) -> list[Member]:
    """Return every object of a definition, in the version it is stored in. Raises: CtrlError when they cannot be listed."""
    found = await client.api_reader.get_or_none(CustomResourceDefinition, definition.key)
    if found is None:
        return []
    spec = found["spec"]
    served = [each for each in spec["versions"] if each["served"]]
    if not served:
        return []
    version = next((each["name"] for each in served if each["storage"]), served[0]["name"])
    kind = GroupVersionKind(spec["group"], version, spec["names"]["kind"])
    cls = PartialObjectMetadata.of(Unstructured.of(kind.api_version, kind.kind))
    listed = await client.api_reader.list(cls)
    return [
        Member(
            Named(kind, each.metadata.namespace, each.metadata.name),
            each.metadata.uid,
            each.metadata.deletion_timestamp is not None,
            tuple(each.metadata.finalizers),
        )
        for each in listed
    ]

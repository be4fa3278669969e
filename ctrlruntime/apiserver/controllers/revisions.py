"""ControllerRevisions: the templates a StatefulSet or a DaemonSet has had, each with a number."""

from __future__ import annotations

from collections.abc import Callable

from ctrlruntime.apiserver.controllers.objects import controller_of, metadata, owner_reference, safe_hash
from ctrlruntime.apiserver.interfaces import API
from ctrlruntime.schema.trees import Document


def template_hash(owner: Document) -> str:
    """Return the hash of an owner's present pod template."""
    return safe_hash(owner["spec"].get("template"))


async def keep_revision(
    api: API, owner: Document, hash_label: str, annotations: Callable[[Document], Document] | None = None
) -> Document:
    """Return the revision of the owner's present template: a new one, or an old one that becomes the newest again."""
    namespace, name = str(metadata(owner)["namespace"]), f"{metadata(owner)['name']}-{template_hash(owner)}"
    known = revisions_of(api, owner)
    latest = max((int(revision.get("revision", 0)) for revision in known), default=0)
    found = api.get("apps", "controllerrevisions", namespace, name)
    if found is not None:
        if int(found.get("revision", 0)) < latest:
            found = await api.merge_patch("apps", "controllerrevisions", namespace, name, {"revision": latest + 1})
        return found
    labels = {**((owner["spec"].get("template") or {}).get("metadata") or {}).get("labels", {})}
    meta: Document = {
        "name": name,
        "namespace": namespace,
        "labels": {**labels, hash_label: template_hash(owner)},
        "ownerReferences": [owner_reference(owner)],
    }
    if annotations is not None:
        meta["annotations"] = annotations(owner)
    template = {"$patch": "replace", **(owner["spec"].get("template") or {})}
    document: Document = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": meta,
        "data": {"spec": {"template": template}},
        "revision": latest + 1,
    }
    return await api.create("apps", "controllerrevisions", namespace, document)


def revisions_of(api: API, owner: Document) -> list[Document]:
    """Return the revisions that an owner controls, the oldest first."""
    uid = metadata(owner)["uid"]
    found = [
        revision
        for revision in api.list("apps", "controllerrevisions", str(metadata(owner)["namespace"]))
        if (controller_of(revision) or {}).get("uid") == uid
    ]
    return sorted(found, key=lambda revision: int(revision.get("revision", 0)))


async def drop_history(api: API, owner: Document, in_use: set[str]) -> None:
    """Delete the oldest revisions beyond the history limit; `in_use` are names that stay."""
    idle = [revision for revision in revisions_of(api, owner) if metadata(revision)["name"] not in in_use]
    for revision in idle[: max(0, len(idle) - int(owner["spec"].get("revisionHistoryLimit", 10)))]:
        await api.delete(
            "apps", "controllerrevisions", str(metadata(revision)["namespace"]), metadata(revision)["name"]
        )

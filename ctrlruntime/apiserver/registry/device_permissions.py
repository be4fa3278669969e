"""Who may have devices: what namespaces allow, and which parts of a claim's status a client may write.

What is not allowed is a cause among others (pkg/registry/resource/utils.go), so that a refusal names all that is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ctrlruntime.apiserver.interfaces import API, UserIdentity
from ctrlruntime.apiserver.registry.device_rules import CLAIMS
from ctrlruntime.apiserver.registry.extensions import WriteExtensions
from ctrlruntime.apiserver.registry.trees import inner, items
from ctrlruntime.apiserver.registry.writes import Hook, Pending
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import forbidden_field, quoted
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import spec_of

_ADMIN_LABEL: Final = "resource.kubernetes.io/admin-access"
_NO_ADMIN: Final = f"admin access to devices requires the `{_ADMIN_LABEL}: true` label on the containing namespace"
_OF_NODE: Final = "authentication.kubernetes.io/node-name"


class DevicePermissions(Hook):
    """What is asked before a claim, a template or the status of a claim is validated."""

    def __init__(self, api: API, extensions: WriteExtensions) -> None:
        self._api = api
        self._extensions = extensions

    def permit(self, pending: Pending) -> Iterator[StatusCause]:
        document, old = pending.document, pending.old
        if old is None:
            yield from self._admin_causes(document, _first_admin_request(spec_of(document)))
        elif pending.subresource == "status":
            status, before = document.get("status") or {}, old.get("status") or {}
            if not _first_admin_result(before):
                yield from self._admin_causes(document, _first_admin_result(status))
            if pending.options.user is not None and not pending.options.is_inside:
                yield from self._status_causes(pending, pending.options.user, status, before)

    def _admin_causes(self, document: Document, path: str) -> Iterator[StatusCause]:
        if not path:
            return
        namespace = self._api.get("", "namespaces", "", document["metadata"].get("namespace", "")) or {}
        if (namespace.get("metadata") or {}).get("labels", {}).get(_ADMIN_LABEL) != "true":
            yield forbidden_field(path, _NO_ADMIN)

    def _status_causes(
        self, pending: Pending, user: UserIdentity, status: Document, before: Document
    ) -> Iterator[StatusCause]:
        """What takes permissions on parts that are no paths (the feature DRAResourceClaimGranularStatusAuthorization)."""
        verb = "patch" if pending.options.is_patch or pending.options.is_apply else "update"
        if any((status.get(name) or None) != (before.get(name) or None) for name in ("allocation", "reservedFor")):
            refusal = self._refusal(user, {"verb": verb, "subresource": "binding"})
            if refusal:
                text = "changing status.allocation or status.reservedFor requires"
                text += f' resource="resourceclaims/binding", verb="{verb}" permission: {refusal}'
                yield forbidden_field("status.allocation", text)
        if status.get("allocation") is None:
            return
        namespace = pending.document["metadata"].get("namespace", "")
        kinds = ("associated-node", "arbitrary-node") if _is_on_node(user, status) else ("arbitrary-node",)
        for driver in _changed_drivers(status, before):
            asked = {"subresource": "driver", "namespace": namespace, "name": driver}
            refusals = [self._refusal(user, {**asked, "verb": f"{kind}:{verb}"}) for kind in kinds]
            if all(refusals):
                verbs = " ".join(f"{kind}:{verb}" for kind in kinds)
                text = "changing status.devices requires"
                text += f' resource="resourceclaims/driver", verb="[{verbs}]" permission: {refusals[0]}'
                yield forbidden_field("status.devices", text)

    def _refusal(self, user: UserIdentity, asked: Mapping[str, str]) -> str:
        """Return why the user may not do it, as a response says it; empty when it may."""
        allowed, reason = self._extensions.decide(user, {"group": CLAIMS[0], "resource": CLAIMS[1], **asked})
        if allowed:
            return ""
        name = f" {quoted(asked['name'])}" if asked.get("name") else ""
        where = f'in the namespace "{asked["namespace"]}"' if asked.get("namespace") else "at the cluster scope"
        text = f"resourceclaims.resource.k8s.io{name} is forbidden: User {quoted(user.name)} cannot {asked['verb']}"
        text += f' resource "resourceclaims/{asked["subresource"]}" in API group "resource.k8s.io" {where}'
        return f"{text}: {reason}" if reason else text


def _first_admin_request(spec: Document) -> str:
    """Return the path of the first request for devices that others use; empty without one."""
    devices = inner(spec, "devices") or inner(spec, "spec", "devices") or {}
    for index, request in enumerate(items(devices, "requests")):
        if (inner(request, "exactly") or {}).get("adminAccess"):
            return f"spec.devices.requests[{index}].adminAccess"
    return ""


def _first_admin_result(status: Document) -> str:
    for index, result in enumerate(items(inner(status, "allocation", "devices") or {}, "results")):
        if result.get("adminAccess"):
            return f"status.allocation.devices.results[{index}].adminAccess"
    return ""


def _changed_drivers(status: Document, before: Document) -> list[str]:
    """Return the drivers of devices of which another thing is said than before (getModifiedDrivers)."""
    now, then = _by_device(status), _by_device(before)
    return sorted({key[0] for key in now.keys() | then.keys() if now.get(key) != then.get(key)})


def _by_device(status: Document) -> dict[tuple[str, ...], Any]:
    names = ("driver", "pool", "device", "shareID")
    return {tuple(str(each.get(name) or "") for name in names): each for each in items(status, "devices")}


def _is_on_node(user: UserIdentity, status: Document) -> bool:
    """Tell whether a service account runs on the node whose devices are allocated (saAssociatedWithAllocatedNode)."""
    found = list(user.extra.get(_OF_NODE, ()))
    terms: list[Document] = (inner(status, "allocation", "nodeSelector") or {}).get("nodeSelectorTerms") or []
    fields = (terms[0] or {}).get("matchFields") or [] if len(terms) == 1 else []
    return (
        user.name.startswith("system:serviceaccount:")
        and len(found) == 1
        and len(fields) == 1
        and not terms[0].get("matchExpressions")
        and fields[0].get("key") == "metadata.name"
        and fields[0].get("operator") == "In"
        and fields[0].get("values") == found
    )


__all__ = ["DevicePermissions"]

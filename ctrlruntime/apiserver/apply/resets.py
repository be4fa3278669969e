"""What a write through one path of a resource cannot set, and so does not own: status through the object, the rest through its status.

Measured on kube-apiserver 1.36.1, kind by kind: the rules hold for all kinds but the few that are listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from ctrlruntime.apiserver.apply.fieldsets import FieldSet


@dataclass(frozen=True)
class Reset:
    """Fields a write does not own: whole fields of the root, and paths below them (with everything below)."""

    roots: frozenset[str]
    paths: FieldSet | None = None


_NOTHING = Reset(frozenset())
_STATUS = Reset(frozenset({"status"}))
_SPEC = Reset(frozenset({"spec"}))
_SPEC_AND_METADATA = Reset(frozenset({"spec", "metadata"}))
_EXCEPTIONS: Mapping[tuple[str, str, str], Reset] = {
    ("", "pods", "status"): Reset(
        frozenset({"spec"}), {"f:metadata": {"f:deletionTimestamp": {}, "f:ownerReferences": {}}}
    ),
    ("", "pods", "ephemeralcontainers"): _NOTHING,
    ("", "pods", "resize"): _NOTHING,
    ("apps", "deployments", "status"): Reset(frozenset({"spec"}), {"f:metadata": {"f:labels": {}}}),
    ("certificates.k8s.io", "certificatesigningrequests", ""): Reset(frozenset({"spec", "status"})),
    ("certificates.k8s.io", "certificatesigningrequests", "status"): Reset(
        frozenset({"spec"}), {"f:status": {"f:conditions": {}}}
    ),
    ("certificates.k8s.io", "certificatesigningrequests", "approval"): Reset(
        frozenset({"spec"}), {"f:status": {"f:certificate": {}}}
    ),
    ("storage.k8s.io", "volumeattachments", "status"): _SPEC_AND_METADATA,
    ("networking.k8s.io", "servicecidrs", "status"): _SPEC_AND_METADATA,
    ("admissionregistration.k8s.io", "validatingadmissionpolicies", "status"): _SPEC_AND_METADATA,
    ("apiregistration.k8s.io", "apiservices", "status"): _SPEC_AND_METADATA,
    ("flowcontrol.apiserver.k8s.io", "flowschemas", "status"): _SPEC_AND_METADATA,
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", "status"): _SPEC_AND_METADATA,
}


@cache
def reset_of(group: str, plural: str, subresource: str, *, has_status: bool, is_custom: bool) -> Reset:
    """Return what a write through this path does not own."""
    exception = _EXCEPTIONS.get((group, plural, subresource))
    if exception is not None:
        return exception
    if subresource == "status":
        return _SPEC_AND_METADATA if is_custom else _SPEC
    return _STATUS if has_status else _NOTHING

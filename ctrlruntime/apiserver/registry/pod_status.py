"""Validation of the status of Pods (ValidatePodStatusUpdate in pkg/apis/core/validation/validation.go)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctrlruntime.apiserver.registry.services import family_of
from ctrlruntime.apiserver.registry.trees import items
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import forbidden_field, invalid_value
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import (
    address_causes,
    is_address,
    qualified_name_causes,
    spec_of,
    subdomain_causes,
)

_OF_THE_SYSTEM: Final = frozenset({"Initialized", "PodScheduled", "Ready"})
_STATUSES: Final = {
    "containerStatuses": "containers",
    "initContainerStatuses": "initContainers",
    "ephemeralContainerStatuses": "",
}
"""Lists of a status, and the containers of a spec that they are about; ephemeral containers never start again."""


def pod_status_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    status: Document = document.get("status") or {}
    before: Document = (old or {}).get("status") or {}
    for index, condition in enumerate(items(status, "conditions")):
        if condition.get("type", "") not in _OF_THE_SYSTEM:
            yield from qualified_name_causes(condition.get("type", ""), f"status.conditions[{index}].Type")
    node = status.get("nominatedNodeName", "")
    if node and node != before.get("nominatedNodeName", ""):
        yield from subdomain_causes(node, "status.nominatedNodeName")
    if (status.get("observedGeneration") or 0) < 0:
        yield invalid_value("status.observedGeneration", status["observedGeneration"], "must be a non-negative integer")
    if status.get("qosClass", "") != before.get("qosClass", ""):
        yield invalid_value("status.qosClass", status.get("qosClass", ""), "field is immutable")
    for name in _STATUSES:
        yield from _transition_causes(status, before, name, spec_of(document))
    claims = {claim.get("name") for claim in items(spec_of(document), "resourceClaims")}
    for index, claim in enumerate(items(status, "resourceClaimStatuses")):
        if claim.get("name") not in claims:
            text = "must match the name of an entry in `spec.resourceClaims`"
            yield invalid_value(f"status.resourceClaimStatuses[{index}].name", claim.get("name", ""), text)
    yield from _addresses_causes(status, before, "podIPs")
    host = next(map(_address, items(status, "hostIPs")), None)
    if host is not None and status.get("hostIP", "") != host:
        yield invalid_value("status.hostIPs[0].ip", host, "must be equal to `hostIP`")
    yield from _addresses_causes(status, before, "hostIPs")


def _transition_causes(status: Document, before: Document, name: str, spec: Document) -> Iterator[StatusCause]:
    """A container that ended and does not start again stays ended; so does one that the Pod does not have."""
    containers = {one["name"]: one for one in items(spec, _STATUSES[name])}
    running = {one.get("name") for one in items(status, name) if not (one.get("state") or {}).get("terminated")}
    for index, one in enumerate(items(before, name)):
        ended: Document | None = (one.get("state") or {}).get("terminated")
        if ended is None or one.get("name") not in running:
            continue
        container = containers.get(one.get("name"))
        if container is None or not _starts_again(container, spec, ended.get("exitCode") or 0):
            yield forbidden_field(f"status.{name}[{index}].state", "may not be transitioned to non-terminated state")


def _starts_again(container: Document, spec: Document, code: int) -> bool:
    for rule in items(container, "restartPolicyRules"):
        listed: Document = rule.get("exitCodes") or {}
        if (code in (listed.get("values") or ())) is (listed.get("operator") == "In"):
            return rule.get("action") == "Restart"
    policy = container.get("restartPolicy") or spec.get("restartPolicy")
    return policy == "Always" or (policy == "OnFailure" and code != 0)


def _addresses_causes(status: Document, before: Document, name: str) -> Iterator[StatusCause]:
    present = {_address(one) for one in items(before, name)}
    given = [_address(one) for one in items(status, name)]
    for index, address in enumerate(given):
        if address not in present:
            yield from address_causes(address, f"status.{name}[{index}]")
    if len(given) < 2:
        return
    unread = next((f"invalid IP[{index}]: {one}" for index, one in enumerate(given) if not is_address(one)), "")
    if unread:
        text = f"Internal error: failed to check for dual stack with error:{unread}"
        yield StatusCause("InternalError", text, f"status.{name}")
    if unread or sorted(map(family_of, given)) != ["IPv4", "IPv6"]:
        listed = [{"IP": address} for address in given]
        yield invalid_value(f"status.{name}", listed, "may specify no more than one IP for each IP family")


def _address(entry: Document) -> Any:
    return entry.get("ip", "")

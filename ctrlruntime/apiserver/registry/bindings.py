"""A Binding assigns a Pod to a Node (BindingREST in pkg/registry/core/pod/storage/storage.go)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.registry.resources import Resource
from ctrlruntime.apiserver.registry.update import precondition_failed
from ctrlruntime.apiserver.registry.writer import Writer
from ctrlruntime.errors import BadRequest, StatusCause
from ctrlruntime.field_errors import not_supported, required
from ctrlruntime.schema.trees import Document

BINDINGS: Final = Resource("", "v1", "bindings", "binding", "Binding", namespaced=True, verbs=("create",))
"""By it bodies are read, whether they come to the Pod or to the namespace."""


def binding_of(pod: Document, node: str) -> Document:
    """Return the Binding that a scheduler posts for a Pod of such metadata."""
    metadata = {key: pod[key] for key in ("name", "namespace", "uid", "resourceVersion")}
    return {"kind": "Binding", "apiVersion": "v1", "metadata": metadata, "target": {"kind": "Node", "name": node}}


def check_binding(binding: Document, name: str) -> None:
    """Raises: BadRequest of another name, 500 of a target that cannot be one."""
    if (binding["metadata"].get("name") or "") != name:
        raise BadRequest("name in URL does not match name in Binding object")
    causes = list(_target_causes(binding.get("target") or {}))
    if causes:
        raise failures.plain_internal(failures.listed(causes))  # upstream makes no Status of them
    if not name:
        raise BadRequest("Name parameter required.")


def _target_causes(target: Document) -> Iterator[StatusCause]:
    """Yield what is wrong with the target (ValidatePodBinding)."""
    if target.get("kind") and target["kind"] != "Node":
        yield not_supported("target.kind", target["kind"], ("Node", "<empty>"))
    if not target.get("name"):
        yield required("target.name")


def bind(writer: Writer, pods: Resource, binding: Document, moment: str, *, dry_run: bool = False) -> Document:
    """Assign the Pod, and return it. Raises: NotFound, Conflict of a Pod that cannot be assigned or is another one."""
    metadata: Document = binding["metadata"]
    name, node = metadata["name"], binding["target"]["name"]

    def edit(pod: Document) -> Document:
        _check_preconditions(pods, metadata, pod["metadata"], dry_run=dry_run)
        why = _refusal(pod)
        if why:
            raise failures.conflict("pods/binding", "", name, why)
        pod["spec"]["nodeName"] = node
        status: Document = pod["status"]
        status.pop("nominatedNodeName", None)
        for key in ("annotations", "labels"):
            if metadata.get(key):
                pod["metadata"][key] = {**(pod["metadata"].get(key) or {}), **metadata[key]}
        set_condition(status, {"type": "PodScheduled", "status": "True", "lastProbeTime": None}, moment)
        return pod

    return writer.replace(pods, metadata["namespace"], name, edit, dry_run=dry_run)


def _check_preconditions(pods: Resource, wanted: Document, metadata: Document, *, dry_run: bool) -> None:
    key = (metadata["namespace"], metadata["name"])
    for field, what in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        given, found = wanted.get(field), metadata.get(field, "")
        if given and given != found:
            raise precondition_failed(pods, key, given, found, what=what, dry_run=dry_run)


def _refusal(pod: Document) -> str:
    """Return why a Pod cannot be assigned; nothing when it can (setPodNodeAndMetadata)."""
    name, spec = pod["metadata"]["name"], pod["spec"]
    if pod["metadata"].get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    if spec.get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def set_condition(status: Document, condition: Document, moment: str) -> None:
    """Set a condition of a Pod in its place; its time is kept where it is as it was (UpdatePodCondition in pkg/api/v1/pod)."""
    conditions: list[Document] = status.get("conditions") or []
    status["conditions"] = conditions
    for index, present in enumerate(conditions):
        if present["type"] == condition["type"]:
            is_same = present["status"] == condition["status"]
            changed = present.get("lastTransitionTime") if is_same else moment
            conditions[index] = _timed(condition, changed)
            return
    conditions.append(_timed(condition, moment))


def _timed(condition: Document, moment: str | None) -> Document:
    order = ("type", "status", "lastProbeTime")
    first = {key: condition[key] for key in order if key in condition}
    return {**first, "lastTransitionTime": moment, **{key: condition[key] for key in condition if key not in first}}


__all__ = ["BINDINGS", "bind", "binding_of", "check_binding", "set_condition"]

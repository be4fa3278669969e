"""The parts of a Pod that have subresources of their own: its ephemeral containers, and the resources of its containers.

What such a write may change, and what it may come to (podEphemeralContainersStrategy and podResizeStrategy in
pkg/registry/core/pod/strategy.go; ValidatePodEphemeralContainersUpdate and ValidatePodResize in pkg/apis/core/validation).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ctrlruntime.apiserver.registry.internal_types import difference
from ctrlruntime.apiserver.registry.pod_amounts import COMPUTE, amounts_of, qos_class
from ctrlruntime.apiserver.registry.pod_annotations import MIRROR
from ctrlruntime.apiserver.registry.pod_validation import pod_spec_causes
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import forbidden_field, invalid_value
from ctrlruntime.schema.trees import Document, is_same
from ctrlruntime.schema.values import spec_of

PARTS: Final = frozenset({"ephemeralcontainers", "resize"})
_METADATA: Final = ("labels", "annotations", "finalizers", "ownerReferences")
"""What only a write of the whole Pod changes (ResetObjectMetaForStatus in apimachinery)."""
_LISTS: Final = ("containers", "initContainers")
_SIZES: Final = ("resources", "resizePolicy")
_SIDES: Final = ("requests", "limits")
_ONLY: Final = "only cpu and memory resources"


# What a write may change


def keep_the_rest(document: Document, old: Document, subresource: str) -> None:
    """Put back all of a Pod but the part that the subresource writes."""
    given, before = document.get("spec") or {}, spec_of(old)
    if subresource == "resize":
        if any(len(given.get(name) or ()) != len(before.get(name) or ()) for name in _LISTS):
            return  # the validation refuses it
        lists = {name: _resized(given.get(name) or [], before[name]) for name in _LISTS if before.get(name)}
        spec = _with({**before, **lists}, given, ("resources",))
    else:
        spec = _with(before, given, ("ephemeralContainers",))
    metadata: Document = document["metadata"]
    document["spec"], document["status"] = spec, old["status"]
    document["metadata"] = _with(metadata, old["metadata"], _METADATA)


def _resized(given: list[Document], before: list[Document]) -> list[Document]:
    if any(new.get("name") != one["name"] for new, one in zip(given, before, strict=True)):
        return given  # the validation refuses it
    return [_with(one, new, _SIZES) for new, one in zip(given, before, strict=True)]


def _with(tree: Document, given: Document, fields: Sequence[str]) -> Document:
    """Return a tree with some fields as they were given."""
    chosen = {**tree, **{field: given[field] for field in fields if field in given}}
    return {field: value for field, value in chosen.items() if field not in fields or field in given}


# Ephemeral containers


def ephemeral_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    """Yield why ephemeral containers cannot be so: they are added, and neither changed nor removed."""
    if MIRROR in ((old or {}).get("metadata") or {}).get("annotations", ()):
        yield forbidden_field("[]", "static pods do not support ephemeral containers")
        return
    yield from pod_spec_causes(spec_of(document), "spec", is_pod=True, pod_name=document["metadata"]["name"])
    present = {one["name"]: one for one in spec_of(document).get("ephemeralContainers") or ()}
    for one in spec_of(old).get("ephemeralContainers") or ():
        name = one["name"]
        if name not in present:
            text = f'existing ephemeral containers "{name}" may not be removed\n'
            yield forbidden_field("spec.ephemeralContainers", text)
        elif present[name] != one:
            lines = difference("core.EphemeralContainer", one, present[name])
            text = f'existing ephemeral containers "{name}" may not be changed\n{lines}'
            yield forbidden_field("spec.ephemeralContainers", text)


# Resizes


def resize_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    """Yield why a Pod cannot be resized so."""
    before = old or {}
    spec, earlier = spec_of(document), spec_of(before)
    status: Document = before.get("status") or {}
    if MIRROR in (before["metadata"].get("annotations") or {}):
        yield forbidden_field("[]", "static pods cannot be resized")
        return
    if (earlier.get("os") or {}).get("name") == "windows":
        yield forbidden_field("[]", "windows pods cannot be resized")
        return
    yield from pod_spec_causes(spec, "spec", is_pod=True)
    if (status.get("qosClass") or qos_class(earlier)) != qos_class(spec):
        told = (document.get("status") or {}).get("qosClass", "")
        yield invalid_value("spec", told, "Pod QOS Class may not change as a result of resizing")
    if not _node_resizes(status):
        yield forbidden_field("spec", "Pod running on node without support for resize")
    yield from _pod_level_causes(spec.get("resources"), earlier.get("resources"))
    if status.get("nodeAllocatableResourceClaimStatuses"):
        yield forbidden_field("spec", "pods with node allocatable resource claims cannot be resized")
    others = list(_order_causes(spec, earlier))
    yield from others
    if not others:
        yield from _container_causes(spec, earlier)


def _node_resizes(status: Document) -> bool:
    """Tell whether the kubelet reports the resources of the first container that runs; without one it is taken to."""
    for container in status.get("containerStatuses") or ():
        if (container.get("state") or {}).get("running") is not None:
            return container.get("resources") is not None
    return True


def _pod_level_causes(resources: Document | None, before: Document | None) -> Iterator[StatusCause]:
    """Yield what is wrong with a change of the Pod's own resources (validatePodLevelResourcesResize)."""
    if not any(amounts_of({"resources": each}, side) for each in (resources, before) for side in _SIDES):
        return
    if resources is None:
        yield forbidden_field("spec.resources", "pod-level resources cannot be removed")
        return
    for side in _SIDES:
        if _is_removed(resources, before, side):
            yield forbidden_field(f"spec.resources.{side}", f"pod-level resource {side} cannot be removed")
    if not is_same(_unmasked(resources), _unmasked(before)):
        yield forbidden_field("spec", f"{_ONLY} are mutable at pod-level")


def _order_causes(spec: Document, before: Document) -> Iterator[StatusCause]:
    for name in _LISTS:
        given, held = spec.get(name) or [], before.get(name) or []
        if len(given) != len(held):
            yield forbidden_field(f"spec.{name}", f"{name} may not be added or removed on resize")
            continue
        for index, (container, earlier) in enumerate(zip(given, held, strict=True)):
            if container.get("name") != earlier["name"]:
                text = f"{name} may not be renamed or reordered on resize"
                yield forbidden_field(f"spec.{name}[{index}].name", text)


def _container_causes(spec: Document, before: Document) -> Iterator[StatusCause]:
    pairs = {name: list(zip(_list(spec, name), _list(before, name), strict=True)) for name in reversed(_LISTS)}
    for name, both in pairs.items():
        for index, (container, earlier) in enumerate(both):
            for side in _SIDES:
                if _is_removed(container.get("resources"), earlier.get("resources"), side):
                    path = f"spec.{name}[{index}].resources.{side}"
                    yield forbidden_field(path, f"resource {side} cannot be removed")
    for container, earlier in pairs["containers"]:
        if not _changes_sizes_alone(container, earlier):
            yield forbidden_field("spec", f"{_ONLY} are mutable")
    for index, (container, earlier) in enumerate(pairs["initContainers"]):
        path = f"spec.initContainers[{index}]"
        if not _changes_sizes_alone(container, earlier):
            yield forbidden_field(path, f"{_ONLY} for init or sidecar containers are mutable")
        if container.get("restartPolicy") == "Always" or is_same(container, earlier):
            continue
        for rule in _list(container, "resizePolicy"):
            if rule.get("restartPolicy") == "RestartContainer":
                text = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
                yield forbidden_field(path, text)


def _list(tree: Document, name: str) -> list[Document]:
    found: list[Document] = tree.get(name) or []
    return found


def _changes_sizes_alone(container: Document, before: Document) -> bool:
    """Tell whether only amounts of computing differ; what a container claims besides may not even be there."""
    mine = (_unmasked(container.get("resources")), container.get("resizePolicy") or [])
    earlier: Document = before.get("resources") or {}
    return not earlier.get("claims") and is_same(mine, (_unmasked(earlier), before.get("resizePolicy") or []))


def _is_removed(resources: Document | None, before: Document | None, side: str) -> bool:
    return bool(set(amounts_of({"resources": before}, side)) - set(amounts_of({"resources": resources}, side)))


def _unmasked(resources: Document | None) -> list[Document]:
    """Return the amounts that a resize may not change."""
    sides = [amounts_of({"resources": resources}, side) for side in _SIDES]
    return [{name: amount for name, amount in side.items() if name not in COMPUTE} for side in sides]


__all__ = ["PARTS", "ephemeral_causes", "keep_the_rest", "resize_causes"]

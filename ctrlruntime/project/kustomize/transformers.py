"""The changes that a kustomization makes to all its objects: namespace, names, labels, annotations, replicas, images."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ctrlruntime.cel.patterns import compile_pattern
from ctrlruntime.errors import ConfigError
from ctrlruntime.project.kustomize.configuration import Configuration
from ctrlruntime.project.kustomize.fields import LABELS, TEMPLATE_LABELS, Field, change, field_of
from ctrlruntime.project.kustomize.resources import Kind, Resource, Resources, is_cluster_scoped
from ctrlruntime.project.kustomize.settings import Entry

__all__ = ["add_marks", "rename", "set_images", "set_namespace", "set_replicas"]

_IMAGE: Final = ("name", "newName", "newTag", "digest")
_TAG: Final = "(:[a-zA-Z0-9_.{}-]*)?(@sha256:[a-zA-Z0-9_.{}-]*)?$"
"""What may follow the name of an image."""
_BINDINGS: Final = frozenset({"RoleBinding", "ClusterRoleBinding"})
_KEPT_NAMES: Final = (
    Kind("apiextensions.k8s.io", kind="CustomResourceDefinition"),
    Kind("apiregistration.k8s.io", kind="APIService"),
    Kind(kind="Namespace"),
)


def set_namespace(said: Entry, configuration: Configuration, resources: Resources) -> None:
    """Put every object that lives in a namespace into that of the kustomization. Raises: ConfigError when two become one."""
    namespace = said.text("namespace")
    if not namespace:
        return
    for resource in resources:
        resource.remember()
        if not is_cluster_scoped(resource.kind):
            resource.metadata["namespace"] = namespace
        if resource.kind.kind in _BINDINGS:
            for subject in resource.tree.get("subjects") or ():
                if isinstance(subject, dict) and subject.get("name") == "default":
                    subject["namespace"] = namespace
        for place in configuration.namespaces:
            if not _is_done(place):
                change(resource, place, functools.partial(_put, namespace), str)
        resources.check_unique(resource, f"{said.where}: namespace")


def _is_done(place: Field) -> bool:
    """Tell whether kustomize changes a field by itself: a configuration for it has no effect."""
    subjects = place.path == "subjects/namespace" and place.kind.kind in _BINDINGS
    return subjects or place.path == "metadata/namespace"


def _put(new: str, value: Any) -> str:
    _scalar(value)
    return new


def _scalar(value: Any) -> str:
    """Return the text of a scalar. Raises: TypeError for a map or a list."""
    if isinstance(value, dict | list):
        raise TypeError("is a map or a list, but must be a text")
    return str(value)


def rename(said: Entry, configuration: Configuration, resources: Resources) -> None:
    """Add prefix and suffix to the names, except for those of CRDs, APIServices and namespaces."""
    prefix, suffix = said.text("namePrefix"), said.text("nameSuffix")
    if prefix:
        _rename(
            resources, configuration.prefixed, lambda name: f"{prefix}{name}", lambda each: each.prefixes.append(prefix)
        )
    if suffix:
        _rename(
            resources, configuration.suffixed, lambda name: f"{name}{suffix}", lambda each: each.suffixes.append(suffix)
        )


def _rename(
    resources: Resources, places: Sequence[Field], new: Callable[[str], str], note: Callable[[Resource], None]
) -> None:
    for resource in resources:
        if any(kept.selects(resource.kind) for kept in _KEPT_NAMES):
            continue
        for place in places:
            if place.path == "metadata/name":
                resource.remember()
                note(resource)
            change(resource, place, lambda value: new(_scalar(value)), str)


def add_marks(said: Entry, configuration: Configuration, resources: Resources) -> None:
    """Add labels and annotations. Raises: ConfigError."""
    for entry in said.entries("labels", ("pairs", "includeSelectors", "includeTemplates", "fields")):
        places = _label_places(entry, configuration)
        _mark(resources, entry.pairs("pairs"), [*places, *_fields(entry)])
    _mark(resources, said.pairs("commonLabels"), configuration.selectors)
    _mark(resources, said.pairs("commonAnnotations"), configuration.annotations)


def _label_places(entry: Entry, configuration: Configuration) -> Sequence[Field]:
    if entry.flag("includeSelectors"):
        return configuration.selectors
    return TEMPLATE_LABELS if entry.flag("includeTemplates") else LABELS


def _fields(entry: Entry) -> Iterator[Field]:
    for each in entry.entries("fields", ("path", "group", "version", "kind", "create")):
        if not each.text("path"):
            raise ConfigError(f"{each.where}: the field requires a path")
        yield field_of(each.tree)


def _mark(resources: Resources, pairs: Mapping[str, str], places: Iterable[Field]) -> None:
    if not pairs:
        return
    chosen = list(dict.fromkeys(places))
    for resource in resources:
        for place in chosen:
            change(resource, place, lambda value: {**(value or {}), **pairs}, dict[str, Any])


def set_replicas(said: Entry, configuration: Configuration, resources: Resources) -> None:
    """Set `spec.replicas` by name. Raises: ConfigError for an unknown name."""
    for entry in said.entries("replicas", ("name", "count")):
        if not [each for place in configuration.replicas for each in _scaled(resources, entry, place)]:
            kinds = ", ".join(place.kind.kind for place in configuration.replicas)
            raise ConfigError(f"{entry.where}: no object {entry.text('name')!r} has replicas ({kinds})")


def _scaled(resources: Resources, entry: Entry, place: Field) -> list[Resource]:
    """Set the number in the objects of that name, and return them."""
    name, count = entry.text("name"), entry.number("count")
    found = resources.where_ever(lambda one: one.name == name and place.kind.selects(one.kind))
    for resource in found:
        change(resource, place, lambda _: count, int)
    return found


def set_images(said: Entry, configuration: Configuration, resources: Resources) -> None:
    """Give images other names, tags and digests, wherever containers are listed. Raises: ConfigError."""
    for entry in (*said.entries("images", _IMAGE), *said.entries("imageTags", _IMAGE)):
        if not entry.text("name"):
            raise ConfigError(f"{entry.where}: the image requires a name")
        for resource in resources:
            if resource.kind.kind != "CustomResourceDefinition":
                _containers(resource.tree, entry)
            for place in configuration.images:
                change(resource, place, functools.partial(_image, entry))


def _containers(node: Any, entry: Entry) -> None:
    if isinstance(node, list):
        for item in node:
            _containers(item, entry)
    elif isinstance(node, dict):
        for name, value in node.items():
            if name in {"containers", "initContainers"} and isinstance(value, list):
                for container in value:
                    if isinstance(container, dict) and isinstance(container.get("image"), str):
                        container["image"] = _image(entry, container["image"])
            else:
                _containers(value, entry)


def _image(entry: Entry, image: Any) -> Any:
    if not isinstance(image, str) or not _is_image(image, entry):
        return image
    name, tag, digest = _divided(image)
    name = entry.text("newName", name)
    if entry.text("newTag") or entry.text("digest"):
        tag, digest = entry.text("newTag"), entry.text("digest")
    return f"{name}{tag and f':{tag}'}{digest and f'@{digest}'}"


def _is_image(image: str, entry: Entry) -> bool:
    """Tell whether an entry is for an image: its name is a regular expression to kustomize."""
    try:
        pattern = compile_pattern(f"^{entry.text('name')}{_TAG}")
    except ValueError as error:
        raise ConfigError(f"{entry.where}: name {entry.text('name')!r} is not a regular expression: {error}") from error
    return pattern.matches(image)


def _divided(image: str) -> tuple[str, str, str]:
    """Name, tag and digest of an image; a colon before the last slash is of a port."""
    rest, _, digest = image.partition("@")
    head, slash, last = rest.rpartition("/")
    name, _, tag = last.partition(":")
    return f"{head}{slash}{name}", tag, digest

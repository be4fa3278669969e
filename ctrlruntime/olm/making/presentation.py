"""The fields of an operator that a catalog shows, and those that are missing or still have the scaffold's text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from ctrlruntime.generate.options import Document
from ctrlruntime.olm.making.pinning import containers_in
from ctrlruntime.olm.trees import mapping, maps

__all__ = ["PLACEHOLDERS", "unsaid"]

PLACEHOLDERS: Final = frozenset({"Maintainer Name", "your@email.com", "Provider Name"})
"""The placeholders of the scaffold for people."""

_Spec: TypeAlias = Mapping[str, Any]


def _has(key: str) -> Callable[[_Spec], bool]:
    return lambda values: bool(values.get(key))


def _has_icon(spec: _Spec) -> bool:
    return any(icon.get("base64data") and icon.get("mediatype") for icon in maps(spec.get("icon")))


def _has_provider(spec: _Spec) -> bool:
    return bool(mapping(spec.get("provider")).get("name"))


def _has_mode(spec: _Spec) -> bool:
    return any(mode.get("supported") for mode in maps(spec.get("installModes")))


def _has_version(spec: _Spec) -> bool:
    return bool(spec.get("version")) and spec["version"] != "0.0.0"


_SPEC: Final[Mapping[str, tuple[Callable[[_Spec], bool], str]]] = {
    "displayName": (_has("displayName"), "Set the operator's name for users"),
    "description": (_has("description"), "Describe in Markdown what it does, for users who want to install it"),
    "version": (_has_version, "Set a release with --version, not 0.0.0"),
    "maintainers": (_has("maintainers"), "Add contacts for questions, each with a name and an email address"),
    "provider": (_has_provider, "Set the name of the company or person that publishes it"),
    "icon": (_has_icon, "Set a picture, in a project with `ctrl generate kustomize-manifests --icon logo.svg`"),
    "links": (_has("links"), "Add websites, each with a name and a URL"),
    "keywords": (_has("keywords"), "Add words for searches"),
    "minKubeVersion": (_has("minKubeVersion"), "Set the lowest Kubernetes version that it supports, as in 1.28.0"),
    "installModes": (_has_mode, "Support at least one mode, for the namespaces that it can watch"),
}
_ANNOTATIONS: Final = {
    "capabilities": "Set a level: Basic Install, Seamless Upgrades, Full Lifecycle, Deep Insights or Auto Pilot",
    "categories": 'Set the categories for catalogs, as in "Database, Monitoring"',
    "containerImage": "Set the operator's image",
    "description": "Write one sentence, for lists",
    "repository": "Set the URL of its source code",
    "support": "Set the name or the URL of the support",
}


def unsaid(
    csv: Document, *, origin: str, scaffold: Document | None = None, is_namespaced: bool | None = None
) -> Iterator[str]:
    """Yield a line for each field in catalogs that is missing or a placeholder, with the file to set it in.

    `scaffold` is the base of a new project: a field with the same value is a placeholder. `is_namespaced`: whether the operator has
    permissions in single namespaces only, which the install modes must match; None if unknown.
    """
    spec, annotations = mapping(csv["spec"]), mapping(csv["metadata"].get("annotations"))
    for name, (is_said, what) in _SPEC.items():
        if not is_said(spec):
            yield f"{origin}: spec.{name} is missing. {what}"
        elif _is_placeholder(name, spec[name], scaffold):
            yield f"{origin}: spec.{name} is the scaffold's placeholder. {what}"
    for name, what in _ANNOTATIONS.items():
        if not annotations.get(name):
            yield f"{origin}: metadata.annotations.{name} is missing. {what}"
    if is_namespaced is not None:
        yield from _of_modes(spec, origin, is_namespaced=is_namespaced)
    yield from _of_images(csv)


def _of_modes(spec: _Spec, origin: str, *, is_namespaced: bool) -> Iterator[str]:
    supported = {str(mode.get("type")) for mode in maps(spec.get("installModes")) if mode.get("supported")}
    if is_namespaced and supported == {"AllNamespaces"}:
        yield (
            f"{origin}: spec.installModes supports only AllNamespaces, but the project is namespaced. Support OwnNamespace, and also "
            "SingleNamespace and MultiNamespace if it watches other namespaces"
        )
    if not is_namespaced and supported and "AllNamespaces" not in supported:
        yield (
            f"{origin}: spec.installModes does not support AllNamespaces, but the project watches all namespaces. Support it, or run "
            "`ctrl edit --namespaced`"
        )


def _is_placeholder(name: str, value: Any, scaffold: Document | None) -> bool:
    if name in {"maintainers", "provider"}:
        people = maps(value) or [mapping(value)]
        return any(word in (each.get("name"), each.get("email")) for each in people for word in PLACEHOLDERS)
    return name in {"description", "links"} and scaffold is not None and value == scaffold["spec"].get(name)


def _of_images(csv: Document) -> Iterator[str]:
    images: dict[str, None] = {}
    for container in containers_in(csv):
        if container.get("image"):
            images[str(container["image"])] = None
        else:
            yield f"the container {container.get('name') or '?'} has no image. Set one in its Deployment"
    for image in images:
        name = image.rpartition("/")[2]
        if "@" not in image and (":" not in name or name.endswith(":latest")):
            yield (
                f"the content of the image {image} can change. Set a version with `ctrl edit --image`, or a digest with --use-image-digests"
            )

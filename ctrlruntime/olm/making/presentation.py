"""The fields of an operator that a catalog shows, and those that are missing or still have the scaffold's text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from ctrlruntime.generate.options import Document
from ctrlruntime.olm.making.pinning import containers_in
from ctrlruntime.olm.trees import mapping, maps

__all__ = ["PLACEHOLDERS", "unsaid"]

PLACEHOLDERS: Final = frozenset({"Maintainer Name", "your@email.com", "Provider Name"})
"""Placeholder words of the scaffold for people."""

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
    "displayName": (_has("displayName"), "the operator's name for people"),
    "description": (_has("description"), "what it does, in Markdown; people read it before they install"),
    "version": (_has_version, "0.0.0 is not a release; give one with --version"),
    "maintainers": (_has("maintainers"), "who answers questions: a name and an email address each"),
    "provider": (_has_provider, "the name of who publishes it"),
    "icon": (_has_icon, "a picture; `ctrl generate kustomize-manifests --icon logo.svg` sets it in a project"),
    "links": (_has("links"), "where there is more to read: a name and a URL each"),
    "keywords": (_has("keywords"), "the words it is found by"),
    "minKubeVersion": (_has("minKubeVersion"), "the lowest Kubernetes it works on, as in 1.28.0"),
    "installModes": (_has_mode, "which namespaces it can watch; one mode at least must be supported"),
}
_ANNOTATIONS: Final = {
    "capabilities": "its level: Basic Install, Seamless Upgrades, Full Lifecycle, Deep Insights or Auto Pilot",
    "categories": 'where a catalog lists it, as in "Database, Monitoring"',
    "containerImage": "the operator's image",
    "description": "one sentence, for lists",
    "repository": "the URL of its source",
    "support": "who supports it: a name, or a URL",
}


def unsaid(
    csv: Document, *, origin: str, scaffold: Document | None = None, is_namespaced: bool | None = None
) -> Iterator[str]:
    """Yield a line for each field that people see and that is missing or a placeholder, with the file it is to be set in.

    `scaffold` is the base as it was written first: what still says the same as there was never said by anybody. `is_namespaced`: whether
    the operator has permissions in single namespaces only, which the install modes must match; None if unknown.
    """
    spec, annotations = mapping(csv["spec"]), mapping(csv["metadata"].get("annotations"))
    for name, (is_said, what) in _SPEC.items():
        if not is_said(spec):
            yield f"{origin}: spec.{name} is missing: {what}"
        elif _is_placeholder(name, spec[name], scaffold):
            yield f"{origin}: spec.{name} is the scaffold's: {what}"
    for name, what in _ANNOTATIONS.items():
        if not annotations.get(name):
            yield f"{origin}: metadata.annotations.{name} is missing: {what}"
    if is_namespaced is not None:
        yield from _of_modes(spec, origin, is_namespaced=is_namespaced)
    yield from _of_images(csv)


def _of_modes(spec: _Spec, origin: str, *, is_namespaced: bool) -> Iterator[str]:
    supported = {str(mode.get("type")) for mode in maps(spec.get("installModes")) if mode.get("supported")}
    if is_namespaced and supported == {"AllNamespaces"}:
        yield (
            f"{origin}: spec.installModes: the project is namespaced, and only AllNamespaces is supported; support OwnNamespace, and "
            "SingleNamespace and MultiNamespace as well if it watches others"
        )
    if not is_namespaced and supported and "AllNamespaces" not in supported:
        yield (
            f"{origin}: spec.installModes: the project watches all namespaces, and AllNamespaces is not supported; support it, or "
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
            yield f"the container {container.get('name') or '?'} has no image: name one in its Deployment"
    for image in images:
        name = image.rpartition("/")[2]
        if "@" not in image and (":" not in name or name.endswith(":latest")):
            yield (
                f"the image {image} can be another one tomorrow: give it a version (`ctrl edit --image`), or a digest with --use-image-digests"
            )

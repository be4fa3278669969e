"""Bundles as the blobs of a catalog."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.options import Document
from ctrlruntime.olm.bundle import Bundle
from ctrlruntime.olm.catalog import reading
from ctrlruntime.olm.catalog.properties import properties
from ctrlruntime.olm.reference import Reference
from ctrlruntime.olm.release import SKIP_RANGE, Release, release_of

__all__ = ["render"]


def render(bundles: Sequence[Bundle], *, image: str = "", default_channel: str = "") -> list[Document]:
    """Return the blobs of a catalog: each package, its channels by name, and its bundles by version.

    `image` is the reference of the bundle images, in which {package}, {version} and {name} are replaced. The default is
    IMAGE-bundle:vVERSION with the image of the operator, and with -RELEASE at the end if the bundle has a release. Raises: ConfigError
    for bundles that cannot be in a catalog.
    """
    releases = sorted((release_of(each) for each in bundles), key=lambda each: (each.package, each.order, each.name))
    _check_names(releases)
    blobs: list[Document] = []
    for package in dict.fromkeys(each.package for each in releases):
        several = [each for each in releases if each.package == package]
        blobs.append(_package(several, default_channel))
        blobs.extend(
            _channel(package, name, several) for name in sorted({c for r in several for c in r.bundle.channels})
        )
        blobs.extend(_bundle(each, image) for each in several)
    _check_images(blobs)
    return blobs


def _check_names(releases: Sequence[Release]) -> None:
    """Raise ConfigError for two releases with the same name. They must be sorted."""
    for one, other in pairwise(releases):
        if (one.package, one.name) == (other.package, other.name):
            raise ConfigError(
                f"{one.bundle.folder} and {other.bundle.folder} are both {one.name}. Pass each release once"
            )


def _package(releases: Sequence[Release], default_channel: str) -> Document:
    newest = releases[-1]
    blob: Document = {
        "schema": reading.PACKAGE,
        "name": newest.package,
        "defaultChannel": default_channel or _default_channel(releases),
    }
    if newest.csv.spec.description:
        blob["description"] = newest.csv.spec.description
    for icon in newest.csv.spec.icon[:1]:
        if icon.base64data and icon.mediatype:
            blob["icon"] = {"base64data": icon.base64data, "mediatype": icon.mediatype}
    return blob


def _default_channel(releases: Sequence[Release]) -> str:
    for each in reversed(releases):
        if each.bundle.default_channel:
            return each.bundle.default_channel
    channels = sorted({name for each in releases for name in each.bundle.channels})
    if len(channels) > 1:
        raise ConfigError(
            f"no bundle of {releases[0].package} has a default channel. Set --default-channel to one of {', '.join(channels)}"
        )
    return channels[0]


def _channel(package: str, name: str, releases: Sequence[Release]) -> Document:
    entries = [_entry(each) for each in releases if name in each.bundle.channels]
    return {"schema": reading.CHANNEL, "package": package, "name": name, "entries": entries}


def _entry(release: Release) -> Document:
    spec = release.csv.spec
    parts = {
        "replaces": spec.replaces,
        "skips": spec.skips,
        "skipRange": release.csv.metadata.annotations.get(SKIP_RANGE, ""),
    }
    return {"name": release.name, **{key: value for key, value in parts.items() if value}}


def _bundle(release: Release, template: str) -> Document:
    image = _image(release, template)
    return {
        "schema": reading.BUNDLE,
        "package": release.package,
        "name": release.name,
        "image": image,
        "properties": properties(release.bundle, release.csv),
        "relatedImages": list(_related(release, image)),
    }


def _image(release: Release, template: str) -> str:
    if template:
        words = {"{package}": release.package, "{version}": _tag(str(release.version)), "{name}": release.name}
        for word, value in words.items():
            template = template.replace(word, value)
        return template
    operator = release.csv.metadata.annotations.get("containerImage") or next(iter(release.images), "")
    if not operator:
        raise ConfigError(
            f"cannot derive the bundle image of {release.bundle.folder}: the ClusterServiceVersion has no operator image. Use --image"
        )
    try:
        repository = Reference.of(operator).name
    except ConfigError as error:
        raise ConfigError(f"{release.bundle.folder}: {error}") from error
    return f"{repository}-bundle:v{_tag(release.label)}"


def _tag(version: str) -> str:
    """Return a version in the form of a tag."""
    return version.replace("+", "_")


def _related(release: Release, image: str) -> Iterator[Document]:
    """Yield every image that an installation needs, with its name in the ClusterServiceVersion; unlisted images have no name."""
    names = {each.image: each.name for each in release.csv.spec.related_images}
    for each in sorted({*names, *release.images, image}):
        yield {"image": each, "name": names.get(each, "")}


def _check_images(blobs: Sequence[Document]) -> None:
    seen: dict[str, Any] = {}
    for blob in blobs:
        image = blob.get("image")
        if image is None:
            continue
        if image in seen:
            raise ConfigError(
                f"{seen[image]} and {blob['name']} would both have the image {image}. Use --image with {{name}} in it"
            )
        seen[image] = blob["name"]

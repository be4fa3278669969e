"""Images pinned to digests, so that a bundle always has the tested images, and can be mirrored to clusters without a registry.

The digests come from a file: `{"quay.io/me/shop:v1": "sha256:…"}`, with a digest or a full reference as value. Without a file, the
registries are queried (`Registries`).
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ctrlruntime.errors import ConfigError, GenerateError
from ctrlruntime.generate.documents import read_text
from ctrlruntime.generate.options import Document
from ctrlruntime.olm.csv.deployments import containers_of
from ctrlruntime.olm.csv.images import RELATED_IMAGE, with_own_images
from ctrlruntime.olm.reference import DIGEST, Reference
from ctrlruntime.olm.trees import mapping, maps

__all__ = ["containers_in", "images_of", "pinned", "read_digests"]

_CONTAINER_IMAGE: Final = "containerImage"


def read_digests(path: Path) -> dict[str, str]:
    """Return the reference with a digest for each image of a file. Raises: ConfigError for another file."""
    try:
        tree = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not JSON: {error}") from error
    if not isinstance(tree, dict):
        raise ConfigError(f'{path} must be a map, such as {{"quay.io/me/shop:v1": "sha256:…"}}')
    return {image: _reference(image, value, path) for image, value in tree.items()}


def _reference(image: str, value: Any, path: Path) -> str:
    name, at, digest = value.rpartition("@") if isinstance(value, str) else ("", "", "")
    if not DIGEST.fullmatch(digest) or (at and not name):
        raise ConfigError(f"{path}: {image} must have a digest, sha256: and 64 hexadecimal digits")
    return f"{name or Reference.of(image).name}@{digest}"


def pinned(csv: Document, digests: Mapping[str, str], *, where: str = "the file") -> Document:
    """Return the ClusterServiceVersion with a digest in each image: of containers, RELATED_IMAGE_ variables and other fields.

    An image with a digest stays. The images of containers become related images, too, so that a mirror is complete.
    Raises: GenerateError with all images that have no digest.
    """
    found = copy.deepcopy(csv)
    missing: dict[str, None] = {}
    for holder, key in _places(found):
        image = holder[key]
        if "@" in image:
            continue
        reference = digests.get(image) or digests.get(f"{image}:latest")
        if reference is None:
            missing[image] = None
        else:
            holder[key] = reference
    if missing:
        raise GenerateError(
            f"{where} has no digest for {', '.join(missing)}. Add each digest, from "
            "`docker buildx imagetools inspect IMAGE` or `skopeo inspect docker://IMAGE`"
        )
    spec = mapping(found["spec"])
    related = with_own_images(_deployments(found), maps(spec.get("relatedImages")))
    if related:
        spec["relatedImages"] = related
    return found


def images_of(csv: Document) -> list[str]:
    """Return all images that `pinned` changes, and those with a digest, each as often as it appears."""
    return [holder[key] for holder, key in _places(csv)]


def _places(csv: Document) -> Iterator[tuple[Document, str]]:
    """Yield each map that names an image, and its key for it."""
    for container in containers_in(csv):
        yield from _named(container, "image")
        for variable in maps(container.get("env")):
            if str(variable.get("name", "")).startswith(RELATED_IMAGE):
                yield from _named(variable, "value")
    for related in maps(mapping(csv["spec"]).get("relatedImages")):
        yield from _named(related, "image")
    yield from _named(mapping(csv["metadata"].get("annotations")), _CONTAINER_IMAGE)


def _named(holder: Document, key: str) -> Iterator[tuple[Document, str]]:
    if isinstance(holder.get(key), str) and holder[key]:
        yield holder, key


def containers_in(csv: Mapping[str, Any]) -> Iterator[Document]:
    """Yield the containers and init containers of all Deployments."""
    for deployment in _deployments(csv):
        yield from containers_of(deployment)


def _deployments(csv: Mapping[str, Any]) -> list[Document]:
    install = mapping(mapping(csv["spec"]).get("install"))
    return maps(mapping(install.get("spec")).get("deployments"))

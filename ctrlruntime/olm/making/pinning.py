"""Images pinned to digests: what a bundle names is then what was tested, and can be mirrored to where no registry is reached.

The digests are given, in a file: `{"quay.io/me/shop:v1": "sha256:…"}`, or a full reference in the place of the digest; or the registries are
asked for them (`Registries`).
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ctrlruntime.errors import ConfigError, GenerateError
from ctrlruntime.generate.options import Document
from ctrlruntime.olm.csv.deployments import containers_of
from ctrlruntime.olm.csv.images import RELATED_IMAGE, with_own_images
from ctrlruntime.olm.reference import DIGEST, Reference
from ctrlruntime.olm.trees import mapping, maps

__all__ = ["containers_in", "images_of", "pinned", "read_digests"]

_CONTAINER_IMAGE: Final = "containerImage"


def read_digests(path: Path) -> dict[str, str]:
    """Return the reference with a digest for each image of a file. Raises: ConfigError for a file that holds something else."""
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
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
    """Return the ClusterServiceVersion with each image by its digest: of containers, of RELATED_IMAGE_ variables, and what else it names.

    An image that has a digest stays. What containers run becomes related images, too, so that these say all there is to mirror.
    Raises: GenerateError that names all images without one.
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
    """Return the images that `pinned` wants digests for, and those that have one, each as often as it is named."""
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
    """Yield the containers of all Deployments, those that run at the start too."""
    for deployment in _deployments(csv):
        yield from containers_of(deployment)


def _deployments(csv: Mapping[str, Any]) -> list[Document]:
    install = mapping(mapping(csv["spec"]).get("install"))
    return maps(mapping(install.get("spec")).get("deployments"))

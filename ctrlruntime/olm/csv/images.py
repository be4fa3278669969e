"""Related images: images that the operator starts, from variables RELATED_IMAGE_NAME, for clusters that mirror images."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ctrlruntime.errors import GenerateError
from ctrlruntime.generate.options import Document, Warn
from ctrlruntime.olm.csv.deployments import containers_of
from ctrlruntime.olm.trees import maps

__all__ = ["RELATED_IMAGE", "related_images", "with_own_images"]

RELATED_IMAGE: Final = "RELATED_IMAGE_"
"""The prefix of variables with the images that an operator starts."""


class _Named(NamedTuple):
    deployment: str
    container: str
    name: str
    image: str

    def within(self, parts: int) -> str:
        """Return the name with the first parts of its place as a prefix."""
        return "-".join((*(self.deployment, self.container)[:parts], self.name))


def related_images(
    deployments: Sequence[Mapping[str, Any]], said: Iterable[Mapping[str, Any]], warn: Warn
) -> list[Document]:
    """Return the entries: those of the base without a variable, unchanged, then those of variables, by name.

    A name with different images in two places gets the Deployment, and if needed the container, as a prefix. An image with
    several names has one entry, without a name. Raises: GenerateError for a variable without a value of its own.
    """
    found = _distinct(list(dict.fromkeys(_variables(deployments))))
    names: dict[str, list[str]] = defaultdict(list)
    for name, image in found:
        names[image].append(name)
    for image, several in names.items():
        if len(several) > 1:
            warn(
                f"the image {image} has several names ({', '.join(sorted(several))}), so its related image has no name"
            )
    made = {image: several[0] if len(several) == 1 else "" for image, several in names.items()}
    entries = [{"name": name, "image": image} for image, name in made.items()]
    kept = [
        dict(each) for each in said if each.get("image") not in made and (each.get("name") or None) not in made.values()
    ]
    return [*kept, *sorted(entries, key=lambda each: (each["name"], each["image"]))]


def with_own_images(deployments: Sequence[Mapping[str, Any]], related: Sequence[Mapping[str, Any]]) -> list[Document]:
    """Return the entries, and one more for each image that containers run and no entry has, named after the container.

    A name that also has another image gets the Deployment as a prefix.
    """
    entries = [dict(each) for each in related]
    images = {each.get("image") for each in entries}
    names = {str(each.get("name") or "") for each in entries}
    found = dict.fromkeys(
        _Named(str(deployment["name"]), str(container.get("name")), str(container.get("name")), str(container["image"]))
        for deployment in deployments
        for container in containers_of(deployment)
        if container.get("image")
    )
    several = Counter(name for name, _ in {(each.name, each.image) for each in found})
    for each in found:
        if each.image not in images:
            is_own = several[each.name] == 1 and each.name not in names
            entries.append({"name": each.name if is_own else f"{each.deployment}-{each.name}", "image": each.image})
            images.add(each.image)
    return entries


def _variables(deployments: Sequence[Mapping[str, Any]]) -> Iterator[_Named]:
    for deployment in deployments:
        for container in containers_of(deployment):
            for variable in maps(container.get("env")):
                name = str(variable.get("name") or "")
                if not name.startswith(RELATED_IMAGE):
                    continue
                where = f"Deployment/{deployment['name']}, container {container.get('name')}: {name}"
                if variable.get("valueFrom"):
                    raise GenerateError(f"cannot read the related image {where}: valueFrom is not supported. Set value")
                if not variable.get("value") or name == RELATED_IMAGE:
                    raise GenerateError(
                        f"cannot read the related image {where}: it has no value or no name. Set the image as its value"
                    )
                short = name.removeprefix(RELATED_IMAGE).lower().replace("_", "-")
                yield _Named(str(deployment["name"]), str(container.get("name")), short, str(variable["value"]))


def _distinct(found: Sequence[_Named]) -> list[tuple[str, str]]:
    """Return names and images, each once, a name for one image only."""
    images: dict[str, set[str]] = defaultdict(set)
    in_deployment: dict[tuple[str, str], set[str]] = defaultdict(set)
    for each in found:
        images[each.name].add(each.image)
        in_deployment[each.deployment, each.name].add(each.image)
    pairs: dict[tuple[str, str], None] = {}
    for each in found:
        parts = 0 if len(images[each.name]) == 1 else 1 if len(in_deployment[each.deployment, each.name]) == 1 else 2
        pairs[each.within(parts), each.image] = None
    return list(pairs)

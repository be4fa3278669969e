"""The platforms of a ClusterServiceVersion: in its labels, of its images, and in the placement of its pods.

The platforms of images come from a file, not from a registry: `{"IMAGE": ["linux/amd64", "linux/arm64"]}`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, NamedTuple

from ctrlruntime.api.core import PodSpec
from ctrlruntime.errors import ConfigError
from ctrlruntime.olm.api import ClusterServiceVersion, NamedDeployment
from ctrlruntime.olm.validation.subject import read_json

__all__ = [
    "ARCH_LABEL",
    "DEPLOYMENTS",
    "OS_LABEL",
    "Images",
    "Platform",
    "Promise",
    "deployments",
    "placed_on",
    "read_platforms",
]

ARCH_LABEL: Final = "operatorframework.io/arch."
OS_LABEL: Final = "operatorframework.io/os."
_SUPPORTED: Final = "supported"

DEPLOYMENTS: Final = "spec.install.spec.deployments"
_MANAGER: Final = "manager"
_PROXY: Final = "kube-rbac-proxy"


class Platform(NamedTuple):
    """An operating system and an architecture, by Go's names."""

    os: str
    arch: str

    def __str__(self) -> str:
        return f"{self.os}/{self.arch}"


@dataclass(frozen=True, slots=True)
class Promise:
    """The platforms of the labels: all combinations of the architectures and operating systems that are `supported`."""

    archs: frozenset[str]
    oses: frozenset[str]

    @classmethod
    def of(cls, labels: Mapping[str, str]) -> Promise:
        """Return the platforms of these labels."""
        return cls(_named(labels, ARCH_LABEL), _named(labels, OS_LABEL))

    @property
    def all_archs(self) -> frozenset[str]:
        """The architectures; the default of OLM, without a label, is amd64."""
        return self.archs or frozenset({"amd64"})

    @property
    def all_oses(self) -> frozenset[str]:
        """The operating systems; the default of OLM, without a label, is linux."""
        return self.oses or frozenset({"linux"})

    @property
    def platforms(self) -> tuple[Platform, ...]:
        return tuple(Platform(os, arch) for os in sorted(self.all_oses) for arch in sorted(self.all_archs))


def _named(labels: Mapping[str, str], prefix: str) -> frozenset[str]:
    return frozenset(
        name.removeprefix(prefix)
        for name, value in labels.items()
        if name.startswith(prefix) and value == _SUPPORTED and name != prefix
    )


def read_platforms(path: str) -> dict[str, frozenset[Platform]]:
    """Return the platforms of each image in a file. Raises: ConfigError if the file cannot be used."""
    tree = read_json(path, "image-platforms")
    if not isinstance(tree, dict):
        raise _unusable(path)
    images: dict[str, Any] = tree
    return {image: frozenset(_platforms(offered, path)) for image, offered in images.items()}


def _platforms(offered: Any, path: str) -> Iterable[Platform]:
    if not isinstance(offered, list):
        raise _unusable(path)
    written: list[Any] = offered
    for each in written:
        # A third part is the variant of an architecture, as in linux/arm64/v8, which labels do not have.
        match each.split("/") if isinstance(each, str) else []:
            case [os, arch, *_] if os and arch:
                yield Platform(os, arch)
            case _:
                raise _unusable(path)


def _unusable(path: str) -> ConfigError:
    return ConfigError(f'{path}, set in image-platforms, must be {{"IMAGE": ["linux/amd64", …], …}}')


def placed_on(pod: PodSpec, label: str) -> frozenset[str] | None:
    """Return the values of a node label that a pod requires by its node affinity or node selector; None if it accepts any."""
    if label in pod.node_selector:
        return frozenset({pod.node_selector[label]})
    affinity = pod.affinity.node_affinity if pod.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    # One of the terms must match: a term without the label matches every node.
    found = [
        next((each.values for each in term.match_expressions if each.key == label and each.operator == "In"), None)
        for term in (required.node_selector_terms if required else ())
    ]
    if not found or None in found:
        return None
    return frozenset(value for values in found if values is not None for value in values)


@dataclass(frozen=True, slots=True)
class Images:
    """Images, each with the first field that has it."""

    known: Mapping[str, frozenset[Platform]]
    """The given platforms of images; they may include images that the bundle does not have."""

    managers: dict[str, str] = field(default_factory=dict[str, str])
    others: dict[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def of(cls, csv: ClusterServiceVersion, known: Mapping[str, frozenset[Platform]]) -> Images:
        """Return the images of Deployments and `relatedImages`."""
        images = cls(known)
        for index, deployment in enumerate(deployments(csv)):
            images._add_pod(f"{DEPLOYMENTS}[{index}].spec.template.spec", deployment.spec.template.spec)
        for index, related in enumerate(csv.spec.related_images):
            images._add_other(related.image, f"spec.relatedImages[{index}].image")
        return images

    def _add_pod(self, path: str, pod: PodSpec) -> None:
        names = {each.name for each in pod.containers}
        for number, each in enumerate(pod.containers):
            # Without a container of that name, all except the old proxy are the operator's.
            is_manager = each.name == _MANAGER if _MANAGER in names else each.name != _PROXY
            place = f"{path}.containers[{number}].image"
            if is_manager and each.image:
                self.managers.setdefault(each.image, place)
            else:
                self._add_other(each.image, place)
        for number, each in enumerate(pod.init_containers):
            self._add_other(each.image, f"{path}.initContainers[{number}].image")

    def _add_other(self, image: str, place: str) -> None:
        if image:
            self.others.setdefault(image, place)

    @property
    def all(self) -> Mapping[str, str]:
        return {**self.others, **self.managers}

    @property
    def offered(self) -> Mapping[str, frozenset[Platform]]:
        """The platforms of each image, if they are known."""
        return {image: self.known[image] for image in self.all if image in self.known}

    @property
    def offered_by_managers(self) -> frozenset[Platform]:
        """The known platforms of the images of the operator itself."""
        return frozenset(chain.from_iterable(self.known.get(image, ()) for image in self.managers))


def deployments(csv: ClusterServiceVersion) -> list[NamedDeployment]:
    """Return the Deployments that OLM creates."""
    return csv.spec.install.spec.deployments if csv.spec.install.spec is not None else []

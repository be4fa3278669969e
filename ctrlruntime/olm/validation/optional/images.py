"""The images of a bundle: those of the operator itself, all others, and the known platforms of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from ctrlruntime.api.core import PodSpec
from ctrlruntime.olm.api import ClusterServiceVersion, NamedDeployment
from ctrlruntime.olm.validation.optional.platforms import Platform

__all__ = ["DEPLOYMENTS", "Images", "deployments"]

DEPLOYMENTS: Final = "spec.install.spec.deployments"

_MANAGER: Final = "manager"
_PROXY: Final = "kube-rbac-proxy"


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

"""Several architectures: the labels, the platforms of the images and the placement of the pods must agree.

It sends no request to a registry. The value `image-platforms` is a file with the platforms of images; a missing image is reported and left
out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ctrlruntime.api.core import PodSpec
from ctrlruntime.olm.api import ClusterServiceVersion
from ctrlruntime.olm.validation.platforms import (
    ARCH_LABEL,
    DEPLOYMENTS,
    OS_LABEL,
    Images,
    Promise,
    deployments,
    placed_on,
    read_platforms,
)
from ctrlruntime.olm.validation.subject import Problem, Subject, of_csv

__all__ = ["run"]

_VALUE: Final = "image-platforms"
_ARCH_OF_NODE: Final = "kubernetes.io/arch"
_OS_OF_NODE: Final = "kubernetes.io/os"


@of_csv
def run(csv: ClusterServiceVersion, subject: Subject) -> Iterator[Problem]:
    promise = Promise.of(csv.metadata.labels)
    path = subject.values.get(_VALUE, "")
    images = Images.of(csv, read_platforms(path) if path else {})
    yield from _unknown(images, path)
    yield from _promised(images, promise)
    yield from _beyond(images, promise)
    for index, deployment in enumerate(deployments(csv)):
        yield from _placement(f"{DEPLOYMENTS}[{index}]", deployment.spec.template.spec, promise)


def _unknown(images: Images, path: str) -> Iterator[Problem]:
    if not path and images.all:
        text = (
            "the platforms of the images are unknown, because no registry is queried."
            f" List them in a file, and set --optional-values {_VALUE}=FILE.json"
        )
        yield "multiarch-image-unknown", "", text
        return
    for image, place in images.all.items():
        if image not in images.offered:
            yield "multiarch-image-unknown", place, f"{image} is not in {path}. Add its platforms"


def _promised(images: Images, promise: Promise) -> Iterator[Problem]:
    for image, platforms in images.offered.items():
        lacking = [str(each) for each in promise.platforms if each not in platforms]
        if lacking:
            text = f"{image} is not available for {', '.join(lacking)}. Build it for that, or remove the label"
            yield "multiarch-platform-not-offered", images.all[image], text


def _beyond(images: Images, promise: Promise) -> Iterator[Problem]:
    """Yield platforms of the manager's image that are not in the labels: another image or a label does not have them."""
    beyond = images.offered_by_managers.difference(promise.platforms)
    everywhere = beyond.intersection(*images.offered.values())
    for image, platforms in images.offered.items():
        lacking = sorted(beyond - platforms)
        if lacking:
            text = f"{image} is not available for {', '.join(map(str, lacking))}, but the manager's image is"
            yield "multiarch-image-behind", images.all[image], f"{text}. Build it for that, too"
    yield from _labels(promise, {each.arch for each in everywhere}, {each.os for each in everywhere})


def _labels(promise: Promise, archs: set[str], oses: set[str]) -> Iterator[Problem]:
    path = "metadata.labels"
    if not promise.archs:
        names = ", ".join(f"{ARCH_LABEL}{arch}" for arch in sorted(archs | promise.all_archs))
        text = f"OLM treats the operator as supported only on amd64. Set {names} to supported"
        yield "multiarch-labels-missing", path, text
    else:
        for arch in sorted(archs - promise.archs):
            text = f"the images are available for {arch}. Set {ARCH_LABEL}{arch} to supported"
            yield "multiarch-arch-label-missing", path, text
    for os in sorted(oses - promise.all_oses):
        text = f"the images are available for {os}. Set {OS_LABEL}{os} to supported"
        yield "multiarch-os-label-missing", path, text


def _placement(path: str, pod: PodSpec, promise: Promise) -> Iterator[Problem]:
    path = f"{path}.spec.template.spec.affinity"
    if placed_on(pod, _ARCH_OF_NODE) is None:
        names = ", ".join(sorted(promise.all_archs))
        text = f"pods can be scheduled on nodes where the image does not start. Require {_ARCH_OF_NODE} to be one of {names} with nodeAffinity"
        yield "multiarch-affinity-missing", path, text
    for label, promised in ((_ARCH_OF_NODE, promise.all_archs), (_OS_OF_NODE, promise.all_oses)):
        demanded = placed_on(pod, label)
        if demanded is not None and demanded != promised:
            text = f"{label} is {', '.join(sorted(demanded))} here, but {', '.join(sorted(promised))} in the labels"
            yield "multiarch-affinity-differs", path, f"{text}. Use the same values"

"""Several architectures: the labels, the platforms of the images and the placement of the pods must agree.

It sends no request to a registry. The value `image-platforms` is a file with the platforms of images; a missing image is reported and left
out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ctrlruntime.api.core import PodSpec
from ctrlruntime.olm.bundle import BundleObject
from ctrlruntime.olm.finding import Check, Finding, Level
from ctrlruntime.olm.validation.optional.images import DEPLOYMENTS, Images, deployments
from ctrlruntime.olm.validation.optional.platforms import ARCH_LABEL, OS_LABEL, Promise, placed_on, read_platforms
from ctrlruntime.olm.validation.optional.suite import FAILED
from ctrlruntime.olm.validation.validator import Subject, Validator, about

__all__ = ["VALIDATOR"]

_NAME: Final = "multiarch"
_VALUE: Final = "image-platforms"
_ARCH_OF_NODE: Final = "kubernetes.io/arch"
_OS_OF_NODE: Final = "kubernetes.io/os"


def _check(code: str, summary: str, level: Level = Level.WARNING) -> Check:
    return Check(code=code, level=level, type=FAILED, suite=_NAME, summary=summary)


_NOT_OFFERED: Final = _check(
    "multiarch-platform-not-offered", "an image is not available for a platform of the labels", Level.ERROR
)
_UNLABELLED: Final = _check("multiarch-labels-missing", "the labels have no supported architecture")
_ARCH: Final = _check("multiarch-arch-label-missing", "the images are available for an architecture that has no label")
_OS: Final = _check("multiarch-os-label-missing", "the images are available for an operating system that has no label")
_BEHIND: Final = _check("multiarch-image-behind", "an image is not available for a platform of the manager's image")
_UNKNOWN: Final = _check("multiarch-image-unknown", "the platforms of an image are unknown")
_ANYWHERE: Final = _check("multiarch-affinity-missing", "pods of the operator can be scheduled on any architecture")
_ELSEWHERE: Final = _check(
    "multiarch-affinity-differs", "pods of the operator are scheduled on other platforms than those of the labels"
)


def _run(subject: Subject) -> Iterator[Finding]:
    if subject.csv is None:
        return
    found = subject.csv_object
    promise = Promise.of(subject.csv.metadata.labels)
    path = subject.values.get(_VALUE, "")
    images = Images.of(subject.csv, read_platforms(path) if path else {})
    yield from _unknown(found, images, path)
    yield from _promised(found, images, promise)
    yield from _beyond(found, images, promise)
    for index, deployment in enumerate(deployments(subject.csv)):
        yield from _placement(found, f"{DEPLOYMENTS}[{index}]", deployment.spec.template.spec, promise)


def _unknown(found: BundleObject | None, images: Images, path: str) -> Iterator[Finding]:
    if not path and images.all:
        text = (
            "the platforms of the images are unknown, because no registry is queried."
            f" List them in a file, and set --optional-values {_VALUE}=FILE.json"
        )
        yield about(_UNKNOWN, found, text)
        return
    for image, place in images.all.items():
        if image not in images.offered:
            yield about(_UNKNOWN, found, f"{image} is not in {path}. Add its platforms", place)


def _promised(found: BundleObject | None, images: Images, promise: Promise) -> Iterator[Finding]:
    for image, platforms in images.offered.items():
        lacking = [str(each) for each in promise.platforms if each not in platforms]
        if lacking:
            text = f"{image} is not available for {', '.join(lacking)}. Build it for that, or remove the label"
            yield about(_NOT_OFFERED, found, text, images.all[image])


def _beyond(found: BundleObject | None, images: Images, promise: Promise) -> Iterator[Finding]:
    """Yield platforms of the manager's image that are not in the labels: another image or a label does not have them."""
    beyond = images.offered_by_managers.difference(promise.platforms)
    everywhere = beyond.intersection(*images.offered.values())
    for image, platforms in images.offered.items():
        lacking = sorted(beyond - platforms)
        if lacking:
            text = f"{image} is not available for {', '.join(map(str, lacking))}, but the manager's image is"
            yield about(_BEHIND, found, f"{text}. Build it for that, too", images.all[image])
    yield from _labels(found, promise, {each.arch for each in everywhere}, {each.os for each in everywhere})


def _labels(found: BundleObject | None, promise: Promise, archs: set[str], oses: set[str]) -> Iterator[Finding]:
    path = "metadata.labels"
    if not promise.archs:
        names = ", ".join(f"{ARCH_LABEL}{arch}" for arch in sorted(archs | promise.all_archs))
        text = f"OLM treats the operator as supported only on amd64. Set {names} to supported"
        yield about(_UNLABELLED, found, text, path)
    else:
        for arch in sorted(archs - promise.archs):
            yield about(_ARCH, found, f"the images are available for {arch}. Set {ARCH_LABEL}{arch} to supported", path)
    for os in sorted(oses - promise.all_oses):
        yield about(_OS, found, f"the images are available for {os}. Set {OS_LABEL}{os} to supported", path)


def _placement(found: BundleObject | None, path: str, pod: PodSpec, promise: Promise) -> Iterator[Finding]:
    path = f"{path}.spec.template.spec.affinity"
    if placed_on(pod, _ARCH_OF_NODE) is None:
        names = ", ".join(sorted(promise.all_archs))
        text = f"pods can be scheduled on nodes where the image does not start. Require {_ARCH_OF_NODE} to be one of {names} with nodeAffinity"
        yield about(_ANYWHERE, found, text, path)
    for label, promised in ((_ARCH_OF_NODE, promise.all_archs), (_OS_OF_NODE, promise.all_oses)):
        demanded = placed_on(pod, label)
        if demanded is not None and demanded != promised:
            text = f"{label} is {', '.join(sorted(demanded))} here, but {', '.join(sorted(promised))} in the labels"
            yield about(_ELSEWHERE, found, f"{text}. Use the same values", path)


VALIDATOR: Final = Validator(
    name=_NAME,
    summary=(
        f"labels, images and node affinity agree on platforms. No registry is queried:"
        f" set the platforms of images with --optional-values {_VALUE}=FILE.json"
    ),
    checks=(_NOT_OFFERED, _UNLABELLED, _ARCH, _OS, _BEHIND, _UNKNOWN, _ANYWHERE, _ELSEWHERE),
    run=_run,
)

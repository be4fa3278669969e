"""Several architectures: what the labels promise, against what images offer and where pods may be placed.

It sends no request to a registry. The value `image-platforms` names a file with the platforms of images; a missing image is reported and
left out.
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
    "multiarch-platform-not-offered", "an image does not offer a platform that the labels promise", Level.ERROR
)
_UNLABELLED: Final = _check("multiarch-labels-missing", "no label says which architectures are supported")
_ARCH: Final = _check("multiarch-arch-label-missing", "the images offer an architecture that no label names")
_OS: Final = _check("multiarch-os-label-missing", "the images offer an operating system that no label names")
_BEHIND: Final = _check("multiarch-image-behind", "an image does not offer a platform that the manager's image offers")
_UNKNOWN: Final = _check("multiarch-image-unknown", "it is not known which platforms an image offers")
_ANYWHERE: Final = _check("multiarch-affinity-missing", "pods of the operator may be placed on any architecture")
_ELSEWHERE: Final = _check(
    "multiarch-affinity-differs", "pods of the operator are placed by other platforms than the labels"
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
            "which platforms the images are there for is not known, and no registry is asked:"
            f" say it in a file, --optional-values {_VALUE}=FILE.json"
        )
        yield about(_UNKNOWN, found, text)
        return
    for image, place in images.all.items():
        if image not in images.offered:
            yield about(_UNKNOWN, found, f"{path} does not name {image}: add its platforms", place)


def _promised(found: BundleObject | None, images: Images, promise: Promise) -> Iterator[Finding]:
    for image, platforms in images.offered.items():
        lacking = [str(each) for each in promise.platforms if each not in platforms]
        if lacking:
            text = f"{image} is not there for {', '.join(lacking)}: build it for that, or take the label away"
            yield about(_NOT_OFFERED, found, text, images.all[image])


def _beyond(found: BundleObject | None, images: Images, promise: Promise) -> Iterator[Finding]:
    """Yield what the manager's image offers and the labels do not promise: other images lack it, or a label does."""
    beyond = images.offered_by_managers.difference(promise.platforms)
    everywhere = beyond.intersection(*images.offered.values())
    for image, platforms in images.offered.items():
        lacking = sorted(beyond - platforms)
        if lacking:
            text = f"{image} is not there for {', '.join(map(str, lacking))}, which the manager's image is there for"
            yield about(_BEHIND, found, f"{text}: build it for that too", images.all[image])
    yield from _labels(found, promise, {each.arch for each in everywhere}, {each.os for each in everywhere})


def _labels(found: BundleObject | None, promise: Promise, archs: set[str], oses: set[str]) -> Iterator[Finding]:
    path = "metadata.labels"
    if not promise.archs:
        names = ", ".join(f"{ARCH_LABEL}{arch}" for arch in sorted(archs | promise.all_archs))
        text = f"OLM takes the operator to be for amd64 alone: set {names} to supported"
        yield about(_UNLABELLED, found, text, path)
    else:
        for arch in sorted(archs - promise.archs):
            yield about(_ARCH, found, f"the images are there for {arch}: set {ARCH_LABEL}{arch} to supported", path)
    for os in sorted(oses - promise.all_oses):
        yield about(_OS, found, f"the images are there for {os}: set {OS_LABEL}{os} to supported", path)


def _placement(found: BundleObject | None, path: str, pod: PodSpec, promise: Promise) -> Iterator[Finding]:
    path = f"{path}.spec.template.spec.affinity"
    if placed_on(pod, _ARCH_OF_NODE) is None:
        names = ", ".join(sorted(promise.all_archs))
        text = (
            f"demand nodes whose {_ARCH_OF_NODE} is one of {names} by nodeAffinity: elsewhere the image does not start"
        )
        yield about(_ANYWHERE, found, text, path)
    for label, promised in ((_ARCH_OF_NODE, promise.all_archs), (_OS_OF_NODE, promise.all_oses)):
        demanded = placed_on(pod, label)
        if demanded is not None and demanded != promised:
            text = f"{label} is {', '.join(sorted(demanded))} here and {', '.join(sorted(promised))} by the labels"
            yield about(_ELSEWHERE, found, f"{text}: make them one", path)


VALIDATOR: Final = Validator(
    name=_NAME,
    summary=(
        f"labels, images and node affinity agree on platforms; no registry is asked:"
        f" --optional-values {_VALUE}=FILE.json says what images offer"
    ),
    checks=(_NOT_OFFERED, _UNLABELLED, _ARCH, _OS, _BEHIND, _UNKNOWN, _ANYWHERE, _ELSEWHERE),
    run=_run,
)

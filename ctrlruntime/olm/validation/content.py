"""A bundle as a whole: its size, its accounts, its images and the name of a release."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from functools import partial
from typing import Final

from ctrlruntime.errors import ConfigError
from ctrlruntime.olm.api import ClusterServiceVersion
from ctrlruntime.olm.bundle import MANIFESTS, BundleObject
from ctrlruntime.olm.finding import Check, Finding, Level
from ctrlruntime.olm.reference import Reference
from ctrlruntime.olm.release import name_for
from ctrlruntime.olm.validation.validator import Subject, Validator, about

__all__ = ["VALIDATOR"]

_MOST: Final = 1_048_576
"""The maximum bytes of the compressed manifests: OLM unpacks a bundle into a ConfigMap of at most this size."""
_MANY: Final = _MOST * 85 // 100
_RELEASE: Final = re.compile(
    r"(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*\Z"
)
_LONGEST_RELEASE: Final = 20

_error = partial(Check, level=Level.ERROR, type="BundleNotValid")
_ACCOUNT: Final = _error(
    code="service-account-in-bundle", summary="OLM also creates a ServiceAccount that is in the bundle"
)
_TOO_LARGE: Final = _error(code="bundle-too-large", summary=f"the compressed manifests take more than {_MOST:,} bytes")
_LARGE: Final = Check(
    code="bundle-large",
    level=Level.WARNING,
    type="BundleNotValid",
    summary="the compressed manifests take more than 85 % of the maximum",
)
_RELEASE_NAME: Final = _error(
    code="release-name", summary="a ClusterServiceVersion with a release is not named PACKAGE-vVERSION-RELEASE"
)
_RELEASE_TEXT: Final = _error(
    code="release-not-valid",
    summary=f"the release is not a list of identifiers with dots between them, or has more than {_LONGEST_RELEASE} characters",
)
_NO_IMAGE: Final = _error(code="related-image-empty", summary="an entry of relatedImages has no image")
_BAD_IMAGE: Final = _error(
    code="related-image-not-valid", summary="an image of relatedImages is not an image reference"
)


def _run(subject: Subject) -> Iterator[Finding]:
    yield from _size(subject)
    csv, found = subject.csv, subject.csv_object
    if csv is None or found is None:
        return
    yield from _accounts(subject, csv)
    yield from _release(subject, csv, found)
    for index, related in enumerate(csv.spec.related_images):
        path = f"spec.relatedImages[{index}].image"
        if not related.image.strip():
            yield about(_NO_IMAGE, found, "is empty. Set the image, or remove the entry", path)
        elif not _is_reference(related.image):
            text = f"{related.image!r} is not an image reference. Write HOST/PATH@sha256:DIGEST"
            yield about(_BAD_IMAGE, found, text, path)


def _is_reference(image: str) -> bool:
    try:
        Reference.of(image)
    except ConfigError:
        return False
    return True


def _size(subject: Subject) -> Iterator[Finding]:
    root = subject.bundle.folder / MANIFESTS
    files = sorted({each.file for each in subject.bundle.objects})
    content = b"".join((root.parent / file).read_bytes() for file in files)
    size = len(gzip.compress(content, mtime=0))
    advice = "Shorten descriptions, or remove objects that the operator can create itself"
    if size > _MOST:
        text = f"takes {size:,} bytes compressed, but a ConfigMap holds at most {_MOST:,}. {advice}"
        yield Finding(check=_TOO_LARGE, text=text, file=MANIFESTS)
    elif size > _MANY:
        yield Finding(
            check=_LARGE,
            text=f"takes {size:,} bytes compressed, and the maximum is {_MOST:,}. {advice}",
            file=MANIFESTS,
        )


def _accounts(subject: Subject, csv: ClusterServiceVersion) -> Iterator[Finding]:
    strategy = csv.spec.install.spec
    if strategy is None:
        return
    made = {each.spec.template.spec.service_account_name for each in strategy.deployments}
    made |= {each.service_account_name for each in (*strategy.permissions, *strategy.cluster_permissions)}
    for each in subject.bundle.of_kind("", "ServiceAccount"):
        if each.name in made:
            text = "OLM creates this account for spec.install, and this file would replace it. Remove the file"
            yield about(_ACCOUNT, each, text)


def _release(subject: Subject, csv: ClusterServiceVersion, found: BundleObject) -> Iterator[Finding]:
    release, package = csv.spec.release, subject.bundle.package
    if not release:
        return
    if not _RELEASE.match(release):
        text = f"{release!r} is not a release. Write identifiers of letters, digits and -, with dots between them, such as 1 or 2.rc-1"
        yield about(_RELEASE_TEXT, found, text, "spec.release")
        return
    if len(release) > _LONGEST_RELEASE:
        text = f"{release!r} has {len(release)} characters, but OLM accepts at most {_LONGEST_RELEASE}. Shorten it"
        yield about(_RELEASE_TEXT, found, text, "spec.release")
    expected = name_for(package, csv.spec.version, release)
    if package and found.name != expected:
        yield about(
            _RELEASE_NAME, found, f"{found.name} has the release {release}. Rename it to {expected}", "metadata.name"
        )


VALIDATOR: Final = Validator(
    name="content",
    summary="Size, accounts, images and release",
    checks=(_TOO_LARGE, _LARGE, _ACCOUNT, _NO_IMAGE, _BAD_IMAGE, _RELEASE_NAME, _RELEASE_TEXT),
    run=_run,
)

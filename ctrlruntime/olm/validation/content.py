"""A bundle as a whole: its size, its accounts, its images and the name of a release."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from typing import Final

from ctrlruntime.errors import ConfigError
from ctrlruntime.olm.api import ClusterServiceVersion
from ctrlruntime.olm.bundle import MANIFESTS, Bundle
from ctrlruntime.olm.finding import Finding
from ctrlruntime.olm.reference import Reference
from ctrlruntime.olm.release import name_for
from ctrlruntime.olm.validation.subject import Problem, Subject, about, of_csv

__all__ = ["run"]

_MOST: Final = 1_048_576
"""The maximum bytes of the compressed manifests: OLM unpacks a bundle into a ConfigMap of at most this size."""
_MANY: Final = _MOST * 85 // 100
_RELEASE: Final = re.compile(
    r"(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*\Z"
)
_LONGEST_RELEASE: Final = 20


def run(subject: Subject) -> Iterator[Finding]:
    yield from _size(subject.bundle)
    yield from _of_csv(subject)


def _size(bundle: Bundle) -> Iterator[Finding]:
    files = sorted({each.file for each in bundle.objects})
    content = b"".join((bundle.folder / file).read_bytes() for file in files)
    size = len(gzip.compress(content, mtime=0))
    advice = "Shorten descriptions, or remove objects that the operator can create itself"
    if size > _MOST:
        text = f"takes {size:,} bytes compressed, but a ConfigMap holds at most {_MOST:,}. {advice}"
        yield about("bundle-too-large", MANIFESTS, text)
    elif size > _MANY:
        text = f"takes {size:,} bytes compressed, and the maximum is {_MOST:,}. {advice}"
        yield about("bundle-large", MANIFESTS, text)


@of_csv
def _of_csv(csv: ClusterServiceVersion, subject: Subject) -> Iterator[Problem | Finding]:
    yield from _accounts(csv, subject.bundle)
    yield from _release(csv, subject.bundle)
    for index, related in enumerate(csv.spec.related_images):
        path = f"spec.relatedImages[{index}].image"
        if not related.image.strip():
            yield "related-image-empty", path, "is empty. Set the image, or remove the entry"
        elif not _is_reference(related.image):
            text = f"{related.image!r} is not an image reference. Write HOST/PATH@sha256:DIGEST"
            yield "related-image-not-valid", path, text


def _is_reference(image: str) -> bool:
    try:
        Reference.of(image)
    except ConfigError:
        return False
    return True


def _accounts(csv: ClusterServiceVersion, bundle: Bundle) -> Iterator[Finding]:
    strategy = csv.spec.install.spec
    if strategy is None:
        return
    made = {each.spec.template.spec.service_account_name for each in strategy.deployments}
    made |= {each.service_account_name for each in (*strategy.permissions, *strategy.cluster_permissions)}
    for each in bundle.of_kind("", "ServiceAccount"):
        if each.name in made:
            text = "OLM creates this account for spec.install, and this file would replace it. Remove the file"
            yield about("service-account-in-bundle", each, text)


def _release(csv: ClusterServiceVersion, bundle: Bundle) -> Iterator[Problem]:
    release, package = csv.spec.release, bundle.package
    if not release:
        return
    if not _RELEASE.match(release):
        text = f"{release!r} is not a release. Write identifiers of letters, digits and -, with dots between them, such as 1 or 2.rc-1"
        yield "release-not-valid", "spec.release", text
        return
    if len(release) > _LONGEST_RELEASE:
        text = f"{release!r} has {len(release)} characters, but OLM accepts at most {_LONGEST_RELEASE}. Shorten it"
        yield "release-not-valid", "spec.release", text
    expected = name_for(package, csv.spec.version, release)
    if package and csv.metadata.name != expected:
        text = f"{csv.metadata.name} has the release {release}. Rename it to {expected}"
        yield "release-name", "metadata.name", text

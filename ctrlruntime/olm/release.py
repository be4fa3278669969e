"""Releases: bundles with a package, a version and channels, and the names of their ClusterServiceVersions.

A name is PACKAGE.vVERSION, or PACKAGE-vVERSION-RELEASE if `spec.release` counts the builds of a version.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ctrlruntime.errors import ConfigError, CtrlError
from ctrlruntime.olm.api import ClusterServiceVersion
from ctrlruntime.olm.bundle import CHANNELS, PACKAGE, Bundle
from ctrlruntime.olm.semver import Version, parse

__all__ = [
    "SKIP_RANGE",
    "Order",
    "Release",
    "csv_of",
    "is_release",
    "name_for",
    "order_of",
    "package_of",
    "release_of",
]

SKIP_RANGE: Final = "olm.skipRange"
"""The annotation with the range of versions that can be upgraded to a release."""

Order: TypeAlias = tuple[Version, tuple[Any, ...]]
"""A version and a release, which can be compared."""

# X.Y.Z is a scaffold's word for a version that is still to come.
_NAME: Final = re.compile(
    r"(?P<package>.+?)(?:\.v(?=[0-9]+\.[0-9]+\.[0-9]+|X\.Y\.Z)|-v(?=[0-9]+\.[0-9]+\.[0-9]+.*-)).*\Z"
)


def package_of(name: str) -> str:
    """Return the package in the name of a ClusterServiceVersion: `cool.vault` in `cool.vault.v1.0.0`; the name if it has no version."""
    found = _NAME.match(name)
    return found["package"] if found is not None else name


def name_for(package: str, version: str, release: str = "") -> str:
    """Return the name of a ClusterServiceVersion; with a release, OLM requires this name."""
    return f"{package}-v{version}-{release}" if release else f"{package}.v{version}"


def is_release(text: Any) -> bool:
    """Tell whether a value can be `spec.release`: it has the form of a pre-release, such as 1 or 2.rc-1."""
    return isinstance(text, str) and "+" not in text and parse(f"0.0.0-{text}") is not None


def order_of(version: Version, release: str = "") -> Order:
    """Return the sort key of a version: releases are ordered like pre-releases, after a version without a release."""
    counted = parse(f"0.0.0-{release}") if is_release(release) else None
    return version, counted.semver.stages if counted is not None else ()


@dataclass(frozen=True, slots=True)
class Release:
    """A bundle with everything that a catalog requires."""

    bundle: Bundle
    csv: ClusterServiceVersion
    version: Version

    @property
    def package(self) -> str:
        return self.bundle.package

    @property
    def name(self) -> str:
        return self.csv.metadata.name

    @property
    def order(self) -> Order:
        """The place among the releases of the package: by version, then by release."""
        return order_of(self.version, self.csv.spec.release)

    @property
    def label(self) -> str:
        """Version and release, as in 1.2.0-1."""
        return "-".join(part for part in (str(self.version), self.csv.spec.release) if part)

    @property
    def images(self) -> list[str]:
        """The images its Deployments run, in their order."""
        spec = self.csv.spec.install.spec
        pods = [each.spec.template.spec for each in spec.deployments] if spec else []
        containers = [one for pod in pods if pod for one in (*(pod.init_containers or ()), *pod.containers)]
        return list(dict.fromkeys(one.image for one in containers if one.image))


def csv_of(bundle: Bundle) -> ClusterServiceVersion | None:
    """Return the ClusterServiceVersion, decoded as OLM does: a field that is missing is empty.

    None without one, with more than one, or with one that cannot be decoded.
    """
    found = bundle.csv
    if found is None or not found.spec:
        return None
    try:
        return ClusterServiceVersion.from_dict(found.document)
    except (CtrlError, ValueError, TypeError):
        return None


def release_of(bundle: Bundle) -> Release:
    """Return the release of a bundle. Raises: ConfigError if its name, version, package or channels are missing."""
    where, csv = bundle.folder, csv_of(bundle)
    if csv is None:
        raise ConfigError(
            f"{where} has no readable ClusterServiceVersion. Run `ctrl bundle validate {where}` for details"
        )
    version, release = parse(csv.spec.version), csv.spec.release
    if version is None:
        raise ConfigError(f"{where}: spec.version {csv.spec.version!r} is not a semantic version such as 1.2.3")
    if release and not is_release(release):
        raise ConfigError(f"{where}: spec.release {release!r} is not a release such as 1 or 2.rc-1")
    for what, value in (("metadata.name", csv.metadata.name), (PACKAGE, bundle.package), (CHANNELS, bundle.channels)):
        if not value:
            raise ConfigError(f"{where} has no {what}. Run `ctrl bundle validate {where}` for details")
    return Release(bundle, csv, version)

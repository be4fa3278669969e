"""The identity of a bundle: its package, version and channels, from the options or else from the existing bundle."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ctrlruntime.errors import ConfigError
from ctrlruntime.olm import semver
from ctrlruntime.olm.bundle import MANIFESTS, SUFFIXES, Bundle
from ctrlruntime.olm.release import name_for
from ctrlruntime.project.names import is_subdomain

__all__ = ["BundleIdentity", "Given", "identity_of"]

_FIRST_CHANNEL: Final = "candidate"
_CHANNEL: Final = re.compile(r"[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?")
_PACKAGE: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_LONGEST: Final = 63
"""The maximum characters of the name of a ClusterServiceVersion, which is a label value, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The options; None for an option that is not set."""

    package: str | None = None
    version: str | None = None
    channels: Sequence[str] | None = None
    default_channel: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleIdentity:
    """The name of a bundle, and its place in a catalog."""

    package: str
    version: str
    channels: tuple[str, ...]
    default_channel: str
    """Empty: the default channel of the catalog stays."""


def identity_of(given: Given, existing: Bundle | None, name: str) -> BundleIdentity:
    """Return the identity of a bundle; the default of `name` is the package.

    Raises: ConfigError for a missing or invalid version, channel or package.
    """
    package = given.package or (existing.package if existing else "") or name
    channels = _channels(given, existing)
    return BundleIdentity(
        package=_named(package, "package", _PACKAGE),
        version=_fitting(_version(given, existing), package),
        channels=channels,
        default_channel=_default_channel(given, existing, channels),
    )


def _version(given: Given, existing: Bundle | None) -> str:
    if given.version is None:
        found = _version_of(existing)
        if not found:
            raise ConfigError(_why_unknown(existing))
        return found
    if len(given.version) > _LONGEST:
        raise ConfigError(
            f"the version has {len(given.version)} characters, and a name has at most {_LONGEST}. Shorten it"
        )
    if semver.parse(given.version) is not None or _has_large_number(given.version):
        return given.version
    bare = given.version.lstrip("vV")
    hint = f"it without v: {bare}" if semver.parse(bare) is not None else "three numbers, as in 0.1.0 or 1.2.0-rc.1"
    raise ConfigError(f"the version {given.version!r} is not a semantic version. Write {hint}")


def _has_large_number(version: str) -> bool:
    return any(int(part) >= 2**64 for part in re.split(r"[-.]", version) if part.isdecimal())


def _fitting(version: str, package: str) -> str:
    """Return the version. Raises: ConfigError if OLM cannot read it, or if the name of the ClusterServiceVersion cannot contain it."""
    bare, plus, build = version.partition("+")
    if plus:
        raise ConfigError(f"the version {version!r} has build metadata, but a name cannot have a +. Remove +{build}")
    if bare != bare.lower():
        raise ConfigError(
            f"the version {version!r} has upper-case letters, but a name must be lower case. Use {bare.lower()}"
        )
    if _has_large_number(bare):
        raise ConfigError(f"the version {version!r} has a number above 64 bits. Use smaller ones")
    name = name_for(package, version)
    if len(name) > _LONGEST:
        raise ConfigError(
            f"cannot name the ClusterServiceVersion {name}: {len(name)} characters, and the maximum is {_LONGEST}. "
            "Use a shorter version or package"
        )
    if not is_subdomain(name):
        raise ConfigError(
            f"cannot name the ClusterServiceVersion {name}: it is not a DNS name. "
            "Each part between dots must start and end with a letter or a digit"
        )
    return version


def _why_unknown(existing: Bundle | None) -> str:
    """Return why the version of a bundle is unknown: the file without the version, and its problem."""
    unknown = "cannot determine the version of the bundle"
    advice = "Set the version, as in --version 0.1.0"
    folder = existing.folder if existing else Path()
    csvs = existing.csvs if existing else ()
    if len(csvs) > 1:
        files = " and ".join(str(folder / each.file) for each in csvs)
        return f"{unknown}: {files} are ClusterServiceVersions. Keep one, and delete the others"
    for csv in csvs:
        return f"{folder / csv.file}: spec.version {csv.spec.get('version')!r} is not a semantic version. {advice}"
    for each in existing.unreadable if existing else ():
        if each.file.startswith(f"{MANIFESTS}/"):
            return f"{unknown}: cannot read {folder / each.file} ({each.text}). {advice}"
    for path in sorted((folder / MANIFESTS).glob("*clusterserviceversion*")) if existing else ():
        if path.suffix in SUFFIXES:
            return f"{unknown}: {path} has no ClusterServiceVersion. {advice}"
    return f"the bundle has no version yet. {advice}"


def _version_of(existing: Bundle | None) -> str:
    csv = existing.csv if existing else None
    version: Any = csv.spec.get("version") if csv else None
    return version if isinstance(version, str) and semver.parse(version) is not None else ""


def _channels(given: Given, existing: Bundle | None) -> tuple[str, ...]:
    if given.channels is None:
        return (existing.channels if existing else ()) or (_FIRST_CHANNEL,)
    if not given.channels:
        raise ConfigError("no channel is set. Use --channels, such as --channels stable,fast")
    return tuple(dict.fromkeys(_named(channel, "channel", _CHANNEL) for channel in given.channels))


def _default_channel(given: Given, existing: Bundle | None, channels: tuple[str, ...]) -> str:
    if given.default_channel is not None:
        return _named(given.default_channel, "channel", _CHANNEL)
    before = existing.default_channel if existing else ""
    # One outside of the bundle's channels was meant so; one that was among them goes with them.
    if before and existing and (before in channels or before not in existing.channels):
        return before
    return channels[0] if len(channels) == 1 else ""


def _named(name: str, what: str, rule: re.Pattern[str]) -> str:
    if not rule.fullmatch(name):
        of, such = (
            ("lower-case letters, digits", "my-shop") if rule is _PACKAGE else ("letters, digits, _", "stable-v1")
        )
        raise ConfigError(
            f"cannot use the {what} {name!r}: it must consist of {of}, . and -, and start and end with a letter or digit. Use a name "
            f"such as {such}"
        )
    return name

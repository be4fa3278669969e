"""The package manifest NAME.package.yaml, from before bundles had annotations: the channels and the version of each.

Some repositories of bundles still keep one next to the folders of their versions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.documents import read_documents
from ctrlruntime.olm.finding import Check, Finding, Level
from ctrlruntime.olm.validation.validator import Subject, Validator

__all__ = ["CHECKS", "VALIDATOR", "package_findings"]

_NAME: Final = "package-manifest"
_PATTERN: Final = "*.package.yaml"


def _check(code: str, summary: str) -> Check:
    return Check(code=code, level=Level.ERROR, type="PackageManifestNotValid", suite=_NAME, summary=summary)


_UNREADABLE: Final = _check("package-unreadable", "a package manifest is not a YAML map")
_PACKAGE: Final = _check("package-name-missing", "a package manifest has no package name")
_NO_CHANNELS: Final = _check("package-channels-empty", "a package manifest has no channels")
_CHANNEL: Final = _check("package-channel-name-missing", "a channel of a package manifest has no name")
_CURRENT: Final = _check("package-channel-csv-missing", "a channel of a package manifest has no ClusterServiceVersion")
_TWICE: Final = _check("package-channel-duplicate", "a package manifest has two channels of the same name")
_NO_DEFAULT: Final = _check(
    "package-default-missing", "a package manifest has several channels, but no default channel"
)
_DEFAULT: Final = _check(
    "package-default-unknown", "the default channel of a package manifest is not one of its channels"
)
CHECKS: Final = (_UNREADABLE, _PACKAGE, _NO_CHANNELS, _CHANNEL, _CURRENT, _TWICE, _NO_DEFAULT, _DEFAULT)


def _run(subject: Subject) -> Iterator[Finding]:
    folder = subject.bundle.folder.resolve()
    for below, root in (("", folder), ("../", folder.parent)):
        for path in sorted(root.glob(_PATTERN)):
            yield from _of_file(path, f"{below}{path.name}")


def _of_file(path: Path, name: str) -> Iterator[Finding]:
    try:
        trees = list(read_documents(path.read_text(encoding="utf-8"), name))
    except (OSError, UnicodeDecodeError) as error:
        reason = str(ConfigError.unreadable(name, error)).removeprefix(f"cannot read {name}: ")
        yield Finding(check=_UNREADABLE, text=f"cannot be read: {reason}", file=name)
        return
    except ConfigError as error:
        yield Finding(check=_UNREADABLE, text=f"cannot be read: {error}", file=name)
        return
    for tree in trees:
        if isinstance(tree, dict):
            yield from package_findings(cast("Mapping[str, Any]", tree), name)
        else:
            yield Finding(
                check=_UNREADABLE, text="is not a map. Write packageName, channels and defaultChannel", file=name
            )


def package_findings(tree: Mapping[str, Any], file: str = "") -> Iterator[Finding]:
    """Yield the problems of a package manifest."""
    if not tree.get("packageName"):
        yield Finding(check=_PACKAGE, text="is missing. Set the name of the package", file=file, path="packageName")
    channels = _channels(tree.get("channels"))
    if not channels:
        yield Finding(
            check=_NO_CHANNELS,
            text="is missing or empty. Add a channel with name and currentCSV",
            file=file,
            path="channels",
        )
        return
    for index, channel in enumerate(channels):
        for key, check in (("name", _CHANNEL), ("currentCSV", _CURRENT)):
            if not channel.get(key):
                yield Finding(check=check, text="is missing. Set it", file=file, path=f"channels[{index}].{key}")
    yield from _names(channels, tree.get("defaultChannel"), file)


def _names(channels: list[Mapping[str, Any]], default: Any, file: str) -> Iterator[Finding]:
    names = Counter(str(channel["name"]) for channel in channels if channel.get("name"))
    for name, times in names.items():
        if times > 1:
            text = f"the channel {name} is listed {times} times. Keep one"
            yield Finding(check=_TWICE, text=text, file=file, path="channels")
    if not default and len(channels) > 1:
        text = "is missing. Set the channel for users who do not choose one"
        yield Finding(check=_NO_DEFAULT, text=text, file=file, path="defaultChannel")
    if default and default not in names:
        text = f"{default} is not a channel of the package. Use one of {', '.join(names)}"
        yield Finding(check=_DEFAULT, text=text, file=file, path="defaultChannel")


def _channels(value: Any) -> list[Mapping[str, Any]]:
    """Return the channels; a value that is not a map becomes a channel without a name."""
    if not isinstance(value, list):
        return []
    written: list[Any] = value
    return [each if isinstance(each, dict) else dict[str, Any]() for each in written]


VALIDATOR: Final = Validator(
    name=_NAME,
    summary=f"a package manifest of the old format ({_PATTERN} in the bundle's folder or the one above) has valid channels",
    checks=CHECKS,
    run=_run,
)

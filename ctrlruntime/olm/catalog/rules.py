"""What is looked at in a catalog, by codes that stay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ctrlruntime.olm.finding import Check, Level

__all__ = ["CHECKS"]

_ERRORS: Final = {
    "blob-without-schema": "a document has no schema",
    "blob-without-name": "a blob has no name",
    "blob-duplicate": "two blobs of one schema and package have one name",
    "package-missing": "a blob belongs to a package that has no blob",
    "package-without-channels": "a package has no channel",
    "default-channel-missing": "a package names no default channel",
    "default-channel-unknown": "the default channel of a package does not exist",
    "channel-empty": "a channel has no entries",
    "channel-without-head": "each entry of a channel is replaced or skipped by another",
    "channel-several-heads": "several entries of a channel are replaced by none",
    "channel-cycle": "entries of a channel replace each other in a circle",
    "channel-stranded": "entries of a channel are not reached from its head, and not skipped",
    "entry-invalid": "an entry of a channel has no name, or skips what has none",
    "entry-duplicate": "a channel has an entry twice",
    "entry-without-bundle": "an entry of a channel has no bundle",
    "bundle-without-channel": "a bundle is in no channel",
    "bundle-without-image": "a bundle has neither an image nor objects of its own",
    "bundle-package-property": "a bundle does not have one property olm.package, of its own package",
    "property-invalid": "a property has no type, or no value",
    "version-invalid": "the version of a bundle is not a semantic version, or its release is not a release",
    "release-name": "a bundle with a release is not named PACKAGE-vVERSION-RELEASE",
    "version-duplicate": "two bundles of a package have one version and release",
    "range-invalid": "a range of versions cannot be read",
    "deprecation-invalid": "a deprecation has no message, or is of what is not in the package",
}
_WARNINGS: Final = {
    "schema-unknown": "a blob has a schema that OLM does not read",
    "replaces-newer": "an entry replaces a bundle of a higher version",
    "csv-metadata-missing": "a bundle has nothing that a console could show of it",
}

CHECKS: Final[Mapping[str, Check]] = {
    code: Check(code=code, level=level, type="InvalidCatalog", summary=summary)
    for level, rules in ((Level.ERROR, _ERRORS), (Level.WARNING, _WARNINGS))
    for code, summary in rules.items()
}
"""Every check of a catalog by its code."""

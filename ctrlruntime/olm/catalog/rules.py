"""The checks of a catalog, with stable codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ctrlruntime.olm.finding import Check, Level

__all__ = ["CHECKS"]

_ERRORS: Final = {
    "blob-without-schema": "a document has no schema",
    "blob-without-name": "a blob has no name",
    "blob-duplicate": "two blobs of the same schema and package have the same name",
    "package-missing": "a blob belongs to a package that has no blob",
    "package-without-channels": "a package has no channel",
    "default-channel-missing": "a package has no default channel",
    "default-channel-unknown": "the default channel of a package does not exist",
    "channel-empty": "a channel has no entries",
    "channel-without-head": "each entry of a channel is replaced or skipped by another",
    "channel-several-heads": "a channel has several entries that no entry replaces or skips",
    "channel-cycle": "entries of a channel replace each other in a cycle",
    "channel-stranded": "entries of a channel are neither reached from its head nor skipped",
    "entry-invalid": "an entry of a channel has no name, or a field of a wrong type",
    "entry-duplicate": "a channel has an entry twice",
    "entry-without-bundle": "an entry of a channel has no bundle",
    "bundle-without-channel": "a bundle is in no channel",
    "bundle-without-image": "a bundle has neither an image nor objects of its own",
    "bundle-package-property": "a bundle does not have exactly one property olm.package with its own package",
    "property-invalid": "a property has no type, or no value",
    "version-invalid": "the version of a bundle is not a semantic version, or its release is not a release",
    "release-name": "a bundle with a release is not named PACKAGE-vVERSION-RELEASE",
    "version-duplicate": "two bundles of a package have the same version and release",
    "range-invalid": "a range of versions cannot be read",
    "deprecation-invalid": "a deprecation has no message, or its reference is not in the package",
}
_WARNINGS: Final = {
    "schema-unknown": "a blob has a schema that OLM does not read",
    "replaces-newer": "an entry replaces a bundle of a higher version",
    "csv-metadata-missing": "a bundle has no fields for consoles",
}

CHECKS: Final[Mapping[str, Check]] = {
    code: Check(code=code, level=level, type="InvalidCatalog", summary=summary)
    for level, rules in ((Level.ERROR, _ERRORS), (Level.WARNING, _WARNINGS))
    for code, summary in rules.items()
}
"""Every check of a catalog by its code."""

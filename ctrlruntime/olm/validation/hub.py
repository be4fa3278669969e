"""What catalogs with pages show of an operator: provider, maintainers, links, version, icon, capabilities and categories.

A catalog with its own categories lists them in a JSON file, `{"categories": ["…"]}`. The variable OPERATOR_BUNDLE_CATEGORIES has its path.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator, Sequence
from email.errors import MessageError
from email.headerregistry import Address
from typing import Final
from urllib.parse import urlsplit

from ctrlruntime.errors import ConfigError
from ctrlruntime.olm import semver
from ctrlruntime.olm.api import AppLink, ClusterServiceVersion, Icon, Maintainer
from ctrlruntime.olm.capabilities import LEVELS
from ctrlruntime.olm.finding import Finding
from ctrlruntime.olm.picture import MEDIA_TYPES, is_picture
from ctrlruntime.olm.validation import removed
from ctrlruntime.olm.validation.subject import Problem, Subject, of_csv, read_json
from ctrlruntime.spelling import did_you_mean

__all__ = ["CATEGORIES", "VARIABLE", "capabilities", "categories", "run"]

VARIABLE: Final = "OPERATOR_BUNDLE_CATEGORIES"

CATEGORIES: Final = (
    "AI/Machine Learning",
    "Application Runtime",
    "Big Data",
    "Cloud Provider",
    "Database",
    "Developer Tools",
    "Integration & Delivery",
    "Logging & Tracing",
    "Modernization & Migration",
    "Monitoring",
    "Networking",
    "Observability",
    "OpenShift Optional",
    "Security",
    "Storage",
    "Streaming & Messaging",
)

_ZERO: Final = semver.parse("0.0.0")


@of_csv
def run(csv: ClusterServiceVersion, subject: Subject) -> Iterator[Problem | Finding]:
    if not csv.spec.provider.name:
        text = "is missing. Set the name of the company or person that offers the operator"
        yield "hub-provider-missing", "spec.provider.name", text
    yield from _maintainers(csv.spec.maintainers)
    yield from _links(csv.spec.links)
    # The checks that always run report an invalid version.
    if not csv.spec.version or semver.parse(csv.spec.version) == _ZERO:
        text = "is missing or 0.0.0. Set it with `ctrl bundle --version 0.1.0`"
        yield "hub-version-zero", "spec.version", text
    yield from _icons(csv.spec.icon)
    yield from removed.run(subject)


def _maintainers(maintainers: Sequence[Maintainer]) -> Iterator[Problem]:
    for index, each in enumerate(maintainers):
        path = f"spec.maintainers[{index}]"
        if not each.name or not each.email:
            lacking = "a name" if each.email else "an email" if each.name else "a name and an email"
            yield "hub-maintainer-incomplete", path, f"is incomplete. Add {lacking}"
        if each.email and not _is_address(each.email):
            text = f"{each.email!r} is not an email address. Write it like kitchen@example.com"
            yield "hub-maintainer-email", f"{path}.email", text


def _is_address(text: str) -> bool:
    # The parser indexes past the end of an address that stops at its @.
    try:
        return bool(Address(addr_spec=text).domain)
    except (MessageError, ValueError, IndexError):
        return False


def _links(links: Sequence[AppLink]) -> Iterator[Problem]:
    for index, each in enumerate(links):
        path = f"spec.links[{index}]"
        if not each.name or not each.url:
            lacking = "a name" if each.url else "a url" if each.name else "a name and a url"
            yield "hub-link-incomplete", path, f"is incomplete. Add {lacking}"
        if each.url and not _is_url(each.url):
            text = f"{each.url!r} is not a URL. Write it in full, with https://"
            yield "hub-link-url", f"{path}.url", text


def _is_url(text: str) -> bool:
    """Tell whether a text is a full URL: it has a scheme, and http and https have a host."""
    if any(letter.isspace() or not letter.isprintable() for letter in text):
        return False
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    if parts.scheme in {"http", "https"}:
        return bool(parts.hostname)
    return bool(parts.scheme and (parts.netloc or parts.path))


def _icons(icons: Sequence[Icon]) -> Iterator[Problem]:
    if not icons:
        text = "is missing, but consoles show it. Set it with `ctrl generate kustomize-manifests --icon logo.svg`"
        yield "hub-icon-missing", "spec.icon", text
    if len(icons) > 1:
        yield "hub-icon-several", "spec.icon", f"has {len(icons)} icons, but only one is shown. Keep one"
    for index, icon in enumerate(icons):
        yield from _icon(icon, f"spec.icon[{index}]")


def _icon(icon: Icon, path: str) -> Iterator[Problem]:
    written = {"base64data": icon.base64data, "mediatype": icon.mediatype}
    if not all(written.values()):
        lacking = " and ".join(name for name, value in written.items() if not value)
        yield "hub-icon-incomplete", path, f"is incomplete. Set {lacking}, or remove the icon"
        return
    is_known = icon.mediatype in MEDIA_TYPES
    if not is_known:
        text = f"unsupported media type {icon.mediatype}{did_you_mean(icon.mediatype, MEDIA_TYPES)}"
        yield "hub-icon-media-type", f"{path}.mediatype", text
    try:
        data = base64.b64decode("".join(icon.base64data.split()), validate=True)
    except ValueError:
        text = "is not base64. Encode the picture with `base64 -w 0 FILE`"
        yield "hub-icon-not-base64", f"{path}.base64data", text
        return
    if is_known and not is_picture(data, icon.mediatype):
        text = f"the data is not {icon.mediatype}. Set the media type of the data"
        yield "hub-icon-content", f"{path}.base64data", text


@of_csv
def capabilities(csv: ClusterServiceVersion, _subject: Subject) -> Iterator[Problem]:
    level = csv.metadata.annotations.get("capabilities")
    if level is not None and level not in LEVELS:
        text = f"{level!r} is not a capability level{did_you_mean(level, LEVELS)}"
        yield "capability-level", "metadata.annotations.capabilities", text


@of_csv
def categories(csv: ClusterServiceVersion, _subject: Subject) -> Iterator[Problem]:
    """Yield the unknown categories. Raises: ConfigError if the file of categories cannot be used."""
    annotation = csv.metadata.annotations.get("categories")
    if annotation is None:
        return
    known = _known_categories(os.environ.get(VARIABLE, ""))
    for name in (part.strip() for part in annotation.split(",")):
        if name not in known:
            text = f"{name!r} is not a category{did_you_mean(name, known)}"
            yield "category-unknown", "metadata.annotations.categories", text


def _known_categories(path: str) -> tuple[str, ...]:
    if not path:
        return CATEGORIES
    match read_json(path, VARIABLE):
        case {"categories": [*names]} if all(isinstance(name, str) for name in names):
            return tuple(map(str, names))
        case _:
            raise ConfigError(f'{path}, set in {VARIABLE}, must be {{"categories": ["NAME", …]}}')

"""The fields of an operator that OperatorHub requires: provider, maintainers, links, version and icon.

It also requires APIs that are still served, and `minKubeVersion`, which the checks that always run look at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from email.errors import MessageError
from email.headerregistry import Address
from typing import Final
from urllib.parse import urlsplit

from ctrlruntime.olm import semver
from ctrlruntime.olm.api import AppLink, Maintainer
from ctrlruntime.olm.bundle import BundleObject
from ctrlruntime.olm.finding import Check, Finding, Level
from ctrlruntime.olm.validation.optional import icon, removed
from ctrlruntime.olm.validation.optional.suite import INVALID_CSV, OPERATOR_FRAMEWORK
from ctrlruntime.olm.validation.validator import Subject, Validator, about

__all__ = ["VALIDATOR"]

_NAME: Final = "operatorhubv2"
_ZERO: Final = semver.parse("0.0.0")


def _check(code: str, summary: str) -> Check:
    return Check(code=code, level=Level.ERROR, type=INVALID_CSV, suite=_NAME, summary=summary)


_PROVIDER: Final = _check("hub-provider-missing", "spec.provider has no name")
_MAINTAINER: Final = _check("hub-maintainer-incomplete", "a maintainer has no name or no email address")
_EMAIL: Final = _check("hub-maintainer-email", "the email of a maintainer is not an email address")
_LINK: Final = _check("hub-link-incomplete", "a link has no name or no URL")
_URL: Final = _check("hub-link-url", "the URL of a link is not a URL")
_VERSION: Final = _check("hub-version-zero", "spec.version is missing, or 0.0.0")


def _run(subject: Subject) -> Iterator[Finding]:
    csv, found = subject.csv, subject.csv_object
    if csv is None:
        return
    if not csv.spec.provider.name:
        yield about(
            _PROVIDER,
            found,
            "is missing. Set the name of the company or person that offers the operator",
            "spec.provider.name",
        )
    yield from _maintainers(csv.spec.maintainers, found)
    yield from _links(csv.spec.links, found)
    # The checks that always run report an invalid version.
    if not csv.spec.version or semver.parse(csv.spec.version) == _ZERO:
        text = "is missing or 0.0.0. Set it with `ctrl bundle --version 0.1.0`"
        yield about(_VERSION, found, text, "spec.version")
    yield from icon.run(subject)
    yield from removed.run(subject)


def _maintainers(maintainers: Sequence[Maintainer], found: BundleObject | None) -> Iterator[Finding]:
    for index, each in enumerate(maintainers):
        path = f"spec.maintainers[{index}]"
        if not each.name or not each.email:
            lacking = "a name" if each.email else "an email" if each.name else "a name and an email"
            yield about(_MAINTAINER, found, f"is incomplete. Add {lacking}", path)
        if each.email and not _is_address(each.email):
            text = f"{each.email!r} is not an email address. Write it like kitchen@example.com"
            yield about(_EMAIL, found, text, f"{path}.email")


def _is_address(text: str) -> bool:
    # The parser indexes past the end of an address that stops at its @.
    try:
        return bool(Address(addr_spec=text).domain)
    except (MessageError, ValueError, IndexError):
        return False


def _links(links: Sequence[AppLink], found: BundleObject | None) -> Iterator[Finding]:
    for index, each in enumerate(links):
        path = f"spec.links[{index}]"
        if not each.name or not each.url:
            lacking = "a name" if each.url else "a url" if each.name else "a name and a url"
            yield about(_LINK, found, f"is incomplete. Add {lacking}", path)
        if each.url and not _is_url(each.url):
            text = f"{each.url!r} is not a URL. Write it in full, with https://"
            yield about(_URL, found, text, f"{path}.url")


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


VALIDATOR: Final = Validator(
    name=_NAME,
    suite=OPERATOR_FRAMEWORK,
    summary="the fields that OperatorHub shows are set, and no API that Kubernetes has removed is used",
    checks=(_PROVIDER, _MAINTAINER, _EMAIL, _LINK, _URL, _VERSION, *icon.CHECKS, *removed.CHECKS),
    run=_run,
)

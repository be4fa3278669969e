"""The icon of an operator: one picture in base64, of a type that browsers show."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Final

from ctrlruntime.olm.api import Icon
from ctrlruntime.olm.bundle import BundleObject
from ctrlruntime.olm.finding import Check, Finding, Level
from ctrlruntime.olm.picture import MEDIA_TYPES, is_picture
from ctrlruntime.olm.validation.optional.suite import INVALID_CSV
from ctrlruntime.olm.validation.validator import Subject, about
from ctrlruntime.spelling import did_you_mean

__all__ = ["CHECKS", "run"]


def _check(code: str, summary: str, level: Level = Level.ERROR) -> Check:
    return Check(code=code, level=level, type=INVALID_CSV, suite="operatorhubv2", summary=summary)


_MISSING: Final = _check("hub-icon-missing", "the ClusterServiceVersion has no icon", Level.WARNING)
_SEVERAL: Final = _check("hub-icon-several", "the ClusterServiceVersion has more than one icon")
_INCOMPLETE: Final = _check("hub-icon-incomplete", "the icon has no data or no media type")
_MEDIA_TYPE: Final = _check(
    "hub-icon-media-type", "the icon's media type is not one of image/gif, image/jpeg, image/png and image/svg+xml"
)
_NOT_BASE64: Final = _check("hub-icon-not-base64", "the icon's data is not base64")
_CONTENT: Final = _check("hub-icon-content", "the icon's data is not a picture of its media type", Level.WARNING)
CHECKS: Final = (_MISSING, _SEVERAL, _INCOMPLETE, _MEDIA_TYPE, _NOT_BASE64, _CONTENT)


def run(subject: Subject) -> Iterator[Finding]:
    """Yield the problems of the icon."""
    if subject.csv is None:
        return
    icons, found = subject.csv.spec.icon, subject.csv_object
    if not icons:
        text = "is missing, but consoles show it. Set it with `ctrl generate kustomize-manifests --icon logo.svg`"
        yield about(_MISSING, found, text, "spec.icon")
    if len(icons) > 1:
        text = f"has {len(icons)} icons, but only one is shown. Keep one"
        yield about(_SEVERAL, found, text, "spec.icon")
    for index, icon in enumerate(icons):
        yield from _of_one(icon, found, f"spec.icon[{index}]")


def _of_one(icon: Icon, found: BundleObject | None, path: str) -> Iterator[Finding]:
    written = {"base64data": icon.base64data, "mediatype": icon.mediatype}
    if not all(written.values()):
        lacking = " and ".join(name for name, value in written.items() if not value)
        yield about(_INCOMPLETE, found, f"is incomplete. Set {lacking}, or remove the icon", path)
        return
    if icon.mediatype not in MEDIA_TYPES:
        text = f"unsupported media type {icon.mediatype}{did_you_mean(icon.mediatype, MEDIA_TYPES)}"
        yield about(_MEDIA_TYPE, found, text, f"{path}.mediatype")
    try:
        data = base64.b64decode("".join(icon.base64data.split()), validate=True)
    except ValueError:
        text = "is not base64. Encode the picture with `base64 -w 0 FILE`"
        yield about(_NOT_BASE64, found, text, f"{path}.base64data")
        return
    if icon.mediatype in MEDIA_TYPES and not is_picture(data, icon.mediatype):
        text = f"the data is not {icon.mediatype}. Set the media type of the data"
        yield about(_CONTENT, found, text, f"{path}.base64data")

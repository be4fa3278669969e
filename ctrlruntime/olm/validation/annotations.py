"""The annotations of a bundle: its package and channels, and where its parts are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from ctrlruntime.olm.bundle import (
    ANNOTATIONS_FILE,
    CHANNELS,
    DEFAULT_CHANNEL,
    MANIFESTS,
    MEDIA_TYPE,
    METADATA,
    PACKAGE,
    Bundle,
)
from ctrlruntime.olm.finding import Check, Finding, Level
from ctrlruntime.olm.validation.validator import Subject, Validator

__all__ = ["VALIDATOR"]

_REGISTRY: Final = "registry+v1"
_BUNDLE: Final = MEDIA_TYPE.removesuffix("mediatype.v1")
_FOLDERS: Final = {f"{_BUNDLE}manifests.v1": f"{MANIFESTS}/", f"{_BUNDLE}metadata.v1": f"{METADATA}/"}
_EXAMPLES: Final = {
    MEDIA_TYPE: _REGISTRY,
    **_FOLDERS,
    PACKAGE: "the operator's name",
    CHANNELS: "the channels, such as stable",
}
"""The required annotations, and their values."""

_error = partial(Check, level=Level.ERROR, type="BundleNotValid")
_NO_FILE: Final = _error(code="annotations-missing", summary="no file of `metadata` has annotations")
_MISSING: Final = _error(code="annotation-missing", summary="the bundle lacks an annotation that catalogs need")
_NO_TEXT: Final = _error(
    code="annotation-no-text", summary="an annotation of the bundle is not a string, such as 1.0 without quotes"
)
_TYPE: Final = _error(code="annotation-media-type", summary="the media type of the bundle is not registry+v1")
_PLACE: Final = _error(
    code="annotation-folder", summary="an annotation has a folder other than `manifests/` or `metadata/`"
)
_NO_PACKAGE: Final = _error(code="package-empty", summary="the name of the package is empty")
_NO_CHANNEL: Final = _error(code="channels-empty", summary="the bundle is in no channel")
_NO_DEFAULT: Final = _error(code="default-channel-empty", summary="the default channel is set, but empty")
_UNKNOWN: Final = Check(
    code="default-channel-unknown",
    level=Level.WARNING,
    type="BundleNotValid",
    summary="the default channel is not one of the bundle's channels",
)


def _run(subject: Subject) -> Iterator[Finding]:
    bundle = subject.bundle
    if bundle.annotations is None:
        # Other checks report a missing folder or file.
        if (bundle.folder / METADATA).is_dir() and not any(
            each.file.startswith(f"{METADATA}/") for each in bundle.unreadable
        ):
            text = f"has no file with `annotations:`. Run `ctrl bundle`, which writes {ANNOTATIONS_FILE}"
            yield Finding(check=_NO_FILE, text=text, file=METADATA)
        return
    for check, name, text in _problems(bundle, bundle.annotations):
        yield Finding(check=check, text=text, file=bundle.annotations_file, path=f"annotations.{name}")


def _problems(bundle: Bundle, annotations: Mapping[str, Any]) -> Iterator[tuple[Check, str, str]]:
    """Yield check, annotation and text."""
    for name, example in _EXAMPLES.items():
        if name not in annotations:
            yield _MISSING, name, f"is missing. Set it to {example}"
    texts = {name: value for name, value in annotations.items() if isinstance(value, str)}
    for name in annotations.keys() - texts.keys():
        yield (
            _NO_TEXT,
            name,
            f"{annotations[name]} is not a string, so OLM cannot read the file. Write the value in quotes",
        )
    if texts.get(MEDIA_TYPE, _REGISTRY) != _REGISTRY:
        yield _TYPE, MEDIA_TYPE, f"{texts[MEDIA_TYPE]!r} is not the format of this bundle. Write {_REGISTRY}"
    for name, value in _FOLDERS.items():
        if texts.get(name, value).rstrip("/") != value.rstrip("/"):
            yield _PLACE, name, f"{texts[name]!r} is not the folder of the files. Write {value}"
    if texts.get(PACKAGE, "-").strip() == "":
        yield _NO_PACKAGE, PACKAGE, "is empty. Set the name of the package in catalogs"
    if CHANNELS in texts and not bundle.channels:
        yield _NO_CHANNEL, CHANNELS, "is empty. Set at least one channel, as in `ctrl bundle --channels stable`"
    yield from _default(bundle, texts)


def _default(bundle: Bundle, texts: Mapping[str, str]) -> Iterator[tuple[Check, str, str]]:
    name = texts.get(DEFAULT_CHANNEL)
    if name is None:
        return
    if not name.strip():
        yield _NO_DEFAULT, DEFAULT_CHANNEL, "is empty. Set a channel, or remove the annotation"
    elif bundle.channels and name not in bundle.channels:
        channels = ", ".join(bundle.channels)
        yield (
            _UNKNOWN,
            DEFAULT_CHANNEL,
            f"{name!r} is not one of the channels ({channels}). Add it, unless another bundle has it",
        )


VALIDATOR: Final = Validator(
    name="annotations",
    summary="Package, channels and media type",
    checks=(_NO_FILE, _MISSING, _NO_TEXT, _TYPE, _PLACE, _NO_PACKAGE, _NO_CHANNEL, _NO_DEFAULT, _UNKNOWN),
    run=_run,
)

"""The files of a bundle: its folders, its manifests, and its annotations, which have the package and the channels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ctrlruntime.olm.bundle import (
    ANNOTATIONS_FILE,
    CHANNELS,
    DEFAULT_CHANNEL,
    MANIFESTS,
    MEDIA_TYPE,
    METADATA,
    PACKAGE,
    SUFFIXES,
    Bundle,
)
from ctrlruntime.olm.finding import Finding
from ctrlruntime.olm.validation.subject import Problem, Subject, about

__all__ = ["layout", "metadata"]

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


def layout(subject: Subject) -> Iterator[Finding]:
    bundle = subject.bundle
    for name, code in ((MANIFESTS, "manifests-missing"), (METADATA, "metadata-missing")):
        if not (bundle.folder / name).is_dir():
            yield about(code, None, f"{bundle.folder} has no folder {name}. Create it with `ctrl bundle`")
    yield from _entries(bundle)
    for unreadable in bundle.unreadable:
        code = "manifest-unreadable" if unreadable.file.startswith(f"{MANIFESTS}/") else "metadata-unreadable"
        yield about(code, unreadable.file, unreadable.text)
    for file, number in Counter(each.file for each in bundle.objects).items():
        if number > 1:
            text = f"has {number} documents, but OLM reads only the first. Write each object to its own file"
            yield about("manifest-several-documents", file, text)


def _entries(bundle: Bundle) -> Iterator[Finding]:
    root = bundle.folder / MANIFESTS
    for path in sorted(root.iterdir()) if root.is_dir() else ():
        file = f"{MANIFESTS}/{path.name}"
        if path.is_dir():
            yield about("manifests-subfolder", file, f"is a folder. Move its files to {MANIFESTS}")
        elif path.name.startswith("."):
            yield about("manifests-hidden-file", file, "is hidden. Remove it, or rename it without the dot")
        elif path.suffix not in SUFFIXES:
            text = f"is not a manifest. Remove it, or use one of the suffixes {', '.join(SUFFIXES)}"
            yield about("manifests-foreign-file", file, text)


def metadata(subject: Subject) -> Iterator[Finding]:
    bundle = subject.bundle
    if bundle.annotations is not None:
        for code, name, text in _annotations(bundle, bundle.annotations):
            yield about(code, bundle.annotations_file, text, f"annotations.{name}")
    # Other checks report a missing folder or file.
    elif (bundle.folder / METADATA).is_dir() and not any(
        each.file.startswith(f"{METADATA}/") for each in bundle.unreadable
    ):
        text = f"has no file with `annotations:`. Run `ctrl bundle`, which writes {ANNOTATIONS_FILE}"
        yield about("annotations-missing", METADATA, text)


def _annotations(bundle: Bundle, written: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield code, annotation and text."""
    for name, example in _EXAMPLES.items():
        if name not in written:
            yield "annotation-missing", name, f"is missing. Set it to {example}"
    texts = {name: value for name, value in written.items() if isinstance(value, str)}
    for name in written.keys() - texts.keys():
        text = f"{written[name]} is not a string, so OLM cannot read the file. Write the value in quotes"
        yield "annotation-no-text", name, text
    if texts.get(MEDIA_TYPE, _REGISTRY) != _REGISTRY:
        text = f"{texts[MEDIA_TYPE]!r} is not the format of this bundle. Write {_REGISTRY}"
        yield "annotation-media-type", MEDIA_TYPE, text
    for name, value in _FOLDERS.items():
        if texts.get(name, value).rstrip("/") != value.rstrip("/"):
            yield "annotation-folder", name, f"{texts[name]!r} is not the folder of the files. Write {value}"
    if texts.get(PACKAGE, "-").strip() == "":
        yield "package-empty", PACKAGE, "is empty. Set the name of the package in catalogs"
    if CHANNELS in texts and not bundle.channels:
        text = "is empty. Set at least one channel, as in `ctrl bundle --channels stable`"
        yield "channels-empty", CHANNELS, text
    default = texts.get(DEFAULT_CHANNEL)
    if default is not None and not default.strip():
        yield "default-channel-empty", DEFAULT_CHANNEL, "is empty. Set a channel, or remove the annotation"
    elif default is not None and bundle.channels and default not in bundle.channels:
        channels = ", ".join(bundle.channels)
        text = f"{default!r} is not one of the channels ({channels}). Add it, unless another bundle has it"
        yield "default-channel-unknown", DEFAULT_CHANNEL, text

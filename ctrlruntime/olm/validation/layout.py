"""The folders and files of a bundle: those that are required, and those that are not allowed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Final

from ctrlruntime.olm.bundle import MANIFESTS, METADATA, SUFFIXES
from ctrlruntime.olm.finding import Check, Finding, Level
from ctrlruntime.olm.validation.validator import Subject, Validator

__all__ = ["VALIDATOR"]

_error = partial(Check, level=Level.ERROR, type="ManifestStructureNotValid")
_NO_MANIFESTS: Final = _error(code="manifests-missing", summary="the folder `manifests` is missing")
_NO_METADATA: Final = _error(code="metadata-missing", summary="the folder `metadata` is missing")
_FOLDER: Final = _error(code="manifests-subfolder", summary="`manifests` has a subfolder, which catalogs reject")
_HIDDEN: Final = _error(code="manifests-hidden-file", summary="`manifests` has a file whose name starts with a dot")
_FOREIGN: Final = _error(code="manifests-foreign-file", summary="`manifests` has a file that is neither YAML nor JSON")
_SEVERAL: Final = _error(
    code="manifest-several-documents",
    summary="a file of `manifests` has more than one document; OLM reads only the first",
)
_MANIFEST: Final = Check(
    code="manifest-unreadable",
    level=Level.ERROR,
    type="ParseError",
    summary="a file of `manifests` cannot be read, or has a document that is not an object",
)
_METADATA: Final = Check(
    code="metadata-unreadable",
    level=Level.ERROR,
    type="ParseError",
    summary="a file next to `manifests` cannot be read",
)


def _run(subject: Subject) -> Iterator[Finding]:
    folder = subject.bundle.folder
    for name, check in ((MANIFESTS, _NO_MANIFESTS), (METADATA, _NO_METADATA)):
        if not (folder / name).is_dir():
            yield Finding(check=check, text=f"{folder} has no folder {name}. Create it with `ctrl bundle`")
    yield from _entries(subject)
    for unreadable in subject.bundle.unreadable:
        check = _MANIFEST if unreadable.file.startswith(f"{MANIFESTS}/") else _METADATA
        yield Finding(check=check, text=unreadable.text, file=unreadable.file)
    for file, number in Counter(each.file for each in subject.bundle.objects).items():
        if number > 1:
            text = f"has {number} documents, but OLM reads only the first. Write each object to its own file"
            yield Finding(check=_SEVERAL, text=text, file=file)


def _entries(subject: Subject) -> Iterator[Finding]:
    root = subject.bundle.folder / MANIFESTS
    for path in sorted(root.iterdir()) if root.is_dir() else ():
        file = f"{MANIFESTS}/{path.name}"
        if path.is_dir():
            yield Finding(check=_FOLDER, text=f"is a folder. Move its files to {MANIFESTS}", file=file)
        elif path.name.startswith("."):
            yield Finding(check=_HIDDEN, text="is hidden. Remove it, or rename it without the dot", file=file)
        elif path.suffix not in SUFFIXES:
            text = f"is not a manifest. Remove it, or use one of the suffixes {', '.join(SUFFIXES)}"
            yield Finding(check=_FOREIGN, text=text, file=file)


VALIDATOR: Final = Validator(
    name="layout",
    summary="Folders and files",
    checks=(_NO_MANIFESTS, _NO_METADATA, _FOLDER, _HIDDEN, _FOREIGN, _MANIFEST, _METADATA, _SEVERAL),
    run=_run,
)

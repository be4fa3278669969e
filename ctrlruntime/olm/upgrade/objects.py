"""Existing objects, checked with the CRDs of the next release: OLM stops an upgrade if one of them is invalid."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.documents import read_documents
from ctrlruntime.generate.text import dump_all
from ctrlruntime.olm.upgrade.change import Change, Code

__all__ = ["checkable", "given_objects", "object_changes"]

_DEFINITIONS: Final = "the new bundle"


def given_objects(texts: Iterable[tuple[str, str]]) -> list[Mapping[str, Any]]:
    """Return the objects in texts of YAML or JSON, given with the names of their files; lists are opened. Raises: ConfigError."""
    return [each for file, text in texts for tree in read_documents(text, file) for each in _opened(tree, file)]


def _opened(tree: Any, file: str) -> Iterator[Mapping[str, Any]]:
    if not isinstance(tree, dict) or not tree.get("kind"):
        raise ConfigError(f"{file}: a document is not an object: it must be a map with apiVersion and kind")
    items: Any = tree.get("items")
    if str(tree["kind"]).endswith("List") and isinstance(items, list):
        for item in items:
            yield from _opened(item, file)
    else:
        yield cast("Mapping[str, Any]", tree)


def object_changes(
    definitions: Sequence[Mapping[str, Any]], objects: Iterable[Mapping[str, Any]], *, of: str, must_be_known: bool
) -> Iterator[Change]:
    """Yield the problems that a server would report for objects of these CRDs. `of` describes the objects in a few words.

    With `must_be_known`, objects without a CRD are reported.
    """
    from ctrlruntime.project.checking import UNKNOWN_FIELD, check  # it brings the embedded API server

    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    found = check(((_DEFINITIONS, checkable(definitions)), (of, listed)))
    for problem in found.problems:
        if problem.file == of:
            code = Code.OBJECT_PRUNED if problem.text == UNKNOWN_FIELD else Code.OBJECT_REFUSED
            was, now = (None, None) if code is Code.OBJECT_PRUNED else ("fits", problem.text)
            yield Change(code=code, path=_place(of, problem.object, problem.path), was=was, now=now)
    for skipped in found.skipped if must_be_known else ():
        yield Change(code=Code.OBJECT_NOT_CHECKED, path=_place(of, skipped.object, ""))


def checkable(definitions: Iterable[Mapping[str, Any]]) -> str:
    """Return CRDs as a text that a server accepts: without conversion, which may be incomplete until OLM adds its part."""
    specs = ((each, {key: value for key, value in each["spec"].items() if key != "conversion"}) for each in definitions)
    return dump_all({**each, "spec": spec} for each, spec in specs)


def _place(*parts: str) -> str:
    return " ".join(part for part in parts if part)

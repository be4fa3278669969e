"""The fields of a ClusterServiceVersion: it can be decoded, has all required fields, and no unknown ones."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from ctrlruntime.api.fields import wire_names
from ctrlruntime.api.model import Model
from ctrlruntime.olm.api import ClusterServiceVersion
from ctrlruntime.olm.bundle import BundleObject
from ctrlruntime.olm.finding import Finding
from ctrlruntime.olm.trees import mapping
from ctrlruntime.olm.validation.subject import Problem, Subject, about
from ctrlruntime.spelling import did_you_mean

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

__all__ = ["run", "wrong_fields"]

_NOT_EMPTY: Final = (("spec", "displayName"), ("spec", "install", "strategy"))
"""Required fields that must not be empty."""


def run(subject: Subject) -> Iterator[Finding]:
    found = subject.bundle.csv
    if found is None:
        return
    for code, path, text in wrong_fields(found):
        yield about(code, found, text, path)
    for path, text in _unknown(subject.csv, ""):
        yield about("csv-unknown-field", found, text, path)


def wrong_fields(found: BundleObject) -> Iterator[Problem]:
    """Yield the fields that cannot be decoded, and those that are missing."""
    document = _without_nulls(found.document)
    seen: set[str] = set()
    for each in (*_decoded(document), *_empty(document)):
        if each[1] not in seen:  # each type a field may have gives an error of its own
            seen.add(each[1])
            yield each


def _decoded(document: Any) -> Iterator[Problem]:
    try:
        # Strict, as Go is: "true" is not a boolean there.
        ClusterServiceVersion.model_validate_json(json.dumps(document), strict=True)
    except ValidationError as error:
        for each in error.errors(include_url=False, include_context=False):
            if each["type"] != "missing":
                yield "csv-not-decodable", _written(_known(document, each["loc"])), _complaint(each)
            elif not _is_filled_in(each["loc"]):
                yield "csv-field-missing", _written(each["loc"]), "is missing, but OLM requires it"


def _empty(document: Any) -> Iterator[Problem]:
    for path in _NOT_EMPTY:
        *parents, last = path
        place = document
        for step in parents:
            place = mapping(place.get(step))
        if place.get(last) == "":
            yield "csv-field-missing", ".".join(path), "is empty, but OLM requires it"


def _is_filled_in(path: Sequence[int | str]) -> bool:
    """Tell whether a field is one that bundles often lack, and that OLM writes as empty: the name of a resource."""
    return path[-1] == "name" and len(path) > 2 and path[-3] == "resources"


def _complaint(error: ErrorDetails) -> str:
    shown = repr(error["input"])
    return f"{error['msg'].removeprefix('Input ')}, got {shown if len(shown) <= 60 else shown[:57] + '…'}"


def _known(document: Any, path: Sequence[int | str]) -> list[int | str]:
    """Return the part of a path that the document has; after it come names of types."""
    kept: list[int | str] = []
    for step in path:
        try:
            document = document[step]
        except (KeyError, IndexError, TypeError):
            break
        kept.append(step)
    return kept


def _written(path: Sequence[int | str]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def _unknown(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield path and text of each field that no class has."""
    if isinstance(value, Model):
        aliases = wire_names(type(value))
        for name in value.model_extra or {}:
            advice = did_you_mean(name, aliases.values(), ". Remove it")
            yield f"{path}.{name}".lstrip("."), f"is unknown to OLM, which drops it{advice}"
        for name, alias in aliases.items():
            if (path, name) != ("", "status"):
                yield from _unknown(getattr(value, name), f"{path}.{alias}".lstrip("."))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _unknown(each, f"{path}[{index}]")


def _without_nulls(tree: Any) -> Any:
    """Return a copy without what is null: Go reads it as absent."""
    if isinstance(tree, list):
        return [_without_nulls(one) for one in tree]
    if isinstance(tree, dict):
        return {key: _without_nulls(one) for key, one in tree.items() if one is not None}
    return tree

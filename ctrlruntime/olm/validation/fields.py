"""The fields of a ClusterServiceVersion: it can be decoded, has all required fields, and no unknown ones."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from ctrlruntime.api.fields import wire_names
from ctrlruntime.api.model import Model
from ctrlruntime.olm.api import ClusterServiceVersion
from ctrlruntime.olm.finding import Check, Finding, Level
from ctrlruntime.olm.validation.validator import Subject, Validator, about
from ctrlruntime.spelling import did_you_mean

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

__all__ = ["VALIDATOR", "wrong_fields"]

_NOT_EMPTY: Final = (("spec", "displayName"), ("spec", "install", "strategy"))
"""Required fields that must not be empty."""

_error = partial(Check, level=Level.ERROR)
_DECODED: Final = _error(
    code="csv-not-decodable",
    type="ParseError",
    summary="a field of the ClusterServiceVersion has a value of a wrong type",
)
_MISSING: Final = _error(
    code="csv-field-missing",
    type="FieldNotFound",
    summary="a required field of the ClusterServiceVersion is missing",
)
_UNKNOWN: Final = Check(
    code="csv-unknown-field",
    level=Level.WARNING,
    type="CSVFileNotValid",
    summary="the ClusterServiceVersion has an unknown field, which OLM drops",
)


def _run(subject: Subject) -> Iterator[Finding]:
    yield from wrong_fields(subject)
    if subject.csv is not None:
        for path, text in _unknown(subject.csv, ""):
            yield about(_UNKNOWN, subject.csv_object, text, path)


def wrong_fields(subject: Subject) -> Iterator[Finding]:
    """Yield the fields that cannot be decoded, and those that are missing."""
    found = subject.csv_object
    if found is None:
        return
    document = _without_nulls(found.document)
    seen: set[str] = set()
    for check, path, text in (*_decoded(document), *_empty(document)):
        if path not in seen:  # each type a field may have gives an error of its own
            seen.add(path)
            yield about(check, found, text, path)


def _decoded(document: Any) -> Iterator[tuple[Check, str, str]]:
    try:
        # Strict, as Go is: "true" is not a boolean there.
        ClusterServiceVersion.model_validate_json(json.dumps(document), strict=True)
    except ValidationError as error:
        for each in error.errors(include_url=False, include_context=False):
            if each["type"] == "missing":
                if _is_filled_in(each["loc"]):
                    continue
                yield _MISSING, _written(each["loc"]), "is missing, but OLM requires it"
            else:
                yield _DECODED, _written(_known(document, each["loc"])), _complaint(each)


def _empty(document: Any) -> Iterator[tuple[Check, str, str]]:
    for path in _NOT_EMPTY:
        *parents, last = path
        place = document
        for step in parents:
            place = place.get(step) if isinstance(place, dict) else None
        if isinstance(place, dict) and place.get(last) == "":
            yield _MISSING, ".".join(path), "is empty, but OLM requires it"


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


VALIDATOR: Final = Validator(
    name="csv-fields",
    summary="The ClusterServiceVersion: types, required and unknown fields",
    checks=(_DECODED, _MISSING, _UNKNOWN),
    run=_run,
)

"""The second try at an object that does not fit its class, and reading YAML.

Decoding is pydantic's, in one pass over the bytes. Only when that fails does this module look closer: a required field
that is absent gets the zero of its type, as in Go, and an explicit null where none is allowed is dropped. Whatever else
is wrong is the reader's to hear.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeVar, Union, cast, get_args, get_origin

import msgspec
from pydantic import BaseModel, ValidationError

from ctrlruntime.api.annotations import allows_none, bare
from ctrlruntime.api.fields import field_named
from ctrlruntime.api.yaml_text import MeaningError, path_text, read_documents
from ctrlruntime.errors import DecodeError
from ctrlruntime.field import Duration, Quantity

if typing.TYPE_CHECKING:
    from pydantic_core import ErrorDetails

__all__ = ["Path", "load_yaml", "second_try"]

M = TypeVar("M", bound=BaseModel)

Path: TypeAlias = Sequence[int | str]
"""Names and list positions, from the object inwards."""

# Dropping a null can uncover a missing field, and filling that one its own missing fields: one round for each level of
# nesting.
_ROUNDS = 16
_NONE = object()


def second_try(cls: type[M], raw: bytes | str, error: ValidationError) -> tuple[M, list[Path]]:
    """Return the object after mending what may be mended, and the paths of the nulls that were dropped.

    Raises: DecodeError, which names the fields and keeps the bytes.
    """
    first = error
    raw = raw.encode() if isinstance(raw, str) else raw
    try:
        document = msgspec.json.decode(raw)
    except msgspec.DecodeError as broken:
        raise DecodeError(f"cannot read a {cls.__name__}: the bytes are not JSON ({broken})", raw=raw) from broken
    nulls: list[Path] = []
    for _ in range(_ROUNDS):
        if not _mend(cls, document, error.errors(include_url=False, include_context=False), nulls):
            break
        try:
            return cls.model_validate_json(msgspec.json.encode(document), by_name=False), nulls
        except ValidationError as again:
            error = again
    raise DecodeError(_complaint(cls, document, first), raw=raw) from first


def _mend(cls: type[BaseModel], document: Any, errors: Sequence[ErrorDetails], nulls: list[Path]) -> bool:
    """Fill and drop in place, and note the paths of dropped nulls; False when an error is of another sort."""
    for error in errors:
        *path, last = error["loc"] or (None,)
        parent = _walk(document, path)
        if not isinstance(parent, dict) or not isinstance(last, str):
            return False
        if error["type"] == "missing":
            zero = _zero(_annotation_at(cls, error["loc"]))
            if zero is _NONE:
                return False
            parent[last] = zero
        elif last in parent and parent[last] is None:
            del parent[last]
            nulls.append(error["loc"])
        else:
            return False
    return True


def _walk(tree: Any, path: Sequence[Any]) -> Any:
    for step in path:
        try:
            tree = tree[step]
        except (KeyError, IndexError, TypeError):
            return None
    return tree


def _annotation_at(annotation: Any, path: Sequence[int | str]) -> Any:
    for step in path:
        kind = bare(annotation)
        arguments = get_args(kind)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            annotation = _field_annotation(kind, str(step))
        elif get_origin(kind) in {list, dict} and arguments:
            annotation = arguments[-1]
        else:
            return _NONE
    return annotation


def _field_annotation(cls: type[BaseModel], wire: str) -> Any:
    name = field_named(cls, wire)
    return _NONE if name is None else cls.model_fields[name].annotation


def _zero(annotation: Any) -> Any:
    if allows_none(annotation):
        return None
    annotation = bare(annotation)
    if get_origin(annotation) in {Union, types.UnionType}:
        annotation = get_args(annotation)[0]
    annotation = get_origin(annotation) or annotation
    if not isinstance(annotation, type):
        return _NONE
    if issubclass(annotation, BaseModel):
        return {}
    zeros: Mapping[type[Any], Any] = {
        str: "", int: 0, float: 0.0, bool: False, bytes: "", list: [], dict: {}, Quantity: "0", Duration: "0s",
    }  # fmt: skip
    return zeros.get(annotation, _NONE)


def _complaint(cls: type[BaseModel], document: Any, error: ValidationError) -> str:
    parts = [_describe(detail) for detail in error.errors(include_url=False, include_context=False)]
    shown = "; ".join(parts[:5]) + (f"; and {len(parts) - 5} more" if len(parts) > 5 else "")
    return f"{_name(cls, document)} does not fit the class {cls.__name__}: {shown}"


def _describe(detail: ErrorDetails) -> str:
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in detail["loc"]).removeprefix(".")
    if detail["type"] == "missing":
        return f"{path} is missing"
    value = repr(detail["input"])
    return f"{path}: {detail['msg']}, not {value if len(value) <= 60 else value[:57] + '…'}"


def _name(cls: type[BaseModel], document: Any) -> str:
    metadata = _walk(document, ["metadata"])
    if not isinstance(metadata, dict):
        return "the object"
    known = cast("dict[str, Any]", metadata)
    names = [str(part) for part in (known.get("namespace"), known.get("name")) if part]
    return f"{cls.__name__} {'/'.join(names)}" if names else "the object"


def load_yaml(text: str) -> dict[str, Any]:
    """Return the tree of the one YAML document in `text`, read as kubectl reads it.

    Raises: DecodeError, which names line and path, for what is no YAML, what JSON cannot say (`.nan`, a null as a key),
    and a key that stands twice.
    """
    import yaml

    def refuse(key: str, line: int, path: Sequence[str | int]) -> None:
        raise MeaningError(f"the key {key!r} stands twice", line, tuple(path))

    raw = text.encode(errors="replace")
    try:
        documents = [tree for tree in read_documents(text, refuse) if tree is not None]
    except MeaningError as error:
        where = f", {path_text(error.path)}" if error.path else ""
        raise DecodeError(f"line {error.line}{where}: {error.problem}", raw=raw) from error
    except yaml.YAMLError as error:
        raise DecodeError(f"the text is not YAML: {error}", raw=raw) from error
    if len(documents) != 1 or not isinstance(documents[0], dict):
        what = f"{len(documents)} documents" if len(documents) != 1 else f"a {type(documents[0]).__name__}"
        raise DecodeError(f"one YAML mapping is needed, not {what}; split the text first", raw=raw)
    return cast("dict[str, Any]", documents[0])

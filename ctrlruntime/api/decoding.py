"""Decodes objects that do not match their class strictly, and reads YAML.

pydantic decodes the bytes in one pass. Only if that fails, this module is used: a missing required field gets the zero of its type, as in
Go, and a null that is not allowed is dropped. Other problems are errors.
"""

from __future__ import annotations

import types
import typing
from base64 import b64decode, b64encode
from collections import abc
from collections.abc import Callable, Collection, Iterable, Sequence
from copy import copy
from enum import Enum
from typing import Any, Final, Literal, TypeAlias, TypeVar, Union, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json

from ctrlruntime.api.annotations import allows_none, bare
from ctrlruntime.api.fields import field_named
from ctrlruntime.api.redaction import is_secret
from ctrlruntime.api.yaml_text import MeaningError, path_text, read_documents
from ctrlruntime.errors import DecodeError
from ctrlruntime.field import Duration, Quantity

if typing.TYPE_CHECKING:
    from pydantic_core import ErrorDetails

__all__ = ["Path", "encoded", "load_yaml", "second_try"]

M = TypeVar("M", bound=BaseModel)

Path: TypeAlias = Sequence[int | str]
"""Names and list positions, from the outside in."""

# Dropping a null can uncover a missing field, and filling that one its own missing fields: one round for each level of
# nesting.
_ROUNDS = 16
_NONE = object()


def second_try(cls: type[M], raw: bytes | str, error: Exception) -> tuple[M, list[Path]]:
    """Decode an object after these corrections.

    Return it, and the paths of the dropped nulls.

    Raises: DecodeError with the fields and the bytes.
    """
    first = error
    raw = raw.encode(errors="replace") if isinstance(raw, str) else raw
    try:
        document = from_json(raw)
    except (ValueError, RecursionError) as broken:
        raise DecodeError(f"cannot read a {cls.__name__}: the bytes are not JSON ({broken})", raw=raw) from broken
    filled: set[Path] = set()
    nulls: list[Path] = []
    for _ in range(_ROUNDS):
        if not isinstance(error, ValidationError):
            break
        if not _mend(cls, document, error.errors(include_url=False, include_context=False), filled, nulls):
            break
        try:
            return _validated(cls, document), nulls
        except Exception as again:  # noqa: BLE001 - as at the first try
            error = again
    raise DecodeError(_complaint(cls, document, error, filled), raw=raw) from first


def _validated(cls: type[M], document: Any) -> M:
    return cls.model_validate_json(to_json(document, inf_nan_mode="constants"), by_name=False)


def encoded(cls: type[BaseModel], document: Any, encode: Callable[[Any], bytes]) -> bytes:
    """Encode a document as JSON.

    Raises: DecodeError with the path of a value that JSON does not support.
    """
    try:
        return encode(document)
    except _NO_JSON:
        path, reason = _without_json(document, encode, ())
        where = path_text(path) or "it"
        told = "" if _is_secret(cls, document) else f": {reason}"
        raise DecodeError(f"cannot read a {cls.__name__}: {where} cannot be encoded as JSON{told}") from None


_NO_JSON = (TypeError, ValueError, OverflowError, RecursionError)


def _without_json(tree: Any, encode: Callable[[Any], bytes], around: tuple[Any, ...]) -> tuple[Path, object]:
    """Find the innermost part of a tree that has no JSON; `around` are the trees that hold it."""
    if any(tree is one for one in around):
        return (), "it holds itself"
    steps: Iterable[tuple[Any, Any]] = ()
    if isinstance(tree, dict):
        steps = tree.items()
        for key in tree:
            if not isinstance(key, (str, int, float)):
                return (), f"the key {key!r} is not text"
    elif isinstance(tree, list):
        steps = enumerate(tree)
    for step, part in steps:
        try:
            encode({step: part})
        except _NO_JSON:
            path, reason = _without_json(part, encode, (*around, tree))
            return (step if isinstance(step, int) else str(step), *path), reason
    return (), f"{type(tree).__name__} {tree!r:.60}"


def _mend(
    cls: type[BaseModel], document: Any, errors: Sequence[ErrorDetails], filled: set[Path], nulls: list[Path]
) -> bool:
    """Fill and drop in place all that can be, and note what was filled and dropped; return whether anything was."""
    mended = False
    for error in errors:
        *path, last = error["loc"] or (None,)
        parent = _walk(document, path)
        if error["type"] == "bytes_invalid_encoding":
            canonical = _base64(_walk(parent, [last]))
            if canonical is not None:
                parent[last], mended = canonical, True
            continue
        if not isinstance(parent, dict) or not isinstance(last, str):
            continue
        if error["type"] == "missing":
            zero = _zero(_annotation_at(cls, error["loc"]))
            if zero is _NONE:
                continue
            parent[last] = zero
            filled.add(error["loc"])
        elif last in parent and parent[last] is None and error["loc"] not in filled:
            del parent[last]
            nulls.append(error["loc"])
        else:
            continue
        mended = True
    return mended


def _base64(value: Any) -> str | None:
    """Return base64 whose last letter says more bits than there are, which kube-apiserver takes, in the common form."""
    try:
        canonical = b64encode(b64decode(value, validate=True)).decode()
    except (TypeError, ValueError):
        return None
    return None if canonical == value else canonical


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
        elif get_origin(kind) in _CONTAINERS and arguments:
            annotation = next(one for one in reversed(arguments) if one is not ...)
        else:
            return _NONE
    return annotation


def _field_annotation(cls: type[BaseModel], wire: str) -> Any:
    name = field_named(cls, wire)
    return _NONE if name is None else cls.model_fields[name].annotation


def _zero(annotation: Any) -> Any:
    """Return the zero of a type in JSON, or _NONE: that of a choice is its empty member, if it has one."""
    if allows_none(annotation):
        return None
    annotation = bare(annotation)
    if get_origin(annotation) in {Union, types.UnionType}:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) is Literal:
        return _empty_choice(get_args(annotation))
    annotation = get_origin(annotation) or annotation
    if not isinstance(annotation, type):
        return _NONE
    if issubclass(annotation, Enum):
        return _empty_choice([member.value for member in annotation])
    return next((copy(zero) for kind, zero in _ZEROS if issubclass(annotation, kind)), _NONE)


def _empty_choice(values: Iterable[Any]) -> Any:
    plain = [value.value if isinstance(value, Enum) else value for value in values]
    return next((value for value in plain if isinstance(value, (str, int)) and not value), _NONE)


_CONTAINERS: Final = (list, tuple, set, frozenset, dict, abc.Sequence, abc.Set, abc.Mapping, abc.MutableSequence)
_ZEROS: Final[Sequence[tuple[type[Any], Any]]] = (
    (BaseModel, {}),
    (bool, False),
    (int, 0),
    (float, 0.0),
    (str, ""),
    (bytes, ""),
    (abc.Mapping, {}),
    (abc.Sequence, []),
    (abc.Set, []),
    (Quantity, "0"),
    (Duration, "0s"),
)


def _complaint(cls: type[BaseModel], document: Any, error: Exception, filled: Collection[Path]) -> str:
    if isinstance(error, ValidationError):
        details = error.errors(include_url=False, include_context=False)
        hides = _is_secret(cls, document)
        parts = [_describe(detail, is_missing=detail["loc"] in filled, hides=hides) for detail in details]
    else:
        reason = type(error).__name__ if _is_secret(cls, document) else error or type(error).__name__
        parts = [f"{path_text(_culprit(cls, document, error))}: {reason}".removeprefix(": ")]
    shown = "; ".join(parts[:5]) + (f"; and {len(parts) - 5} more" if len(parts) > 5 else "")
    return f"{_name(cls, document)} does not fit the class {cls.__name__}: {shown}"


def _culprit(cls: type[BaseModel], document: Any, error: Exception) -> tuple[int | str, ...]:
    """Find the value that makes a validator fail with something else than a ValueError: without it, it does not."""
    path: list[int | str] = []
    part = document
    while isinstance(part, (dict, list)):
        for step in list(part) if isinstance(part, dict) else range(len(part)):
            kept, part[step] = part[step], None
            fails = _fails(cls, document, type(error))
            part[step] = kept
            if not fails:
                path.append(step)
                part = kept
                break
        else:
            break
    return tuple(path)


def _fails(cls: type[BaseModel], document: Any, kind: type[Exception]) -> bool:
    try:
        _validated(cls, document)
    except Exception as error:  # noqa: BLE001 - compared, whichever it is
        return type(error) is kind
    return False


def _is_secret(cls: type[BaseModel], document: Any) -> bool:
    """Whether values are a Secret's, by the class or by what the object says: they are not shown then."""
    info = getattr(cls, "__kind_info__", None)
    said = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
    return (info is not None and is_secret(info.api_version, info.kind)) or is_secret(
        said.get("apiVersion"), said.get("kind")
    )


def _describe(detail: ErrorDetails, *, is_missing: bool, hides: bool) -> str:
    path = path_text(detail["loc"])
    if is_missing or detail["type"] == "missing":
        return f"{path} is missing"
    if hides:
        kind = type(detail["input"]).__name__
        return f"{path}: it is a {kind} that does not fit".removeprefix(": ")
    value = repr(detail["input"])
    return f"{path}: {detail['msg']}, not {value if len(value) <= 60 else value[:57] + '…'}".removeprefix(": ")


def _name(cls: type[BaseModel], document: Any) -> str:
    metadata = _walk(document, ["metadata"])
    if not isinstance(metadata, dict):
        return "the object"
    known = cast("dict[str, Any]", metadata)
    names = [str(part) for part in (known.get("namespace"), known.get("name")) if part]
    return f"{cls.__name__} {'/'.join(names)}" if names else "the object"


def load_yaml(text: str) -> dict[str, Any]:
    """Read the single YAML document in `text`, as kubectl does.

    Raises: DecodeError with line and path, for invalid YAML, for values that JSON does not support (`.nan`, a null as a key), and for a
    duplicate key.
    """
    import yaml

    def refuse(key: str, line: int, path: Sequence[str | int]) -> None:
        raise MeaningError(f"duplicate key {key!r}", line, tuple(path))

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

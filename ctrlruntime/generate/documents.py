"""YAML documents as kustomize reads and writes them.

Reading follows go-yaml 3: only true and false are booleans, a date is the text of its moment, a duplicate key is an error. A number
that no 64 bits hold becomes a float, as there; one that no float holds (`1e400`) stays the text it is. Writing is sigs.k8s.io/yaml, as
everywhere in Kubernetes, with keys sorted.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

from ctrlruntime.api import yaml_text
from ctrlruntime.api.yaml_nodes import FILE, MeaningError, compose
from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.options import Document
from ctrlruntime.generate.text import dump

__all__ = ["opened", "plain", "read_documents", "read_one", "read_settings", "read_text", "scalar", "written"]

_BOOL = re.compile(r"(?:true|True|TRUE|false|False|FALSE)$")
_NULL = re.compile(r"(?:~|null|Null|NULL|)$")
_INT = re.compile(r"[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)$")
_FLOAT = re.compile(
    r"(?:[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}$")
_LONGEST = 100
"""Digits beyond which a number is not a whole one of 64 bits, in any base."""
_TAG = "tag:yaml.org,2002:"


def read_text(path: Path, where: str = "") -> str:
    """Return the text of a file, without a byte order mark. Raises: ConfigError, which names it as `where`, by default its path."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError.unreadable(where or path, error) from error


def read_documents(text: str, where: str, prepare: Callable[[Any], None] | None = None) -> list[Any]:
    """Return the documents of a text that are not empty. `prepare` may change each node of YAML before it is read.

    Raises: ConfigError, which names `where`.
    """

    def trees() -> Iterator[Any]:
        resolver, constructor = _tools()
        for node in list(compose(text, resolve=resolver().resolve)):
            if prepare is not None:
                prepare(node)
            yield constructor().construct_document(node)

    with _one_line(where):
        return [tree for tree in trees() if tree is not None]


def read_settings(text: str, where: str) -> Any:
    """Return the single document of a text that Go reads into a type, None without one.

    Such a text is read by sigs.k8s.io/yaml: `yes` is true, and a date is a text. Raises: ConfigError, also for a duplicate key.
    """

    def repeated(key: str, line: int, _: object) -> None:
        raise MeaningError(f"duplicate key {key!r}", line)

    with _one_line(where):
        documents = list(yaml_text.read_documents(text, repeated, FILE))
    return _single(documents, where)


@contextlib.contextmanager
def _one_line(where: str) -> Generator[None]:
    """Raise errors of YAML as ConfigErrors."""
    import yaml

    try:
        yield
    except MeaningError as error:
        raise ConfigError(f"{where}, line {error.line}: {error.problem}") from error
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigError(f"{where}{line}: {error.problem or 'this is not YAML'}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{where}: this is not YAML: {' '.join(str(error).split())}") from error


def read_one(text: str, where: str) -> Any:
    """Return the single document of a text, None without one. Raises: ConfigError."""
    return _single(read_documents(text, where), where)


def _single(documents: list[Any], where: str) -> Any:
    if len(documents) > 1:
        raise ConfigError(f"{where}: {len(documents)} documents where one is expected")
    return documents[0] if documents else None


def opened(trees: Iterable[Any]) -> Iterator[Any]:
    """Yield the documents, and in the place of a list (as kubectl prints several objects) what is in it."""
    for tree in trees:
        items: Any = tree.get("items") if isinstance(tree, Mapping) else None
        if isinstance(items, list) and str(cast("Mapping[str, Any]", tree).get("kind") or "").endswith("List"):
            yield from opened(items)
        else:
            yield tree


def scalar(text: str) -> Any:
    """Return what a plain scalar of this text is in YAML: a number, a boolean, null or the text."""
    for pattern, value in ((_BOOL, lambda: text.lower() == "true"), (_NULL, lambda: None), (_INT, lambda: _int(text))):
        if pattern.match(text):
            return value()
    return _float(text) if _FLOAT.match(text) else text


def plain(value: Any) -> str:
    """Return a scalar as its text in YAML; nothing for null, a map or a list."""
    if isinstance(value, str):
        return value
    return (
        ""
        if value is None or isinstance(value, dict | list)
        else dump({"v": value}).removeprefix("---\nv: ").rstrip("\n")
    )


def written(objects: Iterable[Mapping[str, Any]]) -> str:
    """Return objects as one text of YAML documents, as `kubectl kustomize` prints them."""
    return "---\n".join(dump(each).removeprefix("---\n") for each in objects)


def _int(text: str) -> int | float | str:
    bare = text.replace("_", "").lower()
    sign, digits = (-1, bare[1:]) if bare.startswith("-") else (1, bare.removeprefix("+"))
    if len(digits) > _LONGEST:  # Python refuses to count thousands of digits
        return _float(text) if digits.isdigit() else text
    base = 0 if digits[:2] in {"0b", "0x", "0o"} else 8 if digits.startswith("0") and digits != "0" else 10
    value = sign * int(digits, base)
    if -(2**63) <= value < 2**64:
        return value
    return _float(text) if digits.isdigit() else text


def _float(text: str) -> float | int | str:
    bare = text.replace("_", "").lower()
    if bare.endswith((".inf", ".nan")):
        return float(bare.replace(".", ""))
    value = float(bare)
    if not math.isfinite(value):
        return text
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


@cache
def _tools() -> tuple[Any, Any]:
    """Return a resolver and a safe constructor that start without PyYAML's own ideas of plain scalars."""
    from yaml.constructor import SafeConstructor
    from yaml.resolver import BaseResolver

    resolver: Any = type("Resolver", (BaseResolver,), {})
    constructor: Any = type("Constructor", (SafeConstructor,), {})
    for name, pattern, first in (
        ("merge", re.compile(r"<<$"), "<"),
        ("bool", _BOOL, "tTfF"),
        ("null", _NULL, ["~", "n", "N", ""]),
        ("int", _INT, "-+0123456789"),
        ("float", _FLOAT, "-+.0123456789"),
        ("timestamp", _DATE, "0123456789"),
    ):
        # By their first characters: most scalars are words, which then match no pattern at all.
        resolver.add_implicit_resolver(f"{_TAG}{name}", pattern, list(first))
    constructor.add_constructor(f"{_TAG}int", lambda loader, node: _int(loader.construct_scalar(node)))
    constructor.add_constructor(f"{_TAG}float", lambda loader, node: _float(loader.construct_scalar(node)))
    constructor.add_constructor(f"{_TAG}timestamp", _moment)
    constructor.add_constructor(f"{_TAG}map", _mapping)
    return resolver, constructor


def _moment(loader: Any, node: Any) -> str:
    text = str(loader.construct_scalar(node))
    return f"{text}T00:00:00Z" if _DATE.match(text) else text


def _mapping(loader: Any, node: Any) -> Document:
    import yaml

    seen: set[str] = set()
    for key, _ in node.value:
        if not isinstance(key.value, str):
            raise yaml.MarkedYAMLError(problem="a key must be a string", problem_mark=key.start_mark)
        if key.value in seen:
            raise yaml.MarkedYAMLError(problem=f"duplicate key {key.value!r}", problem_mark=key.start_mark)
        seen.add(key.value)
    found = cast("dict[Any, Any]", loader.construct_mapping(node, deep=True))
    return {_key(key): value for key, value in found.items()}


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return "null" if key is None else str(key)

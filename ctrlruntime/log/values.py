"""Converts the values of fields for JSON and the console.

API objects become their name.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from math import isfinite
from typing import Any, Final, cast

from ctrlruntime.terminal import escaped


def describe(error: BaseException) -> str:
    """Return an exception as one line: type, message and cause."""
    message = message_of(error)
    line = f"{type(error).__name__}: {message}" if message else type(error).__name__
    cause = error.__cause__
    if cause is None or (reason := text(cause)) in line:
        return line
    return f"{line} (caused by {type(cause).__name__}: {reason})"


def message_of(error: BaseException) -> str:
    """Return the message of an exception; of an exception group, also the exceptions in it."""
    if isinstance(error, BaseExceptionGroup):
        found = cast("BaseExceptionGroup[BaseException]", error)
        return f"{text(found.message)}: {'; '.join(map(describe, found.exceptions))}"
    return text(error)


def plain(value: object, depth: int = 0) -> Any:
    """Return a value for JSON; API objects become their name."""
    match value:
        case None | bool() | int() | str():
            return value if type(value) in _JSON_TYPES else text(value)
        case float():
            return value if isfinite(value) else str(value)
        case bytes():
            return value.decode("utf-8", "replace")
        case BaseException():
            return describe(value)
        case _ if depth > _MAX_DEPTH:
            return text(value)
        case _ if (named := _named(value)) is not None:
            return named
        case Mapping():
            return {text(key): plain(item, depth + 1) for key, item in value.items()}
        case list() | tuple() | set() | frozenset() | deque():
            return [plain(item, depth + 1) for item in value]
        case _:
            return text(value)


def word(value: object) -> str:
    """Return a value for the console: an object as `Kind namespace/name`, text in quotes if it is not one word."""
    value = plain(value)
    match value:
        case {"apiVersion": _, "kind": kind, "name": name, **rest} if not rest.keys() - {"namespace"}:
            return _quoted(f"{kind} {_key(rest.get('namespace'), name)}")
        case {"name": name, **rest} if not rest.keys() - {"namespace"}:
            return _quoted(_key(rest.get("namespace"), name))
        case str():
            return _quoted(value)
        case _:
            return escaped(json.dumps(value, ensure_ascii=False))


def _quoted(line: str) -> str:
    is_word = line.isprintable() and line and not any(character in line for character in ' "=')
    return line if is_word else escaped(json.dumps(line, ensure_ascii=False))


def text(value: object) -> str:
    """Return `str(value)`, or a replacement if `str` fails."""
    try:
        return str(value)
    except Exception as error:  # noqa: BLE001 - a broken __str__ must not break the program that logs
        return f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"


def on_one_line(line: str) -> str:
    """Return text with escaped line breaks and control characters, so that a message cannot forge a second line."""
    return line if line.isprintable() else escaped(json.dumps(line, ensure_ascii=False)[1:-1])


def _key(namespace: object, name: object) -> str:
    return f"{namespace}/{name}" if namespace else str(name)


def _named(value: object) -> dict[str, str] | None:
    """Return what names an API object (ours, a V1… model, or its JSON tree) or a key; None for anything else."""
    try:
        if isinstance(value, Mapping):
            tree = cast("Mapping[str, Any]", value)
            if "kind" not in tree or not isinstance(metadata := tree.get("metadata"), Mapping):
                return None
            return _identity(tree.get("apiVersion"), tree["kind"], metadata.get("namespace"), metadata.get("name"))
        metadata = getattr(value, "metadata", None)
        if metadata is not None and hasattr(metadata, "name") and hasattr(metadata, "namespace"):
            kind = getattr(value, "kind", None) or type(value).__name__
            return _identity(getattr(value, "api_version", None), kind, metadata.namespace, metadata.name)
        # A Request or NamespacedName. A class that names nothing of Kubernetes has hardly both.
        namespace, name = getattr(value, "namespace", None), getattr(value, "name", None)
        if isinstance(namespace, str) and isinstance(name, str) and not isinstance(value, type):
            cluster = getattr(value, "cluster", "")
            return {**({"cluster": str(cluster)} if cluster else {}), "namespace": namespace, "name": name}
    except Exception:  # noqa: BLE001 - attributes of foreign objects may do anything
        return None
    return None


def _identity(api_version: object, kind: object, namespace: object, name: object) -> dict[str, str]:
    parts = {"apiVersion": api_version, "kind": kind, "namespace": namespace, "name": name}
    return {key: str(part) for key, part in parts.items() if part or key == "name"}


_MAX_DEPTH: Final = 6
_JSON_TYPES: Final = frozenset({type(None), bool, int, str})

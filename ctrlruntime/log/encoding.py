"""How a line reads: as JSON or for the console, with API objects cut down to what names them. Pure."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from math import isfinite
from typing import Any, Final, TypeAlias, cast

from ctrlruntime.log.options import TimeEncoding

Fields: TypeAlias = Mapping[str, object]


def json_line(stamp: str | float, level: str, name: str, event: str, fields: Fields, traceback: str) -> str:
    line: dict[str, object] = {"level": level, "ts": stamp}
    if name:
        line["logger"] = name
    line["msg"] = event
    for key, value in fields.items():
        line[f"{key}_" if key in _RESERVED else key] = _plain(value)
    if traceback:
        line["stacktrace"] = traceback
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"))


def console_line(stamp: str | float, level: str, name: str, event: str, fields: Fields, traceback: str) -> str:
    head = f"{stamp}  {level.upper():5}  {name}  " if name else f"{stamp}  {level.upper():5}  "
    parts = [_on_one_line(event), *(f"{key}={_word(value)}" for key, value in fields.items())]
    line = head + "  ".join((parts[0], " ".join(parts[1:]))) if fields else head + parts[0]
    return f"{line}\n{traceback}" if traceback else line


def _on_one_line(text: str) -> str:
    return text if text.isprintable() else json.dumps(text, ensure_ascii=False)[1:-1]


def _word(value: object) -> str:
    """Return a value for the console: an object as `Kind namespace/name`, text in quotes where it would not read as
    one word.
    """
    plain = _plain(value)
    match plain:
        case {"apiVersion": _, "kind": kind, "name": name, **rest} if not rest.keys() - {"namespace"}:
            text = f"{kind} {_key(rest.get('namespace'), name)}"
        case {"name": name, **rest} if not rest.keys() - {"namespace"}:
            text = _key(rest.get("namespace"), name)
        case str():
            text = plain
        case _:
            return json.dumps(plain, ensure_ascii=False)
    is_word = text.isprintable() and text and not any(character in text for character in ' "=')
    return text if is_word else json.dumps(text, ensure_ascii=False)


def _key(namespace: object, name: object) -> str:
    return f"{namespace}/{name}" if namespace else str(name)


def _plain(value: object, depth: int = 0) -> Any:
    """Return a value as JSON can hold it; API objects are cut down to what names them."""
    match value:
        case None | bool() | int() | str():
            return value if type(value) in _JSON_TYPES else _text(value)
        case float():
            return value if isfinite(value) else str(value)
        case bytes():
            return value.decode("utf-8", "replace")
        case BaseException():
            return describe(value)
        case _ if depth > _MAX_DEPTH:
            return _text(value)
        case _ if (named := _named(value)) is not None:
            return named
        case Mapping():
            return {_text(key): _plain(item, depth + 1) for key, item in value.items()}
        case list() | tuple() | set() | frozenset() | deque():
            return [_plain(item, depth + 1) for item in value]
        case _:
            return _text(value)


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception as error:  # noqa: BLE001 - a broken __str__ must not break the program that logs
        return f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"


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
_RESERVED: Final = frozenset({"level", "ts", "logger", "msg", "stacktrace"})


def describe(error: BaseException) -> str:
    """Return an exception in one line, as a user wants to read it: type and message, and of what it was caused."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    cause = error.__cause__
    return text if cause is None or str(cause) in text else f"{text} (caused by {type(cause).__name__}: {cause})"


def _rfc3339(nanoseconds: int) -> str:
    return f"{_utc(nanoseconds):%Y-%m-%dT%H:%M:%S}Z"


def _rfc3339nano(nanoseconds: int) -> str:
    fraction = f"{nanoseconds % 1_000_000_000:09}".rstrip("0")
    return f"{_utc(nanoseconds):%Y-%m-%dT%H:%M:%S}{'.' if fraction else ''}{fraction}Z"


def _iso8601(nanoseconds: int) -> str:
    return f"{_utc(nanoseconds):%Y-%m-%dT%H:%M:%S}.{nanoseconds % 1_000_000_000 // 1_000_000:03}Z"


def _utc(nanoseconds: int) -> datetime:
    return datetime.fromtimestamp(nanoseconds // 1_000_000_000, UTC)


TIMES: Final[Mapping[TimeEncoding, Callable[[int], str | float]]] = {
    "epoch": lambda nanoseconds: nanoseconds / 1e9,
    "millis": lambda nanoseconds: nanoseconds / 1e6,
    "nano": lambda nanoseconds: nanoseconds,
    "iso8601": _iso8601,
    "rfc3339": _rfc3339,
    "rfc3339nano": _rfc3339nano,
}

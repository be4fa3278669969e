"""Values for a repr: of a Secret only names and sizes, wherever it is nested."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

__all__ = ["is_secret", "shown"]

_DATA: Final = frozenset({"data", "stringData", "string_data"})
_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""`kubectl apply` writes the whole object to this annotation, including the data of a Secret."""

_DEEPEST: Final = 32


class _Shown:
    """Replaces a value in a repr."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def is_secret(api_version: object, kind: object) -> bool:
    """Return whether these are the kind Secret of the core group; an object without an apiVersion may be one."""
    return kind == "Secret" and api_version in {"v1", "", None}


def shown(name: object, value: Any, *, of_secret: bool = False, depth: int = 0) -> Any:
    """Return the value of a member for a repr; `of_secret`: the object is a Secret."""
    if (of_secret and name in _DATA) or name == _APPLIED:
        return _sizes(value)
    if depth > _DEEPEST:
        return _Shown("…")
    if type(value) is dict:
        tree = cast("dict[str, Any]", value)
        secret = is_secret(tree.get("apiVersion"), tree.get("kind"))
        if tree.get("kind") == "SecretList":
            return {
                key: [_item(each) for each in inner] if key == "items" and isinstance(inner, list) else inner
                for key, inner in tree.items()
            }
        return {key: shown(key, inner, of_secret=secret, depth=depth + 1) for key, inner in tree.items()}
    if type(value) is list:
        return [shown("", each, depth=depth + 1) for each in value]
    return value


def _item(tree: Any) -> Any:
    """Return an item of a SecretList: it does not say what it is."""
    return shown("", {"kind": "Secret", **tree}) if isinstance(tree, dict) else tree


def _sizes(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _sizes(inner) for key, inner in cast("Mapping[str, Any]", value).items()}
    if value is None:
        return None
    unit = "bytes" if isinstance(value, bytes) else "characters"
    return _Shown(f"<{len(value)} {unit}>" if isinstance(value, str | bytes) else f"<{type(value).__name__}>")

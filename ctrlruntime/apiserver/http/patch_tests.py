"""The `test` operations of JSON patches, which compare texts as JSON has them."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ctrlruntime.errors import PatchError
from ctrlruntime.patch import item_at
from ctrlruntime.schema.rule_checks import escaped
from ctrlruntime.schema.trees import Document, encode


def check_tests(old: Document, operations: list[Document], body: bytes) -> None:
    """Refuse a test of a text that the patch writes otherwise than Go does, which compares the JSON: with `<` unescaped, for one.

    Raises: PatchError. What an operation before has written is as the patch wrote it.
    """
    if not any(operation.get("op") == "test" for operation in operations):
        return
    changed: list[str] = []
    try:
        written = _raw_list.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):  # with bytes that are no text
        return
    for operation, raw in zip(operations, written, strict=True):
        path = operation.get("path")
        if not isinstance(path, str):
            return
        if operation.get("op") != "test":
            changed += [each for each in (path, operation.get("from")) if isinstance(each, str)]
        elif path and not any(path.startswith(each) or each.startswith(path) for each in changed):
            node: Any = old
            for key in path.split("/")[1:]:
                node = item_at(node, key)
            if not _is_written(node, _raw_map.decode(raw).get("value") or _NULL):
                raise PatchError(f"testing value {path} failed: test failed")


_raw_list = msgspec.json.Decoder(list[msgspec.Raw])
_raw_map = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NULL: Final = msgspec.Raw(b"null")


def _is_written(value: Any, raw: msgspec.Raw) -> bool:
    """Tell whether the JSON has the texts of a value as Go writes them."""
    match value:
        case str():
            text = bytes(raw).strip()
            return not text.startswith(b'"') or text == escaped(encode(value).decode()).encode()
        case dict():
            if not bytes(raw).lstrip().startswith(b"{"):
                return True
            given = _raw_map.decode(raw)
            return all(_is_written(each, given[key]) for key, each in value.items() if key in given)
        case list():
            if not bytes(raw).lstrip().startswith(b"["):
                return True
            return all(_is_written(each, other) for each, other in zip(value, _raw_list.decode(raw), strict=False))
        case _:
            return True


__all__ = ["check_tests"]

"""Sets values in a YAML file of the user: its comments, its order and its line breaks stay.

The lines of a value are replaced in place, and the result is read again. If it does not have the new value (anchors, maps in one line,
and other cases), the whole file is written instead. The caller is notified.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from ctrlruntime.api.yaml_nodes import compose
from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.documents import read_one
from ctrlruntime.generate.options import Document
from ctrlruntime.generate.text import dump

__all__ = ["REMOVED", "Edited", "Keys", "with_values"]

Keys: TypeAlias = tuple[str, ...]
"""The path of a value: keys of maps, from the root."""

REMOVED: Final = object()
"""Used as a value: the key is removed."""


@dataclass(frozen=True, slots=True)
class Edited:
    """A text with its values set."""

    text: str
    is_rewritten: bool
    """The text could not be edited in place: comments are lost and keys are sorted."""


class _UnfitError(Exception):
    """A text has a form that is not edited in its place."""


def with_values(text: str, values: Mapping[Keys, Any], where: str) -> Edited:
    """Return the text with these values. Raises: ConfigError, which names `where`, for a text that is not one map of YAML."""
    tree = read_one(text, where)
    if not isinstance(tree, dict):
        raise ConfigError(f"{where} must have one YAML map")
    wanted = copy.deepcopy(cast("Document", tree))
    for keys, value in values.items():
        _set_in_tree(wanted, keys, value, where)
    if wanted == tree:
        return Edited(text, is_rewritten=False)
    try:
        found = text if text.endswith("\n") else f"{text}\n"
        for keys, value in values.items():
            found = _set_in_text(found, keys, value, wanted)
        if read_one(found, where) == wanted:
            return Edited(found, is_rewritten=False)
    except (_UnfitError, ConfigError):
        pass
    return Edited(_anew(wanted, where), is_rewritten=True)


def _anew(wanted: Document, where: str) -> str:
    try:
        text = dump(wanted)
        if read_one(text, where) == wanted:
            return text
    except ConfigError:
        pass
    raise ConfigError(f"cannot update {where}: YAML does not keep the new values. Remove special characters from them")


def _set_in_tree(tree: Document, keys: Keys, value: Any, where: str) -> None:
    for key in keys[:-1]:
        below = tree.get(key)
        if below is None:
            if value is REMOVED:
                return
            below = tree[key] = {}
        if not isinstance(below, dict):
            raise ConfigError(f"{where}: {key} must be a map")
        tree = cast("Document", below)
    if value is REMOVED:
        tree.pop(keys[-1], None)
    else:
        tree[keys[-1]] = value


# In the text


def _set_in_text(text: str, keys: Keys, value: Any, wanted: Any) -> str:
    """Return the text with one value set. `wanted`: the whole tree as it shall be in the end."""
    import yaml

    node: Any = next(compose(text))
    for depth, key in enumerate(keys):
        if not isinstance(node, yaml.MappingNode) or node.flow_style or not node.value:
            raise _UnfitError
        pair = next((pair for pair in node.value if pair[0].value == key), None)
        is_last = depth == len(keys) - 1
        wanted = wanted.get(key, {}) if isinstance(wanted, dict) else {}
        if pair is not None and not is_last and not _is_empty(pair[1]):
            node = pair[1]
            if _is_in_line(node, text):
                return _replace(text, pair, wanted)
            continue
        if value is REMOVED:
            return text if pair is None or not is_last else _with_lines(text, *_place(pair), "")
        for below in reversed(keys[depth + 1 :]):
            value = {below: value}
        return _insert(text, node, key, value) if pair is None else _replace(text, pair, value)
    raise _UnfitError


def _is_in_line(node: Any, text: str) -> bool:
    """Tell whether a value is a map in braces, which is written anew as a whole; not one with comments in it."""
    import yaml

    is_flow = isinstance(node, yaml.MappingNode) and bool(node.flow_style)
    return is_flow and "#" not in text[node.start_mark.index : node.end_mark.index]


def _is_empty(node: Any) -> bool:
    """Tell whether a value is null or an empty map, which has no place for a key."""
    return node.tag.endswith(":null") or (node.tag.endswith(":map") and not node.value)


def _replace(text: str, pair: Any, value: Any) -> str:
    key, old = pair
    start, end = _place(pair)
    new = _block(key.value, value, key.start_mark.column)
    line = text.splitlines(keepends=True)[end - 1]
    rest = line[old.end_mark.column :].rstrip("\n")
    first, _, others = new.partition("\n")
    has_room = not others or first.endswith(":")
    if has_room and old.end_mark.line == end - 1 and rest.lstrip().startswith("#"):
        new = f"{first}{rest}\n{others}"
    return _with_lines(text, start, end, new)


def _insert(text: str, node: Any, key: str, value: Any) -> str:
    """Put a key after the last one that is before it in the alphabet, or before all."""
    before = [pair for pair in node.value if pair[0].value < key]
    at = _place(before[-1])[1] if before else node.value[0][0].start_mark.line
    return _with_lines(text, at, at, _block(key, value, node.value[0][0].start_mark.column))


def _place(pair: Any) -> tuple[int, int]:
    """The lines of a key and its value: the first, and the one after the last."""
    return pair[0].start_mark.line, _after(pair[1])


def _after(node: Any) -> int:
    """The line after a value. A block of keys or items is told to end where the next one begins, so its last value is asked."""
    import yaml

    if isinstance(node, yaml.MappingNode) and not node.flow_style and node.value:
        return _after(node.value[-1][1])
    if isinstance(node, yaml.SequenceNode) and not node.flow_style and node.value:
        return _after(node.value[-1])
    mark: Any = node.end_mark
    is_block_text = isinstance(node, yaml.ScalarNode) and node.style in {"|", ">"}
    return int(mark.line if is_block_text and mark.column == 0 else mark.line + 1)


def _block(key: str, value: Any, indent: int) -> str:
    lines = dump({key: value}).removeprefix("---\n").splitlines(keepends=True)
    return "".join(f"{' ' * indent}{line}" if line.strip() else line for line in lines)


def _with_lines(text: str, start: int, end: int, new: str) -> str:
    lines = text.splitlines(keepends=True)
    return "".join([*lines[:start], new, *lines[end:]])

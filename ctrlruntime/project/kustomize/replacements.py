"""Values that are copied from one object into fields of others."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ctrlruntime.cel.patterns import compile_pattern
from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.documents import plain, read_settings, scalar
from ctrlruntime.project.kustomize.files import read_text
from ctrlruntime.project.kustomize.resources import Resource, Resources
from ctrlruntime.project.kustomize.settings import Entry, read_selector, read_selectors

__all__ = ["apply_replacements"]

_SOURCE: Final = ("group", "version", "kind", "name", "namespace", "fieldPath", "options")
_TARGET: Final = ("select", "reject", "fieldPaths", "options")
_OPTIONS: Final = ("delimiter", "index", "create", "encoding")
_STEP: Final = re.compile(r"\[[^\]]*\]|(?:\\.|[^.\\\[])+|\[")


@dataclass(frozen=True, slots=True)
class _Slot:
    """A place in a tree that can be read and written. A new one holds nothing yet."""

    read: Callable[[], Any]
    write: Callable[[Any], None]
    is_new: bool = False


def apply_replacements(said: Entry, folder: Path, resources: Resources) -> None:
    """Apply `replacements`. Raises: ConfigError for a source or a field that is not there."""
    for entry in said.entries("replacements", ("path", "source", "targets")):
        if entry.text("path"):
            for each in _from_file(entry, folder):
                _replace(each, resources)
        else:
            _replace(entry, resources)


def _from_file(entry: Entry, folder: Path) -> list[Entry]:
    name = entry.text("path")
    tree = read_settings(read_text(folder, name, entry.where), str(folder / name))
    listed = tree if isinstance(tree, list) else [tree]
    return Entry({"replacements": listed}, str(folder / name)).entries("replacements", ("source", "targets"))


def _replace(entry: Entry, resources: Resources) -> None:
    source = entry.entry("source", _SOURCE)
    targets = entry.entries("targets", _TARGET)
    if source is None or not targets:
        raise ConfigError(f"{entry.where}: a replacement requires a source and at least one target")
    value = _value(source, resources)
    for target in targets:
        select = read_selector(target, "select")
        if select is None:
            raise ConfigError(f"{target.where}: a target requires `select`")
        reject = read_selectors(target, "reject")
        for resource in resources:
            if select.names(resource) and not any(each.names(resource) for each in reject):
                _write(target, resource, value)


def _value(source: Entry, resources: Resources) -> Any:
    chosen = {key: value for key, value in source.tree.items() if key not in {"fieldPath", "options"}}
    select = read_selector(Entry({"source": chosen}, source.where), "source")
    found = [each for each in resources if select is not None and select.names(each)]
    if len(found) != 1:
        raise ConfigError(f"{source.where}: the source must be one object, but {len(found)} match {select}")
    path = source.text("fieldPath", "metadata.name")
    slots = _found(source.where, found[0], path, None)
    if not slots:
        raise ConfigError(f"{source.where}: {found[0].id} has no field {path}")
    value = slots[0].read()
    options = source.entry("options", _OPTIONS) or Entry({}, source.where)
    delimiter, index = options.text("delimiter"), options.number("index")
    if not delimiter:
        return value
    if isinstance(value, dict | list):
        raise ConfigError(f"{source.where}: {path} is not a string, so `delimiter` cannot split it")
    parts = plain(value).split(delimiter)
    if not 0 <= index < len(parts):
        raise ConfigError(f"{source.where}: {plain(value)!r} has no part {index} when split at {delimiter!r}")
    return parts[index]


def _write(target: Entry, resource: Resource, value: Any) -> None:
    options = target.entry("options", _OPTIONS) or Entry({}, target.where)
    made: Callable[[], Any] | None = None
    if options.flag("create"):
        made = type(value) if isinstance(value, dict | list) else str
    for path in target.texts("fieldPaths") or ["metadata.name"]:
        slots = _found(target.where, resource, path, made)
        if not slots:
            raise ConfigError(
                f"{target.where}: {resource.id} has no field {path}. Add `options: {{create: true}}`, or correct the path"
            )
        resource.remember()
        for slot in slots:
            slot.write(_mixed(slot, value, options, target.where))


def _found(where: str, resource: Resource, path: str, made: Callable[[], Any] | None) -> list[_Slot]:
    steps = _steps(path)
    if not steps:
        raise ConfigError(f"{where}: {path!r} is not a valid field path")
    try:
        return list(_slots(resource.tree, steps, made))
    except (LookupError, TypeError) as error:
        raise ConfigError(f"{where}: {resource.id}: {path}: {error.args[0]}") from error


def _mixed(slot: _Slot, value: Any, options: Entry, where: str) -> Any:
    """The new value of a field: the source's, or the old one with one part of it replaced."""
    old = slot.read()
    delimiter = options.text("delimiter")
    if delimiter:
        if isinstance(old, dict | list) or isinstance(value, dict | list):
            raise ConfigError(f"{where}: `delimiter` requires a string")
        parts, index = plain(old).split(delimiter), options.number("index")
        if index < 0:
            parts.insert(0, plain(value))
        elif index >= len(parts):
            parts.append(plain(value))
        else:
            parts[index] = plain(value)
        value = delimiter.join(parts)
    if isinstance(value, dict | list) or isinstance(old, dict | list):
        return copy.deepcopy(value)
    # A text stays a text, whatever is written into it. Everything else gets the type that the text has in YAML, even when the source is a
    # quoted number: so does kustomize.
    return plain(value) if isinstance(old, str) and not slot.is_new else scalar(plain(value))


# Paths


def _steps(path: str) -> list[str]:
    """The steps of a path: names between dots, `[key=value]`, `[a.dotted/key]`, numbers, `*`."""
    return [re.sub(r"\\(.)", r"\1", step) for step in _STEP.findall(path)]


def _slots(node: Any, steps: Sequence[str], made: Callable[[], Any] | None) -> Iterator[_Slot]:
    """Yield the places that a path leads to; `made` gives the value of one that has to be made."""
    step, rest = steps[0], steps[1:]
    is_condition = step.startswith("[") and "=" in step
    if node is None:
        return
    if step == "*":
        keys = list(node) if isinstance(node, dict) else list(range(len(node))) if isinstance(node, list) else []
        for key in keys:
            yield from _inside(node, key, rest, made, is_new=False)
    elif is_condition:
        yield from _where(node, step, rest, made)
    elif isinstance(node, list):
        yield from _at(node, step, rest, made)
    elif isinstance(node, dict):
        name = step[1:-1] if step.startswith("[") and step.endswith("]") else step
        is_new = name not in node
        if is_new and made is None:
            return
        if is_new:
            node[name] = _start(rest, made)
        yield from _inside(node, name, rest, made, is_new=is_new)
    else:
        raise TypeError("a value on the path is neither a map nor a list")


def _at(node: list[Any], step: str, rest: Sequence[str], made: Callable[[], Any] | None) -> Iterator[_Slot]:
    if step == "-" and made is not None:
        step = str(len(node))
    if not step.isdigit():
        raise TypeError(f"{step!r} is not an index of a list. Use a number, [key=value] or *")
    index = int(step)
    is_new = index == len(node) and made is not None
    if is_new:
        node.append(_start(rest, made))
    if index >= len(node):
        raise LookupError(f"index {index} is out of range for a list of {len(node)}")
    yield from _inside(node, index, rest, made, is_new=is_new)


def _where(node: Any, step: str, rest: Sequence[str], made: Callable[[], Any] | None) -> Iterator[_Slot]:
    if not isinstance(node, list):
        raise TypeError(f"{step} requires a list")
    key, _, value = step[1:-1].partition("=")
    found = [at for at, item in enumerate(node) if _has(item, key, value)]
    is_new = not found and made is not None
    if is_new:
        node.append({key: value} if key else value)
        found = [len(node) - 1]
    for at in found:
        yield from _inside(node, at, rest, made, is_new=False)


def _has(item: Any, key: str, value: str) -> bool:
    if not key:
        return not isinstance(item, dict | list) and _matches(value, plain(item))
    if not isinstance(item, dict) or key not in item or isinstance(item[key], dict | list):
        return False
    return _matches(value, plain(item[key]))


def _matches(pattern: str, text: str) -> bool:
    try:
        return compile_pattern(pattern).matches(text)
    except ValueError as error:
        raise ConfigError(f"{pattern!r} in a replacement's path is not a regular expression: {error}") from error


def _inside(
    node: Any, key: Any, rest: Sequence[str], made: Callable[[], Any] | None, *, is_new: bool
) -> Iterator[_Slot]:
    if rest:
        yield from _slots(node[key], rest, made)
    else:
        yield _Slot(lambda: node[key], lambda value: node.__setitem__(key, value), is_new)


def _start(rest: Sequence[str], made: Callable[[], Any] | None) -> Any:
    """What a new place starts from: a list before an index or a condition, a map before a name, else the end's value."""
    if not rest:
        return made() if made is not None else None
    step = rest[0]
    return [] if step.isdigit() or step == "-" or (step.startswith("[") and "=" in step) else {}

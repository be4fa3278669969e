"""Variables of a scenario: `$(name)` in its texts, generated bodies, and paths into answers.

| in a tree | becomes |
|---|---|
| ``$(name)`` alone in a string | the value itself, of whatever type |
| ``$(name)`` in a longer string | its text |
| ``{$repeat: text, times: N}`` | the text N times |
| ``{$list: item, times: N}`` | a list of N items; ``$(i)`` in them counts from 0 |

A path is `metadata.labels["a.b/c"]` or `items[0].metadata.name`; `items[-1]` is the last one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

NOTHING = object()
"""The value of `$(nothing)`: a key that has it is left out."""
_NAME = re.compile(r"\$\(([a-z][A-Za-z0-9_.]*)\)")
_STEP = re.compile(r"""\.?([^.\[\]"]+)|\[(-?\d+)\]|\["([^"]*)"\]""")


class UnknownVariableError(Exception):
    """A scenario names a variable that nothing has set."""


def substitute(node: Any, variables: Mapping[str, Any]) -> Any:
    """Return a copy of the tree with its variables replaced. Raises: UnknownVariableError."""
    match node:
        case str():
            return _text(node, variables)
        case {"$repeat": text, "times": times}:
            return substitute(text, variables) * int(substitute(times, variables))
        case {"$list": item, "times": times}:
            return [substitute(item, {**variables, "i": i}) for i in range(int(substitute(times, variables)))]
        case dict():
            made = {_text(key, variables): substitute(value, variables) for key, value in node.items()}
            return {key: value for key, value in made.items() if value is not NOTHING}
        case list():
            return [substitute(item, variables) for item in node]
        case _:
            return node


def _text(text: Any, variables: Mapping[str, Any]) -> Any:
    if not isinstance(text, str) or "$(" not in text:
        return text
    whole = _NAME.fullmatch(text)
    if whole:
        return _value(whole[1], variables)
    return _NAME.sub(lambda match: str(_value(match[1], variables)), text)


def _value(name: str, variables: Mapping[str, Any]) -> Any:
    if name in variables:
        return substitute(variables[name], variables)  # a case's values may name other variables
    first, _, rest = name.partition(".")
    if rest and (value := read_path(variables.get(first), rest)) is not None:
        return substitute(value, variables)
    raise UnknownVariableError(
        f"$({name}) is set by no capture, case or default; known: {', '.join(sorted(variables))}"
    )


def split_path(path: str) -> list[str | int]:
    """Return the keys and indexes of a path."""
    steps: list[str | int] = []
    end = 0
    for match in _STEP.finditer(path):
        if match.start() != end:
            break
        end = match.end()
        key, index, quoted = match.groups()
        steps.append(int(index) if index is not None else key if key is not None else quoted)
    if end != len(path):
        raise ValueError(f'{path!r} is not a path; write a.b[0].c or a["b.c"]')
    return steps


def read_path(tree: Any, path: str, default: Any = None) -> Any:
    """Return what stands at the path, or the default."""
    for step in split_path(path):
        is_item = isinstance(step, int) and isinstance(tree, list) and -len(tree) <= step < len(tree)
        is_member = isinstance(step, str) and isinstance(tree, dict) and step in tree
        if not is_item and not is_member:
            return default
        tree = tree[step]
    return tree


def drop_path(tree: Any, path: str) -> None:
    """Remove what stands at the path, `[*]` and `.*` meaning each, `..key` anywhere; nothing there is no error."""
    if path.startswith(".."):
        _drop_key(tree, path[2:])
    else:
        _drop(tree, _wild(path))


def _drop_key(node: Any, key: str) -> None:
    if isinstance(node, dict):
        node.pop(key, None)
    for value in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        _drop_key(value, key)


def _wild(path: str) -> list[str | int]:
    return [step for part in path.replace("[*]", ".*").split(".*") for step in (*split_path(part.lstrip(".")), "*")][
        :-1
    ]


def _drop(tree: Any, steps: list[str | int]) -> None:
    first, *rest = steps
    if first == "*":
        for value in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
            _drop(value, rest)
        return
    inside = (
        first in tree
        if isinstance(tree, dict)
        else isinstance(first, int) and isinstance(tree, list) and first < len(tree)
    )
    if not inside:
        return
    if rest:
        _drop(tree[first], rest)
    else:
        del tree[first]

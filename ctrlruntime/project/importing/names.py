"""Python names for JSON names: attributes for fields, and names of classes from the path of a schema."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable
from itertools import chain

from ctrlruntime.api.fields import camel
from ctrlruntime.api.object import Object

__all__ = ["ClassNames", "FieldNames", "pascal"]

_WORD = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[A-Z]")
_IN_ANNOTATIONS = frozenset({"bool", "bytes", "core", "crd", "ctrl", "dict", "float", "int", "list", "meta", "str"})
"""Names in annotations. A field of that name would hide it in the body of its class."""
_TAKEN = frozenset(dir(builtins)) | {"Annotated", "Any", "Field", "Literal", "TypeAlias"}


class FieldNames:
    """The attributes of one class; each name on the wire gets another one."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def of(self, wire: str) -> str:
        """Return the attribute of a field: `podIP` is `pod_ip`, `from` is `from_`."""
        name = _snake(wire)
        if keyword.iskeyword(name) or name in _IN_ANNOTATIONS or hasattr(Object, name) or name.startswith("model_"):
            name += "_"
        if name in {"api_version", "kind", "metadata"} and camel(name) != wire:
            name += "_"  # those of an object itself
        free, number = name, 2
        while free in self._used:
            free, number = f"{name.rstrip('_')}_{number}", number + 1
        self._used.add(free)
        return free


def _snake(wire: str) -> str:
    words = [word.lower() for part in re.split(r"[^A-Za-z0-9]+", wire) for word in _parts(part)]
    name = "_".join(words)
    if camel(name) != wire:
        # `s3Bucket` and `ipv4` read better as one word with its digit, and then need no alias either.
        tight = re.sub(r"_(?=[0-9])|(?<=[0-9])_(?=[a-z]+$)", "", name)
        name = next((one for one in (tight, re.sub(r"_(?=[0-9])", "", name)) if camel(one) == wire), tight)
    if not name:
        return "field"
    return name if name[0].isalpha() else f"field_{name}"


def _parts(text: str) -> list[str]:
    return _WORD.findall(text)


def pascal(wire: str) -> str:
    """Return a name as that of a class: `podTemplate` is `PodTemplate`."""
    parts = re.split(r"[^A-Za-z0-9]+", wire)
    return "".join(part[:1].upper() + part[1:] for part in parts)


class ClassNames:
    """Names of classes, each given once."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._used: set[str] = set(_TAKEN)

    def take(self, *wanted: str) -> str:
        """Return the first wanted name that is free, else the last one with a number."""
        names = [self._prefix + name for name in wanted]
        names = [name if name[:1].isalpha() and not keyword.iskeyword(name) else f"Class{name}" for name in names]
        last = names[-1]
        free = next((name for name in chain(names, _numbered(last)) if name not in self._used), last)
        self._used.add(free)
        return free

    def for_path(self, owner: str, version: str, steps: tuple[str, ...]) -> str:
        """Return the name of a class at a path below a kind: `GameSpec`, then `SpecTemplate`, or more of the path when that is taken."""
        owner = owner.removeprefix(self._prefix)
        if len(steps) == 1:
            return self.take(owner + steps[0], f"{owner}{pascal(version)}{steps[0]}")
        ends = ["".join(steps[-count:]) for count in range(2, len(steps) + 1)]
        return self.take(*ends, owner + ends[-1], f"{owner}{pascal(version)}{ends[-1]}")


def _numbered(name: str) -> Iterable[str]:
    return (f"{name}{number}" for number in range(2, 10_000))

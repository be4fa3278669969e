"""The proof of an import: the written module is run, its definitions are generated again, and both are compared."""

from __future__ import annotations

import itertools
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ctrlruntime.api.object import Object
from ctrlruntime.errors import GenerateError
from ctrlruntime.generate import Options, crds
from ctrlruntime.generate.options import Document
from ctrlruntime.project.importing.definitions import name_of
from ctrlruntime.project.importing.meaning import differences

__all__ = ["lost", "regenerated"]

_NUMBERS: Final = itertools.count()


def lost(source: str, definitions: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each place where the classes of a module say something else than the definitions."""
    try:
        made = {name_of(definition): definition for definition in regenerated(source)}
    except GenerateError as error:
        return [f"the classes were written, and `ctrl manifests` will refuse them: {_own(str(error))}"]
    return [
        f"{name_of(definition)}: {line}"
        for definition in definitions
        for line in differences(definition, made[name_of(definition)])
    ]


def regenerated(source: str) -> list[Document]:
    """Return the definitions of the classes of a module. Raises: GenerateError."""
    # A module that can be found: pydantic looks up annotations that are text in the module of their class.
    name = f"{_PREFIX}{next(_NUMBERS)}"
    module = sys.modules[name] = types.ModuleType(name)
    try:
        exec(compile(source, name, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - written by us: texts in it are quoted
        return crds(_kinds(module), options=Options(), warn=lambda _: None)
    finally:
        del sys.modules[name]


_PREFIX: Final = "ctrlruntime_imported_"


def _kinds(module: types.ModuleType) -> Iterator[type[Object]]:
    for found in vars(module).values():
        if isinstance(found, type) and issubclass(found, Object) and found.__module__ == module.__name__:
            yield found


def _own(message: str) -> str:
    return message.partition(".")[2] if message.startswith(_PREFIX) else message

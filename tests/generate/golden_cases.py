"""All cases with a golden: file name → what the generator writes for the classes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import cases_fields
import cases_kinds
import cases_options
import cases_types
import cases_validation

from ctrlruntime.api.object import Object
from ctrlruntime.generate import Options, crds, dump, file_name

GOLDEN = Path(__file__).parent / "golden" / "crd"
OPTIONS = {
    "builtin.example.com": Options(max_description=0),
    "floats.example.com": Options(allow_floats=True),
    "short.example.com": Options(max_description=45),
    "sorted.example.com": Options(sort_enums=True),
}


def kinds() -> dict[tuple[str, str], list[type[Object]]]:
    found: dict[tuple[str, str], list[type[Object]]] = {}
    for module in (cases_validation, cases_fields, cases_kinds, cases_types, cases_options):
        for cls in _classes(module):
            info = cls.__kind_info__
            found.setdefault((info.group, info.kind), []).append(cls)
    return found


def _classes(module: ModuleType) -> Iterator[type[Object]]:
    for value in vars(module).values():
        is_own = isinstance(value, type) and issubclass(value, Object) and value.__module__ == module.__name__
        if is_own and value.__name__ not in {"Plain", "BuiltIn"}:
            yield value


def text_of(classes: list[type[Object]]) -> tuple[str, str]:
    """(file name, text) of one definition."""
    (definition,) = crds(classes, options=OPTIONS.get(classes[0].__kind_info__.group), warn=lambda _: None)
    return file_name(definition), dump(definition)

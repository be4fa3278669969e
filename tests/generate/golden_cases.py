"""All cases with a golden: file name → what the generator writes for the classes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from ipaddress import IPv4Address
from pathlib import Path
from types import ModuleType
from typing import Any

import cases_fields
import cases_kinds
import cases_options
import cases_types
import cases_validation
from pydantic import AnyUrl

from ctrlruntime.api.object import Object
from ctrlruntime.field import Duration
from ctrlruntime.generate import Options, crds, dump, file_name
from ctrlruntime.generate.builtin import LOOSE_QUANTITY, QUANTITY
from ctrlruntime.generate.marks import RULES
from ctrlruntime.generate.texts import text_of

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


# What controller-gen says of the same types is looser than what the classes read.
TIGHTER = {text_of(cls).keywords.get("pattern") for cls in (Duration, date, IPv4Address, AnyUrl)} - {None}


def as_controller_gen_says(tree: Any) -> Any:
    """Return a definition without what the generator says beyond controller-gen."""
    if isinstance(tree, list):
        return [as_controller_gen_says(one) for one in tree]
    if not isinstance(tree, dict):
        return tree
    looser = {key: as_controller_gen_says(value) for key, value in tree.items()}
    pattern = looser.get("pattern")
    if pattern == QUANTITY["pattern"]:
        looser["pattern"] = LOOSE_QUANTITY
    elif isinstance(pattern, str) and pattern in TIGHTER:
        del looser["pattern"]
    if all(rule.get("message", "").startswith("the keys must ") for rule in looser.get(RULES, [{}])):
        del looser[RULES]
        looser.pop("maxProperties", None)
    return looser


def written(classes: list[type[Object]]) -> tuple[str, str]:
    """(file name, text) of one definition, as controller-gen would write it."""
    (definition,) = crds(classes, options=OPTIONS.get(classes[0].__kind_info__.group), warn=lambda _: None)
    return file_name(definition), dump(as_controller_gen_says(definition))

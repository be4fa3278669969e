"""The built-in classes (core.Container, meta.LabelSelector …), found by the schema they have."""

from __future__ import annotations

import difflib
import functools
import json
from collections.abc import Mapping
from typing import Any

from ctrlruntime.api import core, meta
from ctrlruntime.api.fields import wire_names
from ctrlruntime.api.model import Model
from ctrlruntime.errors import GenerateError
from ctrlruntime.generate.builtin import EMBEDDED_METADATA, builtin_name, builtin_schema
from ctrlruntime.generate.options import Place
from ctrlruntime.project.importing.meaning import normal_schema

__all__ = ["builtin_class"]

_OF_THE_USE = ("description", "default", "nullable", "example", "x-kubernetes-embedded-resource")


def builtin_class(schema: Mapping[str, Any], name: str) -> str | None:
    """Return the built-in class that has exactly this schema, as `core.Container`; of several, the one nearest to `name`.

    None without one, or with too little information: an object with one field might be anything.
    """
    properties: Mapping[str, Any] = schema.get("properties") or {}
    if len(properties) < 2 and "x-kubernetes-map-type" not in schema:
        return None
    wanted = _form(schema)
    if wanted == _form(EMBEDDED_METADATA):
        return "meta.ObjectMeta"
    found = [source for source, cls in _by_fields().get(frozenset(properties), ()) if _schema(cls) == wanted]
    return max(
        found, key=lambda source: difflib.SequenceMatcher(None, source.lower(), name.lower()).ratio(), default=None
    )


@functools.cache
def _by_fields() -> Mapping[frozenset[str], list[tuple[str, type[Model]]]]:
    found: dict[frozenset[str], list[tuple[str, type[Model]]]] = {}
    for module, prefix in ((core, "core"), (meta, "meta")):
        for name in module.__all__:
            cls: Any = getattr(module, name)
            if isinstance(cls, type) and issubclass(cls, Model):
                fields = frozenset(wire_names(cls).values())
                found.setdefault(fields, []).append((f"{prefix}.{name}", cls))
    return found


@functools.cache
def _schema(cls: type[Model]) -> str:
    name = builtin_name(cls)
    if name is None:
        return ""
    try:
        return _form(builtin_schema(name, Place(cls), embedded_metadata=True))
    except GenerateError:
        return ""  # it contains itself


def _form(schema: Mapping[str, Any]) -> str:
    own = {key: one for key, one in schema.items() if key not in _OF_THE_USE}
    return json.dumps(normal_schema(own), sort_keys=True)

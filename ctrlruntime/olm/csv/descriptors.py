"""Descriptors: how a console shows the fields of spec and status, from the classes.

Each field of spec and status has a descriptor, and so has each nested field with one value. A nested object or list of objects has one
if `OLMDescriptor` is set on it. Lists of plain values, maps and objects of built-in types (a Container, a LabelSelector) are one value.
Without a class, the fields of spec and status come from the schema of the CRD.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ctrlruntime.api.annotations import Annotation, take_apart
from ctrlruntime.api.fields import wire_names
from ctrlruntime.api.kind import KindInfo
from ctrlruntime.api.object import Object, kind_of
from ctrlruntime.generate.builtin import builtin_name
from ctrlruntime.generate.descriptions import clean
from ctrlruntime.generate.options import Document, Place
from ctrlruntime.markers import OLMDescriptor, PreserveUnknownFields, Schemaless
from ctrlruntime.olm.csv.hints import hints_of, hints_of_schema, urns
from ctrlruntime.olm.trees import mapping

__all__ = ["Described", "descriptors_of", "spaced"]

_WORD: Final = re.compile(r"[A-Z]+s?[0-9]*(?![a-z])|[A-Z]?[a-z]+[0-9]*|[0-9]+")
_LISTS: Final = (list, tuple, set, frozenset)


@dataclass(slots=True)
class Described:
    """The descriptors of a kind in one version, in their order."""

    spec: list[Document] = field(default_factory=list[Document])
    status: list[Document] = field(default_factory=list[Document])


def descriptors_of(cls: type[Object] | None, version: Mapping[str, Any]) -> Described:
    """Return the descriptors of a class, or of a version of a CRD. Raises: GenerateError for an unknown hint."""
    if cls is None:
        return Described(_of_schema(version, "spec"), _of_schema(version, "status"))
    return Described(*(_sorted(_Walk(cls, part).found()) for part in ("spec", "status")))


def spaced(name: str) -> str:
    """Return a name as words for people: `minReplicas` is `Min Replicas`, `podIP` is `Pod IP`."""
    return " ".join(word[:1].upper() + word[1:] for word in _WORD.findall(name)) or name


@dataclass(frozen=True, slots=True)
class _Found:
    """A descriptor, and its place in the order."""

    entry: Document
    order: int | None

    @property
    def key(self) -> tuple[float, str]:
        return (float("inf") if self.order is None else self.order, self.entry["path"])


def _sorted(found: Iterator[_Found]) -> list[Document]:
    return [each.entry for each in sorted(found, key=lambda each: each.key)]


class _Walk:
    """Goes through the fields of spec or status."""

    def __init__(self, cls: type[Object], part: str) -> None:
        self._cls = cls
        self._part = part
        self._counts = _counts(kind_of(cls), part)
        self._open: list[type[BaseModel]] = []

    def found(self) -> Iterator[_Found]:
        info = self._cls.model_fields.get(self._part)
        if info is None:
            return
        inner, _ = _inside(take_apart(info.annotation, info.metadata))
        if inner is not None:
            yield from self._fields(inner, "")

    def _fields(self, cls: type[BaseModel], before: str) -> Iterator[_Found]:
        if cls in self._open:
            return
        if not cls.__pydantic_complete__:
            cls.model_rebuild()
        self._open.append(cls)
        for name, wire in wire_names(cls).items():
            yield from self._field(cls.model_fields[name], before + wire, Place(cls, f".{name}"))
        self._open.pop()

    def _field(self, info: FieldInfo, path: str, place: Place) -> Iterator[_Found]:
        annotation = take_apart(info.annotation, info.metadata)
        annotation.description = info.description or annotation.description
        said = next((each for each in reversed(annotation.markers) if isinstance(each, OLMDescriptor)), None)
        if said is not None and said.hidden:
            return
        inner, is_list = _inside(annotation)
        if inner is None or said is not None or "." not in path:
            yield self._descriptor(annotation, said or OLMDescriptor(), path, place)
        if inner is not None:
            yield from self._fields(inner, f"{path}[0]." if is_list else f"{path}.")

    def _descriptor(self, annotation: Annotation, said: OLMDescriptor, path: str, place: Place) -> _Found:
        hints = hints_of(annotation, is_spec=self._part == "spec", is_count=path == self._counts)
        entry: Document = {
            "path": path,
            "displayName": said.display or spaced(path.rpartition(".")[2]),
            "description": clean(annotation.description),
            "x-descriptors": urns(said.x, place) or hints,
        }
        return _Found({word: value for word, value in entry.items() if value}, said.order)


def _inside(annotation: Annotation) -> tuple[type[BaseModel] | None, bool]:
    """Return the user's class whose fields a field has, and whether it has a list of them; None for what is one value."""
    if Schemaless in annotation.markers or PreserveUnknownFields in annotation.markers:
        return None, False
    bare, is_list = annotation.bare, False
    if get_origin(bare) in _LISTS:
        bare, is_list = take_apart(get_args(bare)[0]).bare, True
    if not (isinstance(bare, type) and issubclass(bare, BaseModel)):
        return None, False
    is_ours = builtin_name(bare) is None and not hasattr(bare, "__ctrl_schema__")
    return (bare, is_list) if is_ours else (None, False)


def _counts(info: KindInfo, part: str) -> str:
    """Return the path, below spec or status, of the number of replicas that the scale subresource has; empty without one."""
    if info.scale is None:
        return ""
    return (info.scale.spec_replicas if part == "spec" else info.scale.status_replicas).removeprefix(f".{part}.")


def _of_schema(version: Mapping[str, Any], part: str) -> list[Document]:
    schema = mapping(mapping(version.get("schema")).get("openAPIV3Schema"))
    fields = mapping(mapping(mapping(schema.get("properties")).get(part)).get("properties"))
    scale = mapping(mapping(version.get("subresources")).get("scale"))
    counts = str(scale.get(f"{part}ReplicasPath")).removeprefix(f".{part}.")
    found: list[Document] = []
    for name in sorted(fields):
        one = mapping(fields[name])
        entry: Document = {
            "path": name,
            "displayName": spaced(name),
            "description": one.get("description"),
            "x-descriptors": hints_of_schema(name, one, is_spec=part == "spec", is_count=name == counts),
        }
        found.append({word: value for word, value in entry.items() if value})
    return found

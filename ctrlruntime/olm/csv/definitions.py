"""Owned CRDs: how catalogs and consoles present the project's kinds, with an entry for each served version.

Values in the base override others, field by field; descriptors are identified by their paths. Entries of the base keep their places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ctrlruntime.api.kind import OLM, GroupVersionKind, OLMAction, version_priority
from ctrlruntime.api.object import Object, kind_of
from ctrlruntime.generate.descriptions import clean, docstring
from ctrlruntime.generate.options import Document, Place, Warn
from ctrlruntime.olm.csv.descriptors import descriptors_of, spaced
from ctrlruntime.olm.csv.hints import urns
from ctrlruntime.olm.csv.objects import Objects, name_of
from ctrlruntime.olm.trees import mapping, maps

__all__ = ["owned_definitions"]

_LISTS = ("specDescriptors", "statusDescriptors", "actionDescriptors")


class _Key(NamedTuple):
    """The identity of an entry."""

    name: str
    version: str
    kind: str


def owned_definitions(
    objects: Objects,
    said: Sequence[Mapping[str, Any]],
    kinds: Iterable[type[Object]],
    owns: Mapping[GroupVersionKind, Sequence[GroupVersionKind]],
    warn: Warn,
) -> list[Document]:
    """Return the entries of the CRDs, which stay files. Raises: GenerateError for an unknown hint."""
    classes = {kind_of(each).gvk: each for each in kinds}
    made: dict[_Key, Document] = {}
    orders: dict[_Key, float] = {}
    for key, gvk, version in _served(objects):
        cls = classes.get(gvk)
        made[key] = _entry(key, cls, version, _owned_by(gvk, owns))
        olm = kind_of(cls).olm if cls is not None else None
        orders[key] = float("inf") if olm is None or olm.order is None else olm.order
    before: dict[_Key, Mapping[str, Any]] = {_key(each): each for each in said}
    for key in sorted(before.keys() - made.keys()):
        warn(
            f"the base describes {key.kind} {key.version} ({key.name}), but no CRD serves it, so it is left out. Remove it from the base"
        )
    first = [_merged(before[key], made[key]) for key in before if key in made]
    rest = sorted(made.keys() - before.keys(), key=lambda key: (orders[key], key.name, version_priority(key.version)))
    return [*first, *(made[key] for key in rest)]


def _served(objects: Objects) -> Iterator[tuple[_Key, GroupVersionKind, Document]]:
    """Yield each served version of a CRD."""
    for definition in objects.definitions:
        spec = mapping(definition.get("spec"))
        group, kind = str(spec.get("group")), str(mapping(spec.get("names")).get("kind"))
        for version in maps(spec.get("versions")):
            if version.get("served") is not False:
                name = str(version.get("name"))
                yield _Key(name_of(definition), name, kind), GroupVersionKind(group, name, kind), version


def _key(entry: Mapping[str, Any]) -> _Key:
    return _Key(str(entry.get("name")), str(entry.get("version")), str(entry.get("kind")))


def _entry(
    key: _Key, cls: type[Object] | None, version: Mapping[str, Any], owned: Sequence[GroupVersionKind]
) -> Document:
    info = kind_of(cls) if cls is not None else None
    olm = (info.olm if info is not None else None) or OLM()
    schema = mapping(mapping(version.get("schema")).get("openAPIV3Schema"))
    description = (
        clean(olm.description) or (docstring(cls) if cls is not None else "") or str(schema.get("description") or "")
    )
    described = descriptors_of(cls, version)
    entry: Document = {
        **key._asdict(),
        "displayName": olm.display_name or spaced(key.kind),
        "description": description,
        "resources": _resources(olm, owned),
        "specDescriptors": described.spec,
        "statusDescriptors": described.status,
        "actionDescriptors": [_action(each, cls) for each in olm.actions] if cls is not None else [],
    }
    return {word: value for word, value in entry.items() if value}


def _owned_by(
    gvk: GroupVersionKind, owns: Mapping[GroupVersionKind, Sequence[GroupVersionKind]]
) -> Sequence[GroupVersionKind]:
    """Return the kinds that a kind owns. Its controller reconciles one version; the objects are the same in all."""
    return [owned for each, many in owns.items() if each.group_kind == gvk.group_kind for owned in many]


def _resources(olm: OLM, owned: Sequence[GroupVersionKind]) -> list[Document]:
    if olm.resources is None:
        return [_resource(each.kind, each.version) for each in sorted(set(owned), key=lambda each: (each.kind, each))]
    found: list[Document] = []
    for each in olm.resources:
        parts: tuple[Any, ...] = each if isinstance(each, tuple) else (kind_of(each).kind, kind_of(each).version)
        found.append(_resource(*parts))
    return found


def _resource(kind: str, version: str, name: str = "") -> Document:
    return {"kind": kind, "name": name, "version": version}


def _action(action: OLMAction, cls: type[Object]) -> Document:
    entry: Document = {
        "path": action.path,
        "displayName": action.display or spaced(action.path.rpartition(".")[2]),
        "description": clean(action.description),
        "x-descriptors": urns(action.x, Place(cls, f": the action {action.path}")),
    }
    return {word: value for word, value in entry.items() if value} | (
        {} if action.value is None else {"value": action.value}
    )


def _merged(said: Mapping[str, Any], made: Mapping[str, Any]) -> Document:
    entry = {**made, **{word: value for word, value in said.items() if value}}
    for word in _LISTS:
        if said.get(word) and made.get(word):
            entry[word] = _merged_by_path(maps(said[word]), maps(made[word]))
    return entry


def _merged_by_path(said: Sequence[Mapping[str, Any]], made: Sequence[Mapping[str, Any]]) -> list[Document]:
    ours = {each["path"]: each for each in made}
    first = [
        {**ours.get(str(each.get("path")), {}), **{word: value for word, value in each.items() if value}}
        for each in said
    ]
    known = {str(each.get("path")) for each in said}
    return [*first, *(dict(each) for each in made if each["path"] not in known)]

"""The module of a file of definitions: a class for each version of each kind, and the proof that it says the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ctrlruntime.api.kind import KindInfo, ScalePaths, guess_plural
from ctrlruntime.errors import GenerateError
from ctrlruntime.generate.options import Document, Place, Warn, warn
from ctrlruntime.generate.paths import columns, scale, selectable_fields
from ctrlruntime.markers import PrinterColumn, printcolumn
from ctrlruntime.project.importing.classes import Owner, Types, description, markers_over
from ctrlruntime.project.importing.definitions import name_of
from ctrlruntime.project.importing.layout import Atom, Expression, Group, Text, call, docstring, lines, value
from ctrlruntime.project.importing.meaning import STAMPS
from ctrlruntime.project.importing.names import ClassNames, pascal
from ctrlruntime.project.importing.reading import lost

__all__ = ["source_of"]

_TYPING: Final = ("Annotated", "Literal", "TypeAlias")
_API: Final = ("core", "meta")


def source_of(
    definitions: Sequence[Document],
    *,
    class_prefix: str = "",
    external: bool = False,
    version: str = "",
    warn: Warn = warn,
) -> str:
    """Return a Python module with the classes of definitions, formatted.

    The module is read as data, its definitions are compared with the given ones; `warn` takes a line for each place that differs. The
    CRDs must be valid (checked by `importable`). `class_prefix` is added to the name of each class. `external` marks the kinds as those of
    another project. With `version`, the module has the classes of this version only.
    """
    written = _Module(class_prefix, external=external, version=version)
    for definition in definitions:
        written.learn(definition)
    kinds = [part for definition in definitions for part in written.reserve(definition)]
    for part in kinds:
        written.write(*part)
    source = written.source(definitions)
    for line in lost(source, [_only(definition, version) for definition in definitions] if version else definitions):
        warn(line)
    return source


def _only(definition: Document, version: str) -> Document:
    """Return a CRD as the class of one version alone says it: stored, and with labels and annotations if it is stored there."""
    spec: Document = definition["spec"]
    (one,) = [each for each in spec["versions"] if each["name"] == version]
    metadata = definition["metadata"] if one.get("storage") else {"name": name_of(definition)}
    return {**definition, "metadata": metadata, "spec": {**spec, "versions": [{**one, "storage": True}]}}


class _Module:
    def __init__(self, class_prefix: str, *, external: bool, version: str) -> None:
        self._external = external
        self._version = version
        self._names = ClassNames(class_prefix)
        self._types = Types(self._names)

    def learn(self, definition: Document) -> None:
        for version in self._versions(definition):
            self._types.learn(version["schema"]["openAPIV3Schema"])

    def reserve(self, definition: Document) -> Iterator[tuple[Document, Document, Owner]]:
        """Each version with the name of its class: the kind for the version that is stored, the kind and version for another."""
        versions = self._versions(definition)
        kind: str = definition["spec"]["names"]["kind"]
        group: str = definition["spec"]["group"]
        for version in sorted(versions, key=lambda one: not one.get("storage")):
            name = pascal(kind)
            name = name if version.get("storage") or len(versions) == 1 else f"{name}{pascal(version['name'])}"
            taken = self._names.take(name, f"{pascal(group.partition('.')[0])}{name}")
            yield definition, version, Owner(taken, version["name"])

    def _versions(self, definition: Document) -> list[Document]:
        versions: list[Document] = definition["spec"]["versions"]
        return [each for each in versions if self._version in {"", each["name"]}]

    def write(self, definition: Document, version: Document, owner: Owner) -> None:
        schema: Document = version["schema"]["openAPIV3Schema"]
        place = Place(type(owner.name, (), {}))
        text = description(schema)
        fields = self._types.fields(schema, owner, (), head=True)
        body = [*(docstring(text, indent=1) if text else ()), *([""] if text and fields else ()), *fields]
        over = [*_columns(version, schema, place), *markers_over(schema)]
        head = _head(definition, version, owner, place, external=self._external)
        self._types.blocks.append(
            [
                *(line for marker in over for line in lines(marker, before="@")),
                *lines(head, before="class ", after=":"),
                *(body or ["    pass"]),
            ]
        )

    def source(self, definitions: Sequence[Document]) -> str:
        body = "\n\n\n".join("\n".join(block) for block in self._types.blocks)
        used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
        imports = "\n\n".join(_imports(used))
        names = ", ".join(name_of(definition) for definition in definitions)
        head = "\n".join(docstring(f"The kinds of {names}, written by `ctrl import`; change it as you like.", indent=0))
        gap = "\n\n\n" if body.startswith(("@", "class ")) else "\n\n"  # as import sorters have it
        return f"{head}\n\nfrom __future__ import annotations\n\n{imports}{gap}{body}\n"


def _imports(used: set[str]) -> Iterator[str]:
    typing = [name for name in _TYPING if name in used]
    if typing:
        yield f"from typing import {', '.join(typing)}"
    api = [name for name in _API if name in used]
    said = ["import ctrlruntime as ctrl", *(["from ctrlruntime import crd"] if "crd" in used else [])]
    if api:
        said.append(f"from ctrlruntime.api import {', '.join(api)}")
    if "Field" in used:
        said.append("from pydantic import Field")
    yield "\n".join(said)


# What a definition says beyond its schema


def _head(
    definition: Mapping[str, Any], version: Mapping[str, Any], owner: Owner, place: Place, *, external: bool
) -> Group:
    """`Game(ctrl.Object, group=…, version=…)`."""
    spec: Mapping[str, Any] = definition["spec"]
    names: Mapping[str, Any] = spec["names"]
    kind: str = names["kind"]
    schema: Document = version["schema"]["openAPIV3Schema"]
    said: dict[str, Any] = {"group": spec["group"], "version": version["name"]}
    expected = {"kind": owner.name, "plural": guess_plural(kind), "singular": kind.lower(), "list_kind": f"{kind}List"}
    given = {
        "kind": kind,
        "plural": names["plural"],
        "singular": names.get("singular"),
        "list_kind": names.get("listKind"),
    }
    said |= {word: name for word, name in given.items() if name and name != expected[word]}
    said |= {word: names[key] for key, word in _LISTS.items() if names.get(key)}
    if spec.get("scope", "Namespaced") != "Namespaced":
        said["scope"] = spec["scope"]
    several = len(spec["versions"]) > 1
    if version.get("storage") and several:
        said["storage"] = True
    if not version.get("served", True):
        said["served"] = False
    if version.get("deprecated"):
        said["deprecated"] = version.get("deprecationWarning") or True
    subresources: Mapping[str, Any] = version.get("subresources") or {}
    if ("status" in subresources) != ("status" in (schema.get("properties") or {})):
        said["status_subresource"] = "status" in subresources
    info = KindInfo(group="", version="", kind=kind, plural="", singular="", list_kind="")
    if fields := list(_selectable(version, info, schema, place)):
        said["selectable_fields"] = fields
    if version.get("storage") or not several:
        said |= _metadata(definition)
    if external:
        said["external"] = True
    named: dict[str, Expression] = {word: value(one) for word, one in said.items()}
    if paths := _scale(subresources.get("scale") or {}, schema, place):
        named["scale"] = paths
    return call(owner.name, Atom("ctrl.Object"), **named)


_LISTS: Final = {"shortNames": "short_names", "categories": "categories"}


def _metadata(definition: Mapping[str, Any]) -> dict[str, Any]:
    metadata: Mapping[str, Any] = definition.get("metadata") or {}
    annotations = {key: one for key, one in (metadata.get("annotations") or {}).items() if key not in STAMPS}
    said = {"labels": metadata.get("labels"), "annotations": annotations}
    return {word: one for word, one in said.items() if one}


def _columns(version: Mapping[str, Any], schema: Document, place: Place) -> Iterator[Expression]:
    for column in version.get("additionalPrinterColumns") or ():
        kept = {key: column[key] for key in ("type", "description", "format", "priority") if column.get(key)}
        name, path = column.get("name", ""), column.get("jsonPath", "")
        try:
            printcolumn(name, path, **kept)
            columns((PrinterColumn(name, path, **kept),), schema, place)
        except (ValueError, GenerateError):
            continue
        kept = {key: one for key, one in kept.items() if key != "type" or not _follows(name, path, one, schema, place)}
        yield call("crd.printcolumn", Text(name), Text(path), **{key: value(one) for key, one in kept.items()})


def _follows(name: str, path: str, type: str, schema: Document, place: Place) -> bool:
    """Whether the type of a column follows from its path."""
    try:
        (made,) = columns((PrinterColumn(name, path),), schema, place)
    except GenerateError:
        return False
    return bool(made["type"] == type)


def _scale(paths: Mapping[str, Any], schema: Document, place: Place) -> Expression | None:
    if not paths:
        return None
    words = ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")
    said = [str(paths.get(word) or "") for word in words]
    info = KindInfo(group="", version="", kind="", plural="", singular="", list_kind="", scale=ScalePaths(*said))
    try:
        scale(info, schema, place)
    except GenerateError:
        return None
    return call("crd.ScalePaths", *(Text(path) for path in said if path))


def _selectable(version: Mapping[str, Any], info: KindInfo, schema: Document, place: Place) -> Iterator[str]:
    for each in version.get("selectableFields") or ():
        try:
            selectable_fields(replace(info, selectable_fields=(each["jsonPath"],)), schema, place)
        except GenerateError:
            continue
        yield each["jsonPath"]

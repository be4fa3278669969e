"""The properties of a bundle in a catalog: its package, its kinds, its requirements, and the fields that consoles show."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.documents import read_one, read_text
from ctrlruntime.generate.options import Document
from ctrlruntime.olm.api import ClusterServiceVersion, ClusterServiceVersionSpec
from ctrlruntime.olm.bundle import Bundle

__all__ = ["properties"]

_FILE: Final = "metadata/properties.yaml"
_ANNOTATION: Final = "olm.properties"
_SHOWN: Final = {
    "apiservicedefinitions": "apiServiceDefinitions",
    "customresourcedefinitions": "crdDescriptions",
    "description": "description",
    "displayName": "displayName",
    "installModes": "installModes",
    "keywords": "keywords",
    "links": "links",
    "maintainers": "maintainers",
    "maturity": "maturity",
    "minKubeVersion": "minKubeVersion",
    "nativeAPIs": "nativeAPIs",
    "provider": "provider",
}
"""The fields of a ClusterServiceVersion in a catalog, with their names there."""


def properties(bundle: Bundle, csv: ClusterServiceVersion) -> list[Document]:
    """Return the properties, each once, sorted by type and value. Raises: ConfigError for an invalid one."""
    own = {"packageName": bundle.package, "version": csv.spec.version}
    own |= {"release": csv.spec.release} if csv.spec.release else {}
    found = [
        _property("olm.package", own),
        *_kinds(csv.spec),
        *_dependencies(bundle),
        *_others(bundle, csv),
        _property("olm.csv.metadata", _shown(csv)),
    ]
    by_text = {(each["type"], json.dumps(each["value"], sort_keys=True)): each for each in found}
    return [by_text[key] for key in sorted(by_text)]


def _property(type: str, value: Any) -> Document:
    return {"type": type, "value": value}


def _kinds(spec: ClusterServiceVersionSpec) -> Iterator[Document]:
    definitions, services = spec.customresourcedefinitions, spec.apiservicedefinitions
    for word, kinds, aggregated in (
        ("olm.gvk", definitions.owned, services.owned),
        ("olm.gvk.required", definitions.required, services.required),
    ):
        for kind in kinds:
            group = kind.name.partition(".")[2]
            yield _property(word, {"group": group, "kind": kind.kind, "version": kind.version})
        for service in aggregated:
            yield _property(word, {"group": service.group, "kind": service.kind, "version": service.version})


def _dependencies(bundle: Bundle) -> Iterator[Document]:
    """Yield the dependencies of the bundle: their types have other names in a catalog."""
    for each in bundle.dependencies:
        word, value = _pair(each, bundle, bundle.dependencies_file)
        match word:
            case "olm.package":
                value = {"packageName": value.get("packageName", ""), "versionRange": value.get("version", "")}
                yield _property("olm.package.required", value)
            case "olm.gvk":
                yield _property("olm.gvk.required", {key: value.get(key, "") for key in ("group", "kind", "version")})
            case _:
                yield _property(word, value)


def _others(bundle: Bundle, csv: ClusterServiceVersion) -> Iterator[Document]:
    """Yield the properties of the annotation and of the file, such as `olm.maxOpenShiftVersion`."""
    text = csv.metadata.annotations.get(_ANNOTATION, "")
    try:
        listed: Any = json.loads(text or "[]")
    except ValueError as error:
        raise ConfigError(f"{bundle.folder}: the annotation {_ANNOTATION} is not JSON: {error}") from error
    yield from _listed(listed, bundle, f"the annotation {_ANNOTATION}")
    file = bundle.folder / _FILE
    if file.is_file():
        tree = read_one(read_text(file), str(file))
        yield from _listed(tree.get("properties") if isinstance(tree, dict) else None, bundle, _FILE)


def _listed(listed: Any, bundle: Bundle, where: str) -> Iterator[Document]:
    if not isinstance(listed, list):
        raise ConfigError(f"{bundle.folder}: {where} has no list of properties")
    for each in listed:
        if not isinstance(each, dict) or not isinstance(each.get("type"), str) or each.get("value") is None:
            raise ConfigError(f"{bundle.folder}: {where}: a property must have type and value")
        yield _property(each["type"], each["value"])


def _pair(each: Any, bundle: Bundle, where: str) -> tuple[str, Mapping[str, Any]]:
    if isinstance(each, dict) and isinstance(each.get("type"), str) and isinstance(each.get("value"), dict):
        return each["type"], cast("Mapping[str, Any]", each["value"])
    raise ConfigError(f"{bundle.folder}: {where}: a dependency must have a type, and a value that is a map")


def _shown(csv: ClusterServiceVersion) -> Document:
    """Return the fields that a console shows: a catalog has them instead of the whole ClusterServiceVersion."""
    spec = csv.spec.to_dict()
    shown = {name: spec[key] for key, name in _SHOWN.items() if spec.get(key)}
    metadata = {"annotations": dict(csv.metadata.annotations), "labels": dict(csv.metadata.labels)}
    return {**shown, **{key: value for key, value in metadata.items() if value}}

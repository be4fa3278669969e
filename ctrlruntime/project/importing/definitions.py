"""Definitions that classes are written from: which of a file, and whether their schemas are structural."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.crd import LABEL
from ctrlruntime.generate.definitions import definitions_in
from ctrlruntime.generate.documents import read_documents
from ctrlruntime.generate.options import Document
from ctrlruntime.name_rules import SUBDOMAIN

__all__ = ["check", "children", "chosen", "importable", "name_of"]

_TYPES: Final = frozenset({"string", "integer", "number", "boolean", "array", "object"})
_REFUSED: Final = (
    "$ref",
    "$defs",
    "definitions",
    "dependencies",
    "patternProperties",
    "uniqueItems",
    "additionalItems",
)
_BRANCHES: Final = ("allOf", "anyOf", "oneOf", "not")
# A DNS subdomain, as the API server wants groups (validateCustomResourceDefinition).
_GROUP: Final = re.compile(rf"(?=.{{1,253}}\Z){SUBDOMAIN}")
_LISTS: Final = ("shortNames", "categories")
_OUTSIDE_BRANCHES: Final = ("type", "default", "title", "description", "nullable", "additionalProperties")


def importable(text: str, where: str) -> list[Document]:
    """Return the CRDs in a YAML text. Raises: ConfigError without any, or for one without a class."""
    definitions = definitions_in(text, where)
    if not definitions:
        kinds = ", ".join(sorted({str(_mapping(one).get("kind") or "") for one in read_documents(text, where)} - {""}))
        raise ConfigError(
            f"{where}: the file has no CustomResourceDefinition{f' (only {kinds})' if kinds else ''}. "
            f"Pass the file of a CRD, such as the output of `kubectl get crd NAME -o yaml`"
        )
    for definition in definitions:
        check(definition, where)
    return definitions


def chosen(definitions: Sequence[Document], kind: str) -> list[Document]:
    """Return the CRDs of a kind. Raises: ConfigError without any."""
    found = [one for one in definitions if one["spec"]["names"]["kind"] == kind]
    if not found:
        known = ", ".join(sorted({one["spec"]["names"]["kind"] for one in definitions}))
        raise ConfigError(f"the file has no CRD of the kind {kind!r}. Use one of {known}")
    return found


def name_of(definition: Mapping[str, Any]) -> str:
    """Return the name that a CRD must have: `PLURAL.GROUP`."""
    return f"{definition['spec']['names']['plural']}.{definition['spec']['group']}"


def check(definition: Mapping[str, Any], where: str) -> None:
    """Check that classes can be generated. Raises: ConfigError for a CRD without a schema, or with one that is not structural."""
    named = definition["metadata"]["name"]
    if wrong := next(_wrong_names(definition["spec"]), ""):
        raise ConfigError(f"{where}: {named}: {wrong}")
    for version in definition["spec"]["versions"]:
        schema = _mapping(_mapping(version.get("schema")).get("openAPIV3Schema"))
        if not schema:
            raise ConfigError(
                f"{where}: {named}: version {version['name']} has no schema.openAPIV3Schema, so no class can be generated"
            )
        problem = next(_problems(schema, ""), "")
        if not problem and schema.get("type") != "object":
            problem = "the root is not an object"
        if problem:
            raise ConfigError(
                f"{where}: {named}: the schema of {version['name']} is not structural, so the API server rejects it: {problem}"
            )


def _wrong_names(spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is not a name for the API server; class names and keywords follow from these."""
    names: Mapping[str, Any] = spec["names"]
    for word in ("kind", "listKind"):
        name: str = names.get(word, "Kind")
        if not LABEL.fullmatch(name.lower()) or not name.isascii():
            yield f"spec.names.{word} must be letters, digits and hyphens, not {_short(name)}"
    labels = {"spec.names.plural": names["plural"], "spec.names.singular": names.get("singular") or "one"}
    labels |= {f"spec.versions[{index}].name": version["name"] for index, version in enumerate(spec["versions"])}
    labels |= {f"spec.names.{word}[{index}]": name for word in _LISTS for index, name in enumerate(names.get(word, ()))}
    for path, name in labels.items():
        if not LABEL.fullmatch(name):
            yield f"{path} must be lower case letters, digits and hyphens, not {_short(name)}"
    if spec.get("scope", "Namespaced") not in {"Namespaced", "Cluster"}:
        yield f"spec.scope must be Namespaced or Cluster, not {_short(spec['scope'])}"
    if not _GROUP.fullmatch(spec["group"]):
        yield f"spec.group must be a domain such as example.com, not {_short(spec['group'])}"


def _short(name: str) -> str:
    return ascii(name if len(name) <= 40 else f"{name[:39]}…")


def _problems(schema: Mapping[str, Any], path: str) -> Iterator[str]:
    at = path or "the root"
    kind = schema.get("type")
    yield from (f"{at} has {word}" for word in _REFUSED if schema.get(word))
    if (
        not kind
        and not schema.get("x-kubernetes-int-or-string")
        and not schema.get("x-kubernetes-preserve-unknown-fields")
    ):
        yield f"{at} has no type"
    if kind and kind not in _TYPES:
        yield f"{at} has the unknown type {kind!r}"
    if kind == "array" and not isinstance(schema.get("items"), Mapping):
        yield f"{at} is a list without items"
    if schema.get("properties") and schema.get("additionalProperties"):
        yield f"{at} has both properties and additionalProperties"
    for word in _BRANCHES:
        yield from _in_branches(schema, word, at)
    for step, child in children(schema):
        yield from _problems(child, path + step)


def _in_branches(schema: Mapping[str, Any], word: str, at: str) -> Iterator[str]:
    found = schema.get(word) or ()
    branches: Iterable[Mapping[str, Any]] = (found,) if isinstance(found, Mapping) else found
    for branch in branches:
        is_free = bool(schema.get("x-kubernetes-int-or-string"))  # the one place where branches say types
        yield from (f"{at} has {key} inside {word}" for key in _OUTSIDE_BRANCHES if key in branch and not is_free)


def children(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Return the schemas directly below one, each with the step to it."""
    for name, child in _mapping(schema.get("properties")).items():
        yield f".{name}", child
    for key, step in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(key), Mapping):
            yield step, schema[key]


def _mapping(tree: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", tree) if isinstance(tree, Mapping) else {}

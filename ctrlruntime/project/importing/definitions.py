"""The definitions in a YAML file, and whether they can be read: their API version, and schemas that are structural."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.options import Document
from ctrlruntime.project.kustomize.documents import read_documents

__all__ = ["check", "chosen", "definitions_in", "name_of"]

_KIND, _GROUP, _VERSION = "CustomResourceDefinition", "apiextensions.k8s.io", "apiextensions.k8s.io/v1"
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
_OUTSIDE_BRANCHES: Final = ("type", "default", "title", "description", "nullable", "additionalProperties")


def definitions_in(text: str, where: str) -> list[Document]:
    """Return the definitions in a YAML text, those in a List too. Raises: ConfigError, which names `where`."""
    found = [one for document in read_documents(text, where) for one in _opened(document)]
    definitions = [one for one in found if one.get("kind") == _KIND and _group(one) == _GROUP]
    if not definitions:
        kinds = ", ".join(sorted({str(one.get("kind")) for one in found if one.get("kind")}))
        raise ConfigError(
            f"{where}: there is no {_KIND} in it{f' (only {kinds})' if kinds else ''}; "
            f"give the file of a definition, such as `kubectl get crd NAME -o yaml` prints"
        )
    for definition in definitions:
        check(definition, where)
    return definitions


def chosen(definitions: Sequence[Document], kind: str) -> list[Document]:
    """Return the definitions of a kind. Raises: ConfigError when there is none."""
    found = [one for one in definitions if one["spec"]["names"]["kind"] == kind]
    if not found:
        known = ", ".join(sorted({one["spec"]["names"]["kind"] for one in definitions}))
        raise ConfigError(f"there is no definition of the kind {kind!r}; the file has {known}")
    return found


def name_of(definition: Mapping[str, Any]) -> str:
    """Return the name a definition must have: `PLURAL.GROUP`."""
    return f"{definition['spec']['names']['plural']}.{definition['spec']['group']}"


def _opened(document: Any) -> Iterator[Document]:
    if not isinstance(document, dict):
        return
    known = cast("Document", document)
    if known.get("kind") == "List":
        for item in cast("list[Any]", known.get("items") or []):
            yield from _opened(item)
    else:
        yield cast("Document", _without_nulls(known))


def _without_nulls(tree: Any) -> Any:
    """The tree without what is null, which the server reads as absent; but for defaults and examples, which may hold any value."""
    if isinstance(tree, list):
        items: list[Any] = tree
        return [_without_nulls(one) for one in items]
    if not isinstance(tree, dict):
        return tree
    known = cast("Document", tree)
    return {
        key: one if key in {"default", "example", "enum"} else _without_nulls(one)
        for key, one in known.items()
        if one is not None or key in {"default", "example"}
    }


def _group(document: Document) -> str:
    return str(document.get("apiVersion")).partition("/")[0]


def check(definition: Mapping[str, Any], where: str) -> None:
    """Raise ConfigError for a definition that is old, lacks what all have, or has a schema that is not structural."""
    named = _mapping(definition.get("metadata")).get("name") or "a definition"
    if definition.get("apiVersion") != _VERSION:
        raise ConfigError(
            f"{where}: {named} is of {definition.get('apiVersion')}, which no server takes since Kubernetes 1.22; bring it to {_VERSION}: "
            f"each version has its own schema.openAPIV3Schema (a cluster that serves the kind prints it so: kubectl get crd {named} "
            f"-o yaml)"
        )
    spec = _mapping(definition.get("spec"))
    for path, present in (
        ("spec.group", spec.get("group")),
        ("spec.names.kind", _mapping(spec.get("names")).get("kind")),
        ("spec.names.plural", _mapping(spec.get("names")).get("plural")),
        ("spec.versions", spec.get("versions")),
    ):
        if not present:
            raise ConfigError(f"{where}: {named} has no {path}; it is not complete")
    for version in map(_mapping, spec["versions"]):
        name = version.get("name")
        schema = _mapping(_mapping(version.get("schema")).get("openAPIV3Schema"))
        if not name or not schema:
            raise ConfigError(
                f"{where}: {named}: version {name or '(without a name)'} has no schema.openAPIV3Schema; "
                f"no class follows from it"
            )
        problem = next(_problems(schema, ""), "")
        if not problem and schema.get("type") != "object":
            problem = "the root is no object"
        if problem:
            raise ConfigError(
                f"{where}: {named}: the schema of {name} is not structural, the server refuses it: {problem}"
            )


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
        yield f"{at} is of type {kind!r}"
    if kind == "array" and not isinstance(schema.get("items"), Mapping):
        yield f"{at} is a list and does not say of what (items)"
    if schema.get("properties") and schema.get("additionalProperties"):
        yield f"{at} has properties and additionalProperties"
    for word in _BRANCHES:
        yield from _in_branches(schema, word, at)
    for step, child in children(schema):
        if isinstance(cast("object", child), Mapping):
            yield from _problems(child, path + step)
        else:
            yield f"{path}{step} is no schema"


def _in_branches(schema: Mapping[str, Any], word: str, at: str) -> Iterator[str]:
    found = schema.get(word) or ()
    branches: Iterable[Any] = (found,) if isinstance(found, Mapping) else found
    for branch in branches:
        if not isinstance(branch, Mapping):
            yield f"{at} has {word} with something that is no schema"
            continue
        known = cast("Mapping[str, Any]", branch)
        is_free = bool(schema.get("x-kubernetes-int-or-string"))  # the one place where branches say types
        yield from (f"{at} has {key} inside {word}" for key in _OUTSIDE_BRANCHES if key in known and not is_free)


def children(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Return the schemas directly below one, each with the step to it."""
    for name, child in _mapping(schema.get("properties")).items():
        yield f".{name}", child
    for key, step in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(key), Mapping):
            yield step, schema[key]


def _mapping(tree: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", tree) if isinstance(tree, Mapping) else {}

"""Manifests checked without a cluster: each object is created in the memory of an API server, which says what kube-apiserver would say.

Known kinds are the built-in ones and those whose CRDs are among the manifests, in any file. Fields, types,
values and CEL rules are checked, one object at a time; not what an object refers to, and no admission webhook is asked.
"""

from __future__ import annotations

import copy
from collections.abc import Container, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import PurePath
from typing import Any, Final

from ctrlruntime.apiserver.registry import Registry, Resource, WriteOptions
from ctrlruntime.apiserver.storage import Store
from ctrlruntime.errors import APIStatusError, StatusCause
from ctrlruntime.generate.documents import opened, read_documents

__all__ = ["UNKNOWN_FIELD", "Checked", "Problem", "check", "check_documents"]

UNKNOWN_FIELD: Final = "unknown field"
"""The text of a problem with a field that the kind does not have, and that is dropped."""

_DEFINITION: Final = "CustomResourceDefinition"
_KUSTOMIZE: Final = "kustomize.config.k8s.io"
_PLUGIN: Final = "builtin"
"""The apiVersion of the transformers and generators that kustomize has built in."""
_FOR_KUSTOMIZE: Final = "is a kustomize file. Print its objects with `ctrl render`"
_UNKNOWN: Final = f'{UNKNOWN_FIELD} "'


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is wrong in one place."""

    file: str
    object: str
    """Kind and name; empty for what is not an object."""

    path: str
    """The field; empty for the whole object."""

    text: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, self.object, self.path, self.text) if part)

    def document(self) -> dict[str, str]:
        """Return the problem as JSON has it."""
        return asdict(self)


@dataclass(slots=True)
class Checked:
    """The result for some manifests. `skipped` are the objects of unknown kinds, which are not problems."""

    objects: int = 0
    problems: list[Problem] = field(default_factory=list[Problem])
    skipped: list[Problem] = field(default_factory=list[Problem])


def check(texts: Iterable[tuple[str, str]], *, optional: Container[str] = ()) -> Checked:
    """Check manifests, given as pairs of a file's name and its text.

    `optional`: files found in a folder, which need not be manifests. Documents in them that are not objects are skipped.
    Raises: ConfigError for a text that is not YAML.
    """
    documents = ((name, tree) for name, text in texts for tree in read_documents(text, name))
    return check_documents(documents, optional=optional)


def check_documents(documents: Iterable[tuple[str, Any]], *, optional: Container[str] = ()) -> Checked:
    """Check manifests as `check` does, given as pairs of a file's name and a document."""
    registry = Registry(Store())
    registry.extensions.plugins -= {"NamespaceLifecycle"}
    checked = Checked()
    found = [(name, tree) for name, document in documents for tree in opened([document])]
    # Definitions first: objects of their kinds may stand before them.
    found.sort(key=lambda each: _field(each[1], "kind") != _DEFINITION)
    seen: dict[tuple[str, ...], tuple[str, Any]] = {}
    for name, tree in found:
        checked.objects += 1
        if name in optional and not _field(tree, "apiVersion") and not _field(tree, "kind"):
            checked.objects -= 1
            checked.skipped.append(Problem(file=name, object="", path="", text="is not an object of Kubernetes"))
            continue
        _check(registry, name, tree, seen, checked)
    return checked


def _check(
    registry: Registry, file: str, tree: Any, seen: dict[tuple[str, ...], tuple[str, Any]], checked: Checked
) -> None:
    version, kind = _field(tree, "apiVersion"), _field(tree, "kind")
    metadata = tree.get("metadata") if isinstance(tree, dict) else None
    name = _field(metadata, "name")
    label = "/".join(part for part in (kind, name or _field(metadata, "generateName")) if part)

    def problem(text: str, path: str = "") -> Problem:
        return Problem(file=file, object=label, path=path, text=text)

    if not version or not kind:
        checked.problems.append(problem("is not an object: apiVersion or kind is missing"))
        return
    group, _, bare = version.rpartition("/")
    resource = registry.find_kind(group, bare, kind)
    if resource is None:
        is_of_kustomize = group == _KUSTOMIZE or version == _PLUGIN
        if not is_of_kustomize and (registry.has_built_in(group) or not group):
            checked.problems.append(problem(f"{version} has no kind {kind} in Kubernetes 1.36"))
        else:
            checked.objects -= 1
            why = "is unknown. Add its CRD to the files"
            checked.skipped.append(problem(f"{version} {_FOR_KUSTOMIZE if is_of_kustomize else why}"))
        return
    namespace = (_field(metadata, "namespace") or "default") if resource.namespaced else ""
    identity = (group, kind, namespace, name)
    if name and identity in seen:
        first, same = seen[identity]
        is_definition = kind == _DEFINITION
        # Folders can be alternatives: overlays, or a bundle next to its sources. A definition is served once.
        if PurePath(first).parent == PurePath(file).parent or (is_definition and same != tree):
            checked.problems.append(problem(f"is already in {first}"))
            return
        if is_definition:
            return
    else:
        seen[identity] = (file, tree)
    checked.problems.extend(problem(text, path) for path, text in _said(registry, resource, namespace, tree))


def _said(registry: Registry, resource: Resource, namespace: str, tree: Any) -> Iterator[tuple[str, str]]:
    """Yield path and text of what the server says against the object. A definition that is right is served from then on."""
    options = WriteOptions(dry_run=resource.kind != _DEFINITION, field_validation="Warn")
    try:
        registry.writer.create_directly(resource, namespace, copy.deepcopy(tree), options)
    except APIStatusError as error:
        causes = error.causes
        yield from ((cause.field, cause.message) for cause in causes if not _is_aside(cause))
        if not causes:
            yield "", str(error)
    for warning in options.warnings:
        if warning.startswith(_UNKNOWN):
            yield warning.removeprefix(_UNKNOWN).rstrip('"'), UNKNOWN_FIELD


def _is_aside(cause: StatusCause) -> bool:
    """Tell whether a cause is about no field of the manifest: `<nil>` says what was not looked at, and the status is the server's."""
    return cause.field == "<nil>" or cause.field.startswith("status.")


def _field(tree: Any, name: str) -> str:
    value = tree.get(name) if isinstance(tree, dict) else None
    return value if isinstance(value, str) else ""

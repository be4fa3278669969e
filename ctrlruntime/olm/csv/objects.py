"""The objects of a project for a new ClusterServiceVersion: objects that become a part of it are removed."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.errors import DecodeError, GenerateError
from ctrlruntime.generate.options import Document
from ctrlruntime.olm.trees import mapping
from ctrlruntime.scheme import default_scheme

__all__ = [
    "Key",
    "Objects",
    "gvk_of",
    "is_a",
    "labels_of",
    "name_of",
    "namespace_of",
    "pod_of",
    "told",
]

Key: TypeAlias = tuple[str, str]
"""A namespace (empty: none, or not set) and a name."""


class Objects:
    """Copies of a project's objects, which the owner of this can change."""

    def __init__(self, documents: Iterable[Mapping[str, Any]]) -> None:
        """Copy the objects. Raises: GenerateError for an object without apiVersion, kind or name."""
        self.documents: list[Document] = [_checked(copy.deepcopy(dict(each))) for each in documents]

    def of(self, group: str, *kinds: str) -> list[Document]:
        """Return the objects of a group and of some of its kinds, in any version; without kinds, of all."""
        found = ((gvk_of(each), each) for each in self.documents)
        return [each for gvk, each in found if gvk.group == group and (not kinds or gvk.kind in kinds)]

    @property
    def deployments(self) -> list[Document]:
        return self.of("apps", "Deployment")

    @property
    def definitions(self) -> list[Document]:
        return self.of("apiextensions.k8s.io", "CustomResourceDefinition")

    def take(self, documents: Iterable[Document]) -> None:
        """Remove objects by identity, not those that are equal."""
        gone = {id(each) for each in documents}
        self.documents = [each for each in self.documents if id(each) not in gone]


def gvk_of(document: Mapping[str, Any]) -> GroupVersionKind:
    return GroupVersionKind.parse(str(document["apiVersion"]), str(document["kind"]))


def is_a(document: Mapping[str, Any], group: str, kind: str) -> bool:
    found = gvk_of(document)
    return (found.group, found.kind) == (group, kind)


def name_of(document: Mapping[str, Any]) -> str:
    return str(document["metadata"]["name"])


def namespace_of(document: Mapping[str, Any]) -> str:
    return str(document["metadata"].get("namespace") or "")


def labels_of(document: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(mapping(document.get("metadata")).get("labels"))


def pod_of(deployment: Mapping[str, Any]) -> Document:
    """Return the spec of the Pods of a Deployment."""
    return mapping(mapping(mapping(deployment.get("spec")).get("template")).get("spec"))


def told(document: Mapping[str, Any]) -> str:
    """Return the name of an object in messages: `Deployment/shop-controller-manager`."""
    return f"{document['kind']}/{name_of(document)}"


def _checked(document: Document) -> Document:
    words = (document.get("apiVersion"), document.get("kind"), mapping(document.get("metadata")).get("name"))
    if not all(isinstance(word, str) and word for word in words):
        told = ", ".join(str(word) for word in words if word) or "a document"
        raise GenerateError(f"{told}: apiVersion, kind or metadata.name is missing. Add it, or remove the object")
    _refuse_misfit(document)
    return document


def _refuse_misfit(document: Document) -> None:
    """Raise GenerateError for a built-in object that does not match its kind, so that readers can rely on its form."""
    scheme, gvk = default_scheme(), gvk_of(document)
    if not scheme.knows(gvk):
        return
    try:
        scheme.class_for(gvk).from_json(json.dumps(document))
    except DecodeError as error:
        raise GenerateError(f"{told(document)}: {error}") from error

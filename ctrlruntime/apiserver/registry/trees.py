"""Fields of trees that a client sent, whatever is there: the defaults of all kinds read and set them with these."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ctrlruntime.schema.trees import Document


def put(tree: Document, name: str, value: Any) -> None:
    """Set a field that is absent, null or empty text."""
    present = tree.get(name)
    if present is None or present == "":
        tree[name] = value


def put_absent(tree: Document, name: str, value: Any) -> None:
    """Set a field that is absent or null; what upstream has as a pointer keeps an empty text, which is refused."""
    if tree.get(name) is None:
        tree[name] = value


def ensure_spec(document: Document) -> Document:
    """Return the spec, and create it if it is missing."""
    spec: Document = document.setdefault("spec", {})
    return spec


def items(tree: Document, name: str) -> Iterator[Document]:
    """Yield the members that are objects, whatever was sent; validation names the others."""
    found = tree.get(name)
    if isinstance(found, list):
        yield from (item for item in found if isinstance(item, dict))


def inner(tree: Document, *path: str) -> Document | None:
    """Return the object at a path, or None if it does not exist."""
    value: Any = tree
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else None


def all_containers(spec: Document, path: str) -> Iterator[tuple[str, Document]]:
    """Yield the containers of a Pod of every sort, each after its path."""
    for name in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(items(spec, name)):
            yield f"{path}.{name}[{index}]", container

"""The examples in a ClusterServiceVersion: objects of its kinds, in an annotation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.errors import ConfigError
from ctrlruntime.olm.api import ClusterServiceVersion
from ctrlruntime.olm.trees import mapping

__all__ = ["EXAMPLES", "Example", "examples_of"]

EXAMPLES: Final = ("alm-examples", "olm.examples")
"""The annotations with examples; consoles read the first that exists."""


@dataclass(frozen=True, slots=True)
class Example:
    """An example object."""

    document: Mapping[str, Any]

    @property
    def gvk(self) -> GroupVersionKind:
        return GroupVersionKind.parse(str(self.document.get("apiVersion") or ""), str(self.document.get("kind") or ""))

    def part(self, name: str) -> Mapping[str, Any] | None:
        """Return `spec` or `status`; None if it is missing or not a map."""
        value = self.document.get(name)
        return cast("Mapping[str, Any]", value) if isinstance(value, dict) else None

    def __str__(self) -> str:
        name = mapping(self.document.get("metadata")).get("name")
        return f"{self.gvk.kind or 'object'}/{name}" if name else self.gvk.kind or "an object"


def examples_of(csv: ClusterServiceVersion) -> tuple[Example, ...]:
    """Return the examples, if any. Raises: ConfigError if the annotation is not a JSON list of objects."""
    name = next((each for each in EXAMPLES if csv.metadata.annotations.get(each, "").strip()), "")
    if not name:
        return ()
    try:
        trees: Any = json.loads(csv.metadata.annotations[name])
    except ValueError as error:
        raise ConfigError(f"the annotation {name} is not JSON: {error}") from error
    if not isinstance(trees, list) or not all(isinstance(tree, dict) for tree in trees):
        raise ConfigError(f"the annotation {name} is not a list of objects")
    return tuple(Example(tree) for tree in cast("list[Mapping[str, Any]]", trees))

"""Names of objects in a chart: those of one release, where the kustomize tree has those of one project.

An object `shop-manager-role` of the project `shop` is `RELEASE-manager-role` of a release. The name is replaced wherever it appears as a
whole in a value: in subjects, in host names of Services, in annotations of cert-manager.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from ctrlruntime.generate.options import Document
from ctrlruntime.project.helm.template import Expressions
from ctrlruntime.project.settings import Settings

__all__ = ["Names"]

_NEVER: Final = re.compile(r"(?!)")


class Names:
    """Replaces a project's names and namespace by expressions of a chart."""

    def __init__(self, settings: Settings, objects: Iterable[Mapping[str, Any]], expressions: Expressions) -> None:
        self.project = settings.project_name
        self._namespace = settings.namespace
        self._expressions = expressions
        prefix = f"{self.project}-"
        names = {each["metadata"]["name"] for each in objects if each["kind"] != "CustomResourceDefinition"}
        known: dict[str, str] = {name: name.removeprefix(prefix) for name in names if name.startswith(prefix)}
        known.pop(self._namespace, None)
        self._suffixes = known
        longest_first = sorted((self._namespace, *known), key=lambda name: (-len(name), name))
        pattern = "|".join(map(re.escape, longest_first))
        self._pattern = re.compile(rf"(?<![A-Za-z0-9-])(?:{pattern})(?![A-Za-z0-9-])") if longest_first else _NEVER

    def suffix(self, name: str) -> str:
        """Return a name without the project's prefix."""
        return self._suffixes.get(name, name)

    def mark(self, suffix: str) -> str:
        """Return a mark for the name of an object of the release."""
        return self._expressions.mark(f'include "{self.project}.resourceName" (dict "suffix" "{suffix}" "context" $)')

    def account(self) -> str:
        """Return a mark for the name of the operator's ServiceAccount."""
        return self._expressions.mark(f'include "{self.project}.serviceAccountName" . | quote')

    def replaced(self, each: Document) -> Document:
        """Return an object with the names of a release."""
        if each["kind"] != "CustomResourceDefinition":
            return cast("Document", self._inside(each))
        # The schema is prose and values of others: only what says where a webhook is belongs to the release.
        spec = dict(each["spec"])
        if "conversion" in spec:
            spec["conversion"] = self._inside(spec["conversion"])
        return {**self._escaped(each), "metadata": self._inside(each["metadata"]), "spec": self._escaped(spec)}

    def _inside(self, node: Any) -> Any:
        match node:
            case dict():
                return {self._text(key): self._inside(value) for key, value in cast("Document", node).items()}
            case list():
                return [self._inside(each) for each in node]
            case str():
                return self._text(node)
            case _:
                return node

    def _text(self, text: str) -> str:
        if text == self._namespace:
            return self._expressions.mark(".Release.Namespace | quote")
        return self._pattern.sub(lambda found: self._mark_of(found[0]), self._expressions.escaped(text))

    def _mark_of(self, name: str) -> str:
        if name == self._namespace:
            return self._expressions.mark(".Release.Namespace")
        return self.mark(self._suffixes[name])

    def _escaped(self, node: Any) -> Any:
        match node:
            case dict():
                return {key: self._escaped(value) for key, value in cast("Document", node).items()}
            case list():
                return [self._escaped(each) for each in node]
            case str():
                return self._expressions.escaped(node)
            case _:
                return node

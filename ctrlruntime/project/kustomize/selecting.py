"""Which objects a patch or a replacement is about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ctrlruntime.cel.patterns import compile_pattern
from ctrlruntime.errors import ConfigError
from ctrlruntime.project.kustomize.resources import Id, Kind, Resource
from ctrlruntime.selector import parse_labels

__all__ = ["Selector"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """A choice of objects by what they are named, now or before, and by their labels and annotations. What is empty is any."""

    kind: Kind = Kind()  # noqa: RUF009 - a tuple
    name: str = ""
    namespace: str = ""
    labels: str = ""
    annotations: str = ""

    def matches(self, resource: Resource) -> bool:
        """Compare by regular expressions that must fit in whole, as patches do. Raises: ConfigError for a bad one."""
        return self._marked(resource) and any(self._fits(each) for each in resource.ids)

    def names(self, resource: Resource) -> bool:
        """Compare texts as they are, as replacements do."""
        return self._marked(resource) and any(self._equals(each) for each in resource.ids)

    def _fits(self, one: Id) -> bool:
        pairs = [
            *zip(self.kind, one.kind, strict=True),
            (self.name, one.name),
            (self.namespace, one.effective_namespace),
        ]
        return all(not wanted or _matches(wanted, found) for wanted, found in pairs)

    def _equals(self, one: Id) -> bool:
        if not self.kind.selects(one.kind) or self.name not in {"", one.name}:
            return False
        return self.namespace in {"", one.namespace or "default"}

    def _marked(self, resource: Resource) -> bool:
        metadata = resource.metadata
        return _selects(self.labels, metadata.get("labels")) and _selects(self.annotations, metadata.get("annotations"))

    def __str__(self) -> str:
        return ", ".join(f"{name} {text}" for name, text in self._said()) or "no condition"

    def _said(self) -> Iterator[tuple[str, str]]:
        said = {**self.kind._asdict(), "name": self.name, "namespace": self.namespace}
        said |= {"labelSelector": self.labels, "annotationSelector": self.annotations}
        return ((name, text) for name, text in said.items() if text)


def _matches(wanted: str, found: str) -> bool:
    try:
        return compile_pattern(wanted).matches_all(found)
    except ValueError as error:
        raise ConfigError(f"{wanted!r} in a patch's target is not a regular expression: {error}") from error


def _selects(text: str, marks: dict[str, str] | None) -> bool:
    if not text:
        return True
    try:
        return parse_labels(text).matches({key: str(value) for key, value in (marks or {}).items()})
    except ValueError as error:
        raise ConfigError(f"{text!r} is not a selector: {error}") from error

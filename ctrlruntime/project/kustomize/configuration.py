"""Where the transformers look: kustomize's own places, and those that files under `configurations` add."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.documents import read_settings
from ctrlruntime.project.kustomize.fields import ANNOTATIONS, NAMES, NAMESPACES, REPLICAS, SELECTORS, Field, field_of
from ctrlruntime.project.kustomize.files import read_text
from ctrlruntime.project.kustomize.references import REFERENCES, Reference
from ctrlruntime.project.kustomize.resources import Kind
from ctrlruntime.project.kustomize.settings import Entry

__all__ = ["Configuration", "with_files"]

_FIELD: Final = ("path", "group", "version", "kind", "create")


@dataclass(frozen=True, slots=True)
class Configuration:
    """The places of each transformer."""

    namespaces: tuple[Field, ...] = NAMESPACES
    prefixed: tuple[Field, ...] = NAMES
    suffixed: tuple[Field, ...] = NAMES
    selectors: tuple[Field, ...] = SELECTORS
    annotations: tuple[Field, ...] = ANNOTATIONS
    replicas: tuple[Field, ...] = REPLICAS
    images: tuple[Field, ...] = ()
    references: tuple[Reference, ...] = REFERENCES

    def joined(self, other: Configuration) -> Configuration:
        """Return the places of both."""
        pairs = ((name, (*getattr(self, name), *getattr(other, name))) for name in self.__slots__)
        return Configuration(**{name: tuple(dict.fromkeys(both)) for name, both in pairs})


_SECTIONS: Final = {
    "namespace": "namespaces",
    "namePrefix": "prefixed",
    "nameSuffix": "suffixed",
    "commonLabels": "selectors",
    "commonAnnotations": "annotations",
    "replicas": "replicas",
    "images": "images",
}
_WITHOUT_EFFECT: Final = (
    "varReference",
)  # kubebuilder's old layouts list it; without `vars`, which are refused, nothing is replaced


def with_files(base: Configuration, said: Entry, folder: Path) -> Configuration:
    """Return the configuration with what the files under `configurations` add. Raises: ConfigError."""
    for name in said.texts("configurations"):
        tree = read_settings(read_text(folder, name, said.where), str(folder / name)) or {}
        if not isinstance(tree, dict):
            raise ConfigError(f"{folder / name}: the configuration must be a map")
        more = Entry(tree, str(folder / name)).only((*_SECTIONS, *_WITHOUT_EFFECT, "nameReference"))
        for section, attribute in _SECTIONS.items():
            places = (_place(each) for each in more.entries(section, _FIELD))
            both = tuple(dict.fromkeys((*getattr(base, attribute), *places)))
            _refuse_conflicts(both, f"{more.where}: {section}")
            base = replace(base, **{attribute: both})
        base = replace(base, references=tuple(dict.fromkeys((*base.references, *_references(more)))))
    return base


def _refuse_conflicts(places: Sequence[Field], where: str) -> None:
    """Refuse one field twice, with and without `create`. Raises: ConfigError."""
    for place, count in Counter(replace(each, create=False) for each in places).items():
        if count > 1:
            raise ConfigError(
                f"{where}: {place.path} is listed with and without `create`. Write it as kustomize has it"
            )


def _references(more: Entry) -> Iterator[Reference]:
    for entry in more.entries("nameReference", ("group", "version", "kind", "fieldSpecs")):
        to = Kind(entry.text("group"), entry.text("version"), entry.text("kind"))
        for each in entry.entries("fieldSpecs", _FIELD):
            yield Reference(to, _place(each))


def _place(entry: Entry) -> Field:
    if not entry.text("path"):
        raise ConfigError(f"{entry.where}: the field requires a path")
    return field_of(entry.tree)

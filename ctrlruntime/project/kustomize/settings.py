"""A kustomization file: what it says, read strictly."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.documents import read_settings, read_text
from ctrlruntime.generate.options import Document
from ctrlruntime.project.kustomize.resources import Kind
from ctrlruntime.project.kustomize.selecting import Selector

__all__ = ["FILES", "Entry", "is_kustomization", "read_kustomization", "read_selector", "read_selectors"]

FILES: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")

_VERSIONS: Final = {"Kustomization": "kustomize.config.k8s.io/v1beta1", "Component": "kustomize.config.k8s.io/v1alpha1"}
_TEXTS: Final = frozenset({"apiVersion", "kind", "namespace", "namePrefix", "nameSuffix"})
_LISTS: Final = frozenset({
    "resources", "bases", "components", "labels", "images", "imageTags", "replicas", "patches", "patchesStrategicMerge", "patchesJson6902",
    "replacements", "transformers", "configMapGenerator", "secretGenerator", "configurations",
})  # fmt: skip
_MAPS: Final = frozenset({"metadata", "commonLabels", "commonAnnotations", "generatorOptions", "sortOptions"})
_ELSEWHERE: Final = frozenset({
    "openapi", "vars", "crds", "helmGlobals", "helmCharts", "helmChartInflationGenerator", "generators", "validators",
    "inventory", "buildMetadata",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entry:
    """A map in a kustomization, whose fields are asked for by name and type."""

    tree: Document
    where: str
    """The file and the field, for messages."""

    def text(self, name: str, default: str = "") -> str:
        value = self.tree.get(name)
        if value is not None and not isinstance(value, str):
            quote = ". Quote it: YAML takes yes, no, on and off for true or false" if isinstance(value, bool) else ""
            raise self.wrong(name, f"a string{quote}")
        return value or default

    def flag(self, name: str) -> bool:
        value = self.tree.get(name)
        if value is not None and not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return bool(value)

    def number(self, name: str) -> int:
        value = self.tree.get(name)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            raise self.wrong(name, "an integer")
        return value or 0

    def texts(self, name: str) -> list[str]:
        value = self._given(name, [])
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self.wrong(name, "a list of strings")
        return list(value)

    def pairs(self, name: str) -> dict[str, str]:
        value = self._given(name, {})
        if not isinstance(value, dict) or not all(isinstance(each, str | None) for each in value.values()):
            raise self.wrong(name, "a map of strings. Quote numbers, and words such as true, yes and y")
        return {key: each or "" for key, each in sorted(value.items())}

    def entry(self, name: str, known: Iterable[str]) -> Entry | None:
        """Return the map of this name, or None. Raises: ConfigError for an unknown field."""
        value = self.tree.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.wrong(name, "a map")
        return Entry(value, f"{self.where}: {name}").only(known)

    def entries(self, name: str, known: Iterable[str]) -> list[Entry]:
        value = self._given(name, [])
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise self.wrong(name, "a list of maps")
        return [Entry(each, f"{self.where}: {name}[{at}]").only(known) for at, each in enumerate(value)]

    def only(self, known: Iterable[str]) -> Entry:
        strange = sorted(set(self.tree) - set(known))
        if strange:
            raise ConfigError(f"{self.where}: unknown field {strange[0]!r}. Use one of {', '.join(sorted(known))}")
        return self

    def _given(self, name: str, default: Any) -> Any:
        value = self.tree.get(name)
        return default if value is None else value

    def wrong(self, name: str, wanted: str) -> ConfigError:
        return ConfigError(f"{self.where}: {name} must be {wanted}")


_SELECTS: Final = ("group", "version", "kind", "name", "namespace", "labelSelector", "annotationSelector")


def read_selector(entry: Entry, name: str) -> Selector | None:
    """Return the selector under a name of an entry, or None. Raises: ConfigError."""
    said = entry.entry(name, _SELECTS)
    return None if said is None else _selector(said)


def read_selectors(entry: Entry, name: str) -> list[Selector]:
    """Return the selectors that are listed under a name of an entry. Raises: ConfigError."""
    return [_selector(each) for each in entry.entries(name, _SELECTS)]


def _selector(said: Entry) -> Selector:
    return Selector(
        kind=Kind(said.text("group"), said.text("version"), said.text("kind")),
        name=said.text("name"),
        namespace=said.text("namespace"),
        labels=said.text("labelSelector"),
        annotations=said.text("annotationSelector"),
    )


def is_kustomization(folder: Path) -> bool:
    """Tell whether there is a kustomization in a folder."""
    return any((folder / name).is_file() for name in FILES)


def read_kustomization(folder: Path) -> Entry:
    """Return the kustomization of a folder. Raises: ConfigError for none, several, or one that cannot be rendered here."""
    found = [folder / name for name in FILES if (folder / name).is_file()]
    if len(found) != 1:
        which = f"several of {', '.join(FILES)}" if found else f"no {FILES[0]}"
        raise ConfigError(f"cannot render {folder}: it has {which}, but must have exactly one")
    tree: Any = read_settings(read_text(found[0]), str(found[0]))
    if not isinstance(tree, dict) or not tree:
        raise ConfigError(f"{found[0]}: {'the kustomization must be a map' if tree else 'the kustomization is empty'}")
    return _checked(Entry(tree, str(found[0])))


def _checked(said: Entry) -> Entry:
    for name in sorted(_ELSEWHERE & set(said.tree)):
        if said.tree[name]:
            raise ConfigError(f"{said.where}: {name} is not supported. Use `kubectl kustomize`")
    said.only(_TEXTS | _LISTS | _MAPS | _ELSEWHERE)
    kind = said.text("kind", "Kustomization")
    if kind not in _VERSIONS:
        raise ConfigError(f"{said.where}: kind must be {' or '.join(_VERSIONS)}, not {kind}")
    if said.text("apiVersion", _VERSIONS[kind]) != _VERSIONS[kind]:
        raise ConfigError(f"{said.where}: apiVersion of a {kind} must be {_VERSIONS[kind]}")
    for name in sorted(_TEXTS & set(said.tree)):
        said.text(name)
    for name in sorted(_LISTS & set(said.tree)):
        if not isinstance(said.tree[name], list | None):
            raise said.wrong(name, "a list")
    return said

"""Two sets of definitions: where they are read from, and which of one is compared with which of the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from ctrlruntime.errors import ConfigError
from ctrlruntime.project.compatibility.definition import compare
from ctrlruntime.project.compatibility.finding import Code, Finding

__all__ = ["Comparison", "compare_all", "definitions_in", "read_definitions"]

Definition: TypeAlias = Mapping[str, Any]

_KIND: Final = "CustomResourceDefinition"
_SUFFIXES: Final = {".yaml", ".yml", ".json"}


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changed in the definition of a name; without findings when nothing did."""

    name: str
    findings: tuple[Finding, ...]


def compare_all(old: Sequence[Definition], new: Sequence[Definition]) -> list[Comparison]:
    """Compare each definition with the one of its name, or else of its group and kind, or else of its kind; the result is sorted by name."""
    return sorted(_comparisons(list(old), list(new)), key=lambda comparison: comparison.name)


def _comparisons(old: list[Definition], new: list[Definition]) -> Iterator[Comparison]:
    for key in (_name, _group_and_kind, _of_kind):
        for was, now in _paired(old, new, key):
            yield Comparison(_name(was), tuple(compare(was, now)))
    for was in old:
        yield Comparison(_name(was), (Finding(code=Code.DEFINITION_REMOVED, was=_name(was)),))
    for now in new:
        yield Comparison(_name(now), (Finding(code=Code.DEFINITION_ADDED, now=_name(now)),))


def _paired(
    old: list[Definition], new: list[Definition], key: Callable[[Definition], Any]
) -> Iterator[tuple[Definition, Definition]]:
    """Take out of both lists and yield those that have a key in common which no other one has."""
    for was in list(old):
        here = [one for one in old if key(one) == key(was)]
        there = [one for one in new if key(one) == key(was)]
        if len(here) == len(there) == 1:
            old.remove(was)
            new.remove(there[0])
            yield was, there[0]


def _name(definition: Definition) -> str:
    return str(definition["metadata"]["name"])


def _group_and_kind(definition: Definition) -> tuple[str, str]:
    return definition["spec"]["group"], definition["spec"]["names"]["kind"]


def _of_kind(definition: Definition) -> str:
    return str(definition["spec"]["names"]["kind"])


# Reading


def read_definitions(path: Path) -> list[Definition]:
    """Return the definitions in a file, or in the YAML and JSON files of a folder and its sub-folders.

    Raises: ConfigError for a path that is not there, that holds no definition, or one that is not whole.
    """
    if not path.exists():
        raise ConfigError(f"there is no file or folder {path}")
    files = sorted(file for file in path.rglob("*") if file.suffix in _SUFFIXES) if path.is_dir() else [path]
    found: list[Definition] = []
    for file in files:
        try:
            found += definitions_in(file.read_text(encoding="utf-8"), str(file))
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file} cannot be read: {error}") from error
    if not found:
        raise ConfigError(f"there is no {_KIND} in {path}")
    return found


def definitions_in(text: str, source: str) -> list[Definition]:
    """Return the definitions among YAML or JSON documents, and in lists as kubectl prints them. Raises: ConfigError, naming `source`."""
    import yaml

    try:
        documents = list(yaml.safe_load_all(text))
    except yaml.YAMLError as error:
        raise ConfigError(f"{source} is not YAML: {' '.join(str(error).split())}") from error
    return [_whole(each, source) for each in _opened(documents) if each.get("kind") == _KIND]


def _opened(documents: Iterable[Any]) -> Iterator[dict[str, Any]]:
    for document in documents:
        if isinstance(document, dict):
            known = cast("dict[str, Any]", document)
            if str(known.get("kind", "")).endswith("List") and isinstance(known.get("items"), list):
                yield from _opened(known["items"])
            else:
                yield known


def _whole(definition: dict[str, Any], source: str) -> Definition:
    """Refuse a definition that lacks what is compared. What the API server checks beyond that is not checked here."""
    for path in ("metadata.name", "spec.group", "spec.names.kind", "spec.names.plural", "spec.versions"):
        value: Any = definition
        for step in path.split("."):
            value = cast("dict[str, Any]", value).get(step) if isinstance(value, dict) else None
        if not value:
            raise ConfigError(f"{source}: a {_KIND} has no {path}; definitions of apiextensions.k8s.io/v1 have one")
    versions: Any = definition["spec"]["versions"]
    if not all(isinstance(version, dict) and "name" in version for version in cast("list[Any]", versions)):
        raise ConfigError(f"{source}: a version in spec.versions of {definition['metadata']['name']} has no name")
    return definition

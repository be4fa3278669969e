"""Compares two bundles: their releases, their CRDs as OLM installs them, and existing objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Final, TypeAlias

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.definitions import read_definitions
from ctrlruntime.generate.options import Document
from ctrlruntime.olm.bundle import MANIFESTS, Bundle
from ctrlruntime.olm.conversion import installed_definition
from ctrlruntime.olm.examples import Example, examples_of
from ctrlruntime.olm.release import Release, release_of
from ctrlruntime.olm.upgrade.change import Change, Code
from ctrlruntime.olm.upgrade.objects import checkable, object_changes
from ctrlruntime.olm.upgrade.release import release_changes
from ctrlruntime.project.compatibility import Finding, Level, compare_all
from ctrlruntime.project.compatibility.schema import compare_schemas

__all__ = ["Comparison", "compare", "stored_versions"]

Definition: TypeAlias = Mapping[str, Any]

_WORST_FIRST: Final = tuple(Level)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The changes of the release or of one CRD, worst first; without findings if it does not change."""

    name: str
    findings: tuple[Change | Finding, ...]


def compare(
    old: Bundle, new: Bundle, *, stored: Sequence[str] = (), objects: Sequence[Mapping[str, Any]] = ()
) -> list[Comparison]:
    """Return the changes from one bundle to the next: first of the release, then of each CRD by its name.

    `stored` are the versions in which objects are stored, VERSION or CRD=VERSION; the default is the storage version of the old
    CRD. `objects` exist in a cluster; the examples of the old bundle are used, too. Raises: ConfigError for a bundle that cannot be read.
    """
    before, after = release_of(old), release_of(new)
    was, now = _definitions(before), _definitions(after)
    was = stored_versions(was, stored)
    comparisons = [Comparison(f"{before.name} -> {after.name}", tuple(release_changes(before, after)))]
    own = {each["metadata"]["name"]: each for each in now}
    origins = {each["metadata"]["name"]: each for each in was}
    for each in compare_all(was, now):
        more = list(_life(origins.get(each.name), own.get(each.name)))
        comparisons.append(Comparison(each.name, (*each.findings, *more)))
    comparisons.append(Comparison("objects", tuple(_objects(before, now, objects))))
    return [Comparison(each.name, _sorted(each.findings)) for each in comparisons]


def _sorted(findings: Iterable[Change | Finding]) -> tuple[Change | Finding, ...]:
    return tuple(sorted(findings, key=lambda finding: _WORST_FIRST.index(finding.level)))


# Definitions


def stored_versions(definitions: Sequence[Definition], given: Iterable[str]) -> list[Definition]:
    """Return the CRDs with stored versions in their status: VERSION for each CRD that has it, CRD=VERSION for one.

    Raises: ConfigError for a version that no CRD has.
    """
    listed: dict[str, list[str]] = {}
    for text in given:
        name, _, version = text.rpartition("=")
        found = [
            each["metadata"]["name"]
            for each in definitions
            if name in {"", each["metadata"]["name"]} and version in _versions(each)
        ]
        if not found:
            there = "; ".join(f"{each['metadata']['name']} has {', '.join(_versions(each))}" for each in definitions)
            raise ConfigError(f"cannot use --stored {text}: {there or 'the old bundle has no CRDs'}")
        for each in found:
            listed.setdefault(each, []).append(version)
    return [
        {**each, "status": {"storedVersions": listed[each["metadata"]["name"]]}}
        if each["metadata"]["name"] in listed
        else each
        for each in definitions
    ]


def _definitions(release: Release) -> list[Definition]:
    """Return the CRDs as OLM installs them: with the conversion webhook of the ClusterServiceVersion.

    Raises: ConfigError for a CRD that a server rejects, because it cannot be compared.
    """
    folder = release.bundle.folder
    found = read_definitions(folder / MANIFESTS)
    _check(folder, found)
    return [installed_definition(each, release.csv) for each in found]


def _check(folder: Path, definitions: Sequence[Document]) -> None:
    from ctrlruntime.project.checking import UNKNOWN_FIELD, check  # it brings the embedded API server

    for problem in check([(str(folder / MANIFESTS), checkable(definitions))]).problems:
        if problem.text != UNKNOWN_FIELD:  # which a server drops, and says so
            said = " ".join(str(problem).split())
            raise ConfigError(f"{said}. Run `ctrl bundle validate {folder}` for details")


def _life(old: Definition | None, new: Definition | None) -> Iterator[Change]:
    """Yield the changes that the comparison of two CRDs does not have: no deprecation, and no conversion."""
    if old is not None and new is not None:
        now = _versions(new)
        for name, version in _versions(old).items():
            is_left = not now.get(name, {}).get("served")
            if version.get("served") and is_left and not version.get("deprecated"):
                yield Change(code=Code.NOT_DEPRECATED, version=name)
    if new is not None:
        known = set(_unconverted(old)) if old is not None else set[tuple[str, str]]()
        for pair in _unconverted(new):
            if pair not in known:
                yield Change(code=Code.CONVERSION_MISSING, version=" and ".join(pair))


def _unconverted(definition: Definition) -> Iterator[tuple[str, str]]:
    """Yield the pairs of served versions with different fields and without a conversion webhook."""
    if (definition["spec"].get("conversion") or {}).get("strategy") == "Webhook":
        return
    served = {name: version for name, version in _versions(definition).items() if version.get("served")}
    for one, other in combinations(served, 2):
        schemas = [((served[each].get("schema") or {}).get("openAPIV3Schema") or {}) for each in (one, other)]
        changes = [*compare_schemas(*schemas, version=one), *compare_schemas(*reversed(schemas), version=one)]
        if any(change.level is Level.BREAKING for change in changes):
            yield one, other


def _versions(definition: Definition) -> dict[str, Mapping[str, Any]]:
    return {version["name"]: version for version in definition["spec"]["versions"]}


# Objects


def _objects(
    before: Release, definitions: Sequence[Definition], given: Sequence[Mapping[str, Any]]
) -> Iterator[Change]:
    examples: Sequence[Example] = examples_of(before.csv)
    if examples:
        documents = [example.document for example in examples]
        yield from object_changes(definitions, documents, of="example", must_be_known=False)
    if given:
        yield from object_changes(definitions, given, of="object", must_be_known=True)

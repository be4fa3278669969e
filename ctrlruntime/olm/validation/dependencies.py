"""The dependencies of a bundle: packages, kinds, labels and constraints that are required before it is installed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from ctrlruntime.olm.bundle import DEPENDENCIES_FILE
from ctrlruntime.olm.finding import Finding
from ctrlruntime.olm.semver import parse_range
from ctrlruntime.olm.trees import mapping
from ctrlruntime.olm.validation.subject import Problem, Subject, about

__all__ = ["run"]

_PROPERTIES: Final = ("olm.maxOpenShiftVersion", "olm.gvk.required", "olm.package.required")
"""Types of properties, which are not dependencies."""

_COMPOUND: Final = ("all", "any", "not", "none")
_KINDS: Final = ("cel", "package", "gvk", *_COMPOUND)
_LARGEST: Final = 2 << 16


def run(subject: Subject) -> Iterator[Finding]:
    bundle = subject.bundle
    if not bundle.dependencies_file:
        is_unreadable = any(each.file == DEPENDENCIES_FILE for each in bundle.unreadable)
        if (bundle.folder / DEPENDENCIES_FILE).is_file() and not is_unreadable:
            text = "has no list `dependencies:`. Add it, or remove the file if the operator has no dependencies"
            yield about("dependencies-no-list", DEPENDENCIES_FILE, text)
        return
    for index, dependency in enumerate(bundle.dependencies):
        for code, path, text in _problems(dependency):
            yield about(code, bundle.dependencies_file, text, f"dependencies[{index}]{path}")


def _problems(dependency: Any) -> Iterator[Problem]:
    known = mapping(dependency)
    kind, value = known.get("type"), known.get("value")
    match kind:
        case "olm.package":
            code, found = "dependency-package", _package(value, "version")
        case "olm.gvk":
            code, found = "dependency-gvk", _missing(value, "group", "version", "kind")
        case "olm.label":
            code, found = "dependency-label", _missing(value, "label")
        case "olm.constraint":
            code, found = "dependency-constraint", _constraint(value)
        case _:
            advice = f"unknown type {kind!r}. Use olm.package, olm.gvk, olm.label or olm.constraint"
            if kind in _PROPERTIES:
                advice = f"{kind} is a property, not a dependency. Move it to metadata/properties.yaml"
            yield "dependency-type", ".type", advice
            return
    for path, text in found:
        yield code, f".value{path}", text


def _missing(value: Any, *names: str) -> Iterator[tuple[str, str]]:
    """Yield path and text for each value that is missing, empty or not a string."""
    known = mapping(value)
    for name in names:
        if not isinstance(known.get(name), str) or not known[name]:
            yield f".{name}", "must be a string that is not empty"


def _package(value: Any, version: str) -> Iterator[tuple[str, str]]:
    missing = list(_missing(value, "packageName", version))
    yield from missing
    if f".{version}" not in dict(missing) and parse_range(value[version]) is None:
        yield f".{version}", f"{value[version]!r} is not a range of versions. Write it like >=1.0.0 <2.0.0"


def _constraint(value: Any) -> Iterator[tuple[str, str]]:
    # OLM counts what it reads, which is JSON.
    if len(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str).encode()) > _LARGEST:
        yield "", f"is larger than {_LARGEST} bytes, the maximum that OLM reads. Shorten it"
        return
    known = mapping(value)
    for name in known.keys() - {*_KINDS, "failureMessage"}:
        yield f".{name}", f"is unknown. Use one of {', '.join(_KINDS)}"
    given = [name for name in _KINDS if name in known]
    if len(given) != 1:
        yield "", f"expected one of {', '.join(_KINDS)}, got {' and '.join(given) or 'none'}"
    for name in given:
        yield from ((f".{name}{path}", text) for path, text in _one(name, known[name]))


def _one(name: str, value: Any) -> Iterator[tuple[str, str]]:
    match name:
        case "cel":
            yield from _rule(value)
        case "package":
            yield from _package(value, "versionRange")
        case "gvk":
            yield from _missing(value, "group", "version", "kind")
        case _:
            several: Any = value.get("constraints") if isinstance(value, dict) else None
            if not isinstance(several, list) or not several:
                yield ".constraints", "must be a list of at least one constraint"
                return
            for index, each in enumerate(several):
                yield from ((f".constraints[{index}]{path}", text) for path, text in _constraint(each))


def _rule(value: Any) -> Iterator[tuple[str, str]]:
    missing = list(_missing(value, "rule"))
    yield from missing
    if missing:
        return
    from ctrlruntime.cel import CompileError
    from ctrlruntime.cel.parser import parse  # types are not checked: OLM's functions and variables are its own

    try:
        parse(value["rule"])
    except CompileError as error:
        yield ".rule", f"is not a CEL expression: {' '.join(str(error).split())}"

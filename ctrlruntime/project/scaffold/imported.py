"""Kinds of other projects, by a class in the package or by the file of their CRD."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path

from ctrlruntime.api.object import Object, kind_of
from ctrlruntime.errors import ConfigError, NotRegisteredError
from ctrlruntime.generate.documents import read_text
from ctrlruntime.generate.options import Warn
from ctrlruntime.project.importing import chosen, importable, source_of
from ctrlruntime.project.package import what_failed
from ctrlruntime.project.scaffold.words import Words
from ctrlruntime.project.settings import Resource, Settings

__all__ = ["from_file", "from_module"]


def from_module(settings: Settings, module: str, group: str, version: str, kind: str) -> Resource:
    """Return an external kind whose class is in a module of the package.

    Raises: ConfigError if the module is outside the package or has no such class, GenerateError if it cannot be imported.
    """
    if module != settings.package and not module.startswith(f"{settings.package}."):
        raise ConfigError(
            f"module {module} is not in the package {settings.package}. Generate the class with `ctrl import`, or pass the file of the CRD"
        )
    try:
        found = importlib.import_module(module)
    except Exception as error:
        raise what_failed(f"cannot import {module}", error, settings.package) from error
    classes = [each for each in vars(found).values() if isinstance(each, type) and issubclass(each, Object)]
    known: list[str] = []
    for cls in classes:
        try:
            info = kind_of(cls)
        except NotRegisteredError:
            continue
        known.append(f"{info.kind} {info.api_version}")
        if (info.group, info.version, info.kind) == (group, version, kind):
            return Resource(
                group=group,
                version=version,
                kind=kind,
                plural=info.plural,
                namespaced=info.scope == "Namespaced",
                is_external=True,
                python_class=f"{cls.__module__}.{cls.__name__}",
            )
    raise ConfigError(f"module {module} has no {kind} {group}/{version}. It has {', '.join(known) or 'no kinds'}")


def from_file(
    settings: Settings, path: Path, group: str, version: str, kind: str, *, warn: Warn
) -> tuple[Resource, dict[str, str]]:
    """Return an external kind by the file of its CRD, and the text of its module by path.

    Raises: ConfigError for a file without this kind and version.
    """
    text = read_text(path)
    (definition,) = chosen(importable(text, str(path)), kind)[:1]
    spec = definition["spec"]
    versions = {each["name"]: each for each in spec["versions"]}
    if spec["group"] != group or version not in versions:
        has = ", ".join(f"{spec['group']}/{name}" for name in versions)
        raise ConfigError(f"{path} has no {kind} {group}/{version}. It has {has}")
    resource = Resource(
        group=group,
        version=version,
        kind=kind,
        plural=spec["names"]["plural"],
        namespaced=spec["scope"] == "Namespaced",
        is_external=True,
    )
    module = Words(settings, resource).api_module
    name = kind if versions[version].get("storage") else f"{kind}{version.capitalize()}"
    source = source_of([definition], external=True, warn=warn)
    return replace(resource, python_class=f"{module}.{name}"), {f"{module.replace('.', '/')}.py": source}

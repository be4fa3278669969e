"""A kubebuilder project in Go becomes one in Python: its settings, and the classes of its kinds from their CRDs.

The project in Go is only read. Schemas are taken from the CRDs in `config/crd/bases` and not from the Go types: controller-gen has written
all validation there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.definitions import read_definitions
from ctrlruntime.generate.options import Document, Warn
from ctrlruntime.project.importing import check, source_of
from ctrlruntime.project.project_file import ProjectFile
from ctrlruntime.project.scaffold.imported import from_file
from ctrlruntime.project.scaffold.lookup import builtin, is_builtin
from ctrlruntime.project.scaffold.resources import refuse_clash
from ctrlruntime.project.scaffold.words import Words
from ctrlruntime.project.settings import Features, Resource, Settings

__all__ = ["Takeover", "take_over"]

_BASES: Final = Path("config", "crd", "bases")
_SUFFIXES: Final = frozenset({".json", ".yaml", ".yml"})


@dataclass(frozen=True, slots=True)
class Takeover:
    """The settings of the Python project, and the modules with its classes, by path."""

    settings: Settings
    modules: Mapping[str, str] = field(default_factory=dict[str, str])


def take_over(folder: Path, project: ProjectFile, settings: Settings, *, warn: Warn) -> Takeover:
    """Return what the project in Go in `folder` becomes, with these settings. `warn` takes a line for each part that needs your work.

    Raises: ConfigError for a CRD that cannot be read, or two kinds that need the same module.
    """
    for note in project.notes:
        warn(note)
    # kubebuilder's tree has the policies and leaves them out of config/default.
    settings = replace(settings, features=Features(network_policy=False))
    taking = _Taking(folder, settings, warn)
    own = [each for each in project.resources if not each.is_external]
    for key in dict.fromkeys((each.group, each.kind) for each in own):
        taking.own([each for each in own if (each.group, each.kind) == key])
    for resource in project.resources:
        if resource.is_external:
            taking.external(resource)
    taking.name_others(project)
    return Takeover(taking.settings, taking.modules)


class _Taking:
    """The settings and modules so far."""

    def __init__(self, folder: Path, settings: Settings, warn: Warn) -> None:
        self.settings = settings
        self.modules: dict[str, str] = {}
        self._folder = folder
        self._warn = warn
        self._definitions = dict(_own_definitions(folder / _BASES))

    def own(self, versions: list[Resource]) -> None:
        """Take the versions of a kind: those of PROJECT, and those that its CRD has besides."""
        first = versions[0]
        _, definition = self._definitions.get((first.group, first.kind), (None, None))
        schemas = {each["name"]: each for each in definition["spec"]["versions"]} if definition else {}
        more = [name for name in schemas if name not in {each.version for each in versions}]
        bare = Resource(group=first.group, version="", kind=first.kind, plural=first.plural)
        versions = [*versions, *(replace(bare, version=name) for name in more)]
        known = {each.version for each in versions}
        for place, each in enumerate(versions):
            resource = replace(
                each,
                storage=bool(schemas.get(each.version, {}).get("storage")) if schemas else place == 0,
                # A kind has one controller; its module has no version.
                controller=each.controller and not any(earlier.controller for earlier in versions[:place]),
                spokes=tuple(name for name in each.spokes if name in known),
            )
            if definition is None or each.version not in schemas:
                self._warn_of_missing(each)
            else:
                names = definition["spec"]["names"]
                is_namespaced = definition["spec"].get("scope", "Namespaced") == "Namespaced"
                resource = replace(resource, plural=names["plural"], namespaced=is_namespaced)
                resource = self._imported(resource, definition)
            self._add(resource)

    def external(self, resource: Resource) -> None:
        """Take a kind of Kubernetes, or of another project if its CRD is below config/crd."""
        group, version, kind = resource.group, resource.version, resource.kind
        if is_builtin(group, version, kind):
            known = builtin(group, version, kind)
        elif file := self._file_of(resource):
            known, modules = from_file(self.settings, file, group, version, kind, warn=self._warn)
            self.modules |= modules
        else:
            options = f"--group {group or 'core'} --version {version} --kind {kind} --external"
            hooks = {"--defaulting": resource.defaulting, "--validation": resource.validation}
            more = " ".join(["", *(flag for flag, is_set in hooks.items() if is_set)])
            self._warn(
                f"{kind} {group}/{version} is not taken over, because config/crd has no CRD of it. In the new project, run "
                f"`ctrl create api {options} --external-api-path CRD.yaml`"
                + (f" and `ctrl create webhook {options}{more}`" if more else "")
            )
            return
        taken = ("controller", "defaulting", "validation", "defaulting_path", "validation_path")
        of_project: dict[str, Any] = {name: getattr(resource, name) for name in taken}
        self._add(replace(known, **of_project))

    def name_others(self, project: ProjectFile) -> None:
        """Warn of the CRDs whose kinds are not in PROJECT."""
        known = {(each.group, each.kind) for each in project.resources}
        for (group, kind), (file, _) in self._definitions.items():
            if (group, kind) not in known:
                self._warn(
                    f"{kind} {group} is not in PROJECT, so it is not taken over. In the new project, run "
                    f"`ctrl import {file.resolve()} --own -o FILE.py`"
                )

    def _imported(self, resource: Resource, definition: Document) -> Resource:
        module = Words(self.settings, resource).api_module
        self.modules[f"{module.replace('.', '/')}.py"] = source_of(
            [definition], version=resource.version, warn=self._warn
        )
        return replace(resource, python_class=f"{module}.{resource.kind}")

    def _add(self, resource: Resource) -> None:
        refuse_clash(self.settings, resource.group, resource.kind, resource.plural)
        self.settings = self.settings.with_resource(resource)

    def _warn_of_missing(self, resource: Resource) -> None:
        self._warn(
            f"{_BASES} has no CRD of {resource.kind} {resource.group}/{resource.version}, so its class has only an example field. "
            "Run `make manifests` in the project in Go, and start again in an empty folder"
        )

    def _file_of(self, resource: Resource) -> Path | None:
        wanted = (resource.group, resource.kind)
        for file in _manifests(self._folder / "config" / "crd"):
            try:
                specs = [each["spec"] for each in read_definitions(file)]
            except ConfigError:  # kustomize's patches are no whole CRDs
                continue
            for spec in specs:
                versions = {each["name"] for each in spec["versions"]}
                if (spec["group"], spec["names"]["kind"]) == wanted and resource.version in versions:
                    return file
        return None


def _own_definitions(folder: Path) -> Iterator[tuple[tuple[str, str], tuple[Path, Document]]]:
    """Yield each CRD with its file, by group and kind."""
    for file in _manifests(folder):
        for definition in read_definitions(file):
            check(definition, str(file))
            yield (definition["spec"]["group"], definition["spec"]["names"]["kind"]), (file, definition)


def _manifests(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.suffix in _SUFFIXES and file.is_file())

"""The settings of a project: `[tool.ctrlruntime]` of its pyproject.toml.

They record what cannot be read from the user's classes: names, switches, and which kinds, controllers and webhooks were scaffolded. A
pyproject.toml is edited in place: what a person wrote around our table, comments too, stays as it is.
"""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path, PurePath
from typing import Any, Final, get_args, get_origin, get_type_hints

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.documents import read_text
from ctrlruntime.project import names
from ctrlruntime.spelling import did_you_mean

__all__ = [
    "PROJECT",
    "PYPROJECT",
    "REPLICAS",
    "Features",
    "NoProjectError",
    "Resource",
    "Settings",
    "check_replicas",
    "contradiction",
    "find_project",
    "has_table",
    "in_go",
    "read_settings",
    "write_settings",
]

PYPROJECT: Final = "pyproject.toml"

PROJECT: Final = "PROJECT"
"""The file that kubebuilder keeps its settings in."""

REPLICAS: Final = 3
"""The number of replicas with sharding, if it is not set."""

_MOST_REPLICAS: Final = 100

_SHOWN: Final = frozenset({"image", "namespaced", "multigroup", "scaffold_version"})
"""Fields of the settings that are written even when they hold the default: a person finds the switches there, and all features."""


class NoProjectError(ConfigError):
    """A folder is not in a project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """Which parts of the kustomize tree `config/default` takes in."""

    cert_manager: bool = True
    """cert-manager issues the webhooks' certificate; without webhooks, this has no effect."""

    metrics: bool = True
    """Serve metrics over HTTPS to callers that RBAC allows, with a Service."""

    network_policy: bool = True
    """Only callers of webhooks and readers of metrics reach the operator's Pods."""

    prometheus: bool = False
    """Create a ServiceMonitor for the Prometheus operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One version of a kind, and what the project has for it."""

    group: str
    """The full API group (`webapp.example.com`); empty for the core group."""

    version: str
    """The version of the API: `v1`."""

    kind: str
    """The name of the kind: `Captain`."""

    plural: str
    """The name of the resource: `captains`."""

    namespaced: bool = True
    """Objects of the kind have a namespace."""

    is_external: bool = False
    """The kind is not defined in the project (apps/v1 Deployment), so it has no scaffolded class."""

    python_class: str = ""
    """The dotted name of a class that was generated from a CRD: `shop.api.v1.certificate.Certificate`.

    It is that of an external kind that is not built in, or of a kind that was taken over from a project in Go.
    """

    storage: bool = False
    """Its objects are stored in this version: the first one that was scaffolded."""

    controller: bool = False
    """The project has a controller for it."""

    defaulting: bool = False
    """The project has a defaulting webhook for it."""

    validation: bool = False
    """The project has a validating webhook for it."""

    defaulting_path: str = ""
    """The path of the defaulting webhook; empty: kubebuilder's default."""

    validation_path: str = ""
    """The path of the validating webhook; empty: kubebuilder's default."""

    spokes: tuple[str, ...] = ()
    """With conversion: the versions that are converted through this one, the hub."""

    fleet: bool = False
    """Its controller copies each object to the clusters of the fleet."""

    image: str = ""
    """The image of a deploy-image controller; the next three fields are about its container."""

    image_container_command: tuple[str, ...] = ()
    """The command of its container; empty: the command of the image."""

    image_container_port: int = 0
    """The port of its container; 0: none."""

    run_as_user: int = 0
    """The numeric user of its container; 0: the image's, which must not be root."""

    @property
    def has_webhook(self) -> bool:
        return self.defaulting or self.validation or bool(self.spokes)

    @property
    def module(self) -> str:
        """The name of its Python modules: the kind in lower case."""
        return self.kind.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A project. Field names are those of the table, with dashes there."""

    project_name: str
    """A DNS label: prefix of the objects in a cluster, `PROJECT-NAME-system` is their namespace."""

    package: str
    """The Python package, by its dotted name; importable from `source_dir`."""

    domain: str
    """The domain of the API groups: a kind of group `web` is in `web.DOMAIN`."""

    source_dir: str = "."
    """The folder the package is imported from, relative to the project's: `src` in the src layout."""

    image: str = ""
    """The image of the Deployment; default: `PROJECT-NAME:latest`."""

    namespaced: bool = False
    """The operator watches only its own namespace (WATCH_NAMESPACE), with Roles instead of ClusterRoles."""

    sharding: bool = False
    """The Deployment has several replicas, which share the objects of controllers with `sharded=True`."""

    replicas: int = REPLICAS
    """The number of replicas with sharding."""

    multigroup: bool = False
    """Classes are in api/GROUP/VERSION and not in api/VERSION."""

    owner: str = ""
    """The owner in the copyright lines of generated files."""

    license: str = "none"
    """The license in the header of generated files: `apache2`, or `none`."""

    scaffold_version: str = ""
    """The version of ctrlruntime whose scaffold the project has."""

    features: Features = field(default_factory=Features)
    resources: tuple[Resource, ...] = ()

    def source_in(self, folder: Path) -> Path:
        """Return the folder that the package of the project in `folder` is imported from."""
        return (folder / self.source_dir).resolve()

    @property
    def namespace(self) -> str:
        return f"{self.project_name}-system"

    @property
    def own_resources(self) -> Iterator[Resource]:
        """The kinds whose classes are the project's."""
        return (each for each in self.resources if not each.is_external)

    @property
    def has_webhooks(self) -> bool:
        return any(each.has_webhook for each in self.resources)

    def with_resource(self, resource: Resource) -> Settings:
        """Return the settings with a resource added, or put in the place of that of its group, version and kind."""
        ordered = sorted(
            (*self.without_resource(resource).resources, resource),
            key=lambda each: (each.group, each.kind, each.version),
        )
        return replace(self, resources=tuple(ordered))

    def without_resource(self, resource: Resource) -> Settings:
        """Return the settings without the resource of this group, version and kind."""
        key = (resource.group, resource.version, resource.kind)
        return replace(
            self, resources=tuple(each for each in self.resources if (each.group, each.version, each.kind) != key)
        )


def find_project(start: Path) -> Path:
    """Return the nearest folder, from `start` upwards, that is a project, also one in Go.

    Raises: NoProjectError that says to run `ctrl init`; ConfigError for a pyproject.toml that cannot be read.
    """
    start = start.absolute()
    for folder in (start, *start.parents):
        if has_table(folder) or (folder / PROJECT).is_file():
            return folder
    raise NoProjectError(
        f"{start} is not in a project: it has no pyproject.toml with a table [tool.ctrlruntime], here or above. Create one with `ctrl init`"
    )


def has_table(folder: Path) -> bool:
    """Return whether a folder has a pyproject.toml with our table. Raises: ConfigError for one that cannot be read."""
    return _table(folder) is not None


def read_settings(folder: Path) -> Settings:
    """Return the settings of the project in `folder`.

    Raises: ConfigError, of one line, with the name of a key that is missing, unknown or of the wrong type; for a kubebuilder project in Go
    it has the command that takes this over.
    """
    table, where = _table(folder), f"{folder / PYPROJECT}: [tool.ctrlruntime]"
    if table is None:
        raise in_go(folder) or ConfigError(
            f"{folder} is not a project: its pyproject.toml has no table [tool.ctrlruntime]. Create one with `ctrl init`"
        )
    settings: Settings = _made(Settings, table, where)
    try:
        names.project_name(settings.project_name)
        for part in settings.package.split("."):
            names.package(part)
        for resource in settings.resources:
            _check_resource(resource)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error
    check_replicas(settings.replicas, f"{where} replicas")
    if found := contradiction(settings):
        raise ConfigError(f"{where}: {found.text}. {found.by_key}")
    source = PurePath(settings.source_dir)
    if not settings.source_dir or source.is_absolute() or not settings.source_dir.isprintable():
        raise ConfigError(
            f"{where} source-dir must be a folder relative to the project's, like src, not {settings.source_dir!r}"
        )
    return replace(settings, image=settings.image or f"{settings.project_name}:latest")


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two settings that exclude each other, and what to do about it: in pyproject.toml, or with other flags."""

    text: str
    by_key: str
    by_flag: str


def contradiction(settings: Settings) -> Contradiction | None:
    """Return the first pair of settings that exclude each other."""
    if settings.features.prometheus and not settings.features.metrics:
        return Contradiction(
            "prometheus requires metrics, which are off",
            "Set metrics = true, or prometheus = false",
            "Add --metrics, or --no-prometheus",
        )
    if settings.replicas != REPLICAS and not settings.sharding:
        return Contradiction(
            "replicas requires sharding, because without it one replica works and the others wait",
            "Set sharding = true, or remove replicas here and set it in config/manager/manager.yaml",
            "Add --sharding, or set replicas in config/manager/manager.yaml",
        )
    return None


def check_replicas(replicas: int, what: str) -> None:
    """Raise ConfigError for a number of replicas that sharding cannot have. `what`: the name of the setting."""
    if not 1 <= replicas <= _MOST_REPLICAS:
        raise ConfigError(f"{what} is {replicas}: give a number from 1 to {_MOST_REPLICAS}")


def in_go(folder: Path) -> ConfigError | None:
    """Return the error that names the command for a kubebuilder project in Go; None if `folder` has no file PROJECT, or has our table."""
    is_there = os.path.isfile(folder / PROJECT)  # noqa: PTH113 - False for a folder that no file system can have, too
    if not is_there or has_table(folder):
        return None
    here = folder.resolve()
    return ConfigError(
        f"{here} is a kubebuilder project in Go, whose files are not overwritten. Take it over into a new folder: "
        f"`ctrl init {shlex.quote(f'{here}-python')} --from {shlex.quote(str(here))}`"
    )


def _check_resource(resource: Resource) -> None:
    """Check what paths, modules and objects are named after. Raises: ConfigError."""
    names.resource(resource.group, (resource.version, *resource.spokes), resource.kind, resource.plural)
    if resource.python_class and not all(part.isidentifier() for part in resource.python_class.split(".")):
        raise ConfigError(f"python-class {resource.python_class!r} is not the dotted name of a class")


def write_settings(text: str, settings: Settings) -> str:
    """Return the text of a pyproject.toml with our table set to `settings`; all else is kept, to the byte where it can be.

    Inside our table comments and order stay, too; keys are added and set, and taken away when they are back at their default.
    Raises: ConfigError for a text that is not TOML.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise ConfigError(f"{PYPROJECT} is not TOML: {error}") from error
    tool = document.setdefault("tool", tomlkit.table(is_super_table=True))
    if "ctrlruntime" not in tool:
        tool["ctrlruntime"] = tomlkit.table()
    _set_keys(tool["ctrlruntime"], settings)
    result = tomlkit.dumps(document)
    return text if result == text else _spaced(result, ends_with_space=text.endswith("\n\n"))


# Reading


def _table(folder: Path) -> Mapping[str, Any] | None:
    path = folder / PYPROJECT
    if not path.is_file():
        return None
    try:
        document = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error
    table = document.get("tool", {}).get("ctrlruntime")
    if table is not None and not isinstance(table, dict):
        raise ConfigError(f"{path}: tool.ctrlruntime must be a table")
    return table


def _keys(cls: type[Any]) -> dict[str, tuple[str, Any]]:
    """The keys of a table in their order, each with the name and the type of its field."""
    hints = get_type_hints(cls)
    return {each.name.removeprefix("is_").replace("_", "-"): (each.name, hints[each.name]) for each in fields(cls)}


def _made(cls: type[Any], table: Mapping[str, Any], where: str) -> Any:
    """Return an instance of one of our dataclasses."""
    keys = _keys(cls)
    for key in table:
        if key not in keys:
            raise ConfigError(f"{where} has an unknown key {key!r}{did_you_mean(key, keys)}")
    required = {each.name for each in fields(cls) if each.default is MISSING and each.default_factory is MISSING}
    for key, (name, _) in keys.items():
        if name in required and key not in table:
            raise ConfigError(f"{where} has no key {key!r}")
    return cls(**{keys[key][0]: _value(keys[key][1], value, f"{where} {key}") for key, value in table.items()})


def _value(wanted: Any, value: Any, where: str) -> Any:
    if get_origin(wanted) is tuple:
        if not isinstance(value, list):
            raise ConfigError(f"{where} must be a list")
        item = get_args(wanted)[0]
        return tuple(_value(item, each, f"{where}[{place}]") for place, each in enumerate(value))
    if wanted in {Features, Resource}:
        if not isinstance(value, dict):
            raise ConfigError(f"{where} must be a table")
        return _made(wanted, value, where)
    if type(value) is not wanted:  # a bool is not an int here
        word = {str: "a string", bool: "true or false", int: "an integer"}[wanted]
        raise ConfigError(f"{where} must be {word}, not {value!r}")
    return value


# Writing


def _spaced(text: str, *, ends_with_space: bool) -> str:
    """Return a text with one empty line around each of our resources: where tables came, moved or went, there is none or several."""
    before = r"(?m)^([^#\n].*\n)\n*(?=\[\[tool\.ctrlruntime\.resources\]\])"
    after = r"(?m)(^\[\[tool\.ctrlruntime\.resources\]\]\n(?:[^\[#\n].*\n)+)(?=\[)"
    text = re.sub(after, r"\1\n", re.sub(before, r"\1\n", text))
    return text if ends_with_space else re.sub(r"\n+\Z", "\n", text)


def _set_keys(table: Any, values: Features | Resource | Settings) -> None:
    hidden = {each.name: each.default for each in fields(values) if not _is_shown(values, each.name)}
    for key, (name, _) in _keys(type(values)).items():
        value = getattr(values, name)
        if name == "features":
            _set_features(table, value)
        elif name == "resources":
            _set_resources(table, value)
        elif name in hidden and value == hidden[name]:
            table.pop(key, None)
        else:
            plain = list(value) if isinstance(value, tuple) else value
            if key not in table or table[key] != plain:
                table[key] = plain


def _is_shown(values: Features | Resource | Settings, name: str) -> bool:
    return isinstance(values, Features) or (isinstance(values, Settings) and name in _SHOWN)


def _set_features(table: Any, features: Features) -> None:
    import tomlkit

    if "features" not in table:
        table["features"] = tomlkit.table()
    _set_keys(table["features"], features)


def _set_resources(table: Any, resources: tuple[Resource, ...]) -> None:
    import tomlkit

    before = {(each.get("group"), each.get("version"), each.get("kind")): each for each in table.get("resources", ())}
    wanted = [(each.group, each.version, each.kind) for each in resources]
    if list(before) != wanted:
        table.pop("resources", None)
        if resources:
            entries = tomlkit.aot()
            for key in wanted:
                entries.append(before.get(key) or tomlkit.table())
            table["resources"] = entries
    for entry, resource in zip(table.get("resources", ()), resources, strict=True):
        _set_keys(entry, resource)

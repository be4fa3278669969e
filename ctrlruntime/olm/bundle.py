"""A bundle in a folder: its objects, its annotations, its dependencies. Problems are collected, not raised.

FOLDER/manifests/*.yaml              objects: one ClusterServiceVersion, CRDs, and other objects that OLM installs
FOLDER/metadata/annotations.yaml     package and channels
FOLDER/metadata/dependencies.yaml    what must be installed first (optional)
FOLDER/tests/scorecard/config.yaml   the scorecard's configuration
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.documents import read_documents, read_text
from ctrlruntime.generate.options import Document

__all__ = [
    "ANNOTATIONS_FILE",
    "CHANNELS",
    "CONFIG_FILE",
    "DEFAULT_CHANNEL",
    "DEPENDENCIES_FILE",
    "MANIFESTS",
    "MEDIA_TYPE",
    "METADATA",
    "PACKAGE",
    "SUFFIXES",
    "SUPPORTED",
    "Bundle",
    "BundleObject",
    "Unreadable",
    "read_bundle",
]

MANIFESTS: Final = "manifests"
METADATA: Final = "metadata"
ANNOTATIONS_FILE: Final = "metadata/annotations.yaml"
DEPENDENCIES_FILE: Final = "metadata/dependencies.yaml"
CONFIG_FILE: Final = "tests/scorecard/config.yaml"
SUFFIXES: Final = (".yaml", ".yml", ".json")
"""The suffixes of files with objects."""

_BUNDLE: Final = "operators.operatorframework.io.bundle"
MEDIA_TYPE: Final = f"{_BUNDLE}.mediatype.v1"
PACKAGE: Final = f"{_BUNDLE}.package.v1"
CHANNELS: Final = f"{_BUNDLE}.channels.v1"
DEFAULT_CHANNEL: Final = f"{_BUNDLE}.channel.default.v1"

SUPPORTED: Final = frozenset(
    {
        "ClusterRole",
        "ClusterRoleBinding",
        "ClusterServiceVersion",
        "ConfigMap",
        "ConsoleCLIDownload",
        "ConsoleLink",
        "ConsolePlugin",
        "ConsoleQuickStart",
        "ConsoleYAMLSample",
        "CustomResourceDefinition",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "PodMonitor",
        "PriorityClass",
        "PrometheusRule",
        "Role",
        "RoleBinding",
        "Secret",
        "Service",
        "ServiceAccount",
        "ServiceMonitor",
        "VerticalPodAutoscaler",
    }
)
"""The kinds that a bundle may hold; OLM installs no others."""


@dataclass(frozen=True, slots=True)
class BundleObject:
    """An object of `manifests/`, as it was written."""

    file: str
    document: Document

    @property
    def gvk(self) -> GroupVersionKind:
        """Its kind; parts that are missing are empty."""
        version, kind = self.document.get("apiVersion"), self.document.get("kind")
        return GroupVersionKind.parse(
            version if isinstance(version, str) else "", kind if isinstance(kind, str) else ""
        )

    @property
    def metadata(self) -> Mapping[str, Any]:
        value = self.document.get("metadata")
        return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}

    @property
    def name(self) -> str:
        value = self.metadata.get("name")
        return value if isinstance(value, str) else ""

    @property
    def spec(self) -> Mapping[str, Any]:
        value = self.document.get("spec")
        return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}

    def __str__(self) -> str:
        return "/".join(part for part in (self.gvk.kind, self.name) if part)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that is not YAML, or a document in one that is not an object."""

    file: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """The content of a folder, which may be invalid."""

    folder: Path
    objects: tuple[BundleObject, ...] = ()
    annotations: Mapping[str, Any] | None = None
    """The annotations of the bundle; None when no file of `metadata/` has any."""

    annotations_file: str = ""
    dependencies: tuple[Any, ...] = ()
    dependencies_file: str = ""
    scorecard: Document | None = None
    unreadable: tuple[Unreadable, ...] = field(default=())

    @property
    def csvs(self) -> tuple[BundleObject, ...]:
        return self.of_kind("operators.coreos.com", "ClusterServiceVersion")

    @property
    def csv(self) -> BundleObject | None:
        """The ClusterServiceVersion; None without one, or with more than one."""
        return self.csvs[0] if len(self.csvs) == 1 else None

    @property
    def definitions(self) -> tuple[BundleObject, ...]:
        return self.of_kind("apiextensions.k8s.io", "CustomResourceDefinition")

    def of_kind(self, group: str, kind: str) -> tuple[BundleObject, ...]:
        """Return the objects of a group and kind, in any version."""
        return tuple(each for each in self.objects if (each.gvk.group, each.gvk.kind) == (group, kind))

    def annotation(self, name: str) -> str:
        """Return an annotation of the bundle; empty if it is missing or not a string."""
        value = (self.annotations or {}).get(name)
        return value if isinstance(value, str) else ""

    @property
    def package(self) -> str:
        return self.annotation(PACKAGE)

    @property
    def channels(self) -> tuple[str, ...]:
        return tuple(name for part in self.annotation(CHANNELS).split(",") if (name := part.strip()))

    @property
    def default_channel(self) -> str:
        return self.annotation(DEFAULT_CHANNEL)


def read_bundle(folder: Path) -> Bundle:
    """Return the content of a folder, in the order of files and documents. Raises: ConfigError if the folder does not exist."""
    if not folder.is_dir():
        raise ConfigError(f"folder {folder} does not exist. Create the bundle with `ctrl bundle`")
    unreadable: list[Unreadable] = []
    objects = [
        BundleObject(file, _object(tree))
        for file, tree in _documents(folder, MANIFESTS, unreadable)
        if _is_object(file, tree, unreadable)
    ]
    annotations: tuple[Mapping[str, Any] | None, str] = (None, "")
    dependencies: tuple[tuple[Any, ...], str] = ((), "")
    for file, tree in _documents(folder, METADATA, unreadable):
        if not isinstance(tree, dict):
            continue
        if annotations[0] is None and isinstance(tree.get("annotations"), dict):
            annotations = (tree["annotations"], file)
        if isinstance(tree.get("dependencies"), list):
            dependencies = (tuple(tree["dependencies"]), file)
    config = [
        tree for _, tree in _documents(folder, str(Path(CONFIG_FILE).parent), unreadable) if isinstance(tree, dict)
    ]
    return Bundle(
        folder=folder,
        objects=tuple(objects),
        annotations=annotations[0],
        annotations_file=annotations[1],
        dependencies=dependencies[0],
        dependencies_file=dependencies[1],
        scorecard=config[0] if config else None,
        unreadable=tuple(unreadable),
    )


def _documents(folder: Path, below: str, unreadable: list[Unreadable]) -> Iterator[tuple[str, Any]]:
    """Yield the path below the bundle and the tree of each document of the YAML and JSON files right below a folder."""
    root = folder / below
    if not root.is_dir():
        return
    for path in sorted(root.iterdir()):
        if path.suffix not in SUFFIXES or not path.is_file():
            continue
        name = f"{below}/{path.name}"
        try:
            trees = read_documents(read_text(path, name), name)
        except ConfigError as error:
            unreadable.append(
                Unreadable(name, str(error).removeprefix(f"cannot read {name}").removeprefix(name).lstrip(",: "))
            )
            continue
        for tree in trees:
            yield name, tree


def _is_object(file: str, tree: Any, unreadable: list[Unreadable]) -> bool:
    if isinstance(tree, dict):
        return True
    unreadable.append(Unreadable(file, "a document is not an object: it must be a map with apiVersion and kind"))
    return False


def _object(tree: Any) -> Document:
    return cast("Document", tree)

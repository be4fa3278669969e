"""The description of a kind: group, version, names, and the properties of its CRD outside the schema."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

__all__ = [
    "OLM",
    "GroupVersionKind",
    "GroupVersionResource",
    "KindInfo",
    "OLMAction",
    "ScalePaths",
    "Scope",
    "guess_plural",
    "version_priority",
]

Scope: TypeAlias = Literal["Namespaced", "Cluster"]

_VERSION: Final = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?\Z")


class GroupVersionKind(NamedTuple):
    """The full name of a kind. The core group is empty."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        """`group/version` as in objects; for the core group, only the version."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_kind(self) -> str:
        """The kind without its version, as in logs and metrics.

        For example `Deployment.apps`, and `Pod` for the core group.
        """
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @classmethod
    def parse(cls, api_version: str, kind: str) -> GroupVersionKind:
        """Return the kind of an object's apiVersion and kind."""
        group, _, version = api_version.rpartition("/")
        return cls(group, version, kind)

    def __str__(self) -> str:
        return f"{self.api_version}, Kind={self.kind}"


class GroupVersionResource(NamedTuple):
    """The full name of a resource, as in a URL. `resource` is the plural."""

    group: str
    version: str
    resource: str

    @property
    def api_version(self) -> str:
        """`group/version`, or only the version for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.api_version}, Resource={self.resource}"


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """The fields of the scale subresource, as paths like `.spec.replicas`."""

    spec_replicas: str
    status_replicas: str
    label_selector: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OLMAction:
    """An action in a console for an object.

    `path` is the field that it sets (`spec.restart`).
    """

    path: str
    display: str = ""
    description: str = ""
    x: Sequence[str] = ()
    value: Any = None

    def __post_init__(self) -> None:
        _check_texts("OLMAction", path=self.path, display=self.display, description=self.description)
        if not self.path:
            raise TypeError("OLMAction needs the path of a field, such as spec.restart")
        _check_hints("OLMAction", self.x)


@dataclass(frozen=True, slots=True, kw_only=True)
class OLM:
    """How catalogs and consoles of the Operator Lifecycle Manager show a kind."""

    display_name: str = ""
    """The display name; empty: the words of the kind."""

    description: str = ""
    """Empty: the docstring of the class."""

    resources: Sequence[type[Any] | tuple[str, str] | tuple[str, str, str]] | None = None
    """The kinds of related objects: classes, or (kind, version) or (kind, version, name).

    None: those that its controller owns.
    """

    order: int | None = None
    """The position among the operator's kinds, lowest first.

    None: after those with a position.
    """

    actions: Sequence[OLMAction] = ()

    def __post_init__(self) -> None:
        _check_texts("OLM", display_name=self.display_name, description=self.description)
        if self.order is not None and not isinstance(cast("object", self.order), int):
            raise TypeError(f"OLM needs a number for its order, not {self.order!r}")
        if isinstance(self.actions, str) or not all(
            isinstance(cast("object", each), OLMAction) for each in self.actions
        ):
            raise TypeError(f"OLM needs a list of OLMAction(…) for its actions, not {self.actions!r}")
        for each in self.resources or ():
            if not _is_resource(each):
                raise TypeError(
                    f"a resource of OLM(…) is the class of a kind, or (kind, version) as in ('Pod', 'v1'), and {each!r} is neither"
                )


def _is_resource(resource: object) -> bool:
    if isinstance(resource, type):
        return getattr(resource, "__kind_info__", None) is not None
    if not isinstance(resource, tuple):
        return False
    parts = cast("tuple[object, ...]", resource)
    if len(parts) not in {2, 3} or not all(isinstance(part, str) for part in parts):
        return False
    kind, version = cast("tuple[str, str]", parts[:2])
    return kind[:1].isupper() and version[:1].islower()


def _check_texts(what: str, **texts: object) -> None:
    for name, text in texts.items():
        if not isinstance(text, str):
            raise TypeError(f"{what} needs a text for {name}, not {text!r}")


def _check_hints(what: str, hints: object) -> None:
    if isinstance(hints, str) or not all(isinstance(each, str) for each in cast("Sequence[object]", hints)):
        raise TypeError(f"{what} needs a list of hints for x, as in x=['podCount'], not {hints!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class KindInfo:
    """The class keywords of an `Object`."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    list_kind: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    scope: Scope = "Namespaced"
    scale: ScalePaths | None = None
    status_subresource: bool | None = None
    """Whether status is a subresource; None: if the class has a field `status`."""
    storage: bool | None = None
    """Whether this version is the stored one; None: if it is the only one."""
    served: bool = True
    deprecated: bool | str = False
    """True, or the deprecation warning for clients."""
    selectable_fields: tuple[str, ...] = ()
    skip: bool = False
    """Whether this version is left out of the CRD."""
    external: bool = False
    """Whether another project owns the CRD: `ctrl` does not generate, install, deploy or delete it."""
    labels: tuple[tuple[str, str], ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    olm: OLM | None = field(default=None, hash=False)

    @property
    def gvk(self) -> GroupVersionKind:
        return GroupVersionKind(self.group, self.version, self.kind)

    @property
    def gvr(self) -> GroupVersionResource:
        return GroupVersionResource(self.group, self.version, self.plural)

    @property
    def api_version(self) -> str:
        return self.gvk.api_version


def guess_plural(kind: str) -> str:
    """Return the plural that Kubernetes would derive: `Ingress` → `ingresses`, `NetworkPolicy` → `networkpolicies`."""
    name = kind.lower()
    if name.endswith("endpoints"):
        return name
    if name.endswith("s"):
        return f"{name}es"
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"


def version_priority(version: str) -> tuple[int, int, int, str]:
    """Return the sort key of an API version, best first: GA, beta, alpha, higher numbers first, other names last."""
    found = _VERSION.match(version)
    if found is None:
        return (3, 0, 0, version)
    stage = {None: 0, "beta": 1, "alpha": 2}[found.group(2)]
    return (stage, -int(found.group(1)), -int(found.group(3) or 0), "")

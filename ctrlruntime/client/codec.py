"""Encodes and decodes the objects of a class for a client.

Two families of classes are supported: `Object` and its subclasses (typed, `Unstructured.of(…)`, `PartialObjectMetadata.of(…)`), and the
`V1…` models of kubernetes_asyncio.
"""

from __future__ import annotations

import functools
import gzip
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, cast

import msgspec
from typing_extensions import TypeVar

from ctrlruntime.api.interop import V1Model, from_kubernetes_asyncio, is_kubernetes_asyncio, to_kubernetes_asyncio
from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import NamespacedName, ObjectKey
from ctrlruntime.api.model import Model
from ctrlruntime.api.object import Object, PartialObjectMetadata, Unstructured, object_key
from ctrlruntime.data import open_data
from ctrlruntime.errors import NotRegisteredError, WrongClusterError
from ctrlruntime.reconcile import Request
from ctrlruntime.rest.content import JSON, METADATA_ITEM
from ctrlruntime.scheme import Scheme

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Codec(Generic[T]):
    """Reads and writes the objects of one class."""

    gvk: GroupVersionKind
    metadata_only: bool
    decode: Callable[[bytes], T]

    @property
    def accept(self) -> str:
        return METADATA_ITEM if self.metadata_only else JSON

    def tree(self, obj: T) -> dict[str, Any]:
        """Return the JSON document, with apiVersion and kind."""
        if isinstance(obj, Object):
            return obj.to_dict()
        return {"apiVersion": self.gvk.api_version, "kind": self.gvk.kind, **from_kubernetes_asyncio(obj)}

    def encode(self, obj: T) -> bytes:
        return obj.to_json() if isinstance(obj, Object) else msgspec.json.encode(self.tree(obj))

    def wire(self, obj: T) -> Model:
        """Return the object for a patch."""
        return obj if isinstance(obj, Object) else Unstructured.from_dict(self.tree(obj))

    def key(self, obj: T) -> NamespacedName:
        if isinstance(obj, Object):
            return object_key(obj)
        metadata = getattr(obj, "metadata", None)
        return NamespacedName(getattr(metadata, "namespace", None) or "", getattr(metadata, "name", None) or "")

    def apply_payload(self, obj: T, subresource: str) -> dict[str, Any]:
        if isinstance(obj, Object):
            return obj.apply_payload(subresource=subresource)
        # A V1 object holds None for all that the code did not set, which is exactly an apply payload.
        return self.tree(obj)

    def answer(self, obj: T, raw: bytes, *, keep: bool) -> T:
        """Return the object of the server.

        Unless `keep`, update `obj` with its content and return `obj`.
        """
        fresh = self.decode(raw)
        if keep:
            return fresh
        if isinstance(obj, Object):
            obj.refresh(cast("Any", fresh))
        else:
            # Attribute by attribute: the object keeps its own `local_vars_configuration`.
            for attribute in cast("V1Model", obj).attribute_map:
                setattr(obj, f"_{attribute}", getattr(fresh, attribute))
        return obj

    def is_kind_of(self, raw: bytes) -> bool:
        """Return whether a response is an object of this kind, and not a Status."""
        return _decode_kind(raw).kind == self.gvk.kind

    def refuse_metadata_only(self, done: str) -> None:
        if self.metadata_only:
            raise TypeError(
                f"PartialObjectMetadata of a {self.gvk.kind} cannot be {done}: spec and status would be lost. "
                "Patch it, or use the class of the kind"
            )


class _Kind(msgspec.Struct, gc=False):
    kind: str = ""


_decode_kind = msgspec.json.Decoder(_Kind).decode


class Codecs:
    """The codecs of one scheme, created once for each class.

    cluster: the name of the cluster whose objects they decode. Objects of a cluster with a name are marked with it.
    """

    def __init__(self, scheme: Scheme, cluster: str = "") -> None:
        self._scheme = scheme
        self._cluster = cluster
        self._by_class: dict[type[Any], Codec[Any]] = {}

    def of(self, kind: type[T]) -> Codec[T]:
        """Return the codec of a class.

        Raises: NotRegisteredError, TypeError if it is not a kind.
        """
        codec = self._by_class.get(kind)
        if codec is None:
            codec = self._make(kind, kind)
            self._by_class[kind] = codec
        return cast("Codec[T]", codec)

    def for_object(self, obj: T) -> Codec[T]:
        """Return the codec of an object.

        For a class without a kind, the apiVersion and kind of the object count.

        Raises: as `of`.
        """
        cls: type[Any] = type(obj)
        codec = self._by_class.get(cls)
        if codec is None:
            codec = self._make(cls, obj)
            if not issubclass(cls, Object) or cls.__kind_info__ is not None:
                self._by_class[cls] = codec
        return cast("Codec[T]", codec)

    def _make(self, cls: Any, described_by: Any) -> Codec[Any]:
        if not isinstance(cls, type):
            raise TypeError(f"{cls!r} is not a kind; pass a class such as apps.Deployment")
        if issubclass(cls, Object):
            gvk = self._scheme.gvk_for(described_by)
            decode = cast("Callable[[bytes], Any]", cls.from_json)
            if self._cluster:
                decode = functools.partial(_decode_marked, cls, self._cluster)
            return Codec(gvk, issubclass(cls, PartialObjectMetadata), decode)
        if is_kubernetes_asyncio(cls):
            return Codec(_v1_gvk(cls), metadata_only=False, decode=functools.partial(_decode_v1, cls))
        raise TypeError(f"{cls.__module__}.{cls.__qualname__} is not a kind; pass a subclass of ctrl.Object")


def refuse_text_key(kind: type[Any], key: object) -> None:
    """Raise TypeError for a string instead of a key, because the namespace is missing."""
    if isinstance(key, str):
        namespace, _, name = key.rpartition("/")
        raise TypeError(
            f"{key!r} is not a key of a {kind.__name__}: pass the request, ctrl.object_key(obj), "
            f"or ctrl.NamespacedName({namespace!r}, {name!r})"
        )


def check_key(kind: type[Any], key: ObjectKey, cluster: str) -> None:
    """Reject a key of another cluster than `cluster` ("" is the manager's own).

    A key without a cluster (`NamespacedName`) is valid for every client. Raises: TypeError for a string, WrongClusterError for a key of
    another cluster.
    """
    refuse_text_key(kind, key)
    other = getattr(key, "cluster", cluster)
    if other != cluster:
        raise WrongClusterError(
            f"cannot read {kind.__name__} {key.namespace}/{key.name}: the key belongs to {_cluster_text(other)}, the client to "
            f"{_cluster_text(cluster)}. Use the client of that cluster, or pass "
            f"ctrl.NamespacedName({key.namespace!r}, {key.name!r}) to read the object of that name here"
        )


def rebound_key(key: ObjectKey, namespace: str) -> ObjectKey:
    """Return `key` in another namespace, with the same cluster."""
    cluster: str | None = getattr(key, "cluster", None)
    return NamespacedName(namespace, key.name) if cluster is None else Request(namespace, key.name, cluster)


def check_object(obj: object, cluster: str) -> None:
    """Reject an object that was read from another cluster than `cluster` ("" is the manager's own).

    Raises: WrongClusterError.
    """
    origin = getattr(obj, "_from_server", False)
    if not origin or not isinstance(obj, Object) or origin == (cluster or True) or not obj.metadata.uid:
        return
    raise WrongClusterError(
        f"cannot write {obj.kind} {object_key(obj)}: it was read from {_cluster_text('' if origin is True else origin)}, and the client is "
        f"that of {_cluster_text(cluster)}. Use the client of that cluster, or copy what you need into a new {type(obj).__name__}"
    )


def _decode_marked(cls: type[Object], cluster: str, raw: bytes) -> Object:
    decoded = cls.from_json(raw)
    object.__setattr__(decoded, "_from_server", cluster)
    return decoded


def _cluster_text(name: str) -> str:
    return f"the cluster {name!r}" if name else "the manager's own cluster"


def _decode_v1(cls: Any, raw: bytes) -> Any:
    return to_kubernetes_asyncio(cls, msgspec.json.decode(raw))


_V1_NAME = re.compile(r"(?P<prefix>[A-Z][a-z]+)?V(?P<version>[12](?:(?:alpha|beta)[0-9]+)?)(?P<kind>[A-Z]\w*)")


def _v1_gvk(cls: type[Any]) -> GroupVersionKind:
    match = _V1_NAME.fullmatch(cls.__name__)
    if match is not None:
        version, kind, prefix = f"v{match['version']}", match["kind"], (match["prefix"] or "").lower()
        for group in _builtin_groups().get((version, kind), ()):
            if not prefix or (group or "core").startswith(prefix):
                return GroupVersionKind(group, version, kind)
    raise NotRegisteredError(
        f"{cls.__name__} of kubernetes_asyncio is not a kind that a Kubernetes 1.36 server has at GA; "
        "use Unstructured.of(api_version, kind)"
    )


class _ResponseKind(msgspec.Struct):
    kind: str
    group: str = ""
    version: str = ""


class _Subresource(msgspec.Struct, rename="camel"):
    response_kind: _ResponseKind | None = None


class _Resource(msgspec.Struct, rename="camel"):
    response_kind: _ResponseKind
    subresources: list[_Subresource] = []


class _Version(msgspec.Struct):
    version: str
    resources: list[_Resource]


class _GroupMeta(msgspec.Struct):
    name: str = ""


class _Group(msgspec.Struct):
    metadata: _GroupMeta
    versions: list[_Version]


class _GroupList(msgspec.Struct):
    items: list[_Group]


class _Discovery(msgspec.Struct):
    aggregated: dict[str, _GroupList]


_decode_discovery = msgspec.json.Decoder(_Discovery).decode


@functools.cache
def _builtin_groups() -> dict[tuple[str, str], list[str]]:
    """Return {(version, kind): groups} of the built-in kinds, those of subresources too, from the recorded discovery."""
    discovery = _decode_discovery(gzip.decompress(open_data("kubernetes-1.36/discovery.json.gz")))
    groups: dict[tuple[str, str], list[str]] = {}
    for listed in discovery.aggregated.values():
        for group in listed.items:
            for version in group.versions:
                for resource in version.resources:
                    kinds = [resource.response_kind, *(sub.response_kind for sub in resource.subresources)]
                    for kind in kinds:
                        _note(groups, group.metadata.name, version.version, kind)
    return groups


def _note(groups: dict[tuple[str, str], list[str]], group: str, version: str, kind: _ResponseKind | None) -> None:
    if kind is None:
        return
    # Without a version of its own the kind is of the group version that serves it.
    found = groups.setdefault((kind.version or version, kind.kind), [])
    name = kind.group if kind.version else group
    if name not in found:
        found.append(name)

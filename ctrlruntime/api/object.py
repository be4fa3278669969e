"""Object: an API object with a kind, and the classes for kinds without a class.

Class keywords define the kind (`class Memcached(Object, group="cache.example.com", version="v1alpha1")`). `Unstructured.of(...)` returns a
class for a kind without one, `PartialObjectMetadata.of(...)` one with only the metadata. So a kind is always a class.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Never, Self, TypeVar, cast, overload

import msgspec
from pydantic import ConfigDict, Field
from typing_extensions import override

from ctrlruntime.api.kind import OLM, GroupVersionKind, KindInfo, ScalePaths, Scope, guess_plural
from ctrlruntime.api.meta.v1 import ListMeta, ObjectMeta
from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.api.model import KEYWORDS, Model, refuse_keywords
from ctrlruntime.errors import DecodeError, NotRegisteredError

__all__ = ["Object", "ObjectList", "PartialObjectMetadata", "Unstructured", "gvk_for", "kind_of", "object_key"]

_KEYWORDS = (*KindInfo.__dataclass_fields__, *(word for word in KEYWORDS if word != "struct_type"))
_NAMES = frozenset({"plural", "singular", "list_kind", "short_names"})
_OF_ONE_VERSION = frozenset({"storage", "served", "skip", "deprecated"})
# What the server assigns. None of it may be applied, or the apply would own it or fail (api-conventions: Server-Side
# Apply).
_SERVER_METADATA = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)


class Object(Model, always_sent=("api_version", "kind")):
    """An API object.

    A subclass sets its kind with class keywords, and defines `spec`, `status` or other fields.

    `group` and `version` make a class a kind; the other keywords have defaults. All are inherited, except the names if the kind differs,
    and `storage`, `served`, `skip`, `deprecated` if the version differs.
    """

    __slots__ = ("_from_server",)  # True, or the name of the cluster if it is not that of the manager

    if TYPE_CHECKING:
        __keywords__: ClassVar[Mapping[str, Any]]
        __kind_info__: ClassVar[KindInfo | None]
        __head__: ClassVar[tuple[str, str] | None]  # apiVersion and kind: KindInfo would make the text at each decode
    else:  # annotations would be evaluated again for every subclass
        __keywords__ = {}
        __kind_info__ = None
        __head__ = None

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)

    def __init_subclass__(
        cls,
        *,
        group: str | None = None,
        version: str | None = None,
        kind: str | None = None,
        plural: str | None = None,
        singular: str | None = None,
        list_kind: str | None = None,
        short_names: Sequence[str] | None = None,
        categories: Sequence[str] | None = None,
        scope: Scope | None = None,
        scale: ScalePaths | None = None,
        status_subresource: bool | None = None,
        storage: bool | None = None,
        served: bool | None = None,
        deprecated: bool | str | None = None,
        selectable_fields: Sequence[str] | None = None,
        skip: bool | None = None,
        external: bool | None = None,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        olm: OLM | None = None,
        always_sent: Iterable[str] = (),
        at_most_one_of: Iterable[Iterable[str]] = (),
        exactly_one_of: Iterable[Iterable[str]] = (),
        at_least_one_of: Iterable[Iterable[str]] = (),
        **unknown: Never,
    ) -> None:
        """Define a kind.

        Raises: TypeError for an unknown keyword, with the nearest one, or for an invalid value.
        """
        refuse_keywords(cls, unknown, known=_KEYWORDS)
        if olm is not None and not isinstance(cast("object", olm), OLM):
            raise TypeError(f"class {cls.__name__}: olm is a ctrl.crd.OLM(…), not {olm!r}")
        super().__init_subclass__(
            always_sent=always_sent,
            at_most_one_of=at_most_one_of,
            exactly_one_of=exactly_one_of,
            at_least_one_of=at_least_one_of,
        )
        said = {
            "group": group,
            "version": version,
            "kind": kind,
            "plural": plural,
            "singular": singular,
            "list_kind": list_kind,
            "short_names": _names(cls, "short_names", short_names),
            "categories": _names(cls, "categories", categories),
            "scope": scope,
            "scale": scale,
            "status_subresource": status_subresource,
            "storage": storage,
            "served": served,
            "deprecated": deprecated,
            "selectable_fields": _names(cls, "selectable_fields", selectable_fields),
            "skip": skip,
            "external": external,
            "labels": None if labels is None else tuple(labels.items()),
            "annotations": None if annotations is None else tuple(annotations.items()),
            "olm": olm,
        }
        cls.__keywords__ = _inherited(cls, said) | {name: value for name, value in said.items() if value is not None}
        cls.__kind_info__ = info = _info(cls)
        cls.__head__ = None if info is None else (info.api_version, info.kind)

    @classmethod
    @override
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        info = cls.__kind_info__
        if info is not None:
            cls.__pydantic_fields__["api_version"].default = info.api_version
            cls.__pydantic_fields__["kind"].default = info.kind

    @classmethod
    @override
    def from_json(cls, raw: bytes | str) -> Self:
        # Every read from a cache comes through here; with super() and the attributes of a model it takes 4 % longer.
        try:
            decoded: Self = cls.__pydantic_validator__.validate_json(raw, by_name=False)
        except Exception as error:  # noqa: BLE001 - a validator of the user's may raise what it likes
            decoded = cls._mended(raw, error)
        values = decoded.__dict__
        if (values["api_version"], values["kind"]) != cls.__head__:
            cls._settle_kind(decoded, raw)
        if values["metadata"].uid:
            object.__setattr__(decoded, "_from_server", True)
        return decoded

    @classmethod
    def _settle_kind(cls, decoded: Object, raw: bytes | str) -> None:
        """Deal with an object that says it is of another kind than its class."""
        head = cls.__head__
        if head is not None:
            raise DecodeError(
                f"the object is a {decoded.api_version} {decoded.kind}, and {cls.__name__} is {' '.join(head)}",
                raw=raw.encode() if isinstance(raw, str) else raw,
            )

    def apply_payload(self, *, subresource: str = "") -> dict[str, Any]:
        """Return the body of a server-side apply: the fields that the code set.

        For the object itself, status is left out. For `subresource="status"` it has only the status and the name. Raises: ValueError for an
        object that was read from the server, or one without a name.
        """
        if getattr(self, "_from_server", False) or self.metadata.uid:
            raise ValueError(
                f"{self.kind} {object_key(self)} was read from the server; applying it would claim every field it has. "
                f"Build a fresh {type(self).__name__}(metadata=ObjectMeta(name=…, namespace=…)) "
                f"and set only what you own"
            )
        if not self.metadata.name:
            raise ValueError(f"the {self.kind} has no metadata.name, and an apply needs one")
        form = self.to_apply_dict()
        metadata: dict[str, Any] = form.pop("metadata", {})
        status = form.pop("status", None)
        tree: dict[str, Any] = {"apiVersion": self.api_version, "kind": self.kind}
        if subresource == "status":
            tree["metadata"] = {name: metadata[name] for name in ("name", "namespace") if name in metadata}
            return tree if status is None else {**tree, "status": status}
        tree["metadata"] = {name: value for name, value in metadata.items() if name not in _SERVER_METADATA}
        return {**tree, **{name: value for name, value in form.items() if name not in tree}}

    @override
    def deep_copy(self) -> Self:
        fresh = super().deep_copy()
        if origin := getattr(self, "_from_server", False):
            object.__setattr__(fresh, "_from_server", origin)
        return fresh

    @override
    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return self.deep_copy()

    @override
    def _assign_from(self, other: Model) -> None:
        super()._assign_from(other)
        object.__setattr__(self, "_from_server", getattr(other, "_from_server", False))


def _names(cls: type[Object], keyword: str, values: Sequence[str] | None) -> tuple[str, ...] | None:
    if isinstance(values, str):
        raise TypeError(f"class {cls.__name__}: {keyword} is a sequence of texts: {keyword}=({values!r},)")
    return None if values is None else tuple(values)


def _inherited(cls: type[Object], said: Mapping[str, Any]) -> dict[str, Any]:
    """The parent's keywords that still hold for this class."""
    parent = next(base for base in cls.__mro__[1:] if issubclass(base, Object))
    kept = dict(parent.__keywords__)
    kind = said["kind"] or kept.get("kind") or cls.__name__
    if parent.__kind_info__ is not None and parent.__kind_info__.kind != kind:
        kept = {name: value for name, value in kept.items() if name not in _NAMES}
    if said["version"] is not None:
        kept = {name: value for name, value in kept.items() if name not in _OF_ONE_VERSION}
    return kept


def _info(cls: type[Object]) -> KindInfo | None:
    words = dict(cls.__keywords__)
    if "group" not in words or "version" not in words:
        return None
    if not words["version"] or "/" in words["version"] or "/" in words["group"]:
        raise TypeError(
            f"class {cls.__name__}: give group='apps', version='v1', not {words['group']!r}, {words['version']!r}"
        )
    if words.get("scope", "Namespaced") not in {"Namespaced", "Cluster"}:
        raise TypeError(f"class {cls.__name__}: scope is 'Namespaced' or 'Cluster', not {words['scope']!r}")
    kind = words.setdefault("kind", cls.__name__)
    words.setdefault("plural", guess_plural(kind))
    words.setdefault("singular", kind.lower())
    words.setdefault("list_kind", f"{kind}List")
    return KindInfo(**words)


class Unstructured(Object):
    """An object of a kind without a class.

    The metadata is typed. Other fields have their JSON names: `obj["spec"]["size"]`.

    `Unstructured.of("v1", "ConfigMap")` is the class of one kind, for reads and watches. `Unstructured.from_dict({...})` can have any kind.
    """

    if TYPE_CHECKING:  # content of any name is right here

        def __init__(
            self, *, api_version: str = "", kind: str = "", metadata: ObjectMeta | None = None, **content: Any
        ) -> None: ...

    else:
        __open__ = True

    @classmethod
    def of(cls, api_version: str, kind: str) -> type[Unstructured]:
        """Return the class of one kind; the same class each time."""
        return _unstructured(api_version, kind)

    @property
    def content(self) -> dict[str, Any]:
        """Everything except apiVersion, kind and metadata, by JSON name.

        Changes change the object.
        """
        if self.__pydantic_extra__ is None:
            object.__setattr__(self, "__pydantic_extra__", {})
        return cast("dict[str, Any]", self.__pydantic_extra__)

    def __getitem__(self, name: str) -> Any:
        _refuse_typed(name)
        return self.content[name]

    def __setitem__(self, name: str, value: Any) -> None:
        _refuse_typed(name)
        self.content[name] = value

    def __delitem__(self, name: str) -> None:
        _refuse_typed(name)
        del self.content[name]

    def __contains__(self, name: object) -> bool:
        return name in self.content

    def get_path(self, *path: str | int, default: Any = None) -> Any:
        """Return the value at a path, or `default` if it does not exist.

        The path consists of names and list positions.
        """
        value: Any = self.content
        for step in path:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                return default
        return value

    def set_path(self, *path: str, value: Any) -> None:
        """Set the value at a path of names, and create missing objects.

        Raises: TypeError if a value on the path is not an object.
        """
        tree = self.content
        for step in path[:-1]:
            tree = tree.setdefault(step, {})
            if not isinstance(tree, dict):
                raise TypeError(f"{'.'.join(path)} cannot be set: {step} holds a {type(tree).__name__}")
        tree[path[-1]] = value


def _refuse_typed(name: str) -> None:
    if name in {"apiVersion", "kind", "metadata"}:
        attribute = "api_version" if name == "apiVersion" else name
        raise KeyError(f"{name} of an Unstructured is typed: use .{attribute}, or to_dict() for the whole tree")


@functools.cache
def _unstructured(api_version: str, kind: str) -> type[Unstructured]:
    name = GroupVersionKind.parse(api_version, kind)
    words = {"group": name.group, "version": name.version, "kind": kind}
    return cast("type[Unstructured]", types.new_class(kind, (Unstructured,), words, _in_this_module))


def _in_this_module(namespace: dict[str, Any]) -> None:
    namespace["__module__"] = __name__


class PartialObjectMetadata(Object):
    """An object's apiVersion, kind and metadata.

    Other fields are dropped when the object is read.

    Patch or delete it; an update would remove the other fields. `PartialObjectMetadata.of(apps.Deployment)` is the class for one kind.
    """

    model_config = ConfigDict(extra="ignore")

    @classmethod
    def of(cls, kind: type[Object]) -> type[PartialObjectMetadata]:
        """Return the metadata-only class of a kind; the same class each time."""
        return _partial(kind)

    @classmethod
    @override
    def _settle_kind(cls, decoded: Object, raw: bytes | str) -> None:
        # The server names the kind of the answer, PartialObjectMetadata; what matters is whose metadata it is.
        info = cls.__kind_info__
        if info is not None:
            decoded.api_version, decoded.kind = info.api_version, info.kind


@functools.cache
def _partial(kind: type[Object]) -> type[PartialObjectMetadata]:
    info = kind_of(kind)
    words = {
        name: getattr(info, name) for name in ("group", "version", "kind", "plural", "singular", "list_kind", "scope")
    }
    name = f"PartialObjectMetadata[{info.kind}]"
    return cast("type[PartialObjectMetadata]", types.new_class(name, (PartialObjectMetadata,), words, _in_this_module))


def kind_of(kind: type[Object] | Object) -> KindInfo:
    """Return the description of the kind of a class or an object.

    Raises: NotRegisteredError if it has no kind.
    """
    cls = kind if isinstance(kind, type) else type(kind)
    if cls.__kind_info__ is not None:
        return cls.__kind_info__
    if isinstance(kind, Object) and kind.kind and kind.api_version:
        name = GroupVersionKind.parse(kind.api_version, kind.kind)
        return KindInfo(
            group=name.group,
            version=name.version,
            kind=name.kind,
            plural=guess_plural(name.kind),
            singular=name.kind.lower(),
            list_kind=f"{name.kind}List",
        )
    advice = {
        "Unstructured": "use Unstructured.of(api_version, kind)",
        "PartialObjectMetadata": "use PartialObjectMetadata.of(kind)",
    }.get(cls.__name__, f"declare it as class {cls.__name__}(Object, group=…, version=…)")
    raise NotRegisteredError(f"{cls.__name__} says no group and version, so it is not a kind: {advice}")


def gvk_for(kind: type[Object] | Object) -> GroupVersionKind:
    """Return group, version and kind of a class or an object.

    Raises: NotRegisteredError if it has no kind.
    """
    return kind_of(kind).gvk


def object_key(obj: Object) -> NamespacedName:
    """Return namespace and name of an object as a hashable key."""
    return NamespacedName(obj.metadata.namespace, obj.metadata.name)


T = TypeVar("T", bound=Object)
K = TypeVar("K", bound=Object)
W = TypeVar("W", bound=Model)


class _ListEnvelope(msgspec.Struct, rename="camel"):
    items: list[msgspec.Raw] | None = None
    metadata: msgspec.Raw = msgspec.Raw(b"{}")


_decode_list = msgspec.json.Decoder(_ListEnvelope).decode


def _part_of_list(cls: type[W], raw: bytes, kind: type[Object], path: str) -> W:
    try:
        return cls.from_json(raw)
    except DecodeError as error:
        raise DecodeError(f"{path} of a list of {kind.__name__}: {error}", raw=error.raw) from error


class ObjectList(Sequence[T], Generic[T]):
    """Objects of one kind and the metadata of the list; a sequence of its items.

    You may change `items`.
    """

    __slots__ = ("items", "kind", "metadata")

    def __init__(self, kind: type[T], items: Iterable[T] = (), *, metadata: ListMeta | None = None) -> None:
        self.kind = kind
        self.items = list(items)
        self.metadata = metadata or ListMeta()

    @staticmethod
    def from_json(kind: type[K], raw: bytes) -> ObjectList[K]:
        """Decode a list from JSON, with items of type `kind`.

        Raises: DecodeError with the item and the fields.
        """
        try:
            envelope = _decode_list(raw)
        except (ValueError, RecursionError) as error:
            raise DecodeError(f"cannot read a list of {kind.__name__}: {error}", raw=raw) from error
        metadata = bytes(envelope.metadata)
        if metadata == b"null":
            metadata = b"{}"
        items = [
            _part_of_list(kind, bytes(item), kind, f"items[{index}]") for index, item in enumerate(envelope.items or ())
        ]
        return ObjectList(kind, items, metadata=_part_of_list(ListMeta, metadata, kind, "metadata"))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document."""
        info = kind_of(self.kind)
        return {
            "apiVersion": info.api_version,
            "kind": info.list_kind,
            "metadata": self.metadata.to_dict(),
            "items": [item.to_dict() for item in self.items],
        }

    def to_json(self) -> bytes:
        """Return compact JSON."""
        return msgspec.json.encode(self.to_dict())

    @override
    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    @override
    def __getitem__(self, index: int | slice) -> T | list[T]:
        return self.items[index]

    @override
    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    @override
    def __repr__(self) -> str:
        return f"ObjectList({self.kind.__name__}, {self.items!r})"

"""Model: the base of all classes for parts of an API object.

It adds two encodings of an object to pydantic:

* the *JSON form* (`to_dict`, `to_json`). A field that was read and not changed is written exactly as it was read, with zeros, nulls, empty
objects, unknown fields and the order of sets. A field that the code sets is written as a Go client would write it: None is left out, and so
is a zero (or an empty nested object) if a missing field has the same value. `fields.absence` decides which fields these are, and
`fields.is_explicit` names the exceptions. * the *apply form* (`to_apply_dict`, and `Object.apply_payload` for a whole object), with only
the fields that the code set.

Both follow a plan that is created once for each class, at its first use.

pydantic records in `model_fields_set` which fields were given, by JSON or by code. An object also records, in `_ZEROS`, whether the zero of
a field is written; the first assignment of each field sets this. A field without this record was never assigned, so its zero was read,
unless the code created the object (`_MADE`).
"""

from __future__ import annotations

import base64
import contextlib
import copy
import functools
import inspect
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from enum import Enum
from operator import attrgetter
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Never,
    Self,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

import msgspec
from pydantic import AliasGenerator, BaseModel, ConfigDict, GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticUndefined, to_jsonable_python
from typing_extensions import override

from ctrlruntime.api.annotations import allows_none, bare
from ctrlruntime.api.decoding import encoded, load_yaml, second_try
from ctrlruntime.api.fields import (
    Absence,
    absence,
    camel,
    default_of,
    field_named,
    is_explicit,
    settle_names,
    wire_names,
)
from ctrlruntime.api.redaction import is_secret, shown
from ctrlruntime.api.sets import OrderedFrozenSet, OrderedSet, in_order_of, items_of, ordered_like, remembering
from ctrlruntime.field import Duration, MicroTime, Quantity, Time
from ctrlruntime.spelling import did_you_mean

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

__all__ = ["FieldValueError", "Model", "model_like", "refuse_keywords"]


def _encode_foreign(value: Any) -> Any:
    encode = _encoders[value.__class__]
    return value if encode is None else encode(value)


_encode_json = msgspec.json.Encoder(enc_hook=_encode_foreign).encode


_WHEN_EMPTY = Absence.WHEN_EMPTY

# What an object remembers of how it was read and set, among its private attributes.
_ZEROS = "_ctrl_zeros"
"""{attribute: whether its zero is written}, for fields that the code assigned.

Never changed in place, because copies share it.
"""
_MADE = "_ctrl_made"
"""Whether the code created the object: a zero in it was then not read."""
_NULLS = "_ctrl_nulls"
"""{JSON name: JSON form}, for nulls that were read into fields that do not allow them.

Written as null while the form is unchanged.
"""


class _Step(NamedTuple):
    """One field of a plan: its names, when it is left out, and how its values are written.

    A `quiet` field has an immutable zero until it is given, so it is skipped if it was not given.
    """

    name: str
    alias: str
    quiet: bool
    left_out: Absence
    encoders: _ByClass


class Model(BaseModel):  # noqa: PLW1641 - mutable, so unhashable: `ctrlruntime.api.key(obj)` is the hashable form
    """A part of an API object, with snake_case attributes and camelCase JSON names.

    Unknown fields are kept.

    A subclass defines fields. `X | None` is Go's pointer: None is left out, any other value is sent, including zeros. A field without a
    default is required and always sent. `Field(validation_alias=…)` sets another JSON name, for reading and writing. A field with
    `exclude=True` is never sent.

    Objects are mutable and unhashable, and equal if their content is equal. A missing field equals one with its default. The constructor
    and an assignment reject an unknown name. `to_dict` and every write reject a value of the wrong type. `del part.field` restores the
    default of a field and leaves it out.
    """

    model_config = ConfigDict(
        extra="allow",
        alias_generator=AliasGenerator(validation_alias=camel, serialization_alias=camel),
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        val_json_bytes="base64",
        ser_json_bytes="base64",
        cache_strings="keys",  # looking for values, too, finds few, and took a tenth of the time of a decode
        defer_build=True,
        protected_namespaces=(),
        hide_input_in_errors=True,  # it may be a Secret's; who reads an object hears of a misfit by a DecodeError
    )

    if TYPE_CHECKING:
        __always_sent__: ClassVar[frozenset[str]]
        __one_of__: ClassVar[tuple[tuple[str, tuple[str, ...]], ...]]  # (keyword, fields), for the generator
        __struct_type__: ClassVar[str]
        __plan__: ClassVar[tuple[_Step, ...] | None]
        __defaults__: ClassVar[dict[str, Any] | None]
        __open__: ClassVar[bool]  # whether the constructor takes names that are not fields
    else:  # pydantic would evaluate the annotations again for every subclass: 25 ms for core
        __always_sent__ = frozenset()
        __one_of__ = ()
        __struct_type__ = ""
        __plan__ = None
        __defaults__ = None
        __open__ = False

    def __init_subclass__(
        cls,
        *,
        always_sent: Iterable[str] = (),
        at_most_one_of: Iterable[Iterable[str]] = (),
        exactly_one_of: Iterable[Iterable[str]] = (),
        at_least_one_of: Iterable[Iterable[str]] = (),
        struct_type: Literal["atomic", "granular"] | None = None,
        **unknown: Never,
    ) -> None:
        """Define a part of an API object.

        always_sent: fields that are written even if they have the zero of their type.
        at_most_one_of, exactly_one_of, at_least_one_of: for the schema, groups of fields (`exactly_one_of=[("config_map", "secret")]`).
        struct_type: for the schema, whether the object is replaced as a whole.

        Raises: TypeError for an unknown keyword, a group that is not a sequence of names, or a field with the name of a method.
        """
        refuse_keywords(cls, unknown, known=KEYWORDS)
        _refuse_methods_names(cls)
        super().__init_subclass__()
        cls.__always_sent__ |= frozenset(always_sent)
        groups = {
            "at_most_one_of": at_most_one_of,
            "exactly_one_of": exactly_one_of,
            "at_least_one_of": at_least_one_of,
        }
        if at_most_one_of or exactly_one_of or at_least_one_of:
            cls.__one_of__ += tuple((word, _group(cls, word, one)) for word, many in groups.items() for one in many)
        if struct_type is not None:
            cls.__struct_type__ = struct_type
        cls.__plan__ = None
        cls.__defaults__ = None

    if not TYPE_CHECKING:  # the type checkers derive the constructor from the fields

        def __init__(self, /, **data: Any) -> None:
            self.__pydantic_validator__.validate_python(data, self_instance=self)
            if data:
                _remember(self, _MADE, True)
            if self.__pydantic_extra__ and not self.__open__:
                raise TypeError(_unknown_arguments(type(self), self.__pydantic_extra__))

        # Without this mark pydantic would call __init__ for every nested object it decodes.
        __init__.__pydantic_base_init__ = True

        def __setattr__(self, name: str, value: Any) -> None:
            if name in self.__pydantic_fields__:
                old = self.__dict__.get(name)
                if not (old and value and name in self.__pydantic_fields_set__ and value.__class__ not in _PLAIN_SETS):
                    value = _note_zero(self, name, old, value)
            elif not _is_assignable(self, name):
                raise AttributeError(_unknown_attribute(type(self), name))
            # pydantic keeps one for each name, from its first assignment on.
            set_known = self.__pydantic_setattr_handlers__.get(name)
            if set_known is None:
                super().__setattr__(name, value)
            else:
                set_known(self, name, value)

        def __delattr__(self, name: str) -> None:
            info = self.__pydantic_fields__.get(name)
            if info is None:
                super().__delattr__(name)
                return
            default = default_of(info)
            if default is PydanticUndefined:
                raise AttributeError(
                    f"{type(self).__name__}.{name} is required, so it cannot be deleted; assign another value"
                )
            self.__dict__[name] = default
            self.__pydantic_fields_set__.discard(name)
            _remember(self, _ZEROS, {**_remembered(self, _ZEROS), name: False})

    @classmethod
    @override
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        settle_names(cls)

    @classmethod
    @override
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        # A part that is a default needs its own validator first. Kinds share such parts, so this also saves building them again.
        for info in cls.model_fields.values():
            part = _part_of(info)
            if part is not None and not part.__pydantic_complete__:
                part.model_rebuild(raise_errors=False, _types_namespace={})
        settle_names(cls)  # pydantic collects fields with forward references once more
        schema = handler(source)
        model = cast("dict[str, Any]", handler.resolve_ref_schema(schema))
        fields: dict[str, Any] = model["schema"].get("fields", {}) if model["type"] == "model" else {}
        for name, field in fields.items():
            remembering(field["schema"])
            if field["schema"]["type"] == "default":
                _quicken(field["schema"], cls.model_fields[name])
        return schema

    # Reading.

    @classmethod
    def from_json(cls, raw: bytes | str) -> Self:
        """Decode an object from JSON. Missing required fields get the zero of their type.

        Raises: DecodeError with the fields.
        """
        try:
            decoded: Self = cls.__pydantic_validator__.validate_json(raw, by_name=False)
        except Exception as error:  # noqa: BLE001 - a validator of the user's may raise what it likes
            decoded = cls._mended(raw, error)
        return decoded

    @classmethod
    def _mended(cls, raw: bytes | str, error: Exception) -> Self:
        decoded, nulls = second_try(cls, raw, error)
        for path in nulls:
            _note_null(decoded, path)
        return decoded

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> Self:
        """Decode an object from a JSON document. Raises: DecodeError."""
        return cls.from_json(encoded(cls, document, _encode_json))

    @classmethod
    def from_yaml(cls, text: str) -> Self:
        """Decode an object from a YAML document. Raises: DecodeError."""
        return cls.from_dict(load_yaml(text))

    # Writing.

    def to_dict(self) -> dict[str, Any]:
        """Return the object as a new JSON document.

        Raises: FieldValueError for a value of the wrong type.
        """
        cls = self.__class__
        plan = cls.__plan__ or _compile(cls)
        values, given = self.__dict__, self.__pydantic_fields_set__
        tree: dict[str, Any] = {}
        for name, alias, quiet, left_out, encoders in plan:
            if quiet and name not in given:
                continue
            value = values[name]
            # An object is never falsy, so this is a zero or a None.
            if not value and (left_out or value is None):
                if name not in given or not _is_zero_written(self, name):
                    continue
                if value is None:
                    tree[alias] = None
                    continue
            try:
                encode = encoders[value.__class__]
                if encode is not None:
                    value = encode(value)
            except FieldValueError as error:
                raise error.inside(alias, value) from None
            if not value and left_out == _WHEN_EMPTY and (name not in given or not _is_zero_written(self, name)):
                continue
            tree[alias] = value
        private = self.__pydantic_private__
        if private is not None and _NULLS in private:
            tree |= {alias: None for alias, form in private[_NULLS].items() if tree.get(alias, _MISSING) == form}
        if self.__pydantic_extra__:
            for alias, value in self.__pydantic_extra__.items():
                encode = _encoders[value.__class__]
                tree[alias] = value if encode is None else encode(value)
        return tree

    def to_json(self) -> bytes:
        """Return the object as compact JSON. Raises: as to_dict."""
        return _encode_json(self.to_dict())

    def to_apply_dict(self) -> dict[str, Any]:
        """Return the fields to apply: those with an assigned or non-default value.

        A field that is None is included only if it is `Nullable`.

        Raises: as to_dict.
        """
        cls = self.__class__
        plan = cls.__plan__ or _compile(cls)
        values, assigned, defaults = self.__dict__, self.__pydantic_fields_set__, _defaults(cls)
        tree: dict[str, Any] = {}
        for name, alias, quiet, _left_out, encoders in plan:
            if quiet and name not in assigned:
                continue
            value = values[name]
            if value is None:
                if name in assigned and name in _explicit(cls):
                    tree[alias] = None
                continue
            default = defaults[name]
            try:
                if isinstance(value, Model):
                    form = _apply_value(value, encoders)
                    if name in assigned or default is None or form != _default_forms(cls).get(name, _NOTHING):
                        tree[alias] = form
                elif name in assigned or value != default:
                    tree[alias] = _apply_value(value, encoders)
            except FieldValueError as error:
                raise error.inside(alias, value) from None
        for alias, value in (self.__pydantic_extra__ or {}).items():
            if value is not None:
                tree[alias] = _apply_value(value, _encoders)
        return tree

    # Content.

    def deep_copy(self) -> Self:
        """Return a copy that shares nothing with this object."""
        return _deep_copy_wire(self)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return _deep_copy_wire(self)

    def refresh(self, other: Self) -> None:
        """Replace the content with that of `other`, without a copy.

        Do not use `other` afterwards (or pass a copy).
        """
        self._assign_from(other)

    def _assign_from(self, other: Model) -> None:
        """What `refresh` does; subclasses add what they keep outside the fields."""
        if type(other) is not type(self):
            raise TypeError(f"a {type(self).__name__} cannot take the content of a {type(other).__name__}")
        object.__setattr__(self, "__dict__", other.__dict__)
        object.__setattr__(self, "__pydantic_extra__", other.__pydantic_extra__)
        object.__setattr__(self, "__pydantic_fields_set__", other.__pydantic_fields_set__)
        private = {name: value for name, value in (self.__pydantic_private__ or {}).items() if name not in _KEPT}
        private |= {name: value for name, value in (other.__pydantic_private__ or {}).items() if name in _KEPT}
        object.__setattr__(self, "__pydantic_private__", private or None)

    @override
    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Model) or type(self) is not type(other):
            return NotImplemented
        return self.__dict__ == other.__dict__ and (self.__pydantic_extra__ or {}) == (other.__pydantic_extra__ or {})

    @override
    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        defaults, values = _defaults(type(self)), self.__dict__
        secret = is_secret(values.get("api_version"), values.get("kind"))
        for name, value in values.items():
            if name in defaults and (defaults[name] is PydanticUndefined or value != defaults[name]):
                yield name, shown(name, value, of_secret=secret)
        extra = self.__pydantic_extra__ or {}
        if values.get("kind") == "SecretList":
            extra = shown("", {"kind": "SecretList", **extra})
            del extra["kind"]
        for name, value in extra.items():
            yield name, shown(name, value, of_secret=secret)


# Defaults: an object without a status gets one at each decode, and `Deployment()` gets seven parts. pydantic would call the
# constructor for each, or copy.deepcopy where the default is an instance (`status: Status = Status()`, `tags: list[str] = []`).


def _part_of(info: FieldInfo) -> type[Model] | None:
    """Return the class of a default that is a part with nothing set."""
    made = info.default_factory
    if isinstance(info.default, Model) and not (info.default.model_fields_set or info.default.__pydantic_private__):
        made = type(info.default)
    if not (isinstance(made, type) and issubclass(made, Model) and made.__init__ is Model.__init__):
        return None
    return None if any(inner.is_required() for inner in made.model_fields.values()) else made


def _quicken(schema: dict[str, Any], info: FieldInfo) -> None:
    """Have a default made without a call into Python, if it is a part with nothing set or an empty collection."""
    part, default = _part_of(info), info.default
    fresh: Callable[[], Any]
    if part is not None and part.__pydantic_complete__:
        fresh = functools.partial(part.__pydantic_validator__.validate_json, b"{}")
    elif default.__class__ in {list, dict, set}:
        fresh = default.__class__
    else:
        return
    if schema.get("validate_default"):
        return
    if "default" in schema:
        if default != fresh():
            return
        del schema["default"]
        # pydantic's own JSON schema shows a default, but no factory.
        shown = {"default": to_jsonable_python(default, by_alias=True)}
        schema["metadata"] = {**schema.get("metadata", {}), "pydantic_js_updates": shown}
    schema["default_factory"] = fresh


# Plans.


def _compile(cls: type[Model]) -> tuple[_Step, ...]:
    if not cls.__pydantic_complete__:
        cls.model_rebuild()
    cls.__plan__ = tuple(_step(cls, name, wire) for name, wire in wire_names(cls).items())
    return cls.__plan__


def _step(cls: type[Model], name: str, wire: str) -> _Step:
    info = cls.model_fields[name]
    left_out = Absence.NEVER if name in cls.__always_sent__ else absence(info)
    may_be_made = info.validate_default or cls.model_config.get("validate_default")
    default = PydanticUndefined if may_be_made else default_of(info)
    is_quiet = default is None if left_out == Absence.NEVER else not default and default.__class__ in _PLAIN
    return _Step(name, wire, is_quiet, left_out, _expecting(info.annotation))


def _defaults(cls: type[Model]) -> dict[str, Any]:
    if cls.__defaults__ is None:
        cls.__defaults__ = {name: default_of(info) for name, info in cls.model_fields.items()}
    return cls.__defaults__


@functools.cache
def _default_forms(cls: type[Model]) -> Mapping[str, dict[str, Any]]:
    """Return {attribute: apply form of its default}, for parts that have one."""
    forms = {name: part.to_apply_dict() for name, part in _defaults(cls).items() if isinstance(part, Model)}
    return {name: form for name, form in forms.items() if form}


# What an object remembers of how it was read and set.

_KEPT = frozenset({_ZEROS, _MADE, _NULLS})
_MISSING: Any = object()
_NOTHING: Mapping[str, Any] = types.MappingProxyType({})
_PLAIN_SETS = frozenset({set, frozenset})


def _remembered(part: Model, key: str) -> Mapping[str, Any]:
    private = part.__pydantic_private__
    return private.get(key, _NOTHING) if private else _NOTHING


def _remember(part: Model, key: str, what: Mapping[str, Any] | bool) -> None:
    private = part.__pydantic_private__
    if private is None:
        object.__setattr__(part, "__pydantic_private__", {key: what})
    else:
        private[key] = what


def _is_zero_written(part: Model, name: str) -> bool:
    """Whether a given field that holds its zero, or None, is written: it was read so, or that differs from an absent field."""
    if name in (part.__pydantic_extra__ or ()):
        return False  # pydantic counts an unknown field of this name as given
    private = part.__pydantic_private__ or _NOTHING
    return bool(private.get(_ZEROS, _NOTHING).get(name, _MADE not in private)) or name in _explicit(type(part))


@functools.cache
def _explicit(cls: type[Model]) -> frozenset[str]:
    return frozenset(name for name, info in cls.model_fields.items() if is_explicit(info))


def _note_zero(part: Model, name: str, old: Any, value: Any) -> Any:
    """Note at the first assignment of a field whether its zero was read, and return the value to assign."""
    zeros = _remembered(part, _ZEROS)
    if name not in zeros:
        is_read = not old and name in part.__pydantic_fields_set__ and _MADE not in (part.__pydantic_private__ or ())
        _remember(part, _ZEROS, {**zeros, name: is_read})
    if value.__class__ in _PLAIN_SETS and isinstance(old, (OrderedSet, OrderedFrozenSet)):
        return ordered_like(value, old.order)
    return value


def _inside(part: Any, step: int | str) -> Any:
    if isinstance(part, BaseModel):  # one that is not a Model, too
        return getattr(part, field_named(type(part), str(step)) or "", None)
    return part[step]


def _note_null(part: Any, path: Sequence[int | str]) -> None:
    """Note that the JSON had a null at a path, which the class does not take."""
    *before, last = path
    for step in before:
        part = _inside(part, step)
    if isinstance(part, Model):
        form = part.to_dict().get(str(last), _MISSING)
        _remember(part, _NULLS, {**_remembered(part, _NULLS), str(last): form})


# Values.


class FieldValueError(ValueError):
    """A value of the wrong type: `spec.replicas: expected int, got 'three'`."""

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self._problem = problem
        self._path = path

    def inside(self, step: str, value: object) -> FieldValueError:
        """Return the error for the object that has `value` at `step`."""
        joint = "." if self._path and not self._path.startswith("[") else ""
        return FieldValueError(self._problem, f"{step}{joint}{self._path}")


class _WrongClassError(FieldValueError):
    @override
    def inside(self, step: str, value: object) -> FieldValueError:
        shown = repr(value)
        return FieldValueError(f"{self}, got {shown if len(shown) <= 60 else shown[:57] + '…'}", step)


_Convert: TypeAlias = Callable[[Any], Any]


class _ByClass(dict[type[Any], _Convert | None]):
    """The conversion of a value by its exact class.

    None means none. Unknown classes are looked up once.

    `expected` are the allowed classes; `inner` is the same for nested values.
    """

    def __init__(
        self,
        find: Callable[[type[Any]], _Convert | None],
        *,
        known: Iterable[type[Any]] = (),
        expected: str = "",
        inner: _ByClass | None = None,
    ) -> None:
        super().__init__(dict.fromkeys(known))
        self._find = find
        self.expected = expected
        self.inner = inner

    def __missing__(self, cls: type[Any]) -> _Convert | None:
        convert = self[cls] = self._find(cls)
        return convert


def _encoded(encoders: _ByClass, value: Any) -> Any:
    encode = encoders[value.__class__]
    return value if encode is None else encode(value)


def _encode_items(encoders: _ByClass, values: Iterable[Any]) -> list[Any]:
    try:
        return [value if (encode := encoders[value.__class__]) is None else encode(value) for value in values]
    except FieldValueError:
        raise _first_misfit(functools.partial(_encoded, encoders), enumerate(values)) from None


def _encode_members(encoders: _ByClass, values: Collection[Any]) -> list[Any]:
    if not isinstance(values, (set, frozenset)):
        return _encode_items(encoders, dict.fromkeys(values))
    try:
        return items_of(values, functools.partial(_encoded, encoders))
    except FieldValueError:
        raise _first_misfit(functools.partial(_encoded, encoders), enumerate(values)) from None


def _encode_values(encoders: _ByClass, values: Mapping[Any, Any]) -> dict[str, Any]:
    try:
        return {
            key if key.__class__ is str else _encode_key(key): value
            if (encode := encoders[value.__class__]) is None
            else encode(value)
            for key, value in values.items()
        }
    except FieldValueError:
        raise _first_misfit(functools.partial(_encoded, encoders), values.items()) from None


def _first_misfit(write: _Convert, pairs: Iterable[tuple[object, Any]]) -> FieldValueError:
    """Return the error of the first of these (step, value) that cannot be written."""
    for step, value in pairs:
        try:
            write(value)
        except FieldValueError as error:
            return error.inside(f"[{step}]", value)
    raise AssertionError("unreachable")


def _encode_list(values: Iterable[Any]) -> list[Any]:
    return _encode_items(_encoders, values)


def _encode_set(values: Collection[Any]) -> list[Any]:
    return _encode_members(_encoders, values)


def _encode_dict(values: Mapping[Any, Any]) -> dict[str, Any]:
    return _encode_values(_encoders, values)


def _encode_key(key: Any) -> str:
    if key.__class__ is str:
        return key
    return str(key.value if isinstance(key, Enum) else key)


def _encode_bytes(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def _encode_enum(value: Enum) -> Any:
    encode = _encoders[value.value.__class__]
    return value.value if encode is None else encode(value.value)


def _encode_datetime(value: datetime) -> str:
    moment = MicroTime.of(value)
    return (moment if moment.microsecond else Time.of(value)).text


def _find_encoder(cls: type[Any]) -> _Convert | None:
    if issubclass(cls, Model):
        return cls.to_dict
    if issubclass(cls, BaseModel):
        return lambda value: value.model_dump(mode="json", by_alias=True, exclude_none=True)
    kinds: tuple[tuple[Any, _Convert], ...] = (
        (Enum, _encode_enum),
        (Quantity, attrgetter("wire")),
        ((Time, Duration), attrgetter("text")),
        (datetime, _encode_datetime),
        ((bytes, bytearray), _encode_bytes),
        (dict, _encode_dict),
        ((list, tuple), _encode_list),
        ((set, frozenset), _encode_set),
        (str, str.__str__),
        (int, int),
        (float, float),
    )
    return next((encode for kind, encode in kinds if issubclass(cls, kind)), to_jsonable_python)


_PLAIN: tuple[type[Any], ...] = (str, int, float, bool, type(None))
_encoders = _ByClass(_find_encoder, known=_PLAIN)
"""For values of which nothing is known beforehand."""


def _expecting(annotation: Any) -> _ByClass:
    """Return what to do with the values of a field; an annotation that names no class (Any, a TypeVar) allows all."""
    kind = bare(annotation)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in {Union, types.UnionType}:
        return _either([_expecting(member) for member in arguments if member is not type(None)])
    if origin in _LIST_TYPES and arguments:
        inner = _expecting_items(arguments[0])
        write = functools.partial(_encode_members if origin in _MADE_OF_MEMBERS else _encode_items, inner)
        return _allowing("a list", (list, tuple, set, frozenset), inner, write)
    if origin in _MAP_TYPES and arguments:
        inner = _expecting_items(arguments[1])
        return _allowing("a dict", (dict,), inner, functools.partial(_encode_values, inner))
    if not isinstance(kind, type):
        return _encoders
    if kind in _SCALARS:
        return _SCALARS[kind]
    return _allowing(kind.__name__, (kind,)) if issubclass(kind, Model) else _encoders


_MADE_OF_MEMBERS = frozenset({set, frozenset, AbstractSet})
_LIST_TYPES = frozenset({list, tuple, Sequence, Collection, Iterable}) | _MADE_OF_MEMBERS
_MAP_TYPES = frozenset({dict, Mapping})


def _expecting_items(annotation: Any) -> _ByClass:
    encoders = _expecting(annotation)
    return _either([encoders, _NONE]) if allows_none(annotation) else encoders


def _allowing(
    expected: str, allowed: tuple[type[Any], ...], inner: _ByClass | None = None, encode: _Convert | None = None
) -> _ByClass:
    def find(cls: type[Any]) -> _Convert | None:
        # True is an int for Python, and none for the API.
        if not issubclass(cls, allowed) or (cls is bool and bool not in allowed):
            raise _WrongClassError(f"expected {expected}")
        return encode or _encoders[cls]

    return _ByClass(find, expected=expected, inner=inner)


def _either(members: list[_ByClass]) -> _ByClass:
    if any(member is _encoders for member in members):
        return _encoders
    expected = " or ".join(member.expected for member in members)

    def find(cls: type[Any]) -> _Convert | None:
        for member in members:
            with contextlib.suppress(_WrongClassError):
                return member[cls]
        raise _WrongClassError(f"expected {expected}")

    inner = next((member.inner for member in members if member.inner is not None), None)
    return _ByClass(find, expected=expected, inner=inner)


def _converting(kind: type[Any]) -> _ByClass:
    """Users may assign the plain relative of a scalar class (a datetime, a str), which is converted."""

    def convert(value: Any) -> Any:
        try:
            return _encoded(_encoders, kind.convert(value))
        except ValueError as error:
            raise FieldValueError(str(error)) from error

    return _ByClass(lambda cls: _encoders[kind] if cls is kind else convert, expected=kind.__name__)


def _encode_float(value: float) -> float | int:
    """Return a number as Go writes a float64: `2` and not `2.0`, which would differ from what was read."""
    return int(value) if value.is_integer() and abs(value) < _EXACT else value


_EXACT = 2**53  # up to here a float64 holds every int
_NONE = _allowing("None", (type(None),))
_NUMBER = _allowing("float", (int, float, Enum))
_SCALARS: Mapping[type[Any], _ByClass] = {
    str: _allowing("str", (str, Enum)),
    int: _allowing("int", (int, Enum)),
    float: _ByClass(lambda cls: _encode_float if issubclass(cls, float) else _NUMBER[cls], expected="float"),
    bool: _allowing("bool", (bool,)),
    bytes: _allowing("bytes", (bytes, bytearray)),
    **{kind: _converting(kind) for kind in (Time, MicroTime, Quantity, Duration)},
}


def _apply_value(value: Any, encoders: _ByClass) -> Any:
    encode = encoders[value.__class__]
    if encode is None:
        return value
    if isinstance(value, Model):
        return value.to_apply_dict()
    inner = _encoders if encoders.inner is None else encoders.inner
    if isinstance(value, (list, tuple)):
        return _apply_items(cast("list[Any]", value), inner)
    if isinstance(value, dict):
        return _apply_values(value, inner)
    return encode(value)


def _apply_items(values: Iterable[Any], encoders: _ByClass) -> list[Any]:
    try:
        return [_apply_value(value, encoders) for value in values]
    except FieldValueError:
        raise _first_misfit(lambda value: _apply_value(value, encoders), enumerate(values)) from None


def _apply_values(values: Mapping[Any, Any], encoders: _ByClass) -> dict[str, Any]:
    try:
        return {_encode_key(key): _apply_value(value, encoders) for key, value in values.items()}
    except FieldValueError:
        raise _first_misfit(lambda value: _apply_value(value, encoders), values.items()) from None


# The order of sets.


def model_like(obj: Model, before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON form of an object, with its sets in the order of an earlier form for comparison.

    Sets have no order, so equal ones give equal lists. Raises: as to_dict.
    """
    return cast("dict[str, Any]", _ordered(obj, obj.to_dict(), before))


def _ordered(value: Any, form: Any, before: Any) -> Any:
    if isinstance(value, Model):
        if isinstance(before, dict) and _holds_sets(type(value)):
            for name, alias in wire_names(type(value)).items():
                if alias in form and alias in before:
                    form[alias] = _ordered(value.__dict__[name], form[alias], before[alias])
    elif isinstance(value, (set, frozenset)):
        return in_order_of(before, form) if isinstance(before, list) else form
    elif isinstance(value, (list, tuple)) and isinstance(before, list):
        return [*map(_ordered, value, form, before), *form[len(before) :]]
    elif isinstance(value, dict) and isinstance(before, dict):
        return {
            key: _ordered(inner, form[_encode_key(key)], before.get(_encode_key(key))) for key, inner in value.items()
        }
    return form


@functools.cache
def _holds_sets(cls: type[Model]) -> bool:
    seen: set[type[Model]] = set()
    left: list[Any] = [cls]
    while left:
        kind = bare(left.pop())
        if isinstance(kind, type) and issubclass(kind, Model):
            if kind not in seen:
                seen.add(kind)
                left.extend(info.annotation for info in kind.model_fields.values())
        elif (get_origin(kind) or kind) in _MADE_OF_MEMBERS:
            return True
        else:
            left.extend(get_args(kind))
    return False


_W = TypeVar("_W", bound=Model)


def _deep_copy_wire(original: _W) -> _W:
    fresh = object.__new__(original.__class__)
    put = object.__setattr__
    extra, private = original.__pydantic_extra__, original.__pydantic_private__
    put(fresh, "__dict__", _copy_fields(original.__dict__))
    put(fresh, "__pydantic_fields_set__", original.__pydantic_fields_set__.copy())
    put(fresh, "__pydantic_extra__", _copy_dict(extra) if extra else None if extra is None else {})
    put(fresh, "__pydantic_private__", None if private is None else copy.copy(private))
    return fresh


def _copy_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    copied = dict(values)  # most fields hold a text or a number: copied at once, they cost next to nothing
    for name, value in values.items():
        again = _copiers[value.__class__]
        if again is not None:
            copied[name] = again(value)
    return copied


def _copy_list(values: list[Any]) -> list[Any]:
    return [value if (again := _copiers[value.__class__]) is None else again(value) for value in values]


def _copy_dict(values: Mapping[Any, Any]) -> dict[Any, Any]:
    return {
        key: value if (again := _copiers[value.__class__]) is None else again(value) for key, value in values.items()
    }


def _find_copier(cls: type[Any]) -> _Convert | None:
    if issubclass(cls, Model):
        return _deep_copy_wire if cls.deep_copy is Model.deep_copy else cls.deep_copy
    if issubclass(cls, (Quantity, Time, Duration, bytes, Enum)):
        return None
    known: dict[type[Any], _Convert] = {list: _copy_list, dict: _copy_dict, OrderedSet: OrderedSet[Any].copy}
    return known.get(cls) or copy.deepcopy


_copiers = _ByClass(_find_copier, known=_PLAIN)


# Keywords.

KEYWORDS = ("always_sent", "at_most_one_of", "exactly_one_of", "at_least_one_of", "struct_type")
"""The class keywords of a Model."""


def _group(cls: type[Model], keyword: str, names: Iterable[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise TypeError(f"class {cls.__name__}: {keyword} is a list of groups: {keyword}=[('a', 'b')], not {names!r}")
    return tuple(names)


# Complaints.


def refuse_keywords(cls: type[Any], unknown: Mapping[str, object], *, known: Iterable[str]) -> None:
    """Raise TypeError for unknown class keywords, with the nearest known one."""
    for name in unknown:
        raise TypeError(f"class {cls.__name__}: unknown class keyword {name!r}{did_you_mean(name, known)}")


def _refuse_methods_names(cls: type[Model]) -> None:
    """A field that takes a method's place would fail when somebody calls the method, maybe after a write."""
    for name, annotation in inspect.get_annotations(cls).items():
        if name.startswith("_") or "ClassVar" in str(annotation):  # a text, or typing.ClassVar[…]
            continue
        # pydantic has taken the fields out of the classes: what is found is a method, a property or a constant.
        owner = next((base for base in cls.__mro__[1:] if issubclass(base, BaseModel) and name in vars(base)), None)
        if owner is not None:
            raise TypeError(
                f"class {cls.__name__}: a field cannot have the name {name}, because {owner.__name__} has an attribute "
                f"with that name. Use {name}_: its name in JSON is {camel(name)}"
            )


def _unknown_arguments(cls: type[Model], extra: Mapping[str, Any]) -> str:
    name = next(iter(extra))
    return (
        f"{cls.__name__} has no field {name!r}{did_you_mean(name, cls.model_fields, '')} "
        f"(content this class does not know goes through {cls.__name__}.from_dict({{…}}))"
    )


def _is_assignable(obj: Model, name: str) -> bool:
    """Whether a name that is not a field may be set: content the server sent, private names, and descriptors of the class."""
    cls = type(obj)
    if name.startswith("_") or cls.__open__ or name in (obj.__pydantic_extra__ or ()):
        return True
    attribute = getattr(cls, name, None)
    return hasattr(attribute, "__set__") or isinstance(attribute, functools.cached_property)


def _unknown_attribute(cls: type[Model], name: str) -> str:
    by_alias = {wire: field for field, wire in wire_names(cls).items()}
    advice = did_you_mean(by_alias.get(name, name), cls.model_fields, ". Declare it in the class")
    return f"cannot set {cls.__name__}.{name}: unknown field{advice}"

"""Classes to structural schemas: a walk over pydantic's field information and our own field types.

pydantic's own JSON schema is of no use here: it has references, null types and keywords the API server refuses. The walk gives what
controller-gen gives for the Go types of the same meaning. Everything that has no such meaning is refused, with module, class and field.
"""

from __future__ import annotations

import re
import types
from collections.abc import Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from enum import Enum
from inspect import get_annotations
from typing import Any, Final, Literal, Union, cast, get_args, get_origin

from pydantic import BaseModel
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic_core import SchemaError
from typing_extensions import is_typeddict

from ctrlruntime.api.annotations import Annotation, take_apart
from ctrlruntime.api.fields import wire_names
from ctrlruntime.api.model import Model
from ctrlruntime.api.object import Object
from ctrlruntime.field import Duration, Quantity
from ctrlruntime.generate.builtin import EMBEDDED_METADATA, INT_OR_STRING, QUANTITY, builtin_name, builtin_schema
from ctrlruntime.generate.defaults import Defaults
from ctrlruntime.generate.descriptions import clean, docstring, drop
from ctrlruntime.generate.immutable import removal_rules
from ctrlruntime.generate.keys import is_affordable, is_key, key_choices, key_rules
from ctrlruntime.generate.limits import apply_limits
from ctrlruntime.generate.marks import add_rule, apply_class_marks, apply_marks
from ctrlruntime.generate.options import Document, Options, Place, Warn, warn
from ctrlruntime.generate.texts import Text, text_of
from ctrlruntime.markers import Flag, NoDescriptions, PreserveUnknownFields, Required, Schemaless, SchemaType

__all__ = ["SchemaWalker"]

_API_VERSION: Final = """\
APIVersion defines the versioned schema of this representation of an object.
Servers should convert recognized schemas to the latest internal value, and
may reject unrecognized values.
More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources"""
_KIND: Final = """\
Kind is a string value representing the REST resource this object represents.
Servers may infer this from the endpoint the client submits requests to.
Cannot be updated.
In CamelCase.
More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds"""
_HEAD: Final = ("api_version", "kind", "metadata")
_SIMPLE: Final[Mapping[type[Any], Mapping[str, Any]]] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    str: {"type": "string"},
    bytes: {"type": "string", "format": "byte"},
}
_LISTS: Final = (list, tuple, set, frozenset)
_REFUSED: Final[Mapping[Any, str]] = {
    Any: "Any has no type in a schema. Use JSONValue for any JSON, RawExtension for any object, or a class",
    object: "object has no type in a schema. Use JSONValue for any JSON, RawExtension for any object, or a class",
    dict: "a bare dict has no type for its values. Use dict[str, X], or RawExtension for any object",
    list: "a bare list has no type for its items. Use list[X]",
    tuple: "a bare tuple has no type for its items. Use list[X]",
    set: "a bare set has no type for its items. Use set[X]",
    frozenset: "a bare frozenset has no type for its items. Use frozenset[X]",
    Decimal: "not all clients and languages keep the value of a Decimal. Use Quantity, or str with a pattern",
    complex: "JSON does not support complex numbers. Use str",
    type(None): "None is not a type for a field. Use a type with None, such as str | None",
}


class SchemaWalker:
    """Makes schemas; one of it serves any number of classes."""

    def __init__(self, options: Options | None = None, *, warn: Warn = warn) -> None:
        self._options = options or Options()
        self._defaults = Defaults(warn)
        self._warn = warn
        self._open: list[type[Any]] = []

    def of_kind(self, cls: type[Object]) -> Document:
        """Return the schema of a whole object. Raises: GenerateError."""
        schema = self._model(cls, Place(cls))
        schema["properties"]["metadata"] = {"type": "object"}  # the server has its own for it, and allows no other
        return schema

    # Objects

    def _model(self, cls: type[BaseModel], place: Place) -> Document:
        hook = getattr(cls, "__ctrl_schema__", None)
        if hook is not None:
            return dict(cast("Document", hook()))
        if (name := builtin_name(cls)) is not None:
            return builtin_schema(name, place, embedded_metadata=self._options.embedded_metadata)
        if cls in self._open:
            cycle = " -> ".join(step.__name__ for step in [*self._open[self._open.index(cls) :], cls])
            raise place.error(
                f"the class contains itself ({cycle}), which a schema does not support. Use "
                f"Annotated[{cls.__name__} | None, Schemaless, SchemaType('object'), PreserveUnknownFields]"
            )
        _complete(cls, place)
        self._open.append(cls)
        schema = self._fields(cls)
        self._open.pop()
        if text := docstring(cls):
            schema["description"] = text
        apply_class_marks(cls, schema, Place(cls))
        return schema

    def _fields(self, cls: type[BaseModel]) -> Document:
        schema: Document = {"type": "object"}
        if cls.model_config.get("extra") == "allow" and not issubclass(cls, Model):
            schema["x-kubernetes-preserve-unknown-fields"] = True
        properties: Document = {}
        required: list[str] = []
        optional: dict[str, str] = {}
        for name, wire in wire_names(cls).items():
            info, place = cls.model_fields[name], Place(cls, f".{name}")
            if wire in properties:
                raise place.error(f"two fields have the JSON name {wire!r}. Rename one of them")
            if issubclass(cls, Object) and name in _HEAD and _is_inherited(cls, name):
                properties[wire] = self._head(name)
                continue
            child, is_required = self._field(info, place)
            properties[wire] = child
            if is_required:
                required.append(wire)
            else:
                optional[name] = wire
        for rule, message in removal_rules(cls, optional, self._warn):
            add_rule(schema, rule, message)
        if properties:
            schema["properties"] = properties
        if required:
            schema["required"] = sorted(required)
        return schema

    def _head(self, name: str) -> Document:
        match name:
            case "api_version":
                return {"type": "string", "description": _API_VERSION}
            case "kind":
                return {"type": "string", "description": _KIND}
            case _:
                return dict(EMBEDDED_METADATA) if self._options.embedded_metadata else {"type": "object"}

    def _field(self, info: FieldInfo, place: Place) -> tuple[Document, bool]:
        if info.json_schema_extra is not None:
            raise place.error("json_schema_extra is not supported. Use a marker in Annotated[…]")
        if info.discriminator is not None:
            raise place.error(_union_advice())
        annotation = take_apart(info.annotation, info.metadata)
        annotation.description = info.description or annotation.description
        annotation.examples = info.examples or annotation.examples
        schema = self._schema(annotation, place)
        self._defaults.apply(info, annotation, schema, place)
        is_required = info.is_required() and not annotation.optional
        return schema, is_required or Required in annotation.markers

    # Types

    def _schema(self, annotation: Annotation, place: Place) -> Document:
        """The schema of a type with what was said around it."""
        if annotation.misused:
            raise place.error(annotation.misused[0])
        schema = self._base(annotation, place)
        apply_limits(annotation.limits, schema, place)
        if schema.get("format") == "byte":
            self._bound_bytes(annotation, schema, place)
        self._limit_keys(annotation, schema, place)
        apply_marks(annotation.markers, schema, place)
        if schema.get("nullable") and "enum" in schema:
            self._warn(
                f"{place}: the API server rejects null for an enum, so Nullable has no effect. Leave it out, or use str and a pattern"
            )
        if annotation.description:
            schema["description"] = clean(annotation.description)
        if annotation.examples:
            schema["example"] = self._defaults.json(annotation.examples[0], place)
        if NoDescriptions in annotation.markers:
            drop(schema)
        return schema

    def _bound_bytes(self, annotation: Annotation, schema: Document, place: Place) -> None:
        """Say what the length of base64 cannot: it comes in steps of three bytes, and the server takes no empty one."""
        for limit in annotation.limits:
            exact = {"min_length": 1, "max_length": 0}.get(limit.kind)
            if exact is not None and limit.value % 3 != exact:
                sign, what = (">=", "at least") if limit.kind == "min_length" else ("<=", "at most")
                add_rule(schema, f"size(self) {sign} {limit.value}", f"must have {what} {limit.value} bytes")
        if not schema.get("minLength") and not any("minLength" in one for one in schema.get("allOf", ())):
            self._warn(
                f"{place}: the API server rejects empty bytes, but the class does not. Add Field(min_length=1), and omit an empty field"
            )

    def _base(self, annotation: Annotation, place: Place) -> Document:
        given = [marker for marker in annotation.markers if isinstance(marker, SchemaType)]
        flags = {marker for marker in annotation.markers if isinstance(marker, Flag)}
        if Schemaless in flags:
            return {"type": given[-1].name} if given else {}
        if annotation.is_int_or_string:
            return dict(INT_OR_STRING)
        if PreserveUnknownFields in flags and _is_free_object(annotation.bare):
            return {"type": "object"}
        if given and not self._is_known(annotation.bare):
            return {"type": given[-1].name}
        schema = self._type(annotation.bare, place)
        if given:
            schema["type"] = given[-1].name
        return schema

    @staticmethod
    def _is_known(bare: Any) -> bool:
        return isinstance(bare, type) and (bare in _SIMPLE or issubclass(bare, (BaseModel, Enum)))

    def _type(self, bare: Any, place: Place) -> Document:
        origin = get_origin(bare)
        if origin is Literal:
            return self._enum(get_args(bare), place)
        if origin in {Union, types.UnionType}:
            raise place.error(_refuse_union(get_args(bare)))
        if isinstance(origin, type):
            return self._container(origin, get_args(bare), place)
        if bare in _REFUSED:
            raise place.error(_REFUSED[bare])
        if isinstance(bare, type) and not is_typeddict(bare):
            return self._class(bare, place)
        if is_typeddict(bare):
            raise place.error(f"{bare.__name__} is a TypedDict. Use a subclass of Model")
        raise place.error(
            f"{bare!r} cannot be converted to a schema. Use a subclass of Model, or Annotated[…, SchemaType('string')]"
        )

    def _class(self, cls: type[Any], place: Place) -> Document:
        if issubclass(cls, Enum):
            schema = self._enum([member.value for member in cls], place)
            return {**schema, "description": text} if (text := docstring(cls)) else schema
        if cls in _SIMPLE:
            return dict(_SIMPLE[cls])
        if issubclass(cls, BaseModel):
            return self._model(cls, place)
        if issubclass(cls, float):
            return self._float(place)
        if issubclass(cls, Quantity):
            return dict(QUANTITY)
        if issubclass(cls, timedelta) and not issubclass(cls, Duration):
            raise place.error("Kubernetes does not support timedelta. Use ctrl.Duration, which is written as 1h30m")
        if (said := text_of(cls)) is not None:
            return self._text(said, place)
        if issubclass(cls, int):
            return {"type": "integer"}
        hook = getattr(cls, "__ctrl_schema__", None)
        if hook is not None:
            return dict(cast("Document", hook()))
        raise place.error(
            f"{cls.__name__} cannot be converted to a schema. Use a subclass of Model, set its JSON type with "
            f"Annotated[{cls.__name__}, SchemaType('string')], or add a class method __ctrl_schema__"
        )

    def _text(self, text: Text, place: Place) -> Document:
        schema: Document = {"type": "string", **text.keywords}
        if text.rule is not None:
            add_rule(schema, *text.rule)
        if text.unsaid:
            self._warn(
                f"{place}: the schema checks {text.unsaid}, so the API server stores strings that the class cannot read. Use str with a "
                f"pattern, or check the field in a webhook"
            )
        return schema

    def _float(self, place: Place) -> Document:
        if not self._options.allow_floats:
            raise place.error(
                "not all clients and languages keep the value of a float. Use Quantity, an int of a smaller unit, or str "
                "(or allow floats with Options(allow_floats=True))"
            )
        return {"type": "number"}

    def _enum(self, values: Sequence[Any], place: Place) -> Document:
        kinds = {type(value.value if isinstance(value, Enum) else value) for value in values}
        plain = [value.value if isinstance(value, Enum) else value for value in values]
        if not plain:
            raise place.error("the enum has no values. Add one")
        for kind in (str, bool, int):
            if all(issubclass(one, kind) for one in kinds):
                name = _SIMPLE[kind]["type"]
                break
        else:
            raise place.error(f"the values of an enum must be all strings or all integers, not {plain!r}")
        plain = [kind(value) for value in plain]
        return {"type": name, "enum": sorted(plain) if self._options.sort_enums else plain}

    def _container(self, origin: type[Any], arguments: tuple[Any, ...], place: Place) -> Document:
        if issubclass(origin, (dict, Mapping)):
            return self._map(arguments, place)
        if issubclass(origin, tuple) and arguments[1:] != (...,):
            raise place.error(
                "the items of a tuple have different types, which a schema does not support. Use a class, or list[X]"
            )
        if issubclass(origin, _LISTS) or origin is Sequence:
            items = self._schema(take_apart(arguments[0]), place.below("[]"))
            schema: Document = {"type": "array", "items": items}
            if issubclass(origin, (set, frozenset)):
                schema["x-kubernetes-list-type"] = "set"
            return schema
        if issubclass(origin, BaseModel):
            return self._model(origin, place)
        raise place.error(f"{origin.__name__} cannot be converted to a schema. Use list[X] or dict[str, X]")

    def _map(self, arguments: tuple[Any, ...], place: Place) -> Document:
        annotation = take_apart(arguments[0])
        key = annotation.bare
        choices = key_choices(key)
        if not is_key(key):
            raise place.error(
                f"the keys of a JSON object must be strings, not {getattr(key, '__name__', key)}. Use dict[str, X]"
            )
        values = self._schema(take_apart(arguments[1]), place.below("{}"))
        schema: Document = {"type": "object", "additionalProperties": values}
        if choices is not None:
            schema["maxProperties"] = len(choices)
        return schema

    def _limit_keys(self, annotation: Annotation, schema: Document, place: Place) -> None:
        """Add the rules for the keys of a dict, and warn of those that may cost more than the server allows."""
        origin = get_origin(annotation.bare)
        if not (isinstance(origin, type) and issubclass(origin, Mapping)) or schema.get("type") != "object":
            return
        key = take_apart(get_args(annotation.bare)[0])
        for rule, message in key_rules(key, place):
            if is_affordable(rule, schema):
                add_rule(schema, rule, message)
            else:
                self._warn(
                    f"{place}: {message}, but the schema cannot check it: the rule {rule!r} may cost more than the API server allows. "
                    f"Bound the dict with Field(max_length=…), or check the keys in a webhook"
                )


def _complete(cls: type[BaseModel], place: Place) -> None:
    try:
        if not cls.__pydantic_complete__:
            cls.model_rebuild()
    except PydanticUndefinedAnnotation as error:
        raise place.error(
            f"the annotation {error.name!r} is not defined. Import it in the module of the class"
        ) from error
    except PydanticUserError as error:
        raise place.error(f"pydantic cannot build the class: {error.message}") from error
    except SchemaError as error:
        # pydantic names the field inside its text, and the reason below it.
        names = re.findall(r'Field "([^"]+)"', str(error))
        reason = str(error).rpartition("SchemaError: ")[2].partition("\n")[2] or str(error)
        where = Place(cls, f".{names[0]}") if names else place
        raise where.error(f"pydantic cannot build the field: {' '.join(reason.split())}") from error


def _is_inherited(cls: type[BaseModel], name: str) -> bool:
    return not any(name in get_annotations(base) for base in cls.__mro__ if base not in Object.__mro__)


def _is_free_object(bare: Any) -> bool:
    return bare is dict or (get_origin(bare) is dict and get_args(bare)[1] in {Any, object})


def _union_advice() -> str:
    return (
        "a union is not a structural schema. Write one class with a field for each alternative (`a: A | None = None`), and the class "
        "keyword exactly_one_of=[('a', 'b')]"
    )


def _refuse_union(members: Sequence[Any]) -> str:
    if set(members) == {int, str}:
        return "int | str is not supported. Use IntOrString (a port or its name, a count or a percentage)"
    return _union_advice()

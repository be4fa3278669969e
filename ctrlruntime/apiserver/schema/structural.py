"""Structural schemas of custom resources: prune, default and validate trees, with upstream's messages.

A schema is compiled once for a version of a CRD. `fit` prunes unknown fields and sets defaults in place, in one walk; `validate` reports
what is wrong, and tolerates on an update what was wrong before and did not change (ratcheting). CEL rules
(`x-kubernetes-validations`) are accepted and not evaluated here; they belong to a later storey.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ctrlruntime.apiserver.encoding import copy_tree
from ctrlruntime.apiserver.failures import duplicate, invalid_value, not_supported, required, too_long, too_many
from ctrlruntime.apiserver.interfaces import Document
from ctrlruntime.apiserver.schema.formats import is_valid
from ctrlruntime.errors import StatusCause

_MISSING: Any = object()
_RESERVED = frozenset({"apiVersion", "kind", "metadata"})


class Structural:
    """One node of a structural schema."""

    __slots__ = (
        "all_of",
        "any_of",
        "default",
        "embedded",
        "enum",
        "exclusive_maximum",
        "exclusive_minimum",
        "extra",
        "format",
        "has_defaults",
        "int_or_string",
        "items",
        "keys",
        "list_type",
        "map_keys",
        "max_items",
        "max_length",
        "max_properties",
        "maximum",
        "min_items",
        "min_length",
        "min_properties",
        "minimum",
        "multiple_of",
        "not_",
        "nullable",
        "one_of",
        "pattern",
        "pattern_text",
        "plain",
        "preserve",
        "properties",
        "required",
        "type",
    )

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.type: str = schema.get("type", "")
        self.nullable: bool = schema.get("nullable", False)
        self.preserve: bool = schema.get("x-kubernetes-preserve-unknown-fields", False)
        self.embedded: bool = schema.get("x-kubernetes-embedded-resource", False)
        self.int_or_string: bool = schema.get("x-kubernetes-int-or-string", False)
        self.list_type: str = schema.get("x-kubernetes-list-type", "")
        self.map_keys: Sequence[str] = schema.get("x-kubernetes-list-map-keys") or ()
        self.default: Any = schema.get("default", _MISSING)
        self.properties = {name: Structural(child) for name, child in (schema.get("properties") or {}).items()}
        self.items = Structural(schema["items"]) if isinstance(schema.get("items"), Mapping) else None
        additional = schema.get("additionalProperties")
        self.extra = Structural(additional) if isinstance(additional, Mapping) else None
        if additional is True and not self.properties:
            self.extra = Structural({"x-kubernetes-preserve-unknown-fields": True})
        self.required: Sequence[str] = schema.get("required") or ()
        self.enum: Sequence[Any] | None = schema.get("enum")
        self.format: str = schema.get("format", "")
        self.minimum: float | None = schema.get("minimum")
        self.maximum: float | None = schema.get("maximum")
        self.exclusive_minimum: bool = schema.get("exclusiveMinimum", False)
        self.exclusive_maximum: bool = schema.get("exclusiveMaximum", False)
        self.multiple_of: float | None = schema.get("multipleOf")
        self.min_length: int | None = schema.get("minLength")
        self.max_length: int | None = schema.get("maxLength")
        self.pattern_text: str = schema.get("pattern", "")
        self.pattern = compile_pattern(self.pattern_text) if self.pattern_text else None
        self.min_items: int | None = schema.get("minItems")
        self.max_items: int | None = schema.get("maxItems")
        self.min_properties: int | None = schema.get("minProperties")
        self.max_properties: int | None = schema.get("maxProperties")
        self.all_of = [Structural(child) for child in schema.get("allOf") or ()]
        self.any_of = [Structural(child) for child in schema.get("anyOf") or ()]
        self.one_of = [Structural(child) for child in schema.get("oneOf") or ()]
        self.not_ = Structural(schema["not"]) if isinstance(schema.get("not"), Mapping) else None
        self.keys = frozenset(self.properties)
        # Most leaves have a type and nothing else: one comparison decides about them.
        self.plain = self.enum is None and not (
            self.format
            or self.pattern
            or self.all_of
            or self.any_of
            or self.one_of
            or self.not_
            or self.multiple_of is not None
            or any(bound is not None for bound in (self.minimum, self.maximum, self.min_length, self.max_length))
        )
        self.has_defaults: bool = any(
            child.default is not _MISSING or child.has_defaults for child in self.properties.values()
        ) or any(child is not None and child.has_defaults for child in (self.items, self.extra))

    def defaults_of(self, name: str) -> bool:
        """Tell whether an absent property gets a default."""
        child = self.properties.get(name)
        return child is not None and child.default is not _MISSING

    # Prune and default

    def fit(self, value: Any, path: str, unknown: list[str], *, is_root: bool = False, defaults: bool = True) -> None:
        """Remove fields the schema does not have and set its defaults, in place; report removed fields by path."""
        if type(value) is dict:
            self._fit_object(value, path, unknown, is_root, defaults)
        elif type(value) is list and self.items is not None:
            items = self.items
            if (
                items.properties
                or items.extra is not None
                or items.items is not None
                or items.has_defaults
                or items.type == "object"
            ):
                for index, item in enumerate(value):
                    items.fit(item, f"{path}[{index}]", unknown, defaults=defaults)
        elif type(value) is list and not self.preserve:
            for index, item in enumerate(value):
                _NOTHING_KNOWN.fit(item, f"{path}[{index}]", unknown)

    def _fit_object(self, value: Document, path: str, unknown: list[str], is_root: bool, defaults: bool) -> None:
        prefix = f"{path}." if path else ""
        if self.extra is not None:
            for key, item in list(value.items()):
                if type(item) is dict or type(item) is list:
                    self.extra.fit(item, prefix + key, unknown, defaults=defaults)
                elif item is None and not self.extra.nullable:
                    del value[key]
            return
        properties = self.properties
        if not self.preserve and not value.keys() <= self.keys:
            kept = _RESERVED if is_root or self.embedded else frozenset[str]()
            for key in [key for key in value if key not in properties and key not in kept]:
                del value[key]
                unknown.append(prefix + key)
        for name, child in properties.items():
            item = value.get(name, _MISSING)
            if item is _MISSING or (item is None and not child.nullable):
                if child.default is _MISSING or not defaults:
                    if item is None:  # upstream drops nulls that are neither allowed nor defaulted
                        del value[name]
                    continue
                item = child.default
                value[name] = item = copy_tree(item) if type(item) in {dict, list} else item
            if type(item) is dict or type(item) is list:
                if not (is_root and name == "metadata"):
                    child.fit(item, prefix + name, unknown, defaults=defaults)
            elif type(item) is float and item.is_integer():
                value[name] = int(item)  # Go writes 1.0 as 1

    # Validate

    def validate(self, value: Any, path: str, old: Any = _MISSING) -> list[StatusCause]:
        """Return what is wrong with the value at `path`; what was wrong in `old` and did not change is tolerated."""
        causes: list[StatusCause] = []
        self.judge(value, path, old, causes)
        return causes

    def judge(self, value: Any, path: str, old: Any, causes: list[StatusCause]) -> None:
        """Add what is wrong to `causes`; `old` is absent where there was nothing."""
        kind = type(value)
        if self.plain:
            if kind is str and self.type == "string":
                return
            if kind is int and self.type == "integer" and -(2**63) <= value < 2**63:
                return
            if kind is bool and self.type == "boolean":
                return
        if old is not _MISSING and value == old and kind is type(old):
            return
        found: list[StatusCause] = []
        if not self._check_type(value, path, found):
            causes.extend(found)
            return
        if kind is dict:
            self._validate_object(value, path, old, found)
        elif kind is list:
            self._validate_list(value, path, old, found)
        elif kind is str:
            self._check_string(value, path, found)
        elif kind is int or kind is float:
            self._check_number(value, path, found)
        if self.enum is not None and not any(_same(value, allowed) for allowed in self.enum):
            found.append(not_supported(path, value, self.enum))
        if not self.plain:
            self._check_combinations(value, path, found)
        causes.extend(found)

    def _check_type(self, value: Any, path: str, causes: list[StatusCause]) -> bool:
        if value is None:
            if self.nullable or not (self.type or self.int_or_string):
                return False
            wanted = self.type or "integer,string"
            causes.append(_type_error(path, wanted, "null"))
            return False
        actual = _type_of(value)
        if self.int_or_string and not self.type:
            if actual not in {"integer", "string"}:
                causes.append(_type_error(path, "integer,string", actual))
                return False
            return True
        wanted = self.type
        if not wanted or actual == wanted or (wanted == "number" and actual == "integer"):
            return True
        if wanted == "integer" and type(value) is float and value.is_integer():
            return True
        causes.append(_type_error(path, wanted, actual))
        if wanted == "integer" and actual == "number":
            text = f'Invalid value: "": Checked value must be of type integer (default format) in {path}'
            causes.append(StatusCause("FieldValueInvalid", text, "<nil>"))
        return False

    def _validate_object(self, value: Document, path: str, old: Any, causes: list[StatusCause]) -> None:
        before: Document = old if type(old) is dict else {}
        prefix = f"{path}." if path else ""
        properties = self.properties
        causes.extend(required(prefix + name) for name in self.required if name not in value)
        if self.min_properties is not None and len(value) < self.min_properties:
            text = f"{path} in body should have at least {self.min_properties} properties"
            causes.append(invalid_value(path, value, text))
        if self.max_properties is not None and len(value) > self.max_properties:
            causes.append(too_many(path, len(value), self.max_properties))
        for name, item in value.items():
            child = properties.get(name) or self.extra
            if child is not None:
                child.judge(item, prefix + name, before.get(name, _MISSING), causes)
        if self.embedded:
            _validate_embedded(value, path, causes)

    def _validate_list(self, value: list[Any], path: str, old: Any, causes: list[StatusCause]) -> None:
        if self.min_items is not None and len(value) < self.min_items:
            causes.append(
                invalid_value(path, len(value), f"{path} in body should have at least {self.min_items} items")
            )
        if self.max_items is not None and len(value) > self.max_items:
            causes.append(too_many(path, len(value), self.max_items))
        if self.items is not None:
            earlier = self._earlier_items(old)
            for index, item in enumerate(value):
                self.items.judge(item, f"{path}[{index}]", earlier(index, item), causes)
        if self.list_type in {"set", "map"}:
            self._check_unique(value, path, causes)

    def _earlier_items(self, old: Any) -> Any:
        """Return how an item finds its old self: by keys in a map list, by position in others."""
        if type(old) is not list:
            return lambda _index, _item: _MISSING
        if self.list_type == "map":
            by_key = {self._item_key(item): item for item in old if type(item) is dict}
            return lambda _index, item: by_key.get(self._item_key(item), _MISSING) if type(item) is dict else _MISSING
        return lambda index, _item: old[index] if index < len(old) else _MISSING

    def _item_key(self, item: Document) -> tuple[str, ...]:
        return tuple(repr(item.get(key)) for key in self.map_keys)

    def _check_unique(self, value: list[Any], path: str, causes: list[StatusCause]) -> None:
        seen: set[Any] = set()
        for index, item in enumerate(value):
            if self.list_type == "map":
                if type(item) is not dict:
                    continue
                shown: Any = {key: item[key] for key in self.map_keys if key in item}
                key: Any = self._item_key(item)
            else:
                shown, key = item, repr(item)
            if key in seen:
                causes.append(duplicate(f"{path}[{index}]", shown))
            seen.add(key)

    def _check_string(self, value: str, path: str, causes: list[StatusCause]) -> None:
        if self.max_length is not None and len(value) > self.max_length:
            causes.append(too_long(path, self.max_length))
        if self.min_length is not None and len(value) < self.min_length:
            causes.append(invalid_value(path, value, f"{path} in body should be at least {self.min_length} chars long"))
        if self.pattern is not None and not self.pattern.search(value):
            causes.append(invalid_value(path, value, f"{path} in body should match '{self.pattern_text}'"))
        if self.format and not is_valid(self.format, value):
            text = f'{path} in body must be of type {self.format}: "{value}"'
            causes.append(invalid_value(path, value, text, reason="FieldValueTypeInvalid"))

    def _check_number(self, value: float, path: str, causes: list[StatusCause]) -> None:
        if self.type == "integer" and (value >= 2**63 or value < -(2**63)):
            causes.append(_type_error(path, "integer", "number"))
            return
        if self.maximum is not None and (value > self.maximum or (self.exclusive_maximum and value == self.maximum)):
            words = "less than" if self.exclusive_maximum else "less than or equal to"
            causes.append(invalid_value(path, value, f"{path} in body should be {words} {_number(self.maximum)}"))
        if self.minimum is not None and (value < self.minimum or (self.exclusive_minimum and value == self.minimum)):
            words = "greater than" if self.exclusive_minimum else "greater than or equal to"
            causes.append(invalid_value(path, value, f"{path} in body should be {words} {_number(self.minimum)}"))
        if self.multiple_of is not None and abs(value / self.multiple_of - round(value / self.multiple_of)) > 1e-9:
            text = f"{path} in body should be a multiple of {_number(self.multiple_of)}"
            causes.append(invalid_value(path, value, text))
        if self.format == "int32" and not -(2**31) <= value < 2**31:
            text = f"{path} in body must be of type int32: {shown_number(value)!r}"
            causes.append(invalid_value(path, value, text.replace("'", '"')))

    def _check_combinations(self, value: Any, path: str, causes: list[StatusCause]) -> None:
        if self.any_of and all(child.validate(value, path) for child in self.any_of):
            causes.append(_combination(path, value, "must validate at least one schema (anyOf)"))
            causes.extend(self.any_of[0].validate(value, path))
        if self.one_of:
            failures = [child.validate(value, path) for child in self.one_of]
            valid = sum(not failure for failure in failures)
            if valid != 1:
                found = "none valid" if not valid else f"{valid} valid alternatives"
                text = f"must validate one and only one schema (oneOf). Found {found}"
                causes.append(_combination(path, value, text))
                if not valid:
                    causes.extend(failures[0])
        if self.all_of:
            failed = [cause for child in self.all_of for cause in child.validate(value, path)]
            if failed:
                causes.append(_combination(path, value, "must validate all the schemas (allOf)"))
                causes.extend(failed)
        if self.not_ is not None and not self.not_.validate(value, path):
            causes.append(_combination(path, value, "must not validate the schema (not)"))


def compile_schema(schema: Mapping[str, Any]) -> Structural:
    """Return the compiled `openAPIV3Schema` of one version; it must have passed the checks of a definition."""
    return Structural(schema)


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return a Go (RE2) pattern as Python's. Raises: ValueError, also for what RE2 does not have (look-around, back references)."""
    if re.search(r"\(\?(?:[=!]|<[=!])|\\[1-9]|\(\?P=", pattern):
        raise ValueError("error parsing regexp: invalid or unsupported Perl syntax")
    text = re.sub(r"\\z", r"\\Z", pattern).replace("[[:alpha:]]", "[A-Za-z]").replace("[[:digit:]]", "[0-9]")
    text = text.replace("[:alnum:]", "A-Za-z0-9").replace("[:lower:]", "a-z").replace("[:upper:]", "A-Z")
    text = re.sub(r"(?<!\\)\$(?=$|\)|\|)", r"\\Z", text)  # `$` is the very end of the text in RE2
    try:
        return re.compile(text, re.ASCII)
    except re.error as error:
        raise ValueError(f"error parsing regexp: {error}") from None


def shown_number(value: float) -> str:
    return _number(value)


_NOTHING_KNOWN = Structural({"type": "object", "x-kubernetes-preserve-unknown-fields": True})


def _validate_embedded(value: Document, path: str, causes: list[StatusCause]) -> None:
    missing = [name for name in ("apiVersion", "kind") if not value.get(name)]
    causes.extend(required(f"{path}.{name}") for name in missing)


def _combination(path: str, value: Any, text: str) -> StatusCause:
    return invalid_value(path or "<nil>", value, f'"{path}" {text}')


def _type_of(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            return "null"


def _type_error(path: str, wanted: str, actual: str) -> StatusCause:
    text = f'{path} in body must be of type {wanted}: "{actual}"'
    return invalid_value(path, actual, text, reason="FieldValueTypeInvalid")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else str(value)


def _same(value: Any, allowed: Any) -> bool:
    return value == allowed and isinstance(value, bool) == isinstance(allowed, bool)

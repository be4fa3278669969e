"""Structural schemas of custom resources: prune, default and validate trees, with upstream's messages.

A schema is compiled once for a version of a CRD. `fit` prunes unknown fields and sets defaults in place, in one walk; `validate` reports
what is wrong, and tolerates on an update what was wrong before and did not change (ratcheting). `judge_object` is the whole judgement
about an object, in upstream's order: the schema, the uniqueness of lists, then the CEL rules, which `rules` knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ctrlruntime.cel.patterns import compile_pattern
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import (
    duplicate,
    go_float,
    invalid_value,
    not_supported,
    quoted,
    required,
    too_long,
    too_many,
)
from ctrlruntime.schema.embedded import embedded_causes, embedded_objects, read_embedded
from ctrlruntime.schema.formats import is_valid, recognized
from ctrlruntime.schema.rules import RuleNode, compile_rules, earlier_items
from ctrlruntime.schema.trees import Document, copy_tree, encode, encode_sorted, is_same, json_type
from ctrlruntime.schema.typed import Misfit
from ctrlruntime.schema.undecodable import undecodable

_MISSING: Any = object()
_BLOCKING = frozenset(
    {
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    }
)
"""What keeps the CEL rules from being looked at."""
_RESERVED = frozenset({"apiVersion", "kind", "metadata"})


class Verdict(NamedTuple):
    """What is wrong with an object, and what is only worth a warning because it was so before."""

    causes: list[StatusCause]
    warnings: list[str]


class _Walk:
    """One fit: whether it sets defaults and keeps nulls, and the fields it removed."""

    __slots__ = ("defaults", "keeps_nulls", "unknown")

    def __init__(self, unknown: list[str], *, defaults: bool, keeps_nulls: bool) -> None:
        self.unknown = unknown
        self.defaults = defaults
        self.keeps_nulls = keeps_nulls


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
        "forbids_extra",
        "format",
        "has_defaults",
        "has_embedded",
        "has_keyed_lists",
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
        "rules",
        "span",
        "type",
        "types",
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
        if isinstance(additional, bool):
            self.extra = _NOTHING_KNOWN
        self.forbids_extra: bool = additional is False
        self.required: Sequence[str] = schema.get("required") or ()
        self.enum: Sequence[Any] | None = schema.get("enum")
        self.types = ("integer", "string") if self.int_or_string else (self.type,) if self.type else ()
        form: str = schema.get("format", "")
        self.format = form if recognized("" if self.int_or_string else self.type, form) else ""
        self.minimum = _bound(schema, "minimum")
        self.maximum = _bound(schema, "maximum")
        self.exclusive_minimum: bool = schema.get("exclusiveMinimum", False)
        self.exclusive_maximum: bool = schema.get("exclusiveMaximum", False)
        self.multiple_of = _bound(schema, "multipleOf")
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
        is_bounded = self.minimum is not None or self.maximum is not None
        is_simple = self.enum is None and not (
            self.pattern
            or self.all_of
            or self.any_of
            or self.one_of
            or self.not_
            or self.multiple_of is not None
            or self.min_length is not None
            or self.max_length is not None
        )
        # Most leaves have a type and nothing else: one comparison decides about them.
        self.plain = is_simple and not self.format and not is_bounded
        self.span = self._span() if is_simple and self.type == "integer" else range(0)
        self.has_defaults: bool = any(
            child.default is not _MISSING or child.has_defaults for child in self.properties.values()
        ) or any(child is not None and child.has_defaults for child in (self.items, self.extra))

        self.has_embedded: bool = self.embedded or any(
            child is not None and child.has_embedded for child in (*self.properties.values(), self.items, self.extra)
        )
        self.has_keyed_lists: bool = self.list_type in {"set", "map"} or any(
            child is not None and child.has_keyed_lists for child in (*self.properties.values(), self.items, self.extra)
        )
        self.rules: RuleNode | None = None
        """The CEL rules of the whole schema, at its root."""

    def _span(self) -> range:
        """Return the whole numbers that nothing is wrong with; none if Go's type does not hold a bound."""
        limit = 2**31 if self.format == "int32" else 2**63
        least, most = self.minimum, self.maximum
        if any(bound is not None and not (bound.is_integer() and -limit <= bound < limit) for bound in (least, most)):
            return range(0)
        start = -limit if least is None else int(least) + self.exclusive_minimum
        return range(start, limit if most is None else int(most) + (not self.exclusive_maximum))

    def defaults_of(self, name: str) -> bool:
        """Tell whether an absent property gets a default."""
        child = self.properties.get(name)
        return child is not None and child.default is not _MISSING

    # Prune and default

    def fit(
        self,
        value: Any,
        path: str,
        unknown: list[str],
        *,
        is_root: bool = False,
        defaults: bool = True,
        keeps_nulls: bool = False,
    ) -> None:
        """Remove fields the schema does not have and set its defaults, in place; report removed fields by path.

        Upstream drops nulls that are neither allowed nor defaulted when it decodes an object. What was applied is not decoded: `keeps_nulls`.

        Raises: BadRequest for an embedded object whose own fields have a wrong type.
        """
        walk = _Walk(unknown, defaults=defaults, keeps_nulls=keeps_nulls)
        if not is_root:
            self.fit_below(value, path, walk, keeps=self.preserve)
            return
        removed: list[str] = []
        coerced: list[str] = []
        walk.unknown = removed
        try:
            self._fit_object(value, path, walk, keeps=self.preserve, is_root=True)
            for document, place in embedded_objects(self, value, path):
                read_embedded(document, place, coerced, keeps_nulls=keeps_nulls)
        except Misfit as misfit:
            kind, version = value.get("kind", ""), str(value.get("apiVersion", "")).rpartition("/")[2]
            raise undecodable(kind, version, str(misfit)) from None
        unknown.extend([*sorted(removed), *sorted(coerced)])

    def fit_below(self, value: Any, path: str, walk: _Walk, *, keeps: bool) -> None:
        if type(value) is dict:
            self._fit_object(value, path, walk, keeps=keeps, is_root=False)
        elif type(value) is list:
            self._fit_list(value, path, walk, keeps=keeps)

    def _fit_list(self, value: list[Any], path: str, walk: _Walk, *, keeps: bool) -> None:
        """A list that keeps unknown fields keeps those of its items, at any depth of lists (skipPrune in schema/pruning/algorithm.go)."""
        items = self.items or _NOTHING_KNOWN
        keeps = keeps or items.preserve
        for index, item in enumerate(value):
            if item is None and not items.nullable and items.default is not _MISSING and walk.defaults:
                value[index] = item = items.new_default()  # noqa: PLW2901 - what it is from here on
            if type(item) is dict or type(item) is list:
                items.fit_below(item, f"{path}[{index}]", walk, keeps=keeps)

    def _fit_object(self, value: Document, path: str, walk: _Walk, *, keeps: bool, is_root: bool) -> None:
        prefix = f"{path}." if path else ""
        is_object = is_root or self.embedded
        properties = self.properties
        if self.extra is not None:
            self._fit_extra(value, self.extra, prefix, walk, is_object=is_object)
        elif not keeps and not value.keys() <= self.keys:
            kept = _RESERVED if is_object else frozenset[str]()
            for key in [key for key in value if key not in properties and key not in kept]:
                del value[key]
                walk.unknown.append(prefix + key)
        for name, child in properties.items():
            item = value.get(name, _MISSING)
            if item is _MISSING or (item is None and not child.nullable):
                if child.default is _MISSING or not walk.defaults:
                    if item is None and not walk.keeps_nulls:
                        del value[name]
                    continue
                value[name] = item = child.new_default()
            if (type(item) is dict or type(item) is list) and not (is_object and name == "metadata"):
                child.fit_below(item, prefix + name, walk, keeps=child.preserve)

    def _fit_extra(self, value: Document, extra: Structural, prefix: str, walk: _Walk, *, is_object: bool) -> None:
        for key, item in list(value.items()):
            if key in self.properties or (is_object and key in _RESERVED):
                continue
            if item is None and not extra.nullable:
                if extra.default is _MISSING or not walk.defaults:
                    if not walk.keeps_nulls:
                        del value[key]
                    continue
                value[key] = item = extra.new_default()  # noqa: PLW2901 - what it is from here on
            if type(item) is dict or type(item) is list:
                extra.fit_below(item, prefix + key, walk, keeps=extra.preserve)

    def new_default(self) -> Any:
        """Return the default, sharing nothing with the schema."""
        return copy_tree(self.default) if type(self.default) in {dict, list} else self.default

    # Validate

    def judge_object(self, document: Document, old: Document | None, *, is_status: bool = False) -> Verdict:
        """Return what is wrong with a whole object; `old` is what it replaces. `is_status`: the write sets only the status."""
        body = self._judged(document)
        before = self._judged(old) if old is not None else _MISSING
        if is_status:
            verdict = Verdict(self._status_causes(document, old), [])
        else:
            verdict = Verdict([*self.validate(body, "", before), *embedded_causes(self, document, "")], [])
        if self.has_keyed_lists and not (old is not None and self.duplicates(before)):
            verdict.causes.extend(self.duplicates(body))
        if self.rules is not None:
            self._apply_rules(self.rules, document, old, verdict)
        return verdict

    def _status_causes(self, document: Document, old: Document | None) -> list[StatusCause]:
        """Judge the status by itself: messages have paths below it (ValidateStatusUpdate in registry/customresource/validator.go)."""
        child = self.properties.get("status")
        if child is None or "status" not in document:
            return []
        return [
            replace(
                cause, field="status" if cause.field in {"", "<nil>"} else f"status.{cause.field.removeprefix('.')}"
            )
            for cause in child.validate(document["status"], "", (old or {}).get("status"))
        ]

    def _judged(self, document: Document) -> Document:
        """Return the part of an object the schema judges: of the metadata only the names, where it mentions them."""
        metadata = self.properties.get("metadata")
        own: Document = document["metadata"]
        names = metadata.properties if metadata is not None else ()
        return {**document, "metadata": {key: own[key] for key in names if key in own}}

    @staticmethod
    def _apply_rules(rules: RuleNode, document: Document, old: Document | None, verdict: Verdict) -> None:
        if any(cause.reason in _BLOCKING for cause in verdict.causes):
            text = "some validation rules were not checked because the object was invalid; "
            text += "correct the existing errors to complete validation"
            verdict.causes.append(invalid_value("<nil>", None, text))
            return
        causes, warnings = rules.check(document, old)
        verdict.causes.extend(causes)
        verdict.warnings.extend(warnings)

    def duplicates(self, value: Any) -> list[StatusCause]:
        """Return the items that lists of type set and map have twice."""
        causes: list[StatusCause] = []
        self.find_duplicates(value, "", causes)
        return causes

    def find_duplicates(self, value: Any, path: str, causes: list[StatusCause]) -> None:
        """Add the items that a list of type set or map has twice."""
        if type(value) is dict:
            prefix = f"{path}." if path else ""
            for name, item in value.items():
                child = self.properties.get(name)
                if child is not None and child.has_keyed_lists:
                    child.find_duplicates(item, prefix + name, causes)
                elif child is None and self.extra is not None and self.extra.has_keyed_lists:
                    self.extra.find_duplicates(item, f"{path}[{name}]", causes)
        elif type(value) is list:
            if self.list_type in {"set", "map"}:
                self._check_unique(value, path, causes)
            if self.items is not None and self.items.has_keyed_lists:
                for index, item in enumerate(value):
                    self.items.find_duplicates(item, f"{path}[{index}]", causes)

    def validate(self, value: Any, path: str, old: Any = _MISSING) -> list[StatusCause]:
        """Return what is wrong with the value at `path`, each once; what was wrong in `old` and did not change is tolerated."""
        causes: list[StatusCause] = []
        self.judge(value, path, old, causes)
        return list(dict.fromkeys(causes)) if len(causes) > 1 else causes

    def judge(self, value: Any, path: str, old: Any, causes: list[StatusCause]) -> int:
        """Add what is wrong to `causes`; `old` is absent where there was nothing.

        Returns how many checks upstream counts, most whether they succeed or not (Result.MatchCount in kube-openapi's pkg/validation/validate);
        of what is tolerated none, as nothing is tolerated where the number decides: in combinations.
        """
        kind = type(value)
        if kind is int and not _fits_int64(value):  # read as a float
            value, kind = float(value), float
        if self.plain and kind in _LEAVES:
            wanted, checks = _LEAVES[kind]
            if wanted == self.type:
                return checks
        elif kind is int and value in self.span:
            return _LEAVES[int][1]
        if old is not _MISSING and is_same(value, old):
            return 0
        checks = 0
        if value is None:
            if not self.nullable and self.types:
                causes.append(_type_error(path, ",".join(self.types), "null"))
            else:
                checks = 1
        else:
            checks = 4 + _OWN_CHECKS[kind]  # also of the enum, of the combinations (twice), of the whole
            if self.types or self.format:
                checks += 1 + self._check_type(value, path, causes)
            if not self.plain:
                checks += self._check_combinations(value, path, causes)
            if kind is dict:
                checks += self._validate_object(value, path, old, causes)
            elif kind is list:
                checks += self._validate_list(value, path, old, causes)
            elif kind is str:
                checks += self._check_string(value, path, causes)
            elif kind is not bool:
                self._check_number(value, path, causes)
        # The real server skips a null in the enum, so it takes none there.
        if self.enum is not None and (value is None or not any(_same(value, allowed) for allowed in self.enum)):
            causes.append(not_supported(path, value, [_enum_text(allowed) for allowed in self.enum]))
        return checks

    def _check_type(self, value: Any, path: str, causes: list[StatusCause]) -> bool:
        """Tell whether the type fits. Of a string or a list that does not fit, upstream names the type; of other values the format.

        Not as upstream: there, a list also fits a string that has a format, and each rule that reads it then fails.
        """
        types, actual = self.types, json_type(value)
        if actual in types or (actual == "integer" and "number" in types) or ("integer" in types and _is_whole(value)):
            return True
        if actual not in {"string", "array"} and self.format:
            causes.append(_type_error(path, self.format, _GO_FORMATS.get(actual, "")))
            return False
        if types:
            causes.append(_type_error(path, ",".join(types), actual))
        return not types

    def _validate_object(self, value: Document, path: str, old: Any, causes: list[StatusCause]) -> int:
        checks = 0
        before: Document = old if type(old) is dict else {}
        prefix = f"{path}." if path else ""
        properties = self.properties
        if self.min_properties is not None and len(value) < self.min_properties:
            text = f"{path} in body should have at least {self.min_properties} properties"
            causes.append(invalid_value(path or "<nil>", len(value), text))
        if self.max_properties is not None and len(value) > self.max_properties:
            causes.append(too_many(path or "<nil>", len(value), self.max_properties))
        if self.forbids_extra:
            causes.extend(
                invalid_value(path, name, f"{path}.{name} in body is a forbidden property")
                for name in sorted(value.keys() - self.keys)
            )
        extra = None if self.extra is _NOTHING_KNOWN else self.extra
        for name, item in value.items():
            if name in properties:
                checks += properties[name].judge(item, prefix + name, before.get(name, _MISSING), causes)
            elif extra is not None:  # the path begins with a dot here even at the root, as that of a default
                checks += extra.judge(item, f"{path}.{name}", before.get(name, _MISSING), causes)
        causes.extend(required(prefix + name) for name in self.required if name not in value)
        return checks

    def _validate_list(self, value: list[Any], path: str, old: Any, causes: list[StatusCause]) -> int:
        checks = 0
        if self.items is not None:
            earlier = earlier_items(old, self.map_keys, _MISSING)
            for index, item in enumerate(value):
                checks += self.items.judge(item, f"{path}[{index}]", earlier(item), causes)
        if self.min_items is not None and len(value) < self.min_items:
            causes.append(
                invalid_value(path, len(value), f"{path} in body should have at least {self.min_items} items")
            )
        if self.max_items is not None and len(value) > self.max_items:
            causes.append(too_many(path, len(value), self.max_items))
        return checks

    def _check_unique(self, value: list[Any], path: str, causes: list[StatusCause]) -> None:
        if self.list_type == "map":
            for index, item in enumerate(value):
                if type(item) is not dict and item is not None:
                    text = "must be an object for an array of list-type map"
                    causes.append(invalid_value(f"{path}[{index}]", item, text))
                    return
            keys = sorted(self.map_keys)
            value = [{key: item[key] for key in keys if key in item} if item is not None else {} for item in value]
        seen: dict[Any, int] = {}
        for index, shown in enumerate(value):
            # Go compares what is no scalar as JSON, whose keys are in order.
            key: Any = encode_sorted(shown) if type(shown) is dict or type(shown) is list else repr(shown)
            seen[key] = seen.get(key, 0) + 1
            if seen[key] == 2:  # a third one is not told
                causes.append(duplicate(f"{path}[{index}]", shown))

    def _check_string(self, value: str, path: str, causes: list[StatusCause]) -> int:
        if self.max_length is not None and len(value) > self.max_length:
            causes.append(too_long(path, self.max_length))
        elif self.min_length is not None and len(value) < self.min_length:
            causes.append(invalid_value(path, value, f"{path} in body should be at least {self.min_length} chars long"))
        elif self.pattern is not None and not self.pattern.matches(value):
            causes.append(invalid_value(path, value, f"{path} in body should match '{self.pattern_text}'"))
        if self.format and not is_valid(self.format, value):
            text = f"{path} in body must be of type {self.format}: {quoted(value)}"
            causes.append(invalid_value(path, value, text, reason="FieldValueTypeInvalid"))
        return 1 if self.format else 0

    def _check_number(self, value: float, path: str, causes: list[StatusCause]) -> None:
        self._is_held("Checked", value, path, causes)
        if self.multiple_of is not None:
            number, factor = self._comparable("MultipleOf", value, self.multiple_of, path, causes)
            self._check_multiple(number, factor, path, causes)
        if self.minimum is not None:
            number, least = self._comparable("Minimum boundary", value, self.minimum, path, causes)
            if number < least or (self.exclusive_minimum and number == least):
                words = "greater than" if self.exclusive_minimum else "greater than or equal to"
                causes.append(invalid_value(path, number, f"{path} in body should be {words} {_number(least)}"))
        if self.maximum is not None:
            number, most = self._comparable("Maximum boundary", value, self.maximum, path, causes)
            if number > most or (self.exclusive_maximum and number == most):
                words = "less than" if self.exclusive_maximum else "less than or equal to"
                causes.append(invalid_value(path, number, f"{path} in body should be {words} {_number(most)}"))

    def _comparable(
        self, name: str, value: float, bound: float, path: str, causes: list[StatusCause]
    ) -> tuple[float, float]:
        """Return both as upstream compares them: as whole numbers where the value is one and the type holds the bound."""
        if self._is_held(name, bound, path, causes) and type(value) is int:
            return value, _as_int64(bound)
        return float(value), bound

    def _is_held(self, name: str, number: float, path: str, causes: list[StatusCause]) -> bool:
        """Tell whether Go's type of these numbers holds one (IsValueValidAgainstRange in validate/values.go)."""
        if self.type == "integer":
            limit = 2**31 if self.format == "int32" else 2**63
            is_held = -limit <= number < limit and (type(number) is int or number.is_integer())
        else:
            is_held = self.format != "float" or abs(number) <= _LARGEST_FLOAT
        if not is_held:
            form = f"with format {self.format}" if self.format else "(default format)"
            causes.append(_unfit(f"{name} value must be of type {self.type} {form} in {path}"))
        return is_held

    @staticmethod
    def _check_multiple(value: float, factor: float, path: str, causes: list[StatusCause]) -> None:
        if factor <= 0:
            text = f"factor MultipleOf declared for {path} must be positive: {_number(factor)}"
            causes.append(invalid_value(path, factor, text))
            return
        quotient = value * (1 / factor) if factor < 1 else value / factor
        is_multiple = value % factor == 0 if type(value) is int else _is_whole(quotient)
        if not is_multiple:
            causes.append(invalid_value(path, value, f"{path} in body should be a multiple of {_number(factor)}"))

    def _check_combinations(self, value: Any, path: str, causes: list[StatusCause]) -> int:
        """Return how many checks upstream counts in the branches (schema_props.go)."""
        checks = 0
        if self.any_of:
            chosen = _first_or_closest(child.outcome(value, path) for child in self.any_of)
            if chosen.causes:
                causes.append(_combination(path, "must validate at least one schema (anyOf)"))
            checks += chosen.add_to(causes)
        if self.one_of:
            outcomes = [child.outcome(value, path) for child in self.one_of]
            valid = sum(not outcome.causes for outcome in outcomes)
            if valid != 1:
                found = f"{valid} valid alternatives" if valid else "none valid"
                text = f"must validate one and only one schema (oneOf). Found {found}"
                causes.append(_combination(path, text))
            if valid < 2:
                checks += _first_or_closest(outcomes).add_to(causes)
        if self.all_of:
            outcomes = [child.outcome(value, path) for child in self.all_of]
            checks += sum(outcome.add_to(causes) for outcome in outcomes)
            if any(outcome.causes for outcome in outcomes):
                none = ". None validated" if all(outcome.causes for outcome in outcomes) else ""
                causes.append(_combination(path, f"must validate all the schemas (allOf){none}"))
        if self.not_ is not None and not self.not_.outcome(value, path).causes:
            causes.append(_combination(path, "must not validate the schema (not)"))
        return checks

    def outcome(self, value: Any, path: str) -> _Outcome:
        """Judge the value as a branch of a combination, which tolerates nothing of what was before."""
        causes: list[StatusCause] = []
        return _Outcome(self.judge(value, path, _MISSING, causes), causes)


class _Outcome(NamedTuple):
    """What a branch says of a value, and how many checks upstream counts in it."""

    checks: int
    causes: list[StatusCause]

    def add_to(self, causes: list[StatusCause]) -> int:
        """Add the failures to those of the whole, and return the number of checks."""
        causes.extend(self.causes)
        return self.checks


def _first_or_closest(outcomes: Iterable[_Outcome]) -> _Outcome:
    """Return the first outcome without failures; else the one whose failures upstream shows: the first with the most checks."""
    failed: list[_Outcome] = []
    for outcome in outcomes:
        if not outcome.causes:
            return outcome
        failed.append(outcome)
    return max(failed, key=lambda outcome: outcome.checks)


def compile_schema(schema: Mapping[str, Any]) -> Structural:
    """Return the compiled `openAPIV3Schema` of one version; it must have passed the checks of a definition."""
    compiled = Structural(schema)
    compiled.rules = compile_rules(schema, is_resource=True)
    return compiled


def _combination(path: str, text: str) -> StatusCause:
    return _unfit(f'"{path}" {text}')


def _unfit(text: str) -> StatusCause:
    """Return what upstream reports without saying where or of what value."""
    return invalid_value("<nil>", "", text)


_OWN_CHECKS: Mapping[type, int] = {str: 1, int: 2, float: 2, bool: 0, dict: 1, list: 2}
"""How many checks upstream counts for the kind of a value alone."""
_LEAVES = {kind: (name, 6 + _OWN_CHECKS[kind]) for kind, name in ((str, "string"), (int, "integer"), (bool, "boolean"))}
"""The types that one look decides about, and how many checks upstream counts for them."""
_GO_FORMATS = {"integer": "int64", "number": "float64"}
_LARGEST_FLOAT = 3.4028234663852886e38


def _bound(schema: Mapping[str, Any], name: str) -> float | None:
    return float(schema[name]) if schema.get(name) is not None else None


def _as_int64(value: float) -> int:
    return int(value) if -(2.0**63) <= value < 2.0**63 else -(2**63)


def _enum_text(value: Any) -> str:
    return value if isinstance(value, str) else encode(value).decode()


def _type_error(path: str, wanted: str, actual: str) -> StatusCause:
    text = f'{path} in body must be of type {wanted}: "{actual}"'
    return invalid_value(path, actual, text, reason="FieldValueTypeInvalid")


def _fits_int64(value: int) -> bool:
    return -(2**63) <= value < 2**63


def _is_whole(value: Any) -> bool:
    """Tell whether a float counts as a whole number: exactly or nearly, up to 2**53 (IsFloat64AJSONInteger in go-openapi/swag)."""
    if type(value) is not float or abs(value) > _LARGEST_WHOLE:  # also infinity; no JSON has a NaN
        return False
    rest = abs(value - int(value))
    return rest == 0 or (int(value) != 0 and rest / (abs(value) + abs(int(value))) < 1e-9)


_LARGEST_WHOLE = float(2**53 - 1)


def _number(value: float) -> str:
    return str(value) if type(value) is int else go_float(value)


def _same(value: Any, allowed: Any) -> bool:
    """Compare after conversion of numbers to the allowed value's type (Enum in kube-openapi's pkg/validation/validate/values.go)."""
    if type(allowed) is int and type(value) is float and abs(value) <= _LARGEST_WHOLE:
        value = int(value)
    return value == allowed and isinstance(value, bool) == isinstance(allowed, bool)


_NOTHING_KNOWN = Structural({"nullable": True})
"""What upstream has no schema for, as the values below `additionalProperties: true`: objects lose all they have, nulls stay."""

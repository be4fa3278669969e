"""The comparison of two structural schemas, place by place.

Each keyword has one function with its values, and with the rule for a stricter one; `_KNOWN` lists all of them, so that an unknown keyword
is a separate finding.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias, cast

from ctrlruntime.generate.builtin import LOOSE_QUANTITY, QUANTITY
from ctrlruntime.project.compatibility.finding import Code, Finding

__all__ = ["compare_schemas"]

Schema: TypeAlias = Mapping[str, Any]

_PRESERVE, _INT_OR_STRING, _EMBEDDED = (
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-int-or-string",
    "x-kubernetes-embedded-resource",
)
_RULES, _LIST, _KEYS, _MAP = (
    "x-kubernetes-validations",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
)
_LOW: Final = ("minimum", "minLength", "minItems", "minProperties")
_HIGH: Final = ("maximum", "maxLength", "maxItems", "maxProperties")
_EXCLUSIVE: Final = ("exclusiveMinimum", "exclusiveMaximum")
_BRANCHES: Final = ("allOf", "anyOf", "oneOf", "not")
_TEXTS: Final = ("description", "title", "example", "externalDocs")
_KNOWN: Final = frozenset(
    (
        *(_PRESERVE, _INT_OR_STRING, _EMBEDDED, _RULES, _LIST, _KEYS, _MAP, *_LOW, *_HIGH, *_EXCLUSIVE, *_BRANCHES, *_TEXTS),
        *("type", "format", "properties", "additionalProperties", "items", "required", "nullable", "default", "enum"),
        *("pattern", "multipleOf"),
    )
)  # fmt: skip
_WIDTHS: Final = {("int32", "int64"), ("float", "double")}
"""Formats of which the second takes every value of the first."""


def compare_schemas(old: Schema, new: Schema, *, version: str, path: str = "") -> Iterator[Finding]:
    """Yield each change between the schemas of one version, those of a place before those below it."""
    yield from _Place(old, new, version, path).findings()


class _Place:
    """One place in both schemas."""

    def __init__(self, old: Schema, new: Schema, version: str, path: str) -> None:
        self._old = old
        self._new = new
        self._version = version
        self._path = path

    def findings(self) -> Iterator[Finding]:
        if self._is_other_type():
            yield from self._type()
            return  # what else differs belongs to the type
        yield from self._type()
        yield from self._null()
        yield from self._default()
        yield from self._unknown()
        yield from self._merging()
        yield from self._enum()
        yield from self._bounds()
        yield from self._pattern()
        yield from self._format()
        yield from self._rules()
        yield from self._branches()
        yield from self._rest()
        yield from self._required()
        yield from self._below()

    def _found(self, code: Code, was: Any = None, now: Any = None, step: str = "") -> Finding:
        return Finding(code=code, version=self._version, path=_joined(self._path, step), was=was, now=now)

    def _changed(self, word: str, code: Code) -> Iterator[Finding]:
        was, now = self._old.get(word), self._new.get(word)
        if was != now:
            yield self._found(code, was, now)

    def _flag(self, word: str, taken: Code, given: Code) -> Iterator[Finding]:
        was, now = bool(self._old.get(word)), bool(self._new.get(word))
        if was != now:
            yield self._found(given if now else taken, was, now)

    # Types

    def _is_other_type(self) -> bool:
        was, now = _type(self._old), _type(self._new)
        return was != now and not _is_wider(was, now) and not _is_wider(now, was)

    def _type(self) -> Iterator[Finding]:
        was, now = _type(self._old), _type(self._new)
        if was == now:
            return
        if _is_wider(was, now):
            code = Code.TYPE_WIDENED
        elif was == _INT_OR_STRING:
            code = Code.INT_OR_STRING_NARROWED
        else:
            code = Code.TYPE_NARROWED if _is_wider(now, was) else Code.TYPE_CHANGED
        yield self._found(code, was, now)

    def _null(self) -> Iterator[Finding]:
        yield from self._flag("nullable", Code.NULLABLE_REMOVED, Code.NULLABLE_ADDED)

    def _default(self) -> Iterator[Finding]:
        if self._old.get("default") == self._new.get("default") and ("default" in self._old) == (
            "default" in self._new
        ):
            return
        code = Code.DEFAULT_CHANGED
        if "default" not in self._new:
            code = Code.DEFAULT_REMOVED
        elif "default" not in self._old:
            code = Code.DEFAULT_ADDED
        yield self._found(code, self._old.get("default"), self._new.get("default"))

    def _unknown(self) -> Iterator[Finding]:
        yield from self._flag(_PRESERVE, Code.UNKNOWN_FIELDS_PRUNED, Code.UNKNOWN_FIELDS_KEPT)
        yield from self._flag(_EMBEDDED, Code.EMBEDDED_REMOVED, Code.EMBEDDED_ADDED)

    def _merging(self) -> Iterator[Finding]:
        for word, usual, code in (
            (_LIST, "atomic", Code.LIST_TYPE_CHANGED),
            (_MAP, "granular", Code.MAP_TYPE_CHANGED),
        ):
            was, now = self._old.get(word, usual), self._new.get(word, usual)
            if was != now:
                yield self._found(code, was, now)
        was, now = self._old.get(_KEYS), self._new.get(_KEYS)
        # Keys that come or go with the type of the list are told by it.
        if was is not None and now is not None and sorted(was) != sorted(now):
            yield self._found(Code.MAP_KEYS_CHANGED, was, now)

    # Values

    def _enum(self) -> Iterator[Finding]:
        was: Any = self._old.get("enum")
        now: Any = self._new.get("enum")
        if (was is None) != (now is None):
            yield self._found(Code.ENUM_ADDED if was is None else Code.ENUM_REMOVED, was, now)
            return
        for value in _missing(was or (), now or ()):
            yield self._found(Code.ENUM_VALUE_REMOVED, value, None)
        for value in _missing(now or (), was or ()):
            yield self._found(Code.ENUM_VALUE_ADDED, None, value)

    def _bounds(self) -> Iterator[Finding]:
        for words, sign in ((_LOW, 1), (_HIGH, -1)):
            for word in words:
                yield from self._bound(word, sign)
        for word in _EXCLUSIVE:
            yield from self._flag(word, Code.BOUND_LOOSENED, Code.BOUND_TIGHTENED)
        was, now = self._old.get("multipleOf"), self._new.get("multipleOf")
        if was != now:
            is_looser = now is None or (was is not None and was % now == 0)
            yield self._found(Code.BOUND_LOOSENED if is_looser else Code.BOUND_TIGHTENED, was, now)

    def _bound(self, word: str, sign: int) -> Iterator[Finding]:
        """`sign` is 1 for a bound that tightens when it grows."""
        was, now = self._old.get(word), self._new.get(word)
        if was == now:
            return
        is_tighter = now is not None and (was is None or (now - was) * sign > 0)
        code = Code.BOUND_TIGHTENED if is_tighter else Code.BOUND_LOOSENED
        yield self._found(code, None if was is None else f"{word} {was}", None if now is None else f"{word} {now}")

    def _pattern(self) -> Iterator[Finding]:
        if (self._old.get("pattern"), self._new.get("pattern")) == (LOOSE_QUANTITY, QUANTITY["pattern"]):
            return  # only what no client can read is rejected now
        yield from self._changed(
            "pattern", Code.PATTERN_REMOVED if "pattern" not in self._new else Code.PATTERN_CHANGED
        )

    def _format(self) -> Iterator[Finding]:
        was, now = self._old.get("format"), self._new.get("format")
        is_looser = not now or (was, now) in _WIDTHS
        yield from self._changed("format", Code.FORMAT_LOOSENED if is_looser else Code.FORMAT_TIGHTENED)

    def _rules(self) -> Iterator[Finding]:
        old, new = (_rules_by_text(schema) for schema in (self._old, self._new))
        for key in sorted(old.keys() - new.keys()):
            yield self._found(Code.RULE_REMOVED, key[0], None)
        for key in sorted(new.keys() - old.keys()):
            yield self._found(Code.RULE_ADDED, None, key[0])
        for key in sorted(old.keys() & new.keys()):
            if old[key] != new[key]:
                yield self._found(Code.RULE_TEXT_CHANGED, old[key], new[key])

    def _branches(self) -> Iterator[Finding]:
        for word in _BRANCHES:
            was, now = self._old.get(word), self._new.get(word)
            if was == now or (word == "anyOf" and _INT_OR_STRING in {_type(self._old), _type(self._new)}):
                continue  # the two types of an int or string, told by its type
            code = Code.BRANCH_REMOVED if _is_looser(word, was, now) else Code.BRANCH_ADDED
            yield self._found(code, None if was is None else {word: was}, None if now is None else {word: now})

    def _rest(self) -> Iterator[Finding]:
        for word in _TEXTS:
            yield from self._changed(word, Code.DOCUMENTATION_CHANGED)
        for word in sorted((self._old.keys() | self._new.keys()) - _KNOWN):
            was, now = self._old.get(word), self._new.get(word)
            if was != now:
                yield self._found(Code.OTHER_CHANGED, {word: was}, {word: now})

    # What is below

    def _required(self) -> Iterator[Finding]:
        was, now = set(self._old.get("required") or ()), set(self._new.get("required") or ())
        old, new = _properties(self._old), _properties(self._new)
        for name in sorted(was | now):
            needed_before, needed = name in was and "default" not in old.get(name, {}), name in now
            if needed and "default" in new.get(name, {}):
                if name not in was and name in old:
                    yield self._found(Code.REQUIRED_WITH_DEFAULT, was=False, now=True, step=f".{name}")
            elif needed and not needed_before:
                yield self._found(Code.REQUIRED_ADDED, was=False, now=True, step=f".{name}")
            elif name in was and not needed and name in new:
                yield self._found(Code.REQUIRED_REMOVED, was=True, now=False, step=f".{name}")

    def _below(self) -> Iterator[Finding]:
        old, new = _properties(self._old), _properties(self._new)
        for name in sorted(old.keys() | new.keys()):
            step = f".{name}"
            if name not in new:
                yield from self._removed(old[name], step)
            elif name not in old:
                yield from self._added(new[name], step)
            else:
                yield from self._child(old[name], new[name], step)
        yield from self._values()
        if isinstance(self._old.get("items"), Mapping) and isinstance(self._new.get("items"), Mapping):
            yield from self._child(self._old["items"], self._new["items"], "[]")

    def _removed(self, was: Schema, step: str) -> Iterator[Finding]:
        values = _values(self._new)
        if values is not None:
            yield self._found(Code.FIELD_UNCHECKED, _type(was), None, step)
            yield from self._child(was, values, step)
        else:
            code = Code.FIELD_UNCHECKED if self._new.get(_PRESERVE) else Code.FIELD_REMOVED
            yield self._found(code, _type(was), None, step)

    def _added(self, now: Schema, step: str) -> Iterator[Finding]:
        values = _values(self._old)
        is_checked = values is not None or self._old.get(_PRESERVE)
        yield self._found(Code.FIELD_CHECKED if is_checked else Code.FIELD_ADDED, None, _type(now), step)
        if values is not None:
            yield from self._child(values, now, step)

    def _values(self) -> Iterator[Finding]:
        """additionalProperties: the values of a map."""
        was, now = _values(self._old), _values(self._new)
        if was is not None and now is not None:
            yield from self._child(was, now, "{}")
        elif was is not None:
            code = Code.FIELD_UNCHECKED if self._new.get(_PRESERVE) else Code.VALUES_PRUNED
            yield self._found(code, _type(was), None, "{}")
        elif now is not None:
            code = Code.FIELD_CHECKED if self._old.get(_PRESERVE) else Code.VALUES_KEPT
            yield self._found(code, None, _type(now), "{}")

    def _child(self, old: Schema, new: Schema, step: str) -> Iterator[Finding]:
        yield from _Place(old, new, self._version, _joined(self._path, step)).findings()


def _joined(path: str, step: str) -> str:
    return f"{path}{step}".removeprefix(".")


def _type(schema: Schema) -> str:
    """The type's name; `any` where there is none."""
    return _INT_OR_STRING if schema.get(_INT_OR_STRING) else str(schema.get("type") or "any")


def _is_wider(was: str, now: str) -> bool:
    """Whether every value of the type `was` is one of the type `now`."""
    return now == "any" or (was, now) in {
        ("integer", "number"),
        ("integer", _INT_OR_STRING),
        ("string", _INT_OR_STRING),
    }


def _properties(schema: Schema) -> Mapping[str, Schema]:
    return cast("Mapping[str, Schema]", schema.get("properties") or {})


def _values(schema: Schema) -> Schema | None:
    """The schema of the values of a map; None for what is not a map."""
    given = schema.get("additionalProperties")
    if isinstance(given, Mapping):
        return cast("Schema", given)
    return {} if given else None


def _missing(values: Iterable[Any], there: Iterable[Any]) -> list[Any]:
    present = {json.dumps(value, sort_keys=True) for value in there}
    return [value for value in values if json.dumps(value, sort_keys=True) not in present]


def _rules_by_text(schema: Schema) -> dict[tuple[str, bool], Mapping[str, Any]]:
    """Rules by what they demand: the expression, and whether it is asked of new values, too."""
    rules = cast("list[Mapping[str, Any]]", schema.get(_RULES) or [])
    return {(rule["rule"], bool(rule.get("optionalOldSelf"))): rule for rule in rules}


def _is_looser(word: str, was: Any, now: Any) -> bool:
    """Whether the branches take all they took before. What cannot be told is taken to be tighter."""
    if now is None:
        return True
    if was is None or word in {"not", "oneOf"}:
        return False
    added, removed = _missing(now, was), _missing(was, now)
    return not added if word == "allOf" else not removed

"""Random structural schemas, and random values that fit them more or less."""

from __future__ import annotations

from random import Random
from typing import Any

PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
INT_OR_STRING = "x-kubernetes-int-or-string"
DEPTH = 4
NAMES = "abc"


class SchemaMaker:
    """Makes what a definition may say of a field; the keywords that decide what is kept stand everywhere they may."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def schema(self, depth: int = DEPTH) -> dict[str, Any]:
        made = self._bare(depth)
        if self._sometimes(0.2) and not made.get(EMBEDDED):
            made["nullable"] = True
        if self._sometimes(0.15) and made.get("type") in _DEFAULTS and not made.get(EMBEDDED):
            made["default"] = self._random.choice(_DEFAULTS[made["type"]])
        return made

    def _bare(self, depth: int) -> dict[str, Any]:
        kinds = ["scalar", *(["object", "map", "array", "embedded", "anything"] if depth else ())]
        match self._random.choices(kinds, [1, 3, 3, 3, 1, 1][: len(kinds)])[0]:
            case "object":
                return self._kept({"type": "object", **self._properties(depth)})
            case "map":
                extra: Any = self.schema(depth - 1) if self._sometimes(0.6) else self._sometimes(0.6)
                return self._kept({"type": "object", "additionalProperties": extra})
            case "array":
                return self._kept({"type": "array", "items": self.schema(depth - 1)})
            case "embedded":
                kept = {PRESERVE: True} if self._sometimes(0.5) else {}
                own = {"properties": {"spec": self.schema(depth - 1)}} if not kept or self._sometimes(0.5) else {}
                return {"type": "object", EMBEDDED: True, **kept, **own}
            case "anything":
                return {PRESERVE: True}
            case _:
                kinds = ("string", "integer", "number", "boolean")
                return self._random.choice([*({"type": kind} for kind in kinds), {INT_OR_STRING: True}])

    def _properties(self, depth: int) -> dict[str, Any]:
        names = [name for name in NAMES if self._sometimes(0.6)]
        made: dict[str, Any] = {"properties": {name: self.schema(depth - 1) for name in names}} if names else {}
        if names and self._sometimes(0.1):
            made["additionalProperties"] = True
        return made

    def _kept(self, schema: dict[str, Any]) -> dict[str, Any]:
        return {**schema, PRESERVE: True} if self._sometimes(0.3) else schema

    def _sometimes(self, share: float) -> bool:
        return self._random.random() < share


_DEFAULTS: dict[str, list[Any]] = {
    "string": ["", "d"],
    "integer": [0, 5],
    "number": [0.5, 2.0, 1e20],
    "boolean": [True],
    "array": [[]],
    "object": [{}],
}
_SCALARS: dict[str, list[Any]] = {
    "string": ["", "s"],
    "integer": [0, -3, 2.0],
    "number": [1, 1.0, 0.5, 1e20],
    "boolean": [True, False],
}


class ValueMaker:
    """Makes values for schemas; some have fields the schema does not know, nulls, or another type."""

    def __init__(self, random: Random, *, wrong: float = 0.01) -> None:
        self._random = random
        self._wrong = wrong

    def value(self, schema: dict[str, Any], depth: int = DEPTH) -> Any:
        if self._sometimes(0.06):
            return None
        if self._sometimes(self._wrong):
            return self.anything(depth)
        if schema.get(INT_OR_STRING):
            return self._random.choice([1, "1", 2**40])
        match schema.get("type"):
            case "object":
                return self._object(schema, depth)
            case "array":
                return [self.value(schema["items"], depth - 1) for _ in range(self._random.randrange(3))]
            case None:
                return self.anything(depth)
            case kind:
                return self._random.choice(_SCALARS[kind])

    def anything(self, depth: int) -> Any:
        match self._random.randrange(8 if depth > 0 else 4):
            case 0:
                return None
            case 1 | 2:
                return self._random.choice(["t", 1, 1.0, 1e20, 1e-7, 2**70, True])
            case 3 | 4:
                return [self.anything(depth - 1) for _ in range(self._random.randrange(3))] if depth > 0 else {}
            case _:
                return {name: self.anything(depth - 1) for name in "axy" if self._sometimes(0.6)}

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        if schema.get(EMBEDDED):
            made |= {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "n", "labels": {"l": "v"}, "odd": {"x": 1}},
            }
        for name, child in (schema.get("properties") or {}).items():
            if self._sometimes(0.7):
                made[name] = self.value(child, depth - 1)
        extra = schema.get("additionalProperties")
        if isinstance(extra, dict):
            made |= {name: self.value(extra, depth - 1) for name in "kl" if self._sometimes(0.6)}
        elif self._sometimes(0.1 if extra is False else 0.5):
            made |= {name: self.anything(depth - 1) for name in "xy" if self._sometimes(0.6)}
        return made

    def _sometimes(self, share: float) -> bool:
        return self._random.random() < share


class CheckMaker:
    """Makes what a definition may check of a value, also in combinations; and values for which much of it fails."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def schema(self, kind: str, depth: int = 2) -> dict[str, Any]:
        return {"type": kind, **self._checks(kind, depth), **_DECLARED.get(kind, {})}

    def value(self, kind: str) -> Any:
        return self._random.choice(_CHECKED[kind])

    def _checks(self, kind: str, depth: int) -> dict[str, Any]:
        made = {name: self._random.choice(few) for name, few in _CHECKS[kind].items() if self._random.random() < 0.4}
        for name in ("anyOf", "oneOf", "allOf"):
            if depth and self._random.random() < 0.4:
                made[name] = [self._checks(kind, depth - 1) for _ in range(self._random.randint(1, 3))]
        if depth and self._random.random() < 0.1:
            made["not"] = self._checks(kind, depth - 1)
        return made


_CHECKS: dict[str, dict[str, Any]] = {
    "string": {
        "minLength": (1, 3),
        "maxLength": (1, 3),
        "pattern": ("^a", "b$", "^[ab]*$"),
        "format": ("date", "ipv4", "odd"),
        "enum": (["a"], ["ab", "abc"]),
    },
    "integer": {"minimum": (0, 2), "maximum": (1, 4), "multipleOf": (2, 3), "enum": ([1], [2, 3])},
    "array": {"minItems": (1, 2), "maxItems": (1, 2)},
    "object": {
        "minProperties": (1, 2),
        "maxProperties": (1, 2),
        "required": (["x"], ["y", "z"]),
        "properties": ({"x": {"minLength": 2}}, {"y": {"maximum": 2}}, {"x": {"pattern": "^a"}, "y": {"minimum": 5}}),
    },
}
_DECLARED: dict[str, dict[str, Any]] = {
    "array": {"items": {"type": "string", "maxLength": 2}},
    "object": {"properties": {"x": {"type": "string"}, "y": {"type": "integer"}, "z": {"type": "boolean"}}},
}
_CHECKED: dict[str, tuple[Any, ...]] = {
    "string": ("", "a", "b", "ab", "ba", "abc", "aabb", "2020-01-01", "1.2.3.4"),
    "integer": (-3, 0, 1, 2, 3, 4, 6, 9),
    "array": ([], ["a"], ["abc"], ["a", "b"], ["a", "abc", "b"]),
    "object": ({}, {"x": "a"}, {"x": "b", "y": 1}, {"x": "abc", "y": 7}, {"z": True}, {"x": "", "y": 3, "z": False}),
}

"""A type with fields of every form, for the tests of apply."""

from ctrlruntime.apiserver.apply.types import Compiler, Type

TEXT = {"type": "string"}
ITEM = {
    "type": "object",
    "properties": {"name": TEXT, "kind": {"type": "string", "default": "K"}, "size": {"type": "integer"}},
}
SCHEMA = {
    "type": "object",
    "properties": {
        "size": {"type": "integer"},
        "on": {"type": "boolean"},
        "text": TEXT,
        "any": {"x-kubernetes-int-or-string": True},
        "tags": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
        "items": {
            "type": "array",
            "items": ITEM,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name", "kind"],
        },
        "steps": {"type": "array", "items": TEXT},
        "whole": {"type": "object", "additionalProperties": TEXT, "x-kubernetes-map-type": "atomic"},
        "options": {"type": "object", "additionalProperties": TEXT},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
TYPE = Compiler().custom(SCHEMA, Type())

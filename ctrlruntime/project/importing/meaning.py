"""Whether two definitions mean the same to the server and to readers, and where they do not.

Left out is what says nothing: order, empty lists, falsy flags, blanks and line breaks in descriptions, names the server would fill in, and
the stamps of tools. controller-gen's pattern for quantities counts as ours, by which they are read. Limits in `allOf` apply together with those
outside of it, so both are one set.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from ctrlruntime.generate.builtin import LOOSE_QUANTITY, QUANTITY
from ctrlruntime.generate.options import Document

__all__ = ["LIMITS", "STAMPS", "bounds_in", "differences", "is_limits", "normal_schema"]

LIMITS: Final = frozenset(
    {
        "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems",
        "minProperties", "maxProperties", "pattern",
    }
)  # fmt: skip
"""The keywords of bounds."""
_RULES, _INT_OR_STRING, _PRESERVE = (
    "x-kubernetes-validations",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
)
_EITHER: Final = [{"type": "integer"}, {"type": "string"}]
_HEAD: Final = {"apiVersion": "string", "kind": "string", "metadata": "object"}
STAMPS: Final = (
    "controller-gen.kubebuilder.io/version",
    "ctrlruntime.dev/generated-by",
    "kubectl.kubernetes.io/last-applied-configuration",
)
_SHOWN = 80


def differences(source: Mapping[str, Any], made: Mapping[str, Any]) -> list[str]:
    """Return the differences of two CRDs: a line for each place, which starts with version and path."""
    return list(_compared(_normal(source), _normal(made, _repeated_columns(source)), ""))


def _compared(source: Any, made: Any, path: str) -> Iterator[str]:
    if isinstance(source, Mapping) and isinstance(made, Mapping) and not path.endswith((".default", ".example")):
        one, other = cast("Mapping[str, Any]", source), cast("Mapping[str, Any]", made)
        for key in [*one, *(key for key in other if key not in one)]:
            yield from _compared_at(one, other, key, path)
        if path.endswith(".additionalPrinterColumns") and one.keys() == other.keys() and [*one] != [*other]:
            yield f"{path.strip()}: the CRD has the order {', '.join(one)}, but the classes generate {', '.join(other)}"
    elif _key(source) != _key(made):
        was, became = _shown_apart(source, made)
        yield f"{path.strip()}: the CRD has {was}, but the classes generate {became}"


def _compared_at(source: Mapping[str, Any], made: Mapping[str, Any], key: str, path: str) -> Iterator[str]:
    if key == "properties" or (key in source and key in made):
        yield from _compared(source.get(key) or {}, made.get(key) or {}, _below(path, key, source))
        return
    where = f"{path.strip()}: " if path else ""
    if key in source:
        advice = _ADVICE.get(key, "")
        yield f"{where}{key} {_shown(source[key])} is omitted, because classes cannot express it{advice}"
    else:
        yield f"{where}{key} {_shown(made[key])} is added by the class"


def _below(path: str, key: str, source: Mapping[str, Any]) -> str:
    match key:
        case "versions" | "properties":
            return path
        case "schema" if " " not in path:
            return f"{path} "
        case "items" if source.get("type") == "array":
            return f"{path}[]"
        case "additionalProperties" if source.get("type") == "object":
            return f"{path}{{}}"
        case _:
            return f"{path}.{key}" if path else key


_RULE: Final = ". Use a rule, crd.CEL(…)"
_ADVICE: Final = {
    "allOf": _RULE,
    "anyOf": _RULE,
    "oneOf": _RULE,
    "not": _RULE,
    "conversion": ". Register converters in the operator instead",
}


def _shown(tree: Any) -> str:
    text = json.dumps(tree, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _shown_apart(source: Any, made: Any) -> tuple[str, str]:
    """Both values, texts from where they part."""
    if not isinstance(source, str) or not isinstance(made, str):
        return _shown(source), _shown(made)
    same = next((at for at, (one, other) in enumerate(zip(source, made, strict=False)) if one != other), len(made))
    start = source.rfind(" ", 0, same) + 1 if same > _SHOWN // 2 else 0
    before = "…" if start else ""
    return _shown(before + source[start:]), _shown(before + made[start:])


def _key(tree: Any) -> str:
    return json.dumps(tree, sort_keys=True)


# A definition


def _repeated_columns(definition: Mapping[str, Any]) -> frozenset[str]:
    """The names that several columns of a version have."""
    counts = (
        Counter(str(column.get("name")) for column in version.get("additionalPrinterColumns") or ())
        for version in definition["spec"]["versions"]
    )
    return frozenset(name for counted in counts for name, count in counted.items() if count > 1)


def _normal(definition: Mapping[str, Any], repeated: frozenset[str] | None = None) -> Document:
    """Return the CRD with one form for each meaning. Columns with `repeated` names (default: those here) are told apart by their paths."""
    repeated = _repeated_columns(definition) if repeated is None else repeated
    spec: Mapping[str, Any] = definition["spec"]
    names: Mapping[str, Any] = spec["names"]
    kind = names["kind"]
    metadata: Mapping[str, Any] = definition.get("metadata") or {}
    conversion: Mapping[str, Any] = spec.get("conversion") or {}
    said: Document = {
        "labels": metadata.get("labels"),
        "annotations": {key: text for key, text in (metadata.get("annotations") or {}).items() if key not in STAMPS},
        "group": spec["group"],
        "names": _without_empty({"singular": kind.lower(), "listKind": f"{kind}List", **names}),
        "scope": spec.get("scope"),
        "versions": {version["name"]: _version(version, repeated) for version in spec["versions"]},
        "conversion": {} if conversion.get("strategy", "None") == "None" else conversion,
        "preserveUnknownFields": spec.get("preserveUnknownFields"),
    }
    return _without_empty(said)


def _version(version: Mapping[str, Any], repeated: frozenset[str]) -> Document:
    subresources: Mapping[str, Any] = version.get("subresources") or {}
    scale = subresources.get("scale")
    said: Document = {
        **version,
        "schema": _root(version["schema"]["openAPIV3Schema"]),
        "additionalPrinterColumns": {
            _column_name(column, repeated): _without_empty(column)
            for column in version.get("additionalPrinterColumns") or ()
        },
        "subresources": {
            **({"status": "yes"} if "status" in subresources else {}),
            **({"scale": _without_empty(scale)} if scale else {}),
        },
        "selectableFields": sorted(field["jsonPath"] for field in version.get("selectableFields") or ()),
    }
    return _without_empty(said)


def _column_name(column: Mapping[str, Any], repeated: frozenset[str]) -> str:
    name = str(column.get("name"))
    return f"{name} ({column.get('jsonPath')})" if name in repeated else name


def _without_empty(tree: Mapping[str, Any]) -> Document:
    return {key: value for key, value in tree.items() if value}


# A schema


def _root(schema: Mapping[str, Any]) -> Document:
    """The schema of a whole object: what the server checks of each object by itself says nothing."""
    properties = {name: child for name, child in (schema.get("properties") or {}).items() if not _is_head(name, child)}
    required = [name for name in schema.get("required") or () if name not in _HEAD]
    return normal_schema({**schema, "properties": properties, "required": required})


def _is_head(name: str, child: Mapping[str, Any]) -> bool:
    return name in _HEAD and child.get("type") == _HEAD[name] and not child.keys() - {"type", "description"}


def normal_schema(schema: Mapping[str, Any]) -> Document:
    """Return the schema with one form for each meaning."""
    said: Document = {}
    for key, found in schema.items():
        if key in {"default", "example"}:
            said[key] = _number_free(found)
        elif key == "properties":
            said[key] = {name: normal_schema(child) for name, child in found.items()}
        elif key in {"items", "not"} or (key == "additionalProperties" and isinstance(found, Mapping)):
            said[key] = normal_schema(found)
        elif key not in LIMITS:
            said[key] = _keyword(key, found)
    said = {
        key: found
        for key, found in said.items()
        if key in {"default", "example", "items", "additionalProperties"} or found
    }
    _either(said)
    if limits := _limits(schema, said):
        said["limits"] = limits
    return said


def _keyword(key: str, found: Any) -> Any:
    match key:
        case "description" | "title":
            return " ".join(str(found).split())
        case "required":
            return sorted(set(found))
        case "enum":
            return [json.loads(text) for text in sorted({_key(_number_free(one)) for one in found})]
        case "allOf" | "anyOf" | "oneOf":
            return [normal_schema(one) for one in found]
        case _ if key == _RULES:
            return sorted((_rule(rule) for rule in found), key=_key)
        case "externalDocs":
            return _without_empty(found)
        case _:
            return found


def _rule(rule: Mapping[str, Any]) -> Document:
    return {key: value for key, value in rule.items() if value or key == "optionalOldSelf"}


def _either(said: Document) -> None:
    """The two types of an int-or-string are said by its flag already."""
    if not said.get(_INT_OR_STRING):
        return
    if said.get("anyOf") == _EITHER:
        del said["anyOf"]
    both = [one for one in said.get("allOf", ()) if one != {"anyOf": _EITHER}]
    if "allOf" in said:
        said["allOf"] = both
        if not both:
            del said["allOf"]


def is_limits(branches: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether branches of allOf say bounds only."""
    return all(set(branch) <= LIMITS for branch in branches)


def _limits(schema: Mapping[str, Any], said: Document) -> list[Any]:
    """All bounds as sorted pairs; those of allOf are taken out of it when it says nothing else."""
    bounds = list(bounds_in(schema))
    both: list[Mapping[str, Any]] = [
        one for one in schema.get("allOf") or () if one != {"anyOf": _EITHER} or not schema.get(_INT_OR_STRING)
    ]
    if both and is_limits(both):
        bounds += [bound for branch in both for bound in bounds_in(branch)]
        said.pop("allOf", None)
    return [json.loads(text) for text in sorted({json.dumps([name, _bound(value)]) for name, value in bounds})]


def bounds_in(schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Return the bounds a schema says itself, by the names of pydantic's constraints (ge, gt, …) and `pattern`."""
    for name, plain, exclusive in (("minimum", "ge", "gt"), ("maximum", "le", "lt")):
        if name in schema:
            word = exclusive if schema.get(f"exclusive{name[:1].upper()}{name[1:]}") else plain
            yield word, schema[name]
    if "multipleOf" in schema:
        yield "multiple_of", schema["multipleOf"]
    for what in ("Length", "Items", "Properties"):
        for side in ("min", "max"):
            if f"{side}{what}" in schema:
                yield f"{side}{what}", schema[f"{side}{what}"]
    if "pattern" in schema:
        yield "pattern", QUANTITY["pattern"] if schema["pattern"] == LOOSE_QUANTITY else schema["pattern"]


def _bound(value: Any) -> Any:
    """A bound as the API keeps it: a float64."""
    is_large = isinstance(value, (int, float)) and abs(value) >= 2**53
    return float(value) if is_large else _number_free(value)


def _number_free(tree: Any) -> Any:
    """A JSON value whose whole numbers are ints."""
    match tree:
        case float() if tree.is_integer():
            return int(tree)
        case Mapping():
            known = cast("Mapping[str, Any]", tree)
            return {key: _number_free(one) for key, one in known.items()}
        case list():
            items: list[Any] = tree
            return [_number_free(one) for one in items]
        case _:
            return tree

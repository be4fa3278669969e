"""What cannot become a definition is refused with module, class and field, what is wrong and what to do."""

from __future__ import annotations

import itertools
from datetime import timedelta
from decimal import Decimal
from enum import Enum
from ipaddress import IPv4Interface
from typing import Annotated, Any, Literal, TypedDict

import pytest
from pydantic import BaseModel, Field

import ctrlruntime as ctrl
from ctrlruntime.errors import GenerateError
from ctrlruntime.generate import crds
from ctrlruntime.markers import (
    CEL,
    Default,
    EmbeddedResource,
    Format,
    Immutable,
    ListMap,
    ListSet,
    MapAtomic,
    MaxProperties,
    Nullable,
    OLMDescriptor,
    SchemaType,
    Title,
    printcolumn,
)

GROUP = "bad.example.com"


class Part(ctrl.Model):
    name: str = ""
    size: int = 0


class Other(ctrl.Model):
    other: str = ""


class Loop(ctrl.Model):
    again: Loop | None = None


class First(ctrl.Model):
    second: Second | None = None


class Second(ctrl.Model):
    first: list[First] = Field(default_factory=list)


class Needs(ctrl.Model):
    size: int


class Shape(TypedDict):
    a: str


class Mixed(Enum):
    A = "a"
    B = 1


class Stranger:
    pass


class Circle(ctrl.Model):
    kind: Literal["circle"]


class Square(ctrl.Model):
    kind: Literal["square"]


def kind_with(annotation: Any, *default: Any) -> type[ctrl.Object]:
    """A kind with one field `value`."""
    body: dict[str, Any] = {"__module__": __name__, "__annotations__": {"value": annotation}}
    if default:
        body["value"] = default[0]
    return type(ctrl.Object)("Bad", (ctrl.Object,), body, group=GROUP, version="v1")


COUNTER = itertools.count()
FIELDS: dict[str, tuple[tuple[Any, ...], str]] = {
    "float": ((float,), "keep the value of a float"),
    "Any": ((Any,), "Use JSONValue"),
    "object": ((object,), "Use JSONValue"),
    "bare dict": ((dict,), "Use dict"),
    "bare list": ((list,), "Use list"),
    "dict of Any": ((dict[str, Any],), "Use JSONValue"),
    "list of Any": ((list[Any],), "Use JSONValue"),
    "dict with int keys": ((dict[int, str],), "keys of a JSON object must be strings"),
    "dict with keys of interfaces": ((dict[IPv4Interface, str],), "keys of a JSON object must be strings"),
    "tuple of different items": ((tuple[int, str],), "items of a tuple have different types"),
    "int or str": ((int | str,), "IntOrString"),
    "union of models": ((Part | Other,), "exactly_one_of"),
    "discriminated union": ((Circle | Square, Field(discriminator="kind")), "exactly_one_of"),
    "Decimal": ((Decimal,), "Use Quantity"),
    "timedelta": ((timedelta,), "Duration"),
    "TypedDict": ((Shape,), "TypedDict"),
    "mixed enum": ((Mixed,), "all strings or all integers"),
    "mixed literal": ((Literal["a", 1],), "all strings or all integers"),
    "recursion": ((Loop,), r"contains itself \(Loop -> Loop\)"),
    "mutual recursion": ((First,), r"\(First -> Second -> First\)"),
    "pattern on an int": ((Annotated[int, SchemaType("integer")], Field(pattern="a")), "pattern is for strings"),
    "bound on a text": ((str, Field(ge=1)), "is for numbers"),
    "half a bound on an int": ((int, Field(ge=0.5)), "coercible to an integer|no whole number"),
    "length of an int": ((int, Field(max_length=1)), "is for strings, lists and dicts"),
    "list type on a text": ((Annotated[str, ListSet],), "is for a list"),
    "map type on a list": ((Annotated[list[str], MapAtomic],), "is for an object"),
    "properties of a text": ((Annotated[str, MaxProperties(1)],), "is for an object"),
    "unknown list key": ((Annotated[list[Part], ListMap("nope")],), "the items have no field 'nope'"),
    "list key that may be absent": (
        (Annotated[list[Part], ListMap("name")],),
        "must have a default or be a required property",
    ),
    "keys of texts": ((Annotated[list[str], ListMap("name")],), "not objects"),
    "set of nulls": (
        (Annotated[list[Annotated[str | None, Nullable]], ListSet],),
        "cannot be nullable when x-kubernetes-list-type is set",
    ),
    "nulls with keys": (
        (Annotated[list[Annotated[Part | None, Nullable]], ListMap("name")],),
        "cannot be nullable when x-kubernetes-list-type is map",
    ),
    "set of objects": ((Annotated[list[Part], ListSet],), "items of a set must be scalars"),
    "marker as a class": ((Annotated[list[Part], ListMap],), "ListMap is used as a class"),
    "rule that does not compile": (
        (Annotated[str, CEL("self.nope")],),
        "the rule 'self.nope': compilation failed: ERROR: <input>:1:5: type 'string' does not support field selection",
    ),
    "rule that gives no bool": (
        (Annotated[str, CEL("self")],),
        "the rule 'self': cel expression must evaluate to a bool",
    ),
    "old self in a list": ((list[Annotated[int, CEL("self == oldSelf")]],), "no oldSelf"),
    "optional old self without use": (
        (Annotated[int, CEL("self > 0", optional_old_self=True)],),
        "optionalOldSelf: may not be set if oldSelf is not used in rule. Remove optional_old_self",
    ),
    "message of two lines": ((Annotated[int, CEL("self > 0", message="a\nb")],), "line breaks"),
    "default out of bounds": ((int, Field(0, ge=1, json_schema_extra=None), 5), "unused"),
    "default too small": (
        (Annotated[int, Field(ge=10)], 5),
        "default: Invalid value: 5: should be greater than or equal to 10",
    ),
    "default not in the enum": (
        (Literal["a", "b"], "c"),
        'default: Unsupported value: "c": supported values: "a", "b"',
    ),
    "default of another type": ((int, "five"), "default: .*must be of type integer"),
    "default that does not match": ((Annotated[str, Field(pattern="^a$")], "b"), "default: .*should match"),
    "default of null": ((Annotated[str, Default(None)],), "null cannot be a default"),
    "default that changes": ((int, Field(default_factory=lambda: next(COUNTER) + 1)), "another value each time"),
    "default that cannot be made": (
        (Needs, Field(default_factory=Needs)),
        "default_factory fails: size: Field required. Correct its value",
    ),
    "default that is not JSON": ((Annotated[str, Default(Stranger())],), "cannot be encoded as JSON"),
    "bad pattern": ((str, Field(pattern="(?=a)")), "look-around|none the server can read"),
    "bounds that exclude all": ((str, Field(min_length=3, max_length=1)), "no value is valid"),
    "json_schema_extra": ((str, Field(json_schema_extra={"x": 1})), "not supported"),
    "a class nobody knows": ((Annotated[Stranger, Title("x")],), "pydantic cannot build|cannot become a schema"),
}
del FIELDS["default out of bounds"]


@pytest.mark.parametrize(("parts", "words"), FIELDS.values(), ids=FIELDS.keys())
def test_a_field_that_cannot_be_is_refused_by_name(parts: tuple[Any, ...], words: str):
    with pytest.raises(GenerateError, match=words) as caught:
        crds([kind_with(*parts)])

    text = str(caught.value)
    assert text.startswith(
        (f"{__name__}.Bad.value", f"{__name__}.Second.first", f"{__name__}.Loop.again", f"{__name__}.Bad:")
    )


def test_the_error_names_a_field_of_a_part():
    class Wrong(ctrl.Model):
        ratio: float

    with pytest.raises(GenerateError) as caught:
        crds([kind_with(list[Wrong])])

    assert "Wrong.ratio: not all clients and languages keep the value of a float" in str(caught.value)
    assert str(caught.value).startswith(__name__)


# Kinds


def kind(version: str = "v1", *, name: str = "Bad", body: dict[str, Any] | None = None, **words: Any):
    members = {"__module__": __name__, **(body or {})}
    return type(ctrl.Object)(
        name, (ctrl.Object,), members, kind="Bad", group=words.pop("group", GROUP), version=version, **words
    )


KINDS: dict[str, tuple[list[type[ctrl.Object]], str]] = {
    "two storage versions": ([kind(storage=True), kind("v2", storage=True)], "2 versions have storage=True"),
    "no storage version": ([kind(), kind("v2")], "no version of v1, v2 has storage=True"),
    "no served version": ([kind(served=False)], "all versions have served=False"),
    "all skipped": ([kind(skip=True)], "all versions have skip=True"),
    "one version twice": ([kind(), kind()], "another class also defines"),
    "scopes that differ": ([kind(storage=True), kind("v2", scope="Cluster")], "scope is 'Cluster'"),
    "plurals that differ": ([kind(storage=True), kind("v2", plural="worse")], "plural is 'worse'"),
    "a group without a dot": ([kind(group="bad")], "domain with a dot"),
    "a version that is not a label": ([kind("1.0")], "is not one like v1"),
    "a plural in capitals": ([kind(plural="Bads")], "lower case"),
    "annotations that differ": (
        [kind(storage=True, annotations={"a": "1"}), kind("v2", annotations={"a": "2"})],
        "in another version",
    ),
    "a warning too long": ([kind(deprecated="x" * 257)], "at most 256"),
    "a scale path outside spec": (
        [kind(scale=ctrl.crd.ScalePaths(".metadata.replicas", ".status.replicas"))],
        "not a path below .spec",
    ),
    "a scale path that leads nowhere": (
        [kind(scale=ctrl.crd.ScalePaths(".spec.n", ".status.n"))],
        "is not in the schema",
    ),
    "a selectable field that leads nowhere": ([kind(selectable_fields=[".spec.color"])], "is not in the schema"),
    "a selectable field of metadata": ([kind(selectable_fields=[".metadata.name"])], "is metadata"),
    "a selectable field in a list": ([kind(selectable_fields=[".spec.a[0]"])], "not a path like"),
    "too many selectable fields": ([kind(selectable_fields=[f".spec.a{n}" for n in range(9)])], "allows at most 8"),
    "a group of fields with a dot": ([kind(exactly_one_of=[("a.b",)])], "is not a field of .* itself"),
    "a group of unknown fields": ([kind(exactly_one_of=[("a", "b")])], "has no field 'a'"),
    "a group of required fields": (
        [kind(body={"__annotations__": {"a": str}}, at_most_one_of=[("a",)])],
        "is required",
    ),
    "a column that leads nowhere": ([printcolumn("X", ".spec.x")(kind())], "is not in the schema"),
    "a column without a type": ([printcolumn("X", ".metadata.labels")(kind())], "has no type"),
    "a column that is not a path": ([printcolumn("X", ".metadata.[")(kind())], "a bracket is not closed"),
    "a column of a key with dots": (
        [printcolumn("X", ".metadata.labels['example.com/x']")(kind())],
        r"it has no \.metadata\.labels\.example\.com/x. Write a dot in a name as \\\.",
    ),
    "a column of a key in double quotes": ([printcolumn("X", '.metadata.labels["x"]')(kind())], "in single quotes"),
    "a column of a word": ([printcolumn("X", ".metadata name", type="string")(kind())], "is not in the schema"),
    "a marker for fields on a class": ([Nullable(kind())], "Nullable has no effect on a class"),
    "a descriptor on a class": ([OLMDescriptor("Size")(kind())], "OLMDescriptor has no effect on a class"),
    "a default on a class": ([Default(1)(kind())], "Default has no effect on a class"),
}


@pytest.mark.parametrize(("classes", "words"), KINDS.values(), ids=KINDS.keys())
def test_kinds_that_cannot_be_are_refused_by_name(classes: list[type[ctrl.Object]], words: str):
    with pytest.raises(GenerateError, match=words) as caught:
        crds(classes)

    assert str(caught.value).startswith(f"{__name__}.Bad")


def test_a_class_without_group_is_no_kind():
    class Nothing(ctrl.Object):
        pass

    with pytest.raises(GenerateError, match="Set a group and a version"):
        crds([Nothing])


def test_two_fields_of_one_wire_name_are_refused():
    class Twice(ctrl.Object, group=GROUP, version="v1"):
        a_b: str = ""
        other: str = Field("", validation_alias="aB", serialization_alias="aB")

    with pytest.raises(GenerateError, match="two fields have the JSON name 'aB'"):
        crds([Twice])


def test_a_hook_that_gives_no_structural_schema_is_refused():
    class Hooked(BaseModel):
        @classmethod
        def __ctrl_schema__(cls) -> dict[str, Any]:
            return {"anyOf": [{"type": "string"}], "type": "object"}

    with pytest.raises(GenerateError, match=r": anyOf\[0\].type: Forbidden: must be empty to be structural"):
        crds([kind_with(Hooked)])


# Warnings


def warned(cls: type[ctrl.Object]) -> list[str]:
    texts: list[str] = []
    crds([cls], warn=texts.append)
    return texts


def test_a_rule_without_bounds_is_warned_of_with_advice():
    (first, *_) = warned(kind_with(list[Annotated[str, CEL("self.matches('^a*$')")]]))

    assert f"{__name__}.Bad.value[]" in first
    assert "max_length" in first


def test_a_rule_with_bounds_is_not_warned_of():
    bounded = Annotated[list[Annotated[str, Field(max_length=63), CEL("self.matches('^a*$')")]], Field(max_length=8)]

    assert warned(kind_with(bounded)) == []


@pytest.mark.parametrize(
    ("rule", "advice"),
    [
        ("quantity(self).isGreaterThan(quantity('0'))", "quantity(string(self))"),
        ("isQuantity(self)", "isQuantity(string(self))"),
        ("[self].all(each, quantity(each).isInteger())", "quantity(string(each))"),
        ("quantity(self == 1 ? self : '2').isInteger()", "quantity(string(…))"),
    ],
)
def test_quantity_of_a_field_that_can_be_a_number_is_warned_of_with_the_fix(rule, advice):
    (text,) = warned(kind_with(Annotated[ctrl.Quantity, CEL(rule)], ctrl.Quantity(1)))

    assert f"{__name__}.Bad.value: the rule {rule!r} rejects a number such as 1" in text
    assert text.endswith(f". Write {advice}")


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (ctrl.Quantity, "quantity(string(self)).isGreaterThan(quantity('0'))"),
        (ctrl.Quantity, "type(self) == int || quantity(self).isGreaterThan(quantity('0'))"),
        (str, "isQuantity(self) && quantity(self).isInteger()"),
    ],
)
def test_quantity_of_a_string_is_not_warned_of(value, rule):
    bounded = Annotated[value, Field(max_length=30)] if value is str else value

    assert warned(kind_with(Annotated[bounded, CEL(rule)], value("1"))) == []


def test_a_format_the_server_does_not_know_is_warned_of():
    (text,) = warned(kind_with(Annotated[str, Format("phone")]))

    assert "phone" in text


def test_defaults_below_an_object_that_may_be_absent_are_warned_of():
    class Filled(ctrl.Model):
        size: int = 3

    (text,) = warned(kind_with(Filled | None, None))

    assert "default_factory" in text


def test_a_definition_too_large_for_kubectl_apply_is_warned_of():
    (text,) = warned(kind_with(str, Field("", description="word " * 60_000)))

    assert "--server-side" in text


def test_an_embedded_resource_and_an_immutable_field_are_fine():
    assert warned(kind_with(Annotated[EmbeddedResource, Immutable])) == []


class FixedEntry(ctrl.Model):
    name: str = Field(max_length=10)
    value: Annotated[int | None, Immutable] = None


@pytest.mark.parametrize(
    ("annotation", "what"),
    [
        (Annotated[list[FixedEntry], Field(max_length=3), ListMap("name")], "the items of a list"),
        (Annotated[dict[str, FixedEntry], Field(max_length=3)], "the values of a dict"),
    ],
)
def test_an_immutable_field_that_can_be_removed_with_what_holds_it_is_a_warning(annotation: Any, what: str):
    (warning,) = warned(kind_with(annotation))

    assert f"{what} have immutable fields, but the API server allows removing one" in warning


def test_an_immutable_list_of_objects_with_immutable_fields_is_fine():
    assert warned(kind_with(Annotated[list[FixedEntry], Field(max_length=3), ListMap("name"), Immutable])) == []


def test_a_name_that_no_rule_can_read_is_an_error_where_a_rule_is_needed():
    class Odd(ctrl.Model):
        one: Annotated[str | None, Immutable] = Field(None, validation_alias="x y")

    with pytest.raises(
        GenerateError, match=r"Odd\.one: Immutable requires a CEL rule, which cannot read the field 'x y'"
    ):
        crds([kind_with(Odd)])

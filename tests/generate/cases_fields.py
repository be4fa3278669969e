"""The twins of tests/peers/crdgen/cases/plain/v1/fields.go."""

from __future__ import annotations

from typing import Annotated

from cases_validation import Phase, Plain, Span
from pydantic import Field

import ctrlruntime as ctrl
from ctrlruntime.markers import (
    Default,
    EmbeddedResource,
    ExternalDocs,
    Immutable,
    Int32,
    Int64,
    JSONValue,
    ListAtomic,
    ListMap,
    ListSet,
    MapAtomic,
    MapGranular,
    Nullable,
    PreserveUnknownFields,
    RawExtension,
    Schemaless,
    SchemaType,
    Title,
)


class EmbeddedCase(Plain):
    """EmbeddedCase holds whole objects."""

    template: EmbeddedResource = Field(description="Template is any object.")


@PreserveUnknownFields
class Loose(ctrl.Model):
    """Loose keeps what it does not know."""

    known: str = ""


class PreserveCase(Plain):
    """PreserveCase keeps unknown fields."""

    loose: Loose
    here: Annotated[Span, PreserveUnknownFields] = Field(description="Here keeps them by the field.")


class AnythingCase(Plain):
    """AnythingCase holds any JSON."""

    value: JSONValue = Field(description="Value is anything.")
    object: RawExtension = Field(description="Object is any object.")
    values: list[JSONValue] = Field(default_factory=list, description="Values are anything.")
    by_name: dict[str, JSONValue] = Field(default_factory=dict, description="ByName are anything.")


class SchemalessCase(Plain):
    """SchemalessCase says itself what its field is."""

    tree: Annotated[Span | None, Schemaless, SchemaType("object"), PreserveUnknownFields] = Field(
        None, description="Tree is an object."
    )


class NullableCase(Plain):
    """NullableCase takes nulls."""

    name: Annotated[str | None, Nullable] = None
    names: Annotated[list[str], Nullable]
    span: Annotated[Span, Nullable]


class RequiredCase(Plain):
    """RequiredCase has fields that must be there and others."""

    zebra: str
    apple: str
    mango: str
    pear: str = ""
    plum: str = ""
    grape: str | None


class DefaultCase(Plain):
    """DefaultCase has defaults of scalars."""

    count: Int32 = 3
    text: str = "a: b"
    flag: bool = True
    off: bool | None = False
    zero: int | None = 0
    empty: Annotated[str, Default("")] = ""
    phase: Phase = Phase.RUNNING
    digits: str = "1"


class DefaultListCase(Plain):
    """DefaultListCase has defaults of lists and maps."""

    ports: list[int] = Field(default_factory=lambda: [80, 443])
    names: list[str] = ["a", "b"]  # noqa: RUF012 - pydantic copies it
    labels: dict[str, str] = Field(default_factory=lambda: {"tier": "web", "app": "x"})
    none: Annotated[list[str], Default({})] = Field(default_factory=list)
    spans: list[Span] = Field(default_factory=lambda: [Span(from_=1, to=2)])


class Inner(ctrl.Model):
    """Inner has a default."""

    size: int = 5
    name: str = Field("", description="Name has none.")


class Outer(ctrl.Model):
    """Outer has one, since what is inside does."""

    inner: Inner = Field(default_factory=Inner)


class DefaultNestedCase(Plain):
    """DefaultNestedCase has defaults inside of defaults."""

    spec: Outer = Field(default_factory=Outer)
    other: Outer = Field(default_factory=lambda: Outer(inner=Inner(size=7)))
    named: Inner | None = Field(default_factory=lambda: Inner(name="x"))


class ExampleCase(Plain):
    """ExampleCase shows values."""

    host: str = Field(examples=["example.com", "other.example.com"])
    port: int = Field(examples=[8080])
    names: list[str] = Field(examples=[["a", "b"]])
    span: Span = Field(examples=[Span(from_=1, to=2)])


@Title("The type's")
class Titled(ctrl.Model):
    """Titled has a title."""

    a: str


class TitleCase(Plain):
    """TitleCase has titles."""

    name: Annotated[str, Title("A name")]
    one: Titled
    two: Annotated[Titled, Title("The field's")]


@ExternalDocs("https://example.com/type")
class Linked(ctrl.Model):
    """Linked has documentation elsewhere."""

    a: str


class ExternalDocsCase(Plain):
    """ExternalDocsCase has links."""

    name: Annotated[str, ExternalDocs("https://example.com/name", "More of it")]
    one: Linked
    two: Annotated[Linked, ExternalDocs("https://example.com/field")]


class ImmutableCase(Plain):
    """ImmutableCase has fields that stay."""

    name: Annotated[str, Immutable]
    class_: Annotated[str | None, Immutable] = None
    span: Annotated[Span, Immutable]


class Entry(ctrl.Model):
    """Entry has a name."""

    name: str
    protocol: str = "TCP"
    value: int = 0


class ListMapCase(Plain):
    """ListMapCase has lists with keys."""

    entries: Annotated[list[Entry], ListMap("name")]
    pairs: Annotated[list[Entry], ListMap("name", "protocol")] = Field(default_factory=list)


class ListSetCase(Plain):
    """ListSetCase has lists that are sets."""

    names: Annotated[list[str], ListSet]
    numbers: set[Int64]


class ListAtomicCase(Plain):
    """ListAtomicCase has lists that are one thing."""

    entries: Annotated[list[Entry], ListAtomic]


class MapTypeCase(Plain):
    """MapTypeCase has maps of both sorts."""

    whole: Annotated[dict[str, str], MapAtomic]
    each: Annotated[dict[str, str], MapGranular]


class Whole(ctrl.Model, struct_type="atomic"):
    """Whole is replaced at once."""

    a: str = ""


class StructTypeCase(Plain):
    """StructTypeCase has objects that are one thing."""

    whole: Whole

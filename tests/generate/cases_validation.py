"""The twins of tests/peers/crdgen/cases/plain/v1/validation.go: the same kinds, as classes."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

import ctrlruntime as ctrl
from ctrlruntime.markers import CEL, Format, Int32, Int64, MaxProperties, SchemaType


class Plain(ctrl.Object, group="plain.example.com", version="v1"):
    pass


class MaximumCase(Plain):
    """MaximumCase has upper bounds."""

    any: int = Field(le=10)
    small: Int32 = Field(0, le=-1)
    large: Int64 = Field(0, ge=-5, le=100_000)


class MinimumCase(Plain):
    """MinimumCase has lower bounds."""

    any: int = Field(ge=0)
    small: Int32 = Field(0, ge=1)


class ExclusiveCase(Plain):
    """ExclusiveCase has bounds that are no values themselves."""

    above: int = Field(gt=0)
    below: int = Field(lt=10)


class MultipleOfCase(Plain):
    """MultipleOfCase has steps."""

    bits: int = Field(multiple_of=8)


class BigBoundsCase(Plain):
    """BigBoundsCase has bounds that a float cannot hold exactly."""

    wide: Int64 = Field(ge=-(2**63), le=2**63 - 1)
    int: Int32 = Field(le=2**31 - 1)
    round: Int64 = Field(le=10**12)


class LengthCase(Plain):
    """LengthCase bounds the length of texts."""

    host: str = Field(min_length=1, max_length=253)
    any: str = Field("", min_length=0)


class PatternCase(Plain):
    """PatternCase wants texts of a form."""

    label: str = Field(pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$")
    percent: str = Field("", pattern=r"^\d+%?$")


class ItemsCase(Plain):
    """ItemsCase bounds the length of lists."""

    names: list[str] = Field(min_length=1, max_length=8)


class ItemMarkersCase(Plain):
    """ItemMarkersCase says things of the items of lists."""

    names: list[Annotated[str, Field(max_length=63, pattern="^[a-z]+$")]] = Field(max_length=4)
    ports: list[Annotated[Int32, Field(ge=1, le=65535)]] = Field(default_factory=list)
    letters: list[Literal["a", "b"]] = Field(default_factory=list)
    addresses: list[Annotated[str, Format("ipv4")]] = Field(default_factory=list)
    free: list[Annotated[str, CEL("self != 'x'", message="no x")]] = Field(default_factory=list)


class PropertiesCase(Plain):
    """PropertiesCase bounds the size of maps."""

    labels: dict[str, str] = Field(min_length=1, max_length=8)


@MaxProperties(3)
class Sized(ctrl.Model):
    """Sized is an object of bounded size."""

    a: str = ""
    b: str = ""


class SizedCase(Plain):
    """SizedCase bounds the size of objects."""

    plain: Sized
    filled: Sized = Field(description="Filled says what it is.")


class EnumCase(Plain):
    """EnumCase has texts and numbers of a list."""

    policy: Literal["Never", "Always", "OnFailure"]
    level: Literal[3, 1, 2]
    single: Literal["one"] | None = None


class Phase(StrEnum):
    """Phase says how far it is."""

    PENDING = "Pending"
    RUNNING = "Running"
    FAILED = "Failed"


class EnumTypeCase(Plain):
    """EnumTypeCase has a type of its own for an enum."""

    phase: Phase
    last: Phase | None = Field(None, description="Last is the one before.")
    all: list[Phase] = Field(default_factory=list, description="All are those there were.")
    by_name: dict[str, Phase] = Field(default_factory=dict, description="ByName are those of others.")


class FormatCase(Plain):
    """FormatCase has texts of known forms."""

    address: Annotated[str, Format("ipv4")]
    link: Annotated[str, Format("uri")] = ""
    day: Annotated[str, Format("date")] = ""


class TypeCase(Plain):
    """TypeCase says another type than Go has."""

    number: Annotated[int, SchemaType("string"), Field(max_length=9)]


class CelFieldCase(Plain):
    """CelFieldCase has rules on fields."""

    host: Annotated[
        str, Field(max_length=253), CEL("!self.contains('*')", message="must not contain *"), CEL("self == oldSelf")
    ]
    count: Annotated[int, CEL("self > 0", message_expression="'not ' + string(self)")]


@CEL("self.low <= self.high", message="low is above high", field_path=".low")
@CEL("self.low >= 0", reason="FieldValueForbidden")
@CEL(
    "!oldSelf.hasValue() || self.high == oldSelf.value().high",
    message="high stays",
    optional_old_self=True,
)
class CelTypeCase(Plain):
    """CelTypeCase has rules on the whole."""

    low: int
    high: int


@CEL("self.from <= self.to", message="the type's")
class Span(ctrl.Model):
    """Span goes from one to another."""

    from_: int
    to: int


class CelBothCase(Plain):
    """CelBothCase has rules on a field and on its type."""

    span: Annotated[Span, CEL("self.to < 100", message="the field's")]


class AtMostOneCase(Plain, at_most_one_of=[("config_map", "secret")]):
    """AtMostOneCase has at most one of two."""

    config_map: str | None = None
    secret: str | None = None


class ExactlyOneCase(Plain, exactly_one_of=[("a", "b", "c")]):
    """ExactlyOneCase has one of three."""

    a: str | None = None
    b: str | None = None
    c: str | None = None


class AtLeastOneCase(Plain, at_least_one_of=[("a", "b")]):
    """AtLeastOneCase has one of two, or both."""

    a: str | None = None
    b: str | None = None


@CEL("true")
class OneOfOrderCase(Plain, at_least_one_of=[("e", "f")], exactly_one_of=[("c", "d")], at_most_one_of=[("a", "b")]):
    """OneOfOrderCase has groups of every sort, and a rule."""

    a: str | None = None
    b: str | None = None
    c: str | None = None
    d: str | None = None
    e: str | None = None
    f: str | None = None


class IntOrStringCase(Plain):
    """IntOrStringCase has numbers or texts."""

    port: ctrl.IntOrString
    share: Annotated[ctrl.IntOrString, Field(max_length=4, pattern=r"^\d+%$")] | None = None
    surge: ctrl.IntOrString | None = "25%"
    count: ctrl.IntOrString | None = 1


Port: TypeAlias = Annotated[Int32, Field(ge=1, le=65535, description="Port is one that can be opened.")]


class NamedTypeCase(Plain):
    """NamedTypeCase narrows a type that has bounds of its own."""

    any: Port = Field(description="Any is as the type says.")
    high: Annotated[Port, Field(ge=1024, description="High begins later.")]
    narrow: Annotated[Port, Field(ge=1024, le=2048, description="Narrow begins later and ends sooner.")]
